"""NCCL: collectives of CuPy arrays from GPU to GPU, without a way through the host.

Requirement: where each rank has a GPU of its own, arrays on GPUs need not visit the host. CuPy has
NCCL in ``cupy.cuda.nccl``. On the first CuPy array, all ranks of a communicator agree whether NCCL
can be used. Otherwise, arrays go through the host as before.

NCCL runs on CuPy's current stream. Each method waits until the GPU is done: a waiting rank asks
again and again, and so can be interrupted, as in ``requests``.

The code of this module has run on a stand-in for CuPy and NCCL only, never on GPUs. The names,
signatures and codes of the stand-in are those of CuPy 14.2.

Source: NVIDIA, NCCL Documentation; CuPy, ``cupy.cuda.nccl``.
"""

from __future__ import annotations

import importlib
import socket
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from tinynode.devices import Array, Device, get_backend
from tinynode.distributed.requests import wait_for
from tinynode.errors import DeviceError, dtype_name

OPERATIONS = {
    "sum": "NCCL_SUM",
    "mean": "NCCL_SUM",
    "prod": "NCCL_PROD",
    "max": "NCCL_MAX",
    "min": "NCCL_MIN",
}
"""The operations of ``allreduce``, with their names in NCCL; ``mean`` divides before the sum."""
DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
"""The dtypes of ``allreduce``; ``NCCL_FLOAT32`` is the code of float32, and so on."""
TRAVELS_AS = {
    "bool": "uint8",
    "float16": "float32",
    "complex64": "float32",
    "complex128": "float64",
}
"""The other dtypes of ``allreduce``. float16 is added up in float32, as by way of the host."""
_BYTES = "uint8"


class Ranks(Protocol):
    """The methods of a Communicator for the agreement between the ranks."""

    rank: int
    size: int
    local_rank: int

    def allgather_objects(self, value: Any) -> list[Any]:
        """A picklable object of each rank."""

    def on_main(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function on rank 0, on every rank."""


class NcclTransport:
    """Collectives of the arrays of a GPU, by NCCL.

    The constructor waits until all ranks are there.

    Args:
        rank: the number of this rank.
        size: the number of ranks.
        device: the GPU of this rank; no other rank has the same GPU.
        unique_id: the identity of the group, made on rank 0.
    """

    def __init__(self, rank: int, size: int, device: Device, unique_id: Any) -> None:
        self.rank, self.size, self.device = rank, size, device
        self._cupy: Any = importlib.import_module("cupy")
        self._nccl = _nccl()
        with device.active():
            self._group = self._nccl.NcclCommunicator(size, unique_id, rank)

    def __repr__(self) -> str:
        return f"NcclTransport(rank {self.rank} of {self.size}, {self.device})"

    def takes(self, array: Array, operation: str) -> bool:
        """True if NCCL has the operation for the array's dtype, and False for the host."""
        name = dtype_name(array.dtype)
        if operation not in OPERATIONS or TRAVELS_AS.get(name, name) not in DTYPES:
            return False
        if name == "bool":
            return operation in ("max", "min")
        if name.startswith("complex"):  # sums of pairs of real numbers
            return operation in ("sum", "mean")
        return operation != "mean" or name.startswith("float")

    def allreduce(self, array: Array, operation: str = "sum") -> Array:
        """The sum, mean, max, min or prod over all ranks; ``takes`` has to be True.

        array: (s) -> (s).
        """
        cupy, name = self._cupy, dtype_name(array.dtype)
        code = getattr(self._nccl, OPERATIONS[operation])
        with self.device.active():
            sent = cupy.ascontiguousarray(array).reshape(-1)
            is_view = name == "bool" or name.startswith("complex")
            wire = TRAVELS_AS.get(name, name)
            sent = sent.view(wire) if is_view else sent.astype(wire, copy=False)
            if operation == "mean":
                sent = sent / sent.dtype.type(self.size)
            result = cupy.empty_like(sent)
            if sent.size:
                pointers = sent.data.ptr, result.data.ptr
                self._run(
                    "allreduce",
                    self._group.allReduce,
                    *pointers,
                    sent.size,
                    self._code(wire),
                    code,
                )
            result = result.view(name) if is_view else result.astype(name, copy=False)
            return result.reshape(array.shape)

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """The array of rank ``root``, on every rank.   array: (s) on each rank -> (s)."""
        cupy = self._cupy
        with self.device.active():
            sent = cupy.ascontiguousarray(array)
            result = cupy.empty_like(sent)
            if sent.size:
                pointers = sent.data.ptr, result.data.ptr
                self._run(
                    "broadcast",
                    self._group.broadcast,
                    *pointers,
                    sent.nbytes,
                    self._code(_BYTES),
                    root,
                )
            return result.reshape(array.shape)

    def allgather(self, array: Array) -> tuple[Array, ...]:
        """The arrays of all ranks, of equal shapes.   array: (s) -> size arrays (s)."""
        cupy = self._cupy
        with self.device.active():
            sent = cupy.ascontiguousarray(array)
            result = cupy.empty((self.size, *array.shape), dtype=array.dtype)
            if sent.size:
                pointers = sent.data.ptr, result.data.ptr
                self._run(
                    "allgather", self._group.allGather, *pointers, sent.nbytes, self._code(_BYTES)
                )
            return tuple([result[rank, ...] for rank in range(self.size)])

    def abort(self) -> None:
        """End the collectives on the way. The transport cannot be used afterwards."""
        self._group.abort()

    def _code(self, name: str) -> int:
        return int(getattr(self._nccl, f"NCCL_{name.upper()}"))

    def _run(self, what: str, collective: Callable[..., None], *arguments: int) -> None:
        """Start a collective on the current stream, and wait for the end.

        Raises:
            RankError: another rank has ended, or did not come in time.
        """
        stream = self._cupy.cuda.get_current_stream()
        try:
            collective(*arguments, stream.ptr)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            wait_for(partial(self._is_done, event), what, self.rank)
        except BaseException:
            self.abort()  # the GPU would wait for the other ranks, and the program for the GPU
            raise

    def _is_done(self, event: Any) -> bool:
        if event.done:
            return True
        self._group.check_async_error()
        return False


_transports: WeakKeyDictionary[Any, NcclTransport | None] = WeakKeyDictionary()
_lock = threading.RLock()  # re-entrant as in tinynode/generator.py


def transport_for(communicator: Ranks, device: Device) -> NcclTransport | None:
    """NCCL for the arrays of a device, or None for the way through the host.

    The first call with a device of CuPy is collective: all ranks give an array on a GPU. The
    answer is kept for the communicator. It is None

    - for a single rank, and for other devices than ``cupy``;
    - if a rank has no NCCL, or two ranks have the same GPU;
    - if NCCL cannot start: a RuntimeWarning has the reason.

    Raises:
        DeviceError: NCCL is in use, and the array is on another GPU than the first array.
    """
    if communicator.size == 1 or device.backend.name != "cupy":
        return None
    with _lock:
        is_known = communicator in _transports
    if not is_known:
        agreed = _agreed(communicator, device)
        with _lock:
            _transports[communicator] = agreed
    transport = _transports[communicator]
    if transport is not None and transport.device is not device:
        raise DeviceError(
            f"Communicator: rank {communicator.rank} began with arrays on {transport.device}, and "
            f"this array is on {device}. NCCL has a GPU for each rank: move the array to "
            f"{transport.device}."
        )
    return transport


def gpu_of_rank(communicator: Ranks) -> str:
    """The name of the GPU for a rank, such as ``cupy:1``: the ranks of a machine take turns.

        tn.config.device = distributed.gpu_of_rank(distributed.world())

    Raises:
        DeviceError: CuPy is not installed, or finds no GPU.
    """
    backend = get_backend("cupy")
    indices = backend.devices()
    return f"cupy:{indices[communicator.local_rank % len(indices)]}"


def _agreed(communicator: Ranks, device: Device) -> NcclTransport | None:
    """The transport, if all ranks can have it."""
    gpus = communicator.allgather_objects(_gpu(device))
    if None in gpus:
        return None
    shared = [gpu for gpu, count in Counter(gpus).items() if count > 1]
    if shared:
        if communicator.rank == 0 and len(device.backend.devices()) > 1:
            ranks = [rank for rank, gpu in enumerate(gpus) if gpu == shared[0]]
            _warn(
                f"the ranks {ranks} have the same GPU. Give each rank its own: set config.device "
                "to gpu_of_rank(world())"
            )
        return None
    transport, error = None, ""
    try:
        unique_id = communicator.on_main(_unique_id)
        transport = NcclTransport(communicator.rank, communicator.size, device, unique_id)
    except Exception as raised:
        error = f"rank {communicator.rank}: {type(raised).__name__}: {raised}"
    errors = [one for one in communicator.allgather_objects(error) if one]
    if not errors:
        return transport
    if transport is not None:
        transport.abort()
    if communicator.rank == 0:
        _warn(f"NCCL does not start: {'; '.join(errors)}")
    return None


def _warn(reason: str) -> None:
    warnings.warn(
        f"tinynode.distributed: arrays on GPUs go through the host, since {reason}.",
        RuntimeWarning,
        stacklevel=2,
    )


def _unique_id() -> Any:
    return _nccl().get_unique_id()


def _nccl() -> Any:
    """The module ``cupy.cuda.nccl``.

    Raises:
        ImportError: CuPy has no NCCL.
    """
    nccl = importlib.import_module("cupy.cuda.nccl")
    if not getattr(nccl, "available", True):
        raise ImportError("cupy.cuda.nccl is not available.")
    return nccl


def _gpu(device: Device) -> tuple[str, str] | None:
    """The machine, and the address of the GPU in it; None without NCCL.

    The address is that of the PCI bus, as ``CUDA_VISIBLE_DEVICES`` gives GPUs new numbers.
    """
    try:
        _nccl()
    except ImportError:
        return None
    cupy: Any = importlib.import_module("cupy")
    return socket.gethostname(), str(cupy.cuda.Device(int(device.index)).pci_bus_id)

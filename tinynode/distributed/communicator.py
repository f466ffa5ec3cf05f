"""Communicator: what the ranks of a program say to each other.

Requirement: the same script runs on a single rank and on many. So a program without MPI has a
communicator of size 1, and each method works there.

MPI reads and writes NumPy arrays directly. Arrays of other devices go through the host. Where each
rank has a GPU, CuPy arrays go from GPU to GPU: see ``nccl``. MPI has no float16, so such arrays
travel as float32. All calls of MPI are non-blocking: see ``requests``.

Source: MPI: A Message-Passing Interface Standard, version 4.1, 2023; mpi4py.
"""

from __future__ import annotations

import importlib
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tinynode.configuration import config
from tinynode.core.array_methods import ArrayMethods
from tinynode.devices import Array, Device, device_of
from tinynode.devices import to_host as host_of
from tinynode.distributed.endings import Ending
from tinynode.distributed.heartbeat import watch
from tinynode.distributed.nccl import NcclTransport, transport_for
from tinynode.distributed.requests import ORDER, wait_for
from tinynode.errors import OperandError, RankError, describe

OPERATIONS = {"sum": "SUM", "max": "MAX", "min": "MIN", "prod": "PROD"}
"""The operations of ``allreduce``, with their names in MPI. ``mean`` divides a sum by the size."""
SIZE_VARIABLES = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
"""The variables of the environment that launchers of MPI set."""
_SCATTERED = 32_000
"""The tag of the messages of ``scatter``."""
_lock = threading.Lock()
_world: Communicator | None = None


class Pending:
    """A collective on the way, while the program goes on.

    Args:
        request: the request of MPI; None if the collective is done.
        result: the array to be filled.
        what: the method of the communicator, for messages.
        rank: this rank.
        sent: the array for MPI to read, kept until the end.
    """

    def __init__(
        self, request: Any, result: Array, what: str = "", rank: int = 0, sent: Any = None
    ) -> None:
        self._request = request
        self._result = result
        self._what, self._rank, self._sent = what, rank, sent

    def is_done(self) -> bool:
        """Ask MPI, which goes on with the collective meanwhile."""
        if self._request is not None and self._request.Test():
            self._request = self._sent = None
        return self._request is None

    def wait(self) -> Array:
        """The NumPy array, after the collective has ended.

        Raises:
            RankError: another rank has ended, or did not come in time.
        """
        if self._request is not None:
            wait_for(self.is_done, self._what, self._rank)
        return self._result


class Communicator:
    """A group of ranks.

    Each method is *collective*: every rank of the group has to call the same methods in the same
    order. ``send`` and ``receive`` join two ranks.

    Args:
        mpi: a communicator of mpi4py; None for a single process.

    Attributes:
        rank: the number of the process, from 0.
        size: the number of processes.
        local_rank: the number of the process among the processes of the machine.
    """

    def __init__(self, mpi: Any = None) -> None:
        self.mpi = mpi
        self.rank = 0 if mpi is None else int(mpi.Get_rank())
        self.size = 1 if mpi is None else int(mpi.Get_size())
        self.local_rank = 0
        if mpi is not None:
            shared = mpi.Split_type(_mpi().COMM_TYPE_SHARED)
            self.local_rank = int(shared.Get_rank())
            shared.Free()

    def __repr__(self) -> str:
        return f"Communicator(rank {self.rank} of {self.size})"

    @property
    def is_main(self) -> bool:
        """True on rank 0, which writes files and progress."""
        return self.rank == 0

    # --- arrays ------------------------------------------------------------------------------

    def allreduce(self, array: Any, operation: str = "sum") -> Array:
        """y = the sum over all ranks, on every rank; elementwise.

        array: (s) on each rank -> (s), of the same dtype and device.

        Args:
            array: an array of any backend, or a Variable.
            operation: ``sum``, ``mean``, ``max``, ``min`` or ``prod``.

        Raises:
            ValueError: the operation is unknown.
            OperandError: the argument is no array.
        """
        transport = self._nccl("allreduce", array, operation)
        if transport is not None:
            return transport.allreduce(_raw(array), operation)
        device, host = _host("allreduce", array)
        return _back(self.start_allreduce(host, operation).wait(), host.dtype, device)

    def start_allreduce(self, host: Any, operation: str = "sum") -> Pending:
        """``allreduce`` of a NumPy array, in the background."""
        if operation not in (*OPERATIONS, "mean"):
            raise ValueError(
                f"Communicator.allreduce: operation must be one of {', '.join(OPERATIONS)} or "
                f"mean, got {operation!r}."
            )
        if host.dtype == bool and operation not in ("max", "min"):
            raise OperandError(
                f"Communicator.allreduce: booleans have no {operation}. Cast to integers, or use "
                "max for any, min for all."
            )
        sent = _sendable(host.view(numpy.uint8) if host.dtype == bool else host)
        if operation == "mean":
            sent = sent / numpy.asarray(self.size, sent.dtype)
        if self.mpi is None:
            return Pending(None, sent.copy())
        self._check_agreement("allreduce", sent.shape, sent.dtype, operation)
        result = numpy.empty_like(sent)
        kind = getattr(_mpi(), OPERATIONS.get(operation, "SUM"))
        return self._pending("allreduce", self.mpi.Iallreduce(sent, result, kind), result, sent)

    def _pending(self, what: str, request: Any, result: Any, sent: Any = None) -> Pending:
        return Pending(request, result, what, self.rank, sent)

    def allgather(self, array: Any) -> tuple[Array, ...]:
        """The arrays of all ranks, by rank; the shapes may differ.

        Raises:
            OperandError: the argument is no array.
        """
        transport = self._nccl("allgather", array)
        if transport is not None and len({*self.allgather_objects(array.shape)}) == 1:
            return transport.allgather(_raw(array))
        device, host = _host("allgather", array)
        sent = _sendable(host)
        if self.mpi is None:
            return (_back(sent.copy(), host.dtype, device),)
        shapes = self.allgather_objects(sent.shape)
        self._check_agreement("allgather", sent.dtype)
        parts = self._gathered("allgather", sent.reshape(-1), [math.prod(one) for one in shapes])
        pairs = zip(parts, shapes, strict=True)
        return tuple([_back(part.reshape(shape), host.dtype, device) for part, shape in pairs])

    def _nccl(self, method: str, array: Any, setting: Any = None) -> NcclTransport | None:
        """NCCL for an array; None for the way through the host."""
        raw = _raw(array)
        transport = transport_for(self, device_of(raw, f"Communicator.{method}", "array"))
        if transport is None or (method == "allreduce" and not transport.takes(raw, setting)):
            return None
        shape = None if method == "allgather" else raw.shape
        self._check_agreement(method, shape, raw.dtype, setting)
        return transport

    def _gathered(self, what: str, flat: Any, counts: list[int]) -> list[Any]:
        """The one-dimensional arrays of all ranks, of the given lengths."""
        result = numpy.empty(sum(counts), flat.dtype)
        request = self.mpi.Iallgatherv(flat, [result, counts])
        self._pending(what, request, result, flat).wait()
        return numpy.split(result, numpy.cumsum(counts)[:-1])

    def broadcast(self, array: Any, root: int = 0) -> Array:
        """The array of rank ``root``, on every rank.

        array: (s) on each rank; the values of the other ranks do not matter.

        Raises:
            OperandError: the argument is no array.
            ValueError: there is no such rank.
        """
        self._check_rank("broadcast", "root", root)
        transport = self._nccl("broadcast", array, root)
        if transport is not None:
            return transport.broadcast(_raw(array), root)
        device, host = _host("broadcast", array)
        sent = _sendable(host).copy()
        if self.mpi is not None:
            self._check_agreement("broadcast", sent.shape, sent.dtype, root)
            self._pending("broadcast", self.mpi.Ibcast(sent, root), sent).wait()
        return _back(sent, host.dtype, device)

    def scatter(self, arrays: Sequence[Any] | None, root: int = 0) -> Array:
        """Array number ``rank`` of the arrays of rank ``root``; the shapes may differ.

        Args:
            arrays: on ``root``, an array for each rank; elsewhere None.
            root: the rank with the arrays.

        Raises:
            ValueError: there is no such rank, or the number of arrays is not the size.
        """
        self._check_rank("scatter", "root", root)
        if self.rank == root and (arrays is None or len(arrays) != self.size):
            count = "no arrays" if arrays is None else f"{len(arrays)} arrays"
            raise ValueError(
                f"Communicator.scatter: rank {root} has to give {self.size} arrays, one for each "
                f"rank, got {count}."
            )
        if self.rank != root or arrays is None:
            return self._received("scatter", root, _SCATTERED)
        hosts = [_host("scatter", array)[1] for array in arrays]
        requests = []
        for rank, host in enumerate(hosts):
            if rank != self.rank:
                requests += self._start_send("scatter", host, rank, _SCATTERED)
        for pending in requests:
            pending.wait()
        device = device_of(_raw(arrays[self.rank]), "Communicator.scatter", "arrays")
        return device.from_host(hosts[self.rank].copy())

    def send(self, array: Any, to: int, tag: int = 0) -> None:
        """Give an array to another rank. The other rank calls ``receive``.

        Raises:
            ValueError: there is no such rank, or it is this rank.
        """
        self._check_partner("send", "to", to)
        _, host = _host("send", array)
        for pending in self._start_send("send", host, to, tag):
            pending.wait()

    def _start_send(self, what: str, host: Any, to: int, tag: int) -> list[Pending]:
        """Send what the array is, and the array."""
        sent = _sendable(host)
        head = pickle.dumps((sent.shape, sent.dtype, host.dtype))
        return [
            self._pending(what, self.mpi.Isend(bytearray(head), to, tag), None, head),
            self._pending(what, self.mpi.Isend(sent, to, tag), None, sent),
        ]

    def receive(self, source: int, tag: int = 0) -> Any:
        """The NumPy array of another rank.

        Raises:
            ValueError: there is no such rank, or it is this rank.
        """
        self._check_partner("receive", "source", source)
        return self._received("receive", source, tag)

    def _received(self, what: str, source: int, tag: int) -> Any:
        status = _mpi().Status()
        message = wait_for(_Probe(self.mpi, source, tag, status).found, what, self.rank)
        head = bytearray(status.Get_count(_mpi().BYTE))
        message.Recv(head)
        shape, dtype, own = pickle.loads(head)
        result = numpy.empty(shape, dtype)
        self._pending(what, self.mpi.Irecv(result, source, tag), result).wait()
        return result.astype(own, copy=False)

    # --- objects, and time ---------------------------------------------------------------------

    def broadcast_object(self, value: Any, root: int = 0) -> Any:
        """A picklable object of rank ``root``, on every rank: numbers, texts, lists of these."""
        self._check_rank("broadcast_object", "root", root)
        if self.mpi is None:
            return value
        text = numpy.frombuffer(pickle.dumps(value), numpy.uint8).copy()
        length = numpy.asarray([text.size])
        self._pending("broadcast_object", self.mpi.Ibcast(length, root), length).wait()
        text = text if self.rank == root else numpy.empty(int(length[0]), numpy.uint8)
        self._pending("broadcast_object", self.mpi.Ibcast(text, root), text).wait()
        return pickle.loads(text.tobytes())

    def allgather_objects(self, value: Any) -> list[Any]:
        """A picklable object of each rank, in the order of the ranks."""
        if self.mpi is None:
            return [value]
        text = numpy.frombuffer(pickle.dumps(value), numpy.uint8)
        own, lengths = numpy.asarray([text.size]), numpy.zeros(self.size, int)
        request = self.mpi.Iallgather(own, lengths)
        self._pending("allgather_objects", request, lengths, own).wait()
        texts = self._gathered("allgather_objects", text, lengths.tolist())
        return [pickle.loads(one.tobytes()) for one in texts]

    def on_main(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on rank 0 alone; the picklable result on every rank.

        Raises:
            Exception: the exception of the function, on every rank.
        """
        result: Any = None
        error: Exception | None = None
        if self.is_main:
            try:
                result = function(*arguments)
            except Exception as raised:
                error = raised
        if error is not None:
            self.broadcast_object((None, error))
            raise error
        result, told = self.broadcast_object((result, None))
        if told is not None:
            raise told
        return result

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.mpi is not None:
            self._pending("barrier", self.mpi.Ibarrier(), None).wait()

    # --- checks ----------------------------------------------------------------------------------

    def _check_agreement(self, method: str, *given: Any) -> None:
        """In debug mode, compare what the ranks give: other shapes would mix memory."""
        if not config.debug:
            return
        every = self.allgather_objects((method, *map(str, given)))
        if any(other != every[0] for other in every):
            told = "; ".join(f"rank {rank}: {', '.join(one)}" for rank, one in enumerate(every))
            raise RankError(f"Communicator.{method}: the ranks differ: {told}. {ORDER}")

    def _check_rank(self, method: str, argument: str, rank: Any) -> None:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            raise ValueError(
                f"Communicator.{method}: {argument} must be a rank from 0 to {self.size - 1}, got "
                f"{describe(rank)}."
            )

    def _check_partner(self, method: str, argument: str, rank: Any) -> None:
        self._check_rank(method, argument, rank)
        if rank == self.rank:
            raise ValueError(
                f"Communicator.{method}: {argument} is this rank, {rank}. Give another rank; a "
                "program of one process has no other."
            )


def world() -> Communicator:
    """The communicator of all ranks: the same object at each call.

    MPI is imported only if a launcher of MPI started the program, or if the program imported
    mpi4py before. From the first call on, an exception of a rank ends all ranks, and each rank
    watches over another: see ``endings`` and ``heartbeat``.

    Raises:
        ImportError: a launcher started the program, and mpi4py is not installed.
    """
    global _world
    with _lock:
        if _world is None:
            is_mpi = is_launched() or "mpi4py.MPI" in sys.modules
            mpi = _mpi().COMM_WORLD.Dup() if is_mpi else None
            _world = Communicator(mpi)
            if _world.size > 1:
                _watch_over(mpi)
        return _world


def is_launched() -> bool:
    """True if a launcher of MPI started this process."""
    return any(name in os.environ for name in SIZE_VARIABLES)


def _watch_over(mpi: Any) -> None:
    """End all ranks when a rank raises an exception, is killed, or stops."""
    Ending(mpi).install()
    if _mpi().Query_thread() == _mpi().THREAD_MULTIPLE:  # else threads may not call MPI
        watch.begin(mpi)


class _Probe:
    """Asks for a message of another rank."""

    def __init__(self, mpi: Any, source: int, tag: int, status: Any) -> None:
        self._mpi = mpi
        self._arguments = source, tag, status

    def found(self) -> Any:
        """The message, or None."""
        return self._mpi.Improbe(*self._arguments)


def _mpi() -> Any:
    """The module ``mpi4py.MPI``: the import starts MPI."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(
            "tinynode.distributed: several ranks need mpi4py, which is not installed: "
            f"{error}. Install it with: pip install 'tinynode[mpi]'"
        ) from error


def _raw(array: Any) -> Any:
    return array.filled_array() if isinstance(array, ArrayMethods) else array


def _host(method: str, array: Any) -> tuple[Device, Any]:
    """The device of an array, and the values as a NumPy array."""
    raw = _raw(array)
    device = device_of(raw, f"Communicator.{method}", "array")
    host = numpy.asarray(host_of(raw))
    if host.dtype.kind not in "biufc":
        raise OperandError(
            f"Communicator.{method}: array must hold numbers, got {describe(array)}."
        )
    return device, host


def _sendable(host: Any) -> Any:
    """A contiguous array of a dtype of MPI."""
    wide = host.astype(numpy.float32) if host.dtype == numpy.float16 else host
    return numpy.ascontiguousarray(wide).reshape(host.shape)


def _back(host: Any, dtype: Any, device: Device) -> Array:
    """A result of MPI, of the dtype and on the device of the argument."""
    return device.from_host(host.astype(dtype, copy=False))

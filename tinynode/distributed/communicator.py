"""Communicator: what the ranks of a program say to each other.

Requirement: the same script runs on a single rank and on many. So a program without MPI has a
communicator of size 1, and each method works there.

MPI reads and writes NumPy arrays directly. Arrays of other devices go through the host. MPI has no
float16, so such arrays travel as float32.

Source: MPI: A Message-Passing Interface Standard, version 4.1, 2023; mpi4py.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.core.array_methods import ArrayMethods
from tinynode.devices import Array, Device, device_of
from tinynode.devices import to_host as host_of
from tinynode.errors import OperandError, describe

OPERATIONS = {"sum": "SUM", "max": "MAX", "min": "MIN", "prod": "PROD"}
"""The operations of ``allreduce``, with their names in MPI. ``mean`` divides a sum by the size."""
SIZE_VARIABLES = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
"""The variables of the environment that launchers of MPI set."""
_lock = threading.Lock()
_world: Communicator | None = None


class Pending:
    """A collective that runs while the program goes on.

    Args:
        request: the request of MPI; None if the collective is done.
        result: the array to be filled.
    """

    def __init__(self, request: Any, result: Array) -> None:
        self._request = request
        self._result = result

    def wait(self) -> Array:
        """The NumPy array, after the collective has ended."""
        if self._request is not None:
            self._request.Wait()
            self._request = None
        return self._result


class Communicator:
    """A group of ranks.

    Each method is *collective*: every rank of the group has to call the same methods in the same
    order. ``send`` and ``receive`` join two ranks.

    Args:
        mpi: a communicator of mpi4py; None for a single process.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of processes.
        local_rank: the number of this process among those of the same machine.
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
        device, host = _host("allreduce", array)
        return _back(self.start_allreduce(host, operation).wait(), host.dtype, device)

    def start_allreduce(self, host: Any, operation: str = "sum") -> Pending:
        """``allreduce`` of a NumPy array, in the background."""
        if operation not in (*OPERATIONS, "mean"):
            raise ValueError(
                f"Communicator.allreduce: operation must be one of {', '.join(OPERATIONS)} or "
                f"mean, got {operation!r}."
            )
        sent = _sendable(host)
        if operation == "mean":
            sent = sent / numpy.asarray(self.size, sent.dtype)
        if self.mpi is None:
            return Pending(None, sent.copy())
        result = numpy.empty_like(sent)
        name = OPERATIONS.get(operation, "SUM")
        return Pending(self.mpi.Iallreduce(sent, result, getattr(_mpi(), name)), result)

    def allgather(self, array: Any) -> tuple[Array, ...]:
        """The arrays of all ranks, by rank; the shapes may differ.

        Raises:
            OperandError: the argument is no array.
        """
        device, host = _host("allgather", array)
        sent = _sendable(host)
        if self.mpi is None:
            return (_back(sent.copy(), host.dtype, device),)
        shapes = self.mpi.allgather(sent.shape)
        counts = [int(numpy.prod(shape)) for shape in shapes]
        result = numpy.empty(sum(counts), sent.dtype)
        self.mpi.Allgatherv(sent.reshape(-1), [result, counts])
        parts = numpy.split(result, numpy.cumsum(counts)[:-1])
        pairs = zip(parts, shapes, strict=True)
        return tuple([_back(part.reshape(shape), host.dtype, device) for part, shape in pairs])

    def broadcast(self, array: Any, root: int = 0) -> Array:
        """The array of rank ``root``, on every rank.

        array: (s) on each rank; the values of the other ranks do not matter.

        Raises:
            OperandError: the argument is no array.
            ValueError: there is no such rank.
        """
        self._check_rank("broadcast", "root", root)
        device, host = _host("broadcast", array)
        sent = _sendable(host).copy()
        if self.mpi is not None:
            self.mpi.Bcast(sent, root)
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
        hosts = None
        if self.rank == root and arrays is not None:
            hosts = [_host("scatter", array)[1] for array in arrays]
        mine = hosts[0] if self.mpi is None and hosts else self._scattered(hosts, root)
        device = None if arrays is None else device_of(_raw(arrays[0]), "scatter", "arrays[0]")
        return mine if device is None else device.from_host(mine)

    def _scattered(self, hosts: Any, root: int) -> Any:
        return self.mpi.scatter(hosts, root)

    def send(self, array: Any, to: int, tag: int = 0) -> None:
        """Give an array to another rank. The other rank calls ``receive``.

        Raises:
            ValueError: there is no such rank, or it is this rank.
        """
        self._check_partner("send", "to", to)
        _, host = _host("send", array)
        sent = _sendable(host)
        self.mpi.send((sent.shape, sent.dtype, host.dtype), to, tag)
        self.mpi.Send(sent, to, tag)

    def receive(self, source: int, tag: int = 0) -> Any:
        """The NumPy array of another rank.

        Raises:
            ValueError: there is no such rank, or it is this rank.
        """
        self._check_partner("receive", "source", source)
        shape, dtype, own = self.mpi.recv(source=source, tag=tag)
        result = numpy.empty(shape, dtype)
        self.mpi.Recv(result, source, tag)
        return result.astype(own, copy=False)

    # --- objects, and time ---------------------------------------------------------------------

    def broadcast_object(self, value: Any, root: int = 0) -> Any:
        """A picklable object of rank ``root``, on every rank: numbers, texts, lists of these."""
        self._check_rank("broadcast_object", "root", root)
        return value if self.mpi is None else self.mpi.bcast(value, root)

    def allgather_objects(self, value: Any) -> list[Any]:
        """A picklable object of each rank, in the order of the ranks."""
        return [value] if self.mpi is None else list(self.mpi.allgather(value))

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.mpi is not None:
            self.mpi.Barrier()

    # --- checks ----------------------------------------------------------------------------------

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
    mpi4py before.

    Raises:
        ImportError: a launcher started the program, and mpi4py is not installed.
    """
    global _world
    with _lock:
        if _world is None:
            launched = any(name in os.environ for name in SIZE_VARIABLES)
            is_mpi = launched or "mpi4py.MPI" in sys.modules
            _world = Communicator(_mpi().COMM_WORLD if is_mpi else None)
        return _world


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
    """A contiguous array of a dtype that MPI knows."""
    wide = host.astype(numpy.float32) if host.dtype == numpy.float16 else host
    return numpy.ascontiguousarray(wide).reshape(host.shape)


def _back(host: Any, dtype: Any, device: Device) -> Array:
    """A result of MPI, of the dtype and on the device of the argument."""
    return device.from_host(host.astype(dtype, copy=False))

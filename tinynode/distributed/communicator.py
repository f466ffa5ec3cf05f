"""Communicator: what the ranks of a program say to each other.

Requirement: the same script runs on a single rank and on many. So a program without MPI has a
communicator of size 1, and each method works there.

MPI reads and writes NumPy arrays directly. Arrays of other devices go through the host. Where each
rank has a GPU, CuPy arrays go from GPU to GPU: see ``nccl``. MPI has no float16, so such arrays
travel as float32. All calls of MPI are non-blocking: see ``requests``.

Source: MPI: A Message-Passing Interface Standard, version 4.1, 2023; mpi4py.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tinynode.configuration import config
from tinynode.devices import Array, device_of
from tinynode.distributed.endings import Ending
from tinynode.distributed.heartbeat import watch
from tinynode.distributed.nccl import NcclTransport, transport_for
from tinynode.distributed.requests import ORDER
from tinynode.distributed.transport import (
    Mailbox,
    Pending,
    back,
    host_array,
    mpi_module,
    raw_of,
    sendable,
)
from tinynode.errors import OperandError, RankError, describe

OPERATIONS = {"sum": "SUM", "max": "MAX", "min": "MIN", "prod": "PROD"}
"""The operations of ``allreduce``, with their names in MPI. ``mean`` divides a sum by the size."""
SIZE_VARIABLES = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
"""The variables of the environment that launchers of MPI set."""
COUNT_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
"""Those with the number of processes."""
RANK_VARIABLE = "TINYNODE_RANK_PROCESS"
"""Names the process of a rank: a child process is no rank."""
_lock = threading.RLock()  # re-entrant as in tinynode/generator.py
_world: Communicator | None = None


class Communicator:
    """A group of ranks.

    Each method is *collective*: every rank of the group has to call the same methods in the same
    order. ``send`` and ``receive`` join two ranks.

    Args:
        mpi: a communicator of mpi4py; None for a single process.

    Raises:
        OperandError: ``mpi`` is no communicator of mpi4py.

    Attributes:
        rank: the number of the process, from 0.
        size: the number of processes.
        local_rank: the number of the process among the processes of the machine.
    """

    def __init__(self, mpi: Any = None) -> None:
        known = sys.modules.get("mpi4py.MPI")  # the maker of a communicator has imported it
        if mpi is not None and (known is None or not isinstance(mpi, known.Intracomm) or not mpi):
            raise OperandError(
                f"Communicator: mpi must be a communicator of mpi4py, such as "
                f"MPI.COMM_WORLD.Split(0), got {describe(mpi)}. For all ranks use world()."
            )
        self.mpi: Any = mpi
        self.rank = 0 if mpi is None else int(mpi.Get_rank())
        self.size = 1 if mpi is None else int(mpi.Get_size())
        self.local_rank = 0
        self._is_world = False
        self._exchange: Communicator | None = None
        self._mailbox = Mailbox(mpi, self.rank)
        self._counts: dict[tuple[str, int, Any], int] = {}
        if mpi is not None:
            shared = mpi.Split_type(mpi_module().COMM_TYPE_SHARED)
            self.local_rank = int(shared.Get_rank())
            shared.Free()

    def __repr__(self) -> str:
        return f"Communicator(rank {self.rank} of {self.size})"

    @property
    def is_main(self) -> bool:
        """True on rank 0, which writes files and progress."""
        return self.rank == 0

    def for_exchange(self) -> Communicator:
        """The same ranks, for messages that do not mix with those of this communicator.

        Every rank has to call the method. All calls give the same object.
        """
        if self._exchange is None:
            self._exchange = Communicator(None if self.mpi is None else self.mpi.Dup())
            self._exchange._is_world = self._is_world
        return self._exchange

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
            return transport.allreduce(raw_of(array), operation)
        device, host = host_array("allreduce", array)
        return back(self.start_allreduce(host, operation).wait(), host.dtype, device)

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
        if operation == "mean" and host.dtype.kind in "iu":
            raise OperandError(
                f"Communicator.allreduce: the mean of integers ({host.dtype}) is no integer. Cast "
                "to a floating dtype, or use sum."
            )
        if operation in ("max", "min") and host.dtype.kind == "c":
            raise OperandError(f"Communicator.allreduce: complex numbers have no {operation}.")
        sent = sendable(host.view(numpy.uint8) if host.dtype == bool else host)
        if operation == "mean":
            sent = sent / numpy.asarray(self.size, sent.dtype)
        if self.mpi is None:
            return Pending(None, sent.copy())
        self._check_agreement("allreduce", sent.shape, sent.dtype, operation)
        result = numpy.empty_like(sent)
        kind = getattr(mpi_module(), OPERATIONS.get(operation, "SUM"))
        return self._pending("allreduce", self.mpi.Iallreduce(sent, result, kind), result, sent)

    def _pending(self, what: str, request: Any, result: Any, sent: Any = None) -> Pending:
        return Pending(request, result, what, self.rank, sent, -1 if self._is_world else None)

    def allgather(self, array: Any) -> tuple[Array, ...]:
        """The arrays of all ranks, by rank; the shapes may differ.

        Raises:
            OperandError: the argument is no array.
        """
        transport = self._nccl("allgather", array)
        if transport is not None and len({*self.allgather_objects(array.shape)}) == 1:
            return transport.allgather(raw_of(array))
        device, host = host_array("allgather", array)
        sent = sendable(host)
        if self.mpi is None:
            return (back(sent.copy(), host.dtype, device),)
        shapes = self.allgather_objects(sent.shape)
        self._check_agreement("allgather", sent.dtype)
        parts = self._gathered("allgather", sent.reshape(-1), [math.prod(one) for one in shapes])
        pairs = zip(parts, shapes, strict=True)
        return tuple([back(part.reshape(shape), host.dtype, device) for part, shape in pairs])

    def _nccl(self, method: str, array: Any, setting: Any = None) -> NcclTransport | None:
        """NCCL for an array; None for the way through the host."""
        raw = raw_of(array)
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
            return transport.broadcast(raw_of(array), root)
        device, host = host_array("broadcast", array)
        sent = sendable(host).copy()
        if self.mpi is not None:
            self._check_agreement("broadcast", sent.shape, sent.dtype, root)
            self._pending("broadcast", self.mpi.Ibcast(sent, root), sent).wait()
        return back(sent, host.dtype, device)

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
            return self._mailbox.receive("scatter", root, "scatter")
        hosts = [host_array("scatter", array)[1] for array in arrays]
        requests = []
        for rank, host in enumerate(hosts):
            if rank != self.rank:
                requests += self._mailbox.start_send("scatter", host, rank, "scatter")
        for pending in requests:
            pending.wait()
        device = device_of(raw_of(arrays[self.rank]), "Communicator.scatter", "arrays")
        return device.from_host(hosts[self.rank].copy())

    def send(self, array: Any, to: int, tag: Any = 0) -> int:
        """Give an array to another rank. The other rank calls ``receive``.

        Args:
            array: an array of any backend, or a Variable.
            to: the other rank.
            tag: a number or a text; the other rank asks for the same.

        Returns:
            The number of earlier messages to that rank with that tag.

        Raises:
            ValueError: there is no such rank, or it is this rank.
            OperandError: the argument is no array, or the tag is no number or text.
        """
        self._check_partner("send", "to", to)
        _check_tag("send", tag)
        _, host = host_array("send", array)
        for pending in self._mailbox.start_send("send", host, to, tag):
            pending.wait()
        return self._count("send", to, tag)

    def receive(self, source: int, tag: Any = 0) -> Any:
        """The NumPy array of another rank: the first with the tag, in the order sent.

        Raises:
            ValueError: there is no such rank, or it is this rank.
            OperandError: the tag is no number or text.
        """
        return self.receive_numbered(source, tag)[0]

    def receive_numbered(self, source: int, tag: Any = 0) -> tuple[Any, int]:
        """``receive``, and the number of earlier messages from that rank with that tag."""
        self._check_partner("receive", "source", source)
        _check_tag("receive", tag)
        array = self._mailbox.receive("receive", source, tag)
        return array, self._count("receive", source, tag)

    def _count(self, kind: str, partner: int, tag: Any) -> int:
        """The number of earlier messages; counts this message."""
        key = kind, partner, tag
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        return number

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
            Exception: the exception of the function, on every rank. An exception that cannot be
                pickled is a RankError with the text on the other ranks.
            TypeError: the result cannot be pickled.
        """
        if not self.is_main:
            result, told = self.broadcast_object(None)
            if told is not None:
                raise told
            return result
        try:
            result = function(*arguments)
            told = _picklable((result, None))
        except (Exception, SystemExit) as error:
            self.broadcast_object((None, _as_told(error)))
            raise
        self.broadcast_object(told)
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
        is_number = hasattr(rank, "__index__") and not isinstance(rank, bool)
        if not is_number or not 0 <= int(rank) < self.size:
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
        RankError: the launcher is that of another MPI.
    """
    global _world
    with _lock:
        if _world is None:
            is_mpi = is_launched() or "mpi4py.MPI" in sys.modules
            mpi = mpi_module().COMM_WORLD.Dup() if is_mpi else None
            found = Communicator(mpi)
            _check_launcher(found.size)
            if found.size > 1:
                found._is_world = True
                os.environ[RANK_VARIABLE] = str(os.getpid())
                _watch_over(mpi)
            _world = found
        return _world


def is_launched() -> bool:
    """True if a launcher of MPI started this process; False in a child process of a rank."""
    if os.environ.get(RANK_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return False
    return any(name in os.environ for name in SIZE_VARIABLES)


def _check_launcher(size: int) -> None:
    """Refuse the launcher of another MPI, under which each process would be alone.

    Raises:
        RankError: the launcher started more processes than MPI knows.
    """
    for name in COUNT_VARIABLES:
        text = os.environ.get(name, "")
        if is_launched() and text.isdecimal() and int(text) > size:
            raise RankError(
                f"world: the launcher started {text} processes ({name}), and mpi4py sees {size}. "
                "mpi4py belongs to another MPI. Start with the mpiexec of the same installation: "
                "for the wheel mpich, the mpiexec beside python."
            )


def _watch_over(mpi: Any) -> None:
    """End all ranks when a rank raises an exception, is killed, or stops."""
    Ending(mpi).install()
    if (
        mpi_module().Query_thread() == mpi_module().THREAD_MULTIPLE
    ):  # else threads may not call MPI
        watch.begin(mpi)


def checked_communicator(caller: str, given: Any) -> Communicator:
    """The communicator, by default that of all ranks.

    Raises:
        OperandError: the argument is no Communicator.
    """
    if given is None:
        return world()
    if not isinstance(given, Communicator):
        raise OperandError(
            f"{caller}: communicator must be a Communicator, such as distributed.world(), got "
            f"{describe(given)}."
        )
    return given


def _check_tag(method: str, tag: Any) -> None:
    if isinstance(tag, bool) or not isinstance(tag, int | str | tuple):
        raise OperandError(
            f"Communicator.{method}: tag must be a number or a text, got {describe(tag)}."
        )


def _picklable(value: Any) -> Any:
    """The value, if other ranks can get it.

    Raises:
        TypeError: the value cannot be pickled.
    """
    try:
        pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise TypeError(
            f"Communicator.on_main: the result cannot be sent to other ranks: {error}. Return "
            "numbers, texts, arrays of NumPy, or lists of these."
        ) from None
    return value


def _as_told(error: BaseException) -> BaseException:
    """An exception as the other ranks raise it."""
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:
        return RankError(f"rank 0 raised {type(error).__name__}: {error}")
    return copy

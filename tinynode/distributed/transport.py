"""Between arrays and MPI: host arrays, requests on the way, and messages between two ranks.

Requirement: MPI reads contiguous NumPy arrays of its own dtypes. A message between two ranks has a
tag of the user's choice, and messages may be asked for in another order than sent.
"""

from __future__ import annotations

import importlib
import pickle
from collections import deque
from typing import Any

import numpy

from tinynode.core.array_methods import ArrayMethods
from tinynode.devices import Array, Device, device_of
from tinynode.devices import to_host as host_of
from tinynode.distributed.requests import wait_for
from tinynode.errors import OperandError, describe

MESSAGE_TAG = 1
"""MPI's tag of all messages between two ranks."""


def mpi_module() -> Any:
    """The module ``mpi4py.MPI``: the import starts MPI."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(
            "tinynode.distributed: several ranks need mpi4py, which is not installed: "
            f"{error}. Install it with: pip install 'tinynode[mpi]'"
        ) from error


def raw_of(array: Any) -> Any:
    """The array of a Variable, and of a scalar of NumPy; other arrays as they are."""
    if isinstance(array, numpy.generic):
        return numpy.asarray(array)
    return array.filled_array() if isinstance(array, ArrayMethods) else array


def host_array(method: str, array: Any) -> tuple[Device, Any]:
    """The device of an array, and the values as a NumPy array."""
    raw = raw_of(array)
    device = device_of(raw, f"Communicator.{method}", "array")
    host = numpy.asarray(host_of(raw))
    if host.dtype.kind not in "biufc" or host.dtype.itemsize > 16:
        raise OperandError(
            f"Communicator.{method}: array must hold numbers, got {describe(array)}."
        )
    return device, host


def sendable(host: Any) -> Any:
    """A contiguous array of a dtype of MPI."""
    wide = host.astype(numpy.float32) if host.dtype == numpy.float16 else host
    native = wide.dtype.newbyteorder("=")
    return numpy.ascontiguousarray(wide, dtype=native).reshape(host.shape)


def back(host: Any, dtype: Any, device: Device) -> Array:
    """A result of MPI, of the dtype and on the device of the argument."""
    return device.from_host(host.astype(dtype, copy=False))


class Pending:
    """A collective on the way, while the program goes on.

    Args:
        request: the request of MPI; None if the collective is done.
        result: the array to be filled.
        what: the method of the communicator, for messages.
        rank: this rank.
        sent: the array for MPI to read, kept until the end.
        partner: the other rank of a message; -1 for a collective of the world, None for a
            collective of another group.
    """

    def __init__(
        self,
        request: Any,
        result: Array,
        what: str = "",
        rank: int = 0,
        sent: Any = None,
        partner: int | None = None,
    ) -> None:
        self._request = request
        self._result = result
        self._what, self._rank, self._sent, self._partner = what, rank, sent, partner

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
            wait_for(self.is_done, self._what, self._rank, self._partner)
        return self._result


class Mailbox:
    """Messages between two ranks, in the order sent, or by tag.

    Args:
        mpi: a communicator of mpi4py.
        rank: this rank.
    """

    def __init__(self, mpi: Any, rank: int) -> None:
        self.mpi = mpi
        self.rank = rank
        self._waiting: dict[tuple[int, Any], deque[Any]] = {}

    def start_send(self, what: str, host: Any, to: int, tag: Any) -> list[Pending]:
        """Send what the array is, and the array."""
        sent = sendable(host)
        head = bytearray(pickle.dumps((tag, sent.shape, sent.dtype, host.dtype)))
        requests = self.mpi.Isend(head, to, MESSAGE_TAG), self.mpi.Isend(sent, to, MESSAGE_TAG)
        return [
            Pending(request, None, what, self.rank, kept, to)
            for request, kept in zip(requests, (head, sent), strict=True)
        ]

    def receive(self, what: str, source: int, tag: Any) -> Any:
        """The next array with a tag; arrays with other tags are kept for later."""
        while not self._waiting.get((source, tag)):
            found, array = self._next(what, source)
            self._waiting.setdefault((source, found), deque()).append(array)
        return self._waiting[source, tag].popleft()

    def _next(self, what: str, source: int) -> tuple[Any, Any]:
        """The tag and the array of the next message."""
        mpi = mpi_module()
        status = mpi.Status()
        probe = Probe(self.mpi, source, status)
        message = wait_for(probe.found, what, self.rank, source)
        head = bytearray(status.Get_count(mpi.BYTE))
        message.Recv(head)
        tag, shape, dtype, own = pickle.loads(head)
        result = numpy.empty(shape, dtype)
        request = self.mpi.Irecv(result, source, MESSAGE_TAG)
        Pending(request, result, what, self.rank, None, source).wait()
        return tag, result.astype(own, copy=False)


class Probe:
    """Asks for a message of another rank."""

    def __init__(self, mpi: Any, source: int, status: Any) -> None:
        self._mpi = mpi
        self._arguments = source, MESSAGE_TAG, status

    def found(self) -> Any:
        """The message, or None."""
        return self._mpi.Improbe(*self._arguments)

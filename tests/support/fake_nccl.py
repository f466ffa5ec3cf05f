"""A stand-in for ``cupy.cuda.nccl`` on top of ``fake_cupy``: the ranks are threads.

The names, codes and signatures are those of CuPy 14.2. A collective waits for the threads of all
ranks, and reads and writes the memory behind the pointers. The stand-in says nothing about GPUs:
no asynchronous launch, no order of streams, no speed.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_cupy
import numpy as np

STREAM = 77
"""The pointer of the current stream."""
CODES = {
    "NCCL_INT8": 0,
    "NCCL_UINT8": 1,
    "NCCL_INT32": 2,
    "NCCL_UINT32": 3,
    "NCCL_INT64": 4,
    "NCCL_UINT64": 5,
    "NCCL_FLOAT16": 6,
    "NCCL_FLOAT32": 7,
    "NCCL_FLOAT64": 8,
    "NCCL_SUM": 0,
    "NCCL_PROD": 1,
    "NCCL_MAX": 2,
    "NCCL_MIN": 3,
}
DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
REDUCTIONS = [np.sum, np.prod, np.max, np.min]


class NcclError(RuntimeError):
    """Named as CuPy's."""


class Group:
    """The threads of a unique id."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=20)
        self.given: list[Any] = [None] * size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """The values of all ranks."""
        self.given[rank] = value
        self.barrier.wait()
        every = list(self.given)
        self.barrier.wait()
        return every


class Fake:
    """What the tests see and set.

    Attributes:
        calls: the arguments of each collective after the pointers, by rank.
        failure: raised by the constructor of rank 1.
        is_stuck: True if no event is ever done.
    """

    def __init__(self) -> None:
        self.calls: dict[int, list[Any]] = {}
        self.groups: dict[bytes, Group] = {}
        self.numbers = itertools.count(1)
        self.failure: Exception | None = None
        self.is_stuck = False
        self.aborted: list[int] = []
        self.questions = 0
        self.lock = threading.Lock()

    def get_unique_id(self) -> bytes:
        return bytes([next(self.numbers)]) * 128

    def make_group(self, ndev: int, comm_id: bytes, rank: int) -> Any:
        if self.failure is not None and rank == 1:
            raise self.failure
        assert len(comm_id) == 128 and 0 <= rank < ndev
        with self.lock:
            group = self.groups.setdefault(comm_id, Group(ndev))
        return NcclCommunicator(self, group, rank)


class NcclCommunicator:
    """CuPy's, between threads. Each call must run with the rank's GPU as the current one."""

    def __init__(self, fake: Fake, group: Group, rank: int) -> None:
        self.fake, self.group, self.rank = fake, group, rank
        self.device = fake_cupy.state.current

    def _memory(self, pointer: int, count: int, datatype: int) -> Any:
        assert fake_cupy.state.current == self.device
        dtype = np.dtype(DTYPES[datatype])
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
        return np.frombuffer(memory, dtype)

    def _meet(self, name: str, sendbuf: int, count: int, datatype: int, *rest: int) -> list[Any]:
        self.fake.calls.setdefault(self.rank, []).append((name, count, datatype, *rest))
        return self.group.exchange(self.rank, self._memory(sendbuf, count, datatype).copy())

    def allReduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:
        every = self._meet("allReduce", sendbuf, count, datatype, op, stream)
        self._memory(recvbuf, count, datatype)[:] = REDUCTIONS[op](np.stack(every), axis=0)

    def broadcast(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int
    ) -> None:
        every = self._meet("broadcast", sendbuff, count, datatype, root, stream)
        self._memory(recvbuff, count, datatype)[:] = every[root]

    def allGather(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int
    ) -> None:
        every = self._meet("allGather", sendbuf, count, datatype, stream)
        self._memory(recvbuf, count * len(every), datatype)[:] = np.concatenate(every)

    def check_async_error(self) -> None:
        with self.fake.lock:
            self.fake.questions += 1

    def abort(self) -> None:
        self.fake.aborted.append(self.rank)


@contextlib.contextmanager
def installed() -> Iterator[Fake]:
    """The fake CuPy with NCCL, and the backend on top."""
    fake = Fake()

    class Event:
        """Done at the second question."""

        def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
            self.asked = 0

        def record(self, stream: Any = None) -> None:
            assert stream is not None and stream.ptr == STREAM

        @property
        def done(self) -> bool:
            self.asked += 1
            return self.asked > 1 and not fake.is_stuck

    with fake_cupy.installed() as backend:
        cuda: Any = backend.cupy.cuda
        nccl: Any = ModuleType("cupy.cuda.nccl")
        vars(nccl).update(
            CODES,
            available=True,
            get_unique_id=fake.get_unique_id,
            NcclCommunicator=fake.make_group,
            NcclError=NcclError,
        )
        vars(cuda).update(
            nccl=nccl, Event=Event, get_current_stream=lambda: SimpleNamespace(ptr=STREAM)
        )
        with fake_cupy.added_modules({"cupy.cuda.nccl": nccl}):
            yield fake

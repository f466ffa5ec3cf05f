"""Collectives of CuPy arrays by NCCL, on a stand-in: ``fake_nccl.py`` says what the tests show.

The last test runs on GPUs, and is skipped where there are fewer than two.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import fake_cupy
import fake_nccl
import numpy as np
import pytest
from fake_nccl import STREAM, Fake, Group

import tinynode as tn
from tests.distributed.test_distributed import run_ranks
from tinynode import distributed
from tinynode.distributed import nccl, requests
from tinynode.errors import DeviceError, RankError

SIZE = 2
DTYPE_CODES = {"int32": 2, "int64": 4, "uint8": 1, "float32": 7, "float64": 8}


class Thread(distributed.Communicator):
    """A rank that is a thread; objects go through shared memory, and arrays only by NCCL."""

    def __init__(self, rank: int, group: Group) -> None:
        super().__init__()
        self.rank = self.local_rank = rank
        self.size, self.group = SIZE, group

    def allgather_objects(self, value: Any) -> list[Any]:
        return self.group.exchange(self.rank, value)

    def broadcast_object(self, value: Any, root: int = 0) -> Any:
        return self.group.exchange(self.rank, value)[root]


def on_ranks(body: Callable[[Thread], Any], gpus: tuple[int, ...] = (0, 1)) -> list[Any]:
    """The results of a function on each rank, with the rank's GPU as the current device."""
    group, results, errors = Group(SIZE), [None] * SIZE, []

    def run(rank: int) -> None:
        try:
            with tn.using_device(f"cupy:{gpus[rank]}"):
                results[rank] = body(Thread(rank, group))
        except BaseException as error:
            errors.append(error)
            group.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise next(
            (e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0]
        )
    return results


@pytest.fixture
def fake() -> Iterator[Fake]:
    with fake_nccl.installed() as one:
        yield one


def draws(rank: int, dtype: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    rng = np.random.default_rng([rank, 3])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    host = 10 * rng.normal(size=shape)
    if dtype.startswith("complex"):
        return (host + 1j * rng.normal(size=shape)).astype(dtype)
    return np.abs(host).astype(dtype)


def own(comm: Thread, dtype: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    return tn.get_device().from_host(draws(comm.rank, dtype, shape))


REDUCTIONS: dict[str, tuple[Any, int]] = {
    "sum": (np.sum, 0),
    "prod": (np.prod, 1),
    "max": (np.max, 2),
    "min": (np.min, 3),
    "mean": (np.mean, 0),
}


@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_allreduce(fake: Fake, dtype: str, operation: str) -> None:
    found = on_ranks(lambda comm: comm.allreduce(own(comm, dtype), operation))
    reduction, code = REDUCTIONS[operation]
    every = np.stack([draws(rank, dtype) for rank in range(SIZE)])
    wire = "float32" if dtype == "float16" else dtype
    expected = reduction(every.astype(wire), axis=0).astype(dtype)
    for rank, one in enumerate(found):
        assert one.device.id == rank and one.dtype == dtype and one.shape == (2, 3)
        np.testing.assert_allclose(
            fake_cupy.asnumpy(one), expected, rtol=1e-3 if wire != dtype else 1e-6
        )
        assert fake.calls[rank] == [("allReduce", 6, DTYPE_CODES[wire], code, STREAM)]
    assert fake.questions >= SIZE and fake.aborted == []


@pytest.mark.parametrize(
    ("dtype", "operation", "call"),
    [
        ("int32", "sum", ("allReduce", 6, 2, 0, STREAM)),
        ("int64", "max", ("allReduce", 6, 4, 2, STREAM)),
        ("bool", "max", ("allReduce", 6, 1, 2, STREAM)),
        ("bool", "min", ("allReduce", 6, 1, 3, STREAM)),
        ("complex64", "sum", ("allReduce", 12, 7, 0, STREAM)),
        ("complex128", "mean", ("allReduce", 12, 8, 0, STREAM)),
    ],
)
def test_allreduce_of_other_dtypes(fake: Fake, dtype: str, operation: str, call: Any) -> None:
    found = on_ranks(lambda comm: comm.allreduce(own(comm, dtype), operation))
    every = np.stack([draws(rank, dtype) for rank in range(SIZE)])
    expected = REDUCTIONS[operation][0](every, axis=0)
    for rank, one in enumerate(found):
        assert one.dtype == dtype
        np.testing.assert_allclose(fake_cupy.asnumpy(one), expected, rtol=1e-6)
        assert fake.calls[rank] == [call]


@pytest.mark.parametrize("root", range(SIZE))
@pytest.mark.parametrize(("dtype", "shape"), [("float32", (2, 3)), ("int16", (4,)), ("bool", ())])
def test_broadcast(fake: Fake, root: int, dtype: str, shape: tuple[int, ...]) -> None:
    found = on_ranks(lambda comm: comm.broadcast(own(comm, dtype, shape), root))
    expected = draws(root, dtype, shape)
    for rank, one in enumerate(found):
        assert one.shape == shape and one.dtype == dtype and one.device.id == rank
        np.testing.assert_array_equal(fake_cupy.asnumpy(one), expected)
        assert fake.calls[rank] == [("broadcast", expected.nbytes, 1, root, STREAM)]


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float64", (2, 3)), ("float16", ()), ("bool", (5,))]
)
def test_allgather(fake: Fake, dtype: str, shape: tuple[int, ...]) -> None:
    found = on_ranks(lambda comm: comm.allgather(own(comm, dtype, shape)))
    expected = [draws(rank, dtype, shape) for rank in range(SIZE)]
    for rank, parts in enumerate(found):
        for part, host in zip(parts, expected, strict=True):
            assert part.shape == shape and part.dtype == dtype and part.device.id == rank
            np.testing.assert_array_equal(fake_cupy.asnumpy(part), host)
        assert fake.calls[rank] == [("allGather", expected[0].nbytes, 1, STREAM)]


def test_strided_and_empty_arrays_and_variables(fake: Fake) -> None:
    def body(comm: Thread) -> Any:
        x = own(comm, "float64")
        empty = own(comm, "float64", (0, 3))
        variable = tn.Variable(x)
        return [
            comm.allreduce(x.T),
            comm.allreduce(variable),
            distributed.functions.allreduce(variable, comm).array,
            comm.broadcast(x[:, ::2]),
            comm.allreduce(empty),
            comm.broadcast(empty),
            comm.allgather(empty)[1],
        ]

    first, second = draws(0, "float64"), draws(1, "float64")
    expected = [(first + second).T, first + second, first + second, first[:, ::2]]
    expected += [np.empty((0, 3))] * 3
    for found in on_ranks(body):
        for one, host in zip(found, expected, strict=True):
            assert one.shape == host.shape
            np.testing.assert_allclose(fake_cupy.asnumpy(one), host)
    assert [call[0] for call in fake.calls[0]] == ["allReduce"] * 3 + ["broadcast"]


def test_gradients_through_nccl(fake: Fake) -> None:
    def body(comm: Thread) -> Any:
        x = tn.Variable(own(comm, "float64"))
        y = distributed.functions.allreduce(x * x, comm)
        (gx,) = tn.grad([tn.functions.sum(y)], [x])
        return fake_cupy.asnumpy(gx.array)

    for rank, gx in enumerate(on_ranks(body)):
        np.testing.assert_allclose(gx, 2 * SIZE * draws(rank, "float64"))
    assert len(fake.calls[0]) == 2


@pytest.mark.parametrize(
    ("dtype", "operation"),
    [("int16", "sum"), ("int32", "mean"), ("complex64", "prod"), ("bool", "sum")],
)
def test_what_nccl_does_not_take_goes_through_the_host(
    fake: Fake, dtype: str, operation: str
) -> None:
    def body(comm: Thread) -> Any:
        x = own(comm, dtype)
        transport = nccl.transport_for(comm, tn.get_device())
        assert transport is not None and not transport.takes(x, "median")
        assert repr(transport) == f"NcclTransport(rank {comm.rank} of 2, cupy:{comm.rank})"
        return transport.takes(x, operation), comm._nccl("allreduce", x, operation)

    assert on_ranks(body) == [(False, None)] * SIZE


def test_unequal_shapes_of_allgather_go_through_the_host(fake: Fake) -> None:
    on_ranks(lambda comm: comm.allgather(own(comm, "float32", (comm.rank + 1,))))
    assert fake.calls == {}


def none_on_each_rank(gpus: tuple[int, ...] = (0, 1)) -> bool:
    def body(comm: Thread) -> Any:
        device = tn.get_device()
        return [nccl.transport_for(comm, device), nccl.transport_for(comm, device)]

    return on_ranks(body, gpus) == [[None, None]] * SIZE


def test_the_host_where_nccl_cannot_be_used(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = distributed.Communicator()
    assert nccl.transport_for(alone, tn.get_device("cupy:0")) is None
    with pytest.warns(RuntimeWarning, match=r"ranks \[0, 1\] have the same GPU"):
        assert none_on_each_rank((1, 1))
    fake.failure = fake_nccl.NcclError("no shared memory")
    with pytest.warns(RuntimeWarning, match=r"rank 1: NcclError: no shared memory"):
        assert none_on_each_rank()
    assert fake.aborted == [0]
    module: Any = sys.modules["cupy.cuda.nccl"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(module, "available", False)
        assert none_on_each_rank()
        monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", None)
        assert none_on_each_rank()
    assert fake.calls == {}


def test_a_device_without_nccl_asks_nobody() -> None:
    class Silent:
        rank, size, local_rank = 0, 2, 0

        def allgather_objects(self, value: Any) -> list[Any]:
            raise AssertionError(value)

        def on_main(self, function: Any, *arguments: Any) -> Any:
            raise AssertionError(function)

    assert nccl.transport_for(Silent(), tn.get_device("numpy")) is None


def test_an_array_on_another_gpu_is_refused(fake: Fake) -> None:
    def body(comm: Thread) -> None:
        comm.allreduce(own(comm, "float32"))
        other = tn.get_device(f"cupy:{1 - comm.rank}")
        with pytest.raises(DeviceError, match=rf"began with arrays on cupy:{comm.rank}"):
            comm.allreduce(other.from_host(np.ones(2)))

    on_ranks(body)


def test_debug_mode_compares_the_ranks(fake: Fake) -> None:
    def body(comm: Thread) -> None:
        with tn.using_config("debug", True), pytest.raises(RankError, match="the ranks differ"):
            comm.allreduce(own(comm, "float32", (comm.rank + 1,)))

    on_ranks(body)
    assert fake.calls == {}


def test_a_rank_does_not_wait_for_ever(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.is_stuck = True
    monkeypatch.setenv(requests.TIMEOUT_VARIABLE, "0.1")

    def body(comm: Thread) -> None:
        with pytest.raises(RankError, match=r"Communicator\.allreduce: rank . waited"):
            comm.allreduce(own(comm, "float32"))

    on_ranks(body)
    assert sorted(fake.aborted) == [0, 1]


def test_gpu_of_rank(fake: Fake) -> None:
    found = on_ranks(distributed.gpu_of_rank, (0, 0))
    assert found == ["cupy:0", "cupy:1"]


# --- on GPUs -------------------------------------------------------------------------------------

GPU_PROGRAM = """
import numpy as np
import tinynode as tn
from tinynode import distributed
from tinynode.distributed import nccl
comm = distributed.world()
device = tn.get_device(distributed.gpu_of_rank(comm))
assert nccl.transport_for(comm, device) is not None
every = [np.random.default_rng([r]).normal(size=(1000, 3)) for r in range(comm.size)]
x = device.from_host(every[comm.rank])
total = sum(every)
for operation, expected in (("sum", total), ("mean", total / 2), ("max", np.maximum(*every))):
    np.testing.assert_allclose(tn.to_host(comm.allreduce(x, operation)), expected, rtol=1e-12)
np.testing.assert_array_equal(tn.to_host(comm.broadcast(x, 1)), every[1])
for part, host in zip(comm.allgather(x), every, strict=True):
    np.testing.assert_array_equal(tn.to_host(part), host)
v = tn.Variable(x)
(gx,) = tn.grad([tn.functions.sum(distributed.functions.allreduce(v * v))], [v])
np.testing.assert_allclose(tn.to_host(gx.array), 4 * every[comm.rank], rtol=1e-12)
print("fine", flush=True)
"""


def without_gpus() -> str:
    """Why no test with two GPUs can run; empty if it can."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    try:
        count = len(tn.devices.get_backend("cupy").devices())
    except DeviceError as error:
        return str(error)
    return "" if count > 1 else f"two GPUs are needed, and this machine has {count}"


@pytest.mark.gpu
def test_two_ranks_on_two_gpus() -> None:
    reason = without_gpus()
    if reason:
        pytest.skip(f"NCCL is not run: {reason}")
    done = run_ranks(2, "-c", GPU_PROGRAM)
    assert done.returncode == 0 and done.stdout.count("fine") == 2, done.stdout + done.stderr

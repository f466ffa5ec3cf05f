"""A compiled training step writes over unshared arrays: wholly, or not at all."""

from __future__ import annotations

import signal
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from c_compiler import missing_compiler

import tinynode as tn
from tinynode import nn
from tinynode.net import commit
from tinynode.net.owned_memory import is_alone, lent, owned_copy
from tinynode.nn.updates import AdamUpdate
from tinynode_fast.native import build
from tinynode_fast.native.calls import NestCall

F = tn.functions
SHAPE = 40, 300
MAKERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda ps: nn.SGD(ps, lr=0.1),
    "momentum": lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda ps: nn.Adam(ps, lr=0.05),
    "adamw": lambda ps: nn.AdamW(ps, lr=0.05, weight_decay=0.1),
    "rmsprop": lambda ps: nn.RMSprop(ps, lr=0.05),
}


@pytest.fixture(params=["none", "auto"], autouse=True)
def compiler(request: Any) -> Iterator[str]:
    missing = missing_compiler() if request.param == "auto" else ""
    if missing:
        pytest.skip(missing)
    with (
        tn.using_device("fast"),
        tn.using_config(dtype="float64"),
        tn.using_config(compiler=request.param),
    ):
        yield request.param


class Training:
    """A large and a small parameter, the optimizer, and a step on labels."""

    def __init__(self, name: str, shape: tuple[int, int] = SHAPE) -> None:
        random = np.random.default_rng(0)
        self.w = nn.Parameter(random.normal(size=shape), name="w")
        self.b = nn.Parameter(random.normal(size=shape[0]), name="b")
        self.optimizer = MAKERS[name]([self.w, self.b])
        x = random.normal(size=(5, shape[1])) / shape[1] ** 0.5  # tanh must not saturate
        self.x = tn.Variable(x, requires_grad=False)
        self.compiled = tn.compile(self.step)

    def step(self, x: Any, labels: Any) -> Any:
        self.optimizer.cleargrads()
        loss = F.softmax_cross_entropy(F.tanh(F.linear(x, self.w)) + self.b, labels)
        loss.backward()
        self.optimizer.update()
        return loss

    def run(self, labels: Any = (0, 1, 2, 3, 4), is_eager: bool = False) -> Any:
        return (self.step if is_eager else self.compiled)(self.x, np.array(labels))

    def warm_up(self, is_eager: bool = False) -> None:
        for _ in range(4):
            self.run(is_eager=is_eager)
            build.wait()

    def state(self) -> list[Any]:
        state = self.optimizer.state_dict()
        return [self.w.array.copy(), self.b.array.copy(), *[state[key] for key in sorted(state)]]


def address(array: Any) -> int:
    """Where the numbers of an array lie: an update in place leaves them there."""
    return int(array.ctypes.data)


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", MAKERS)
def test_steps_in_place_are_the_eager_steps(name: str, compiler: str) -> None:
    compiled, eager = Training(name), Training(name)
    compiled.warm_up()
    eager.warm_up(is_eager=True)
    for _ in range(3):
        place = address(compiled.w.array)
        losses = [float(compiled.run()), float(eager.run(is_eager=True))]
        np.testing.assert_allclose(*losses, rtol=1e-12)
        assert_equal(compiled.state(), eager.state())
        is_in_place = name != "rmsprop" and compiler == "auto"
        assert (address(compiled.w.array) == place) == is_in_place


def holders(training: Training) -> dict[str, Callable[[], Any]]:
    return {
        "array": lambda: training.w.array,
        "view": lambda: training.w.array[3:5],
        "memory": lambda: memoryview(training.w.array),
        "graph": lambda: F.sum(F.sin(training.w)),
        "variable": training.w.detach,
    }


@pytest.mark.parametrize("name", ["array", "view", "memory", "graph", "variable"])
def test_an_array_that_somebody_holds_keeps_its_numbers(name: str, compiler: str) -> None:
    training = Training("adam")
    training.warm_up()
    held, old = holders(training)[name](), training.w.array.copy()
    training.run()
    assert not np.array_equal(training.w.array, old)
    if name == "graph":
        training.w.cleargrad()
        held.backward()
        np.testing.assert_allclose(training.w.grad, np.cos(old), rtol=1e-12)
    else:
        found = held.array if name == "variable" else np.asarray(held)
        np.testing.assert_array_equal(found, old[3:5] if name == "view" else old)
    del held
    place = address(training.w.array)
    training.run()
    assert (address(training.w.array) == place) == (compiler == "auto")


def test_moments_and_saved_states_keep_their_numbers() -> None:
    training = Training("adam")
    training.warm_up()
    slot = training.optimizer.slots[0]
    held = dict(slot.moments)
    copies = {name: array.copy() for name, array in held.items()}
    state = training.optimizer.state_dict()
    numbers = {name: np.copy(value) for name, value in state.items()}
    training.run()
    for name in held:
        np.testing.assert_array_equal(held[name], copies[name])
        assert not np.array_equal(slot.moments[name], copies[name])
    for name in state:
        np.testing.assert_array_equal(state[name], numbers[name])


def test_one_array_in_two_parameters_is_not_overwritten() -> None:
    training = Training("adam")
    training.warm_up()
    twin = nn.Parameter(np.zeros(SHAPE))
    twin.array = training.w.array
    old = twin.array.copy()
    training.run()
    np.testing.assert_array_equal(twin.array, old)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_the_gradient_may_be_the_parameter(name: str) -> None:
    found = []
    for is_compiled in (False, True):
        w = nn.Parameter(np.linspace(-1.0, 1.0, 2000))
        optimizer = MAKERS[name]([w])

        def step(w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.cleargrads()
            loss = F.sum(w * w) / 2.0
            loss.backward()
            optimizer.update()
            optimizer.cleargrads()  # the gradient is no result
            return loss

        run = tn.compile(step) if is_compiled else step
        for _ in range(5):
            run()
            build.wait()
        found.append(w.array)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_parameters_may_be_the_gradients_of_each_other() -> None:
    found = []
    for is_compiled in (False, True):
        v, w = [nn.Parameter(np.linspace(start, 1.0, 2000)) for start in (-1.0, 3.0)]
        optimizer = nn.SGD([v, w], lr=0.1)

        def step(v: Any = v, w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.cleargrads()
            loss = F.sum(v * w)
            loss.backward()
            optimizer.update()
            optimizer.cleargrads()  # the gradient is no result
            return loss

        run = tn.compile(step) if is_compiled else step
        for _ in range(5):
            run()
            build.wait()
        found.append((v.array, w.array))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


@pytest.mark.parametrize("size", [200, 2000])  # a copy of the plan, and an array of the parameter
def test_a_result_may_be_a_view_of_the_old_parameter(size: int) -> None:
    found = []
    for is_compiled in (False, True):
        w = nn.Parameter(np.linspace(-1.0, 1.0, size))
        optimizer = nn.SGD([w], lr=0.1)

        def step(w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.cleargrads()
            old = F.reshape(w, (20, size // 20)).detach()
            loss = F.sum(F.sin(w))
            loss.backward()
            optimizer.update()
            return loss, old

        run = tn.compile(step) if is_compiled else step
        for _ in range(5):
            _, old = run()
            found.append(old.array.copy())
            build.wait()
    for one, other in zip(found[:5], found[5:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_step_with_bad_labels_changes_nothing(compiler: str) -> None:
    training = Training("adam")
    training.warm_up()
    before, held = training.state(), address(training.w.array)
    with pytest.raises((ValueError, IndexError)):
        training.run((0, 1, 2, 3, 999))
    assert_equal(training.state(), before)
    training.run()
    assert (address(training.w.array) == held) == (compiler == "auto")


def test_errors_of_floating_point_change_nothing() -> None:
    training = Training("adam")
    training.warm_up()
    training.optimizer.slots[0].moments["v"][...] = -1.0  # sqrt of a negative number
    before = training.state()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        training.run()
    assert_equal(training.state(), before)


def test_ctrl_c_waits_for_updates_in_place(monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    if compiler == "none":
        pytest.skip("updates write to new arrays")
    training, eager = Training("adam"), Training("adam")
    training.warm_up()
    eager.warm_up(is_eager=True)
    eager.run(is_eager=True)
    handler, real = signal.getsignal(signal.SIGINT), NestCall.__call__
    calls = []

    def interrupted(self: NestCall, *arrays: Any) -> None:
        if "adam" in self.nest.name:
            calls.append(None)
            signal.raise_signal(signal.SIGINT)
        real(self, *arrays)

    monkeypatch.setattr(NestCall, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.run()
    monkeypatch.undo()
    assert calls
    assert_equal(training.state(), eager.state())
    assert signal.getsignal(signal.SIGINT) is handler
    assert commit.active == 0


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_before_an_update_changes_nothing(
    times: int, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    if compiler == "auto":
        pytest.skip("no Python code runs between the updates")
    training = Training("adam")
    training.warm_up()
    before, real = training.state(), AdamUpdate.forward
    calls = []

    def interrupted(self: AdamUpdate, inputs: Any) -> Any:
        calls.append(None)
        if len(calls) == times:
            signal.raise_signal(signal.SIGINT)
        return real(self, inputs)

    monkeypatch.setattr(AdamUpdate, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.run()
    monkeypatch.undo()
    assert len(calls) == times
    assert_equal(training.state(), before)
    assert commit.active == 0


def test_hooks_see_the_old_arrays() -> None:
    training = Training("adam")
    training.warm_up()
    place = address(training.w.array)

    class Hook(tn.FunctionHook):
        name = "watching"

    with Hook():
        training.run()
    assert address(training.w.array) != place


def test_another_thread_sees_whole_arrays_in_compiled_functions(compiler: str) -> None:
    w = nn.Parameter(np.zeros(1 << 18))
    optimizer = nn.Adam([w], lr=0.1)

    @tn.compile
    def step() -> Any:
        optimizer.cleargrads()
        loss = F.sum(w)
        loss.backward()
        optimizer.update()
        return loss

    @tn.compile
    def spread() -> Any:
        return F.max(w) - F.min(w)

    for _ in range(3):
        step()
        spread()
        build.wait()
    place = address(w.array)
    stop, found = threading.Event(), []

    def watch() -> None:
        with tn.using_device("fast"), tn.using_config(dtype="float64"):
            while not stop.is_set():
                found.append(float(spread()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        in_place = 0
        for _ in range(300):
            step()
            in_place += address(w.array) == place
            place = address(w.array)
    finally:
        stop.set()
        thread.join()
    assert set(found) == {0.0}
    assert (in_place > 0) == (compiler == "auto")


def test_two_threads_run_steps_at_once() -> None:
    training = Training("adam")
    training.warm_up()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with tn.using_device("fast"), tn.using_config(dtype="float64"):
                for _ in range(50):
                    training.run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert np.isfinite(training.w.array).all()
    assert commit.active == 0


def test_a_step_needs_no_second_copy_of_parameters_and_moments(compiler: str) -> None:
    training = Training("adam", (100, 3000))
    training.warm_up()
    size = training.w.array.nbytes
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        training.run()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < (1.5 if compiler == "auto" else 6.5) * size  # the gradient alone in C


def test_one_pointer_reads_and_writes() -> None:
    training = Training("adam")
    training.warm_up()
    text = training.compiled.explain(training.x, np.arange(5))
    assert "w_io[" in text
    assert "w_in" not in text.partition("as C")[2].partition("adam")[2]


# --- owned memory --------------------------------------------------------------------------------


def test_an_array_on_owned_memory_is_alone_until_it_is_lent() -> None:
    array = owned_copy(np.arange(3.0))
    assert is_alone(array) and not is_alone(array[1:]) and not is_alone(np.zeros(3))
    other = lent(array)
    assert address(other) == address(array) and other is not array
    assert not is_alone(array) and not is_alone(other)
    del array
    assert is_alone(other)


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array,
        lambda array: array[1:],
        lambda array: array.reshape(3, 2).T[0][1:],
        lambda array: memoryview(array),
        lambda array: np.asarray(memoryview(array)),
        lambda array: np.lib.stride_tricks.as_strided(array, (2,)),
        lambda array: array.view(np.int64),
        lambda array: array.flat,
        lambda array: np.ndarray(3, np.float64, array),
        lambda array: np.from_dlpack(array),
    ],
)
def test_each_way_to_keep_numbers_keeps_the_memory(keep: Callable[[Any], Any]) -> None:
    array = owned_copy(np.arange(6.0))
    kept, other = keep(array), lent(array)
    del array
    assert not is_alone(other)
    del kept
    assert is_alone(other)


def test_a_commit_takes_memory_that_nobody_else_sees() -> None:
    """The results are taken before the asserts, which keep what they compare."""
    moments = {"m": owned_copy(np.ones(3))}
    slot = SimpleNamespace(parameter=tn.Variable(owned_copy(np.zeros(3))), moments=moments)
    one = commit.Commit({"w": commit.ArrayHolder(slot, None), "m": commit.ArrayHolder(slot, "m")})
    for name in ("w", "m"):
        del moments
        array = lent(slot.parameter.array if name == "w" else slot.moments["m"])
        alone = one.take(name, array)
        other = lent(array)
        shared = one.take(name, other)
        unknown = one.take("v", other)
        del array
        again = one.take(name, other)
        assert (alone, shared, unknown, again) == (True, False, False, True)
        moments = slot.moments
    kept = moments["m"]
    shared = one.take("m", lent(kept))  # the user's dict stays as it is
    assert not shared and moments["m"] is kept is not slot.moments["m"]
    one.end()  # nothing has begun
    assert commit.active == 0


def test_memory_without_arrays_is_freed() -> None:
    array = owned_copy(np.zeros(3))
    memory = weakref.ref(array.base)
    others = [lent(array) for _ in range(5)]
    assert len(array.base.arrays) == 6
    del array, others
    assert memory() is None


def test_a_result_that_a_node_keeps_stays_as_it_is() -> None:
    kept: list[Any] = []

    class Keep(tn.FunctionNode):
        """y = 2 x; the node keeps x.   x: (s) -> y: (s).   dL/dx = 2 dL/dy"""

        def forward(self, inputs: Any) -> Any:
            kept[:] = inputs
            return (inputs[0] * 2.0,)

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            return (grad_outputs[0] * 2.0,)

    w = nn.Parameter(np.linspace(-1.0, 1.0, 2000))
    optimizer = nn.SGD([w], lr=0.1)

    @tn.compile
    def step() -> Any:
        optimizer.cleargrads()
        loss = F.sum(F.sin(Keep().apply((w,))[0]))
        loss.backward()
        optimizer.update()
        return loss

    for _ in range(6):
        old = w.array.copy()
        step()
        build.wait()
        np.testing.assert_array_equal(kept[0], old)

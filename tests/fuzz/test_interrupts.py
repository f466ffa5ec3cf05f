"""Ctrl-C at any point of an operation leaves settings, hooks, parameters and optimizer consistent.

CPython looks for a signal where a Python function begins and where a C function has returned. A
profile function sees these two points, and raises KeyboardInterrupt at a chosen one. So each case
is repeatable. ``--programs`` says how many points of an operation are drawn at random; 100000
tries all.

A signal may arrive as ``__exit__`` begins. Then the end of a block around, or the end of the
traceback, changes the settings back. One window is left: a hook with a name of its own in the
program, without a block around. ``test_the_open_window_is_this`` has the point.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
import tinynode_numpy
from tinynode import functions as fn
from tinynode import nn
from tinynode.core.hooks import thread_state
from tinynode.devices.hidden_axes import hidden_axes

OPEN = {"FunctionHook.__exit__"}
"""The function that leaves a kept hook behind if the signal arrives as it begins."""
FOLDERS = tuple(str(Path(module.__file__).parent) for module in (tn, tinynode_numpy))


class Point(NamedTuple):
    """A point of an operation: the event, and the function."""

    event: str
    function: str


class Interrupter:
    """Raises KeyboardInterrupt at the point with a number; counts the points."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.count = at, 0
        self.point = Point("", "")

    def run(self, operation: Callable[[], object]) -> bool:
        """Run an operation; True if it was interrupted."""
        sys.setprofile(self._profile)
        try:
            operation()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event not in ("call", "c_return"):
            return
        if not file.startswith(FOLDERS) and not file.endswith("contextlib.py"):
            return
        self.count += 1
        if self.count == self.at:
            sys.setprofile(None)
            self.point = Point(event, frame.f_code.co_qualname)
            raise KeyboardInterrupt


def surroundings() -> dict[str, Any]:
    """What an operation may change outside of its own objects."""
    return {
        "settings": dict(vars(tn.config)),
        "hooks": dict(thread_state.hooks),
        "device of a pass on arrays": thread_state.array_device,
        "axes of vmap": list(hidden_axes.stack),
        "noted generators": sys.modules["tinynode.functions.draws"]._notes.opened,
        "noted settings": sys.modules["tinynode.configuration"]._reads.names,
    }


def put_back(before: dict[str, Any]) -> None:
    vars(tn.config).clear()
    vars(tn.config).update(before["settings"])
    thread_state.array_device = before["device of a pass on arrays"]
    hidden_axes.stack[:] = before["axes of vmap"]
    thread_state.hooks.clear()
    thread_state.hooks.update(before["hooks"])


class Case:
    """An operation on fresh objects; ``state`` is compared with the states before and after."""

    def run(self) -> object:
        raise NotImplementedError

    def state(self) -> Any:
        return None


def points(case: Callable[[], Case], wanted: int, seed: int) -> Iterator[int]:
    """The numbers of the points to try, at random."""
    case().run()  # the first call fills tables
    counter = Interrupter()
    assert not counter.run(case().run)
    numbers = range(1, counter.count + 1)
    yield from random.Random(seed).sample(numbers, min(wanted, len(numbers)))


def check(case: Callable[[], Case], wanted: int, seed: int) -> None:
    """Interrupt an operation at random points; look at what is left."""
    for number in points(case, wanted, seed):
        one = case()
        before, state = surroundings(), one.state()
        interrupter = Interrupter(number)
        interrupted = interrupter.run(one.run)
        after = surroundings()
        if after != before:
            gc.collect()  # a block of a generator ends when its traceback is freed
            after = surroundings()
        if after != before and interrupter.point.event == "call":
            assert interrupter.point.function in OPEN, interrupter.point
            put_back(before)
            after = before
        assert after == before, interrupter.point
        if interrupted and one.state() != state:
            whole = case()
            whole.run()
            assert one.state() == whole.state(), interrupter.point
        put_back(before)
        one.run()  # the operation can go on


def arrays(*variables: tn.Variable) -> list[Any]:
    """The values of Variables and of their gradients."""
    return [
        (x.array.tolist(), None if x.grad is None else x.grad.tolist(), x.requires_grad)
        for x in variables
    ]


class Settings(Case):
    def run(self) -> None:
        x = tn.Variable(np.ones(2))
        with tn.using_config("train", False), tn.using_config(debug=True, lazy_grad_sum=True):
            _ = x * x
        with tn.using_device("numpy"), tn.no_backprop_mode():
            _ = x * x
            with tn.force_backprop_mode():
                _ = x + x
        tn.no_backprop_mode()(lambda: x * x)()


class Hooks(Case):
    def run(self) -> None:
        x = tn.Variable(np.ones(2))
        with Everything(), tn.hooks.TimerHook():
            fn.sum(x * x).backward()


class Everything(tn.FunctionHook):
    name = "Everything"

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        len(in_data)

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        len(in_data)


class Backward(Case):
    def __init__(self) -> None:
        self.x, self.w = tn.Variable(np.ones(2)), tn.Variable(np.full(2, 3.0))

    def run(self) -> None:
        self.x.cleargrad()
        self.w.cleargrad()
        y = fn.sum(self.x * self.w + fn.exp(self.x))
        y.backward()

    def state(self) -> Any:
        """The values: gradients are written in a loop."""
        return [x.array.tolist() for x in (self.x, self.w)]


class DoubleBackprop(Backward):
    def run(self) -> None:
        y = fn.sum(self.x**3 * self.w)
        (gx,) = tn.grad([y], [self.x], enable_double_backprop=True)
        assert gx is not None
        fn.sum(gx).backward()
        tn.backward([fn.sum(self.x * self.w)], [tn.Variable(np.ones(()))])
        tn.hvp(lambda x: fn.sum(x**3), self.x, np.ones(2))


class Checkpoint(Case):
    def run(self) -> None:
        draw = np.random.default_rng(0)
        x = tn.Variable(np.ones((2, 3)))
        y = tn.checkpoint(lambda x: fn.dropout(x * x, 0.5, draw), x)
        fn.sum(y).backward()


class Vmapped(Case):
    def run(self) -> None:
        x = tn.Variable(np.ones((2, 3)))
        fn.sum(tn.vmap(lambda row: row * row)(x)).backward()


class GradientCheck(Backward):
    def run(self) -> None:
        tn.gradient_check.check_backward(lambda x: x * self.w, [self.x.array], [np.ones(2)])


class Film(Case):
    def run(self) -> None:
        with tn.show.record():
            x = tn.Variable(np.ones(2))
            fn.sum(x * x).backward()


class Recording(Case):
    """A recording changes no Variable; the later run of the net does."""

    def __init__(self) -> None:
        tn.seed(0)
        self.norm, self.layer = nn.BatchNorm(2), nn.Linear(2, 2)
        self.x = tn.asarray(np.arange(6, dtype="f4").reshape((3, 2))).detach()

    def run(self) -> None:
        def function(x: tn.Variable) -> tn.Variable:
            return self.layer(self.norm(x) * tn.config.own_interrupts)

        with tn.using_config(own_interrupts=2.0):
            tn.trace(function, self.x)

    def state(self) -> Any:
        return arrays(*self.norm.parameters(), *self.layer.parameters(), self.norm.running_mean)


class Update(Case):
    """An update changes every parameter and every moment, or none."""

    optimizer: Callable[..., Any] = nn.Adam

    def __init__(self) -> None:
        tn.seed(0)
        self.model = nn.Linear(3, 2)
        self.steps = self.optimizer(self.model, 0.1)
        self.x = tn.asarray(np.ones((4, 3), "f4")).detach()
        self.before()

    def before(self) -> None:
        self.model.cleargrads()
        fn.sum(self.model(self.x) ** 2).backward()

    def run(self) -> None:
        self.steps.update()

    def state(self) -> Any:
        states = self.steps.state_dict()
        found = [p.array.tolist() for p in self.model.parameters()]
        return found, {name: array.tolist() for name, array in states.items()}


class Momentum(Update):
    @staticmethod
    def optimizer(model: Any, lr: float) -> Any:
        return nn.SGD(model, lr, momentum=0.9)


class CompiledUpdate(Update):
    """The third call of a compiled step; a call is recorded and planned before."""

    def before(self) -> None:
        def step(x: tn.Variable) -> tn.Variable:
            self.model.cleargrads()
            loss = fn.sum(self.model(x) ** 2)
            loss.backward()
            self.steps.update()
            return loss

        self.step = tn.compile(step)
        self.step(self.x)
        self.step(self.x)

    def run(self) -> None:
        self.step(self.x)


class RecordedUpdate(CompiledUpdate):
    """The first call, which records the net."""

    def before(self) -> None:
        super().before()
        self.step = tn.compile(self.step.function)


@pytest.fixture(autouse=True)
def own_setting() -> Iterator[None]:
    tn.global_config.own_interrupts = 1.0
    yield
    del tn.global_config.own_interrupts


class ManyGradients(Case):
    """A pass writes the gradients of all leaves, or of none."""

    def __init__(self) -> None:
        self.leaves = [tn.Variable(np.full(2, float(i))) for i in range(20)]
        y = self.leaves[0]
        for x in self.leaves[1:]:
            y = y * x + x
        self.y = fn.sum(y)

    def run(self) -> None:
        self.y.backward()

    def state(self) -> Any:
        return len({x.grad is None for x in self.leaves})


CASES = [
    *(
        Settings,
        Hooks,
        Backward,
        ManyGradients,
        DoubleBackprop,
        Checkpoint,
        Vmapped,
        GradientCheck,
        Film,
        Recording,
    ),
    *(Update, Momentum, CompiledUpdate, RecordedUpdate),
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # freed generators
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_interrupt_leaves_nothing_behind(
    case: Callable[[], Case], request: pytest.FixtureRequest
) -> None:
    wanted, seed = (request.config.getoption(name) for name in ("programs", "fuzz_seed"))
    check(case, wanted, seed)


class Blocks(Case):
    """Blocks inside of blocks: the freed inner block may not undo the end of the outer block."""

    def run(self) -> None:
        with tn.no_backprop_mode(), Everything(), tn.force_backprop_mode():
            tn.Variable(np.ones(2))
        with tn.using_config(train=False), tn.using_config(train=True):
            tn.Variable(np.ones(2))


class KeptHook(Case):
    def run(self) -> None:
        hook = self.hook = Everything()
        with hook:
            tn.Variable(np.ones(2))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("case", "expected"),
    [(Blocks, set()), (KeptHook, {Point("call", "FunctionHook.__exit__")})],
)
def test_the_open_window_is_this(case: Callable[[], Case], expected: set[Point]) -> None:
    """At every point: only a kept hook without a block around stays."""
    one, before = case(), surroundings()
    counter = Interrupter()
    counter.run(one.run)
    left = set()
    for number in range(1, counter.count + 1):
        interrupter = Interrupter(number)
        interrupter.run(one.run)
        if surroundings() != before:
            left.add(interrupter.point)
        put_back(before)
    assert left == expected


class Alarm:
    """Raises KeyboardInterrupt in an operation after a time, as Ctrl-C does."""

    def __init__(self) -> None:
        self.is_inside = False

    def ring(self, number: int, frame: FrameType | None) -> None:
        if self.is_inside:
            raise KeyboardInterrupt

    def run(self, operation: Callable[[], object], seconds: float) -> bool:
        """Run an operation; True if it was interrupted."""
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            self.is_inside = True
            operation()
            self.is_inside = False
        except KeyboardInterrupt:
            return True
        finally:
            self.is_inside = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False


def seconds_of(case: Callable[[], Case]) -> float:
    """The time of an operation, the shortest of several."""
    found = []
    for _ in range(5):
        one = case()
        start = time.perf_counter()
        one.run()
        found.append(time.perf_counter() - start)
    return min(found)


def left_behind(interrupts: int, seed: int) -> list[str]:
    """What stays after a number of interrupts, each at a random time of an operation."""
    cases = [Settings, Hooks, Backward, ManyGradients, DoubleBackprop, Checkpoint, Update]
    seconds = {case: seconds_of(case) for case in cases}
    alarm, rng, left, count = Alarm(), random.Random(seed), [], 0
    before_alarm = signal.signal(signal.SIGALRM, alarm.ring)
    try:
        while count < interrupts:
            case = rng.choice(cases)
            one, before = case(), surroundings()
            if not alarm.run(one.run, rng.uniform(1e-6, 1.05 * seconds[case])):
                continue
            count += 1
            after = surroundings()
            left += [f"{case.__name__}: {key}" for key in after if after[key] != before[key]]
            if isinstance(one, ManyGradients) and one.state() != 1:
                left.append("gradients written in part")
            put_back(before)
    finally:
        signal.signal(signal.SIGALRM, before_alarm)
    return left


needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers by signals")


@needs_timer
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_random_times() -> None:
    assert left_behind(300, seed=0) == []


@needs_timer
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ten_thousand_interrupts_leave_at_most_two_things() -> None:
    left = left_behind(10_000, seed=1)
    assert len(left) <= 2, left

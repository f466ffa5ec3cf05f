"""Optimizers in compiled functions: their updates are operators of the net."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import net, nn
from tinynode.core.conversion import assign
from tinynode.errors import GraphError, TraceError
from tinynode.net.plan import Plan
from tinynode.net.program import NetFunction
from tinynode.nn.parameter import moved
from tinynode.nn.updates import UpdateFunction
from tinynode_fast.limits import LIMITS
from tinynode_fast.native import build

F = tn.functions
DEVICES = ["numpy", "strict:device1", "fast"]


class Slowing(nn.Optimizer):
    """An optimizer of somebody else: p <- p - lr g / count, with the sum of all g beside it."""

    moment_names = ("total",)

    def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
        return array - (self.lr / count) * grad, {"total": moments["total"] + grad}


class Halved(nn.Adam):
    """Adam with a step of its own."""

    def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
        return super().update_one(array, grad * 0.5, moments, count)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda ps: nn.SGD(ps, lr=0.1),
    "momentum": lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda ps: nn.Adam(ps, lr=0.05, betas=(0.8, 0.95), eps=1e-3),
    "adamw": lambda ps: nn.AdamW(ps, lr=0.05, weight_decay=0.1),
    "own": lambda ps: Slowing(ps, lr=0.1),
    "subclass": lambda ps: Halved(ps, lr=0.05),
}


@pytest.fixture(params=DEVICES)
def device(request: Any) -> Any:
    with tn.using_device(request.param), tn.using_config(dtype="float64"):
        yield tn.get_device()


def array(*shape: int, seed: int = 0) -> Any:
    host = np.random.default_rng(seed).normal(size=shape)
    return tn.asarray(host, device=tn.get_device()).array


class Training:
    """Two parameters, their optimizer, and a step; ``recordings`` counts the calls of its code."""

    def __init__(self, make: Any, shape: tuple[int, int] = (3, 2)) -> None:
        self.w = nn.Parameter(array(*shape), name="w")
        self.b = nn.Parameter(array(shape[1], seed=1), name="b")
        self.optimizer = make([self.w, self.b])
        self.recordings = 0
        self.compiled = tn.compile(self.step)

    def step(self, x: Any) -> Any:
        self.recordings += 1
        self.optimizer.cleargrads()
        loss = F.mean(F.tanh(x @ self.w + self.b) ** 2)
        loss.backward()
        self.optimizer.update()
        return loss

    def state(self) -> list[Any]:
        """Parameters, gradients, moments and counts, as host arrays."""
        parameters = [tn.to_host(p.array).copy() for p in (self.w, self.b)]
        gradients = [tn.to_host(p.grad).copy() for p in (self.w, self.b) if p.grad is not None]
        state = self.optimizer.state_dict()
        return [*parameters, *gradients, *[state[name] for name in sorted(state)]]


def data(shape: tuple[int, int] = (4, 3), seed: int = 2) -> Any:
    return tn.asarray(array(*shape, seed=seed)).detach()


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


# --- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("shape", [(3, 2), (300, 200)])  # the second is fused, and in blocks
def test_compiled_and_eager_steps_may_be_mixed(
    name: str, shape: tuple[int, int], device: Any
) -> None:
    x = data((4, shape[0]))
    eager, mixed = Training(MAKERS[name], shape), Training(MAKERS[name], shape)
    for number, is_compiled in enumerate((True, True, False, True, False, False, True, True)):
        for training in (eager, mixed):
            training.optimizer.lr = 0.1 / (1 + number)  # read anew
        losses = [eager.step(x), (mixed.compiled if is_compiled else mixed.step)(x)]
        np.testing.assert_allclose(*[float(loss) for loss in losses], rtol=1e-12)
        assert_same(mixed.state(), eager.state())
    assert mixed.recordings == 3 + 1  # eager steps, and one recording


def test_the_learning_rate_is_read_anew_without_a_recording(device: Any) -> None:
    training, x = Training(MAKERS["sgd"]), data()
    for lr in (0.1, 0.7, 0.0, 0.3):
        training.optimizer.lr = lr
        before = tn.to_host(training.b.array).copy()
        training.compiled(x)
        change = before - tn.to_host(training.b.array)
        np.testing.assert_allclose(change, lr * tn.to_host(training.b.grad), rtol=1e-9)
        assert (lr == 0.0) == (not change.any())
    assert training.recordings == 1


def test_the_momentum_is_read_anew_and_without_it_the_step_is_another(device: Any) -> None:
    x = data()
    eager, compiled = Training(MAKERS["momentum"]), Training(MAKERS["momentum"])
    for momentum in (0.9, 0.5, 0.0, 0.0, 0.8):
        for training, step in ((eager, eager.step), (compiled, compiled.compiled)):
            training.optimizer.momentum = momentum
            step(x)
        assert_same(compiled.state(), eager.state())
    assert compiled.recordings == 2  # with momentum, and without


@pytest.mark.parametrize(
    ("name", "value"), [("betas", (0.5, 0.6)), ("eps", 0.5), ("weight_decay", 0.7)]
)
def test_other_settings_are_constants_and_recorded_anew(
    name: str, value: Any, device: Any
) -> None:
    x = data()
    eager, compiled = Training(MAKERS["adamw"]), Training(MAKERS["adamw"])
    old = getattr(eager.optimizer, name)
    for setting in (old, old, value, value, old):
        for training, step in ((eager, eager.step), (compiled, compiled.compiled)):
            setattr(training.optimizer, name, setting)
            step(x)
        assert_same(compiled.state(), eager.state())
    assert compiled.recordings == 2


def test_a_state_that_is_loaded_is_gone_on_with(device: Any) -> None:
    training, x = Training(MAKERS["adam"]), data()
    training.compiled(x)
    training.compiled(x)
    parameters = [tn.to_host(p.array).copy() for p in (training.w, training.b)]
    state = training.optimizer.state_dict()
    training.compiled(x)
    wanted = training.state()
    for _ in range(2):
        training.compiled(x)
    training.optimizer.load_state_dict(state)
    for p, host in zip((training.w, training.b), parameters, strict=True):
        p.array = tn.get_device().from_host(host.copy())
    training.compiled(x)
    assert_same(training.state(), wanted)
    assert training.recordings == 1


@pytest.mark.parametrize("name", ["adam", "own"])
def test_counts_that_come_apart_are_recorded_anew(name: str, device: Any) -> None:
    found = []
    for is_compiled in (False, True):
        training, x = Training(MAKERS[name]), data()
        training.optimizer.allow_missing = True
        step = training.compiled if is_compiled else training.step
        step(x)
        training.w.cleargrad()
        training.b.grad = array(2, seed=5)
        training.optimizer.update()  # of b alone
        step(x)
        step(x)
        found.append(training.state())
        counts = training.optimizer.state_dict()
        assert [int(counts[f"{i}/count"]) for i in (0, 1)] == [3, 4]
    assert training.recordings == 2
    assert_same(found[1], found[0])


def test_two_optimizers_in_one_step(device: Any) -> None:
    found = []
    for is_compiled in (False, True):
        w, b = nn.Parameter(array(3, 2), name="w"), nn.Parameter(array(2, seed=1), name="b")
        both = [nn.Adam([w], lr=0.01), nn.SGD([b], lr=0.2, momentum=0.5)]

        def step(x: Any, w: Any = w, b: Any = b, both: Any = both) -> None:
            for optimizer in both:
                optimizer.cleargrads()
            F.sum(F.tanh(x @ w + b)).backward()
            for optimizer in both:
                optimizer.update()

        run = tn.compile(step) if is_compiled else step
        for number in range(4):
            both[0].lr, both[1].lr = 0.01 * (1 + number), 0.2 / (1 + number)
            run(data())
        found.append([tn.to_host(w.array), tn.to_host(b.array)])
    assert_same(found[1], found[0])


def test_a_parameter_that_moves_takes_its_moments_along() -> None:
    with tn.using_config(dtype="float64"):
        training, wanted = Training(MAKERS["adam"]), Training(MAKERS["adam"])
        for name in ("numpy", "strict:device1", "fast", "strict:device1", "numpy", "fast"):
            for p in (training.w, training.b):
                target = tn.get_device(name)
                assign(p, moved(p.array, target), target)
            with tn.using_device(name):
                training.compiled(data())
            with tn.using_device("numpy"):
                wanted.step(data())
            moments = [m for slot in training.optimizer._slots for m in slot.moments.values()]
            assert len(moments) == 4
            assert_same(training.state(), wanted.state())
    assert training.recordings == 3  # one for each device


def test_an_update_of_another_class_is_another_net() -> None:
    class Rising(UpdateFunction):
        """p' = p + g."""

        def forward(self, inputs: Any) -> Any:
            p, g = inputs
            return (p + g,)

    class Falling(Rising):
        def forward(self, inputs: Any) -> Any:
            p, g = inputs
            return (p - g,)

    class Turning(nn.Optimizer):
        rises = True

        def update_function(self) -> UpdateFunction:
            return Rising() if self.rises else Falling()

    training = Training(lambda ps: Turning(ps, lr=0.1))
    for rises in (True, False, True):
        training.optimizer.rises = rises
        before = training.b.array
        training.compiled(data())
        change = training.b.array - before
        np.testing.assert_allclose(change, training.b.grad * (1 if rises else -1), rtol=1e-9)
    assert training.recordings == 2


# --- all or nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_an_error_in_the_middle_leaves_the_old_step(name: str, device: Any) -> None:
    training = Training(MAKERS[name])
    table = tn.asarray(array(4, 2)).detach()

    @tn.compile
    def step(x: Any, indices: Any) -> Any:
        training.step(x)
        return F.embedding(indices, table)  # after the update, an index is checked

    right, wrong = (device.from_host(np.array([0, last])) for last in (3, 4))
    for _ in range(3):
        step(data(), right)
        before = training.state()
        arrays = training.w.array, training.b.array
        with pytest.raises(IndexError, match="embedding"):
            step(data(), wrong)
        assert training.w.array is arrays[0] and training.b.array is arrays[1]
        after = training.state()
        gradients = 2  # those were cleared
        assert_same(after, [*before[:2], *before[2 + gradients :]])
    assert training.recordings == 1


def test_a_step_that_raises_leaves_the_old_one(device: Any) -> None:
    class Failing(Slowing):
        fails = False

        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            if self.fails and array.shape == (2,):
                raise ZeroDivisionError
            return super().update_one(array, grad, moments, count)

    training = Training(lambda ps: Failing(ps, lr=0.1))
    for _ in range(3):
        training.optimizer.fails = False
        training.compiled(data())
        before = training.state()
        training.optimizer.fails = True
        with pytest.raises(ZeroDivisionError):
            training.compiled(data())
        assert_same(training.state(), [*before[:2], *before[4:]])


def test_arrays_that_somebody_holds_stay_as_they_are(device: Any) -> None:
    training, held = Training(MAKERS["adam"], (300, 200)), []
    for _ in range(5):
        training.compiled(data((4, 300)))
        slots = training.optimizer._slots
        now = [training.w.array, training.w.grad, *slots[0].moments.values()]
        held += [(one, tn.to_host(one).copy()) for one in now]
    for one, copy in held:
        np.testing.assert_array_equal(tn.to_host(one), copy)
    assert len({id(one) for one, _ in held}) == 20


def test_a_recording_that_fails_changes_nothing(device: Any) -> None:
    training = Training(MAKERS["adam"])
    training.compiled(data())
    before = training.state()

    def wrong(x: Any) -> Any:
        loss = training.step(x)
        return loss if loss > 0 else -loss

    with pytest.raises(TraceError, match="asks for the value"):
        tn.compile(wrong)(data())
    assert_same(training.state(), before)


# --- what is recorded ----------------------------------------------------------------------------


def traced(make: Any) -> tuple[Training, net.Trace]:
    training = Training(make)
    training.step(data())
    return training, tn.trace(training.step, data())


LINES = {
    "sgd": """
    t15 = sgd_update(w, t14, lr)
    t16 = sgd_update(b, t13, lr)
    w <- t15
    b <- t16
    w.grad <- t14
    b.grad <- t13""",
    "momentum": """
    t15, t16 = momentum_update(w, t14, w.v, lr, momentum)
    t17, t18 = momentum_update(b, t13, b.v, lr, momentum)
    w <- t15
    w.v <- t16
    b <- t17
    b.v <- t18
    w.grad <- t14
    b.grad <- t13""",
    "adam": """
    t15, t16, t17 = adam_update(w, t14, w.m, w.v, lr, count, betas=(0.8, 0.95), eps=0.001, \
weight_decay=0.0)
    t18, t19, t20 = adam_update(b, t13, b.m, b.v, lr, count, betas=(0.8, 0.95), eps=0.001, \
weight_decay=0.0)
    w <- t15
    w.m <- t16
    w.v <- t17
    b <- t18
    b.m <- t19
    b.v <- t20
    w.grad <- t14
    b.grad <- t13""",
}


@pytest.mark.parametrize("name", LINES)
def test_the_net_shows_the_update_and_the_writes(name: str) -> None:
    training, found = traced(MAKERS[name])
    text = str(found.net)
    assert text.endswith(LINES[name]), text
    assert training.compiled.explain(data()).count(f" = {name}_update(") >= 2
    assert set(found.written()) == set(found.net.writes.values())


@pytest.mark.parametrize("name", LINES)
def test_a_step_can_be_saved_and_run_in_a_scope(name: str) -> None:
    with tn.using_config(dtype="float64"):
        training, found = traced(MAKERS[name])
        again = net.loads(net.dumps(found.net))
        assert str(again) == str(found.net) and again.writes == found.net.writes
        x, optimizer = data(), training.optimizer
        scope = net.Scope({found.inputs[0]: x})
        for key, variable in found.captured.items():  # not themselves: the training goes on
            scope.set(key, variable.array)
        for update in found.updates:
            for key, value in zip(update.input_devices(), update.inputs(), strict=True):
                scope.set(key, value)
        for number in range(3):
            training.step(x)
            scope.set("count", np.asarray(2.0 + number))
            again.run(scope)
            for key, p in (("w", training.w), ("b", training.b)):
                np.testing.assert_allclose(scope.find(key).array, p.array, rtol=1e-12)
                np.testing.assert_allclose(scope.find(f"{key}.grad").array, p.grad, rtol=1e-12)
    moments = {k: v for slot in optimizer._slots for k, v in slot.moments.items()}
    for key, value in moments.items():
        np.testing.assert_allclose(scope.find(f"b.{key}").array, value, rtol=1e-12)


def test_an_optimizer_of_ones_own_is_no_text() -> None:
    _, found = traced(MAKERS["own"])
    assert "own_step(" in str(found.net)
    with pytest.raises(tn.TinynodeError, match="has no form in the text of a net"):
        net.dumps(found.net)


@pytest.mark.parametrize("text", ['["w"]', '{"w": 1}', '"w"'])
def test_writes_that_are_none(text: str) -> None:
    whole = '{"format": "tinynode net 1", "content": {"net": "f", "operators": [], "writes": %s}}'
    with pytest.raises(tn.TinynodeError, match="writes must be names by name"):
        net.loads(whole % text)


def test_writes_of_nets_are_renamed_and_done_at_the_end() -> None:
    swap = net.NetOp([net.Operator("sin", ["x"], ["y"])], "swap", {"x": "y", "y": "x"})
    scope = net.Scope({"p": np.array(0.5)})
    other = swap.renamed({"x": "p", "y": "q"})
    other.run(scope)
    assert scope.find("p").item() == np.sin(0.5) and scope.find("q").item() == 0.5
    assert str(other).split("\n")[-2:] == ["    p <- q", "    q <- p"]


def test_moments_that_step_does_not_name() -> None:
    class Secret(nn.Optimizer):
        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            return array - grad, {"secret": grad}

    training = Training(lambda ps: Secret(ps, lr=0.1))
    with pytest.raises(GraphError, match=r"returned the moments \['secret'\], expected .* \[\]"):
        training.compiled(data())


class Wrong(nn.Optimizer):
    """An optimizer of a user, with a mistake."""

    moment_names = ("m",)
    mistake = ""

    def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
        m, new = moments["m"] + grad, array - self.lr * grad
        if self.mistake == "no pair":
            return new
        if self.mistake == "three":
            return new, {"m": m}, count
        if self.mistake == "moment's dtype":
            return new, {"m": m.astype(np.float64)}
        if self.mistake == "moment's shape":
            return new, {"m": np.sum(m)}
        if self.mistake == "dtype":
            return new.astype(np.float64), {"m": m}
        if self.mistake == "shape":
            return new[:1], {"m": m}
        if self.mistake == "number":
            return new, {"m": 0.5}
        if self.mistake == "forgotten":
            return new, {}
        return new, {"m": m}


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("no pair", r"expected a pair, the next array and a dict of the moments, got ndarray of"),
        ("three", r"expected a pair, .*, got tuple"),
        (
            "moment's dtype",
            r"the moment 'm' must be like .*\(3,\), float32; got .*\(3,\), float64",
        ),
        ("moment's shape", r"the moment 'm' must be like the parameter.*; got .* \(\), float32"),
        ("dtype", r"the next array must be like .*float32; got ndarray of shape \(3,\), float64"),
        ("shape", r"the next array must be like .*; got ndarray of shape \(1,\), float32"),
        ("number", r"the moment 'm' must be like the parameter.*; got float 0.5"),
        ("forgotten", r"returned the moments \[\], expected those of moment_names, \['m'\]"),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_results_of_a_step_that_do_not_fit(mistake: str, message: str, compiled: bool) -> None:
    """The first wrong step is an error, and changes nothing; then training goes on."""
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = Wrong([p], lr=0.1)

    def step() -> None:
        optimizer.cleargrads()
        F.sum(p * p).backward()
        optimizer.update()

    run = tn.compile(step) if compiled else step
    run()
    array, moments = p.array, optimizer.slots[0].moments
    optimizer.mistake = mistake
    for _ in range(2):
        with pytest.raises(GraphError, match=r"Wrong.update_one: " + message):
            run()
        assert p.array is array or np.array_equal(p.array, array)
        np.testing.assert_array_equal(optimizer.slots[0].moments["m"], moments["m"])
        assert optimizer.slots[0].count == 1
    optimizer.mistake = ""
    run()
    np.testing.assert_allclose(p.array, np.full(3, 0.64, np.float32))


def test_moments_that_do_not_fit_the_parameter_are_refused() -> None:
    w = nn.Parameter(array(2))
    optimizer = nn.Adam([w])

    def step(x: Any) -> None:
        optimizer.cleargrads()
        F.sum(w * x).backward()
        optimizer.update()

    run = tn.compile(step)
    run(tn.Variable(np.ones(2)).detach())
    w.array = np.ones(3)
    with pytest.raises(GraphError, match="make a new optimizer"):
        run(tn.Variable(np.ones(3)).detach())


def test_a_gradient_from_elsewhere_is_not_left_out() -> None:
    w, other = nn.Parameter(array(2)), nn.Parameter(array(2, seed=1))
    optimizer = nn.SGD([w, other], lr=0.1, allow_missing=True)

    def step(x: Any) -> None:
        w.cleargrad()
        F.sum(w * x).backward()
        optimizer.update()

    run = tn.compile(step)
    x = tn.Variable(np.ones(2)).detach()
    run(x)
    other.grad = np.ones(2)
    with pytest.raises(TraceError, match="is not computed in the function"):
        run(x)
    other.cleargrad()
    run(x)


def test_an_old_gradient_is_not_left_out_of_a_step_that_clears_at_its_end() -> None:
    """Eager code adds to the old gradient, and a net cannot."""
    p = nn.Parameter(np.ones(2))
    optimizer = nn.SGD([p], lr=0.5)

    @tn.compile
    def step() -> None:
        F.sum(p * 2.0).backward()
        optimizer.update()
        optimizer.cleargrads()

    step()
    assert p.tolist() == [0.0, 0.0]
    p.grad = np.ones(2, p.dtype)
    for _ in range(2):
        with pytest.raises(TraceError, match="a net cannot add to what it was"):
            step()
    assert p.tolist() == [0.0, 0.0] and p.grad is not None
    p.cleargrad()
    step()
    assert p.tolist() == [-1.0, -1.0]


def test_no_parameter_has_a_gradient() -> None:
    optimizer = nn.SGD([nn.Parameter(array(2))], lr=0.1, allow_missing=True)

    def step(x: Any) -> Any:
        optimizer.cleargrads()
        optimizer.update()
        return x * 2.0

    with pytest.raises(TraceError, match="is not computed in the function"):
        tn.compile(step)(data())


# --- memory --------------------------------------------------------------------------------------

BIG = 1_000_000


def formula(x: Any) -> Any:
    return F.sum(F.tanh(x) * F.sigmoid(x) + x * x)


def peak_of(function: Callable[[], Any]) -> float:
    """The bytes that a call needs beside what is there, in arrays of BIG float64."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = function()
        peak = tracemalloc.get_traced_memory()[1] - before
        del result
    finally:
        tracemalloc.stop()
    return peak / (8 * BIG)


@pytest.mark.parametrize("name", ["numpy", "fast"])
def test_a_first_call_needs_no_more_memory_than_later_calls(name: str) -> None:
    x = tn.Variable(np.linspace(-1.0, 1.0, BIG))
    function = tn.value_and_grad(formula)
    with tn.using_device(name), tn.using_config(compiler="none"):
        x = tn.asarray(x)
        eager = peak_of(lambda: function(x))
        compiled = tn.compile(function)
        first, later = peak_of(lambda: compiled(x)), peak_of(lambda: compiled(x))
    assert first < eager - 1.5
    assert first < later + 0.3  # the plan's memory in blocks


def test_a_step_writes_over_the_parameters_from_the_first_call_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try:
        build.compiler("auto")
    except build.NotBuiltError as error:
        pytest.skip(f"{error}: a plan in NumPy copies parameters")
    monkeypatch.setattr(LIMITS, "awaited_seconds", 60.0)
    with tn.using_device("fast"), tn.using_config(compiler="auto"):
        training = Training(MAKERS["adam"], (600, 400))
        x = data((4, 600))
        given, copy = training.w.array, training.w.array.copy()
        training.compiled(x)  # moves the parameters, which the user made, to memory of its own
        place = training.w.array.ctypes.data
        for _ in range(4):
            training.compiled(x)
            assert training.w.array.ctypes.data == place
        np.testing.assert_array_equal(given, copy)


def test_a_first_backward_needs_little_more_memory_than_eager_code() -> None:
    x = tn.Variable(np.linspace(-1.0, 1.0, BIG))
    compiled = tn.compile(formula)
    eager, first = (peak_of(lambda f=f: f(x).backward()) for f in (formula, compiled))
    assert first < eager + 1.1


def test_nothing_is_saved_before_a_gradient_is_asked_for() -> None:
    compiled = tn.compile(formula)
    x = tn.Variable(np.linspace(-1.0, 1.0, 10))

    def saved(y: Any) -> Any:
        assert isinstance(y.creator_node, NetFunction)
        return y.creator_node._saved

    for _ in range(3):
        y = compiled(x)
        assert saved(y) is None
    y.backward()
    wanted = x.grad
    for _ in range(3):
        x.cleargrad()
        y = compiled(x)
        assert saved(y) is not None
        y.backward()
        np.testing.assert_allclose(x.grad, wanted, rtol=1e-12)


@pytest.mark.parametrize(("name", "expected"), [("numpy", 2), ("fast", 1)])
def test_no_plan_is_made_that_nobody_runs(
    name: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    make = Plan.__init__

    def noting(self: Plan, *args: Any) -> None:
        made.append(self)
        make(self, *args)

    monkeypatch.setattr(Plan, "__init__", noting)
    with tn.using_device(name), tn.no_backprop_mode():
        compiled = tn.compile(formula)
        for _ in range(3):
            compiled(tn.asarray(array(4)))
    assert len(made) == expected  # the first run's, and the one for later runs


@pytest.mark.parametrize("is_late", [False, True])
def test_an_update_of_an_instance_replaces_the_formula(is_late: bool) -> None:
    w = nn.Parameter(np.asarray([1.0, 2.0]))
    optimizer = nn.Adam([w])

    def update_one(array: Any, grad: Any, moments: Any, count: int) -> Any:
        return array * 2.0, moments

    @tn.compile
    def step() -> None:
        optimizer.cleargrads()
        F.sum(w * w).backward()
        optimizer.update()

    if is_late:
        step()
    optimizer.update_one = update_one  # type: ignore[method-assign]
    before = w.array.copy()
    step()
    step()
    np.testing.assert_allclose(w.array, before * 4.0)

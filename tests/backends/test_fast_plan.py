"""Plans of the fast path: their memory is nobody else's, and is never in use twice at a time.

Plans are made here from hand-written nets, so that their insides can be looked at, and from
compiled functions, so that forward and backward plans meet.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
from fast_kernels import set_limits
from hypothesis import strategies as st
from kernel_cases import KERNEL_CASES
from net_specs import specs_of

import tinynode as tn
from tests.net.test_passes import Net, constant, masks, nets, op
from tinynode import functions as fn
from tinynode.net import Operator
from tinynode.net.operator import EMPTY, operator_of
from tinynode.net.plan import Packing, Plan, Saved
from tinynode_fast.actions import Net as WholeNet
from tinynode_fast.images import KERNELS
from tinynode_fast.limits import LIMITS
from tinynode_fast.memory import Memory, fresh_array
from tinynode_fast.plan import CallPlan, FastPlan, call_all, packing_of

F = tn.get_device("fast")
LARGE = (600, 3)
"""An array of this shape has more than LIMITS.copied_bytes."""


def plan_of(
    operators: Sequence[Operator],
    inputs: dict[str, Any],
    outputs: Sequence[str],
    saved: Sequence[str] = (),
    layout: Packing | None = None,
) -> FastPlan:
    devices = dict.fromkeys(inputs, F)
    return FastPlan(operators, devices, outputs, specs_of(operators, inputs, F), saved, layout)


def expected_of(
    operators: Sequence[Operator], inputs: dict[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """What the default plan gives, copied."""
    found = Plan(operators, dict.fromkeys(inputs, F), names).run(tuple(inputs.values()))
    return {name: np.array(y) for name, y in zip(names, found, strict=True)}


def close(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def calls_of(made: FastPlan) -> CallPlan:
    """The plan in NumPy, made by a run or now."""
    made.plain = made.plain or [CallPlan(made.net, made.layout)]
    return made.plain[0]


def memory_of(plan: FastPlan) -> list[Any]:
    """Every array that a plan keeps."""
    made = calls_of(plan)
    found = [
        made.arena,
        *made.template,
        *(array for _, array in made.copied),
    ]
    found += [array for _, array in made.results]
    for step in made.steps:
        found += step.arrays or ()
    return [array for array in found if isinstance(array, np.ndarray)]


def assert_apart(ours: Sequence[Any], theirs: Sequence[Any], what: str) -> None:
    for one, other in itertools.product(ours, theirs):
        assert not np.shares_memory(one, other), what


# --- results are nobody else's -------------------------------------------------------------------


def open_shape(type: str, x: str, y: str, shape: tuple[int, ...]) -> Operator:
    """An operator with a length of -1, for ``with_shapes``."""
    return Operator.with_constants(type, [x], [y], {"shape": shape})


NETS: dict[str, tuple[list[Operator], list[str]]] = {
    "a call": ([op("exp", "x", "y")], ["y"]),
    "a chain": ([op("exp", "x", "a"), op("sin", "a", "b"), op("add", "ab", "y")], ["y"]),
    "what is used after": (
        [op("exp", "x", "y"), op("sin", "y", "a"), op("negative", "a", "z")],
        ["y", "z"],
    ),
    "views": (
        [
            op("exp", "x", "a"),
            open_shape("reshape", "a", "b", (-1,)),
            op("permute_dims", "a", "y", axes=(1, 0)),
            open_shape("broadcast_to", "b", "z", (2, -1)),
        ],
        ["y", "z", "b"],
    ),
    "parts": (
        [
            op("exp", "x", "a"),
            op("split", "a", "yb", indices=(1,), axis=1),
            op("unstack", "b", "zw", axis=1),
        ],
        ["y", "z", "w"],
    ),
    "a function that gives a view": (
        [op("exp", "x", "a"), op("flip", "a", "b", axes=(0,)), op("flip", "b", "y", axes=(1,))],
        ["y"],
    ),
    "a sum": ([op("exp", "x", "a"), op("sum", "a", "y", axes=(0, 1), keepdims=False)], ["y"]),
    "one result twice": ([op("exp", "x", "y")], ["y", "y"]),
    "a constant": (
        [
            constant("y", [[1.0, 2.0]]),
            op("permute_dims", "y", "z", axes=(1, 0)),
            op("exp", "x", "w"),
        ],
        ["y", "z", "w"],
    ),
    "a large constant and its parts": (
        [
            constant("y", np.ones(LARGE)),
            op("reshape", "y", "z", shape=(3, 600)),
            op("flip", "y", "v", axes=(0,)),
            op("exp", "x", "w"),
        ],
        ["y", "z", "v", "w"],
    ),
    "a constant that is a view": (
        [
            constant("y", np.ones((4, 5))[1:, 1:]),
            op("flip", "y", "z", axes=(0,)),
            op("exp", "x", "w"),
        ],
        ["y", "z", "w"],
    ),
}


def with_shapes(operators: list[Operator], x: Any) -> list[Operator]:
    """The net for an input: a length of -1 is as many as there are elements."""
    found = []
    for one in operators:
        attrs = dict(one.attrs)
        if -1 in attrs.get("shape", ()):
            attrs["shape"] = tuple(x.size if n == -1 else n for n in attrs["shape"])
        found.append(Operator.with_constants(one.type, one.inputs, one.outputs, attrs))
    return found


@pytest.mark.parametrize("saving", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), LARGE])
@pytest.mark.parametrize("name", NETS)
def test_results_are_fresh_arrays(name: str, shape: Any, saving: bool) -> None:
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=shape) for _ in range(5)]
    operators, outputs = NETS[name]
    operators = with_shapes(operators, xs[0])
    between = [n for one in operators for n in one.output_names if n not in outputs]
    saved = sorted(n for n in between if n != EMPTY) if saving else []
    made = plan_of(operators, {"x": xs[0]}, outputs, saved)
    runs: list[Any] = []
    for x in xs:
        expected = expected_of(operators, {"x": x}, [*outputs, *saved])
        before = x.copy()
        found = made.run((x,))
        ys = found[: len(outputs)]
        for name_of_y, y in zip(outputs, ys, strict=True):
            close(y, expected[name_of_y])
        rest = Saved(found[len(outputs) :], made.layout).unpacked()
        for name_of_y, y in zip(saved, rest, strict=True):
            close(y, expected[name_of_y])
        assert_apart(found, memory_of(made), "a result lies in memory of the plan")
        assert_apart(found, [x], "a result lies in memory of the input")
        for old in runs:
            assert_apart(found, old, "a result lies in memory of an earlier one")
        np.testing.assert_array_equal(x, before)
        for y in found:
            y[...] = 77
        runs.append(found)
    for old in runs:
        assert all(np.all(y == 77) for y in old)


@pytest.mark.parametrize("name", NETS)
def test_results_stay_right_after_later_runs(name: str) -> None:
    rng = np.random.default_rng(0)
    operators, outputs = NETS[name]
    x = rng.normal(size=LARGE)
    operators = with_shapes(operators, x)
    made = plan_of(operators, {"x": x}, outputs)
    kept = []
    for number in range(8):
        x = rng.normal(size=LARGE)
        expected = expected_of(operators, {"x": x}, outputs)
        found = made.run((x,))
        for one, y in zip(outputs, found, strict=True):
            close(y, expected[one])
        if number % 2:  # a part of it is enough to keep it
            kept += [(y.reshape(-1)[-3:], np.array(y).reshape(-1)[-3:]) for y in found]
        del found, y
    for view, copy in kept:
        np.testing.assert_array_equal(view, copy)


def test_a_view_of_a_large_result_is_not_copied() -> None:
    """What it shows is written to fresh memory, and leaves with it."""
    x = np.ones(LARGE)
    net = [op("exp", "x", "a"), op("permute_dims", "a", "y", axes=(1, 0))]
    made = plan_of(net, {"x": x}, ["y"])
    assert len(calls_of(made).fresh) == 1 and calls_of(made).memory.bytes == 0
    close(made.run((x,))[0], np.exp(x.T))


def test_an_input_is_handed_on_as_eager_code_does() -> None:
    """A view of a large input is one of the plan, too; never of what the plan copied."""
    for shape in ((2, 3), LARGE):
        x = np.ones(shape)
        net = [op("permute_dims", "x", "y", axes=(1, 0)), op("identity", "x", "z")]
        made = plan_of(net, {"x": x}, ["y", "z"])
        y, z = made.run((x,))
        assert_apart([y, z], memory_of(made), "a result lies in memory of the plan")
        close(y, x.T)
        close(z, x)


# --- constants of compiled functions -------------------------------------------------------------


def test_who_writes_to_a_result_does_not_write_to_a_constant() -> None:
    def f(x: tn.Variable) -> tuple[tn.Variable, ...]:
        zeros = tn.Variable(np.zeros(3))
        return x * 2.0, fn.exp(zeros), fn.reshape(zeros, (3, 1)), x[:3] + zeros

    compiled = tn.compile(f)
    with tn.using_device("fast"):
        x = tn.Variable(np.ones(3))
        compiled(x)  # nothing is written to what the first run gives
        for _ in range(3):
            ys, expected = compiled(x), f(x)
            for y, theirs in zip(ys, expected, strict=True):
                close(y.array, theirs.array)
                y.array[...] = 7.0


# --- memory of values whose lives overlap --------------------------------------------------------


class Watched(CallPlan):
    """Notes after each action how many steps there are, and which action it was."""

    def __init__(self, *arguments: Any) -> None:
        self.log: list[tuple[Any, int]] = []
        super().__init__(*arguments)

    def _add(self, action: Any) -> None:
        super()._add(action)
        self.log.append((action, len(self.steps)))


def check_step_by_step(net: Net, saved: Sequence[str], special: bool) -> None:
    """Run a plan action by action; after each, every value that is still needed is right."""
    inputs = net.inputs(special, 1)
    names = [n for one in net.operators for n in one.output_names if n != EMPTY]
    specs = specs_of(net.operators, net.inputs(False), F)
    whole = WholeNet(net.operators, dict.fromkeys(inputs, F), net.outputs, specs, saved, None)
    built = Watched(whole, packing_of(whole))
    values: list[Any] = [None] * len(built.template)
    values[: len(built.template)] = built.template
    with np.errstate(all="ignore"):
        expected = {**inputs, **expected_of(net.operators, inputs, names)}
        values[: len(inputs)] = inputs.values()
        for places, array in built.copied:
            np.concatenate([values[place] for place in places], axis=None, out=array)
        for place, form, order in built.fresh:
            values[place] = fresh_array(form, order)
        later = [set(action.reads) for action, _ in built.log]
        first, known = 0, set(inputs) | {n for n in names if n in built.lowering.constants}
        for number, (action, end) in enumerate(built.log):
            call_all(built.steps[first:end], values)
            first = end
            known.update(action.writes)
            needed = set().union(*later[number + 1 :], net.outputs, saved)
            for name in sorted(known & needed & set(expected)):
                array = built.arrays.get(name)
                array = values[built.slots[name]] if array is None else array
                scale = max(
                    1.0,
                    np.max(np.abs(expected[name]), initial=0.0, where=np.isfinite(expected[name])),
                )
                np.testing.assert_allclose(
                    array,
                    expected[name],
                    rtol=1e-12,
                    atol=1e-12 * scale,
                    err_msg=f"{name} after {action}",
                )


@pytest.mark.parametrize("way", ["as it is", "large"])
@hypothesis.settings(max_examples=80)
@hypothesis.given(net=nets(), saving=st.booleans(), special=st.booleans())
def test_values_that_are_needed_are_never_overwritten(
    way: str, net: Net, saving: bool, special: bool
) -> None:
    names = [n for one in net.operators for n in one.output_names if n != EMPTY]
    with pytest.MonkeyPatch.context() as patch:
        if way == "large":
            set_limits(patch, copied_bytes=0)
        check_step_by_step(net, names[::2] if saving else [], special)


@pytest.mark.parametrize("way", ["as it is", "large"])
@hypothesis.settings(max_examples=100)
@hypothesis.given(net=nets(), saving=st.booleans())
def test_random_plans_give_fresh_results_of_the_default_plan(
    way: str, net: Net, saving: bool
) -> None:
    names = [n for one in net.operators for n in one.output_names if n != EMPTY]
    saved = [n for n in names[::2] if n not in net.outputs] if saving else []
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        if way == "large":
            set_limits(patch, copied_bytes=0)
        made = plan_of(net.operators, net.inputs(False), net.outputs, saved)
        for seed in range(3):
            inputs = net.inputs(seed == 2, seed)
            expected = expected_of(net.operators, inputs, [*net.outputs, *saved])
            found = made.run(tuple(inputs.values()))
            kept = [memory for memory in memory_of(made) if memory.size]
            number = len(net.outputs)
            for y in found[:number]:
                assert not any(np.may_share_memory(y, memory) for memory in kept)
            ys = (*found[:number], *Saved(found[number:], made.layout).unpacked())
            for y, theirs in zip(ys, expected.values(), strict=True):
                assert y.shape == theirs.shape and y.dtype == theirs.dtype
                scale = max(1.0, np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
                np.testing.assert_allclose(y, theirs, rtol=1e-12, atol=1e-12 * scale)


def test_memory_is_used_again() -> None:
    """A long chain needs no more than two arrays, and its result."""
    x = np.ones((4, 8))
    net = [op("exp" if i % 2 else "sin", [f"v{i}"], [f"v{i + 1}"]) for i in range(20)]
    made = plan_of(net, {"v0": x}, ["v20"])
    assert calls_of(made).memory.bytes <= 4 * x.nbytes


def test_a_view_keeps_the_memory_of_what_it_shows() -> None:
    x = np.arange(6.0).reshape(2, 3)
    net = [
        op("negative", "x", "a"),
        op("permute_dims", "a", "b", axes=(1, 0)),
        op("reshape", "b", "c", shape=(6,)),  # a copy: transposed it is in another order
        op("exp", "x", "d"),
        op("negative", "d", "e"),
        op("sin", "e", "f"),
        op("multiply", "bb", "g"),
        op("cos", "f", "h"),
        op("multiply", "cc", "i"),
    ]
    expected = expected_of(net, {"x": x}, ["g", "h", "i"])
    made = plan_of(net, {"x": x}, ["g", "h", "i"])
    for _ in range(3):
        for y, theirs in zip(made.run((x,)), expected.values(), strict=True):
            close(y, theirs)


def test_views_that_functions_give_keep_the_memory_of_what_they_show() -> None:
    x = np.arange(6.0).reshape(2, 3)
    net = [
        op("negative", "x", "a"),
        op("flip", "a", "b", axes=(0,)),  # NumPy gives a view
        op("permute_dims", "b", "c", axes=(1, 0)),
        op("flip", "c", "d", axes=(0,)),
        op("exp", "x", "e"),
        op("sin", "e", "f"),
        op("multiply", "dd", "g"),
        op("add", "ef", "h"),
    ]
    expected = expected_of(net, {"x": x}, ["d", "g", "h"])
    made = plan_of(net, {"x": x}, ["d", "g", "h"])
    for _ in range(3):
        found = made.run((x,))
        assert_apart(found, memory_of(made), "a result lies in memory of the plan")
        for y, theirs in zip(found, expected.values(), strict=True):
            close(y, theirs)


# --- inputs --------------------------------------------------------------------------------------


def layouts(x: Any) -> dict[str, Any]:
    """One array in many ways to lie in memory."""
    wide = np.zeros([2 * n + 1 for n in x.shape])
    steps = wide[(*[slice(0, 2 * n, 2) for n in x.shape], ...)]
    steps[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "C": np.array(x, order="C"),
        "F": np.array(x, order="F"),
        "steps": steps,
        "backwards": np.ascontiguousarray(x[::-1])[::-1] if x.ndim else x.copy(),
        "read-only": frozen,
    }


SHAPES = [(), (1,), (0,), (0, 3), (3, 0), (3, 4), (600, 3)]


@pytest.mark.parametrize(
    ("shape", "is_large"), [*itertools.product(SHAPES, [False, True]), ((40_000,), False)]
)
def test_inputs_may_lie_anyhow(
    shape: Any, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        set_limits(monkeypatch, copied_bytes=0)
    rng = np.random.default_rng(0)
    net = [
        op("sin", "x", "a"),
        op("multiply", "ax", "b"),
        op("sigmoid", "b", "y"),
        op("sum", "b", "s", axes=tuple(range(len(shape))), keepdims=False),
        op("broadcast_to", "s", "t", shape=shape),
        op("subtract", "xt", "z"),
    ]
    made = plan_of(net, {"x": rng.normal(size=shape)}, ["y", "s", "z"])
    for _, x in layouts(rng.normal(size=shape)).items():
        expected = expected_of(net, {"x": x}, ["y", "s", "z"])
        before = x.copy()
        for y, theirs in zip(made.run((x,)), expected.values(), strict=True):
            assert y.shape == theirs.shape
            np.testing.assert_allclose(y, theirs, rtol=1e-12, atol=1e-12 * max(1, x.size))
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 0), (0, 4)),
        ((2, 3, 4), (4, 0)),
        ((0, 3, 4), (4, 2)),
        ((0, 3), (3, 0)),
        ((3, 0), (0, 3)),
        ((2, 0, 4), (4, 2)),
        ((2, 5, 3, 4), (4, 2)),
    ],
)
def test_products_of_matrices_with_no_elements(shapes: Any) -> None:
    x, y = (np.ones(shape) for shape in shapes)
    net = [
        op("matmul", "xy", "z"),
        op("permute_dims", "y", "w", axes=(1, 0)),
        op("linear", "xw", "v"),
    ]
    made = plan_of(net, {"x": x, "y": y}, ["z", "v"])
    expected = expected_of(net, {"x": x, "y": y}, ["z", "v"])
    for ours, theirs in zip(made.run((x, y)), expected.values(), strict=True):
        close(ours, theirs)


@pytest.mark.parametrize(
    ("dtype", "length", "copies"),
    [("f8", 512, 1), ("f8", 513, 0), ("f4", 1024, 1), ("f4", 1025, 0), ("f8", 511, 1)],
)
def test_the_largest_input_that_is_copied(dtype: str, length: int, copies: int) -> None:
    """4,096 bytes, and not one more; results are fresh on both sides of it."""
    assert LIMITS.copied_bytes == 4096
    x = np.linspace(0, 1, length).astype(dtype)
    net = [op("exp", "x", "a"), op("sin", "a", "y"), op("reshape", "y", "z", shape=(1, length))]
    made = plan_of(net, {"x": x}, ["y", "z"], ["a"])
    assert len(calls_of(made).copied) == copies
    assert (made.layout is not None) is bool(copies)
    assert len(calls_of(made).fresh) == (0 if copies else 2)
    runs = []
    for factor in (1, 2, 3):
        given = x * np.asarray(factor, dtype)
        found = made.run((given,))
        assert_apart(found, [*memory_of(made), given, *itertools.chain(*runs)], "shared")
        runs.append(found)
        close(found[0], np.sin(np.exp(given)))
        close(found[1], found[0].reshape(1, -1))
        close(Saved(found[2:], made.layout).unpacked()[0], np.exp(given))


@pytest.mark.parametrize("values", [[np.nan, np.inf], [-0.0, 5e-324]])
def test_no_step_is_lost_for_values_that_are_not_finite(values: list[float]) -> None:
    x = np.asarray(values)
    net = [
        op("negative", "x", "a"),
        op("abs", "a", "b"),
        op("relu", "x", "c"),
        op("add", "bc", "y"),
    ]
    with np.errstate(all="ignore"):
        expected = expected_of(net, {"x": x}, ["y"])["y"]
        np.testing.assert_array_equal(plan_of(net, {"x": x}, ["y"]).run((x,))[0], expected)


def test_the_gradient_of_relu_is_0_also_where_infinities_come_back() -> None:
    y = np.asarray([0.0, 0.0, 0.0, 2.0, 2.0, 2.0, np.nan, 0.0, 3.0])
    gy = np.asarray([np.inf, np.nan, -1.0, np.inf, np.nan, 1e300, 1.0, -np.inf, 1e-300])
    net = [op("relu_grad", ["y", "g"], ["x"])]
    for given in (gy, np.resize([1.0, -2.0], 9), np.resize(1e300, 9)):
        expected = expected_of(net, {"y": y, "g": given}, ["x"])["x"]
        with np.errstate(all="raise"):
            (x,) = plan_of(net, {"y": y, "g": given}, ["x"]).run((y, given))
        np.testing.assert_array_equal(x, expected)


def test_functions_of_nothing_run_at_each_run() -> None:
    net = [masks()[0], op("multiply", "xm", "y")]
    for one in net[:1]:
        one.attrs["output_device"] = F
    x = np.ones((2, 3))
    made = plan_of(net, {"x": x}, ["y"])
    assert len({made.run((x,))[0].tobytes() for _ in range(10)}) > 5


# --- threads and errors --------------------------------------------------------------------------


class Slow(tn.FunctionNode):
    """y = 2 x; it waits in its first run until the second has begun, and ended."""

    def forward(self, inputs: Any) -> Any:
        if Slow.wait is not None:
            wait, Slow.wait = Slow.wait, None
            Slow.started.set()
            assert wait.wait(20)
        return (inputs[0] * 2.0,)

    wait: threading.Event | None = None
    started = threading.Event()


def run_two(made: FastPlan, first: Any, second: Any) -> tuple[Any, Any]:
    """Two runs of a plan at one time: the second begins and ends within the first."""
    go = threading.Event()
    Slow.wait, Slow.started = go, threading.Event()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(made.run(first)))
    thread.start()
    try:
        assert Slow.started.wait(20)
        assert made.plain == []  # the first run has the plan
        other = made.run(second)
    finally:
        go.set()
        thread.join(20)
    return found[0], other


@pytest.mark.parametrize("shape", [(2, 3), LARGE])
def test_a_second_thread_takes_a_plan_of_its_own(shape: Any) -> None:
    net = [
        op("exp", "x", "a"),
        operator_of(Slow(), ["a"], ["b"]),
        op("sin", "a", "c"),
        op("multiply", "bc", "y"),
        op("sum", "y", "s", axes=(0,), keepdims=False),
    ]
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=shape) for _ in range(2)]
    outputs, saved = ["y", "s"], ["a", "b", "c"]
    made = plan_of(net, {"x": xs[0]}, outputs, saved)
    calls_of(made)
    runs = run_two(made, (xs[0],), (xs[1],))
    assert len(made.plain) == 2
    assert made.layout is not None or shape == LARGE
    for x, found in zip(xs, runs, strict=True):
        expected = expected_of(net, {"x": x}, [*outputs, *saved])
        rest = Saved(found[2:], made.layout).unpacked()
        for y, theirs in zip((*found[:2], *rest), expected.values(), strict=True):
            close(y, theirs)
    assert [y.shape for y in runs[0]] == [y.shape for y in runs[1]]
    assert_apart(*runs, "two threads share a result")


def network(x: tn.Variable, w: tn.Variable) -> tn.Variable:
    h = fn.tanh(x @ w)
    return fn.sum(fn.sigmoid(h * h + fn.exp(h)) * h)


def gradients(function: Any, x: Any, w: Any) -> list[Any]:
    """The value and both gradients."""
    a, b = tn.Variable(x), tn.Variable(w)
    y = function(a, b)
    y.backward()
    assert a.grad is not None and b.grad is not None
    return [y.array, a.grad, b.grad]


def program_of(compiled: Any) -> Any:
    (entry,) = compiled.recordings
    return entry.program


@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3, 300), (300, 4))])
@pytest.mark.parametrize("forward", ["first", "other"])
@pytest.mark.parametrize("back", ["first", "other"])
def test_what_one_plan_packs_another_unpacks(shapes: Any, forward: str, back: str) -> None:
    rng = np.random.default_rng(0)
    compiled = tn.compile(network)

    def draw() -> list[Any]:
        return [rng.normal(size=shape) * 0.3 for shape in shapes]

    with tn.using_device("fast"):
        gradients(compiled, *draw())
        gradients(compiled, *draw())
        program = program_of(compiled)
        ahead, behind = program._plans[True], program.gradients[program.full_key].plans[True]
        assert type(ahead) is FastPlan and type(behind) is FastPlan
        assert ahead.layout is not None and behind.net.layout == ahead.layout
        for _ in range(3):
            plans = [calls_of(ahead), calls_of(behind)]
            x, w = draw()
            expected = [
                np.array(tn.to_host(getattr(y, "array", y))) for y in gradients(network, x, w)
            ]
            ahead.plain = [] if forward == "other" else plans[:1]
            behind.plain = [] if back == "other" else plans[1:]
            found = gradients(compiled, x, w)
            for ours, theirs in zip(found, expected, strict=True):
                close(np.asarray(getattr(ours, "array", ours)), theirs)
        assert len(ahead.plain) == len(behind.plain) == 1


def test_many_threads_run_one_compiled_function() -> None:
    rng = np.random.default_rng(0)
    compiled = tn.compile(network)
    draws = [[rng.normal(size=(5, 4)), rng.normal(size=(4, 3))] for _ in range(8)]
    wrong: list[Any] = []
    with tn.using_device("fast"):
        gradients(compiled, *draws[0])
        expected = [gradients(network, *draw) for draw in draws]

    def work(draw: Any, theirs: Any) -> None:
        with tn.using_device("fast"):
            for _ in range(40):
                for one, other in zip(gradients(compiled, *draw), theirs, strict=True):
                    one, other = (getattr(y, "array", y) for y in (one, other))
                    if not np.allclose(one, other, rtol=1e-12, atol=1e-13):
                        wrong.append((one, other))

    started = [
        threading.Thread(target=work, args=pair) for pair in zip(draws, expected, strict=True)
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not wrong


class Breaks(tn.FunctionNode):
    """y = x + 1, or an error when it is asked for one."""

    error: BaseException | None = None

    def forward(self, inputs: Any) -> Any:
        if Breaks.error is not None:
            raise Breaks.error
        return (inputs[0] + 1.0,)


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("shape", [(2, 3), LARGE])
def test_a_plan_is_usable_after_an_error(error: BaseException, shape: Any) -> None:
    net = [op("exp", "x", "a"), operator_of(Breaks(), ["a"], ["b"]), op("multiply", "ab", "y")]
    x = np.random.default_rng(0).normal(size=shape)
    made = plan_of(net, {"x": x}, ["y"], ["a", "b"])
    held = made.run((x,))
    copies = [y.copy() for y in held]
    Breaks.error = error
    try:
        with pytest.raises(type(error)):
            made.run((-x,))
    finally:
        Breaks.error = None
    assert len(made.plain) == 1
    for y, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(y, copy)
    for given in (x, 2 * x):
        (y, *_) = made.run((given,))
        close(y, np.exp(given) * (np.exp(given) + 1))


# --- memory and slots ----------------------------------------------------------------------------


def test_memory_is_large_enough_and_is_counted() -> None:
    memory = Memory()
    sizes = [memory.take(((n,), np.dtype(np.int8))).nbytes for n in range(1, 300)]
    assert all(n <= size <= max(64, 2 * n) for n, size in enumerate(sizes, 1))
    assert memory.bytes == sum(sizes)


def test_each_large_result_has_memory_of_its_own() -> None:
    made = plan_of([op("exp", "x", "y")], {"x": np.ones(LARGE)}, ["y"])
    held = [made.run((np.full(LARGE, float(n)),))[0] for n in range(4)]
    for n, y in enumerate(held):
        np.testing.assert_array_equal(y, np.exp(np.full(LARGE, float(n))))


class TwoViews(tn.FunctionNode):
    """y, z = x backwards, and x."""

    def forward(self, inputs: Any) -> Any:
        return inputs[0][::-1], inputs[0][:]


def test_memory_seen_by_two_views_is_kept_for_both() -> None:
    net = [
        op("exp", "x", "a"),
        operator_of(TwoViews(), ["a"], ["b", "c"]),
        op("sin", "b", "d"),
        op("cos", "d", "e"),
        op("sin", "e", "f"),
        op("cos", "f", "g"),
        op("add", "gc", "y"),
    ]
    x = np.linspace(0, 1, 10)
    close(plan_of(net, {"x": x}, ["y"]).run((x,))[0], expected_of(net, {"x": x}, "y")["y"])


def test_a_plan_without_inputs_and_a_copy_that_has_no_slot() -> None:
    net = [constant("c", [1.0, 2.0]), op("flip", "c", "y", axes=(0,))]
    assert plan_of(net, {}, ["y"]).run(())[0].tolist() == [2.0, 1.0]
    net = [
        op("permute_dims", "x", "a", axes=(1, 0)),
        op("reshape", "a", "b", shape=(6,)),
        op("sin", "b", "y"),
        op("exp", "v", "z"),
        op("add_all", "xxx", "w"),
    ]
    inputs = {"x": np.arange(6.0).reshape(2, 3), "v": np.ones(LARGE)}
    specs = specs_of(net, inputs, F)
    before = dict(specs)
    made = FastPlan(net, dict.fromkeys(inputs, F), ["y", "z"], specs)
    assert specs == before
    found = made.run(tuple(inputs.values()))
    for ours, theirs in zip(found, expected_of(net, inputs, "yz").values(), strict=True):
        close(ours, theirs)


# --- activations ---------------------------------------------------------------------------------


ACTIVATIONS = [fn.gelu, functools.partial(fn.gelu, approximate=True), fn.silu, fn.sigmoid]


@pytest.mark.parametrize("length", [4095, 4096, 40_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=["gelu", "tanh_gelu", "silu", "sigmoid"])
def test_compiled_activations_are_differentiated_again_and_again(
    activation: Any, dtype: str, length: int
) -> None:
    """The first call records; the calls after that run the plans."""
    compiled = tn.compile(activation)
    rng = np.random.default_rng(0)
    for _ in range(3):
        array, gy = (rng.normal(size=length).astype(dtype) for _ in range(2))
        found = []
        for function in (compiled, activation):
            with tn.using_device("fast"):
                x = tn.Variable(array)
                y = function(x)
                y.grad = gy
                y.backward()
                found.append((y.array, x.grad))
        for ours, theirs in zip(*found, strict=True):
            assert ours.dtype == theirs.dtype == dtype
            tolerance = 1e-12 if dtype == "float64" else 1e-5
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# --- the table of kernels ------------------------------------------------------------------------

KERNEL_BY_NAME = {kernel.__name__: (kind, kernel) for kind, kernel in KERNELS.items()}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", KERNEL_CASES)
def test_a_plan_computes_what_a_kernel_computes(
    name: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arrays are above the thresholds of eager code; ``large``: plans copy nothing."""
    make, given = KERNEL_CASES[name]
    assert type(make()) is KERNEL_BY_NAME[name][0]
    if large:
        set_limits(monkeypatch, copied_bytes=0)
    expected = make().forward(tuple(given))
    inputs = {f"x{i}": x for i, x in enumerate(given)}
    outputs = [f"y{i}" for i in range(len(expected))]
    made = plan_of([operator_of(make(), list(inputs), outputs)], inputs, outputs)
    for _ in range(2):
        for y, wanted in zip(made.run(tuple(given)), expected, strict=True):
            assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(y, wanted, rtol=2e-5, atol=2e-4)


# --- warnings ------------------------------------------------------------------------------------

CASES: dict[str, tuple[Any, list[float]]] = {
    "sigmoid far below 0": (fn.sigmoid, [-1000.0, -1e308, 3.0]),
    "sigmoid of infinities": (fn.sigmoid, [-np.inf, np.inf, 0.0]),
    "log of 0": (fn.log, [0.0, 1.0, 2.0]),
    "log below 0": (fn.log, [-1.0, 1.0, 2.0]),
    "exp overflows": (fn.exp, [1000.0, 1.0, 2.0]),
    "a quotient by 0": (lambda x: 1.0 / x, [0.0, 1.0, 2.0]),
    "a square that overflows": (fn.square, [1e200, 1.0, 2.0]),
    "a root below 0": (fn.sqrt, [-1.0, 1.0, 2.0]),
    "inf - inf": (lambda x: x - x, [np.inf, 1.0, 2.0]),
    "relu of NaN": (fn.relu, [np.nan, -np.inf, 2.0]),
    "a sum that overflows": (lambda x: fn.sum(x), [1e308, 1e308, 1e308]),
}


def outcome(function: Any, x: Any) -> Any:
    """The result, or the kind of error."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            return function(tn.Variable(x)).array
    except FloatingPointError as error:
        return str(error).split(" encountered")[0]


@pytest.mark.parametrize("way", ["small", "large", "copied nowhere"])
@pytest.mark.parametrize("name", CASES)
def test_compiled_code_warns_where_eager_code_does(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, values = CASES[name]
    if way == "copied nowhere":
        set_limits(monkeypatch, copied_bytes=0)
    x = np.resize(values, 3 if way == "small" else 60_000)
    fine = np.linspace(0.5, 1.0, x.size)

    def wrapped(x: tn.Variable) -> tn.Variable:
        return function(x * 1.5) * 1.5

    for one in (function, wrapped):
        compiled = tn.compile(one)
        with tn.using_device("fast"):
            compiled(tn.Variable(fine))
            compiled(tn.Variable(fine))
            ours, theirs = outcome(compiled, x), outcome(one, x)
        if isinstance(theirs, str):
            assert ours == theirs
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)

"""Random graphs: gradients by nets are those of define-by-run code.

A graph is drawn as a list of steps. The same list is built as a net of operators, with nets in
it, and run as define-by-run code on the same functions. Variables are shared, some outputs are
used by nobody, some inputs are frozen, and there are several targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import hypothesis
import numpy as np
from hypothesis import strategies as st

import tinynode as tn
from tinynode import functions as fn
from tinynode.net import NetOp, Operator, Scope, append_backward, backward, dumps, loads
from tinynode.net.operator import EMPTY

SIDE = 3


class Kind(NamedTuple):
    """A kind of step: its operators, and the same on Variables. Every array is (SIDE, SIDE)."""

    reads: int
    writes: int
    operators: Callable[[list[str], list[str]], list[Operator]]
    apply: Callable[..., Any]


def one(type: str, **attrs: Any) -> Callable[[list[str], list[str]], list[Operator]]:
    def operators(read: list[str], written: list[str]) -> list[Operator]:
        return [Operator(type, read, written, attrs)]

    return operators


def mean_operators(read: list[str], written: list[str]) -> list[Operator]:
    """x - sum of its columns: a reduction and a broadcast."""
    total = f"{written[0]}_sum"
    return [
        Operator("sum", read, [total], {"axes": (0,), "keepdims": True}),
        Operator("subtract", [read[0], total], written),
    ]


def roll_operators(read: list[str], written: list[str]) -> list[Operator]:
    """The parts that are cut off, put together the other way round; and a product."""
    parts = [f"{written[0]}_part0", f"{written[0]}_part1"]
    return [
        Operator("split", read, parts, {"indices": (1,), "axis": 0}),
        Operator("concat", parts[::-1], [written[0]], {"axis": 0}),
        Operator("multiply", [parts[0], written[0]], [written[1]]),
    ]


def roll_apply(x: tn.Variable) -> tuple[tn.Variable, tn.Variable]:
    first, rest = fn.Split((1,), 0).apply((x,))
    y = fn.concat([rest, first], axis=0)
    return y, first * y


KINDS = {
    "add": Kind(2, 1, one("add"), fn.add),
    "subtract": Kind(2, 1, one("subtract"), fn.subtract),
    "multiply": Kind(2, 1, one("multiply"), fn.multiply),
    "matmul": Kind(2, 1, one("matmul"), fn.matmul),
    "logaddexp": Kind(2, 1, one("logaddexp"), fn.logaddexp),
    "maximum": Kind(2, 1, one("maximum"), fn.maximum),
    "tanh": Kind(1, 1, one("tanh"), fn.tanh),
    "sin": Kind(1, 1, one("sin"), fn.sin),
    "gelu": Kind(1, 1, one("gelu"), fn.gelu),
    "softmax": Kind(1, 1, one("softmax", axis=1), fn.softmax),
    "add_all": Kind(3, 1, one("add_all"), lambda *xs: fn.AddAll().apply(xs)[0]),
    "transpose": Kind(
        1, 1, one("permute_dims", axes=(1, 0)), lambda x: fn.permute_dims(x, (1, 0))
    ),
    "center": Kind(1, 1, mean_operators, lambda x: x - fn.sum(x, axis=0, keepdims=True)),
    "roll": Kind(1, 2, roll_operators, roll_apply),
}


class Step(NamedTuple):
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class Graph(NamedTuple):
    """A drawn graph: nested lists of steps, and what is asked of it."""

    inputs: list[str]
    steps: list[Any]
    targets: list[str]
    frozen: list[str]
    seed: int


@st.composite
def graphs(draw: Any) -> Graph:
    """Up to 9 steps on up to 3 inputs, in nets up to two deep; each reads anything before it."""
    inputs = [f"x{i}" for i in range(draw(st.integers(1, 3)))]
    known = list(inputs)
    steps: list[Any] = []
    nets = [steps]
    for number in range(draw(st.integers(1, 9))):
        move = draw(st.sampled_from(["stay", "stay", "enter", "leave"]))
        if move == "enter" and len(nets) < 3:
            inner: list[Any] = []
            nets[-1].append(inner)
            nets.append(inner)
        elif move == "leave" and len(nets) > 1:
            nets.pop()
        name = draw(st.sampled_from(sorted(KINDS)))
        kind = KINDS[name]
        reads = tuple(draw(st.sampled_from(known)) for _ in range(kind.reads))
        writes = tuple(f"v{number}_{i}" for i in range(kind.writes))
        nets[-1].append(Step(name, reads, writes))
        known += writes[:1] if draw(st.booleans()) else writes
    written = known[len(inputs) :]
    targets = draw(st.lists(st.sampled_from(written), min_size=1, max_size=3, unique=True))
    frozen = draw(st.lists(st.sampled_from(inputs), max_size=len(inputs) - 1, unique=True))
    return Graph(inputs, steps, targets, frozen, draw(st.integers(0, 2**32 - 1)))


def build(steps: list[Any], type: str = "net") -> NetOp:
    net = NetOp([], type)
    for number, step in enumerate(steps):
        if isinstance(step, Step):
            for operator in KINDS[step.kind].operators(list(step.reads), list(step.writes)):
                net.append(operator)
        elif step:
            net.append(build(step, f"{type}_{number}"))
    return net


def flat(steps: list[Any]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        found += [step] if isinstance(step, Step) else flat(step)
    return found


def call(graph: Graph, xs: dict[str, tn.Variable]) -> list[tn.Variable]:
    """The targets, by define-by-run code."""
    values = dict(xs)
    for step in flat(graph.steps):
        ys = KINDS[step.kind].apply(*(values[name] for name in step.reads))
        values.update(zip(step.writes, ys if isinstance(ys, tuple) else (ys,), strict=True))
    return [values[name] for name in graph.targets]


def arrays(graph: Graph) -> tuple[dict[str, Any], list[Any]]:
    """Values of the inputs, and gradients of the targets."""
    rng = np.random.default_rng(graph.seed)

    def normal() -> Any:
        return rng.normal(size=(SIDE, SIDE)) * 0.5

    return {name: normal() for name in graph.inputs}, [normal() for _ in graph.targets]


def leaves(graph: Graph, hosts: dict[str, Any]) -> dict[str, tn.Variable]:
    return {n: tn.Variable(x, requires_grad=n not in graph.frozen) for n, x in hosts.items()}


def assert_close(ours: Any, theirs: tn.Variable | None, what: str) -> None:
    """Within 1e-12, relative to the largest element; zeros and None say the same."""
    expected = np.zeros((SIDE, SIDE)) if theirs is None else theirs.array
    actual = np.zeros((SIDE, SIDE)) if ours is None else ours
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * scale, err_msg=what)


def expected_gradients(graph: Graph) -> dict[str, tn.Variable | None]:
    hosts, gys = arrays(graph)
    xs = leaves(graph, hosts)
    free = [name for name in graph.inputs if name not in graph.frozen]
    ys = call(graph, xs)
    known = [i for i, y in enumerate(ys) if y.requires_grad]
    if not known:
        return dict.fromkeys(free)
    found = tn.grad(
        [ys[i] for i in known], [xs[n] for n in free], [tn.Variable(gys[i]) for i in known]
    )
    return dict(zip(free, found, strict=True))


@hypothesis.settings(max_examples=200)
@hypothesis.given(graph=graphs(), zero_fill=st.booleans())
def test_gradients_by_nets_are_those_of_define_by_run(graph: Graph, zero_fill: bool) -> None:
    hosts, gys = arrays(graph)
    net = build(graph.steps)
    scope = Scope(hosts)
    net.run(scope)
    for name, y in zip(graph.targets, call(graph, leaves(graph, hosts)), strict=True):
        assert_close(scope.find(name).array, y, name)
    sources = [n for n in graph.inputs if n in net.input_names]
    result = backward(
        net, scope, graph.frozen, targets=graph.targets, inputs=sources, zero_fill=zero_fill
    )
    for name, gy in zip(graph.targets, gys, strict=True):
        scope.set(f"{name}@GRAD", gy)
    loads(dumps(result)).run(scope)
    for name, gx in expected_gradients(graph).items():
        written = f"{name}@GRAD" in result.output_names
        assert_close(scope.find(f"{name}@GRAD").array if written else None, gx, name)
    assert not any(f"{name}@GRAD" in result.output_names for name in graph.frozen)
    assert EMPTY not in result.output_names


@hypothesis.settings(max_examples=60)
@hypothesis.given(graph=graphs())
def test_appended_gradients_are_those_of_define_by_run(graph: Graph) -> None:
    """A gradient of ones for each target, and each parameter's gradient by its name."""
    hosts, _ = arrays(graph)
    net = build(graph.steps)
    scope = Scope(hosts)
    net.run(scope)
    free = [name for name in graph.inputs if name not in graph.frozen]
    names = append_backward(net, scope, graph.targets, free, graph.frozen)
    fresh = Scope(hosts)
    net.run(fresh)
    xs = leaves(graph, hosts)
    ys = [y for y in call(graph, xs) if y.requires_grad]
    ones = [tn.Variable(np.ones((SIDE, SIDE))) for _ in ys]
    gxs = tn.grad(ys, [xs[n] for n in free], ones) if ys else [None] * len(free)
    assert list(names) == free
    for name, gx in zip(free, gxs, strict=True):
        found = names[name]
        assert_close(None if found is None else fresh.find(found).array, gx, name)

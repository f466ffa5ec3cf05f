"""tinynode.show.graph: boxes, arrows, marks, folds, layouts, and every form it is written in."""

from __future__ import annotations

import functools
import gc
import html.parser
import itertools
import re
import shutil
import subprocess
import sys
import textwrap
import time
import weakref
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show import graph, pixels
from tinynode.show.graphs import layout_order
from tinynode.show.graphs.diagram import Diagram
from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode, box_size, group_name
from tinynode.show.graphs.folding import Run, find_runs, fold_repeats
from tinynode.show.graphs.layout import layout
from tinynode.show.graphs.layout_grid import Grid
from tinynode.show.graphs.layout_pixels import Layout
from tinynode.show.palette import LIGHT

EVIL = "<script>alert('x')</script> & \"#1;\" `%%{` \\ \x07\nend"
TIMES = "\N{MULTIPLICATION SIGN}"
SVG = "{http://www.w3.org/2000/svg}"


def named(name: str | None, *shape: int, **options: Any) -> tn.Variable:
    return tn.Variable(np.ones(shape), name=name, **options)


def data(*shape: int) -> tn.Variable:
    return tn.Variable(np.ones(shape, "float32"), name="x", requires_grad=False)


def picture(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def node(diagram: Diagram, label: str) -> DiagramNode:
    (found,) = [one for one in diagram.nodes if one.label == label]
    return found


def arrows(diagram: Diagram) -> list[tuple[str, str]]:
    """The edges by their labels."""
    labels = {one.id: one.label for one in diagram.nodes}
    return [(labels[edge.source], labels[edge.target]) for edge in diagram.edges]


def perceptron() -> tn.Variable:
    x = named("x", 2, 3, requires_grad=False)
    z = x * named("w", 3) + named("b", 3)
    z.name = "z"
    return z


# --- what is in the picture ----------------------------------------------------------------------


def test_nodes_and_edges_of_a_small_graph() -> None:
    x, y = named("x", 3), named("y", 3)
    z = x * y + x
    z.name = "z"
    diagram = graph(z)
    assert sorted(arrows(diagram)) == sorted(
        [
            ("x.node", "Multiply"),
            ("y.node", "Multiply"),
            ("Multiply", "#1"),
            ("#1", "Add"),
            ("x.node", "Add"),
            ("Add", "z.node"),
        ]
    )
    kinds = {one.label: (one.kind, one.rank, one.phase) for one in diagram.nodes}
    assert kinds == {
        "x.node": ("variable", 0, "forward"),
        "y.node": ("variable", 0, "forward"),
        "Multiply": ("function", 0, "forward"),
        "#1": ("variable", 1, "forward"),
        "Add": ("function", 1, "forward"),
        "z.node": ("variable", 2, "forward"),
    }
    assert diagram.title == "graph of z.node" and diagram.notes == ["all on numpy"]


def test_facts_and_marks() -> None:
    z = perceptron()
    z.grad = np.ones((2, 3))
    functions.sum(z).backward(retain_grad=True)
    diagram = graph(z)
    x = node(diagram, "x.node")
    assert x.marks == {"leaf", "no gradient", "retained"}
    assert x.facts == ("(2, 3), float64", "leaf, no gradient, array retained")
    assert node(diagram, "z.node").marks == {"root", "gradient"}
    assert node(diagram, "z.node").facts == ("(2, 3), float64", "grad")
    assert node(diagram, "b.node").marks == {"leaf"}
    assert node(diagram, "#1").facts == ("(2, 3), float64",) and not node(diagram, "#1").marks


def test_an_unchained_variable_is_no_leaf_by_its_words() -> None:
    h = functions.sin(named("x", 2))
    y = functions.exp(h)
    h.unchain()
    del h
    (first,) = [one for one in graph(y).nodes if "leaf" in one.marks]
    assert first.facts[1] == "unchained, array retained" or first.facts[1] == "unchained"


def test_outputs_that_are_gone() -> None:
    a, b, c = functions.split(named("x", 6), 3, axis=0)
    del b
    diagram = graph(a * c)
    assert arrows(diagram).count(("Split", "(gone)")) == 1
    assert node(diagram, "(gone)").marks == {"gone"} and node(diagram, "(gone)").rank == 1


def test_several_outputs_share_what_they_share() -> None:
    h = functions.sin(named("x", 2))
    diagram = graph(functions.exp(h), functions.cos(h))
    assert [one.label for one in diagram.nodes].count("Sin") == 1
    assert sum("root" in one.marks for one in diagram.nodes) == 2
    assert {one.phase for one in diagram.nodes} == {"forward"}, "an output is no gradient"


def test_a_leaf_alone() -> None:
    diagram = graph(named("x", 2))
    assert [one.label for one in diagram.nodes] == ["x.node"] and not diagram.edges
    assert diagram.nodes[0].marks == {"leaf", "root"}
    assert diagram.to_svg().count("<rect") == 2


def test_devices_are_said_once_unless_they_differ() -> None:
    x = named("x", 2)
    y = functions.exp(x.to_device("fast"))
    diagram = graph(y)
    assert not diagram.notes
    assert node(diagram, "x.node").facts[1] == "numpy"
    assert any("fast" in one.facts for one in diagram.nodes)
    assert graph(x).notes == ["all on numpy"]


def test_variables_of_one_name_stay_apart() -> None:
    diagram = graph(named("x", 2) * named("x", 2))
    assert {one.label for one in diagram.nodes} == {"x.node", "x.node#1", "Multiply", "#2"}


# --- forward and backward ------------------------------------------------------------------------


def double_backprop() -> tuple[tn.Variable, tn.Variable]:
    x = named("x")
    y = x**3
    y.name = "y"
    y.backward(enable_double_backprop=True)
    return x, y


def test_double_backprop_is_drawn_as_backward() -> None:
    x, y = double_backprop()
    diagram = graph(y, x.grad_var)
    phases = {one.label: one.phase for one in diagram.nodes if one.kind == "function"}
    assert phases == {
        "PowConstant(3)": "forward",
        "PowConstant(2)": "backward",
        "Multiply": "backward",
    }
    assert node(diagram, "x.node").phase == node(diagram, "y.node").phase == "forward"
    assert node(diagram, "x.grad").phase == "backward"
    assert node(diagram, "x.node").facts[1] == "leaf, array retained, grad, with a graph"
    labels = {one.id: one.label for one in diagram.nodes}
    backward = [edge for edge in diagram.edges if edge.phase == "backward"]
    assert {labels[edge.target] for edge in backward if edge.source == node(diagram, "x.node").id}
    assert all(labels[edge.target] != "PowConstant(3)" for edge in backward)


def test_gradients_may_be_given_and_the_order_of_roots_does_not_matter() -> None:
    x = named("x", 2)
    y = functions.sum(functions.exp(x))
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    as_root, as_gradient = graph(y, gx), graph(y, gradients=[gx])
    assert {one.phase for one in as_root.nodes} == {"forward"}, "nobody can know"
    assert {one.phase for one in as_gradient.nodes} == {"forward", "backward"}
    x, y = double_backprop()
    first, second = graph(y, x.grad_var), graph(x.grad_var, y)
    assert sorted((n.label, n.phase) for n in first.nodes if n.kind == "function") == sorted(
        (n.label, n.phase) for n in second.nodes if n.kind == "function"
    )


# --- modules -------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self) -> None:
        self.query, self.key, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.out(functions.softmax(self.query(x) * self.key(x), axis=-1))


class Model(nn.Module):
    def __init__(self, depth: int) -> None:
        self.blocks = [Attention() for _ in range(depth)]
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = functions.relu(block(x))
        return self.head(x)


def test_groups_of_a_model() -> None:
    model = Model(2)
    diagram = graph(model(data(3, 4)), model=model)
    weight = node(diagram, "blocks[1].query.weight.node")
    assert weight.group == "blocks[1].query"
    linear = [one.group for one in diagram.nodes if one.label == "Linear"]
    assert linear == [
        "blocks[0].query",
        "blocks[0].key",
        "blocks[0].out",
        "blocks[1].query",
        "blocks[1].key",
        "blocks[1].out",
        "head",
    ]
    between = [one.group for one in diagram.nodes if one.label in ("Softmax", "Multiply")]
    assert sorted(between) == ["blocks[0]", "blocks[0]", "blocks[1]", "blocks[1]"]
    assert [one.group for one in diagram.nodes if one.label == "ReLU"] == [None, None]
    assert node(diagram, "x.node").group is None
    assert list(dict.fromkeys(linear)) == linear
    named_areas = {area.name for area in layout(diagram.nodes, diagram.edges).groups}
    assert named_areas == {one.group for one in diagram.nodes if one.group}
    assert ">query<" in diagram.to_svg() and ">weight.node<" in diagram.to_svg()


class Wrapped(nn.Module):
    def __init__(self) -> None:
        self.outer = Model(1)
        self.parts = {"a": nn.Linear(1, 2), "b": nn.Linear(2, 1)}

    def forward(self, x: Any) -> Any:
        return self.parts["b"](functions.tanh(self.parts["a"](self.outer(x))))


def test_a_function_lies_in_the_innermost_module_and_in_modules_only() -> None:
    model = Wrapped()
    diagram = graph(model(data(3, 4)), model=model)
    assert node(diagram, "Softmax").group == "outer.blocks[0]"
    assert node(diagram, "ReLU").group == "outer"
    assert node(diagram, "Tanh").group is None, "a dict is no module"


def test_groups_by_the_names_of_parameters() -> None:
    w = nn.Parameter(np.ones((4, 4)), name="encoder.0.weight")
    diagram = graph(functions.relu(functions.linear(named("a.b", 2, 4), w)))
    assert node(diagram, "Linear").group == "encoder[0]"
    assert node(diagram, "ReLU").group is None
    assert node(diagram, "a.b.node").group is None, "only parameters name modules"
    assert not any(one.group for one in graph(Model(1)(data(3, 4))).nodes)


@pytest.mark.parametrize(
    ("dotted", "name"),
    [("layers.0.1.linear", "layers[0][1].linear"), ("head", "head"), ("0.weight", "0.weight")],
)
def test_group_names(dotted: str, name: str) -> None:
    assert group_name(dotted) == name


# --- nets ----------------------------------------------------------------------------------------


def net_with_gradients() -> tuple[tn.net.NetOp, tn.net.Scope]:
    net = tn.net.NetOp(
        [
            tn.net.Operator("matmul", ["x", "w"], ["h"]),
            tn.net.Operator("log_sigmoid", ["h"], ["a"]),
            tn.net.Operator("sum", ["a"], ["y"], {"axes": (0, 1), "keepdims": False}),
        ],
        "layer",
    )
    scope = tn.net.Scope({"x": np.ones((1, 2)), "w": np.ones((2, 2))})
    net.run(scope)
    tn.net.append_backward(net, scope, ["y"], ["w"])
    return net, scope


def test_a_net_with_its_backward_operators() -> None:
    net, scope = net_with_gradients()
    diagram = graph(net, scope=scope)
    phases = [(one.label, one.phase) for one in diagram.nodes if one.kind == "function"]
    assert phases[:3] == [("matmul", "forward"), ("log_sigmoid", "forward"), ("sum", "forward")]
    assert len(phases) > 5 and {phase for _, phase in phases[3:]} == {"backward"}
    assert len(phases) == len(net.flattened())
    assert node(diagram, "w").facts == ("(2, 2), float64", "input")
    assert node(diagram, "w@GRAD").marks == {"root"} and "root" not in node(diagram, "h").marks
    assert node(diagram, "h").rank == 1 and node(diagram, "a").rank == 2
    for kind in ("variable", "function"):
        assert "log_sigmoid_grad" in {one.group for one in diagram.nodes if one.kind == kind}
    assert diagram.title == "net layer"


def test_forward_and_backward_net_as_two_roots() -> None:
    x = named("x", 2)
    found = tn.trace(lambda x: functions.sum(functions.exp(x)), x)
    scope = tn.net.Scope({"x": x})
    found.net.run(scope)
    backward = tn.net.backward(found.net, scope)
    diagram = graph(found, backward)
    assert {one.phase for one in diagram.nodes} == {"forward", "backward"}
    assert [one.label for one in diagram.nodes].count("x") == 1
    assert node(diagram, found.outputs[0]).marks == {"root"}
    only = graph(backward)
    assert {one.phase for one in only.nodes if one.kind == "function"} == {"backward"}


def test_a_trace_knows_the_shapes_of_what_it_captured() -> None:
    w = named("w", 2, 2)
    diagram = graph(tn.trace(lambda x: x @ w, named("x", 1, 2)))
    assert node(diagram, "w").facts[0] == "(2, 2), float64"


def test_a_compiled_function_shows_the_last_net_and_its_gradient() -> None:
    compiled = tn.compile(
        lambda x: functions.sum(functions.sin(x) if x.size == 3 else functions.tan(x))
    )
    with pytest.raises(ValueError, match=r"graph: <lambda> has recorded no net yet.*Call it once"):
        graph(compiled)
    compiled(named("x", 2))
    compiled(named("x", 3)).backward()
    diagram = graph(compiled)
    assert "the last of 2 nets that were recorded" in diagram.notes
    phases = {one.label: one.phase for one in diagram.nodes if one.kind == "function"}
    assert phases["sin"] == "forward" and phases["cos"] == "backward"


def test_one_operator_and_an_output_that_nobody_asks_for() -> None:
    attrs = {"reduction": "mean", "ignore_label": -1}
    diagram = graph(tn.net.Operator("softmax_cross_entropy", ["x", "t"], ["y", "@EMPTY@"], attrs))
    assert node(diagram, "(not asked for)").marks == {"gone"}
    assert ("softmax_cross_entropy", "y") in arrows(diagram)


# --- what it does not do -------------------------------------------------------------------------


def test_drawing_keeps_nothing_alive_and_changes_nothing() -> None:
    gc.collect()
    gc.disable()
    try:
        x = named("x", 4)
        y = functions.sum(functions.exp(x) * x)
        y.backward(enable_double_backprop=True)
        function, array = y.creator_node, x.array
        data = [one.data for one in function.inputs]
        text = tn.show.text(y, x.grad_var)
        diagram = graph(y, x.grad_var)
        for write in (diagram.to_svg, diagram.to_dot, diagram.to_mermaid, diagram.to_text):
            assert write()
        assert tn.show.text(y, x.grad_var) == text and x.array is array
        assert [one.data for one in function.inputs] == data
        gone = [weakref.ref(one) for one in (x, y, x.node, y.node, function, x.grad_var)]
        del x, y, function
        assert [reference() for reference in gone] == [None] * 6
        assert diagram.nodes
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), ValueError, "graph: give at least one Variable or net"),
        ((3,), TypeError, r"graph: argument 0 must be a Variable, a net,.* got .*3"),
        ((named("x"), tn.net.NetOp()), TypeError, "graph: give Variables only or nets only"),
    ],
)
def test_wrong_roots(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        graph(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"limit": 0}, ValueError, "graph: limit must be at least 1 or None, got 0"),
        ({"direction": "up"}, ValueError, "graph: direction must be 'down' or 'right', got 'up'"),
        ({"model": 3}, TypeError, "graph: model must be a tinynode.nn.Module, got"),
        ({"gradients": [None]}, TypeError, r"graph: gradients\[0\] must be a Variable, got None"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        graph(named("x"), **options)


# --- folds and limits ----------------------------------------------------------------------------


def chain(length: int, *steps: Any) -> tn.Variable:
    h = named("x", 2)
    for _, function in zip(
        range(length), itertools.cycle(steps or (functions.sin,)), strict=False
    ):
        h = function(h)
    return h


def test_a_small_graph_is_not_folded_unless_asked() -> None:
    y = chain(40, functions.sin, functions.tanh)
    assert sum(one.kind == "function" for one in graph(y).nodes) == 40
    diagram = graph(y, fold=True)
    assert node(diagram, f"{TIMES} 18 more").facts == ("Sin, Tanh", "36 functions")
    assert sum(one.kind == "function" for one in diagram.nodes) == 4
    (middle,) = [one for one in diagram.nodes if one.kind == "fold"]
    assert [edge.source == middle.id for edge in diagram.edges].count(True) == 1
    assert [edge.target == middle.id for edge in diagram.edges].count(True) == 1


def test_equal_layers_fold_with_their_leaves() -> None:
    h = named("x", 2, 4)
    for i in range(40):
        h = functions.relu(functions.linear(h, named(f"w{i}", 4, 4), named(f"b{i}", 4)))
    diagram = graph(h, limit=100)
    fold = node(diagram, f"{TIMES} 38 more")
    assert fold.facts == ("Linear, ReLU", "76 functions", "76 leaves")
    labels = {one.label for one in diagram.nodes}
    assert {"w0.node", "b0.node", "w39.node", "b39.node"} <= labels and "w1.node" not in labels
    assert graph(h, fold=False, limit=None).nodes and len(graph(h, limit=None).nodes) == 241


def test_what_many_folded_functions_use_stays_with_a_count() -> None:
    x = named("x", 2)
    h = x
    for _ in range(30):
        h = h * x
    diagram = graph(h, fold=True)
    (fold,) = [one for one in diagram.nodes if one.kind == "fold"]
    (edge,) = [e for e in diagram.edges if e.source == node(diagram, "x.node").id and e.label]
    assert edge.target == fold.id and edge.label == f"{TIMES} {fold.facts[1].split()[0]}"


def test_what_is_used_behind_a_fold_is_drawn() -> None:
    states = [named("x", 2)]
    for _ in range(30):
        states.append(functions.sin(states[-1]))
    diagram = graph(states[-1] + states[15], fold=True)
    (fold,) = [one for one in diagram.nodes if one.kind == "fold"]
    from_fold = {edge.target for edge in diagram.edges if edge.source == fold.id}
    users = {edge.target for edge in diagram.edges if edge.source in from_fold}
    assert node(diagram, "Add").id in users
    layout(diagram.nodes, diagram.edges)  # no circle came about


def test_the_order_of_parallel_branches_does_not_matter() -> None:
    h = named("x", 2)
    for i in range(20):
        first, second = (functions.sin, functions.cos)[:: 1 if i % 3 else -1]
        h = first(h) + second(h)
    (fold,) = [one for one in graph(h, fold=True).nodes if one.kind == "fold"]
    assert fold.label == f"{TIMES} 18 more"


def test_a_root_in_a_fold_is_drawn() -> None:
    middle = chain(20)
    y = middle
    for _ in range(20):
        y = functions.sin(y)
    middle.name = "middle"
    assert "root" in node(graph(middle, y, fold=True), "middle.node").marks


def test_forward_and_backward_do_not_fold_into_one() -> None:
    diagram = Diagram()
    h = diagram.variable("x")
    for phase in ("forward", "backward"):
        for _ in range(8):
            y = diagram.variable("y", phase=phase)
            diagram.function("Multiply", inputs=[h], outputs=[y], phase=phase)
            h = y
    nodes, _ = fold_repeats(diagram.nodes, diagram.edges)
    found = [(one.label, one.phase) for one in nodes if one.kind == "fold"]
    assert found == [(f"{TIMES} 6 more", "forward"), (f"{TIMES} 6 more", "backward")]


def test_double_backprop_of_a_deep_chain_folds_both_ways() -> None:
    x = named("x", 2)
    h = x
    for _ in range(300):
        h = functions.sin(h)
    y = functions.sum(h)
    y.backward(enable_double_backprop=True)
    diagram = graph(y, x.grad_var)
    assert len(diagram.nodes) < 60
    assert {one.phase for one in diagram.nodes if one.kind == "fold"} == {"forward", "backward"}
    ET.fromstring(diagram.to_svg())


@pytest.mark.parametrize(
    ("codes", "runs"),
    [
        ([1, 1, 1], []),
        ([1, 1, 1, 1], [Run(0, 1, 4)]),
        ([0, 1, 2, 1, 2, 1, 2, 1, 2, 3], [Run(1, 2, 4)]),
        ([1] * 5 + [2, 3] * 5, [Run(0, 1, 5), Run(5, 2, 5)]),
        ([1, 1, 1, 1, 2] * 4, [Run(0, 5, 4)]),
        ([], []),
        ([1, 2, 3, 4, 5, 6], []),
    ],
)
def test_runs(codes: list[int], runs: list[Run]) -> None:
    assert find_runs(codes) == runs


@pytest.mark.parametrize("seed", range(20))
def test_runs_are_what_they_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes: list[int] = []
    for _ in range(rng.integers(1, 5)):
        block = rng.integers(0, 3, rng.integers(1, 6)).tolist()
        codes += block * int(rng.integers(1, 9))
    end = 0
    for run in find_runs(codes):
        assert run.start >= end and run.times >= 4
        block = codes[run.start : run.start + run.length]
        end = run.start + run.length * run.times
        assert codes[run.start : end] == block * run.times


def test_functions_of_other_shapes_are_not_equal() -> None:
    h = named("x", 64)
    for _ in range(6):
        h = functions.sin(h)[::2]
    assert not any(one.kind == "fold" for one in graph(h, fold=True).nodes)


def test_beyond_the_limit_what_is_nearest_to_the_roots_is_drawn() -> None:
    y = chain(50, functions.sin)
    diagram = graph(y, limit=11, fold=False)
    assert len(diagram.nodes) == 11 and "root" in diagram.nodes[-1].marks
    assert "and 90 more before these: graph(..., limit=None) draws all" in diagram.notes
    assert diagram.nodes[0].facts[-1] == "its function is left out"
    ranks = [one.rank for one in diagram.nodes if one.kind == "function"]
    assert ranks == [45, 46, 47, 48, 49]
    assert diagram.notes[-1] in diagram.to_text() and "90 more" in diagram.to_svg()


def test_a_function_that_is_drawn_has_all_its_inputs() -> None:
    y = named("a", 2)
    for i in range(20):
        y = functions.concat([y, named(f"b{i}", 2), named(f"c{i}", 2)])
    diagram = graph(y, limit=10, fold=False)
    for one in diagram.nodes:
        if one.kind == "function":
            assert sum(edge.target == one.id for edge in diagram.edges) == 3
    assert 10 <= len(diagram.nodes) <= 13


@pytest.mark.slow
def test_a_hundred_thousand_functions_in_a_few_seconds() -> None:
    y = chain(100_000, functions.sin, functions.tanh)
    start = time.process_time()
    diagram = graph(y)
    ET.fromstring(diagram.to_svg())
    assert time.process_time() - start < 20
    assert node(diagram, f"{TIMES} 49,998 more").facts[1] == "99,996 functions"
    assert len(diagram.nodes) < 20


# --- layouts -------------------------------------------------------------------------------------


def random_graph(seed: int, size: int) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """Boxes of many sizes, some in groups, with near and far arrows, and doubled ones."""
    rng = np.random.default_rng(seed)
    groups = [None, None, "a", "a.b", "a.c", "d"]
    nodes = [
        DiagramNode(
            f"v{i}",
            "variable" if i % 2 else "function",
            "n" * int(rng.integers(1, 20)),
            ("f" * int(rng.integers(0, 30)),) * int(rng.integers(0, 4)),
            group=groups[min(int(rng.integers(0, 6)), i // 4)],
        )
        for i in range(size)
    ]
    edges = []
    for i in range(1, size):
        for _ in range(int(rng.integers(0, 3))):
            back = int(rng.integers(1, min(i, 5) + 1)) if rng.random() < 0.8 else i
            phase = "backward" if rng.random() < 0.3 else "forward"
            edges.append(DiagramEdge(f"v{i - back}", f"v{i}", phase))
    return nodes, edges


def assert_no_overlap(places: Layout) -> None:
    boxes = sorted(places.position.values())
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(boxes, 2):
        apart = abs(x - x2) >= (w + w2) / 2 - 1e-6 or abs(y - y2) >= (h + h2) / 2 - 1e-6
        assert apart, "two boxes overlap"


def along(points: list[tuple[float, float]], turned: bool) -> list[tuple[float, float]]:
    """Points on the drawn curve, across and along the direction."""
    found = []
    for a, b in itertools.pairwise(points):
        (x, y), (x2, y2) = (a[::-1], b[::-1]) if turned else (a, b)
        for t in np.linspace(0, 1, 15):
            s = 1 - t
            middle = (y + y2) / 2
            bx = s**3 * x + 3 * s * s * t * x + 3 * s * t * t * x2 + t**3 * x2
            by = s**3 * y + 3 * s * s * t * middle + 3 * s * t * t * middle + t**3 * y2
            found.append((bx, by))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("seed", range(12))
def test_boxes_do_not_overlap_and_arrows_meet_none(seed: int, direction: str) -> None:
    nodes, edges = random_graph(seed, 10 + 6 * seed)
    places = layout(nodes, edges, direction)
    assert set(places.position) == {one.id for one in nodes}
    assert [(s, t) for s, t, _ in places.edges] == [(e.source, e.target) for e in edges]
    assert_no_overlap(places)
    turned = direction == "right"
    for one in nodes:
        x, y, w, h = places.position[one.id]
        assert (w, h) == box_size(one)
        assert x - w / 2 >= 0 and x + w / 2 <= places.width
        assert y - h / 2 >= 0 and y + h / 2 <= places.height
    for source, target, points in places.edges:
        across = [p[0] if turned else p[1] for p in points]
        assert across == sorted(across) and across[0] < across[-1], "arrows point down the layers"
        curve = along(points, turned)
        for other, box in places.position.items():
            x, y, w, h = (*box[1::-1], box[3], box[2]) if turned else box
            if other in (source, target):
                continue
            inside = [abs(a - x) < w / 2 - 1 and abs(b - y) < h / 2 - 1 for a, b in curve]
            assert not any(inside), f"{source} -> {target} runs through {other}"


@pytest.mark.parametrize("seed", range(12))
def test_groups_lie_around_their_boxes_and_no_others(seed: int) -> None:
    nodes, edges = random_graph(seed, 10 + 6 * seed)
    places = layout(nodes, edges)
    for one in nodes:
        x, y, w, h = places.position[one.id]
        expected = set()
        if one.group:
            expected = {one.group, one.group.partition(".")[0]}
        for a, b in itertools.product((x - w / 2, x, x + w / 2), (y - h / 2, y, y + h / 2)):
            around = {area.name for area in places.groups if holds(area.points, a, b)}
            assert around == expected
    for area in places.groups:
        if area.label:
            inside = [box for box in places.position.values() if holds(area.points, *box[:2])]
            top = min(y - h / 2 for _, y, _, h in inside)
            assert top - min(y for _, y in area.points) >= 14, "there is room for the name"
    firsts = [area.name for area in places.groups if area.label]
    assert len(firsts) == len(set(firsts)), "a group's name is written once"


def holds(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    """Whether a point lies in a polygon: a line to the right meets an odd number of its sides."""
    inside = False
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) / (y2 - y1) * (x2 - x1):
            inside = not inside
    return inside


def test_chains_are_straight_and_leaves_stand_aside() -> None:
    diagram = Diagram()
    h = diagram.variable("x")
    for i in range(10):
        w, y = diagram.variable(f"a long name of weight {i}"), diagram.variable(f"h{i}")
        diagram.function("MatMul", inputs=[h, w], outputs=[y])
        h = y
    places = layout(diagram.nodes, diagram.edges)
    xs = [places.position[one.id][0] for one in diagram.nodes if one.label[0] in "Mh"]
    assert max(xs) - min(xs) < 0.5
    for edge in diagram.edges:  # each leaf lies in the layer above its function, and beside it
        above, below = places.position[edge.source], places.position[edge.target]
        assert 0 < below[1] - above[1] < 100
        assert abs(above[0] - below[0]) < (above[2] + below[2]) / 2 + 40


def test_a_skip_connection_goes_around_a_straight_line() -> None:
    h = named("x", 3)
    for i in range(5):
        h = functions.linear(functions.tanh(h)[None], named(f"w{i}", 3, 3))[0] + h
    diagram = graph(h)
    places = layout(diagram.nodes, diagram.edges)
    main = [places.position[n.id][0] for n in diagram.nodes if n.rank or n.kind == "function"]
    assert max(main) - min(main) < 2


@pytest.mark.parametrize("seed", range(8))
def test_crossings_are_counted_and_the_best_order_is_kept(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, edges = random_graph(seed, 60)
    counts = []
    for rounds in range(1, 9):
        monkeypatch.setattr(layout_order, "_ROUNDS", rounds)
        grid = Grid(nodes, edges, turned=False)
        layout_order.put_in_order(grid)
        spot = {item: i for row in grid.rows for i, item in enumerate(row)}
        pairs = [[(a, b) for a in row for b in grid.down[a]] for row in grid.rows]
        crossings = [
            (spot[a] - spot[c]) * (spot[b] - spot[d]) < 0
            for row in pairs
            for (a, b), (c, d) in itertools.combinations(row, 2)
        ]
        neighbours = itertools.pairwise(grid.rows)
        found = [layout_order.crossings_between(grid, *pair) for pair in neighbours]
        assert sum(found) == sum(crossings)
        counts.append(sum(crossings))
    assert counts == sorted(counts, reverse=True), "more rounds are never worse"


def test_a_layout_uncrosses_what_can_be_uncrossed() -> None:
    nodes = [DiagramNode(f"v{i}", "variable", "x") for i in range(8)]
    edges = [DiagramEdge(f"v{i}", f"v{7 - i}") for i in range(4)]
    places = layout(nodes, edges)
    for source, target, _ in places.edges:
        assert places.position[source][0] == pytest.approx(places.position[target][0])


@pytest.mark.slow
def test_very_long_arrows_go_along_the_margin() -> None:
    size = 400
    nodes = [DiagramNode(f"v{i}", "variable", "x") for i in range(size)]
    edges = [DiagramEdge(f"v{i}", f"v{i + 1}") for i in range(size - 1)]
    edges += [DiagramEdge(f"v{i}", f"v{size - 1 - i}") for i in range(size // 2 - 1)]
    places = layout(nodes, edges)
    assert_no_overlap(places)
    lanes = [points for s, t, points in places.edges if int(t[1:]) - int(s[1:]) > 390]
    assert lanes and all(len(points) == 4 for points in lanes)
    for points in lanes:
        assert points[1][0] == points[2][0], "straight"
        assert points[1][0] < places.width
        for (x, y), (x2, y2, w, h) in itertools.product(
            along(points, False), places.position.values()
        ):
            assert abs(x - x2) >= w / 2 - 1 or abs(y - y2) >= h / 2 - 1


@pytest.mark.slow
def test_two_thousand_boxes_in_two_seconds() -> None:
    rng = np.random.default_rng(0)
    nodes = [DiagramNode(f"v{i}", "variable", f"n{i}") for i in range(2000)]
    back = rng.choice([1, 1, 2, 3, 50], 2000)
    edges = [DiagramEdge(f"v{max(0, i - back[i])}", f"v{i}") for i in range(1, 2000)]
    start = time.process_time()
    layout(nodes, edges)
    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("v0", "v1"), ("v1", "v0")], "layout: the edges lead in a circle, at v0, v1"),
        ([("v0", "v9")], "layout: the edge v0 -> v9 needs a node 'v9', which is not in the"),
    ],
)
def test_edges_that_cannot_be_drawn(edges: list[tuple[str, str]], message: str) -> None:
    nodes = [DiagramNode(f"v{i}", "variable", "x") for i in range(2)]
    with pytest.raises(ValueError, match=message):
        layout(nodes, [DiagramEdge(*ends) for ends in edges])


def test_other_layouts_that_cannot_be() -> None:
    nodes = [DiagramNode("v0", "variable", "x")] * 2
    with pytest.raises(ValueError, match="layout: two nodes have one id"):
        layout(nodes, [])
    with pytest.raises(ValueError, match="layout: direction must be 'down' or 'right', got 'up'"):
        layout([], [], "up")
    assert layout([], []).position == {}


# --- labels beside arrows ------------------------------------------------------------------------


def broadcasting() -> Diagram:
    """Two chains that meet, with a label on every edge: the picture of the course's step 11."""
    diagram = Diagram("a + b, with the repetition drawn")
    a, b = diagram.variable("a", "(3, 1)"), diagram.variable("b", "(4,)")
    wide_a = diagram.variable("a repeated", "(3, 4)")
    wide_b = diagram.variable("b repeated", "(3, 4)")
    y = diagram.variable("y", "(3, 4)", marks="root")
    diagram.function("BroadcastTo", inputs=[a], outputs=[wide_a])
    diagram.function("BroadcastTo", inputs=[b], outputs=[wide_b])
    diagram.function("Add", inputs=[wide_a, wide_b], outputs=[y])
    for edge in diagram.edges:
        edge.label = "g (3, 4), float64"
    return diagram


def diamond() -> Diagram:
    """Two ways from x to y, one past them, and two arrows between the same boxes."""
    diagram = Diagram("a diamond")
    x, a, b, y, z = [diagram.variable(name) for name in "xabyz"]
    diagram.function("Sin", inputs=[x], outputs=[a])
    diagram.function("Exp", inputs=[x], outputs=[b])
    diagram.function("Multiply", inputs=[a, b], outputs=[y])
    diagram.function("Sum", inputs=[y, y, x], outputs=[z])
    for number, edge in enumerate(diagram.edges):
        edge.label = f"{number}: " + "a long text " * (number % 5)
    return diagram


def random_labels(seed: int) -> Diagram:
    nodes, edges = random_graph(seed, 6 + seed)
    rng = np.random.default_rng(seed)
    for edge in edges:
        if rng.random() < 0.7:
            edge.label = str(
                rng.choice(["g", "l" * 15, "\N{CJK UNIFIED IDEOGRAPH-5E8F}" * 9, EVIL])
            )
    return Diagram("at random", nodes, edges)


LABELLED = [broadcasting, diamond, *[functools.partial(random_labels, i) for i in range(30)]]


def texts_beside(
    drawn: ET.Element, shift: tuple[float, float] = (0.0, 0.0)
) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The labels of arrows in an SVG and about the room that they take: ends, top and bottom."""
    found = []
    for one in drawn.iter(f"{SVG}text"):
        if "h" in one.get("class", "").split():
            text = one.text or ""
            x, y = float(one.get("x", 0)) - shift[0], float(one.get("y", 0)) - shift[1]
            half = sum(2 if letter > "\u2fff" else 1 for letter in text) * 6.2 / 2
            found.append((text, (x - half, x + half, y - 8, y + 2)))
    return found


def apart(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("make", LABELLED)
def test_a_label_meets_no_box_no_arrow_and_no_other_label(make: Any, direction: str) -> None:
    diagram = make()
    diagram.direction = direction
    places = layout(diagram.nodes, diagram.edges, direction)
    assert_no_overlap(places)
    drawn = ET.fromstring(diagram.to_svg())
    top = 24.0 if diagram.title else 0.0
    room = float(drawn.get("width", 0)), float(drawn.get("height", 0)) - top
    labels = texts_beside(drawn, ((room[0] - places.width) / 2, top))
    assert len(labels) == sum(bool(edge.label) for edge in diagram.edges)
    turned = direction == "right"
    curves = [along(points, turned) for _, _, points in places.edges]
    dots = np.array([p[::-1] if turned else p for curve in curves for p in curve])
    for number, (text, box) in enumerate(labels):
        assert box[0] >= 0 and box[1] <= room[0] and box[2] >= 0 and box[3] <= room[1], "cut"
        for x, y, w, h in places.position.values():
            assert apart(box, (x - w / 2, x + w / 2, y - h / 2, y + h / 2)), f"{text}: a box"
        assert all(apart(box, other) for _, other in labels[:number]), f"{text}: another label"
        met = (dots > (box[0], box[2])) & (dots < (box[1] + (0 if turned else 5), box[3]))
        assert not met.all(1).any(), f"{text}: an arrow runs through it"


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("make", LABELLED)
def test_a_label_is_beside_its_own_arrow(make: Any, direction: str) -> None:
    diagram = make()
    places = layout(diagram.nodes, diagram.edges, direction)
    assert set(places.labels) == {i for i, edge in enumerate(diagram.edges) if edge.label}
    for number, (x, y, w, h) in places.labels.items():
        points = places.edges[number][2]
        if direction == "right":
            assert any(a[0] <= x <= b[0] and a[1] == b[1] for a, b in itertools.pairwise(points))
            near = [a[1] - y - h / 2 for a, b in itertools.pairwise(points) if a[0] <= x <= b[0]]
        else:
            assert any(a[1] <= y <= b[1] and a[0] == b[0] for a, b in itertools.pairwise(points))
            near = [x - w / 2 - a[0] for a, b in itertools.pairwise(points) if a[1] <= y <= b[1]]
        assert near == [pytest.approx(6)]
        tx, ty, tw, th = places.position[diagram.edges[number].target]
        free = tx - tw / 2 - x - w / 2 if direction == "right" else ty - th / 2 - y - h / 2
        assert free >= 12, "there is room for the tip"


def test_labels_are_drawn_after_the_boxes_in_a_halo_and_escaped() -> None:
    diagram = by_hand()
    assert not texts_beside(ET.fromstring(diagram.to_svg()))
    diagram.edges[0].label = EVIL
    diagram.edges[1].label = "l" * 60
    written = diagram.to_svg()
    drawn = ET.fromstring(written)
    assert "<script" not in written
    texts = [text for text, _ in texts_beside(drawn)]
    assert sorted(texts) == sorted(
        [EVIL[:39].replace("\x07", "\N{REPLACEMENT CHARACTER}") + "…", "l" * 39 + "…"]
    )
    assert written.rindex("<rect") < written.index('class="m h s-panel f-text"')
    assert "paint-order:stroke" in written
    light, dark = written.split("@media")
    for part in light, dark:  # the halo has the colour of the background
        back = re.search(r"\.f-panel\{fill:(#\w+)", part)
        halo = re.search(r"\.s-panel\{stroke:(#\w+)", part)
        assert back and halo and back[1] == halo[1]


@pytest.mark.parametrize("direction", ["down", "right"])
def test_a_chain_with_labels_is_straight(direction: str) -> None:
    diagram = Diagram()
    h = diagram.variable("x")
    for i in range(10):
        w, y = diagram.variable(f"a long name of weight {i}"), diagram.variable(f"h{i}")
        diagram.function("MatMul", inputs=[h, w], outputs=[y])
        h = y
    for number, edge in enumerate(diagram.edges):
        edge.label = "l" * (number % 7)
    places = layout(diagram.nodes, diagram.edges, direction)
    axis = 1 if direction == "right" else 0
    middles = [places.position[one.id][axis] for one in diagram.nodes if one.label[0] in "Mh"]
    assert max(middles) - min(middles) < 0.5


@pytest.mark.slow
def test_labels_of_very_long_arrows() -> None:
    size = 400
    nodes = [DiagramNode(f"v{i}", "variable", "x") for i in range(size)]
    edges = [DiagramEdge(f"v{i}", f"v{i + 1}") for i in range(size - 1)]
    edges += [DiagramEdge(f"v{i}", f"v{size - 1 - i}", label="far") for i in range(size // 2 - 1)]
    places = layout(nodes, edges)
    assert_no_overlap(places)
    grid = Grid(nodes, edges, turned=False)
    for item, above in enumerate(grid.up):
        assert all(grid.layer[i] + 1 == grid.layer[item] for i in above)
    lanes = [i for i, (_, _, points) in enumerate(places.edges) if points[1][0] > 400]
    assert lanes and all(i in places.labels for i in lanes)
    boxes = np.array([*places.position.values(), *places.labels.values()])
    for number in lanes:
        curve = np.array(along(places.edges[number][2], False))[:, None]
        met = abs(curve - boxes[:, :2]) < boxes[:, 2:] / 2 - 1
        assert not met.all(2).any(), "it runs through a box or a label"


# --- a Diagram by hand ---------------------------------------------------------------------------


def by_hand() -> Diagram:
    diagram = Diagram("y = x * x")
    x = diagram.variable("x", "(3,)", marks="leaf")
    y = diagram.variable("y", "(3,)", marks={"root", "retained"})
    diagram.function("Square", inputs=[x], outputs=[y])
    return diagram


def test_a_diagram_by_hand() -> None:
    diagram = by_hand()
    assert [one.id for one in diagram.nodes] == ["v0", "v1", "f0"]
    assert [one.rank for one in diagram.nodes] == [0, 1, 0]
    assert str(diagram) == picture("""
        y = x * x

        x <- Square <- y

        y: rank 1, (3,)
        x: rank 0, (3,), leaf
    """)
    assert repr(diagram) == "<Diagram 'y = x * x' of 3 nodes>"


def test_wrong_diagrams_by_hand() -> None:
    diagram = by_hand()
    with pytest.raises(ValueError, match=r"Diagram.variable: marks must be some of .*'dead'"):
        diagram.variable("z", marks="dead")
    with pytest.raises(ValueError, match=r"Diagram: phase must be one of .* got 'sideways'"):
        diagram.variable("z", phase="sideways")
    with pytest.raises(ValueError, match=r"Diagram.function: Exp: .*'x' is no node of this"):
        diagram.function("Exp", inputs=["x"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Diagram: phase must be one of"):
        diagram.function("Exp", inputs=diagram.nodes[:1], phase="sideways")
    assert len(diagram.nodes) == 3 and len(diagram.edges) == 2, "nothing has changed"


# --- DOT, Mermaid, SVG, files --------------------------------------------------------------------


def test_the_dot_of_a_small_diagram() -> None:
    diagram = by_hand()
    w = diagram.variable("layers[0].w", group="layers[0]")
    diagram.function("Grad", inputs=[w], phase="backward", group="layers[0].inner")
    assert diagram.to_dot() == picture(r"""
        digraph {
            rankdir=TB;
            label="y = x * x"; labelloc=t;
            node [fontname="monospace", fontsize=10];
            edge [fontname="monospace"];
            v0 [label="x\n(3,)", shape=ellipse, color="#0072b2"];
            v1 [label="y\n(3,)", shape=ellipse, color="#0072b2", style="bold"];
            f0 [label="Square", shape=box, color="#0072b2"];
            subgraph cluster_0 {
                label="layers[0]"; color="#999999";
                v2 [label="w", shape=ellipse, color="#0072b2"];
                subgraph cluster_1 {
                    label="layers[0].inner"; color="#999999";
                    f1 [label="Grad", shape=box, color="#d55e00", style="dashed"];
                }
            }
            v0 -> f0;
            f0 -> v1;
            v2 -> f1 [style=dashed, color="#d55e00"];
        }
    """)


def test_the_mermaid_of_a_small_diagram() -> None:
    diagram = by_hand()
    w = diagram.variable("#1", group="layers[0]")
    diagram.function("Grad", inputs=[w], phase="backward", group="layers[0].inner")
    assert diagram.to_mermaid() == picture("""
        flowchart TD
            accTitle: y = x * x
            v0(["x<br/>(3,)"])
            v1(["y<br/>(3,)"])
            f0["Square"]
            subgraph g0["layers[0]"]
                v2(["#35;1"])
                subgraph g1["layers[0].inner"]
                    f1["Grad"]
                end
            end
            v0 --> f0
            f0 --> v1
            v2 -.-> f1
            classDef forward stroke:#0072b2
            classDef backward stroke:#d55e00,stroke-dasharray:5 3
            classDef root stroke-width:3px
            class v0,v1,f0,v2 forward
            class v1 root
            class f1 backward
    """)


def evil() -> Diagram:
    diagram = Diagram(EVIL, notes=[EVIL])
    x = diagram.variable(EVIL, EVIL, group=EVIL)
    y = diagram.variable("y", marks=("root", "gone"))
    diagram.function(EVIL, inputs=[x], outputs=[y], phase="backward")
    diagram.edges[0].label = EVIL
    return diagram


def test_every_text_is_escaped_in_svg() -> None:
    written = evil().to_svg()
    root = ET.fromstring(written)
    allowed = {"svg", "title", "desc", "style", "rect", "g", "text", "path"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= allowed
    assert "<script" not in written and "\x07" not in written
    texts = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert sum(text.startswith("<script>alert(") for text in texts) >= 4


class Tags(html.parser.HTMLParser):
    """Collects the tags of a page, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_every_text_is_escaped_in_html_and_mermaid() -> None:
    page = Tags(evil().to_html())
    assert "script" not in page.tags and {"html", "svg", "title"} <= page.tags
    assert any(text.startswith("<script>") for text in page.texts)
    mermaid = evil().to_mermaid()
    assert "<script" not in mermaid and "#lt;script#gt;" in mermaid
    for line in mermaid.splitlines()[2:]:
        rest = re.sub(r'"[^"]*"', "", line)  # what is not between quotes is ours
        assert re.fullmatch(r"[\w\s\[\]()>.|:#,;-]*|\s*%% .*", rest), line
    for text in re.findall(r'"([^"]*)"', mermaid):
        rest = re.sub(r"#\w+;|<br/>", "", text)
        assert not set(rest) & set('<>"`&;#%{}')


def test_every_text_is_quoted_in_dot() -> None:
    written = evil().to_dot()
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", written)
    assert "script" not in re.sub(r"//.*", "", outside) and "\x07" not in written
    assert "&amp;" in written and r"` \\ " in written


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz's program dot is not here")
@pytest.mark.parametrize("make", [evil, by_hand, lambda: graph(perceptron())])
def test_graphviz_reads_our_dot(make: Any) -> None:
    written = make().to_dot()
    done = subprocess.run(
        ["dot", "-Tsvg"], input=written, capture_output=True, encoding="utf-8", check=True
    )
    assert not done.stderr
    root = ET.fromstring(done.stdout.partition("<svg")[1] + done.stdout.partition("<svg")[2])
    texts = {one.text for one in root.iter() if one.tag.endswith("text")}
    labels = {one.label for one in make().nodes if one.label.isprintable()}
    assert labels <= texts
    if make is evil:
        assert any("<script>alert('x')</script> & \"#1;\"" in (text or "") for text in texts)


def test_the_svg_says_what_it_shows() -> None:
    x, y = double_backprop()
    root = ET.fromstring(graph(y, x.grad_var).to_svg())
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title" and root[0].text == "graph of y.node, x.grad"
    assert root[1].tag == f"{SVG}desc" and "4 functions: PowConstant(3)" in (root[1].text or "")
    assert "prefers-color-scheme: dark" in (root[2].text or "")
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert "x.node" in texts and "Multiply" in texts and "all on numpy" in texts
    words = "blue square: array retained; orange triangle: has a gradient; thick: asked for"
    assert f"{words}; dashed: backward" in texts
    looks = [(one.tag.removeprefix(SVG), one.get("class")) for one in root.iter()]
    nodes = graph(y, x.grad_var).nodes
    squares, triangles = ("rect", "f-forward s-panel"), ("path", "f-backward s-panel")
    for mark, look in (("retained", squares), ("gradient", triangles)):
        assert looks.count(look) == sum(mark in node.marks for node in nodes) > 0
    dashed = [one for one in root.iter(f"{SVG}rect") if one.get("stroke-dasharray")]
    assert len(dashed) == len([n for n in graph(y, x.grad_var).nodes if n.phase == "backward"])


def test_colour_is_never_the_only_mark() -> None:
    """What is backward is dashed, shapes differ by kind, and a mark's meaning is in the words."""
    diagram = Diagram()
    x, y = diagram.variable("x"), diagram.variable("y", marks="root")
    diagram.function("F", inputs=[x], outputs=[y])
    back, gone = diagram.variable("b", phase="backward"), diagram.variable("g", marks="gone")
    diagram.function("G", inputs=[back], outputs=[gone], phase="backward")
    drawn = ET.fromstring(diagram.to_svg())
    boxes = {group.findtext(f"{SVG}text"): group.find(f"{SVG}rect") for group in drawn}
    looks = {
        label: [box.get(name) for name in ("rx", "stroke-width", "stroke-dasharray")]
        for label, box in boxes.items()
        if box is not None
    }
    assert looks["F"] != looks["x"] and looks["G"] != looks["F"] and looks["b"] != looks["x"]
    assert looks["G"][2] == looks["b"][2] and looks["b"][2] and looks["x"][2] is None
    assert looks["g"][2] not in (None, looks["b"][2]) and looks["y"][1] != looks["x"][1]


def test_texts_fit_their_boxes() -> None:
    diagram = Diagram()
    long = diagram.variable("a" * 100, "b" * 100)
    wide = diagram.variable("日本語の変数名")
    assert box_size(long)[0] < 330 and box_size(wide)[0] > 100
    assert "a" * 39 + "…" in diagram.to_svg() and "a" * 100 in diagram.to_text()


def test_a_notebook_gets_svg_and_text() -> None:
    diagram = by_hand()
    assert diagram._repr_mimebundle_(include=None, exclude=None) == {
        "image/svg+xml": diagram.to_svg(),
        "text/plain": diagram.to_text(),
    }
    assert diagram._repr_svg_() == diagram.to_svg()


def test_a_picture_to_the_right() -> None:
    diagram = by_hand()
    diagram.direction = "right"
    drawn = ET.fromstring(diagram.to_svg())
    assert float(drawn.get("width", 0)) > float(drawn.get("height", 0))
    lines = [one.get("d", "") for one in drawn.iter(f"{SVG}path")]
    tips = [[float(x) for x in re.findall(r"[\d.]+", line)] for line in lines if line[-1] == "Z"]
    assert len(tips) == 2 and all(tip[0] > max(tip[2::2]) for tip in tips), "they point right"
    assert "rankdir=LR" in diagram.to_dot() and diagram.to_mermaid().startswith("flowchart LR")
    x, y = named("x", 3), named("y", 3)
    bent = graph(x * y + x, direction="right").to_svg()
    assert re.search(r'class="s-quiet".* d="M[\d.]+ ([\d.]+)C[\d.]+ \1 ', bent), "it leaves level"


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        (".svg", "<svg "),
        (".html", "<!DOCTYPE html>"),
        (".dot", "digraph {"),
        (".gv", "digraph {"),
        (".mmd", "flowchart TD"),
        (".md", "```mermaid\nflowchart TD"),
        (".txt", "y = x * x"),
        (".SVG", "<svg "),
    ],
)
def test_save(suffix: str, start: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture{suffix}"
    by_hand().save(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(start) and text.endswith("\n")
    by_hand().save(str(path))
    assert path.read_text(encoding="utf-8") == text


def test_a_png_is_twice_as_wide_as_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    diagram = by_hand()
    diagram.edges[0].label = "an arrow"
    wanted = float(ET.fromstring(diagram.to_svg()).get("width", 0)) * 2
    diagram.save(tmp_path / "a.png")
    with image.open(tmp_path / "a.png") as picture:
        assert abs(picture.size[0] - wanted) <= 1
        colours = {pixel for _, pixel in picture.convert("RGB").getcolors(1 << 20)}
    named = [tuple(bytes.fromhex(one[1:])) for one in (LIGHT.panel, LIGHT.forward_tint)]
    assert colours >= set(named)
    monkeypatch.setattr(pixels, "MOST_PIXELS", 10_000)
    diagram.save(tmp_path / "a.png")
    with image.open(tmp_path / "a.png") as picture:
        assert 9_000 < picture.size[0] * picture.size[1] < 11_000
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        diagram.save(tmp_path / "b.png")


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Diagram.save: the suffix of path must be one of \.svg"):
        by_hand().save(tmp_path / "a.pdf")
    with pytest.raises(FileNotFoundError, match=r"Diagram.save: the folder .*nowhere.* Make it"):
        by_hand().save(tmp_path / "nowhere" / "a.svg")
    assert not list(tmp_path.iterdir())


def test_a_large_diagram_is_laid_out_without_another_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    diagram = graph(chain(120, functions.sin), limit=None, fold=False)
    assert len(diagram.nodes) > 200
    ET.fromstring(diagram.to_svg())


def test_fold_repeats_leaves_a_graph_without_repeats_as_it_is() -> None:
    diagram = graph(perceptron())
    assert fold_repeats(diagram.nodes, diagram.edges) == (diagram.nodes, diagram.edges)


def test_a_gradient_that_is_not_in_a_list_is_refused() -> None:
    x = tn.Variable(np.ones(3))
    y = tn.functions.sum(x * x)
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    with pytest.raises(TypeError, match=r"gradients must be a list, got .* gradients=\[gx\]"):
        graph(y, gradients=gx)  # type: ignore[arg-type]

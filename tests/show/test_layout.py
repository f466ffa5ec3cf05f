"""tinynode.show.layout: the order of arguments, and leaves drawn again."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show import graph
from tinynode.show.graphs.diagram import Diagram
from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode
from tinynode.show.graphs.layout import layout
from tinynode.show.graphs.repeats import with_repeats

DIRECTIONS = ["down", "right"]


def named(name: str, *shape: int) -> tn.Variable:
    return tn.Variable(np.ones(shape), name=name)


def misplaced(
    nodes: list[DiagramNode], edges: list[DiagramEdge], direction: str
) -> list[tuple[str, str]]:
    """The pairs of neighbouring arguments that lie in the wrong order."""
    position = layout(nodes, edges, direction).position
    axis = 1 if direction == "right" else 0
    arguments: dict[str, list[str]] = {}
    for edge in edges:
        arguments.setdefault(edge.target, []).append(edge.source)
    return [
        (a, b)
        for sources in arguments.values()
        for a, b in itertools.pairwise(sources)
        if position[a][axis] > position[b][axis]
    ]


# --- the order of the arguments ------------------------------------------------------------------


def product() -> tn.Variable:
    return named("x", 3) * named("y", 3)


def leaf_before_result() -> tn.Variable:
    return named("y", 3) * functions.sin(named("x", 3))


def three_arguments() -> tn.Variable:
    x = named("x", 3)
    return functions.where(named("c", 3) > 0, x * x, named("y", 3))


def layers() -> tn.Variable:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    x, shift = [tn.Variable(np.ones((2, 4), "float32"), name=name) for name in ("x", "shift")]
    return functions.add(shift, second(functions.tanh(first(x))))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("make", [product, leaf_before_result, three_arguments, layers])
def test_inputs_lie_in_the_order_of_the_arguments(
    make: Callable[[], tn.Variable], direction: str
) -> None:
    diagram = graph(make())
    assert misplaced(diagram.nodes, diagram.edges, direction) == []


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_argument_used_again_does_not_turn_the_order(direction: str) -> None:
    """Of ``x * y + x``: the long arrow goes left of Multiply, so x stays left of y."""
    diagram = Diagram()
    x, y, product, z = [diagram.variable(name) for name in ("x", "y", "x * y", "z")]
    diagram.function("Multiply", inputs=[x, y], outputs=[product])
    diagram.function("Add", inputs=[product, x], outputs=[z])
    (pair,) = misplaced(diagram.nodes, diagram.edges, direction)
    assert pair == (product.id, x.id), "Add has no choice without a crossing"


def test_groups_change_places_as_a_whole() -> None:
    diagram = Diagram()
    w, b = [diagram.variable(name, group="layer") for name in "wb"]
    x = diagram.variable("x")
    y = diagram.variable("y")
    diagram.function("Linear", inputs=[x, w, b], outputs=[y])
    assert misplaced(diagram.nodes, diagram.edges, "down") == []


def test_labels_beside_arrows_keep_the_order() -> None:
    diagram = Diagram()
    b, a = diagram.variable("b"), diagram.variable("a")
    y = diagram.variable("y")
    diagram.function("Subtract", inputs=[a, b], outputs=[y])
    for edge in diagram.edges:
        edge.label = "(3,)"
    assert misplaced(diagram.nodes, diagram.edges, "down") == []


def test_crossings_weigh_more_than_the_order() -> None:
    diagram = Diagram()
    x, y, first, second = [diagram.variable(name) for name in ("x", "y", "x - y", "y - x")]
    diagram.function("Subtract", inputs=[x, y], outputs=[first])
    diagram.function("Subtract", inputs=[y, x], outputs=[second])
    assert len(misplaced(diagram.nodes, diagram.edges, "down")) == 1


def random_tree(seed: int) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """Functions of one to three arguments; each result is used once. The nodes are shuffled."""
    rng = random.Random(seed)
    nodes: list[DiagramNode] = [DiagramNode("v0", "variable", "y")]
    edges: list[DiagramEdge] = []
    waiting = [nodes[0]]
    while waiting and len(nodes) < 40:
        result = waiting.pop(rng.randrange(len(waiting)))
        function = DiagramNode(f"f{len(nodes)}", "function", "F")
        edges.append(DiagramEdge(function.id, result.id))
        nodes.append(function)
        for _ in range(rng.choice([1, 2, 2, 3])):
            argument = DiagramNode(f"v{len(nodes)}", "variable", "x" * rng.randint(1, 12))
            edges.append(DiagramEdge(argument.id, function.id))
            nodes.append(argument)
            waiting.append(argument)
    rng.shuffle(nodes)
    return nodes, edges


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(12))
def test_a_tree_has_all_arguments_in_order(seed: int, direction: str) -> None:
    assert misplaced(*random_tree(seed), direction) == []


# --- leaves drawn again --------------------------------------------------------------------------


def loop(length: int) -> Diagram:
    """``y = y + x``, many times."""
    diagram = Diagram()
    x, y = diagram.variable("x", "(3,)", marks={"leaf", "retained"}), diagram.variable("y")
    for _ in range(length):
        result = diagram.variable("y")
        diagram.function("Add", inputs=[y, x], outputs=[result])
        y = result
    return diagram


def test_a_short_loop_is_drawn_as_it_is() -> None:
    diagram = loop(7)
    assert with_repeats(diagram.nodes, diagram.edges) == (diagram.nodes, diagram.edges)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_leaf_with_distant_uses_is_drawn_beside_each(direction: str) -> None:
    diagram = loop(20)
    nodes, edges = with_repeats(diagram.nodes, diagram.edges)
    copies = [node for node in nodes if node.repeats]
    assert len(copies) == 19 and {node.repeats for node in copies} == {"v0"}
    assert all(not node.facts and node.marks == {"leaf"} for node in copies)
    assert [node for node in nodes if not node.repeats] == diagram.nodes
    first = {node.id: node.repeats or node.id for node in nodes}
    assert len(first) == len(nodes), "each box has its own id"
    again = [(first[edge.source], edge.target) for edge in edges]
    assert again == [(edge.source, edge.target) for edge in diagram.edges]
    places = layout(nodes, edges, direction)
    assert all(len(points) <= 4 for _, _, points in places.edges), "no arrow is long"
    assert misplaced(nodes, edges, direction) == []


def test_ids_of_further_boxes_are_free() -> None:
    diagram = loop(8)
    diagram.nodes[2].id = "v0_1"
    for edge in diagram.edges:
        edge.source = edge.source.replace("v2", "v0_1")
        edge.target = edge.target.replace("v2", "v0_1")
    nodes, edges = with_repeats(diagram.nodes, diagram.edges)
    assert len({node.id for node in nodes}) == len(nodes)
    layout(nodes, edges)


def test_computed_values_and_functions_are_not_drawn_again() -> None:
    diagram = loop(20)
    diagram.function("Constant", outputs=[diagram.nodes[0]])
    assert with_repeats(diagram.nodes, diagram.edges)[0] == diagram.nodes


def test_an_svg_draws_a_leaf_again_and_texts_do_not() -> None:
    y = named("x", 3)
    x = y
    for _ in range(10):
        y = y + x
    diagram = graph(y)
    svg = diagram.to_svg()
    assert svg.count(">x.node<") == 10 and svg.count(", drawn again<") == 9
    assert "slanted: a leaf drawn again" in svg and ">11 variables and 10 functions" in svg
    assert diagram.to_dot().count("x.node") == diagram.to_mermaid().count("x.node") == 1
    assert not any(node.repeats for node in diagram.nodes)
    assert "again" not in graph(named("x", 3) + 1).to_svg().partition("</style>")[2]


@pytest.mark.parametrize("is_computed", [False, True])
def test_a_long_loop_has_few_points_and_a_quick_layout(is_computed: bool) -> None:
    diagram = loop(400)
    if is_computed:
        diagram.function("Constant", outputs=[diagram.nodes[0]])
    start = time.process_time()
    nodes, edges = with_repeats(diagram.nodes, diagram.edges)
    places = layout(nodes, edges)
    assert time.process_time() - start < 1
    assert sum(len(points) for _, _, points in places.edges) < 5 * len(edges) + 20_000


# --- titles --------------------------------------------------------------------------------------


def test_a_title_has_the_name_in_the_script() -> None:
    code = "loss = F.sum(x * x)\nagain = loss\npicture = graph(loss)\nother = graph(loss * 2)\n"
    script = {"F": functions, "x": named("x", 3), "graph": graph, "__name__": "script"}
    exec(code, script)
    assert script["picture"].title == "graph of loss"
    assert script["other"].title == "graph of Multiply's output"


def test_a_title_has_the_function_of_a_root_without_a_name() -> None:
    x = named("x", 3)
    y = functions.exp(x)
    y.name = "y"
    assert graph(functions.sum(x), y, title=None).title == "graph of Sum's output, y.node"
    assert graph(tn.Variable(np.ones(3))).title == "graph of #1"


def test_a_title_has_the_local_name_in_the_call() -> None:
    loss = functions.sum(named("x", 3))
    several = [functions.exp(loss), loss]
    assert graph(loss).title == "graph of loss"
    assert graph(*several).title == "graph of Sum's output, Exp's output"
    assert graph(functions.sin(loss), loss).title == "graph of loss, Sin's output"
    picture = graph(
        loss,
    )
    assert picture.title == "graph of loss", "a call over several lines"

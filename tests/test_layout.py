"""tinynode.show.layout: the order of arguments, and leaves drawn again."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show import graph
from tinynode.show.diagram import Diagram
from tinynode.show.diagram_data import DiagramEdge, DiagramNode
from tinynode.show.layout import layout

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

"""Leaves drawn again beside distant uses.

Requirement: a reader sees each function's inputs beside the function. A parameter of a training
loop is used in every iteration, and the arrows would run past the whole picture. So a leaf with
distant uses gets a further box above each layer of uses. The arrows stay short, and the layout
stays quick.

The split is a step before the layout. Text, DOT and Mermaid show each leaf once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode
from tinynode.show.graphs.layout_grid import layers_of

_FAR = 12
"""A leaf with all uses within so many layers has a single box."""


def with_repeats(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge]
) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """The boxes and arrows, with further boxes for leaves with distant uses.

    A leaf is a variable without a creator. A further box has the leaf's id in ``repeats``, an
    own id (``"v0_1"``), the leaf's label and no facts. In the list, the box follows the leaf. The
    first uses keep the leaf's own box.

    Args:
        nodes: the boxes; none is changed.
        edges: the arrows.

    Returns:
        The boxes with the further boxes; and the arrows, as many as given and in the given order.

    Raises:
        ValueError: the edges form a cycle, or lead to a missing node.
    """
    layer = dict(zip([node.id for node in nodes], layers_of(nodes, edges), strict=True))
    computed = {edge.target for edge in edges}
    uses: dict[str, list[int]] = {}
    for number, edge in enumerate(edges):
        if edge.source not in computed:
            uses.setdefault(edge.source, []).append(number)
    target_layer = [layer[edge.target] for edge in edges]
    taken = set(layer)
    found = list(edges)
    drawn: list[DiagramNode] = []
    for node in nodes:
        drawn.append(node)
        if node.kind != "variable" or node.id not in uses:
            continue
        count = 0
        for numbers in _by_layer(uses[node.id], target_layer)[1:]:
            count += 1
            while f"{node.id}_{count}" in taken:
                count += 1
            copy = _repeat(node, f"{node.id}_{count}")
            drawn.append(copy)
            for number in numbers:
                found[number] = replace(edges[number], source=copy.id)
    return drawn, found


def _by_layer(uses: list[int], layer: list[int]) -> list[list[int]]:
    """The numbers of a leaf's arrows: by layers, or together if all uses are near."""
    found: dict[int, list[int]] = {}
    for number in uses:
        found.setdefault(layer[number], []).append(number)
    if max(found) - min(found) <= _FAR:
        return [uses]
    return [found[number] for number in sorted(found)]


def _repeat(node: DiagramNode, name: str) -> DiagramNode:
    """A further box of a leaf, with an id."""
    marks = node.marks & {"leaf", "no gradient"}
    return replace(node, id=name, facts=(), room=(0.0, 0.0), marks=marks, repeats=node.id)

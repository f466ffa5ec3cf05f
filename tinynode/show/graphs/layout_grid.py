"""Boxes in layers: the first step of the layout.

Requirement: every arrow leads from a layer to a later layer, and crosses the layers between
through bends (dummy vertices). A box lies one layer below the lowest of its inputs. Leaves lie
right above the first use, and so do gradients computed from leaves alone.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from tinynode.show.graphs.diagram_data import (
    DiagramEdge,
    DiagramNode,
    box_size,
    group_path,
    label_size,
)

LABEL_ASIDE = 6.0
"""Between an arrow and the label."""

_LABEL_PADDING = 4.0  # around a label elsewhere
_GAP = 20.0  # between boxes of a layer
_BEND_GAP = 10.0  # beside a bend
_GROUP_GAP = 12.0  # between a box and its group's outline, for each level,
_TURNED_GROUP_GAP = 18.0  # and with room for the groups' names
_TITLE_HEIGHT = 14.0  # of a group's name
_BENDS = 6  # bends for each node,
_SHARED = (
    10  # and bends of all arrows, shared ones counted again; further arrows: along the margin
)


class Grid:
    """Boxes and bends in layers, as numbers: the boxes in the given order, then the bends.

    Attributes:
        layer: the layer of each box and bend.
        up: the neighbours of each in the layer above; of a function, in the arguments' order.
        down: the neighbours of each in the layer below.
        paths: for each edge the boxes and bends from source to target; two without bends.
        rows: the boxes and bends of each layer, in order.
        before: the extent of each from the coordinate towards the start of the layer.
        behind: the extent of each towards the end of the layer.
        depth: the size of each across the layers.
        label_layers: the layers of labels and bends alone.
        labels: for the number of each edge with a label, the bend beside the label.
        groups: the group of each and the outer groups, outer first.
        coordinate: the middle of each along the layer.
        group_gap: between a box and the outline of the group.
        title_height: room for a group's name before the group's first layer.
    """

    def __init__(
        self, nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], turned: bool
    ) -> None:
        self.nodes = nodes
        self.edges = edges
        self.turned = turned
        self.group_gap = _TURNED_GROUP_GAP if turned else _GROUP_GAP
        self.title_height = 0.0 if turned else _TITLE_HEIGHT
        sizes = [box_size(node) for node in nodes]
        self.before = [size[1 if turned else 0] / 2 for size in sizes]
        self.behind = list(self.before)
        self.depth = [size[0 if turned else 1] for size in sizes]
        self.groups = [group_path(node.group) for node in nodes]
        self.ends = _ends(nodes, edges)
        self.layer, self.label_layers = _with_label_layers(
            _layers(nodes, self.ends), self.ends, edges
        )
        self.labels: dict[int, int] = {}
        self.up: list[list[int]] = [[] for _ in nodes]
        self.down: list[list[int]] = [[] for _ in nodes]
        self.paths: list[list[int]] = []
        self._add_bends()
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for item, layer in enumerate(self.layer):
            self.rows[layer].append(item)
        self.coordinate = [0.0] * len(self.layer)
        self.is_source = [not above for above in self.up]
        for _, target in self.ends:
            self.is_source[target] = False

    def is_bend(self, item: int) -> bool:
        return item >= len(self.nodes)

    def _add_bends(self) -> None:
        """Make the bends of each edge, the shortest edges first, up to the allowed number."""
        left = _BENDS * len(self.nodes) + 1000
        left_shared = _SHARED * len(self.nodes) + 10_000
        bends: dict[tuple[int, str, int], int] = {}
        paths: dict[int, list[int]] = {}
        for number in sorted(range(len(self.ends)), key=self._length):
            source, target = self.ends[number]
            label = self.edges[number].label
            first, last = self.layer[source] + 1, self.layer[target] - bool(label)
            path = [source]
            # else the arrow goes along the margin
            is_free = last - first <= min(left, left_shared)
            left_shared -= last - first if is_free else 0
            for layer in range(first, last if is_free else first):
                key = (source, self.edges[number].phase, layer)
                if key not in bends:
                    left -= 1
                    bends[key] = self._new_bend(layer, source, target)
                    self._join(path[-1], bends[key])
                path.append(bends[key])
            if label:
                path.append(self._label_bend(number, label))
                if is_free:
                    self._join(path[-2], path[-1])
            if (is_free or label) and target not in self.down[path[-1]]:
                self._join(path[-1], target)
            paths[number] = [*path, target]
        self.paths = [paths[number] for number in range(len(self.ends))]
        above: dict[int, dict[int, None]] = {}
        for path in self.paths:
            if path[-2] in self.up[path[-1]]:
                above.setdefault(path[-1], {})[path[-2]] = None
        for target, arguments in above.items():
            self.up[target] = list(arguments)

    def _length(self, number: int) -> int:
        source, target = self.ends[number]
        return self.layer[target] - self.layer[source]

    def _new_bend(self, layer: int, source: int, target: int) -> int:
        bend = len(self.layer)
        self.layer.append(layer)
        self.before.append(0.0)
        self.behind.append(0.0)
        self.depth.append(0.0)
        self.up.append([])
        self.down.append([])
        shared = zip(self.groups[source], self.groups[target], strict=False)
        self.groups.append(tuple(a for a, b in shared if a == b))
        return bend

    def _label_bend(self, number: int, label: str) -> int:
        """A bend in the layer before an edge's target, with room for the label on one side."""
        source, target = self.ends[number]
        bend = self._new_bend(self.layer[target] - 1, source, target)
        width, height = label_size(label)
        if self.turned:
            self.before[bend] = height + LABEL_ASIDE
            self.depth[bend] = width + 2 * _LABEL_PADDING
        else:
            self.behind[bend] = width + LABEL_ASIDE + _LABEL_PADDING
            self.depth[bend] = height
        self.labels[number] = bend
        return bend

    def _join(self, above: int, below: int) -> None:
        self.down[above].append(below)
        self.up[below].append(above)

    def gap(self, left: int, right: int) -> float:
        """The smallest distance between the middles of two neighbours."""
        bends = self.is_bend(left) + self.is_bend(right)
        shared = 0
        for a, b in zip(self.groups[left], self.groups[right], strict=False):
            if a != b:
                break
            shared += 1
        levels = len(self.groups[left]) + len(self.groups[right]) - 2 * shared
        between = (_GAP, (_GAP + _BEND_GAP) / 2, _BEND_GAP)[bends] + self.group_gap * levels
        return self.behind[left] + self.before[right] + between


def layers_of(nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge]) -> list[int]:
    """The layer of each node, without layers for labels.

    Raises:
        ValueError: two nodes have one id, an edge leads to no node, or the edges form a cycle.
    """
    return _layers(nodes, _ends(nodes, edges))


def _ends(nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge]) -> list[tuple[int, int]]:
    """The edges as numbers of nodes."""
    numbers = {node.id: i for i, node in enumerate(nodes)}
    if len(numbers) < len(nodes):
        raise ValueError("layout: two nodes have one id; each needs its own.")
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in numbers:
                raise ValueError(
                    f"layout: the edge {edge.source} -> {edge.target} needs a node {end!r}, "
                    "which is not in the diagram."
                )
    return [(numbers[edge.source], numbers[edge.target]) for edge in edges]


def _layers(nodes: Sequence[DiagramNode], ends: list[tuple[int, int]]) -> list[int]:
    """The layer of each node: below all inputs; a leaf lies right above the first use."""
    before: list[list[int]] = [[] for _ in nodes]
    after: list[list[int]] = [[] for _ in nodes]
    for source, target in ends:
        after[source].append(target)
        before[target].append(source)
    missing = [len(found) for found in before]
    ordered = [i for i, number in enumerate(missing) if number == 0]
    layers = [0] * len(nodes)
    for item in ordered:  # the list grows meanwhile
        for target in after[item]:
            layers[target] = max(layers[target], layers[item] + 1)
            missing[target] -= 1
            if missing[target] == 0:
                ordered.append(target)
    if len(ordered) < len(nodes):
        circle = [nodes[i].id for i, number in enumerate(missing) if number][:5]
        raise ValueError(
            f"layout: the edges lead in a circle, at {', '.join(circle)}. A graph of computation "
            "has none: give a value that is written again a node of its own."
        )
    for item in reversed(_floating(nodes, ordered, before, after)):
        if after[item]:
            layers[item] = min(layers[target] for target in after[item]) - 1
    return _packed(layers)


def _floating(
    nodes: Sequence[DiagramNode],
    ordered: list[int],
    before: list[list[int]],
    after: list[list[int]],
) -> list[int]:
    """Nodes that may lie lower: leaves, constants, and gradients computed from leaves alone.

    A backward pass starts from a leaf, the gradient of the root. The leaf is drawn beside the
    backward pass, not beside the forward pass.
    """
    floating: dict[int, None] = {}
    for item in ordered:
        near = before[item]
        free = nodes[item].phase == "backward" or (
            len(near) == 1 and not before[near[0]] and nodes[near[0]].kind != "variable"
        )
        if not near or (free and all(i in floating and len(after[i]) == 1 for i in near)):
            floating[item] = None
    return list(floating)


def _packed(layers: list[int]) -> list[int]:
    """The layers numbered anew without the empty layers."""
    numbers = {layer: number for number, layer in enumerate(sorted(set(layers)))}
    return [numbers[layer] for layer in layers]


def _with_label_layers(
    layers: list[int], ends: list[tuple[int, int]], edges: Sequence[DiagramEdge]
) -> tuple[list[int], frozenset[int]]:
    """The layers numbered anew, with a layer of labels before each target of a labelled edge."""
    labelled = {layers[end[1]] for end, edge in zip(ends, edges, strict=True) if edge.label}
    before = sorted(labelled)
    moved = [layer + bisect.bisect_right(before, layer) for layer in layers]
    return moved, frozenset(layer + number for number, layer in enumerate(before))

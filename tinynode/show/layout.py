"""Where the boxes and arrows of a picture go: a layered layout.

Requirement: a graph of computation is read along its data, so every arrow leads from a layer to a
later one, boxes never overlap, no arrow runs through a box, and what is a chain is a straight
line. What is written beside an arrow meets no box, no arrow, and no other such label. It must not
take an outside program, and 2,000 boxes must not take more than two seconds.

The steps are those of K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of
hierarchical system structures", 1981:

    layers      a box lies one layer below the lowest of those that it depends on: for functions
                that is the order of their ranks. Leaves lie right above what uses them first;
                so does what a backward pass computes of leaves alone.
    labels      arrows with labels get a further layer, right above where they end, in which each
                has a bend as wide as its label
    bends       an arrow over several layers gets a bend in each; arrows from one box share them
    order       sweeps up and down the layers, each box at the mean place of its neighbours; the
                order with the fewest crossings is kept (crossings counted after W. Barth,
                M. Juenger and P. Mutzel, 2002)
    places      each layer takes the places that are nearest to what its neighbours ask for and
                do not overlap: isotonic regression, by pooling adjacent violators
"""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tinynode.show.layout_order import put_in_order

if TYPE_CHECKING:
    from tinynode.show.diagram import DiagramEdge, DiagramNode

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]
"""Centre, width and height, in pixels."""

LABEL_WIDTH = 7.3
"""Width of a letter of a label, in pixels: 12 px monospace."""
FACT_WIDTH = 6.2
"""Width of a letter of a fact: 10 px monospace."""
LONGEST_TEXT = 40
"""Longer texts are cut, in pictures."""

_MARGIN = 16.0
_GAP = 20.0  # between boxes of a layer
_BEND_GAP = 10.0  # beside a bend
_LAYER_GAP = 28.0
_GROUP_GAP = 12.0  # between a box and the edge of its group, for each level,
_TURNED_GROUP_GAP = 18.0  # where names of groups lie in it
_TITLE_HEIGHT = 14.0  # of a group's name
_ROUNDS = 4
_LABEL_HEIGHT = 13.0
_LABEL_ASIDE = 6.0  # between an arrow and its label,
_LABEL_PADDING = 4.0  # and around the label elsewhere
_BENDS = 6  # for each node; what is more goes along the margin
_BEND_WEIGHT = 1e-3  # a bend stands aside for a box,
_LEAF_WEIGHT = 1e-6  # and a leaf for what is computed


@dataclass
class GroupArea:
    """The outline of a module's boxes.

    Attributes:
        name: its dotted name.
        label: what is written in it: the name without that of the group around it. Empty in the
            further parts of a group that has several.
        points: the corners.
    """

    name: str
    label: str
    points: list[Point]


@dataclass
class Layout:
    """Where everything goes, in pixels from the upper left.

    Attributes:
        position: for each node's id its centre, width and height.
        edges: for each edge, in the order given: source, target, and the points it goes through.
            Between two points an arrow runs straight, or in a curve that is upright at both ends
            (level, where the direction is ``"right"``): then it meets no box.
        width: of the whole picture.
        height: of the whole picture.
        groups: outlines of groups, outer before inner; a group in several parts has several.
        direction: ``"down"`` or ``"right"``.
        is_bezier: the points are those of cubic Bezier curves, as graphviz gives them.
        labels: for the number of each edge that has a label, where that is written: centre, width
            and height. It is right of the arrow, or above it in the direction ``"right"``.
    """

    position: dict[str, Box] = field(default_factory=dict)
    edges: list[tuple[str, str, list[Point]]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    groups: list[GroupArea] = field(default_factory=list)
    direction: str = "down"
    is_bezier: bool = False
    labels: dict[int, Box] = field(default_factory=dict)


def text_columns(text: str) -> int:
    """How many columns of a monospace font a text takes; wide characters take two."""
    columns = 0
    for letter in text:
        if not unicodedata.combining(letter):
            columns += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
    return columns


def cut(text: str) -> str:
    """A text that is not longer than pictures have room for."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def short_label(node: DiagramNode) -> str:
    """A node's label as pictures show it: in the box of a module without the module's name."""
    return cut(node.label.removeprefix(f"{node.group}.") if node.group else node.label)


def box_size(node: DiagramNode) -> tuple[float, float]:
    """Width and height of a node's box: room for its texts."""
    widest = text_columns(short_label(node)) * LABEL_WIDTH
    for fact in node.facts:
        widest = max(widest, text_columns(cut(fact)) * FACT_WIDTH)
    return max(44.0, widest + 20), 24.0 + 13 * len(node.facts)


def label_size(label: str) -> tuple[float, float]:
    """Width and height of what is written beside an arrow."""
    return text_columns(cut(label)) * FACT_WIDTH, _LABEL_HEIGHT


def layout(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], direction: str = "down"
) -> Layout:
    """Places for the boxes, and paths for the arrows between them.

    Args:
        nodes: the boxes; those that come first tend to lie further to the left.
        edges: the arrows; each must lead from node to node, and never in a circle.
        direction: where the arrows lead: ``"down"`` or ``"right"``.

    Raises:
        ValueError: the direction is another, two nodes have one id, an edge leads to no node, or
            the edges lead in a circle.
    """
    if direction not in ("down", "right"):
        raise ValueError(f"layout: direction must be 'down' or 'right', got {direction!r}.")
    grid = Grid(nodes, edges, direction == "right")
    put_in_order(grid)
    _place(grid)
    return _Drawing(grid).finished()


class Grid:
    """Boxes and bends in layers, as numbers: boxes first, as they were given, bends behind.

    Attributes:
        layer: the layer of each box and bend.
        up: what each has as neighbours in the layer above.
        down: likewise below.
        paths: for each edge the boxes and bends from source to target; two where it has no bends.
        rows: the boxes and bends of each layer, in their order.
        before: how far each reaches from its place along its layer, towards the layer's start;
        behind: likewise towards its end.
        depth: its size across the layers.
        label_layers: those that hold nothing but labels, and bends of arrows that go through.
        labels: for the number of each edge with a label, the bend that the label lies beside.
        groups: the group of each, and those around it, outer first.
        place: where along the layer its middle lies.
        group_gap: between a box and the edge of its group.
        title_height: room for a group's name before its first layer.
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
        self.place = [0.0] * len(self.layer)
        self.is_source = [not above for above in self.up]
        for _, target in self.ends:
            self.is_source[target] = False

    def is_bend(self, item: int) -> bool:
        return item >= len(self.nodes)

    def _add_bends(self) -> None:
        """Make the bends of each edge, the shortest edges first, as many as there may be."""
        left = _BENDS * len(self.nodes) + 1000
        bends: dict[tuple[int, str, int], int] = {}
        paths: dict[int, list[int]] = {}
        for number in sorted(range(len(self.ends)), key=self._length):
            source, target = self.ends[number]
            label = self.edges[number].label
            first, last = self.layer[source] + 1, self.layer[target] - bool(label)
            path = [source]
            is_free = last - first <= left  # else it goes along the margin
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
        """A bend in the layer before an edge's target, with room for its label on one side."""
        source, target = self.ends[number]
        bend = self._new_bend(self.layer[target] - 1, source, target)
        width, height = label_size(label)
        if self.turned:
            self.before[bend] = height + _LABEL_ASIDE
            self.depth[bend] = width + 2 * _LABEL_PADDING
        else:
            self.behind[bend] = width + _LABEL_ASIDE + _LABEL_PADDING
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


def group_name(dotted: str) -> str:
    """A module's name as one writes it in Python: ``layers[0].linear`` for ``layers.0.linear``."""
    words: list[str] = []
    for word in dotted.split("."):
        if word.isdigit() and words:
            words[-1] += f"[{word}]"
        else:
            words.append(word)
    return ".".join(words)


def group_path(group: str | None) -> tuple[str, ...]:
    """A group and those around it, outer first: ``("a", "a.b")`` for ``"a.b"``."""
    if not group:
        return ()
    words = group.split(".")
    return tuple(".".join(words[: i + 1]) for i in range(len(words)))


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
    """The layer of each node: below all that it depends on; leaves right above their first use."""
    before: list[list[int]] = [[] for _ in nodes]
    after: list[list[int]] = [[] for _ in nodes]
    for source, target in ends:
        after[source].append(target)
        before[target].append(source)
    missing = [len(found) for found in before]
    ordered = [i for i, number in enumerate(missing) if number == 0]
    layers = [0] * len(nodes)
    for item in ordered:  # which grows meanwhile
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
    """What may lie lower than it must: leaves, constants, and what is backward and made of these.

    A backward pass starts from a leaf, the gradient of its root; it is drawn where it is used, not
    beside the forward pass.
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
    """The layers numbered anew, where some are empty."""
    numbers = {layer: number for number, layer in enumerate(sorted(set(layers)))}
    return [numbers[layer] for layer in layers]


def _with_label_layers(
    layers: list[int], ends: list[tuple[int, int]], edges: Sequence[DiagramEdge]
) -> tuple[list[int], frozenset[int]]:
    """The layers numbered anew, with one for labels before each where such an edge ends."""
    labelled = {layers[end[1]] for end, edge in zip(ends, edges, strict=True) if edge.label}
    before = sorted(labelled)
    moved = [layer + bisect.bisect_right(before, layer) for layer in layers]
    return moved, frozenset(layer + number for number, layer in enumerate(before))


# --- places along the layers ---------------------------------------------------------------------


def _place(grid: Grid) -> None:
    """Give each box and bend its place in its layer."""
    for row in grid.rows:
        _settle(grid, row, dict.fromkeys(row, (0.0, 1.0)))
    for _ in range(_ROUNDS):
        _sweep_places(grid, downwards=False)
        _sweep_places(grid, downwards=True)


def _sweep_places(grid: Grid, downwards: bool) -> None:
    """Move each layer to where its neighbours in the layer before ask it to be."""
    rows = grid.rows if downwards else grid.rows[::-1]
    for row in rows:
        wanted = {}
        for item in row:
            near = grid.up[item] if downwards else grid.down[item]
            seen = _through_labels(grid, item, downwards)
            weight = _BEND_WEIGHT if grid.is_bend(seen) else 1.0
            is_upwards = downwards if near else not downwards
            if not near:
                near = grid.down[item] if downwards else grid.up[item]
                weight = _LEAF_WEIGHT
            elif grid.is_source[seen]:
                weight = _LEAF_WEIGHT
            chosen = _leading(grid, near, is_upwards)
            if chosen:
                middle = sum(grid.place[other] for other in chosen) / len(chosen)
            else:
                middle = grid.place[item]
            wanted[item] = (middle, weight)
        _settle(grid, row, wanted)


def _leading(grid: Grid, near: list[int], upwards: bool) -> list[int]:
    """The neighbours that decide: what is computed goes before bends, and these before leaves."""
    seen = {i: _through_labels(grid, i, upwards) for i in near}
    linked = [i for i in near if not grid.is_source[seen[i]]]
    return [i for i in linked if not grid.is_bend(seen[i])] or linked or near


def _through_labels(grid: Grid, item: int, upwards: bool) -> int:
    """What lies behind a bend in a layer of labels, as if that layer were not there."""
    if grid.layer[item] not in grid.label_layers:
        return item
    others = grid.up[item] if upwards else grid.down[item]
    return others[0] if others else item


def _settle(grid: Grid, row: list[int], wanted: dict[int, tuple[float, float]]) -> None:
    """The places nearest to those that are wanted, in the row's order, without overlap.

    Boxes that would overlap are pooled into a block, which goes to the weighted mean of what its
    members want: the least sum of weighted squares.
    """
    offsets, offset = [], 0.0
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of members
    for number, item in enumerate(row):
        if number:
            offset += grid.gap(row[number - 1], item)
        offsets.append(offset)
        middle, weight = wanted[item]
        mean, count = middle - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_count = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight += other_weight
            count += other_count
        blocks.append((mean, weight, count))
    number = 0
    for mean, _, count in blocks:
        for _ in range(count):
            grid.place[row[number]] = mean + offsets[number]
            number += 1


# --- from places to pixels -----------------------------------------------------------------------


class _Drawing:
    """Turns places in layers into pixels."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.titles = self._title_levels()
        left = [place - size for place, size in zip(grid.place, grid.before, strict=True)]
        padding = grid.group_gap * max((len(path) for path in grid.groups), default=0)
        shift = _MARGIN + padding - min(left, default=0.0)
        grid.place = [place + shift for place in grid.place]
        right = [place + size for place, size in zip(grid.place, grid.behind, strict=True)]
        self.breadth = max(right, default=0.0) + padding
        self.top: list[float] = []
        self.bottom: list[float] = []
        at = _MARGIN
        for number, row in enumerate(grid.rows):
            at += self._gap_before(number)
            self.top.append(at)
            at += max(grid.depth[item] for item in row)
            self.bottom.append(at)
        self.length = at + _MARGIN + (padding and grid.group_gap)

    def _title_levels(self) -> list[int]:
        """For each layer, how many groups that lie in each other begin there.

        Notes the same for each group: how many names stand above its first boxes.
        """
        first: dict[str, int] = {}
        for number, row in enumerate(self.grid.rows):
            for item in row:
                for name in self.grid.groups[item]:
                    first.setdefault(name, number)
        levels = [0] * len(self.grid.rows)
        self.names_above = dict.fromkeys(first, 1)
        for name in sorted(first, key=_levels, reverse=True):
            outer = name.rpartition(".")[0]
            if first.get(outer) == first[name]:
                more = self.names_above[name] + 1
                self.names_above[outer] = max(self.names_above[outer], more)
            levels[first[name]] = max(levels[first[name]], self.names_above[name])
        return levels

    def _gap_before(self, number: int) -> float:
        """The space above a layer: more where arrows go far to the side, or groups begin."""
        titles = self.titles[number] * self.grid.title_height
        if number == 0:
            return titles
        farthest = 0.0
        for item in self.grid.rows[number]:
            for other in self.grid.up[item]:
                farthest = max(farthest, abs(self.grid.place[item] - self.grid.place[other]))
        if {number, number - 1} & self.grid.label_layers:
            least = _LAYER_GAP if any(self.grid.groups) else _LAYER_GAP / 2
            return titles + min(least + farthest / 3, 3 * _LAYER_GAP)
        return titles + min(_LAYER_GAP + farthest / 14, 3 * _LAYER_GAP)

    def finished(self) -> Layout:
        grid = self.grid
        result = Layout(direction="right" if grid.turned else "down")
        for item, node in enumerate(grid.nodes):
            x, y = self._turn((grid.place[item], self._middle(item)))
            width, height = self._turn((2 * grid.behind[item], grid.depth[item]))
            result.position[node.id] = (x, y, width, height)
        margin = self.breadth
        parallel: dict[tuple[int, int], int] = {}
        for path in grid.paths:
            ends = (path[0], path[-1])
            parallel[ends] = parallel.get(ends, 0) + 1
        seen: dict[tuple[int, int], int] = {}
        for edge, path in zip(grid.edges, grid.paths, strict=True):
            ends = (path[0], path[-1])
            seen[ends] = seen.get(ends, 0) + 1
            aside = (seen[ends] - (parallel[ends] + 1) / 2) * 12
            points = self._points(path, aside, margin)
            result.edges.append((edge.source, edge.target, [self._turn(p) for p in points]))
            self.breadth = max(self.breadth, *(x for x, _ in points))
        for number, bend in grid.labels.items():
            result.labels[number] = self._label_box(grid.edges[number].label, bend)
        result.groups = self._areas()
        result.width, result.height = self._turn((self.breadth + _MARGIN, self.length))
        return result

    def _turn(self, point: Point) -> Point:
        return (point[1], point[0]) if self.grid.turned else point

    def _middle(self, item: int) -> float:
        """Boxes of one layer are level at the top, where the arrows come in."""
        return self.top[self.grid.layer[item]] + self.grid.depth[item] / 2

    def _label_box(self, label: str, bend: int) -> Box:
        """Where a label is written: beside the arrow, in the middle of the layer of labels."""
        width, height = label_size(label)
        place, layer = self.grid.place[bend], self.grid.layer[bend]
        middle = (self.top[layer] + self.bottom[layer]) / 2
        if self.grid.turned:
            return middle, place - _LABEL_ASIDE - height / 2, width, height
        return place + _LABEL_ASIDE + width / 2, middle, width, height

    def _points(self, path: list[int], aside: float, margin: float) -> list[Point]:
        """The points that an arrow goes through; along the margin if it is long and has no bends.

        At a bend it goes straight through the whole layer, between the boxes.
        """
        grid = self.grid
        source, target = path[0], path[-1]
        start_y = self._middle(source) + grid.depth[source] / 2
        end_y = self._middle(target) - grid.depth[target] / 2
        second = grid.place[path[1]]
        last_but_one = grid.place[path[-2]]
        after = grid.layer[path[1]]
        if after - grid.layer[source] > 1:
            lane = margin + 12 + 6 * (source % 8)
            first, last = self.bottom[grid.layer[source]] + 12, self.top[after] - 12
            points = [(grid.place[source], start_y), (lane, first), (lane, last)]
            if len(path) == 2:
                return [*points, (grid.place[target], end_y)]
        else:
            points = [(self._port(source, second) + aside, start_y)]
            if self.bottom[grid.layer[source]] > start_y:  # below the taller boxes of its layer
                points.append((points[0][0], self.bottom[grid.layer[source]]))
        for item in path[1:-1]:
            row = grid.layer[item]
            points += [(grid.place[item], self.top[row]), (grid.place[item], self.bottom[row])]
        points.append((self._port(target, last_but_one) + aside, end_y))
        return _without_needless(points)

    def _port(self, item: int, other: float) -> float:
        """Where on its edge an arrow meets a box: towards the other end, off the corners."""
        room = max(0.0, self.grid.behind[item] - 12)
        step = (other - self.grid.place[item]) / 4
        return self.grid.place[item] + max(-room, min(room, step))

    # --- outlines of groups -------------------------------------------------------------------

    def _areas(self) -> list[GroupArea]:
        """The outlines of all groups: each layer's stretch, joined where they touch."""
        stretches: dict[str, dict[int, tuple[float, float]]] = {}
        deepest: dict[str, int] = {}
        for item, path in enumerate(self.grid.groups):
            low = self.grid.place[item] - self.grid.before[item]
            high = self.grid.place[item] + self.grid.behind[item]
            layer = self.grid.layer[item]
            for depth, name in enumerate(path):
                pad = self.grid.group_gap * (len(path) - depth) - 4
                rows = stretches.setdefault(name, {})
                old = rows.get(layer, (low - pad, high + pad))
                rows[layer] = (min(old[0], low - pad), max(old[1], high + pad))
                deepest[name] = max(deepest.get(name, 0), len(path) - depth)
        areas = []
        for name in sorted(stretches, key=_levels):
            areas += self._parts(name, stretches[name], deepest[name])
        return areas

    def _parts(
        self, name: str, rows: dict[int, tuple[float, float]], levels: int
    ) -> list[GroupArea]:
        """The outlines of one group: a new one where a layer does not touch the one before."""
        parts: list[list[int]] = []
        for layer in sorted(rows):
            previous = parts[-1][-1] if parts else -2
            touches = previous == layer - 1 and (
                rows[previous][0] < rows[layer][1] and rows[layer][0] < rows[previous][1]
            )
            if touches:
                parts[-1].append(layer)
            else:
                parts.append([layer])
        label = name.rpartition(".")[2]
        names_above = [self.names_above[name], *([0] * (len(parts) - 1))]
        return [
            GroupArea(name, "" if i else label, self._outline(part, rows, levels, above))
            for i, (part, above) in enumerate(zip(parts, names_above, strict=True))
        ]

    def _outline(
        self,
        part: list[int],
        rows: dict[int, tuple[float, float]],
        levels: int,
        names_above: int,
    ) -> list[Point]:
        """Down the right side, and up the left one."""
        right: list[Point] = []
        left: list[Point] = []
        pad = min(4.0 + 3 * levels, _LAYER_GAP / 2)
        for layer in part:
            is_first, is_last = layer == part[0], layer == part[-1]
            top = self.top[layer] - pad - self.grid.title_height * names_above
            if not is_first:
                top = (self.bottom[layer - 1] + self.top[layer]) / 2
            bottom = self.bottom[layer] + pad
            if not is_last:
                bottom = (self.bottom[layer] + self.top[layer + 1]) / 2
            low, high = rows[layer]
            left += [(low, top), (low, bottom)]
            right += [(high, top), (high, bottom)]
        return [self._turn(point) for point in _without_needless([*right, *reversed(left)])]


def _levels(name: str) -> tuple[int, str]:
    return name.count("."), name


def _without_needless(points: list[Point]) -> list[Point]:
    """The points without those on a straight line between their neighbours."""
    kept: list[Point] = []
    for i, point in enumerate(points):
        if kept and i + 1 < len(points):
            before, after = kept[-1], points[i + 1]
            if before[0] == point[0] == after[0] or before[1] == point[1] == after[1]:
                continue
        kept.append(point)
    return kept

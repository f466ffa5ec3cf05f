"""From coordinates in layers to pixels: the last step of the layout.

Requirement: no arrow runs through a box, and the outline of a module holds no other boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tinynode.show.graphs.diagram_data import label_size
from tinynode.show.graphs.layout_grid import LABEL_ASIDE, Grid

Point: TypeAlias = tuple[float, float]
CentredBox: TypeAlias = tuple[float, float, float, float]
"""Centre, width and height, in pixels."""

_MARGIN = 16.0
_LAYER_GAP = 28.0


@dataclass
class GroupArea:
    """The outline of a module's boxes.

    Attributes:
        name: the module's dotted name.
        label: the text in the outline: the last word of the name; empty in the second and further
            parts of a group.
        points: the corners.
    """

    name: str
    label: str
    points: list[Point]


@dataclass
class Layout:
    """The geometry of a picture, in pixels from the upper left.

    Attributes:
        position: for each node's id the box's centre, width and height.
        edges: for each edge, in the given order: source, target, and the points of the arrow.
            Between two points an arrow runs straight, or in a curve. The curve is upright at both
            ends (level in the direction ``"right"``), so the arrow meets no box.
        width: of the whole picture.
        height: of the whole picture.
        groups: outlines of groups, outer before inner; a group has one for each of its parts.
        direction: ``"down"`` or ``"right"``.
        labels: for the number of each edge with a label, the label's centre, width and height.
            The label is right of the arrow, or above it in the direction ``"right"``.
    """

    position: dict[str, CentredBox] = field(default_factory=dict)
    edges: list[tuple[str, str, list[Point]]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    groups: list[GroupArea] = field(default_factory=list)
    direction: str = "down"
    labels: dict[int, CentredBox] = field(default_factory=dict)


def to_pixels(grid: Grid) -> Layout:
    """The layout of boxes and bends with coordinates."""
    return _PixelLayout(grid).finished()


class _PixelLayout:
    """Turns coordinates in layers into pixels."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.titles = self._title_levels()
        left = [at - size for at, size in zip(grid.coordinate, grid.before, strict=True)]
        padding = grid.group_gap * max((len(path) for path in grid.groups), default=0)
        shift = _MARGIN + padding - min(left, default=0.0)
        grid.coordinate = [at + shift for at in grid.coordinate]
        right = [at + size for at, size in zip(grid.coordinate, grid.behind, strict=True)]
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
        """For each layer, the number of nested groups that begin there.

        Sets ``names_above`` too: for each group, the number of names above its first boxes.
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
        """The space above a layer: more before arrows that go far to the side, and new groups."""
        titles = self.titles[number] * self.grid.title_height
        if number == 0:
            return titles
        farthest = 0.0
        for item in self.grid.rows[number]:
            for other in self.grid.up[item]:
                aside = abs(self.grid.coordinate[item] - self.grid.coordinate[other])
                farthest = max(farthest, aside)
        if {number, number - 1} & self.grid.label_layers:
            least = _LAYER_GAP if any(self.grid.groups) else _LAYER_GAP / 2
            return titles + min(least + farthest / 3, 3 * _LAYER_GAP)
        return titles + min(_LAYER_GAP + farthest / 14, 3 * _LAYER_GAP)

    def finished(self) -> Layout:
        grid = self.grid
        result = Layout(direction="right" if grid.turned else "down")
        for item, node in enumerate(grid.nodes):
            x, y = self._turn((grid.coordinate[item], self._middle(item)))
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
        """The middle of a box across its layer; the tops of a layer's boxes are level."""
        return self.top[self.grid.layer[item]] + self.grid.depth[item] / 2

    def _label_box(self, label: str, bend: int) -> CentredBox:
        """The box of a label: beside the arrow, in the middle of the layer of labels."""
        width, height = label_size(label)
        coordinate, layer = self.grid.coordinate[bend], self.grid.layer[bend]
        middle = (self.top[layer] + self.bottom[layer]) / 2
        if self.grid.turned:
            return middle, coordinate - LABEL_ASIDE - height / 2, width, height
        return coordinate + LABEL_ASIDE + width / 2, middle, width, height

    def _points(self, path: list[int], aside: float, margin: float) -> list[Point]:
        """The points of an arrow; a long one without bends goes along the margin.

        At a bend the arrow goes straight through the whole layer, between the boxes.
        """
        grid = self.grid
        source, target = path[0], path[-1]
        start_y = self._middle(source) + grid.depth[source] / 2
        end_y = self._middle(target) - grid.depth[target] / 2
        second = grid.coordinate[path[1]]
        last_but_one = grid.coordinate[path[-2]]
        after = grid.layer[path[1]]
        if after - grid.layer[source] > 1:
            lane = margin + 12 + 6 * (source % 8)
            first, last = self.bottom[grid.layer[source]] + 12, self.top[after] - 12
            points = [(grid.coordinate[source], start_y), (lane, first), (lane, last)]
            if len(path) == 2:
                return [*points, (grid.coordinate[target], end_y)]
        else:
            points = [(self._port(source, second) + aside, start_y)]
            if self.bottom[grid.layer[source]] > start_y:  # below the taller boxes of its layer
                points.append((points[0][0], self.bottom[grid.layer[source]]))
        for item in path[1:-1]:
            row = grid.layer[item]
            x = grid.coordinate[item]
            points += [(x, self.top[row]), (x, self.bottom[row])]
        points.append((self._port(target, last_but_one) + aside, end_y))
        return _without_needless(points)

    def _port(self, item: int, other: float) -> float:
        """The end of an arrow on a box's edge: towards the other end, off the corners."""
        room = max(0.0, self.grid.behind[item] - 12)
        step = (other - self.grid.coordinate[item]) / 4
        return self.grid.coordinate[item] + max(-room, min(room, step))

    # --- outlines of groups -------------------------------------------------------------------

    def _areas(self) -> list[GroupArea]:
        """The outlines of all groups: the stretches in the layers, joined if they touch."""
        stretches: dict[str, dict[int, tuple[float, float]]] = {}
        deepest: dict[str, int] = {}
        for item, path in enumerate(self.grid.groups):
            low = self.grid.coordinate[item] - self.grid.before[item]
            high = self.grid.coordinate[item] + self.grid.behind[item]
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
        """The outlines of one group: a new part begins if two layers do not touch."""
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
        self, part: list[int], rows: dict[int, tuple[float, float]], levels: int, names_above: int
    ) -> list[Point]:
        """The corners of a part: down the right side, then up the left side."""
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
    """The points, without points on a straight line between two neighbours."""
    kept: list[Point] = []
    for i, point in enumerate(points):
        if kept and i + 1 < len(points):
            before, after = kept[-1], points[i + 1]
            if before[0] == point[0] == after[0] or before[1] == point[1] == after[1]:
                continue
        kept.append(point)
    return kept

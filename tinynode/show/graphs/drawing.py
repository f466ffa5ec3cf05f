"""A Diagram as a drawing.

Requirement: a picture is readable on light and dark pages, for the colour-blind, and for a screen
reader. So colours and marks are those of films. A colour is never the only mark: backward nodes
are dashed too. The picture contains its background, its title and a description.
"""

from __future__ import annotations

from dataclasses import replace

from tinynode.show.graphs import boxes
from tinynode.show.graphs.diagram_data import DiagramData, DiagramEdge, DiagramNode, short_label
from tinynode.show.graphs.layout import layout
from tinynode.show.graphs.layout_pixels import CentredBox, GroupArea, Layout, Point
from tinynode.show.graphs.repeats import with_repeats
from tinynode.show.shapes import Box, Drawing, Group, Path, Shape, Text, placed
from tinynode.show.texts import FACT_WIDTH, LABEL_WIDTH, cut, one_line, text_columns

_LINE = 14.0
_MEANINGS = (
    ("retained", "blue square: array retained"),
    ("gradient", "orange triangle: has a gradient"),
    ("root", "thick: asked for"),
    ("backward", "dashed: backward"),
    ("finding", "thick red frame: a finding"),
    ("gone", "dotted: gone"),
    ("again", "slanted: a leaf drawn again"),
)


def drawing(diagram: DiagramData) -> Drawing:
    """The picture with its title, legend and background."""
    nodes, edges = with_repeats(diagram.nodes, diagram.edges)
    geometry = layout(nodes, edges, diagram.direction)
    head = cut(one_line(diagram.title), 100)  # the width of a page
    feet = [*map(one_line, diagram.notes), *_legend(nodes)]
    top = 24.0 if head else 0.0
    rooms = [text_columns(head) * LABEL_WIDTH, *(text_columns(t) * FACT_WIDTH for t in feet)]
    width = max(geometry.width, max(rooms) + 32)
    height = geometry.height + top + _LINE * len(feet) + (8 if feet else 0)
    shift = (width - geometry.width) / 2
    shapes: list[Shape] = [Box(0, 0, width, height, "panel", radius=6)]
    if head:
        shapes.append(Text(16, 20, head, 12, is_bold=True, is_mono=True))
    shapes += [placed(one, shift, top) for one in _graph(nodes, edges, geometry)]
    for number, text in enumerate(feet):
        y = top + geometry.height + _LINE * (number + 0.5)
        shapes.append(Text(16, y, text, 10, "quiet", is_mono=True))
    title = diagram.title or "graph"
    return Drawing(width, height, tuple(shapes), title, _description(diagram))


def _graph(nodes: list[DiagramNode], edges: list[DiagramEdge], geometry: Layout) -> list[Shape]:
    """Outlines of modules, arrows, boxes, and the labels of arrows in front."""
    shapes = [shape for area in geometry.groups for shape in _area(area)]
    for edge, (_, _, points) in zip(edges, geometry.edges, strict=True):
        shapes += _arrow(edge, points, geometry)
    shapes += [_node(node, geometry.position[node.id]) for node in nodes]
    for number, (x, y, _, _) in geometry.labels.items():
        text = cut(one_line(edges[number].label))
        shapes.append(Text(x, y + 3.5, text, 10, "text", "middle", is_mono=True, has_halo=True))
    return shapes


def _description(diagram: DiagramData) -> str:
    """The text for screen readers: the number of boxes, and the functions in order."""
    functions = [node for node in diagram.nodes if node.kind != "variable"]
    variables = len(diagram.nodes) - len(functions)
    names = ", ".join(one_line(node.label) for node in functions[:20])
    rest = " and more" if len(functions) > 20 else ""
    found = f"{variables} variables and {len(functions)} functions: {names}{rest}."
    return " ".join([found, *map(one_line, diagram.notes)])


def _words(node: DiagramNode) -> set[str]:
    """The marks of a node, with its phase, and "again" for a leaf drawn again."""
    return {*node.marks, node.phase, *(["again"] if node.repeats else [])}


def _legend(nodes: list[DiagramNode]) -> list[str]:
    """The meanings of the marks in the picture."""
    drawn = {word for node in nodes for word in _words(node)}
    words = [meaning for mark, meaning in _MEANINGS if mark in drawn]
    return ["; ".join(words)] if words else []


def _node(node: DiagramNode, place: CentredBox) -> Group:
    words = _words(node)
    box = boxes.box(node.kind, node.phase, place)
    if "gone" in words:
        box = replace(box, dash=(1.0, 3.0))
    if "root" in words:
        box = replace(box, line=3.0)
    if "finding" in words:
        box = replace(box, line=3.0, stroke="bad")
    shapes: list[Shape] = [box]
    if node.kind == "fold":
        shapes.insert(0, replace(box, x=box.x + 4, y=box.y + 4))
    shapes += boxes.marks(box, is_retained="retained" in words, has_gradient="gradient" in words)
    label = boxes.label(box, short_label(node))
    if "again" in words:
        shapes[0] = replace(box, opacity=0.5)
        label = replace(label, is_bold=False, is_slanted=True)
    shapes += [label, *boxes.facts(box, node.facts)]
    title = [node.label, *node.facts, *(["backward"] if node.phase == "backward" else [])]
    title += ["drawn again"] if node.repeats else []
    kind = " ".join([node.kind, *sorted(words - {"forward", "no gradient"})])
    return Group(tuple(shapes), kind, ", ".join(title))


def _area(area: GroupArea) -> list[Shape]:
    """The outline of a module with its name."""
    top = min(y for _, y in area.points)
    left = min(x for x, y in area.points if y == top)
    points = tuple(area.points)
    shapes: list[Shape] = [
        Path(points, fill="quiet", is_closed=True, opacity=0.09),
        Path(points, stroke="quiet", is_closed=True, opacity=0.5),
    ]
    if area.label:
        name = cut(one_line(area.label))
        shapes.append(Text(left + 6, top + 11, name, 10, "quiet", is_mono=True))
    return shapes


def _arrow(edge: DiagramEdge, points: list[Point], geometry: Layout) -> list[Shape]:
    """A smooth line, and a triangle at its end."""
    is_backward = edge.phase == "backward"
    colour, dash = ("backward", boxes.DASHED) if is_backward else ("quiet", ())
    path = boxes.curve(points, geometry.direction == "down")
    return [Path(path, stroke=colour, line=1.3, dash=dash), boxes.head(path, colour)]

"""A Diagram as SVG.

Requirement: notebooks, pages and file viewers show the picture alike, without a further program.
It is readable on light and dark pages, for the colour-blind, and for a screen reader. So colours
and marks are those of films. A colour is never the only mark: backward nodes are dashed too. The
picture contains its background, its title and a description. Every text is escaped: a variable
named ``<script>`` is text like any other.
"""

from __future__ import annotations

import html
import itertools
import math

from tinynode.show.graphs.diagram_data import DiagramData, DiagramEdge, DiagramNode
from tinynode.show.graphs.dot import layout_by_graphviz
from tinynode.show.graphs.layout import layout
from tinynode.show.graphs.layout_pixels import CentredBox, GroupArea, Layout, Point
from tinynode.show.graphs.repeats import with_repeats
from tinynode.show.graphs.text_diagram import one_line
from tinynode.show.graphs.text_sizes import FACT_WIDTH, LABEL_WIDTH, cut, short_label, text_columns
from tinynode.show.palette import DARK, LIGHT, Theme

LARGE = 200
"""Above this number of nodes, graphviz does the layout if it is installed."""

_LINE = 14.0
_FONT = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'
_SHAPES = f"""
.tn-diagram {{ font-family: {_FONT}; }}
.tn-diagram text {{ text-anchor: middle; font-size: 10px; }}
.tn-diagram .label {{ font-size: 12px; font-weight: 600; }}
.tn-diagram .note {{ text-anchor: start; }}
.tn-diagram .head {{ text-anchor: start; font-size: 12px; font-weight: 600; }}
.tn-diagram .group {{ fill-opacity: 0.09; stroke-opacity: 0.5; }}
.tn-diagram .edge {{ fill: none; stroke-width: 1.3; }}
.tn-diagram .variable, .tn-diagram .function, .tn-diagram .fold {{ stroke-width: 1.3; }}
.tn-diagram .backward {{ stroke-dasharray: 5 3; }}
.tn-diagram .gone {{ stroke-dasharray: 1 3; }}
.tn-diagram .root {{ stroke-width: 3; }}
.tn-diagram .mark {{ stroke-width: 1; }}
.tn-diagram .again {{ stroke-opacity: 0.5; }}
.tn-diagram .again ~ .label {{ font-weight: 400; font-style: italic; }}
"""
_LABEL_SHAPES = """
.tn-diagram .beside { stroke-width: 3px; stroke-linejoin: round; paint-order: stroke; }
"""


def _colours(theme: Theme) -> str:
    """The style sheet's colours: those of films."""
    return f"""
.tn-diagram .back {{ fill: {theme.panel}; }}
.tn-diagram text {{ fill: {theme.text}; }}
.tn-diagram .note {{ fill: {theme.quiet}; }}
.tn-diagram .group {{ fill: {theme.quiet}; stroke: {theme.quiet}; }}
.tn-diagram .edge {{ stroke: {theme.quiet}; }}
.tn-diagram .tip {{ fill: {theme.quiet}; }}
.tn-diagram .variable {{ fill: {theme.raised}; stroke: {theme.quiet}; }}
.tn-diagram .function, .tn-diagram .fold {{ fill: {theme.forward_tint}; stroke: {theme.forward}; }}
.tn-diagram .backward {{ stroke: {theme.backward}; }}
.tn-diagram .function.backward, .tn-diagram .fold.backward {{ fill: {theme.backward_tint}; }}
.tn-diagram .tip.backward {{ fill: {theme.backward}; stroke: none; }}
.tn-diagram .mark {{ stroke: {theme.panel}; }}
.tn-diagram .mark.retained {{ fill: {theme.forward}; }}
.tn-diagram .mark.gradient {{ fill: {theme.backward}; }}
.tn-diagram .finding {{ stroke: {theme.bad}; stroke-width: 3; }}
.tn-diagram .finding ~ .found {{ fill: {theme.bad}; font-weight: 600; }}
"""


def _style(has_labels: bool) -> str:
    """The style sheet; rules for labels beside arrows only if the picture has such labels."""
    light, dark = _SHAPES + _colours(LIGHT), _colours(DARK)
    if has_labels:
        light += _LABEL_SHAPES + _label_colours(LIGHT)
        dark += _label_colours(DARK)
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


def _label_colours(theme: Theme) -> str:
    return f".tn-diagram .beside {{ stroke: {theme.panel}; }}\n"


def to_svg(diagram: DiagramData) -> str:
    """The picture as one ``<svg>`` element."""
    has_labels = any(edge.label for edge in diagram.edges)
    nodes, edges = with_repeats(diagram.nodes, diagram.edges)
    drawn = DiagramData(diagram.title, nodes, edges, diagram.notes, diagram.direction)
    geometry = None
    if len(diagram.nodes) > LARGE and not has_labels:
        geometry = layout_by_graphviz(drawn)
    if geometry is None:
        geometry = layout(nodes, edges, diagram.direction)
    head = [_cut_line(diagram.title)] if diagram.title else []
    feet = [*map(one_line, diagram.notes), *_legend(drawn)]
    top = 24.0 if head else 0.0
    texts = [text_columns(t) * LABEL_WIDTH for t in head]
    texts += [text_columns(t) * FACT_WIDTH for t in feet]
    width = max(geometry.width, max(texts, default=0.0) + 32)
    height = geometry.height + top + _LINE * len(feet) + (8 if feet else 0)
    shift = (width - geometry.width) / 2
    body = [
        _opening(width, height),
        f"<title>{_escaped(diagram.title or 'graph')}</title>",
        f"<desc>{_escaped(_description(diagram))}</desc>",
        f"<style>{_style(has_labels)}</style>",
        f'<rect class="back" width="{_n(width)}" height="{_n(height)}" rx="6"/>',
    ]
    body += [f'<text class="head" x="16" y="20">{_escaped(text)}</text>' for text in head]
    body.append(f'<g transform="translate({_n(shift)} {_n(top)})">')
    body += [_group(area) for area in geometry.groups]
    for edge, (_, _, points) in zip(edges, geometry.edges, strict=True):
        body.append(_edge(edge, points, geometry))
    for node in nodes:
        body.append(_node(node, geometry.position[node.id]))
    body += [_beside(diagram.edges[i].label, box) for i, box in geometry.labels.items()]
    body.append("</g>")
    for number, text in enumerate(feet):
        y = top + geometry.height + _LINE * (number + 0.5)
        body.append(f'<text class="note" x="16" y="{_n(y)}">{_escaped(text)}</text>')
    return "\n".join([*body, "</svg>"])


def _opening(width: float, height: float) -> str:
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="tn-diagram" role="img" {size}>'


def _cut_line(text: str) -> str:
    """A title, cut to 100 letters: the width of a page."""
    line = one_line(text)
    return line if len(line) <= 100 else line[:99] + "…"


def _description(diagram: DiagramData) -> str:
    """The text for screen readers: the number of boxes, and the functions in order."""
    functions = [node for node in diagram.nodes if node.kind != "variable"]
    variables = len(diagram.nodes) - len(functions)
    names = ", ".join(one_line(node.label) for node in functions[:20])
    rest = " and more" if len(functions) > 20 else ""
    found = f"{variables} variables and {len(functions)} functions: {names}{rest}."
    return " ".join([found, *map(one_line, diagram.notes)])


def _legend(diagram: DiagramData) -> list[str]:
    """The meanings of the marks in the picture."""
    words = []
    if any("retained" in node.marks for node in diagram.nodes):
        words.append("blue square: array retained")
    if any("gradient" in node.marks for node in diagram.nodes):
        words.append("orange triangle: has a gradient")
    if any("root" in node.marks for node in diagram.nodes):
        words.append("thick: asked for")
    if any(node.phase == "backward" for node in diagram.nodes):
        words.append("dashed: backward")
    if any("finding" in node.marks for node in diagram.nodes):
        words.append("thick red frame: a finding")
    if any("gone" in node.marks for node in diagram.nodes):
        words.append("dotted: gone")
    if any(node.repeats for node in diagram.nodes):
        words.append("slanted: a leaf drawn again")
    return ["; ".join(words)] if words else []


def _escaped(text: str) -> str:
    return html.escape(one_line(text))


def _n(number: float) -> str:
    """A number with at most 1 decimal."""
    return f"{number:.1f}".removesuffix(".0")


def _node(node: DiagramNode, box: CentredBox) -> str:
    x, y, width, height = box
    left, top = x - width / 2, y - height / 2
    classes = [node.kind, *(["backward"] if node.phase == "backward" else [])]
    classes += sorted(node.marks & {"leaf", "gone", "root", "finding"})
    if node.repeats:
        classes.append("again")
    radius = 12 if node.kind == "variable" else 2
    rectangle = (
        f'<rect class="{" ".join(classes)}" x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" '
        f'height="{_n(height)}" rx="{radius}"/>'
    )
    words = [node.label, *node.facts, *(["backward"] if node.phase == "backward" else [])]
    words += ["drawn again"] if node.repeats else []
    parts = [f"<g><title>{_escaped(', '.join(words))}</title>"]
    if node.kind == "fold":
        parts.append(rectangle.replace(f'x="{_n(left)}" y="{_n(top)}"', _aside(left, top)))
    parts.append(rectangle)
    if "retained" in node.marks:
        corner = f'x="{_n(left - 4)}" y="{_n(top - 4)}"'
        parts.append(f'<rect class="mark retained" {corner} width="9" height="9"/>')
    if "gradient" in node.marks:
        start = f"M{_n(left + width - 9)} {_n(top - 5)}"
        parts.append(f'<path class="mark gradient" d="{start}h13l-6.5 11z"/>')
    parts.append(
        f'<text class="label" x="{_n(x)}" y="{_n(top + 16)}">{_escaped(short_label(node))}</text>'
    )
    for number, fact in enumerate(node.facts):
        line = _n(top + 29 + 13 * number)
        found = ' class="found"' if "finding" in node.marks and fact.startswith("!") else ""
        parts.append(f'<text{found} x="{_n(x)}" y="{line}">{_escaped(cut(fact))}</text>')
    return "".join([*parts, "</g>"])


def _aside(left: float, top: float) -> str:
    return f'x="{_n(left + 4)}" y="{_n(top + 4)}"'


def _group(area: GroupArea) -> str:
    corners = " ".join(f"{_n(x)},{_n(y)}" for x, y in area.points)
    top = min(y for _, y in area.points)
    left = min(x for x, y in area.points if y == top)
    return (
        f'<polygon class="group" points="{corners}"/>'
        f'<text class="note" x="{_n(left + 6)}" y="{_n(top + 11)}">'
        f"{_escaped(cut(area.label))}</text>"
    )


def _edge(edge: DiagramEdge, points: list[Point], geometry: Layout) -> str:
    """An arrow: a smooth line, and a triangle at its end."""
    extra = " backward" if edge.phase == "backward" else ""
    line = f'<path class="edge{extra}" d="{_edge_path(points, geometry)}"/>'
    tip = f'<path class="tip{extra}" d="{_tip(points, geometry)}"/>'
    return line + tip


def _beside(label: str, box: CentredBox) -> str:
    """The label beside an arrow, in a halo of the background's colour."""
    x, y, _, _ = box
    return f'<text class="beside" x="{_n(x)}" y="{_n(y + 3.5)}">{_escaped(cut(label))}</text>'


def _edge_path(points: list[Point], geometry: Layout) -> str:
    """The path of an arrow, as the ``d`` of an SVG path."""
    words = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    if geometry.is_bezier:
        letters = ["C", " ", " "] * (len(points) // 3)
        words += [f"{a}{_n(x)} {_n(y)}" for a, (x, y) in zip(letters, points[1:], strict=True)]
        return "".join(words)
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        along, across = (x, to_x), (y, to_y)
        if geometry.direction == "right":
            along, across = across, along
        middle = (across[0] + across[1]) / 2
        if along[0] == along[1]:
            words.append(f"L{_n(to_x)} {_n(to_y)}")
        elif geometry.direction == "right":
            words.append(f"C{_n(middle)} {_n(y)} {_n(middle)} {_n(to_y)} {_n(to_x)} {_n(to_y)}")
        else:
            words.append(f"C{_n(x)} {_n(middle)} {_n(to_x)} {_n(middle)} {_n(to_x)} {_n(to_y)}")
    return "".join(words)


def _tip(points: list[Point], geometry: Layout) -> str:
    """A triangle at the end of an arrow, in the arrow's direction."""
    x, y = points[-1]
    step = (1.0, 0.0) if geometry.direction == "right" else (0.0, 1.0)
    if geometry.is_bezier:
        far = math.dist(points[-2], points[-1]) or 1.0
        step = ((x - points[-2][0]) / far, (y - points[-2][1]) / far)
    back_x, back_y = x - 7 * step[0], y - 7 * step[1]
    side_x, side_y = -3.5 * step[1], 3.5 * step[0]
    return (
        f"M{_n(x)} {_n(y)}L{_n(back_x + side_x)} {_n(back_y + side_y)}"
        f"L{_n(back_x - side_x)} {_n(back_y - side_y)}Z"
    )

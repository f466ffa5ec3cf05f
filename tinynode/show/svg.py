"""Drawings as SVG.

Requirement: notebooks, pages and file viewers show a picture alike, without a further program.
The picture is self-contained: no script, no fonts, and no ids, which could clash with another
picture's. It suits light and dark pages, and a screen reader reads its title and description. The
same drawing gives the same bytes. Every text is escaped: a variable named ``<script>`` is text
like any other.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Sequence

from tinynode.show.palette import COLOURS, shade_look
from tinynode.show.shapes import Box, Cells, Drawing, Group, Path, Shape, Text
from tinynode.show.texts import one_line

_STYLE = """{0} text{{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
white-space:pre}}
{0} .m{{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",Menlo,Consolas,monospace}}
{0} .b{{font-weight:600}}{0} .i{{font-style:italic}}
{0} .h{{stroke-width:3px;paint-order:stroke}}
{0} .h,{0} path{{stroke-linejoin:round}}{0} .c{{shape-rendering:crispEdges}}
"""


def svg(drawing: Drawing, *, theme: str = "auto", width: float | None = None) -> str:
    """The drawing as one ``<svg>`` element.

    Args:
        drawing: the shapes.
        theme: "light", "dark", or "auto": the reader's preference.
        width: the width of the element in pixels; by default, that of the drawing.
    """
    return document(drawing, [element(one) for one in drawing.shapes], theme, width)


def document(
    drawing: Drawing, body: Iterable[str], theme: str, width: float | None, rules: str = ""
) -> str:
    """An ``<svg>`` element of elements, with the style of their classes, and further rules."""
    parts = [text for text in body if text]
    whole = width or drawing.width
    size = f'width="{_n(whole)}" height="{_n(whole * drawing.height / drawing.width)}"'
    box = f"0 0 {_n(drawing.width)} {_n(drawing.height)}"
    style = _STYLE.format(f".tn-{theme}") + _colours(theme, "".join(parts)) + rules
    look = ' style="max-width:100%;height:auto"' if drawing.fits else ""
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="tn-{theme}" role="img" '
    return "\n".join(
        [
            f'{opening}{size} viewBox="{box}"{look}>',
            f"<title>{_escaped(drawing.title)}</title>",
            f"<desc>{_escaped(drawing.words)}</desc>",
            f"<style>{style}</style>",
            *parts,
            "</svg>",
        ]
    )


def _colours(theme: str, body: str) -> str:
    """The rules of the colours in use; "auto" follows the reader's preference."""
    used = set(re.findall(r"\b[fs]-\w+", body))
    rules = _rules(theme, "dark" if theme == "dark" else "light", used)
    if theme == "auto":
        rules += f"\n@media (prefers-color-scheme: dark){{{_rules(theme, 'dark', used)}}}"
    return rules


def _rules(theme: str, colours: str, used: set[str]) -> str:
    """A class for fills and a class for strokes of each colour in use."""
    return "".join(
        f".tn-{theme} .{letter}-{name}{{{attribute}:{colour}}}"
        for name, colour in COLOURS[colours].items()
        for letter, attribute in (("f", "fill"), ("s", "stroke"))
        if f"{letter}-{name}" in used
    )


# --- shapes --------------------------------------------------------------------------------------


def element(shape: Shape) -> str:
    """A shape as an element."""
    if isinstance(shape, Box):
        return _box(shape)
    if isinstance(shape, Path):
        return _path(shape)
    if isinstance(shape, Text):
        return _text(shape)
    return _group(shape) if isinstance(shape, Group) else _cells(shape)


def _group(group: Group) -> str:
    kind = f' class="{group.kind}"' if group.kind else ""
    title = f"<title>{_escaped(group.title)}</title>" if group.title else ""
    return f"<g{kind}>{title}{''.join(map(element, group.shapes))}</g>"


def _box(box: Box) -> str:
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    radius = f' rx="{_n(box.radius)}"' if box.radius else ""
    return f"<rect {_look(box)} {place}{radius}/>"


def _path(path: Path) -> str:
    words = [f"M{_numbers(path.points[0])}"]
    for point in path.points[1:]:
        words.append(f"{'L' if len(point) == 2 else 'C'}{_numbers(point)}")
    return f'<path {_look(path)} d="{"".join(words)}{"Z" if path.is_closed else ""}"/>'


def _text(text: Text) -> str:
    marks = (text.is_mono, "m"), (text.is_bold, "b"), (text.is_slanted, "i")
    classes = [letter for is_so, letter in marks if is_so]
    classes += [*(["h", "s-panel"] if text.has_halo else []), f"f-{text.colour}"]
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    turn = f' transform="rotate(-90 {_n(text.x)} {_n(text.y)})"' if text.is_turned else ""
    return (
        f'<text class="{" ".join(classes)}"{_opacity(text.opacity)} '
        f'font-size="{_n(text.size)}" x="{_n(text.x)}" y="{_n(text.y)}"{anchor}{turn}>'
        f"{_escaped(text.text)}</text>"
    )


def _cells(cells: Cells) -> str:
    """A heat map: a path for each shade, with a horizontal line for equal neighbours."""
    paths: dict[int | None, list[str]] = {}
    ends: dict[int | None, tuple[int, int]] = {}
    for row in range(cells.rows):
        x = 0
        shades = cells.shades[row * cells.columns : (row + 1) * cells.columns]
        for shade, group in itertools.groupby(shades):
            length = len(list(group))
            old_x, old_row = ends.get(shade, (0, 0))
            if shade != 0:
                paths.setdefault(shade, []).append(f"m{x - old_x} {row - old_row}h{length}")
                ends[shade] = (x + length, row)
            x += length
    across, down = cells.width / cells.columns, cells.height / cells.rows
    place = f"translate({_n(cells.x)} {_n(cells.y + down / 2)}) scale({across:.4g} {down:.4g})"
    inside = []
    for shade, words in paths.items():
        colour, opacity = shade_look(shade, cells.plus)
        inside.append(f'<path class="s-{colour}"{_opacity(opacity)} d="{"".join(words)}"/>')
    return f'<g fill="none" transform="{place}">{"".join(inside)}</g>'


def _look(shape: Box | Path) -> str:
    """The attributes of fill, stroke and opacity."""
    classes = [f"f-{shape.fill}"] if shape.fill else []
    if isinstance(shape, Box) and shape.opacity < 1 and not (shape.radius or shape.stroke):
        classes.append("c")  # else pale lines show between boxes side by side
    words = "" if shape.fill else ' fill="none"'
    if shape.stroke:
        classes.append(f"s-{shape.stroke}")
        words += f' stroke-width="{_n(shape.line)}"'
        if shape.dash:
            words += f' stroke-dasharray="{_numbers(shape.dash)}"'
    return f'class="{" ".join(classes)}"{words}{_opacity(shape.opacity)}'


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{opacity:.3g}"'


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(_n(number) for number in numbers)


def _n(number: float) -> str:
    """A number with at most 2 decimals: the same on every machine."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _escaped(text: str) -> str:
    return html.escape(one_line(text))

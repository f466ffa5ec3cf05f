"""A plot as SVG.

Requirement: the picture is self-contained: no script, no fonts, and no ids, which could clash with
another picture's. The same plot gives the same bytes. The colours are distinct for the
colour-blind too; dashes and markers repeat the distinction. The picture suits light and dark
pages, and has a description in words.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence

from tinynode.show.palette import DARK, LIGHT, SERIES_DARK, SERIES_LIGHT, Theme
from tinynode.show.plots.figure import Box, Curve, Figure, clean, thinned
from tinynode.show.plots.scales import Axis

_WIDTH = 640
_PLOT_HEIGHT = 250.0
_ROW = 18  # the height of a line of text
_LETTER = 6.7  # the width of a letter, about
_MARKED = 30  # a curve of at most 30 points has a marker at each

_DASHES = ("", "7 4", "2 3", "9 3 2 3", "14 5")
_MARKERS = (  # around 0, 0
    "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0z",
    "M-3,-3H3V3H-3z",
    "M0,-4L4,3H-4z",
    "M0,-4.5L4,0L0,4.5L-4,0z",
    "M-4,-3H4L0,4z",
    "M-4,-1H-1V-4H1V-1H4V1H1V4H-1V1H-4z",
)


def svg_of(figure: Figure) -> str:
    """The figure as one ``<svg>`` element."""
    return _Drawing(figure).svg()


def _style() -> str:
    """The style of one picture, limited to elements of class ``tn-plot``."""
    light, dark = _variables(LIGHT, SERIES_LIGHT), _variables(DARK, SERIES_DARK)
    return (
        f".tn-plot{{{light}font-family:system-ui,sans-serif;font-size:12px;max-width:100%;"
        "height:auto}"
        f"@media(prefers-color-scheme:dark){{.tn-plot{{{dark}}}}}"
        ".tn-plot text{fill:var(--ink);stroke:none}.tn-plot .soft{fill:var(--soft)}"
        ".tn-plot .title{font-size:14px;font-weight:600}"
        ".tn-plot .grid{stroke:var(--grid);stroke-width:1}"
        ".tn-plot .frame{stroke:var(--soft);stroke-width:1}"
        ".tn-plot .curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
        ".tn-plot .mark{stroke:var(--paper);stroke-width:0.7}"
    )


def _variables(theme: Theme, series: Sequence[str]) -> str:
    """The colours as variables of CSS."""
    named = f"--ink:{theme.text};--soft:{theme.quiet};--grid:{theme.line};--paper:{theme.panel};"
    return named + "".join(f"--c{i}:{colour};" for i, colour in enumerate(series))


def _px(value: float) -> str:
    """A coordinate, rounded: the same on every machine."""
    text = f"{value:.1f}"
    return "0" if text in ("0.0", "-0.0") else text.removesuffix(".0")


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    classes = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}"{classes}>'
        f"{html.escape(words)}</text>"
    )


def _colour(number: int) -> str:
    return f"var(--c{number % len(SERIES_LIGHT)})"


def _dash(number: int) -> str:
    dash = _DASHES[number % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(x: float, y: float, number: int) -> str:
    return (
        f'<path class="mark" fill="{_colour(number)}" '
        f'transform="translate({_px(x)} {_px(y)})" d="{_MARKERS[number % len(_MARKERS)]}"/>'
    )


class _Drawing:
    """The geometry of a figure, and its SVG elements."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.legend = _legend_rows(figure)
        longest = max((len(clean(text, 28)) for _, text in figure.y.ticks), default=1)
        self.left = 14 + _LETTER * longest + (_ROW if figure.y.label else 0)
        self.right = _WIDTH - 20.0
        self.top = 14.0 + _ROW * (bool(figure.title) + len(self.legend)) + 6
        self.bottom = self.top + _height(figure)
        notes = [textwrap.wrap(clean(note, 400), 92) for note in figure.notes]
        self.notes = [line for lines in notes for line in lines]

    def svg(self) -> str:
        figure = self.figure
        below = _ROW * (1.4 + bool(figure.x.label) + len(self.notes))
        size = (_px(_WIDTH), _px(self.bottom + below))
        words = html.escape(clean(figure.title) or "Plot")
        facts = " ".join([*_axis_facts(figure), *figure.facts, *figure.notes])
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tn-plot" role="img" '
            f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}">',
            f"<title>{words}</title><desc>{html.escape(clean(facts, 4000))}</desc>",
            f"<style>{_style()}</style>",
            f'<rect width="{size[0]}" height="{size[1]}" rx="6" fill="var(--paper)"/>',
            *self._head(),
            *self._boxes(True),
            *self._grid(),
            *self._boxes(False),
            *self._curves(),
            *self._labels(),
        ]
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _x(self, value: float) -> float:
        return self.left + self.figure.x.fraction(value) * (self.right - self.left)

    def _y(self, value: float) -> float:
        return self.bottom - self.figure.y.fraction(value) * (self.bottom - self.top)

    def _head(self) -> list[str]:
        """The title and the legend."""
        parts = []
        y = 18.0
        if self.figure.title:
            parts.append(_text(self.left, y, clean(self.figure.title, 80), kind="title"))
            y += _ROW
        for row in self.legend:
            x = self.left
            for number, name in row:
                parts.append(self._sample(x, y - 4, number))
                parts.append(_text(x + 34, y, name))
                x += 52 + _LETTER * len(name)
            y += _ROW
        return parts

    def _sample(self, x: float, y: float, number: int) -> str:
        """The line and the marker beside a name in the legend."""
        joined = any(curve.joined for curve in self.figure.curves)
        line = (
            f'<path class="curve" stroke="{_colour(number)}"{_dash(number)} '
            f'd="M{_px(x)},{_px(y)}h28"/>'
        )
        return (line if joined else "") + _marker(x + 14, y, number)

    def _grid(self) -> Iterable[str]:
        """The lines at the ticks, the axes, and the ticks' texts."""
        figure = self.figure
        left, right, top, bottom = map(_px, (self.left, self.right, self.top, self.bottom))
        end = -1e9
        for value, text in figure.x.ticks:
            x, half = self._x(value), _LETTER * len(text) / 2
            if not figure.is_matrix:
                yield f'<path class="grid" d="M{_px(x)},{top}V{bottom}"/>'
            if x - half > end:  # else the texts would overlap
                yield _text(x, self.bottom + 16, text, "middle", "soft")
                end = x + half + 4
        for value, text in figure.y.ticks:
            y = self._y(value)
            if not figure.is_matrix:
                yield f'<path class="grid" d="M{left},{_px(y)}H{right}"/>'
            yield _text(self.left - 6, y + 4, clean(text, 28), "end", "soft")
        yield f'<path class="frame" fill="none" d="M{left},{top}V{bottom}H{right}"/>'

    def _boxes(self, faint: bool) -> Iterable[str]:
        for box in self.figure.boxes:
            if box.faint is faint:
                yield self._box(box)

    def _box(self, box: Box) -> str:
        x0, x1 = sorted((self._x(box.x0), self._x(box.x1)))
        y0, y1 = sorted((self._y(box.y0), self._y(box.y1)))
        look = ' opacity="0.25" shape-rendering="crispEdges"' if box.faint else ""
        shade = box.shade * (0.7 if box.label else 1.0)  # paler behind a text
        if shade < 1:
            look = f' opacity="{shade:.2f}"'
        middle = (x0 + x1) / 2, (y0 + y1) / 2 + 4
        label = _text(*middle, box.label, "middle") if box.label else ""
        return (
            f'<rect x="{_px(x0)}" y="{_px(y0)}" width="{_px(x1 - x0)}" '
            f'height="{_px(y1 - y0)}" fill="{_colour(box.number)}"{look}/>{label}'
        )

    def _curves(self) -> Iterable[str]:
        for curve in self.figure.curves:
            yield from self._lines(curve) if curve.joined else ()
            if not curve.faint:
                yield from self._markers(curve)

    def _lines(self, curve: Curve) -> Iterable[str]:
        """A path for each run of points without a gap."""
        look = ' opacity="0.35" stroke-width="1"' if curve.faint else _dash(curve.number)
        for piece in curve.pieces():
            pairs = [f"{_px(self._x(x))},{_px(self._y(y))}" for x, y in thinned(piece)]
            if len(pairs) > 1:
                yield (
                    f'<path class="curve" stroke="{_colour(curve.number)}"{look} '
                    f'd="M{"L".join(pairs)}"/>'
                )

    def _markers(self, curve: Curve) -> Iterable[str]:
        """Markers at each point of a short curve, some of a long curve, and single points."""
        pieces = curve.pieces()
        total = sum(map(len, pieces))
        every = 1 if total <= _MARKED or not curve.joined else -(-total // 8)
        seen = 0
        for piece in pieces:
            for index, (x, y) in enumerate(piece):
                if (seen + index) % every == 0 or len(piece) == 1:
                    yield _marker(self._x(x), self._y(y), curve.number)
            seen += len(piece)

    def _labels(self) -> Iterable[str]:
        """The names of the axes, and the notes."""
        y = self.bottom + 16
        if self.figure.x.label:
            y += _ROW
            middle = (self.left + self.right) / 2
            yield _text(middle, y, clean(self.figure.x.label, 80), "middle")
        if self.figure.y.label:
            origin = f"16 {_px((self.top + self.bottom) / 2)}"
            words = html.escape(clean(self.figure.y.label, 36))
            yield f'<text transform="translate({origin}) rotate(-90)" text-anchor="middle">'
            yield f"{words}</text>"
        for line in self.notes:
            y += _ROW
            yield _text(self.left, y, line, kind="soft")


def _height(figure: Figure) -> float:
    """The height between the axes: names on the vertical axis need a line each."""
    names = figure.y.low > figure.y.high
    if figure.is_matrix:
        rows, columns = figure.y.low - figure.y.high, figure.x.high - figure.x.low
        return rows * min(26.0, max(4.0, 560.0 / columns))
    return max(3, len(figure.y.ticks)) * 26.0 if names else _PLOT_HEIGHT


def _legend_rows(figure: Figure) -> list[list[tuple[int, str]]]:
    """The names of the legend, in rows of at most the picture's width."""
    rows: list[list[tuple[int, str]]] = []
    used = 0.0
    for number, name in figure.names:
        short = clean(name, 40)
        width = 52 + _LETTER * len(short)
        if not rows or used + width > _WIDTH - 110:
            rows.append([])
            used = 0.0
        rows[-1].append((number, short))
        used += width
    return rows


def _axis_facts(figure: Figure) -> list[str]:
    """The axes in words."""
    return [_axis_fact("Horizontal", figure.x), _axis_fact("Vertical", figure.y)]


def _axis_fact(which: str, axis: Axis) -> str:
    kind = ", logarithmic" if axis.log else ""
    texts = [text for _, text in axis.ticks] or ["nothing"]
    label = axis.label or "no label"
    return f"{which} axis: {label}{kind}, from {texts[0]} to {texts[-1]}."

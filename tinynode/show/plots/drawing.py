"""A plot as a drawing.

Requirement: the colours of curves are distinct for the colour-blind too; dashes and markers repeat
the distinction. The picture has a description in words.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tinynode.show.palette import SERIES_LIGHT
from tinynode.show.plots.figure import Box, Curve, Figure, thinned
from tinynode.show.plots.scales import Axis
from tinynode.show.shapes import Box as BoxShape
from tinynode.show.shapes import Drawing, Path, Shape, Text
from tinynode.show.texts import clean

_WIDTH = 640.0
_PLOT_HEIGHT = 250.0
_ROW = 18  # the height of a line of text
_LETTER = 6.7  # the width of a letter, about
_SIZE = 12.0  # of texts
_MARKED = 30  # a curve of at most 30 points has a marker at each

_DASHES: tuple[tuple[float, ...], ...] = ((), (7, 4), (2, 3), (9, 3, 2, 3), (14, 5))
_MARKERS: tuple[tuple[tuple[float, float], ...], ...] = (  # around 0, 0; none for a circle
    (),
    ((-3, -3), (3, -3), (3, 3), (-3, 3)),
    ((0, -4), (4, 3), (-4, 3)),
    ((0, -4.5), (4, 0), (0, 4.5), (-4, 0)),
    ((-4, -3), (4, -3), (0, 4)),
    (
        *((-4, -1), (-1, -1), (-1, -4), (1, -4), (1, -1), (4, -1)),
        *((4, 1), (1, 1), (1, 4), (-1, 4), (-1, 1), (-4, 1)),
    ),
)


def drawing(figure: Figure) -> Drawing:
    """The figure with its axes, legend and notes."""
    return _Geometry(figure).drawing()


def _colour(number: int) -> str:
    return f"series{number % len(SERIES_LIGHT)}"


def _line(number: int, points: Sequence[tuple[float, ...]], *, is_faint: bool = False) -> Path:
    if is_faint:
        return Path(tuple(points), stroke=_colour(number), line=1.5, opacity=0.35)
    return Path(tuple(points), stroke=_colour(number), line=2, dash=_DASHES[number % len(_DASHES)])


def _marker(x: float, y: float, number: int) -> Shape:
    corners = _MARKERS[number % len(_MARKERS)]
    look = (_colour(number), "panel", 0.7)
    if not corners:
        return BoxShape(x - 3.5, y - 3.5, 7, 7, *look, radius=3.5)
    return Path(tuple((x + a, y + b) for a, b in corners), *look, is_closed=True)


class _Geometry:
    """The places of a figure's parts, and their shapes."""

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

    def drawing(self) -> Drawing:
        figure = self.figure
        height = self.bottom + _ROW * (1.4 + bool(figure.x.label) + len(self.notes))
        axes = [_axis_fact("Horizontal", figure.x), _axis_fact("Vertical", figure.y)]
        facts = " ".join([*axes, *figure.facts, *figure.notes])
        parts = (
            BoxShape(0, 0, _WIDTH, height, "panel", radius=6),
            *self._head(),
            *self._boxes(is_faint=True),
            *self._grid(),
            *self._boxes(is_faint=False),
            *self._curves(),
            *self._labels(),
        )
        title = clean(figure.title) or "Plot"
        return Drawing(_WIDTH, height, parts, title, clean(facts, 4000), fits=True)

    def _x(self, value: float) -> float:
        return self.left + self.figure.x.fraction(value) * (self.right - self.left)

    def _y(self, value: float) -> float:
        return self.bottom - self.figure.y.fraction(value) * (self.bottom - self.top)

    def _head(self) -> Iterator[Shape]:
        """The title and the legend."""
        y = 18.0
        if self.figure.title:
            yield Text(self.left, y, clean(self.figure.title, 80), 14, is_bold=True)
            y += _ROW
        has_lines = any(curve.joined for curve in self.figure.curves)
        for row in self.legend:
            x = self.left
            for number, name in row:
                if has_lines:
                    yield _line(number, [(x, y - 4), (x + 28, y - 4)])
                yield _marker(x + 14, y - 4, number)
                yield Text(x + 34, y, name, _SIZE)
                x += 52 + _LETTER * len(name)
            y += _ROW

    def _grid(self) -> Iterator[Shape]:
        """The lines at the ticks, the axes, and the ticks' texts."""
        figure = self.figure
        end = -1e9
        for value, text in figure.x.ticks:
            x, half = self._x(value), _LETTER * len(text) / 2
            if not figure.is_matrix:
                yield Path(((x, self.top), (x, self.bottom)), stroke="line")
            if x - half > end:  # else the texts would overlap
                yield Text(x, self.bottom + 16, text, _SIZE, "quiet", "middle")
                end = x + half + 4
        for value, text in figure.y.ticks:
            y = self._y(value)
            if not figure.is_matrix:
                yield Path(((self.left, y), (self.right, y)), stroke="line")
            yield Text(self.left - 6, y + 4, clean(text, 28), _SIZE, "quiet", "end")
        corner = (self.left, self.bottom)
        yield Path(((self.left, self.top), corner, (self.right, self.bottom)), stroke="quiet")

    def _boxes(self, *, is_faint: bool) -> Iterator[Shape]:
        for box in self.figure.boxes:
            if box.faint is is_faint:
                yield from self._box(box)

    def _box(self, box: Box) -> Iterator[Shape]:
        x0, x1 = sorted((self._x(box.x0), self._x(box.x1)))
        y0, y1 = sorted((self._y(box.y0), self._y(box.y1)))
        opacity = box.shade * (0.7 if box.label else 1.0)  # paler behind a text
        if box.faint:
            opacity = 0.25
        yield BoxShape(x0, y0, x1 - x0, y1 - y0, _colour(box.number), opacity=opacity)
        if box.label:
            yield Text((x0 + x1) / 2, (y0 + y1) / 2 + 4, box.label, _SIZE, anchor="middle")

    def _curves(self) -> Iterator[Shape]:
        for curve in self.figure.curves:
            if curve.joined:
                yield from self._lines(curve)
            if not curve.faint:
                yield from self._markers(curve)

    def _lines(self, curve: Curve) -> Iterator[Shape]:
        """A path for each run of points without a gap."""
        for piece in curve.pieces():
            points = [(self._x(x), self._y(y)) for x, y in thinned(piece)]
            if len(points) > 1:
                yield _line(curve.number, points, is_faint=curve.faint)

    def _markers(self, curve: Curve) -> Iterator[Shape]:
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

    def _labels(self) -> Iterator[Shape]:
        """The names of the axes, and the notes."""
        x, y = self.figure.x.label, self.figure.y.label
        base = self.bottom + 16
        if x:
            base += _ROW
            middle = (self.left + self.right) / 2
            yield Text(middle, base, clean(x, 80), _SIZE, anchor="middle")
        if y:
            middle = (self.top + self.bottom) / 2
            yield Text(16, middle, clean(y, 36), _SIZE, anchor="middle", is_turned=True)
        for line in self.notes:
            base += _ROW
            yield Text(self.left, base, line, _SIZE, "quiet")


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


def _axis_fact(which: str, axis: Axis) -> str:
    """An axis in words."""
    kind = ", logarithmic" if axis.log else ""
    texts = [text for _, text in axis.ticks] or ["nothing"]
    label = axis.label or "no label"
    return f"{which} axis: {label}{kind}, from {texts[0]} to {texts[-1]}."

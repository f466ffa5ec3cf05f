"""A plot made of characters, for terminals.

Requirement: the text has the content of the picture, in characters of every terminal.
"""

from __future__ import annotations

import itertools
import textwrap

from tinynode.show.plots.figure import Box, Curve, Figure, thinned
from tinynode.show.plots.scales import Axis
from tinynode.show.texts import clean

_COLUMNS = 60
_MARKS = "*o+x#@%&"
_AREAS = ".:,'-~"
_SHADES = " .:-=+*#%@"


def text_of(figure: Figure) -> str:
    """The figure in lines of text."""
    canvas = _Canvas(figure.x, figure.y, figure.rows)
    for box in figure.boxes:
        canvas.box(box, figure.is_matrix)
    for curve in figure.curves:
        if not curve.faint:
            canvas.curve(curve)
    labels = _row_labels(figure.y, figure.rows)
    width = max(map(len, labels.values()), default=0)
    indent = " " * (width + 1)
    lines = [*_head(figure, indent)]
    for row, cells in enumerate(canvas.cells):
        lines.append(f"{labels.get(row, ''):>{width}} |{''.join(cells)}")
    lines.append(f"{indent}+{'-' * _COLUMNS}")
    lines.append(f"{indent} {_column_labels(figure.x)}")
    if figure.x.label:
        lines.append(f"{indent} {clean(figure.x.label):^{_COLUMNS}}")
    for note in figure.notes:
        lines += textwrap.wrap(f"note: {clean(note, 400)}", _COLUMNS + width + 2)
    return "\n".join(line.rstrip() for line in lines)


def _head(figure: Figure, indent: str) -> list[str]:
    """The title, the legend, and the name of the vertical axis."""
    lines = [f"{indent} {clean(figure.title)}"] if figure.title else []
    faint = {box.number for box in figure.boxes if box.faint}
    for number, name in figure.names:
        area = f" (region {_AREAS[number % len(_AREAS)]})" if number in faint else ""
        lines.append(f"{indent} {_MARKS[number % len(_MARKS)]} {clean(name)}{area}")
    return [*lines, f"{indent} {clean(figure.y.label)}"] if figure.y.label else lines


def _row_labels(axis: Axis, rows: int) -> dict[int, str]:
    """The texts of the ticks, by row; of two ticks in a row, the first."""
    labels: dict[int, str] = {}
    for value, text in axis.ticks:
        labels.setdefault(_cell(1 - axis.fraction(value), rows), clean(text, 28))
    return labels


def _column_labels(axis: Axis) -> str:
    """The texts of the ticks below their columns; a text without room is left out."""
    line = ""
    for value, text in axis.ticks:
        start = max(0, _cell(axis.fraction(value), _COLUMNS) - len(text) // 2)
        if start > len(line) or not line:
            line = f"{line:<{start}}{text}"
    return line


def _cell(fraction: float, cells: int) -> int:
    """The cell of a fraction of the axis."""
    return min(cells - 1, max(0, int(fraction * cells)))


class _Canvas:
    """A grid of characters."""

    def __init__(self, x: Axis, y: Axis, rows: int) -> None:
        self.x = x
        self.y = y
        self.rows = rows
        self.cells = [[" "] * _COLUMNS for _ in range(rows)]

    def box(self, box: Box, is_cell: bool) -> None:
        """Fill the cells with a middle in the box; a box with a height fills at least one cell."""
        x0, x1 = sorted((self.x.fraction(box.x0), self.x.fraction(box.x1)))
        y0, y1 = sorted((1 - self.y.fraction(box.y0), 1 - self.y.fraction(box.y1)))
        marks = _AREAS if box.faint else _MARKS
        mark = marks[box.number % len(marks)]
        if is_cell:
            mark = _SHADES[_cell(box.shade, len(_SHADES))]
        columns = _filled(x0, x1, _COLUMNS)
        for row in _filled(y0, y1, self.rows):
            for column in columns:
                self.cells[row][column] = mark
            label = f"{box.label:^{len(columns)}}" if box.label else ""
            for column, letter in zip(columns, label, strict=False):
                if letter != " ":
                    self.cells[row][column] = letter

    def curve(self, curve: Curve) -> None:
        mark = _MARKS[curve.number % len(_MARKS)]
        for piece in curve.pieces():
            pairs = [(self.x.fraction(x), 1 - self.y.fraction(y)) for x, y in thinned(piece)]
            for pair in pairs:
                self._put(pair, mark)
            if curve.joined:
                for start, end in itertools.pairwise(pairs):
                    self._line(start, end, mark)

    def _line(self, start: tuple[float, float], end: tuple[float, float], mark: str) -> None:
        """A character in each column between two points."""
        steps = abs(_cell(end[0], _COLUMNS) - _cell(start[0], _COLUMNS))
        for step in range(1, steps):
            part = step / steps
            across = start[0] + (end[0] - start[0]) * part
            self._put((across, start[1] + (end[1] - start[1]) * part), mark)

    def _put(self, pair: tuple[float, float], mark: str) -> None:
        self.cells[_cell(pair[1], self.rows)][_cell(pair[0], _COLUMNS)] = mark


def _filled(start: float, end: float, cells: int) -> range:
    """The cells with a middle between two fractions; for a shorter distance a single cell."""
    first, last = round(start * cells), round(end * cells)
    if end > start and last == first:
        first = _cell(start, cells)
        last = first + 1
    return range(max(0, first), min(cells, last))

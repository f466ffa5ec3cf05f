"""The plot of a matrix: a cell for each number, such as attention weights or a confusion matrix.

Requirement: the strength of a colour shows the absolute value, and the colour shows the sign. Rows
and columns have names, so a reader finds the cell of two words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.show.plots.figure import Box, Figure, host_numbers
from tinynode.show.plots.plots import Plot
from tinynode.show.plots.scales import Axis, named_axis, number_text

_LABELLED = 12  # a matrix of at most 12 columns has its numbers in the cells
_TICKS = 16


def matrix(
    values: Any,
    *,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
) -> Plot:
    """A matrix as coloured cells; the first row is at the top.

    The opacity of a cell is |value| / the largest |value|. Positive and negative cells have
    different colours.

    Args:
        values: real numbers, of shape (n, m).
        rows: n names; by default 0, 1, 2, ...
        columns: m names; likewise.
        title: above the plot.
        x_label: the common name of the columns.
        y_label: the common name of the rows.

    Raises:
        TypeError: the values are no real numbers.
        ValueError: the values have another number of axes or are empty, or the number of names
            differs.
    """
    array = host_numbers("matrix", "values", values)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"matrix: values must have the shape (n, m), got {array.shape}.")
    finite = numpy.isfinite(array)
    largest = float(numpy.abs(array[finite]).max(initial=0.0)) or 1.0
    boxes = [
        _cell(row, column, float(array[row, column]), largest, array.shape[1] <= _LABELLED)
        for row, column in numpy.argwhere(finite).tolist()
    ]
    missing = int(array.size - finite.sum())
    y = _axis("rows", y_label, rows, array.shape[0])
    x = _axis("columns", x_label, columns, array.shape[1])
    figure = Figure(
        title,
        Axis(x.label, x.high, x.low, False, x.ticks),  # the first column is at the left
        y,
        boxes=tuple(boxes),
        notes=(f"{missing} of {array.size} values are nan or inf, and left out.",) * (missing > 0),
        facts=(
            f"A matrix of shape {array.shape}; the largest absolute value is "
            f"{number_text(largest)}.",
        ),
        rows=array.shape[0],
        is_matrix=True,
    )
    return Plot(figure)


def _cell(row: int, column: int, value: float, largest: float, has_label: bool) -> Box:
    return Box(
        1 if value < 0 else 0,
        column - 0.5,
        column + 0.5,
        row - 0.5,
        row + 0.5,
        shade=abs(value) / largest,
        label=number_text(float(f"{value:.2g}")) if has_label else "",
    )


def _axis(argument: str, label: str, names: Sequence[Any] | None, size: int) -> Axis:
    """An axis with a name for each row or column; without names, some positions."""
    if names is None:
        every = math.ceil(size / _TICKS)
        ticks = tuple((float(i), str(i)) for i in range(0, size, every))
        return Axis(label, size - 0.5, -0.5, False, ticks)
    if len(names) != size:
        raise ValueError(f"matrix: {argument} has {len(names)} names, expected {size}.")
    return named_axis(label, [str(name) for name in names])

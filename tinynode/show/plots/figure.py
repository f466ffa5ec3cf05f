"""The data of a plot: curves, boxes and axes.

Requirement: SVG and characters show the same plot. So the content is computed once, here, and the
two writers only draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy

from tinynode.core.conversion import as_host
from tinynode.core.nested import MOST_NUMBERS, check_nested
from tinynode.core.variable import Variable
from tinynode.devices import is_array
from tinynode.errors import OperandError, describe, number_text
from tinynode.show.plots.scales import Axis

_KEPT = 300  # the groups of points in a thinned curve: about two pixels each


@dataclass(frozen=True)
class Curve:
    """Points with a common name, joined by lines or not; a point with NaN or inf is a gap.

    Attributes:
        name: for the legend.
        number: 0, 1, 2, ...: selects colour, dash and marker.
        joined: True if lines join the points.
        faint: drawn pale and thin, without a legend: the raw values below a smooth curve.
    """

    name: str
    number: int
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    joined: bool = True
    faint: bool = False

    def pieces(self) -> list[list[tuple[float, float]]]:
        """The runs of points without a gap."""
        pieces: list[list[tuple[float, float]]] = [[]]
        for x, y in zip(self.xs, self.ys, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                pieces[-1].append((x, y))
            elif pieces[-1]:
                pieces.append([])
        return [piece for piece in pieces if piece]


@dataclass(frozen=True)
class Box:
    """A filled rectangle, in the numbers of the axes.

    Attributes:
        faint: a part of a region, behind the points.
        shade: the opacity of a cell of a matrix, from 0 to 1.
        label: a text in the middle.
    """

    number: int
    x0: float
    x1: float
    y0: float
    y1: float
    faint: bool = False
    shade: float = 1.0
    label: str = ""


@dataclass(frozen=True)
class Figure:
    """A plot as data.

    Attributes:
        names: the entries of the legend: number and name; empty for a single name.
        notes: sentences below the plot, about gaps and omitted values.
        facts: sentences for a screen reader.
        rows: the number of lines of text between the axes.
        is_matrix: the boxes are cells of a matrix: no grid, and a row of boxes is low.
    """

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    boxes: tuple[Box, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    rows: int = 16
    is_matrix: bool = False


# --- arguments -----------------------------------------------------------------------------------


def host_numbers(function: str, argument: str, value: Any) -> Any:
    """An argument as real numbers: a NumPy array of float64.

    Args:
        function: the called function's name, for messages.
        argument: the argument's name, for messages.
        value: a Variable or an array of any backend, a number, or lists of them.

    Raises:
        TypeError: the argument holds other values than real numbers.
    """
    check_nested(function, argument, value, MOST_NUMBERS)
    try:
        array = numpy.asarray(_on_host(value))
    except (ValueError, TypeError):  # lists of different lengths
        array = numpy.asarray(None)
    if array.dtype.kind not in "biuf" and str(array.dtype) != "bfloat16":
        raise OperandError(
            f"{function}: {argument} must hold real numbers: a list, an array or a Variable, got "
            f"{describe(value)}."
        )
    return array.astype(numpy.float64)


def _on_host(value: Any) -> Any:
    """Variables and arrays as NumPy arrays, in lists too."""
    if isinstance(value, list | tuple):
        return [_on_host(item) for item in value]
    if isinstance(value, Variable) or is_array(value):
        return as_host(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_on_host(item) for item in value]  # a range, a generator
    return value


def numbers(function: str, argument: str, value: Any) -> tuple[float, ...]:
    """As ``host_numbers``, for a series: one axis, and not empty.

    Raises:
        ValueError: the argument is empty, or has more axes.
    """
    array = host_numbers(function, argument, value)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(
            f"{function}: {argument} has shape {array.shape}, expected one axis. Give a dict of "
            "name -> series for several."
        )
    if not array.size:
        raise ValueError(f"{function}: {argument} is empty: there is nothing to draw.")
    return tuple(array.tolist())


def named_series(
    function: str, argument: str, value: Any, name: str
) -> dict[str, tuple[float, ...]]:
    """One series, or a dict of series, by name.

    Raises:
        ValueError: the dict or a series is empty.
    """
    if not isinstance(value, Mapping):
        return {name: numbers(function, argument, value)}
    if not value:
        raise ValueError(f"{function}: {argument} is an empty dict: there is nothing to draw.")
    return {
        str(key): numbers(function, f"{argument}[{key!r}]", series)
        for key, series in value.items()
    }


def check_positive(function: str, argument: str, flag: str, values: Sequence[float]) -> None:
    """Refuse numbers without a place on a logarithmic axis.

    Raises:
        ValueError: a number is 0 or below.
    """
    for position, value in enumerate(values):
        if math.isfinite(value) and value <= 0:
            raise ValueError(
                f"{function}: {argument} is {number_text(value)} at position {position}, and that "
                f"has no place on a logarithmic axis. Put nan there for a gap, or pass "
                f"{flag}=False."
            )


# --- texts ---------------------------------------------------------------------------------------


def gap_notes(curves: Iterable[Curve]) -> list[str]:
    """A sentence for each curve with gaps."""
    notes = []
    for curve in curves:
        pairs = list(zip(curve.xs, curve.ys, strict=True))
        gaps = sum(not (math.isfinite(x) and math.isfinite(y)) for x, y in pairs)
        if gaps:
            notes.append(
                f"{curve.name}: {gaps} of {len(pairs)} points "
                f"{'is' if gaps == 1 else 'are'} nan or inf, and left out."
            )
    return notes


def curve_facts(curves: Iterable[Curve]) -> list[str]:
    """A sentence for each curve: the number of points; first, last, lowest and highest value."""
    facts = []
    for curve in curves:
        points = [point for piece in curve.pieces() for point in piece]
        if not points:
            facts.append(f"{curve.name}: no points.")
            continue
        lowest, highest = min(points, key=itemgetter(1)), max(points, key=itemgetter(1))
        facts.append(
            f"{curve.name}: {len(points)} points, first {number_text(points[0][1])}, last "
            f"{number_text(points[-1][1])}, lowest {number_text(lowest[1])} at "
            f"{number_text(lowest[0])}, highest {number_text(highest[1])} at "
            f"{number_text(highest[0])}."
        )
    return facts


def legend(names: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """The entries of a legend: none for a single name, since the axis has the name."""
    return tuple(enumerate(names)) if len(names) > 1 else ()


def thinned(piece: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A long run of points with fewer: of each group the first, lowest, highest and last point.

    Omitted points lie between kept points, so the picture is the same.
    """
    if len(piece) <= 4 * _KEPT:
        return piece
    size = -(-len(piece) // _KEPT)
    kept: list[tuple[float, float]] = []
    for start in range(0, len(piece), size):
        group = piece[start : start + size]
        ys = [y for _, y in group]
        indexes = {0, len(group) - 1, ys.index(min(ys)), ys.index(max(ys))}
        kept += [group[index] for index in sorted(indexes)]
    return kept

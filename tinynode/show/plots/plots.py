"""Small plots, without a plotting library: losses, distributions, curves, bars, points by class.

Requirement: a tutorial or a notebook shows pictures without a further package. Each function takes
lists, arrays and Variables of any backend, and gives a ``Plot``: SVG in a notebook, characters in
a terminal, a file by ``save``. For other plots, ``matplotlib`` takes the same arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from tinynode.atomic_file import replace_file
from tinynode.configuration import config, no_backprop_mode
from tinynode.core.variable import Variable
from tinynode.devices import Device, current_device, find_device
from tinynode.errors import describe, dtype_name, number_text
from tinynode.safe_files import checked_path
from tinynode.show.pixels import save_png
from tinynode.show.plots.drawing import drawing
from tinynode.show.plots.figure import (
    Box,
    Curve,
    Figure,
    check_positive,
    curve_facts,
    gap_notes,
    host_numbers,
    legend,
    named_series,
    numbers,
)
from tinynode.show.plots.scales import Axis, make_axis, named_axis
from tinynode.show.plots.text import text_of
from tinynode.show.svg import svg
from tinynode.show.texts import clean

_REGION_COLUMNS = 60
_REGION_ROWS = 45


class Plot:
    """A plot: a notebook shows SVG, ``print`` draws with characters.

    Attributes:
        figure: the content as data.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def to_svg(self) -> str:
        """The plot as an ``<svg>`` element, for a page or a file."""
        return svg(drawing(self.figure))

    def to_text(self) -> str:
        """The plot made of characters."""
        return text_of(self.figure)

    def save(self, path: str | Path) -> None:
        """Write the plot to a file: ``.svg``, ``.png`` (needs Pillow) or ``.txt``.

        Raises:
            ValueError: the file's name ends otherwise.
            ImportError: the name ends in ``.png``, and Pillow is not installed.
        """
        target = Path(checked_path("Plot.save", path))
        suffix = target.suffix.lower()
        if suffix == ".png":
            save_png(drawing(self.figure), target)
            return
        if suffix not in (".svg", ".txt"):
            raise ValueError(f"Plot.save: path must end in .svg, .png or .txt, got {str(path)!r}.")
        text = self.to_svg() if suffix == ".svg" else self.to_text()
        replace_file(target, f"{text}\n".encode())

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """For notebooks: the SVG, and the text where no SVG can be shown."""
        return {"image/svg+xml": self.to_svg(), "text/plain": self.to_text()}

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Plot {self.figure.title!r}: print it, or save it as .svg>"


def training_curves(
    losses: Any,
    *,
    smoothing: float = 0.0,
    log: bool = False,
    title: str = "Training",
    x_label: str = "step",
    y_label: str = "loss",
) -> Plot:
    """A plot of losses, or of other numbers of a training.

    With smoothing the curve is s_t = (m_t / (1 - c^t)), m_t = c m_(t-1) + (1 - c) loss_t. The raw
    losses are pale behind the curve.

    Args:
        losses: a number for each step, from step 0; or a dict of name -> numbers.
        smoothing: c, from 0 (none) to below 1: the larger, the smoother.
        log: a logarithmic axis for the losses.
        title: above the plot.
        x_label: the unit of the horizontal axis: step, epoch.
        y_label: the name of the numbers.

    Raises:
        TypeError: the losses are no real numbers.
        ValueError: no losses; smoothing is out of range; with ``log``, a loss is 0 or below.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"training_curves: smoothing must be from 0 to below 1, got {smoothing}.")
    series = named_series("training_curves", "losses", losses, y_label or "loss")
    curves, faint = [], []
    for number, (name, ys) in enumerate(series.items()):
        xs = tuple(map(float, range(len(ys))))
        if log:
            check_positive("training_curves", f"losses of {name!r}", "log", ys)
        if smoothing:
            faint.append(Curve(name, number, xs, ys, faint=True))
        curves.append(Curve(name, number, xs, _smooth(ys, smoothing) if smoothing else ys))
    x = make_axis(x_label, [x for curve in curves for x in curve.xs], whole=True)
    return _line_plot(curves, faint, title, x, (y_label, log))


def _smooth(values: Sequence[float], keep: float) -> tuple[float, ...]:
    """A moving mean with exponential weights; a gap stays a gap, and has no weight."""
    mean = weight = 0.0
    result = []
    for value in values:
        if math.isfinite(value):
            mean = keep * mean + (1 - keep) * value
            weight = keep * weight + (1 - keep)
        result.append(mean / weight if math.isfinite(value) else math.nan)
    return tuple(result)


def lines(
    x: Any,
    ys: Any,
    *,
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
    x_label: str = "x",
    y_label: str = "y",
) -> Plot:
    """Curves over x: lines join the points of each curve in the given order.

    Args:
        x: the numbers of the horizontal axis.
        ys: as many numbers; or a dict of name -> numbers.
        log_x: a logarithmic horizontal axis.
        log_y: a logarithmic vertical axis.
        title: above the plot.
        x_label: the name of x.
        y_label: the name of the numbers in ``ys``.

    Raises:
        TypeError: an argument holds other values than real numbers.
        ValueError: an argument is empty; lengths differ; a number has no place on a logarithmic
            axis.
    """
    xs = numbers("lines", "x", x)
    if log_x:
        check_positive("lines", "x", "log_x", xs)
    curves = []
    for number, (name, series) in enumerate(named_series("lines", "ys", ys, y_label).items()):
        if len(series) != len(xs):
            raise ValueError(
                f"lines: {name!r} has {len(series)} numbers and x has {len(xs)}: each point needs "
                "both."
            )
        if log_y:
            check_positive("lines", f"{name!r}", "log_y", series)
        curves.append(Curve(name, number, xs, series))
    kept = [px for curve in curves for piece in curve.pieces() for px, _ in piece]
    return _line_plot(curves, [], title, make_axis(x_label, kept, log=log_x), (y_label, log_y))


def _line_plot(
    curves: list[Curve], faint: list[Curve], title: str, x: Axis, y: tuple[str, bool]
) -> Plot:
    pieces = [piece for curve in [*curves, *faint] for piece in curve.pieces()]
    heights = [height for piece in pieces for _, height in piece]
    figure = Figure(
        title,
        x,
        make_axis(y[0], heights, log=y[1], pad=0.04),
        curves=(*faint, *curves),
        names=legend([curve.name for curve in curves]),
        notes=tuple(gap_notes(curves)),
        facts=tuple(curve_facts(curves)),
    )
    return Plot(figure)


def histogram(
    values: Any,
    *,
    bins: int | None = None,
    title: str = "Histogram",
    x_label: str = "value",
    y_label: str = "count",
) -> Plot:
    """The frequency of values: bars over ranges of equal width.

    Args:
        values: an array of any shape.
        bins: the number of bars; by default about the square root of the number of values, from 5
            to 40.
        title: above the plot.
        x_label: the name of the values.
        y_label: the name of the bars' heights.

    Raises:
        TypeError: the values are no real numbers.
        ValueError: no value is finite; ``bins`` is below 1.
    """
    if bins is not None and (not isinstance(bins, int) or bins < 1):
        raise ValueError(f"histogram: bins must be an int of at least 1, got {describe(bins)}.")
    array = host_numbers("histogram", "values", values).reshape(-1)
    kept = array[numpy.isfinite(array)]
    if not kept.size:
        why = "is empty" if not array.size else f"has {array.size} entries, all nan or inf"
        raise ValueError(f"histogram: values {why}: there is nothing to count.")
    number = bins or min(40, max(5, round(kept.size**0.5)))
    axis = make_axis(x_label, [float(kept.min()), float(kept.max())])
    fractions = numpy.asarray([axis.fraction(value) for value in kept.tolist()])
    counts = numpy.bincount(_bins_of(fractions, number), minlength=number).tolist()
    edges = _edges(axis, number)
    boxes = [
        Box(0, edges[i], edges[i + 1], 0.0, float(count))
        for i, count in enumerate(counts)
        if count
    ]
    left_out = array.size - kept.size
    notes = [f"{left_out} of {array.size} values are nan or inf, and left out."] * bool(left_out)
    facts = (
        f"{kept.size} values from {number_text(kept.min())} to {number_text(kept.max())} in "
        f"{number} bars, the highest {max(counts)}."
    )
    y = make_axis(y_label, [0.0, float(max(counts))], whole=True)
    return Plot(Figure(title, axis, y, boxes=tuple(boxes), notes=tuple(notes), facts=(facts,)))


def _bins_of(fractions: Any, number: int) -> Any:
    """The bar of each fraction of the axis; the right edge belongs to the last bar."""
    return numpy.clip((fractions * number).astype(numpy.int64), 0, number - 1)


def _edges(axis: Axis, number: int) -> list[float]:
    low, high = axis.low, axis.high
    return [low * (1 - i / number) + high * (i / number) for i in range(number + 1)]


def bars(values: Mapping[Any, Any], *, title: str = "", x_label: str = "") -> Plot:
    """Named numbers as bars from 0, in the order of the dict; the numbers follow the names.

    Args:
        values: name -> number.
        title: above the plot.
        x_label: the name of the numbers, with the unit.

    Raises:
        TypeError: ``values`` is no dict, or holds other values than real numbers.
        ValueError: ``values`` is empty.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"bars: values must be a dict of name -> number, got {describe(values)}.")
    if not values:
        raise ValueError("bars: values is empty: there is nothing to draw.")
    lengths: dict[str, float] = {}
    for name, value in values.items():
        (lengths[str(name)],) = _one_number(f"values[{name!r}]", value)
    known = {name: length for name, length in lengths.items() if math.isfinite(length)}
    boxes = tuple(
        Box(0, 0.0, length, row - 0.38, row + 0.38)
        for row, (name, length) in enumerate(lengths.items())
        if name in known
    )
    names = [f"{clean(name, 18)}: {number_text(length)}" for name, length in lengths.items()]
    missing = [name for name in lengths if name not in known]
    notes = [f"{name} is {lengths[name]}, and has no bar." for name in missing]
    figure = Figure(
        title,
        make_axis(x_label, [0.0, *known.values()]),
        named_axis("", names),
        boxes=boxes,
        notes=tuple(notes),
        facts=tuple(f"{name}: {number_text(length)}." for name, length in lengths.items()),
        rows=len(names),
    )
    return Plot(figure)


def _one_number(argument: str, value: Any) -> tuple[float, ...]:
    found = numbers("bars", argument, value)
    if len(found) != 1:
        raise ValueError(f"bars: {argument} must be one number, got {len(found)}.")
    return found


def points(
    xy: Any,
    classes: Any = None,
    *,
    region: Callable[[Any], Any] | None = None,
    title: str = "",
    x_label: str = "x",
    y_label: str = "y",
) -> Plot:
    """Points in the plane, by class; behind the points, the regions of a classifier.

    Args:
        xy: the points, of shape (n, 2).
        classes: n numbers or texts; by default all points are of one class.
        region: a classifier: a function from points, an array of shape (m, 2), to the class of
            each point, of shape (m). The points have the device and dtype of ``xy``. The
            function runs under ``no_backprop_mode``.
        title: above the plot.
        x_label: the name of the first coordinate.
        y_label: the name of the second coordinate.

    Raises:
        TypeError: ``xy`` holds other values than real numbers.
        ValueError: a shape differs, or ``xy`` is empty.
    """
    array = host_numbers("points", "xy", xy)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"points: xy must have the shape (n, 2), got {array.shape}.")
    if not len(array):
        raise ValueError("points: xy is empty: there is nothing to draw.")
    one = ["points"] * len(array)
    given = one if classes is None else _classes("classes", classes, len(array))
    good = array[numpy.isfinite(array).all(axis=1)]
    x = make_axis(x_label, good[:, 0].tolist(), pad=0.05)
    y = make_axis(y_label, good[:, 1].tolist(), pad=0.05)
    grid = [] if region is None else _region(region, xy, x, y)
    names = _sorted_names([*given, *(name for row in grid for name in row)])
    curves = []
    for number, name in enumerate(names):
        own = [index for index, of in enumerate(given) if of == name]
        xs, ys = array[own, 0].tolist(), array[own, 1].tolist()
        curves.append(Curve(str(name), number, tuple(xs), tuple(ys), joined=False))
    figure = Figure(
        title,
        x,
        y,
        curves=tuple(curves),
        boxes=tuple(_region_boxes(grid, names, x, y)),
        names=legend([str(name) for name in names]),
        notes=tuple(gap_notes(curves)),
        facts=tuple(f"{curve.name}: {len(curve.xs)} points." for curve in curves),
        rows=20,
    )
    return Plot(figure)


def _classes(argument: str, classes: Any, expected: int) -> list[Any]:
    """One class for each point: numbers or texts."""
    found: list[Any]
    if isinstance(classes, list | tuple) and any(isinstance(name, str) for name in classes):
        found = [str(name) for name in classes]
    elif isinstance(classes, numpy.ndarray) and classes.dtype.kind in "US":
        found = [str(name) for name in classes.reshape(-1).tolist()]
    else:
        array = host_numbers("points", argument, classes)
        if array.ndim != 1:
            raise ValueError(
                f"points: {argument} has shape {array.shape}, expected ({expected},): one class "
                "for each point. Of scores take the argmax over the last axis."
            )
        found = [_whole(number) for number in array.tolist()]
    if len(found) != expected:
        raise ValueError(
            f"points: {argument} has {len(found)} classes for {expected} points: each point has "
            "one."
        )
    return found


def _whole(number: float) -> float | int:
    """An integral number as an int: class 1.0 is class 1."""
    return int(number) if number.is_integer() else number


def _sorted_names(classes: Sequence[Any]) -> list[Any]:
    """The classes, each once: numbers by size, then texts by alphabet."""
    return sorted(dict.fromkeys(classes), key=_class_order)


def _class_order(name: Any) -> tuple[bool, float, str]:
    return (True, 0.0, name) if isinstance(name, str) else (False, name, "")


def _region(region: Callable[[Any], Any], xy: Any, x: Axis, y: Axis) -> list[list[Any]]:
    """The classes at the middles of the cells: rows, from below."""
    across = [(i + 0.5) / _REGION_COLUMNS for i in range(_REGION_COLUMNS)]
    up = [(i + 0.5) / _REGION_ROWS for i in range(_REGION_ROWS)]
    host = numpy.asarray([(_at(x, i), _at(y, j)) for j in up for i in across])
    device, dtype = _device_and_dtype(xy)
    with no_backprop_mode():
        answer = region(device.from_host(host.astype(dtype)))
    found = _classes("what region returned", answer, len(host))
    return [found[i : i + _REGION_COLUMNS] for i in range(0, len(found), _REGION_COLUMNS)]


def _at(axis: Axis, fraction: float) -> float:
    return axis.low * (1 - fraction) + axis.high * fraction


def _device_and_dtype(xy: Any) -> tuple[Device, str]:
    """The device and the dtype of a classifier's input."""
    array = xy.array if isinstance(xy, Variable) else xy
    device = xy.device if isinstance(xy, Variable) else find_device(array)
    if device is None:
        return current_device(), config.dtype
    name = dtype_name(array.dtype)
    return device, name if name in ("float16", "float32", "float64") else config.dtype


def _region_boxes(grid: list[list[Any]], names: list[Any], x: Axis, y: Axis) -> list[Box]:
    """The boxes of a region: neighbouring cells of a row and a class are one box."""
    boxes = []
    for row, cells in enumerate(grid):
        low, high = _at(y, row / _REGION_ROWS), _at(y, (row + 1) / _REGION_ROWS)
        start = 0
        for column in range(1, len(cells) + 1):
            if column == len(cells) or cells[column] != cells[start]:
                left, right = _at(x, start / _REGION_COLUMNS), _at(x, column / _REGION_COLUMNS)
                boxes.append(Box(names.index(cells[start]), left, right, low, high, faint=True))
                start = column
    return boxes


# --- matrices -----------------------------------------------------------------------------------

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
        columns: m names; by default 0, 1, 2, ...
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
        _matrix_cell(row, column, float(array[row, column]), largest, array.shape[1] <= _LABELLED)
        for row, column in numpy.argwhere(finite).tolist()
    ]
    missing = int(array.size - finite.sum())
    y = _matrix_axis("rows", y_label, rows, array.shape[0])
    x = _matrix_axis("columns", x_label, columns, array.shape[1])
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


def _matrix_cell(row: int, column: int, value: float, largest: float, has_label: bool) -> Box:
    return Box(
        1 if value < 0 else 0,
        column - 0.5,
        column + 0.5,
        row - 0.5,
        row + 0.5,
        shade=abs(value) / largest,
        label=number_text(float(f"{value:.2g}")) if has_label else "",
    )


def _matrix_axis(argument: str, label: str, names: Sequence[Any] | None, size: int) -> Axis:
    """An axis with a name for each row or column; without names, some positions."""
    if names is None:
        every = math.ceil(size / _TICKS)
        ticks = tuple((float(i), str(i)) for i in range(0, size, every))
        return Axis(label, size - 0.5, -0.5, False, ticks)
    if len(names) != size:
        raise ValueError(f"matrix: {argument} has {len(names)} names, expected {size}.")
    return named_axis(label, [str(name) for name in names])

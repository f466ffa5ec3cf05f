"""Summaries of arrays for a film: a few numbers in place of the array.

Requirement: a film shows computed values, keeps no array of the user's alive, and costs little
during the recording. So a film takes at most 256 elements of each array at the time of the step,
with the smallest, the largest and the mean. Arrays of equal content share one entry.

For a replay a film may keep whole arrays, as copies on the host.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.devices import to_host, without_hidden_axes

CELLS = 256
"""The largest number of elements kept of an array."""

IMAGE = (5, 32)
"""The smallest and the largest side of an image."""

KEPT_CELLS = 100_000
"""The largest number of elements kept of all arrays of a film."""

ALWAYS = 6
"""An array of at most so many elements keeps its elements in every iteration."""

MOST_BYTES = 2**30
"""The largest size of all whole arrays of a film; further large arrays are sampled."""

DIGITS = 4
"""The significant digits of a number in a film."""

_THREE = struct.Struct("3d")  # smallest, largest and mean

Number = int | float | str | None
"""A number for JSON: None stands for nan, "inf" and "-inf" for the infinities."""


@dataclass(frozen=True)
class Content:
    """An array as a film keeps it.

    Attributes:
        shape: the shape of the array.
        dtype: its dtype.
        cells: the bytes of the elements, of all or of a sample.
        statistics: the bytes of smallest, largest and mean of the finite elements, in double
            precision; empty if all elements are in cells.
        bad: the number of elements that are not finite, of an array with statistics.
    """

    shape: tuple[int, ...]
    dtype: Any
    cells: bytes
    statistics: bytes = b""
    bad: int = 0

    def numbers(self) -> Any:
        """The elements and the statistics, in double precision."""
        cells = numpy.frombuffer(self.cells, self.dtype)
        wide = numpy.complex128 if self.dtype.kind == "c" else numpy.float64
        return numpy.concatenate([cells.astype(wide), numpy.frombuffer(self.statistics)])


class Values:
    """The values of a film, each once, known by their indexes.

    Attributes:
        keeps_whole: True to keep arrays of any size, beside the summaries.
    """

    def __init__(self) -> None:
        self.keeps_whole = False
        self._bytes = 0
        self._index: dict[Any, int] = {}
        self._keys: list[Any] = []

    def __len__(self) -> int:
        return len(self._index)

    def add(self, array: Any) -> int | None:
        """Keep the summary of an array, and give its index; None for no array.

        In a vmapped function, the summary is that of all examples.
        """
        if array is None:
            return None
        host = to_host(without_hidden_axes(array))
        key = _summary(host)
        is_whole = self.keeps_whole and host.size > CELLS
        if is_whole and self._bytes + host.nbytes <= MOST_BYTES:
            key = (*key, host.tobytes())
        index = self._index.setdefault(key, len(self._keys))
        if index == len(self._keys):
            self._keys.append(key)
            self._bytes += host.nbytes if len(key) > _SUMMARY else 0
        return index

    def copy(self) -> Values:
        """The same values with the same indexes; additions stay apart."""
        twin = Values()
        twin._index, twin._keys = dict(self._index), list(self._keys)
        return twin

    def take(self, other: Values, index: int) -> int:
        """Keep a value of another film, and give its index here."""
        key = other._keys[index]
        if key not in self._index:
            self._index[key] = len(self._keys)
            self._keys.append(key)
        return self._index[key]

    def content(self, index: int) -> Content:
        """The array with an index, as the film shows it."""
        return _content(self._keys[index])

    def whole(self, index: int) -> Content | None:
        """The array with an index and all elements; None if the film has a sample."""
        key = self._keys[index]
        shape, dtype, cells = key[:3]
        if math.prod(shape) <= CELLS:
            return Content(shape, dtype, cells)
        return Content(shape, dtype, key[-1]) if len(key) > _SUMMARY else None

    def describe(self, index: int) -> dict[str, Any]:
        """The array with an index for JSON, with its elements."""
        return _describe(*self._keys[index][:_SUMMARY], is_thin=False)

    def data(self, iterations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """All values for JSON; in a long film, some iterations keep the elements of arrays.

        Each iteration gets "arrays": True if its arrays keep their elements. The first and the
        last iteration keep them, and others at equal distances.
        """
        sizes = [min(math.prod(key[0]), CELLS) for key in self._index]
        used = [{value for value in one["values"] if value is not None} for one in iterations]
        large = [[i for i in one if sizes[i] > ALWAYS] for one in used]
        kept: set[int] = set()
        for distance in range(1, len(iterations) + 1):
            kept = set()
            for number in _at_distance(len(iterations), distance):
                kept.update(large[number])
            if sum(sizes[i] for i in kept) <= KEPT_CELLS:
                break
        for number, one in enumerate(iterations):
            one["arrays"] = kept.issuperset(large[number])
        return [
            _describe(*key[:_SUMMARY], is_thin=i not in kept and sizes[i] > ALWAYS)
            for i, key in enumerate(self._index)
        ]


_SUMMARY = 4
"""The length of a summary; a longer key ends with the bytes of the whole array."""


def _summary(host: Any) -> Any:
    """Shape, dtype and elements; of a large array a sample of the elements, and statistics."""
    if host.size <= CELLS:
        return host.shape, host.dtype, host.tobytes()
    return host.shape, host.dtype, _sample(host).tobytes(), _statistics(host)


def _content(key: Any) -> Content:
    shape, dtype, cells, *more = key
    if not more:
        return Content(shape, dtype, cells)
    three, bad = more[0]
    return Content(shape, dtype, cells, three, bad)


def content_of(host: Any, is_whole: bool) -> Content:
    """An array on the host in the form of a film: whole, or as a summary."""
    if is_whole:
        return Content(host.shape, host.dtype, host.tobytes())
    return _content(_summary(host))


def describe_gap(one: Content, other: Content) -> dict[str, Any] | None:
    """For JSON the second array minus the first, or what is kept; None for other shapes."""
    kinds = one.dtype.kind + other.dtype.kind
    if one.shape != other.shape or len(one.cells) == 0 or "c" in kinds:
        return None
    cells = [numpy.frombuffer(x.cells, x.dtype).astype(numpy.float64) for x in (one, other)]
    with numpy.errstate(all="ignore"):
        gap = cells[1] - cells[0]
    three = _statistics(gap) if math.prod(one.shape) > CELLS else None
    return _describe(one.shape, gap.dtype, gap.tobytes(), three, is_thin=False)


def _at_distance(count: int, distance: int) -> list[int]:
    """The numbers from 0 to the last, each so far from the next; the last is always there."""
    return sorted({*range(0, count, distance), count - 1})


def _image_grid(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """For a stack of small matrices, such as images: the shown number, rows and columns."""
    if len(shape) < 3 or not math.prod(shape):
        return None
    rows, columns = shape[-2:]
    if not (IMAGE[0] <= rows <= IMAGE[1] and IMAGE[0] <= columns <= IMAGE[1]):
        return None
    return min(math.prod(shape[:-2]), max(1, CELLS // (rows * columns))), rows, columns


def _grid(host: Any) -> Any:
    """An array as a matrix: its last axis gives the columns; a stack of images side by side."""
    if host.ndim == 2:
        return host
    images = _image_grid(host.shape)
    if images is not None:
        count, rows, columns = images
        shown = host.reshape((-1, rows, columns))[:count]
        return shown.swapaxes(0, 1).reshape((rows, count * columns))
    return host.reshape((-1, host.shape[-1]) if host.ndim and host.size else (1, host.size))


@functools.lru_cache(maxsize=256)
def _steps(shape: tuple[int, ...], rows: int, columns: int) -> tuple[int, int]:
    """The steps k and l: every k-th row and l-th column give at most ``CELLS`` elements."""
    if _image_grid(shape) is not None:
        return 1, 1
    side = math.isqrt(CELLS)
    shown_columns = min(columns, max(side, CELLS // max(rows, 1)))
    shown_rows = min(rows, CELLS // max(shown_columns, 1))
    return math.ceil(rows / max(shown_rows, 1)), math.ceil(columns / max(shown_columns, 1))


@functools.lru_cache(maxsize=256)
def _shown(shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows and columns of the elements kept of an array."""
    empty = numpy.broadcast_to(numpy.False_, shape)
    rows, columns = _grid(empty).shape
    if math.prod(shape) <= CELLS:
        return rows, columns
    k, m = _steps(shape, rows, columns)
    return math.ceil(rows / k), math.ceil(columns / m)


def _sample(host: Any) -> Any:
    grid = _grid(host)
    k, m = _steps(host.shape, *grid.shape)
    return grid[::k, ::m]


def _statistics(host: Any) -> tuple[bytes, int]:
    """Smallest, largest and mean of the finite elements, as bytes; and the number of the others.

    Bytes, because equal summaries must be equal keys, and a nan is not equal to itself.
    """
    if host.dtype.kind == "c":
        host = numpy.abs(host)
    exact = host.dtype.itemsize >= 4 and host.dtype.kind == "f"
    with numpy.errstate(all="ignore"):
        low, high = numpy.minimum.reduce(host, axis=None), numpy.maximum.reduce(host, axis=None)
        if not (math.isfinite(low) and math.isfinite(high)):
            return _of_finite(host)
        total = numpy.add.reduce(host, axis=None, dtype=None if exact else numpy.float64)
    return _THREE.pack(low, high, float(total) / host.size), 0


def _of_finite(host: Any) -> tuple[bytes, int]:
    finite = host[numpy.isfinite(host)].astype(numpy.float64)
    bad = int(host.size - finite.size)
    if not finite.size:
        return numpy.full(3, numpy.nan).tobytes(), bad
    with numpy.errstate(all="ignore"):
        three = [finite.min(), finite.max(), finite.mean()]
    return numpy.asarray(three, numpy.float64).tobytes(), bad


def _describe(
    shape: tuple[int, ...],
    dtype: Any,
    content: bytes,
    statistics: tuple[bytes, int] | None = None,
    *,
    is_thin: bool,
) -> dict[str, Any]:
    cells = numpy.frombuffer(content, dtype)
    size = math.prod(shape)
    rows, columns = _shown(shape)
    if statistics is None:
        three, bad = _statistics(cells) if size else (numpy.full(3, numpy.nan).tobytes(), 0)
    else:
        three, bad = statistics
    low, high, mean = numpy.frombuffer(three, numpy.float64).tolist()
    whole = dtype.kind in "iub"
    if dtype.kind == "c":
        cells = numpy.abs(cells)
    return {
        "shape": list(shape),
        "dtype": dtype.name + (" (absolute values)" if dtype.kind == "c" else ""),
        "min": _number(low, whole),
        "max": _number(high, whole),
        "mean": _number(mean),
        "bad": bad,
        "rows": rows,
        "columns": columns,
        "cells": [] if is_thin else [_number(cell, whole) for cell in cells.tolist()],
        "sampled": size > CELLS,
        "thinned": is_thin,
    }


def _number(x: Any, whole: bool = False) -> Number:
    """A number for JSON: integers unchanged, others with 4 significant digits."""
    if x != x:
        return None
    if x in (math.inf, -math.inf):
        return "inf" if x > 0 else "-inf"
    return int(x) if whole else float(f"{x:.{DIGITS}g}")

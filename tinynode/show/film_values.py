"""Summaries of arrays for a film: a few numbers in place of the array.

Requirement: a film shows computed values, keeps no array of the user's alive, and costs little
during the recording. So a film takes at most 256 elements of each array at the time of the step,
with the smallest, the largest and the mean. Arrays of equal content share one entry.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.devices import Device

CELLS = 256
"""The largest number of elements kept of an array."""

DIGITS = 4
"""The significant digits of a number in a film."""

Number = int | float | str | None
"""A number for JSON: None stands for nan, "inf" and "-inf" for the infinities."""


class Values:
    """The values of a film, each once, known by their indexes."""

    def __init__(self) -> None:
        self._index: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._index)

    def add(self, array: Any, device: Device) -> int | None:
        """Keep the summary of an array, and give its index; None for no array."""
        if array is None:
            return None
        host = array if type(array) is numpy.ndarray else device.backend.to_host(array)
        if host.size <= CELLS:
            key: Any = (host.shape, host.dtype, host.tobytes())
        else:
            key = (host.shape, host.dtype, _sample(host).tobytes(), _statistics(host))
        return self._index.setdefault(key, len(self._index))

    def data(self) -> list[dict[str, Any]]:
        """All values for JSON."""
        return [_describe(*key) for key in self._index]


def _grid(host: Any) -> Any:
    """An array as a matrix: its last axis gives the columns."""
    if host.ndim == 2:
        return host
    return host.reshape((-1, host.shape[-1]) if host.ndim and host.size else (1, host.size))


def _steps(rows: int, columns: int) -> tuple[int, int]:
    """The steps k and l: every k-th row and l-th column give at most ``CELLS`` elements."""
    side = math.isqrt(CELLS)
    shown_columns = min(columns, max(side, CELLS // max(rows, 1)))
    shown_rows = min(rows, CELLS // max(shown_columns, 1))
    return math.ceil(rows / max(shown_rows, 1)), math.ceil(columns / max(shown_columns, 1))


def _sample(host: Any) -> Any:
    grid = _grid(host)
    k, m = _steps(*grid.shape)
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
        mean = numpy.add.reduce(host, axis=None, dtype=None if exact else numpy.float64)
        mean = float(mean) / host.size
    return numpy.asarray([low, high, mean], numpy.float64).tobytes(), 0


def _of_finite(host: Any) -> tuple[bytes, int]:
    finite = host[numpy.isfinite(host)].astype(numpy.float64)
    bad = int(host.size - finite.size)
    if not finite.size:
        return numpy.full(3, numpy.nan).tobytes(), bad
    with numpy.errstate(all="ignore"):
        three = [finite.min(), finite.max(), finite.mean()]
    return numpy.asarray(three, numpy.float64).tobytes(), bad


def _describe(
    shape: tuple[int, ...], dtype: Any, content: bytes, statistics: tuple[bytes, int] | None = None
) -> dict[str, Any]:
    cells = numpy.frombuffer(content, dtype)
    size = math.prod(shape)
    rows, columns = _grid(numpy.empty(shape, numpy.bool_)).shape
    if statistics is None:
        three, bad = _statistics(cells) if size else (numpy.full(3, numpy.nan).tobytes(), 0)
    else:
        three, bad = statistics
        k, m = _steps(rows, columns)
        rows, columns = math.ceil(rows / k), math.ceil(columns / m)
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
        "cells": [_number(cell, whole) for cell in cells.tolist()],
        "sampled": size > CELLS,
    }


def _number(x: Any, whole: bool = False) -> Number:
    """A number for JSON: integers unchanged, others with 4 significant digits."""
    if x != x:
        return None
    if x in (math.inf, -math.inf):
        return "inf" if x > 0 else "-inf"
    return int(x) if whole else float(f"{x:.{DIGITS}g}")

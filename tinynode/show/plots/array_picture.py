"""A large array as a picture: a heat map, a histogram, and the statistics beside them.

Requirement: a small picture shows the size and the sign of an array's elements, and an image looks
like an image. Colours are those of films. Where a picture or a number stands for a part of the
array, the text names the part as an index: ``[::2, ::2]``.

The pictures are PNG files: notebooks that do not trust an output remove ``<svg>`` elements, and
keep images.

Source: W3C, Portable Network Graphics Specification, third edition, 2025 (chunks, indexed colour).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.devices import Array, to_host
from tinynode.errors import number_text
from tinynode.show.palette import EITHER, SHADES, heat_opacity, red_green_blue

MOST = 2**22
"""Of an array with more elements, statistics and histogram are of a sample."""

_HEIGHT = 84  # pixels
_WIDTH = 300
_CELL = 10  # the largest cell, in pixels
_SMALLEST_CELL = 2
_GAP = 4  # between matrices
_STRIP = 20  # the height of a heat map of one row
_BARS = 24
_NARROW = 1e-13  # of the largest element: a narrower range has no histogram
_BAR_WIDTH = 4
_BAR_HEIGHT = 60
_BAD = 2 * SHADES + 1  # the colours by index: none, plus, minus, bad, grey
_GREY = _BAD + 1

Index = tuple[int | slice, ...]

Colour = tuple[int, int, int, int]
"""Red, green, blue and opacity, each from 0 to 255."""


def _colours() -> list[Colour]:
    colours: list[Colour] = [(0, 0, 0, 0)]
    for sign in (EITHER.plus, EITHER.minus):
        for shade in range(1, SHADES + 1):
            colours.append((*red_green_blue(sign), round(255 * heat_opacity(shade))))
    return [*colours, (*red_green_blue(EITHER.bad), 255), (128, 128, 128, 200)]


@dataclass(frozen=True)
class Picture:
    """A PNG file, its size in pixels, and its content in words."""

    file: bytes
    width: int
    height: int
    words: str


@dataclass(frozen=True)
class Statistics:
    """Finite elements of an array, and the facts of all.

    Attributes:
        finite: the finite elements as float64; of complex numbers, the absolute values.
        largest: the largest absolute value.
        is_whole: True for a dtype of whole numbers or bools.
        facts: short texts: min, mean, max, the number of others, the sample.
    """

    finite: numpy.ndarray
    largest: float
    is_whole: bool
    facts: tuple[str, ...]


def index_text(index: Index) -> str:
    """An index as in a program: ``[0, :8, ::2]``."""
    return f"[{', '.join(map(_part_text, index))}]"


def _part_text(part: int | slice) -> str:
    if isinstance(part, int):
        return str(part)
    step = "" if part.step in (None, 1) else f":{part.step}"
    return f":{'' if part.stop is None else part.stop}{step}"


def is_part(index: Index, shape: tuple[int, ...]) -> bool:
    """True if an index leaves elements out."""
    return any(
        size > 1 and (isinstance(part, int) or (part.stop or size) < size or (part.step or 1) > 1)
        for part, size in zip(index, shape, strict=True)
    )


def _real_numbers(host: numpy.ndarray) -> numpy.ndarray:
    """An array as float64; of complex numbers, the absolute values."""
    return (numpy.abs(host) if host.dtype.kind == "c" else host).astype(numpy.float64)


# --- statistics ----------------------------------------------------------------------------------


def statistics(array: Array) -> Statistics:
    """The statistics of a non-empty array; of more than ``MOST`` elements, those of a sample."""
    steps = _sample_steps(tuple(array.shape))
    index: Index = tuple(slice(None, None, step) for step in steps)
    host = to_host(array[index])
    with numpy.errstate(all="ignore"):
        numbers = _real_numbers(host)
        finite = numbers[numpy.isfinite(numbers)]
    largest = float(numpy.max(numpy.abs(finite), initial=0.0))
    facts = _facts(host, finite, largest)
    if max(steps, default=1) > 1:
        facts.append(f"all of the sample {index_text(index)}")
    return Statistics(finite, largest, host.dtype.kind in "biu", tuple(facts))


def _sample_steps(shape: tuple[int, ...]) -> list[int]:
    """The step along each axis, so that about ``MOST`` elements remain."""
    left = math.ceil(math.prod(shape) / MOST)
    steps = []
    for size in shape:
        steps.append(min(left, size))
        left = math.ceil(left / steps[-1])
    return steps


def _facts(host: numpy.ndarray, finite: numpy.ndarray, largest: float) -> list[str]:
    """The texts; the mean is computed from parts of the largest element, so no sum is inf."""
    if host.dtype.kind == "b":
        return [f"{int(host.sum())} of {host.size} are True"]
    facts = ["absolute values"] if host.dtype.kind == "c" else []
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        mean = float((finite / (largest or 1.0)).mean()) * largest
        if host.dtype.kind in "iu":
            ends = str(host.min()), str(host.max())
        else:
            ends = number_text(low), number_text(high)
        facts += [f"min {ends[0]}", f"mean {number_text(mean)}", f"max {ends[1]}"]
    if finite.size < host.size:
        facts.append(f"{host.size - finite.size} nan or inf")
    return facts


# --- the heat map --------------------------------------------------------------------------------


def heat_map(array: Array, largest: float) -> tuple[Picture, Index]:
    """The picture of an array with one axis or more, and the index of the drawn part.

    Of a stack, the first matrices lie side by side. A sample takes every k-th row and column.

    Args:
        array: not empty.
        largest: the absolute value of the strongest colour.
    """
    shape = tuple(array.shape)
    rows, columns = (1, *shape)[-2:]
    row_step, column_step = _steps(rows, columns)
    rows, columns = math.ceil(rows / row_step), math.ceil(columns / column_step)
    height, width = _cell_size(rows, columns)
    number = max(1, (_WIDTH + _GAP) // (columns * width + _GAP))
    index = (*_stack_index(shape[:-2], number), *_slices((row_step, column_step)[-len(shape) :]))
    drawn = _real_numbers(to_host(array[index])).reshape(-1, rows, columns)
    cells = _shades(drawn, largest).repeat(height, axis=1).repeat(width, axis=2)
    gap = numpy.zeros((rows * height, _GAP), numpy.uint8)
    pixels = numpy.hstack([part for matrix in cells for part in (gap, matrix)][1:])
    words = f"heat map of {index_text(index) if is_part(index, shape) else 'all elements'}"
    return _picture(pixels, f"{words}: green above 0, purple below 0, red for nan and inf"), index


def _steps(rows: int, columns: int) -> tuple[int, int]:
    """The distances of drawn rows and columns; equal for a nearly square matrix, an image."""
    row_step = math.ceil(rows * _SMALLEST_CELL / _HEIGHT)
    column_step = math.ceil(columns * _SMALLEST_CELL / _WIDTH)
    if _nearly_square(rows, columns):
        return max(row_step, column_step), max(row_step, column_step)
    return row_step, column_step


def _nearly_square(rows: int, columns: int) -> bool:
    return max(rows, columns) <= 2 * min(rows, columns)


def _cell_size(rows: int, columns: int) -> tuple[int, int]:
    """The height and width of a cell in pixels."""
    if rows == 1:
        return _STRIP, max(_SMALLEST_CELL, min(_CELL, _WIDTH // columns))
    height, width = min(_CELL, _HEIGHT // rows), min(_CELL, _WIDTH // columns)
    if _nearly_square(rows, columns):
        return min(height, width), min(height, width)
    return height, width


def _stack_index(axes: tuple[int, ...], number: int) -> Index:
    """Index 0 of the leading axes, and several of the first axis with more than one."""
    first = next((axis for axis, size in enumerate(axes) if size > 1), None)
    return tuple(
        slice(min(number, size)) if axis == first else 0 for axis, size in enumerate(axes)
    )


def _slices(steps: tuple[int, ...]) -> Index:
    return tuple(slice(None, None, step) for step in steps)


def _shades(values: numpy.ndarray, largest: float) -> numpy.ndarray:
    """The index of each value's colour; only 0 has none."""
    with numpy.errstate(all="ignore"):
        shades = numpy.ceil(numpy.abs(values) / (largest or 1.0) * SHADES)
    finite = numpy.isfinite(values)
    shades = numpy.clip(numpy.where(finite, shades, 0), values != 0, SHADES)
    indexes = numpy.where(values < 0, SHADES + shades, shades)
    return numpy.where(finite, indexes, _BAD).astype(numpy.uint8)


# --- the histogram -------------------------------------------------------------------------------


def histogram(found: Statistics) -> Picture | None:
    """The frequencies from the smallest to the largest element.

    None for bools, and for elements that are equal up to rounding.
    """
    low, high = _ends(found.finite)
    is_narrow = high / 2 - low / 2 <= _NARROW * found.largest
    if is_narrow or (low, high, found.is_whole) == (0.0, 1.0, True):
        return None
    counts, edges = _counts(found, low, high)
    heights = numpy.ceil(counts / counts.max() * _BAR_HEIGHT)
    colours = numpy.where(edges[:-1] >= 0, SHADES, _GREY)
    colours = numpy.where(edges[1:] <= 0, 2 * SHADES, colours)
    levels = numpy.arange(_BAR_HEIGHT, 0, -1)[:, None]
    bars = numpy.where(levels <= heights, colours, 0).repeat(_BAR_WIDTH, axis=1)
    bars[:, _BAR_WIDTH - 1 :: _BAR_WIDTH] = 0
    pixels = numpy.vstack([bars, numpy.full((1, bars.shape[1]), _GREY)]).astype(numpy.uint8)
    top = int(counts.argmax())
    middle = (edges[top] / 2 + edges[top + 1] / 2) * found.largest
    words = (
        f"histogram of {found.finite.size} elements from {number_text(low)} to "
        f"{number_text(high)} in {len(counts)} bars, the highest near {number_text(middle)}: "
        f"{counts.max()}"
    )
    return _picture(pixels, words)


def _ends(numbers: numpy.ndarray) -> tuple[float, float]:
    return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)


def _counts(found: Statistics, low: float, high: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The numbers of elements, and the edges of the bars as parts of the largest element.

    A bar of whole numbers has equally many of them. Parts, because the range of large floats
    would be inf.
    """
    number = _BARS
    if found.is_whole and high - low < 2**53:
        width = math.ceil((high - low + 1) / _BARS)
        number = math.ceil((high - low + 1) / width)
        low, high = low - 0.5, low - 0.5 + number * width
    ends = (low / found.largest, high / found.largest)
    return numpy.histogram(found.finite / found.largest, number, ends)


def _picture(pixels: Any, words: str) -> Picture:
    height, width = pixels.shape
    return Picture(png(pixels, _colours()), width, height, words)


# --- PNG ----------------------------------------------------------------------------------------


def png(pixels: numpy.ndarray, colours: Sequence[Colour]) -> bytes:
    """The bytes of a PNG file of indexed colours.

    Args:
        pixels: a matrix of uint8: for each pixel the index of its colour.
        colours: at most 256 colours.
    """
    height, width = pixels.shape
    rows = numpy.pad(pixels, ((0, 0), (1, 0)))  # each row starts with its filter: 0, none
    parts = [
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", b"".join(bytes(colour[:3]) for colour in colours)),
        _chunk(b"tRNS", bytes(colour[3] for colour in colours)),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Length, kind, data and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

"""The reference backend: NumPy arrays on the CPU.

NumPy 2.1 follows the Array API standard, so the namespace is ``numpy``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.devices import sum_array

name = "numpy"
capabilities = frozenset({"cpu", "float64"})
FREED_BYTES = 31 << 20  # see ``keep_pages``
ELEMENTS = 1 << 17  # of an index at a time: 1 MiB
MANY = 128  # rows at one place: a sum of fewer is exact enough
COPIED = 1 << 15  # elements of all copies of a small result: 256 KiB


def keep_pages() -> None:
    """Let the C library keep freed memory, up to about 60 MB; called once, at import.

    A page given back to the system costs a page fault at the next use. When a mapped block below
    32 MiB is freed, glibc raises the limits: see M_MMAP_THRESHOLD in mallopt(3). The call has no
    effect with other C libraries, or if MALLOC_MMAP_THRESHOLD_ is set.
    """
    numpy.empty(FREED_BYTES, numpy.uint8)  # never touched: takes no memory


keep_pages()


def devices() -> tuple[str, ...]:
    return ("cpu",)


def namespace() -> Any:
    return numpy


def owns(array: object) -> bool:
    # a numpy.matrix multiplies differently, a masked array hides elements: neither is an array
    return type(array) is numpy.ndarray or isinstance(array, numpy.memmap)


def index_of(array: Any) -> str:
    return "cpu"


def from_host(array: Any, index: str) -> Any:
    return array


def to_host(array: Any) -> Any:
    return array


def synchronize(index: str) -> None:
    """NumPy has always finished when a call returns."""


def lift(value: object) -> Any:
    """NumPy's ufuncs and reductions give scalars where the standard has 0-d arrays."""
    return numpy.asarray(value) if isinstance(value, numpy.generic) else None


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    return node.forward(arrays)


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros, by ``numpy.add.at`` on single elements.

    ``add.at`` is quick in one dimension only, so an index is made for each element of a row. Many
    rows may meet at one place, and the error must not grow with their number. So such sums are in
    float64 for float32. Where the result is small, the rows go to copies of it in turn.
    """
    size = math.prod(values.shape[1:])
    rows = numpy.arange(length)[indices]  # an IndexError, if one lies outside
    dtype, copies = values.dtype, 1
    if values.dtype.char in "fF":
        if len(rows) > MANY and (size == 1 or numpy.bincount(rows).max() > MANY):
            dtype = numpy.result_type(dtype, numpy.float64)
    elif values.dtype.kind in "fc" and size:
        copies = max(1, min(COPIED, values.size // 16) // max(length * size, 1))
    result = numpy.zeros(copies * length * size, dtype)
    step = max(1, ELEMENTS // max(size, 1))
    columns = numpy.arange(size)[None]
    if copies > 1:
        starts = numpy.arange(copies) * (length * size)
        columns = numpy.resize(starts, (min(step, len(rows)), 1)) + columns
    for k in range(0, len(values), step):
        part = values[k : k + step]
        places = rows[k : k + step, None] * size + columns[: len(part)]
        numpy.add.at(result, places.reshape(-1), part.reshape(-1).astype(dtype, copy=False))
    total = sum_array(result.reshape(copies, -1), 0) if copies > 1 else result
    return total.astype(values.dtype, copy=False).reshape(length, *values.shape[1:])

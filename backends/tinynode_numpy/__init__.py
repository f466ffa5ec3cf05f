"""The reference backend: NumPy arrays on the CPU.

NumPy 2.1 follows the Array API standard, so the namespace is ``numpy``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

name = "numpy"
capabilities = frozenset({"cpu", "float64"})
FREED_BYTES = 31 << 20  # see ``keep_pages``
ELEMENTS = 1 << 17  # of an index at a time: 1 MiB


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

    ``add.at`` is quick in one dimension only, so an index is made for each element of a row.
    """
    size = math.prod(values.shape[1:])
    result = numpy.zeros(length * size, dtype=values.dtype)
    rows = numpy.arange(length)[indices]  # an IndexError, if one lies outside
    columns, step = numpy.arange(size), max(1, ELEMENTS // max(size, 1))
    for k in range(0, len(values), step):
        places = rows[k : k + step, None] * size + columns
        numpy.add.at(result, places.reshape(-1), values[k : k + step].reshape(-1))
    return result.reshape(length, *values.shape[1:])

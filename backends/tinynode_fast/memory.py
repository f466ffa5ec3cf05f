"""Memory of plans.

Requirement: a run needs no fresh memory for values between calls, and values of different
lifetimes share memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.net.operator import ArraySpec
from tinynode_fast.limits import LIMITS


def bytes_of(form: ArraySpec) -> int:
    """The bytes of an array."""
    return math.prod(form[0]) * int(form[1].itemsize)


def is_small(form: ArraySpec) -> bool:
    """True for an array that is copied to and from memory of a plan."""
    return bytes_of(form) <= LIMITS.copied_bytes


def array_in(memory: Any, form: ArraySpec, order: Sequence[int] | None) -> Any:
    """An array at the start of some memory; ``order`` lists its axes, the largest step first."""
    shape, dtype = form
    order = range(len(shape)) if order is None else order
    straight = memory[: bytes_of(form)].view(dtype).reshape([shape[i] for i in order])
    return straight.transpose(sorted(range(len(shape)), key=order.__getitem__))


def fresh_array(form: ArraySpec, order: Sequence[int] | None) -> Any:
    """A new array, with an order of axes as in ``array_in``."""
    if order is None:  # the usual case, quickly
        return numpy.empty(*form)
    return array_in(numpy.empty(bytes_of(form), numpy.uint8), form, order)


def owner_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while type(array.base) is numpy.ndarray:
        array = array.base
    return array


class Memory:
    """The memory of a plan; free memory is taken again."""

    def __init__(self) -> None:
        self.free: dict[int, list[Any]] = {}
        self.all: list[Any] = []
        self.bytes = 0

    def take(self, form: ArraySpec) -> Any:
        """Memory for an array, of a power of two of bytes."""
        size = max(64, 1 << (bytes_of(form) - 1).bit_length())
        if self.free.get(size):
            return self.free[size].pop()
        self.all.append(numpy.empty(size, numpy.uint8))
        self.bytes += size
        return self.all[-1]

    def in_one_array(self, dtype: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, list[Any]]:
        """A long array, and the parts of given shapes, end to end."""
        sizes = [math.prod(shape) for shape in shapes]
        form = (sum(sizes),), dtype
        whole = array_in(self.take(form), form, None)
        starts = itertools.accumulate(sizes, initial=0)
        places = zip(starts, sizes, shapes, strict=False)
        return whole, [whole[start : start + n].reshape(shape) for start, n, shape in places]

    def give_back(self, memory: Any) -> None:
        """Let another value use the memory."""
        self.free.setdefault(memory.nbytes, []).append(memory)


def give_pages_back() -> None:
    """Give freed memory back to the system, where the C library can: see malloc_trim(3).

    A thread with a compiler, and a dropped plan in NumPy, need more memory than later runs.
    """
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

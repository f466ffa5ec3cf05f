"""Calls of compiled functions on arrays.

Requirement: a call costs next to nothing where the plan knows the arrays. The function takes an
array of pointers, made once. The addresses of new arrays are written there at each run. An operand
in another order of memory is copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.devices import Arrays
from tinynode_fast.blocks import in_order, in_shares, thread_count
from tinynode_fast.limits import LIMITS
from tinynode_fast.native.nests import Nest


class RefusedError(Exception):
    """A function in C met wrong labels: the plan in NumPy runs, and raises the error."""


_place, _buffer = ctypes.addressof, ctypes.c_char.from_buffer


def address(array: Any) -> int:
    """Where an array begins in memory."""
    try:
        return _place(_buffer(array))  # several times as quick as NumPy's attributes
    except (TypeError, ValueError):  # read-only, or not in C order
        found: int = array.__array_interface__["data"][0]
        return found


class NestCall:
    """A nest's compiled function, on some arrays.

    Attributes:
        arguments: of the function, for a call in a single thread.
        late: the names of the arguments of ``__call__``, in order.
        kept: the arrays known before, kept in memory.
    """

    def __init__(self, nest: Nest, library: ctypes.CDLL, known: dict[str, Any]) -> None:
        self.nest = nest
        self.function = library[nest.name]
        self.function.restype = ctypes.c_int
        self.function.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
        names = (*nest.reads, *nest.writes)
        self.__name__ = nest.name
        self.pointers = (ctypes.c_void_p * len(names))()
        start = ctypes.c_void_p(ctypes.addressof(self.pointers))
        self.length = nest.dims[0] if nest.dims else 1
        self.arguments = start, ctypes.c_long(0), ctypes.c_long(self.length)
        self.kept = list[Any]()
        self.late = [name for name in names if name not in known]
        self.places: list[tuple[int, tuple[int, ...] | None]] = []
        for place, name in enumerate(names):
            is_read = place < len(nest.reads)
            if name in known:
                array = known[name]
                self.kept.append(array)
                self.pointers[place] = address(array)
            else:
                self.places.append((place, self._strides(name) if is_read else None))
        self.shares = 1
        if self.length > 1 and nest.size >= LIMITS.threaded and nest.is_shareable:
            self.shares = min(thread_count(), self.length)

    def _strides(self, name: str) -> tuple[int, ...]:
        """The steps in bytes expected by the function."""
        size = int(self.nest.forms[name][1].itemsize)
        return tuple([step * size for step in self.nest.layouts.of(name)])

    def fits(self, known: dict[str, Any]) -> bool:
        """True if the arrays known before lie as the function expects."""
        for name in self.nest.reads:
            if name in known:
                array = known[name]
                steps = zip(array.shape, array.strides, self._strides(name), strict=True)
                if any(n > 1 and found != step for n, found, step in steps):
                    return False
        return True

    def __call__(self, *arrays: Any) -> None:
        """Run on the new arrays."""
        copies = []
        for (place, strides), array in zip(self.places, arrays, strict=True):
            if strides is not None and (array.strides != strides or not array.flags.aligned):
                array = laid_out(array, strides)
                copies.append(array)
            self.pointers[place] = address(array)
        if self.shares == 1:
            if self.function(*self.arguments):
                raise RefusedError
        else:
            self._run_shares()

    def _run_shares(self) -> None:
        """Run in several threads, with separate memory for reductions of the whole."""
        ends = self.nest.shared_ends()
        spaces: dict[int, Any] = {}

        def work(start: int, stop: int) -> Arrays:
            pointers = (ctypes.c_void_p * len(self.pointers))(*self.pointers)
            partial = []
            for place, _, shape, dtype in ends:
                partial.append(numpy.empty(shape, dtype))
                pointers[place] = address(partial[-1])
            if self.function(pointers, start, stop):
                raise RefusedError
            return tuple(partial)

        found = in_shares(self.length, -(-self.length // self.shares), work)
        for i, (place, name, _, dtype) in enumerate(ends):
            parts = numpy.stack([part[i] for part in found])
            total = parts.sum(axis=0) if name == "sum" else parts.max(axis=0)
            spaces[place] = numpy.ascontiguousarray(total, dtype)
            target = self.pointers[place] or 0
            ctypes.memmove(target, address(spaces[place]), spaces[place].nbytes)


def laid_out(array: Any, strides: Sequence[int]) -> Any:
    """A copy of an array with other steps in memory."""
    order = sorted(range(array.ndim), key=[-step for step in strides].__getitem__)
    straight = numpy.empty([array.shape[i] for i in order], array.dtype)
    copy = in_order(straight, order)
    numpy.copyto(copy, array)
    return copy

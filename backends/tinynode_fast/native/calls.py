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
from tinynode.devices.threads import in_shares, thread_count
from tinynode.errors import NetError, describe
from tinynode_fast.limits import LIMITS
from tinynode_fast.native.cache import NotBuiltError
from tinynode_fast.native.nests import Nest

_place, _buffer = ctypes.addressof, ctypes.c_char.from_buffer


def address(array: Any) -> int:
    """Where an array begins in memory."""
    try:
        return _place(_buffer(array))  # several times as quick as NumPy's attributes
    except (TypeError, ValueError):  # read-only, or not in C order
        return int(array.__array_interface__["data"][0])


class NestCall:
    """A nest's compiled function, on some arrays.

    Attributes:
        arguments: of the function, for a call in a single thread.
        late: the names of the arguments of ``__call__``, in order.
        kept: the arrays known before, kept in memory.
        places: for each late argument the place of the pointer, and the steps of an operand.

    The compiled function trusts its pointers, so each array is compared with the shape and the
    dtype that the nest was made for.

    Raises:
        NetError: a known array has another shape or dtype.
        NotBuiltError: a known array lies in memory in an unforeseen way.
    """

    def __init__(self, nest: Nest, library: ctypes.CDLL, known: dict[str, Any]) -> None:
        self.nest = nest
        self.__name__ = nest.name
        self.function = library[nest.name]
        self.function.restype = None
        self.function.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
        names = (*nest.reads, *nest.writes)
        self.pointers = (ctypes.c_void_p * len(names))()
        self.length = nest.dims[0]
        start = ctypes.c_void_p(ctypes.addressof(self.pointers))
        self.arguments = start, ctypes.c_long(0), ctypes.c_long(self.length)
        self.kept = [known[name] for name in names if name in known]
        self.late = [name for name in names if name not in known]
        self.places: list[tuple[int, tuple[int, ...] | None]] = []
        for place, name in enumerate(names):
            size = int(nest.forms[name][1].itemsize)
            strides = tuple([step * size for step in nest.layouts.of(name)])
            if name not in known:
                self.places.append((place, strides if name in nest.reads else None))
                continue
            self._check(name, known[name])
            self.pointers[place] = address(known[name])
            steps = zip(known[name].shape, known[name].strides, strides, strict=True)
            if any(n > 1 and found != step for n, found, step in steps):
                raise NotBuiltError(f"{nest.name}: an operand lies in another order")
        is_large = nest.size >= LIMITS.threaded and self.length > 1
        is_shareable = len(nest.dims) > 1 or not nest.has_phases
        self.shares = min(thread_count(), self.length) if is_large and is_shareable else 1

    def __call__(self, *arrays: Any) -> None:
        """Run on the new arrays.

        Raises:
            NetError: an array has another shape or dtype than in the run that made the plan.
        """
        copies = []
        for (place, strides), name, array in zip(self.places, self.late, arrays, strict=True):
            self._check(name, array)
            if strides is not None and (array.strides != strides or not array.flags.aligned):
                array = laid_out(array, strides)
                copies.append(array)
            self.pointers[place] = address(array)
        if self.shares == 1:
            self.function(*self.arguments)
        else:
            self._run_shares()

    def _check(self, name: str, array: Any) -> None:
        """Raise a NetError unless an array is as the compiled function reads it."""
        spec = self.nest.forms[name]
        if isinstance(array, numpy.ndarray) and (array.shape, array.dtype) == spec:
            return
        raise NetError(
            f"compile: {name}, for {self.nest.name} in C, must be an array of shape {spec[0]}, "
            f"{spec[1]}, as in the first run, got {describe(array)}. Shapes that depend on values "
            "cannot be compiled."
        )

    def _run_shares(self) -> None:
        """Run in several threads, with separate memory for reductions of the whole."""
        ends = list(self.nest.shared_ends())

        def work(start: int, stop: int) -> Arrays:
            pointers = (ctypes.c_void_p * len(self.pointers))(*self.pointers)
            parts = tuple([numpy.empty(shape, dtype) for _, _, shape, dtype in ends])
            for (place, *_), part in zip(ends, parts, strict=True):
                pointers[place] = address(part)
            self.function(pointers, start, stop)
            return parts

        found = in_shares(self.length, -(-self.length // self.shares), work)
        for (place, name, _, _), parts in zip(ends, zip(*found, strict=True), strict=True):
            total = numpy.max(parts, axis=0) if name == "largest" else sum(parts)
            total = numpy.ascontiguousarray(total)
            ctypes.memmove(self.pointers[place] or 0, address(total), total.nbytes)


class CallsInOrder:
    """Neighbouring calls on known arrays as one call of C: each call from Python takes 0.4 us.

    Attributes:
        function, arguments: of the one call.
        kept: the calls, whose arrays stay in memory.
    """

    def __init__(self, calls: Sequence[NestCall], library: ctypes.CDLL) -> None:
        self.kept = calls
        count = len(calls)
        functions = [ctypes.cast(call.function, ctypes.c_void_p).value for call in calls]
        pointers = [ctypes.addressof(call.pointers) for call in calls]
        self._functions = (ctypes.c_void_p * count)(*functions)
        self._pointers = (ctypes.c_void_p * count)(*pointers)
        self._lengths = (ctypes.c_long * count)(*[call.length for call in calls])
        tables = self._functions, self._pointers, self._lengths
        starts = [ctypes.c_void_p(ctypes.addressof(table)) for table in tables]
        self.arguments = ctypes.c_long(count), *starts
        self.function = library["call_in_order"]
        self.function.restype = None
        self.function.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * len(starts)]


def laid_out(array: Any, strides: Sequence[int]) -> Any:
    """A copy of an array with exactly these steps in memory, which may leave gaps."""
    size = sum((n - 1) * step for n, step in zip(array.shape, strides, strict=True))
    memory = numpy.empty(size + array.itemsize, numpy.uint8)
    copy: Any = numpy.ndarray(array.shape, array.dtype, memory, 0, tuple(strides))
    numpy.copyto(copy, array)
    return copy

"""Owned memory: arrays that a training step may write over, since it made their memory.

Requirement: an array is overwritten only if nobody else can see it, on every Python. No reference
is counted. A step keeps its results on memory of its own. A weak reference notes each array on the
memory, until the array ends. So the memory is free if no other array is noted.

NumPy gives a view the base of its array, unless the base is of another class. So a view of an
array on owned memory holds the array, and keeps the memory in use. Nobody should make arrays from
``array.base``: these are not noted.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy


class OwnedMemory(numpy.ndarray[Any, Any]):
    """The bytes below arrays of a step.

    Attributes:
        arrays: the arrays on the memory that are alive, as weak references by id.
    """

    arrays: dict[int, weakref.ref[Any]]

    def new_array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Another array on the whole memory."""
        array: Any = numpy.ndarray(shape, dtype, self)
        key = id(array)
        self.arrays[key] = weakref.ref(array, functools.partial(_forget, self.arrays, key))
        return array


def _forget(arrays: dict[int, weakref.ref[Any]], key: int, _: Any) -> None:
    arrays.pop(key, None)


def owned_copy(array: Any) -> Any:
    """A copy of an array in C order, on memory of its own."""
    memory = OwnedMemory((array.nbytes,), numpy.uint8)
    memory.arrays = {}
    copy = memory.new_array(array.shape, array.dtype)
    numpy.copyto(copy, array)
    return copy


def lent(array: Any) -> Any:
    """Another array on the same owned memory; an array of other memory itself."""
    memory = _memory_of(array)
    return array if memory is None else memory.new_array(array.shape, array.dtype)


def is_alone(array: Any) -> bool:
    """True for an array on owned memory, if no other array on the memory is alive."""
    memory = _memory_of(array)
    return memory is not None and len(memory.arrays) == 1 and _VIEWS_HOLD_ARRAYS


def _memory_of(array: Any) -> OwnedMemory | None:
    """The owned memory below one of its arrays; None for views, and for other arrays."""
    memory = getattr(array, "base", None)
    return memory if type(memory) is OwnedMemory and id(array) in memory.arrays else None


_SAMPLE = owned_copy(numpy.zeros(2))
_VIEWS_HOLD_ARRAYS = _SAMPLE[1:].base is _SAMPLE
"""True for NumPy 2. With False, no array would ever be overwritten."""

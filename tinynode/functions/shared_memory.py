"""Which Variables would share memory in NumPy: slices, and the same elements in another shape.

Requirement: in NumPy ``h = y[:2]`` shares the memory of y, and ``h += 1`` changes y. A slice of a
Variable is a value of its own. Other libraries count on NumPy's rule in places. So the functions
note here what they made of what, and ``transforms.shared_writes`` carries the writes of such
libraries on. The notes begin when code asks for the namespace of a Variable, as such libraries do.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy

from tinynode.core.variable import Variable

__all__: list[str] = []  # no function for users


class SharedPart:
    """How a Variable was made of another one.

    Attributes:
        reference: a weak reference to the Variable.
        source: the other Variable, if that is a part itself; else a weak reference to it.
        function: the class of the function. Its ``put_back(setting, source, part)`` is the source
            with the elements of the part in their places.
        setting: the index, the shape or the axes of the function.
        arrays: the arrays of source and part when they held the same elements last.
    """

    __slots__ = ("arrays", "function", "reference", "setting", "source")

    def __init__(self, part: Variable, source: Any, function: Any, setting: Any) -> None:
        self.reference = weakref.ref(part)
        self.source = source
        self.function = function
        self.setting = setting
        self.agree()

    def source_or_none(self) -> Variable | None:
        """The source, or None if nobody holds it any more."""
        source = self.source
        found: Variable | None = source() if type(source) is weakref.ref else source
        return found

    def current_arrays(self) -> tuple[Any, Any]:
        """The arrays of source and part, None in the place of what is gone."""
        source, part = self.source_or_none(), self.reference()
        return (None if source is None else source.raw, None if part is None else part.raw)

    def agree(self) -> None:
        """Note that source and part hold the same elements now."""
        self.arrays = self.current_arrays()

    def is_shared(self) -> bool:
        """True if no write and no assignment has parted the two."""
        return self.was_made_of(self.source_or_none(), self.current_arrays()[0])

    def was_made_of(self, source: Variable | None, array: Any) -> bool:
        """True for the source with the array that it had when the two held the same elements."""
        is_whole = self.current_arrays()[1] is self.arrays[1]
        return is_whole and self.source_or_none() is source and array is self.arrays[0]

    def again(self, source: Variable) -> Variable:
        """The part, made anew."""
        found: Variable = self.function(self.setting).apply((source,))[0]
        return found


class SharedMemory:
    """The parts that are alive, by the identity of the Variable.

    Attributes:
        is_watched: True after code asked for the namespace of a Variable.
        parts: a ``SharedPart`` for each Variable that was made of another one.
    """

    def __init__(self) -> None:
        self.is_watched = False
        self.parts: dict[int, SharedPart] = {}

    def note(self, source: Any, part: Any, function: Any, setting: Any) -> None:
        """Remember that a part was made of a source, if the two share memory."""
        if type(source) is not Variable or type(part) is not Variable:
            return  # arrays, in a backward pass on arrays
        arrays = source.raw, part.raw
        is_numpy = type(arrays[0]) is type(arrays[1]) is numpy.ndarray
        if is_numpy and not numpy.may_share_memory(*arrays):
            return  # such as reshape of turned axes
        held = source if id(source) in self.parts else weakref.ref(source)
        key = id(part)
        self.parts[key] = SharedPart(part, held, function, setting)
        forget = weakref.finalize(part, self.parts.pop, key, None)
        forget.atexit = False  # at the end of the process the notes go anyway


shared_memory = SharedMemory()
"""The notes of this process."""

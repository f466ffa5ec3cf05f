"""Surroundings: the numbers, texts and containers that a function reads from outside.

Requirement: a net has the values of its recording, and a compiled function gives the results of
the eager one. A change of a list in the closure, of a mutable default or of a global number is
noticed. The function is recorded anew then. Variables from outside are inputs of the net.

Not watched are attributes of objects, what other functions read, and a container that the function
itself changes, such as a list of its calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

from tinynode.net.structure import ByIdentity

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset)
MOST_PARTS = 1000
"""Of a container with more parts, only the length is watched: each call compares all parts."""


class OutsideValue:
    """A place around a function that holds a number, a text or a container.

    Args:
        holder: a cell of the closure, the names of the module, or a function with defaults.
        key: the name in the holder.

    Attributes:
        first: the value before the recording.
        is_fixed: True if ``first`` cannot change in place, such as a number or a tuple of them.
        recorded: the contents of ``first``, in a form to compare.
    """

    def __init__(self, holder: Any, key: str) -> None:
        self.holder = holder
        self.key = key
        self.first = self.value()
        self.is_fixed = _is_fixed(self.first)
        self.recorded = _contents(self.first)

    def value(self) -> Any:
        """The present value; None for a place that is empty now."""
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:
                return None
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        return getattr(self.holder, self.key)

    def is_unchanged(self) -> bool:
        """True if the contents are those of the recording."""
        value = self.value()
        if value is self.first and self.is_fixed:  # the usual case, quickly
            return True
        return bool(_contents(value) == self.recorded)


def places_around(function: Callable[..., Any]) -> list[OutsideValue]:
    """The places around a function that are watched, with the values of now."""
    found = []
    for place in _every_place(function):
        value = place.value()
        is_default = isinstance(place.holder, FunctionType)
        if type(value) in _CONTAINERS or (type(value) in _PLAIN and not is_default):
            found.append(place)
    return found


def _every_place(function: Any) -> Iterator[OutsideValue]:
    """All places that a function may read by a name of its own code."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield OutsideValue(cell, name)
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield OutsideValue(function.__globals__, name)
    for name in ("__defaults__", "__kwdefaults__"):
        yield OutsideValue(function, name)


def _is_fixed(value: Any) -> bool:
    """True for a value without a list, a dict or a set inside of its tuples."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) in (list, dict, set):
            return False
        if type(item) is tuple:
            waiting += item
    return True


def _contents(value: Any, level: int = 0) -> Any:
    """A value in a form to compare: containers by their parts, other objects by identity."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, repr(value)
    if kind not in _CONTAINERS:
        return ByIdentity(value)
    if len(value) > MOST_PARTS or level > _MOST_LEVELS:
        return kind, len(value)
    if kind is dict:
        parts = [part for pair in value.items() for part in pair]
        return kind, tuple([_contents(part, level + 1) for part in parts])
    if kind in (set, frozenset):
        return kind, frozenset([_contents(part, level + 1) for part in value])
    return kind, tuple([_contents(part, level + 1) for part in value])


_MOST_LEVELS = 4

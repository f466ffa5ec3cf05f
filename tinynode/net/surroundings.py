"""Surroundings: the numbers, texts and containers that a function reads from outside.

Requirement: a net has the values of its recording, and a compiled function gives the results of
the eager one. A change of a list in the closure, of a mutable default or of a global number is
noticed. The function is recorded anew then. Variables from outside are inputs of the net.

The functions that it calls read from outside, too. Watched are those that it holds, such as the
``f`` of ``gradient(f)``, and those of its module, such as ``slope = gradient(f)``.

Not watched are attributes of objects, functions of other modules, and a container that the
function itself changes, such as a list of its calls.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from tinynode.net.structure import ByIdentity
from tinynode.nn.module import Module, Wrapper

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_CHANGING = (list, set, deque, *_DICTS)
_CONTAINERS = (tuple, frozenset, *_CHANGING)
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
        parts: each container in ``first``, with the objects in the container.
        recorded: the contents of ``first``, in a form to compare.
    """

    def __init__(self, holder: Any, key: str) -> None:
        self.holder = holder
        self.key = key
        self.first = self.value()
        self.is_fixed = _is_fixed(self.first)
        self.parts = [] if self.is_fixed else _parts(self.first)
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
        if value is self.first and self._has_same_parts():  # the usual case, quickly
            return True
        return bool(_contents(value) == self.recorded)

    def _has_same_parts(self) -> bool:
        """True if every container has the very objects of the recording."""
        for container, objects in self.parts:
            if objects is None:
                return False  # ``_contents`` compares the lengths
            now = _objects_in(container)
            if len(now) != len(objects) or not all(map(operator.is_, now, objects)):
                return False
        return True


def places_around(function: Callable[..., Any]) -> list[OutsideValue]:
    """The places around a function that are watched, with the values of now."""
    found = []
    for place in _every_place(function):
        value = place.first
        is_name = isinstance(place.holder, (CellType, dict))  # the others hold containers
        if type(value) in _CONTAINERS or (type(value) in _PLAIN and is_name):
            found.append(place)
    return found


def _every_place(function: Any) -> Iterator[OutsideValue]:
    """All places that a function, or a function that it holds, may read by a name."""
    waiting, known = [function], set()
    while waiting:
        item = waiting.pop()
        if id(item) in known:
            continue
        known.add(id(item))
        if isinstance(item, FunctionType):
            for place in _places_of(item):
                yield place
                if _may_follow(place, item):
                    waiting.append(place.first)
        elif isinstance(item, functools.partial):
            waiting += [item.func, *item.args, *item.keywords.values()]
            yield OutsideValue(item, "args")
            yield OutsideValue(item, "keywords")
        else:
            waiting += _functions_behind(item)


def _places_of(function: FunctionType) -> Iterator[OutsideValue]:
    """All places that a function may read by a name of its own code."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield OutsideValue(cell, name)
    if _is_of_tinynode(function):  # its numbers are constants
        return
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield OutsideValue(function.__globals__, name)
    for name in ("__defaults__", "__kwdefaults__"):
        yield OutsideValue(function, name)


def _may_follow(place: OutsideValue, function: FunctionType) -> bool:
    """True for what a function holds, and for the functions and models of its module."""
    value = place.first
    if isinstance(place.holder, CellType):
        return True
    if isinstance(value, FunctionType):
        return value.__globals__ is function.__globals__ or _is_of_tinynode(value)
    return isinstance(value, Module | Wrapper | functools.partial)


def _functions_behind(item: Any) -> list[Any]:
    """The functions that a call of an object starts, such as the ``forward`` of a module."""
    if isinstance(item, MethodType):
        return [item.__func__]
    if isinstance(item, Wrapper):
        return [item.function]
    if isinstance(item, Module):
        return [type(module).forward for _, module in item.named_modules()]
    call = type(item).__call__ if callable(item) else None
    return [call] if isinstance(call, FunctionType | Wrapper) else []


def _names_in(code: CodeType) -> list[str]:
    """The names in a function's code and in the functions inside."""
    waiting, names = [code], {}
    while waiting:
        one = waiting.pop()
        names.update(dict.fromkeys(one.co_names))
        waiting += [part for part in one.co_consts if isinstance(part, CodeType)]
    return list(names)


def _is_of_tinynode(function: FunctionType) -> bool:
    """True for a function of this package, such as the wrapper that ``gradient`` makes."""
    return str(function.__globals__.get("__name__")).partition(".")[0] == "tinynode"


def _is_fixed(value: Any) -> bool:
    """True for a value without a list, a dict or a set inside of its tuples."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) in _CHANGING:
            return False
        if type(item) is tuple:
            waiting += item
    return True


def _parts(value: Any) -> list[tuple[Any, Sequence[Any] | None]]:
    """Each container in a value, with the objects in it; None where the length alone counts."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    found: list[tuple[Any, Sequence[Any] | None]] = []
    while waiting:
        item, level = waiting.pop()
        if type(item) not in _CONTAINERS:
            continue
        if len(item) > MOST_PARTS or level > _MOST_LEVELS:
            found.append((item, None))
            continue
        objects = _objects_in(item)
        found.append((item, objects))
        waiting += [(part, level + 1) for part in objects]
    return found


def _objects_in(container: Any) -> list[Any]:
    """The objects in a container; of a dict the keys, then the values."""
    if type(container) in _DICTS:
        return [*container, *container.values()]
    return list(container)


def _contents(value: Any, level: int = 0) -> Any:
    """A value in a form to compare: containers by their parts, other objects by identity."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, repr(value)
    if kind not in _CONTAINERS:
        return ByIdentity(value)
    if len(value) > MOST_PARTS or level > _MOST_LEVELS:
        return kind, len(value)
    if kind in _DICTS:
        parts = [part for pair in value.items() for part in pair]
        return kind, tuple([_contents(part, level + 1) for part in parts])
    if kind in (set, frozenset):
        return kind, frozenset([_contents(part, level + 1) for part in value])
    return kind, tuple([_contents(part, level + 1) for part in value])


_MOST_LEVELS = 4

"""The attributes of an operator by name and type, as the function's constructor declares them.

Requirement: the text of a net may come from a stranger, and backends compute with the attributes:
numbers become C, sizes and positions become addresses. So a function has values of the declared
types alone. The annotations of the constructor's parameters are the list of types;
``functions/attributes.py`` has the ranges and the closed sets of texts.
"""

from __future__ import annotations

import functools
import numbers
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy

from tinynode.devices import find_device
from tinynode.functions.attributes import (
    INT64,
    MOST_AXES,
    AtMostElements,
    NamedKind,
    Place,
    Slice,
)

_STORED = {"device": "output_device", "target": "output_device", "inputs": "subscripts"}
"""By name of a parameter: the attribute of another name that has the value."""
_ABSTRACT = {bool: bool | numpy.bool_, int: numbers.Integral, float: numbers.Real}
"""By declared type: the accepted types. NumPy's scalars are numbers, and an integer is a float."""


@functools.cache
def attribute_types(node_class: Any) -> dict[str, Any]:
    """The declared type of each attribute, by name, for a function of tinynode."""
    declared = typing.get_type_hints(node_class.__init__, include_extras=True)
    declared.pop("return", None)
    stored = {_STORED[name]: kind for name, kind in declared.items() if name in _STORED}
    return declared | stored


@functools.cache
def stored_names(node_class: Any) -> frozenset[str]:
    """The names of the attributes that every operator of a function has."""
    declared = typing.get_type_hints(node_class.__init__)
    declared.pop("return", None)
    return frozenset([_STORED.get(name, name) for name in declared])


def fits(value: Any, kind: Any, of_text: bool = True) -> bool:
    """True if a value is of a declared type, with all items of tuples; ``Any`` takes all.

    The text of a net has limits that code has not: ``AtMostElements``, and 64 bits for an ``int``.
    """
    if kind is Any:
        return True
    if type(kind) is type:
        return _is_one(value, kind, of_text)
    bounds = getattr(kind, "__metadata__", None)  # quicker than the functions of typing
    if bounds is not None:
        is_one = fits(value, kind.__origin__, of_text)
        return is_one and all(_takes(bound, value, of_text) for bound in bounds)
    origin = getattr(kind, "__origin__", types.UnionType)
    if origin is tuple:
        return type(value) is tuple and _items_fit(value, kind.__args__, of_text)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, one, of_text) for one in kind.__args__)
    if origin is typing.Literal:
        return any(type(value) is type(one) and value == one for one in kind.__args__)
    return isinstance(value, origin)


def _is_one(value: Any, kind: Any, of_text: bool) -> bool:
    """True for a value of a class; a number is no bool."""
    if type(value) is kind and kind is not int:  # quicker than an abstract class
        return not hasattr(kind, "_fields") or _fields_fit(value, kind, of_text)
    if type(value) is int and kind in (int, float):
        return INT64.takes(value) or (kind is int and not of_text)
    if not isinstance(value, _ABSTRACT.get(kind, kind)):
        return False
    if kind is int or (kind is float and isinstance(value, numbers.Integral)):
        return not isinstance(value, bool) and INT64.takes(value)
    return True


def _fields_fit(value: Any, kind: Any, of_text: bool) -> bool:
    """True if the fields of a named tuple are of the declared types."""
    fields = _fields_of(kind)
    return all(fits(getattr(value, name), field, of_text) for name, field in fields.items())


@functools.cache
def _fields_of(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _items_fit(items: tuple[Any, ...], kinds: tuple[Any, ...], of_text: bool) -> bool:
    """True if items are of the kinds of ``tuple[int, str]``, or of ``tuple[int, ...]``."""
    if kinds[-1] is Ellipsis:
        return all(fits(item, kinds[0], of_text) for item in items)
    if len(items) != len(kinds):
        return False
    return all(fits(item, kind, of_text) for item, kind in zip(items, kinds, strict=True))


def exact(value: Any) -> Any:
    """Numbers of any type as those of Python, a slice as ``Slice``, in tuples too.

    Other values stay as they are.
    """
    kind = type(value)
    if kind in _EXACT:
        return value
    if isinstance(value, tuple):
        items = [exact(item) for item in value]
        return kind(*items) if hasattr(value, "_fields") else tuple(items)
    if kind is slice:
        return Slice(exact(value.start), exact(value.stop), exact(value.step))
    if isinstance(value, bool | numpy.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return operator.index(value)
    return float(value) if isinstance(value, numbers.Real) else value


_EXACT = frozenset({int, float, bool, str, type(None)})


# --- values that no type says --------------------------------------------------------------------


def _takes(bound: Any, value: Any, of_text: bool) -> bool:
    if isinstance(bound, NamedKind):
        return _NAMED[bound.name](value)
    if isinstance(bound, AtMostElements) and not of_text:
        return True
    return bool(bound.takes(value))


def _is_dtype(value: Any) -> bool:
    """True for a dtype of numbers or bools, of any namespace."""
    if isinstance(value, numpy.dtype):
        return value.kind in "biufcV" and value.fields is None
    if type(value) is type:
        return issubclass(value, numpy.number | numpy.bool_)
    is_plain = isinstance(value, _PLAIN) or type(value).__module__ == "builtins"
    return not is_plain and find_device(value) is None


def _is_array(value: Any) -> bool:
    return find_device(value) is not None


def _is_generator(value: Any) -> bool:
    return isinstance(value, numpy.random.Generator)


def _is_index(value: Any) -> bool:
    """True for integers, slices, None, ... and places of arrays: ``functions.indexing.Index``."""
    dots = [item for item in value if item is Ellipsis]
    return len(dots) <= 1 and all(_is_entry(item) for item in value)


def _is_entry(item: Any) -> bool:
    if item is None or item is Ellipsis or fits(item, int):
        return True
    if isinstance(item, Place):
        return fits(item.axes, int) and 0 <= item.axes <= MOST_AXES
    if not isinstance(item, Slice | slice) or item.step == 0:
        return False
    return all(n is None or fits(n, int) for n in (item.start, item.stop, item.step))


_PLAIN = (str, bytes, int, float, complex, tuple, list, dict, slice, types.NoneType)
_NAMED: dict[str, Callable[[Any], bool]] = {
    "dtype": _is_dtype,
    "array": _is_array,
    "generator": _is_generator,
    "index": _is_index,
}


def type_text(kind: Any) -> str:
    """A type as in source text: ``int``, ``Windows``, ``tuple[int, ...]``."""
    if kind is Ellipsis:
        return "..."
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        of = type_text(inner[0])
        bounds = " ".join(map(str, inner[1:]))
        return bounds if isinstance(inner[1], NamedKind) else f"{of} {bounds}"
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if origin is tuple:
        return f"tuple[{', '.join(map(type_text, inner))}]"
    if origin in (types.UnionType, typing.Union):
        return " | ".join(map(type_text, inner))
    if hasattr(kind, "_fields"):
        fields = [f"{name}: {type_text(field)}" for name, field in _fields_of(kind).items()]
        return f"{kind.__name__}({', '.join(fields)})"
    return kind.__name__ if isinstance(kind, type) else str(kind)

"""The attributes of an operator by name and type, as the function's constructor declares them.

Requirement: the text of a net may come from a stranger, and backends compute with the attributes:
numbers become C, sizes and positions become addresses. So an operator of the text has values of
the declared types alone. The annotations of the constructor's parameters are the list of types.
"""

from __future__ import annotations

import functools
import numbers
import types
import typing
from typing import Any

import numpy

_STORED = {"device": "output_device", "target": "output_device", "inputs": "subscripts"}
"""By name of a parameter: the attribute of another name that has the value."""
_ABSTRACT = {bool: bool | numpy.bool_, int: numbers.Integral, float: numbers.Real}
"""By declared type: the accepted types. NumPy's scalars are numbers, and an integer is a float."""


@functools.cache
def attribute_types(node_class: Any) -> dict[str, Any]:
    """The declared type of each attribute, by name, for a function of tinynode."""
    declared = typing.get_type_hints(node_class.__init__)
    declared.pop("return", None)
    stored = {_STORED[name]: kind for name, kind in declared.items() if name in _STORED}
    return declared | stored


def fits(value: Any, kind: Any) -> bool:
    """True if a value is of a declared type, with all items of tuples; ``Any`` takes all."""
    if kind is Any:
        return True
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, one) for one in typing.get_args(kind))
    if origin is tuple:
        return type(value) is tuple and _items_fit(value, typing.get_args(kind))
    if not isinstance(value, _ABSTRACT.get(kind, origin or kind)):
        return False
    fields = typing.get_type_hints(kind) if hasattr(kind, "_fields") else {}
    return all(fits(getattr(value, name), field) for name, field in fields.items())


def _items_fit(items: tuple[Any, ...], kinds: tuple[Any, ...]) -> bool:
    """True if items are of the kinds of ``tuple[int, str]``, or of ``tuple[int, ...]``."""
    if kinds[-1] is Ellipsis:
        return all(fits(item, kinds[0]) for item in items)
    if len(items) != len(kinds):
        return False
    return all(fits(item, kind) for item, kind in zip(items, kinds, strict=True))


def type_text(kind: Any) -> str:
    """A type as in source text: ``int``, ``Windows``, ``tuple[int, ...]``."""
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)

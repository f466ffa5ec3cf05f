"""Structure: Variables in nested tuples, lists and dicts, and everything else that is an argument.

Requirement: a compiled function takes and gives what the eager one does. A call is split into its
Variables, in a fixed order, and a skeleton: what is left, with a mark where each Variable stood.
Skeletons are hashable and compared by value and type, so that one can look up what was recorded
for a call of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from tinynode.backend import Device, find_device
from tinynode.errors import TraceError, describe
from tinynode.variable import Variable, wrap_array


class Slot(NamedTuple):
    """The place of a Variable in a skeleton: its position in the list of Variables."""

    position: int


class Plain(NamedTuple):
    """What is neither a Variable nor a container: compared by type too, since 1 == 1.0 == True."""

    kind: type
    value: Any


class Number(NamedTuple):
    """A Python float, by its bits: 0.0 == -0.0, and nan != nan."""

    text: str


class Container(NamedTuple):
    """A tuple, a list, a dict or a slice: its type, its keys if it has any, its items."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


def split(value: Any, where: str) -> tuple[list[Variable], Any]:
    """The Variables in a value, arrays wrapped, and the skeleton.

    Raises:
        TraceError: something in it cannot be told apart by value: a set, an object without a hash.
    """
    variables: list[Variable] = []
    return variables, _skeleton(value, variables, where)


def _skeleton(value: Any, variables: list[Variable], where: str) -> Any:
    if isinstance(value, Variable):
        variables.append(value)
        return Slot(len(variables) - 1)
    kind = type(value)
    if kind is float:
        return Number(value.hex())
    if isinstance(value, tuple) or kind is list:
        return Container(kind, (), tuple([_skeleton(item, variables, where) for item in value]))
    if kind is dict:
        items = tuple([_skeleton(item, variables, where) for item in value.values()])
        return Container(kind, tuple(value), items)
    if kind is slice:
        ends = (value.start, value.stop, value.step)
        return Container(kind, (), tuple([_skeleton(end, variables, where) for end in ends]))
    device = None if value is None or kind in _NUMBERS else find_device(value)
    if device is not None:
        variables.append(wrap_array(value, device, False))
        return Slot(len(variables) - 1)
    try:
        hash(value)
    except TypeError:
        raise TraceError(
            f"{where}: {describe(value)} cannot be told apart by its value. Give Variables, "
            "arrays, numbers, texts, and tuples, lists or dicts of these."
        ) from None
    return Plain(kind, value)


_NUMBERS = (bool, int, str)


def join(skeleton: Any, variables: Callable[[int], Any]) -> Any:
    """The value that a skeleton came from, with other Variables in the places."""
    if isinstance(skeleton, Slot):
        return variables(skeleton.position)
    if isinstance(skeleton, Plain):
        return skeleton.value
    if isinstance(skeleton, Number):
        return float.fromhex(skeleton.text)
    items = [join(item, variables) for item in skeleton.items]
    if skeleton.kind is dict:
        return dict(zip(skeleton.keys, items, strict=True))
    if skeleton.kind is slice or hasattr(skeleton.kind, "_fields"):  # a named tuple
        return skeleton.kind(*items)
    return skeleton.kind(items)


def check_constants(skeleton: Any, where: str) -> None:
    """Refuse an object that has no value of its own: Variables may hide in it.

    Raises:
        TraceError: there is one.
    """
    if isinstance(skeleton, Container):
        for item in skeleton.items:
            check_constants(item, where)
    elif isinstance(skeleton, Plain):
        value, kind = skeleton.value, cast(Any, skeleton.kind)
        by_identity = kind.__hash__ is object.__hash__
        if by_identity and not (value is None or value is Ellipsis or isinstance(value, Device)):
            raise TraceError(
                f"{where}: {describe(value)} would be the same object at each call. Return "
                "Variables, numbers and texts, in tuples, lists or dicts."
            )


def paths(skeleton: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """Each Variable's position and a name for its place, such as ``weights_0``."""
    if isinstance(skeleton, Slot):
        yield skeleton.position, path
    elif isinstance(skeleton, Container):
        keys = skeleton.keys or range(len(skeleton.items))
        for key, item in zip(keys, skeleton.items, strict=True):
            yield from paths(item, f"{path}_{key}" if path else str(key))

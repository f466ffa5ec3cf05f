"""Structure: Variables in nested tuples, lists and dicts, and everything else that is an argument.

Requirement: a compiled function takes and gives what the eager one does. A call is split into its
Variables, in a fixed order, and a skeleton: what is left, with a mark where each Variable stood.
Skeletons are hashable, so that one can look up what was recorded for a call of the same form. In
them numbers and texts are compared by type and value, and other objects by identity: an ``__eq__``
of the user's may leave out what the function reads.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy

from tinynode.core.conversion import RawArgument
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Device, find_device
from tinynode.errors import TraceError, describe


class Slot(NamedTuple):
    """The place of a Variable in a skeleton.

    Attributes:
        position: its position in the list of Variables.
        is_raw: whether an array stood there, which was wrapped.
    """

    position: int
    is_raw: bool = False


class Plain(NamedTuple):
    """A number or a text: compared by type too, since 1 == 1.0 == True."""

    kind: type
    value: Any


class Number(NamedTuple):
    """A float, a complex or a NumPy scalar, by its bits: 0.0 == -0.0, and nan != nan."""

    kind: type
    dtype: numpy.dtype[Any]
    bits: bytes

    @property
    def value(self) -> Any:
        """The number."""
        array = numpy.ndarray((), self.dtype, self.bits)
        return array[()] if issubclass(self.kind, numpy.generic) else array.item()


class Identity:
    """An object, equal to nothing but itself, whatever its ``__eq__`` says.

    Attributes:
        value: the object; None after it was forgotten.
    """

    __slots__ = ("_number", "_reference", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        self._number = id(value)
        self._reference: weakref.ref[Any] | None = None

    @property
    def value(self) -> Any:
        """The object, or None."""
        return self._value if self._reference is None else self._reference()

    def weaken(self, forget: Callable[[Any], None]) -> None:
        """Keep the object alive no longer; ``forget`` is called when it goes."""
        try:
            self._reference = weakref.ref(self._value, forget)
        except TypeError:  # it cannot be referred to weakly, so it stays
            return
        self._value = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return NotImplemented
        value = self.value
        return value is not None and value is other.value

    def __hash__(self) -> int:
        return self._number


class Container(NamedTuple):
    """A tuple, a list, a dict, or what has a few parts, such as a slice: its type, its keys if it
    has any, its items.
    """

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
    if isinstance(value, RawArgument):
        value = value.variable
    if isinstance(value, Variable):
        variables.append(value)
        return Slot(len(variables) - 1)
    kind = type(value)
    if kind in _PLAIN:
        return Plain(kind, value)
    if isinstance(value, tuple) or kind is list:
        return Container(kind, (), tuple([_skeleton(item, variables, where) for item in value]))
    if kind is dict:
        items = tuple([_skeleton(item, variables, where) for item in value.values()])
        return Container(kind, tuple([_key(key, where) for key in value]), items)
    if kind in _PARTS:
        parts = [getattr(value, name) for name in _PARTS[kind]]
        return Container(kind, (), tuple([_skeleton(part, variables, where) for part in parts]))
    device = None if kind in _NUMBERS else find_device(value)
    if device is None:
        return _constant(value, where)
    variables.append(wrap_array(value, device, False))
    return Slot(len(variables) - 1, True)


_PLAIN = (str, int, bool, bytes, type(None), type(...))
_NUMBERS = (float, complex)
_PARTS: dict[type, tuple[str, ...]] = {
    slice: ("start", "stop", "step"),
    range: ("start", "stop", "step"),
    types.MethodType: ("__func__", "__self__"),  # made anew each time that it is asked for
}


def _key(key: Any, where: str) -> Any:
    """The key of a dict, as a constant."""
    if type(key) is str:
        return key
    if isinstance(key, tuple):
        return Container(type(key), (), tuple([_key(item, where) for item in key]))
    return Plain(type(key), key) if type(key) in _PLAIN else _constant(key, where)


def _constant(value: Any, where: str) -> Any:
    """What is neither a Variable nor a container."""
    kind = type(value)
    if kind in _NUMBERS or (isinstance(value, numpy.generic) and not value.dtype.hasobject):
        array = numpy.asarray(value)
        return Number(kind, array.dtype, array.tobytes())
    if isinstance(value, numpy.dtype):
        return Plain(kind, value)
    if hasattr(kind, "__next__"):
        raise TraceError(
            f"{where}: {describe(value)} gives something else each time, and a net would go on "
            "with what it gave first. Call next() outside, and pass what it gives."
        )
    try:
        hash(value)
    except TypeError:
        raise TraceError(
            f"{where}: {describe(value)} cannot be told apart by its value. Give Variables, "
            "arrays, numbers, texts, and tuples, lists or dicts of these."
        ) from None
    return Identity(value)


def join(skeleton: Any, variables: Callable[[int], Any]) -> Any:
    """The value that a skeleton came from, with other Variables in the places."""
    if isinstance(skeleton, Slot):
        return variables(skeleton.position)
    if isinstance(skeleton, Plain | Number | Identity):
        return skeleton.value
    if isinstance(skeleton, str):  # a key
        return skeleton
    items = [join(item, variables) for item in skeleton.items]
    if skeleton.kind is dict:
        keys = [join(key, variables) for key in skeleton.keys]
        return dict(zip(keys, items, strict=True))
    if skeleton.kind in _PARTS or hasattr(skeleton.kind, "_fields"):  # a named tuple
        return skeleton.kind(*items)
    return skeleton.kind(items)


def leaves(skeleton: Any) -> Iterator[Any]:
    """What a skeleton has in place of everything that is no container."""
    if isinstance(skeleton, Container):
        for item in (*skeleton.keys, *skeleton.items):
            yield from leaves(item)
    else:
        yield skeleton


def raw_positions(skeleton: Any) -> list[int]:
    """The positions of the Variables that are wrapped arrays."""
    return [x.position for x in leaves(skeleton) if isinstance(x, Slot) and x.is_raw]


def check_constants(skeleton: Any, where: str) -> None:
    """Refuse an object that has no value of its own: Variables may hide in it.

    Raises:
        TraceError: there is one.
    """
    for leaf in leaves(skeleton):
        if not isinstance(leaf, Identity):
            continue
        value = leaf.value
        by_identity = cast(Any, type(value)).__hash__ is object.__hash__
        if by_identity and not isinstance(value, Device):
            raise TraceError(
                f"{where}: {describe(value)} would be the same object at each call. Return "
                "Variables, numbers and texts, in tuples, lists or dicts."
            )


def paths(skeleton: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """Each Variable's position and a name for its place, such as ``weights_0``."""
    if isinstance(skeleton, Slot):
        yield skeleton.position, path
    elif isinstance(skeleton, Container):
        for number, item in enumerate(skeleton.items):
            title = _title(skeleton.keys[number]) if skeleton.keys else str(number)
            yield from paths(item, f"{path}_{title}" if path else title)


def _title(key: Any) -> str:
    return "key" if isinstance(key, Container) else str(getattr(key, "value", key))

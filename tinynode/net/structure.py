"""Structure: flatten nested arguments into Variables and a treedef, and unflatten them again.

Requirement: a compiled function takes and returns the same nested values as the eager function.
``flatten`` splits a value into its Variables, in a fixed order, and a *treedef*. The treedef has
everything else, with a ``Slot`` in the position of each Variable.

Treedefs are hashable, so a dict finds the net recorded for a call of equal structure. Numbers and
texts are compared by type and value. Other objects are compared by identity, since an ``__eq__``
of the user's may ignore state that the function reads.
"""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy

from tinynode.core.array_arguments import RawArgument
from tinynode.core.nested import MOST_LEAVES
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Device, device_beside, find_device, from_host_data
from tinynode.errors import TraceError, describe


class Slot(NamedTuple):
    """The position of a Variable in a treedef.

    Attributes:
        position: the Variable's position in the flat list.
        is_raw: True if the value had an array here; ``flatten`` wrapped the array.
    """

    position: int
    is_raw: bool = False


class Plain(NamedTuple):
    """A number or a text, compared by type too, since 1 == 1.0 == True."""

    kind: type
    value: Any


class Number(NamedTuple):
    """A float, a complex or a NumPy scalar, compared by its bits: 0.0 == -0.0, and nan != nan."""

    kind: type
    dtype: numpy.dtype[Any]
    bits: bytes

    @property
    def value(self) -> Any:
        """The number."""
        array = numpy.ndarray((), self.dtype, self.bits)
        return array[()] if issubclass(self.kind, numpy.generic) else array.item()


class ByIdentity:
    """An object compared by identity, whatever its ``__eq__`` says.

    Attributes:
        value: the object; None after the object was freed.
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
        """Hold the object weakly from now on; ``forget`` is called when the object is freed."""
        try:
            self._reference = weakref.ref(self._value, forget)
        except TypeError:  # no weak references to this type: the object stays alive
            return
        self._value = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIdentity):
            return NotImplemented
        value = self.value
        return value is not None and value is other.value

    def __hash__(self) -> int:
        return self._number


class Container(NamedTuple):
    """A tuple, list, dict, or an object with a few parts, such as a slice: type, keys, items."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


class _Walk:
    """What ``flatten`` has found: the Variables, and how many parts the containers have.

    A list that holds another one twice, and so on for 50 levels, has 2**50 parts.

    Attributes:
        variables: the Variables, and the wrapped arrays.
        arrays: the positions of the wrapped arrays.
    """

    __slots__ = ("arrays", "parts", "variables", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.variables: list[Variable] = []
        self.arrays: list[int] = []
        self.parts = 0

    def enter(self, container: Any) -> None:
        """Count the parts of a container, and refuse too many."""
        self.parts += len(container)
        if self.parts > MOST_LEAVES:
            raise TraceError(
                f"{self.where}: lists, tuples and dicts must have at most {MOST_LEAVES} parts, "
                f"got more in {describe(container)}. Give an array in place of lists."
            )


def flatten(value: Any, where: str) -> tuple[list[Variable], Any]:
    """The Variables in a value, with arrays wrapped beside the first Variable, and the treedef.

    Raises:
        TraceError: a part cannot be compared by value: a set, an object without a hash. Or there
            are too many parts or levels.
    """
    walk = _Walk(where)
    try:
        treedef = _treedef(value, walk)
    except RecursionError:
        raise TraceError(
            f"{where} is nested too deeply, or holds itself: got {describe(value)}. Give lists, "
            "tuples and dicts of fewer levels."
        ) from None
    if walk.arrays:
        _place_arrays(walk.variables, walk.arrays)
    return walk.variables, treedef


def has_only_variables(treedef: Any) -> bool:
    """True for Variables in tuples, lists, and dicts with texts as keys."""
    found = list(leaves(treedef))
    return all(type(leaf) is str or (type(leaf) is Slot and not leaf.is_raw) for leaf in found)


def variables_in(value: Any, treedef: Any) -> tuple[Variable, ...] | None:
    """The Variables in a value with a known treedef of Variables alone, quickly; else None."""
    found: list[Variable] = []
    return tuple(found) if _fits(value, treedef, found) else None


def _fits(value: Any, treedef: Any, found: list[Variable]) -> bool:
    """True if a container has the structure; its Variables are added to ``found``."""
    kind = type(value)
    if type(treedef) is not Container or kind is not treedef.kind or kind not in _USUAL:
        return False
    parts = value
    if kind is dict:
        parts = value.values()
        if len(value) != len(treedef.keys) or not all(map(operator.is_, value, treedef.keys)):
            return False
    if len(parts) != len(treedef.items):
        return False
    for part, place in zip(parts, treedef.items, strict=True):
        if type(place) is Slot and not place.is_raw and isinstance(part, Variable):
            found.append(part)
        elif not _fits(part, place, found):
            return False
    return True


_USUAL = (tuple, list, dict)


def _place_arrays(variables: list[Variable], arrays: list[int]) -> None:
    """Put the wrapped arrays on the device of the first Variable, else on the current device."""
    first = next((x for i, x in enumerate(variables) if i not in arrays), None)
    beside = None if first is None else first.device
    for i in arrays:
        array = from_host_data(variables[i].raw, "compile", beside)
        if beside is None and array is variables[i].raw:
            continue
        device = find_device(array) if beside is None else device_beside(array, beside)
        if device is not None and device is not variables[i].device:
            variables[i] = wrap_array(array, device, False)


def _treedef(value: Any, walk: _Walk) -> Any:
    kind = type(value)
    if kind is RawArgument:
        value, kind = value.variable, Variable
    if kind is Variable or isinstance(value, Variable):
        walk.variables.append(value)
        return Slot(len(walk.variables) - 1)
    if kind in _PLAIN:
        return Plain(kind, value)
    if isinstance(value, tuple) or kind is list:
        walk.enter(value)
        return Container(kind, (), tuple([_treedef(item, walk) for item in value]))
    if kind is dict:
        walk.enter(value)
        items = tuple([_treedef(item, walk) for item in value.values()])
        return Container(kind, tuple([_key(key, walk.where) for key in value]), items)
    if kind in _PARTS:
        parts = [getattr(value, name) for name in _PARTS[kind]]
        return Container(kind, (), tuple([_treedef(part, walk) for part in parts]))
    device = None if kind in _NUMBERS else find_device(value)
    if device is None:
        return constant_of(value, walk.where)
    walk.arrays.append(len(walk.variables))
    walk.variables.append(wrap_array(value, device, False))
    return Slot(walk.arrays[-1], True)


_PLAIN = (str, int, bool, bytes, type(None), type(...))
_NUMBERS = (float, complex)
_PARTS: dict[type, tuple[str, ...]] = {
    slice: ("start", "stop", "step"),
    range: ("start", "stop", "step"),
    types.MethodType: ("__func__", "__self__"),  # each attribute read makes a new method object
}


def _key(key: Any, where: str) -> Any:
    """A dict's key as a constant."""
    if type(key) is str:
        return key
    if isinstance(key, tuple):
        return Container(type(key), (), tuple([_key(item, where) for item in key]))
    return Plain(type(key), key) if type(key) in _PLAIN else constant_of(key, where)


def constant_of(value: Any, where: str) -> Any:
    """The leaf of a treedef for a value that is neither a Variable nor a container."""
    kind = type(value)
    if kind in _NUMBERS or (isinstance(value, numpy.generic) and not value.dtype.hasobject):
        array = numpy.asarray(value)
        return Number(kind, array.dtype, array.tobytes())
    if isinstance(value, numpy.dtype):
        return Plain(kind, value)
    if hasattr(kind, "__next__"):
        raise TraceError(
            f"{where}: {describe(value)} gives another value at each next(), and a net would "
            "repeat the first one. Call next() outside, and pass its value."
        )
    try:
        hash(value)
    except TypeError:
        raise TraceError(
            f"{where}: {describe(value)} cannot be told apart by its value. Give Variables, "
            "arrays, numbers, texts, and tuples, lists or dicts of these."
        ) from None
    return ByIdentity(value)


def unflatten(treedef: Any, values: Sequence[Any]) -> Any:
    """The nested value of a treedef, with ``values`` in the slots."""
    kind = type(treedef)
    if kind is Slot:
        return values[treedef.position]
    if kind is str:  # a key
        return treedef
    if kind is not Container:
        return treedef.value
    items = [unflatten(item, values) for item in treedef.items]
    if treedef.kind is dict:
        keys = [unflatten(key, values) for key in treedef.keys]
        return dict(zip(keys, items, strict=True))
    if treedef.kind in _PARTS or hasattr(treedef.kind, "_fields"):  # a named tuple
        return treedef.kind(*items)
    return treedef.kind(items)


def leaves(treedef: Any) -> Iterator[Any]:
    """The leaves of a treedef, keys included, from left to right."""
    if isinstance(treedef, Container):
        for item in (*treedef.keys, *treedef.items):
            yield from leaves(item)
    else:
        yield treedef


def raw_indexes(treedef: Any) -> list[int]:
    """The flat indexes of the wrapped arrays."""
    return [leaf.position for leaf in leaves(treedef) if isinstance(leaf, Slot) and leaf.is_raw]


def renumbered(treedef: Any, indexes: Sequence[int]) -> Any:
    """The treedef with ``indexes[i]`` in the place of each slot's index i."""
    if isinstance(treedef, Slot):
        return Slot(indexes[treedef.position])
    if isinstance(treedef, Container):
        items = tuple([renumbered(item, indexes) for item in treedef.items])
        return Container(treedef.kind, treedef.keys, items)
    return treedef


def check_constants(treedef: Any, where: str) -> None:
    """Refuse objects that are compared by identity: Variables may hide in them.

    Raises:
        TraceError: the treedef has such an object.
    """
    for leaf in leaves(treedef):
        if not isinstance(leaf, ByIdentity):
            continue
        value = leaf.value
        by_identity = cast(Any, type(value)).__hash__ is object.__hash__
        if by_identity and not isinstance(value, Device):
            raise TraceError(
                f"{where}: {describe(value)} would be the same object at each call. Return "
                "Variables, numbers and texts, in tuples, lists or dicts."
            )


def paths(treedef: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """The index and a name for each slot, such as ``weights_0``."""
    if isinstance(treedef, Slot):
        yield treedef.position, path
    elif isinstance(treedef, Container):
        for number, item in enumerate(treedef.items):
            title = _title(treedef.keys[number]) if treedef.keys else str(number)
            yield from paths(item, f"{path}_{title}" if path else title)


def _title(key: Any) -> str:
    return "key" if isinstance(key, Container) else str(getattr(key, "value", key))

"""Indexes as constants of a function, and the arrays in them as its inputs.

An index is made of integers, slices, ``...`` and None, which are constants of the function, and of
integer or bool arrays, which are inputs of it.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy

from tinynode.core.array_methods import ArrayMethods
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, is_array, is_integer, namespace_of, put
from tinynode.errors import DeviceMixError, OperandError, describe
from tinynode.functions.operands import as_operand, first_variable


class Slice(NamedTuple):
    """A slice as a hashable constant."""

    start: int | None
    stop: int | None
    step: int | None

    def __repr__(self) -> str:
        return ":".join("" if n is None else str(n) for n in self)


class Place(NamedTuple):
    """Stands in an index for an array, which is an input of the function; it covers some axes."""

    axes: int

    def __repr__(self) -> str:
        return "array"


Index = tuple[Any, ...]
"""An index as hashable constants: int, Slice, None, Ellipsis and Place."""


def freeze_index(function: str, index: Any, x: Variable) -> tuple[Index, list[Variable]]:
    """A user's index as hashable constants, and the arrays in it as Variables beside x.

    Raises:
        DeviceMixError: an array in it is on another device than x.
        OperandError: it holds something that is no index.
        ValueError: the step of a slice is 0.
    """
    frozen: list[Any] = []
    arrays: list[Variable] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            frozen.append(item)
        elif isinstance(item, slice):
            frozen.append(_freeze_slice(function, item))
        elif _is_array(item):
            array = _index_array(function, item, x)
            frozen.append(Place(1 if is_integer(array.raw) else array.ndim))
            arrays.append(array)
        else:
            frozen.append(_integer(function, item))
    return tuple(frozen), arrays


def variable_in(index: Any) -> Variable | None:
    """The first Variable in an index."""
    return first_variable(*index) if isinstance(index, tuple) else first_variable(index)


def _freeze_slice(function: str, item: slice) -> Slice:
    bounds = (item.start, item.stop, item.step)
    frozen = Slice(*(None if n is None else _integer(function, n) for n in bounds))
    if frozen.step == 0:
        raise ValueError(f"{function}: the step of {item} is 0. Give another, or leave it out.")
    return frozen


def _integer(function: str, item: Any) -> int:
    try:
        if not isinstance(item, bool) and getattr(item, "shape", ()) == ():
            return operator.index(item)
    except TypeError:  # a float; or an array of one, or of a bool
        pass
    raise OperandError(
        f"{function}: an index is made of integers, slices, ..., None, and integer or bool "
        f"arrays, got {describe(item)}."
    )


def _is_array(item: Any) -> bool:
    """Lists, and arrays and Variables unless they are single integers."""
    if isinstance(item, list):
        return True
    if isinstance(item, ArrayMethods):
        return item.ndim > 0
    shape = getattr(item, "shape", ())
    return shape != () and not isinstance(item, type) and is_array(item)


def _index_array(function: str, item: Any, x: Variable) -> Variable:
    """An integer or bool array as a Variable on x's device."""
    if isinstance(item, list):
        return index_list(function, item, x)
    variable = as_operand(function, "index", item, x)
    if variable.device is not x.device:
        raise DeviceMixError(
            f"{function}: an array in the index is on {variable.device}, x is on {x.device}. "
            f"Move it with to_device(..., {str(x.device)!r})."
        )
    if not x.xp.isdtype(variable.dtype, ("integral", "bool")):
        raise OperandError(
            f"{function}: an index array must be integer or bool, got {describe(variable)}."
        )
    return variable


def index_list(function: str, values: Any, x: Variable) -> Variable:
    """A list of integers or bools as a Variable on x's device.

    Raises:
        OperandError: it holds something else, or lists of different length.
    """
    try:
        host = numpy.asarray(values)
    except ValueError:
        host = numpy.asarray(values, dtype=object)
    if host.size == 0:
        host = host.astype(numpy.int64)
    if host.dtype.kind not in "iub":
        raise OperandError(
            f"{function}: an index list must hold integers or bools, and lists in it be equally "
            f"long, got {describe(values)}."
        )
    return wrap_array(x.device.from_host(host), x.device, False)


def thaw_index(index: Index, shape: tuple[int, ...], arrays: Arrays = ()) -> Index:
    """The index that arrays of a shape take, in the terms of the Array API standard.

    There every axis is named, and slices end within the array. It is for ``turned`` arrays: all
    steps are positive.
    """
    axes = iter(axes_of(index, len(shape)))
    waiting = iter(arrays)
    thawed: list[Any] = []
    for item in index:
        if item is None or item is Ellipsis:
            thawed.append(item)
            continue
        length = shape[next(axes)]
        if isinstance(item, Place):
            thawed.append(next(waiting))
        else:
            thawed.append(_clamped(item, length) if isinstance(item, Slice) else item)
    if not arrays and Ellipsis not in index:
        thawed.append(Ellipsis)
    return tuple(thawed)


def turned(array: Array, index: Index) -> Array:
    """The array, flipped along the axes that an index goes through backwards.

    Then all steps are positive: PyTorch has no others. Flipping twice gives the array again.
    """
    for item in index:
        if isinstance(item, Slice) and item.step is not None and item.step < 0:
            break
    else:
        return array
    named = [item for item in index if item is not None and item is not Ellipsis]
    axes = []
    for axis, item in zip(axes_of(index, array.ndim), named, strict=True):
        if isinstance(item, Slice) and item.step is not None and item.step < 0:
            axes.append(axis)
    return namespace_of(array).flip(array, axis=tuple(axes))


def axes_of(index: Index, ndim: int) -> list[int]:
    """The first axis that each integer, slice and array of an index speaks of."""
    axes: list[int] = []
    axis = 0
    for item in index:
        if item is Ellipsis:
            axis += ndim - named_axes(index)
        elif item is not None:
            axes.append(axis)
            axis += item.axes if isinstance(item, Place) else 1
    return axes


def named_axes(index: Index) -> int:
    """How many axes of x an index speaks of."""
    count = 0
    for item in index:
        if item is not None and item is not Ellipsis:
            count += item.axes if isinstance(item, Place) else 1
    return count


def _clamped(item: Slice, length: int) -> slice:
    """The same elements of an axis, by bounds that lie within it; of the flipped axis, if the step
    is negative.
    """
    chosen = range(*slice(*item).indices(length))
    if not chosen:
        return slice(0, 0)
    if chosen.step < 0:
        return slice(length - 1 - chosen.start, length - chosen[-1], -chosen.step)
    return slice(chosen.start, chosen.stop, chosen.step)


def check_fits(function: str, index: Index, x: Variable, arrays: list[Variable]) -> None:
    """Refuse what does not fit x's shape, before the array library complains, or does not.

    Raises:
        IndexError: too many indices, integers out of range, or arrays that do not fit.
    """
    if named_axes(index) > x.ndim or index.count(Ellipsis) > 1:
        raise IndexError(
            f"{function}: index {index} has too many entries for x of shape {x.shape}."
        )
    named = [item for item in index if item is not None and item is not Ellipsis]
    waiting = iter(arrays)
    if len(arrays) > 1:
        _check_together(function, arrays)
    for axis, item in zip(axes_of(index, x.ndim), named, strict=True):
        if isinstance(item, Place):
            _check_array(function, next(waiting), x, axis)
        elif isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            raise IndexError(
                f"{function}: index {item} is out of bounds for axis {axis} of x, which has "
                f"shape {x.shape}."
            )


def _check_together(function: str, arrays: list[Variable]) -> None:
    """Arrays select element by element, so their shapes must broadcast together."""
    shapes = [one.shape if is_integer(one.raw) else _number_of_true(one) for one in arrays]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(shape) for shape in shapes)
        raise IndexError(
            f"{function}: the arrays in the index have shapes {text} (a bool array: its number "
            "of True), which do not broadcast together. For every pair of them index twice, "
            "x[rows][:, columns], or give the first a new axis, rows[:, None]."
        ) from None


def _number_of_true(mask: Variable) -> tuple[int]:
    return (int(mask.xp.sum(mask.xp.astype(mask.raw, mask.xp.int64))),)


def _check_array(function: str, array: Variable, x: Variable, axis: int) -> None:
    """Integers must lie within the axis; a bool array has the lengths of the axes it covers."""
    if is_integer(array.raw):
        check_bounds(function, array, x, axis)
    elif array.shape != x.shape[axis : axis + array.ndim]:
        raise IndexError(
            f"{function}: a bool array of shape {array.shape} stands for axis {axis} on of x, "
            f"which has shape {x.shape}: the lengths must be equal."
        )


def check_bounds(function: str, indices: Variable, x: Variable, axis: int) -> None:
    """Refuse integers that lie outside an axis of x.

    Raises:
        IndexError: one does.
    """
    xp, array, length = indices.xp, indices.raw, x.shape[axis]
    if indices.size and xp.any((array < -length) | (array >= length)):
        low, high = int(xp.min(array)), int(xp.max(array))
        raise IndexError(
            f"{function}: indices run from {low} to {high}, but axis {axis} of x (shape "
            f"{x.shape}) has {length} entries."
        )


def written(array: Array, index: Index, arrays: Arrays, value: Array) -> Array:
    """Write into an array that nobody else holds."""
    array = turned(array, index)
    place = thaw_index(index, array.shape, arrays)
    if None not in index:
        return turned(put(array, place, value), index)
    # the standard writes to existing axes only, so there is one where None stands
    xp = namespace_of(array)
    wide = xp.reshape(array, _shape_with_new_axes(index, array.shape))
    wide_place = tuple(slice(0, 1) if item is None else item for item in place)
    wide = put(wide, wide_place, value)
    return turned(xp.reshape(wide, array.shape), index)


def _shape_with_new_axes(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with an axis of length 1 at each None of an index."""
    wide: list[int] = []
    axis = 0
    for item in index:
        if item is None:
            wide.append(1)
            continue
        end = axis + (item.axes if isinstance(item, Place) else 1)
        if item is Ellipsis:
            end = axis + len(shape) - named_axes(index)
        wide.extend(shape[axis:end])
        axis = end
    return (*wide, *shape[axis:])

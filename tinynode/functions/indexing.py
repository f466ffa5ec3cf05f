"""Reading and writing parts of an array by basic indexes: integers, slices, ``...`` and None."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tinynode.backend import Array, Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.shaping import broadcasts_to, reshape
from tinynode.variable import Variable


class Slice(NamedTuple):
    """A slice as a hashable constant."""

    start: int | None
    stop: int | None
    step: int | None


Index = tuple[Any, ...]
"""A basic index as hashable constants: int, Slice, None and Ellipsis."""


def freeze_index(function: str, index: Any) -> Index:
    """A user's index as hashable constants.

    Raises:
        OperandError: it holds something else than integers, slices, ``...`` and None.
        ValueError: the step of a slice is 0.
    """
    frozen: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            frozen.append(item)
        elif isinstance(item, slice):
            frozen.append(_freeze_slice(function, item))
        else:
            frozen.append(_integer(function, item))
    return tuple(frozen)


def _freeze_slice(function: str, item: slice) -> Slice:
    bounds = (item.start, item.stop, item.step)
    frozen = Slice(*(None if n is None else _integer(function, n) for n in bounds))
    if frozen.step == 0:
        raise ValueError(f"{function}: the step of {item} is 0. Give another, or leave it out.")
    return frozen


def _integer(function: str, item: Any) -> int:
    shape = getattr(item, "shape", ())
    if isinstance(item, bool) or shape != () or not hasattr(item, "__index__"):
        raise OperandError(
            f"{function}: an index is made of integers, slices, ... and None, "
            f"got {describe(item)}."
        )
    return int(item.__index__())


def thaw_index(index: Index, shape: tuple[int, ...]) -> Index:
    """The index that arrays of a shape take, in the terms of the Array API standard.

    There every axis is named, and slices end within the array.
    """
    axes = iter(_axes_of(index, len(shape)))
    thawed: list[Any] = []
    for item in index:
        if item is None or item is Ellipsis:
            thawed.append(item)
            continue
        length = shape[next(axes)]
        thawed.append(_clamped(item, length) if isinstance(item, Slice) else item)
    if Ellipsis not in thawed:
        thawed.append(Ellipsis)
    return tuple(thawed)


def _axes_of(index: Index, ndim: int) -> list[int]:
    """The axis of each integer and slice of an index."""
    items = [item for item in index if item is not None]
    named = len(items) - items.count(Ellipsis)
    before = items.index(Ellipsis) if Ellipsis in items else named
    return [*range(before), *range(ndim - named + before, ndim)]


def _clamped(item: Slice, length: int) -> slice:
    """The same elements of an axis, by bounds that lie within it."""
    start, stop, step = slice(*item).indices(length)
    if not range(start, stop, step):
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


class GetItem(FunctionNode):
    """y = x[index].

    x: (s) -> y: (shape of the selection).   dL/dx = zeros of shape s with dL/dy written at index
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (x[thaw_index(self.index, x.shape)],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        assert self.inputs is not None and self.inputs[0].shape is not None
        return GetItemGrad(self.index, tuple(self.inputs[0].shape)).apply(grad_outputs)


def get_item(x: Any, index: Any) -> Variable:
    """x[index] for a basic index. The result is a value, not a view.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index holds something else than integers, slices, ``...`` and None.
    """
    x = as_operand("get_item", "x", x)
    frozen = freeze_index("get_item", index)
    _check_fits("get_item", frozen, x)
    return GetItem(frozen).apply((x,))[0]


def _check_fits(function: str, index: Index, x: Variable) -> None:
    """Refuse too many indices and integers out of range, before the array library complains."""
    named = [item for item in index if item is not None and item is not Ellipsis]
    if len(named) > x.ndim or index.count(Ellipsis) > 1:
        raise IndexError(
            f"{function}: index {index} has too many entries for x of shape {x.shape}."
        )
    for axis, item in zip(_axes_of(index, x.ndim), named, strict=True):
        if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            raise IndexError(
                f"{function}: index {item} is out of bounds for axis {axis} of x, which has "
                f"shape {x.shape}."
            )


class GetItemGrad(FunctionNode):
    """gx = zeros of ``shape`` with gy written at index.   gy: (selection) -> gx: (shape)

    The gradient of ``GetItem``. Its own:   dL/dgy = dL/dgx[index]
    """

    def __init__(self, index: Index, shape: tuple[int, ...]) -> None:
        self.index = index
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (gy,) = inputs
        zeros = namespace_of(gy).zeros(self.shape, dtype=gy.dtype, device=gy.device)
        return (_written(zeros, self.index, gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return GetItem(self.index).apply(grad_outputs)


def _written(array: Array, index: Index, value: Array) -> Array:
    """Write into an array that nobody else holds."""
    place = thaw_index(index, array.shape)
    if None in place:  # the standard writes to existing axes only
        xp = namespace_of(array)
        spread = xp.broadcast_to(value, array[place].shape)
        place = tuple(item for item in place if item is not None)
        value = xp.reshape(spread, array[place].shape)
    array[place] = value
    return array


class SetItem(FunctionNode):
    """y = a copy of x with v written at index.

    x: (s), v: (broadcasts to the selection) -> y: (s).
    With g = dL/dy:   dL/dx = g with zeros at index   dL/dv = g[index], summed to v's shape
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        x, v = inputs
        xp = namespace_of(x)
        value = v if v.dtype == x.dtype else xp.astype(v, x.dtype)
        return (_written(xp.asarray(x, copy=True), self.index, value),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert gy is not None
        gx = gv = None
        if 0 in target_input_indexes:
            gx = set_item(gy, self.index, 0)
        if 1 in target_input_indexes:
            gv = unbroadcast(GetItem(self.index).apply((gy,))[0], self, 1)
        return gx, gv


def set_item(x: Any, index: Any, value: Any) -> Variable:
    """A copy of x with ``value`` written at a basic index: what ``x[index] = value`` stands on.

    The value is cast to the dtype of x.

    Raises:
        IndexError: the index does not fit the shape.
        ValueError: the value does not broadcast to the selection.
    """
    x, value = as_operands("set_item", x, value, names=("x", "value"))
    frozen = index if _is_frozen(index) else freeze_index("set_item", index)
    _check_fits("set_item", frozen, x)
    return SetItem(frozen).apply((x, _fitting(value, frozen, x)))[0]


def _fitting(value: Variable, index: Index, x: Variable) -> Variable:
    """The value, without leading axes of length 1 that the selection does not have."""
    selection = tuple(x._array[thaw_index(index, x.shape)].shape)
    extra = value.ndim - len(selection)
    shape = value.shape[extra:] if extra > 0 else value.shape
    if math.prod(shape) != value.size or not broadcasts_to(shape, selection):
        raise ValueError(
            f"set_item: value has shape {value.shape}, which does not broadcast to the selection, "
            f"of shape {selection}. Reshape or index the value."
        )
    return reshape(value, shape)


def _is_frozen(index: Any) -> bool:
    return isinstance(index, tuple) and any(isinstance(item, Slice) for item in index)

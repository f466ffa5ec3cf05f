"""Reading and writing parts of an array by basic indexes: integers, slices, ``...`` and None."""

from __future__ import annotations

from typing import Any, NamedTuple

from tinynode.backend import Array, Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.operands import as_operand, as_operands
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
    """
    frozen: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            frozen.append(item)
        elif isinstance(item, slice):
            frozen.append(Slice(*(_integer(function, n) for n in _bounds(item))))
        else:
            frozen.append(_integer(function, item))
    return tuple(frozen)


def _bounds(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


def _integer(function: str, item: Any) -> int | None:
    if item is None:
        return None
    shape = getattr(item, "shape", ())
    if isinstance(item, bool) or shape != () or not hasattr(item, "__index__"):
        raise OperandError(
            f"{function}: an index is made of integers, slices, ... and None, got {describe(item)}."
        )
    return int(item.__index__())


def thaw_index(index: Index, ndim: int) -> Index:
    """The index that arrays take; every axis is named, as the Array API standard asks."""
    thawed = [slice(*item) if isinstance(item, Slice) else item for item in index]
    named = len([item for item in thawed if item is not None and item is not Ellipsis])
    if named < ndim and Ellipsis not in thawed:
        thawed.append(Ellipsis)
    return tuple(thawed)


class GetItem(FunctionNode):
    """y = x[index].

    x: (s) -> y: (shape of the selection).   dL/dx = zeros of shape s with dL/dy written at index
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (x[thaw_index(self.index, x.ndim)],)

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
    items = [item for item in index if item is not None]
    before = items.index(Ellipsis) if Ellipsis in items else len(items)
    axes = [*range(before), *range(x.ndim - len(named) + before, x.ndim)]
    for axis, item in zip(axes, named, strict=True):
        if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            raise IndexError(
                f"{function}: index {item} is out of bounds for axis {axis} of x, which has "
                f"shape {x.shape}."
            )


class GetItemGrad(FunctionNode):
    """gx = zeros of ``shape`` with gy written at index.   gy: (selection) -> gx: (shape)

    The gradient of ``GetItem``; its own gradient is ggx[index].
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
    array[thaw_index(index, array.ndim)] = value
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
    x, value = as_operands("set_item", x, value)
    frozen = index if _is_frozen(index) else freeze_index("set_item", index)
    _check_fits("set_item", frozen, x)
    return SetItem(frozen).apply((x, value))[0]


def _is_frozen(index: Any) -> bool:
    return isinstance(index, tuple) and any(isinstance(item, Slice) for item in index)

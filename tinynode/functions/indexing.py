"""Reading and writing parts of an array.

An index is made of integers, slices, ``...`` and None, which are constants of the function, and of
integer or bool arrays, which are inputs of it. Where a gather names an element several times, its
gradients add up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from tinynode.backend import Array, Arrays, add_at, find_device, is_integer, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.shaping import normalize_axis, permute_dims, reshape
from tinynode.variable import Variable, wrap_array


class Slice(NamedTuple):
    """A slice as a hashable constant."""

    start: int | None
    stop: int | None
    step: int | None


class Place(NamedTuple):
    """Stands in an index for an array, which is an input of the function; it covers some axes."""

    axes: int


Index = tuple[Any, ...]
"""An index as hashable constants: int, Slice, None, Ellipsis and Place."""


def freeze_index(function: str, index: Any, x: Variable) -> tuple[Index, list[Variable]]:
    """A user's index as hashable constants, and the arrays in it as Variables beside x.

    Raises:
        OperandError: it holds something that is no index.
    """
    frozen: list[Any] = []
    arrays: list[Variable] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            frozen.append(item)
        elif isinstance(item, slice):
            bounds = [_integer(function, n) for n in (item.start, item.stop, item.step)]
            frozen.append(Slice(*bounds))
        elif _is_array(item):
            array = _index_array(function, item, x)
            is_mask = not is_integer(array._array)
            frozen.append(Place(array.ndim if is_mask else 1))
            arrays.append(array)
        else:
            frozen.append(_integer(function, item))
    return tuple(frozen), arrays


def _is_array(item: Any) -> bool:
    """Lists, and arrays and Variables unless they are single integers."""
    if isinstance(item, list):
        return True
    if isinstance(item, Variable):
        return item.ndim > 0 or not is_integer(item._array)
    shape = getattr(item, "shape", None)
    return shape is not None and shape != () and find_device(item) is not None


def _index_array(function: str, item: Any, x: Variable) -> Variable:
    """An integer or bool array as a Variable on x's device."""
    if isinstance(item, list):
        item = x._device.from_host(numpy.asarray(item))
    variable = item if isinstance(item, Variable) else wrap_array(item, x._device, False)
    xp = x.xp
    if not xp.isdtype(variable.dtype, ("integral", "bool")):
        raise OperandError(
            f"{function}: an index array must be integer or bool, got {variable!r}."
        )
    return variable


def _integer(function: str, item: Any) -> int | None:
    if item is None:
        return None
    shape = getattr(item, "shape", ())
    if isinstance(item, bool) or shape != () or not hasattr(item, "__index__"):
        raise OperandError(
            f"{function}: an index is made of integers, slices, ..., None, and integer or bool "
            f"arrays, got {describe(item)}."
        )
    return int(item.__index__())


def thaw_index(index: Index, ndim: int, arrays: Arrays = ()) -> Index:
    """The index that arrays take; every axis is named, as the Array API standard asks."""
    waiting = iter(arrays)
    thawed: list[Any] = []
    for item in index:
        if isinstance(item, Place):
            thawed.append(next(waiting))
        else:
            thawed.append(slice(*item) if isinstance(item, Slice) else item)
    if _named_axes(index) < ndim and not any(item is Ellipsis for item in index):
        thawed.append(Ellipsis)
    return tuple(thawed)


def _named_axes(index: Index) -> int:
    """How many axes of x the index speaks of."""
    axes = 0
    for item in index:
        if isinstance(item, Place):
            axes += item.axes
        elif item is not None and item is not Ellipsis:
            axes += 1
    return axes


def _check_fits(function: str, index: Index, x: Variable) -> None:
    """Refuse too many indices and integers out of range, before the array library complains."""
    if _named_axes(index) > x.ndim or index.count(Ellipsis) > 1:
        raise IndexError(
            f"{function}: index {index} has too many entries for x of shape {x.shape}."
        )
    axis = 0
    for item in index:
        if item is Ellipsis:
            axis = x.ndim - _named_axes(index) + axis
        elif isinstance(item, Place):
            axis += item.axes
        elif item is not None:
            if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
                raise IndexError(
                    f"{function}: index {item} is out of bounds for axis {axis} of x, which has "
                    f"shape {x.shape}."
                )
            axis += 1


class GetItem(FunctionNode):
    """y = x[index].

    x: (s), integer or bool arrays: as the index has them -> y: (shape of the selection).
    dL/dx = zeros of shape s, to which dL/dy is added at index
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        x, *arrays = inputs
        self.retain_inputs(range(1, len(inputs)))
        return (x[thaw_index(self.index, x.ndim, tuple(arrays))],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        shape = tuple(self.inputs[0].shape)  # type: ignore[index, arg-type]
        nothing = (None,) * len(arrays)
        if not arrays:
            return GetItemGrad(self.index, shape).apply(grad_outputs)
        positions = Positions(self.index, shape).apply(arrays)[0]
        flat = AddAt(math.prod(shape)).apply((reshape(gy, -1), positions))[0]
        return (reshape(flat, shape), *nothing)


def get_item(x: Any, index: Any) -> Variable:
    """x[index]. The result is a value, not a view.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index holds something else than integers, slices, ``...``, None, and
            integer or bool arrays.
    """
    x = as_operand("get_item", "x", x)
    frozen, arrays = freeze_index("get_item", index, x)
    _check_fits("get_item", frozen, x)
    return GetItem(frozen).apply((x, *arrays))[0]


class GetItemGrad(FunctionNode):
    """gx = zeros of ``shape`` with gy written at a basic index.   gy: (selection) -> gx: (shape)

    The gradient of ``GetItem`` without arrays; its own gradient is dL/dgy = dL/dgx[index].
    """

    def __init__(self, index: Index, shape: tuple[int, ...]) -> None:
        self.index = index
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (gy,) = inputs
        zeros = namespace_of(gy).zeros(self.shape, dtype=gy.dtype, device=gy.device)
        return (_written(zeros, self.index, (), gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return GetItem(self.index).apply(grad_outputs)


class Positions(FunctionNode):
    """p = the places in the flattened array that an index with arrays selects; no gradient.

    integer or bool arrays -> p: (number of selected elements), integer.
    """

    def __init__(self, index: Index, shape: tuple[int, ...]) -> None:
        self.index = index
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])
        places = xp.arange(math.prod(self.shape), device=inputs[0].device)
        places = xp.reshape(places, self.shape)
        selected = places[thaw_index(self.index, len(self.shape), inputs)]
        return (xp.reshape(selected, (-1,)),)


def _written(array: Array, index: Index, arrays: Arrays, value: Array) -> Array:
    """Write into an array that nobody else holds."""
    array[thaw_index(index, array.ndim, arrays)] = value
    return array


class SetItem(FunctionNode):
    """y = a copy of x with v written at index.

    x: (s), v: (broadcasts to the selection), integer or bool arrays -> y: (s).
    With g = dL/dy:   dL/dx = g with zeros at index   dL/dv = g[index], summed to v's shape. Where
    arrays name an element several times, it is not defined which value stays.
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        x, v, *arrays = inputs
        xp = namespace_of(x)
        self.retain_inputs(range(2, len(inputs)))
        value = v if v.dtype == x.dtype else xp.astype(v, x.dtype)
        return (_written(xp.asarray(x, copy=True), self.index, tuple(arrays), value),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        assert gy is not None
        gx = gv = None
        if 0 in target_input_indexes:
            _, zero = as_operands("set_item", gy, 0)
            gx = SetItem(self.index).apply((gy, zero, *arrays))[0]
        if 1 in target_input_indexes:
            gv = unbroadcast(GetItem(self.index).apply((gy, *arrays))[0], self, 1)
        return (gx, gv, *(None,) * len(arrays))


def set_item(x: Any, index: Any, value: Any) -> Variable:
    """A copy of x with ``value`` written at an index: what ``x[index] = value`` stands on.

    The value is cast to the dtype of x.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index holds something that is no index.
    """
    x, value = as_operands("set_item", x, value)
    frozen, arrays = freeze_index("set_item", index, x)
    _check_fits("set_item", frozen, x)
    return SetItem(frozen).apply((x, value, *arrays))[0]


class TakeRows(FunctionNode):
    """y_k = x[indices_k]: rows, that is, whatever stands along the first axis.

    x: (n, ...), indices: (k), integer -> y: (k, ...).
    dL/dx = zeros, to which each dL/dy_k is added at indices_k
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, indices = inputs
        self.retain_inputs((1,))
        return (namespace_of(x).take(x, indices, axis=0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        length = self.inputs[0].shape[0]  # type: ignore[index]
        return AddAt(length).apply((gy, indices))[0], None


class AddAt(FunctionNode):
    """y = zeros, to which each values_k is added at indices_k: the gradient of ``TakeRows``.

    values: (k, ...), indices: (k), integer -> y: (length, ...).   dL/dvalues_k = dL/dy[indices_k]
    """

    def __init__(self, length: int) -> None:
        self.length = length

    def forward(self, inputs: Arrays) -> Arrays:
        values, indices = inputs
        self.retain_inputs((1,))
        return (add_at(indices, values, self.length),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        return TakeRows().apply((gy, indices))[0], None


def take(x: Any, indices: Any, *, axis: int | None = None) -> Variable:
    """The parts of x along an axis that integers name; an index may come several times.

    Args:
        x: (s).
        indices: integers; the standard asks for one axis, more are accepted.
        axis: the axis; it may be left out for a one-dimensional x.

    Raises:
        ValueError: the axis does not exist, or is left out where x has not one axis.
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
    """
    x = as_operand("take", "x", x)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: x has shape {x.shape}, so the axis must be given.")
    axis = normalize_axis("take", 0 if axis is None else axis, x.ndim)
    indices = require_integers("take", indices, x, x.shape[axis])
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    rows = TakeRows().apply((permute_dims(x, order), reshape(indices, -1)))[0]
    rest = tuple(x.shape[i] for i in order[1:])
    taken = reshape(rows, (*indices.shape, *rest))
    k = indices.ndim
    back = (*range(k, k + axis), *range(k), *range(k + axis, taken.ndim))
    return permute_dims(taken, back)


def require_integers(function: str, indices: Any, x: Variable, length: int) -> Variable:
    """Indices as an integer Variable beside x, all within a length.

    Raises:
        OperandError: they are not integers.
        IndexError: one is out of bounds.
    """
    if isinstance(indices, list | int):
        indices = x._device.from_host(numpy.asarray(indices, dtype=numpy.int64))
    variable = as_operand(function, "indices", indices)
    if not is_integer(variable._array):
        raise OperandError(f"{function}: indices must be integers, got {describe(indices)}.")
    xp, array = variable.xp, variable._array
    if variable.size and xp.any((array < -length) | (array >= length)):
        low, high = int(xp.min(array)), int(xp.max(array))
        raise IndexError(
            f"{function}: indices run from {low} to {high}, but x (shape {x.shape}) has {length} "
            "entries along that axis."
        )
    return variable


class TakeAlongAxis(FunctionNode):
    """y = x at the places that indices name along an axis, the other places being their own.

    x: (s), indices: (s with any length at axis), integer -> y: (shape of indices).
    dL/dx = zeros of shape s, to which dL/dy is added at those places
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        x, indices = inputs
        self.retain_inputs((1,))
        return (namespace_of(x).take_along_axis(x, indices, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        shape = tuple(self.inputs[0].shape)  # type: ignore[index, arg-type]
        positions = PositionsAlongAxis(self.axis, shape).apply((indices,))[0]
        flat = AddAt(math.prod(shape)).apply((reshape(gy, -1), positions))[0]
        return reshape(flat, shape), None


class PositionsAlongAxis(FunctionNode):
    """p = the places in the flattened array that ``TakeAlongAxis`` reads; no gradient.

    indices: (s with any length at axis), integer -> p: (number of indices), integer.
    """

    def __init__(self, axis: int, shape: tuple[int, ...]) -> None:
        self.axis = axis
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (indices,) = inputs
        xp = namespace_of(indices)
        places = xp.arange(math.prod(self.shape), device=indices.device)
        places = xp.reshape(places, self.shape)
        selected = xp.take_along_axis(places, indices, axis=self.axis)
        return (xp.reshape(selected, (-1,)),)


def take_along_axis(x: Any, indices: Any, *, axis: int = -1) -> Variable:
    """x at the places that ``indices`` name along an axis.

    Args:
        x: (s).
        indices: integers, of x's shape but for the length of the axis.
        axis: the axis.

    Raises:
        ValueError: the axis does not exist, or the shapes do not fit together.
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
    """
    x = as_operand("take_along_axis", "x", x)
    axis = normalize_axis("take_along_axis", axis, x.ndim)
    indices = require_integers("take_along_axis", indices, x, x.shape[axis])
    expected = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if indices.shape != expected:
        raise ValueError(
            f"take_along_axis: indices have shape {indices.shape}, x has {x.shape}: they must be "
            f"equal but for axis {axis}."
        )
    return TakeAlongAxis(axis).apply((x, indices))[0]

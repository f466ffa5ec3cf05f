"""Gathering parts of an array by integers, and adding them back.

Where a gather names an element several times, its gradients add up.
"""

from __future__ import annotations

import math
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, add_at, is_integer, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.functions.indexes import check_bounds, index_list
from tinynode.functions.operands import as_operand
from tinynode.functions.shaping import normalize_axis, permute_dims, reshape


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
    x = as_operand("take", "x", x, indices)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: x has shape {x.shape}, so the axis must be given.")
    axis = normalize_axis("take", 0 if axis is None else axis, x.ndim)
    indices = require_integers("take", indices, x, axis)
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    rows = TakeRows().apply((permute_dims(x, order), reshape(indices, -1)))[0]
    rest = tuple(x.shape[i] for i in order[1:])
    taken = reshape(rows, (*indices.shape, *rest))
    k = indices.ndim
    back = (*range(k, k + axis), *range(k), *range(k + axis, taken.ndim))
    return permute_dims(taken, back)


def require_integers(function: str, indices: Any, x: Variable, axis: int) -> Variable:
    """Indices as an integer Variable beside x, all within an axis.

    Raises:
        OperandError: they are not integers.
        IndexError: one is out of bounds.
    """
    if isinstance(indices, list | tuple | int):
        variable = index_list(function, indices, x)
    else:
        variable = as_operand(function, "indices", indices, x)
    if not is_integer(variable.raw):
        raise OperandError(f"{function}: indices must be integers, got {describe(indices)}.")
    check_bounds(function, variable, x, axis)
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
        shape = tuple(self.inputs[0].shape)  # type: ignore[index]
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
    x = as_operand("take_along_axis", "x", x, indices)
    axis = normalize_axis("take_along_axis", axis, x.ndim)
    indices = require_integers("take_along_axis", indices, x, axis)
    expected = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if indices.ndim != x.ndim or indices.shape != expected:
        raise ValueError(
            f"take_along_axis: indices have shape {indices.shape}, x has {x.shape}: they must be "
            f"equal but for axis {axis}."
        )
    return TakeAlongAxis(axis).apply((x, indices))[0]

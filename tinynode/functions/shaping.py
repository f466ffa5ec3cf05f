"""The same elements in another shape: reshape, permute, broadcast, join, cut."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.functions.operands import as_operand, as_operand_list
from tinynode.type_check import expect

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple

Shape = tuple[int, ...]


class Reshape(FunctionNode):
    """y = the elements of x, in the same order, in another shape.

    x: (s) -> y: (shape).   dL/dx = dL/dy in the shape s
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).reshape(x, self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert self.inputs is not None and self.inputs[0].shape is not None
        return (reshape(gy, self.inputs[0].shape),)


def reshape(x: Any, shape: int | Sequence[int]) -> Variable:
    """x in another shape; one entry may be -1, and is worked out.

    Raises:
        ValueError: the number of elements differs.
    """
    source = as_operand("reshape", "x", x)
    full = _without_minus_one(source, as_shape("reshape", "shape", shape))
    if full == source.shape:
        return source
    return Reshape(full).apply((source,))[0]


def _without_minus_one(x: Variable, shape: Shape) -> Shape:
    """The shape with -1 replaced; refuses one that does not hold x's elements."""
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known > 0 and x.size % known == 0:
        return tuple(x.size // known if n == -1 else n for n in shape)
    if any(n < 0 for n in shape) or math.prod(shape) != x.size:
        raise ValueError(
            f"reshape: x has shape {x.shape}, {x.size} elements, which do not fill {shape}. "
            "At most one entry may be -1."
        )
    return shape


def as_shape(function: str, argument: str, shape: int | Sequence[int]) -> Shape:
    """A shape as a tuple of integers; one integer stands for one axis.

    Raises:
        OperandError: it is something else.
    """
    try:
        if isinstance(shape, int):
            return (shape,)
        return tuple(operator.index(n) for n in shape)
    except TypeError:
        raise OperandError(
            f"{function}: {argument} must be a tuple of integers, got {describe(shape)}."
        ) from None


class PermuteDims(FunctionNode):
    """y = x with its axes in another order: axis i of y is axis axes[i] of x.

    x: (s) -> y: (s[axes[0]], s[axes[1]], ...).   dL/dx = dL/dy with the axes put back
    """

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).permute_dims(x, self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        inverse = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        return (permute_dims(gy, inverse),)


def permute_dims(x: Any, axes: Sequence[int]) -> Variable:
    """x with its axes in another order.

    Raises:
        ValueError: ``axes`` does not name each axis once.
    """
    source = as_operand("permute_dims", "x", x)
    given = as_shape("permute_dims", "axes", axes)
    order = tuple(axis + source.ndim if axis < 0 else axis for axis in given)
    if sorted(order) != list(range(source.ndim)):
        raise ValueError(
            f"permute_dims: axes {given} must name each axis of x (shape {source.shape}) once."
        )
    if order == tuple(range(source.ndim)):
        return source
    return PermuteDims(order).apply((source,))[0]


class BroadcastTo(FunctionNode):
    """y = x repeated along new axes and along axes of length 1.

    x: (s) -> y: (shape).   dL/dx = sum_to(dL/dy, s)
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).broadcast_to(x, self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert self.inputs is not None and self.inputs[0].shape is not None
        return (sum_to(gy, self.inputs[0].shape),)


def broadcast_to(x: Any, shape: Sequence[int]) -> Variable:
    """x repeated so that it has ``shape``.

    Raises:
        ValueError: the shape of x does not broadcast to it.
    """
    source = as_operand("broadcast_to", "x", x)
    wanted = as_shape("broadcast_to", "shape", shape)
    if wanted == source.shape:
        return source
    if not broadcasts_to(source.shape, wanted) or any(n < 0 for n in wanted):
        raise ValueError(
            f"broadcast_to: x has shape {source.shape}, which cannot become {wanted}. Axes line "
            "up from the right; only axes of length 1 can be repeated."
        )
    return BroadcastTo(wanted).apply((source,))[0]


def broadcasts_to(shape: Shape, wanted: Shape) -> bool:
    """Whether an array of ``shape`` can be repeated to the shape ``wanted``."""
    if len(shape) > len(wanted):
        return False
    aligned = wanted[len(wanted) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, aligned, strict=True))


class SumTo(FunctionNode):
    """y = x summed over the axes that a broadcast from ``shape`` would repeat.

    x: (s) -> y: (shape).   dL/dx = broadcast_to(dL/dy, s)
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        new = x.ndim - len(self.shape)
        repeated = [new + i for i, n in enumerate(self.shape) if n == 1 and x.shape[new + i] != 1]
        y = xp.sum(x, axis=(*range(new), *repeated), keepdims=True, dtype=x.dtype)
        return (xp.reshape(y, self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert self.inputs is not None and self.inputs[0].shape is not None
        return (broadcast_to(gy, self.inputs[0].shape),)


def sum_to(x: Any, shape: Sequence[int]) -> Variable:
    """x summed to ``shape``: the counterpart of ``broadcast_to``, for gradients of broadcasts.

    Raises:
        ValueError: ``shape`` does not broadcast to the shape of x.
    """
    source = as_operand("sum_to", "x", x)
    wanted = as_shape("sum_to", "shape", shape)
    if wanted == source.shape:
        return source
    if not broadcasts_to(wanted, source.shape):
        raise ValueError(
            f"sum_to: x has shape {source.shape}, which is no broadcast of {wanted}. Give the "
            "shape that x had before it was broadcast."
        )
    return SumTo(wanted).apply((source,))[0]


class Concat(FunctionNode):
    """y = the inputs one after the other along an axis.

    x_i: (s with n_i at axis) -> y: (s with sum of n_i).   dL/dx_i = its part of dL/dy
    """

    type_hint = "all inputs need equal shapes, but for the axis of concat."

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 1)
        first = in_types[0]
        expect(self.axis < first.ndim)
        for other in in_types[1:]:
            expect(other.dtype == first.dtype, other.ndim == first.ndim)
            for axis in range(int(first.ndim)):
                if axis != self.axis:
                    expect(other.shape[axis] == first.shape[axis])

    def forward(self, inputs: Arrays) -> Arrays:
        return (namespace_of(inputs[0]).concat(inputs, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert self.inputs is not None
        lengths = [node.shape[self.axis] for node in self.inputs if node.shape is not None]
        ends = list(itertools.accumulate(lengths))
        return split(gy, ends[:-1], self.axis)


def concat(xs: Sequence[Any], axis: int | None = 0) -> Variable:
    """Variables or arrays one after the other along ``axis``; None flattens them first.

    Raises:
        ValueError: there is nothing to join.
        InvalidType: shapes or dtypes do not fit together.
    """
    variables = as_operand_list("concat", "xs", xs)
    if not variables:
        raise ValueError("concat: xs is empty; give at least one Variable.")
    if axis is None:
        variables = [reshape(x, -1) for x in variables]
    position = normalize_axis("concat", axis or 0, variables[0].ndim)
    return Concat(position).apply(variables)[0]


class Split(FunctionNode):
    """y_i = the part of x between two positions along an axis.

    x: (s) -> y_i: (s with n_i at axis).   dL/dx = the dL/dy_i one after the other
    """

    def __init__(self, indices: tuple[int, ...], axis: int) -> None:
        self.indices = indices
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        parts = []
        for start, stop in zip(
            (0, *self.indices), (*self.indices, x.shape[self.axis]), strict=True
        ):
            parts.append(x[(*(slice(None),) * self.axis, slice(start, stop), ...)])
        return tuple(parts)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        assert self.inputs is not None and self.inputs[0].shape is not None
        shape = self.inputs[0].shape
        example = next(gy for gy in grad_outputs if gy is not None)
        ends = (*self.indices, shape[self.axis])
        parts = []
        for gy, start, stop in zip(grad_outputs, (0, *self.indices), ends, strict=True):
            if gy is not None:
                parts.append(gy)
                continue
            part_shape = (*shape[: self.axis], stop - start, *shape[self.axis + 1 :])
            parts.append(zeros_beside(example, part_shape))
        return (concat(parts, self.axis),)


def zeros_beside(example: Variable, shape: Shape) -> Variable:
    """Zeros of the example's dtype and device, outside the graph."""
    array = example.raw
    zeros = example.xp.zeros(shape, dtype=array.dtype, device=array.device)
    return wrap_array(zeros, example.device, False)


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Variable, ...]:
    """x cut along ``axis``: at the given positions, or into equal sections.

    Raises:
        ValueError: equal sections do not come out, or positions fall outside or back.
    """
    x = as_operand("split", "x", x)
    axis = normalize_axis("split", axis, x.ndim)
    length = x.shape[axis]
    if hasattr(indices_or_sections, "__index__"):
        sections = operator.index(indices_or_sections)
        if sections < 1 or length % sections:
            raise ValueError(f"split: length {length} does not divide into {sections} sections.")
        step = length // sections
        indices = tuple(range(step, length, step)) if step else (0,) * (sections - 1)
    else:
        indices = tuple(int(i) for i in indices_or_sections)
    if list(indices) != sorted(indices) or any(not 0 <= i <= length for i in indices):
        raise ValueError(f"split: positions {indices} must rise, within 0 and {length}.")
    return Split(indices, axis).apply((x,))


def normalize_axis(function: str, axis: int, ndim: int) -> int:
    """An axis counted from the front.

    Raises:
        ValueError: there is no such axis.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise OperandError(f"{function}: axis must be an integer, got {describe(axis)}.")
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{function}: axis {axis} does not exist in an array of {ndim} axes.")
    return axis + ndim if axis < 0 else axis


def normalize_axes(function: str, axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """One axis, several or (None) all, counted from the front.

    Raises:
        ValueError: an axis does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    axes = tuple(normalize_axis(function, one, ndim) for one in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{function}: axis {axis} names an axis twice.")
    return axes

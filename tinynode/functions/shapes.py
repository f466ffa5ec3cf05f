"""The same elements in another shape: reshape, permute, broadcast, join, cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Never

from tinynode.core.array_arguments import constant_beside, raw_of
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of, sum_array
from tinynode.errors import unknown_keywords
from tinynode.functions.attributes import Axes, Axis, Shape
from tinynode.functions.checked import checked_axes, checked_axis, checked_shape
from tinynode.functions.data_types import AsType
from tinynode.functions.operands import (
    as_operand,
    as_operand_list,
    as_shape,
    input_nodes,
    input_shape,
    normalize_axes,
    unchanged,
)
from tinynode.functions.shared_memory import shared_memory

__all__ = [
    "BroadcastTo",
    "PermuteDims",
    "Reshape",
    "SumTo",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "moveaxis",
    "permute_dims",
    "reshape",
    "squeeze",
    "sum_to",
]
__dir__ = __all__.copy  # for completion


class AxisNode(FunctionNode):
    """Base of functions along an ``axis``."""

    def __init__(self, axis: Axis) -> None:
        self.axis = checked_axis(self, axis)

    def row_axes(self) -> tuple[int, ...]:
        return (self.axis,)


class Reshape(FunctionNode):
    """y = the elements of x, in the same order, in another shape.

    x: (s) -> y: (shape).   dL/dx = dL/dy in the shape s
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, shape: Shape) -> None:
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).reshape(x, self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (reshaped(gy, input_shape(self)),)

    @staticmethod
    def put_back(setting: Shape, source: Variable, part: Variable) -> Variable:
        """The elements of a part in the shape of the source."""
        return reshaped(part, source.shape)


def reshape(x: Any, shape: int | Sequence[int]) -> Variable:
    """x in another shape; an entry of -1 is computed.

    x: (s) -> y: (shape), with the elements in the same order.   dL/dx = dL/dy in the shape of x

        >>> F.reshape(tn.asarray([1.0, 2.0, 3.0, 4.0]), (2, -1)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]

    Raises:
        ValueError: the number of elements differs.
    """
    source = as_operand("reshape", "x", x)
    return reshaped(source, _without_minus_one(source, as_shape("reshape", "shape", shape)))


def reshaped(x: Variable, shape: Shape) -> Variable:
    """``reshape`` inside of functions: without a check, since the elements fill the shape."""
    if x.shape == shape:
        return unchanged(x)
    result = Reshape(shape).apply((x,))[0]
    if shared_memory.is_watched:
        shared_memory.note(x, result, Reshape, shape)
    return result


def _without_minus_one(x: Variable, shape: Shape) -> Shape:
    """The shape with -1 replaced; refuses a shape with another number of elements."""
    if min(shape, default=0) >= 0 and math.prod(shape) == math.prod(x.shape):
        return shape
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known > 0 and x.size % known == 0:
        return tuple(x.size // known if n == -1 else n for n in shape)
    raise ValueError(
        f"reshape: x has shape {x.shape}, {x.size} elements, which do not fill {shape}. "
        "At most one entry may be -1."
    )


class PermuteDims(FunctionNode):
    """y = x with the axes in another order: axis i of y is axis axes[i] of x.

    x: (s) -> y: (s[axes[0]], s[axes[1]], ...).   dL/dx = dL/dy with the axes put back
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, axes: Axes) -> None:
        self.axes = checked_axes(self, axes)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).permute_dims(x, self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (self.put_back(self.axes, gy, gy),)

    @staticmethod
    def put_back(setting: Axes, source: Variable, part: Variable) -> Variable:
        """The part with the axes in the order of the source."""
        inverse = sorted(range(len(setting)), key=setting.__getitem__)
        return PermuteDims(tuple(inverse)).apply((part,))[0]


def permute_dims(x: Any, axes: Sequence[int]) -> Variable:
    """x with the axes in another order.

    y.shape[i] = x.shape[axes[i]].   x: (s) -> y: (s in another order).

        >>> F.permute_dims(tn.asarray(np.ones((2, 3, 4))), (2, 0, 1)).shape
        (4, 2, 3)

    Raises:
        ValueError: ``axes`` does not name each axis once.
    """
    source = as_operand("permute_dims", "x", x)
    given = as_shape("permute_dims", "axes", axes)
    ndim = source.ndim
    order = tuple([axis + ndim if axis < 0 else axis for axis in given])
    if sorted(order) != list(range(ndim)):
        raise ValueError(
            f"permute_dims: axes {given} must name each axis of x (shape {source.shape}) once."
        )
    if order == tuple(range(ndim)):
        return unchanged(source)
    result = PermuteDims(order).apply((source,))[0]
    if shared_memory.is_watched:
        shared_memory.note(source, result, PermuteDims, order)
    return result


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Variable:
    """x with axes moved to new places; the others keep the order.

    Raises:
        ValueError: an axis does not exist, is named twice, or the numbers of axes differ.
    """
    x = as_operand("moveaxis", "x", x)
    sources = normalize_axes("moveaxis", source, x.ndim, "source")
    places = normalize_axes("moveaxis", destination, x.ndim, "destination")
    if len(sources) != len(places):
        raise ValueError(f"moveaxis: {len(sources)} axes cannot go to {len(places)} places.")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


def expand_dims(x: Any, axis: int | Sequence[int] = 0, **unknown: Never) -> Variable:
    """x with new axes of length 1, at the places of the result.

    Raises:
        ValueError: a place lies outside the result, or is named twice.
    """
    if unknown:
        raise unknown_keywords("expand_dims", unknown)
    x = as_operand("expand_dims", "x", x)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = x.ndim + len(axes)
    places = normalize_axes("expand_dims", axes, ndim)
    lengths = iter(x.shape)
    return reshaped(x, tuple([1 if i in places else next(lengths) for i in range(ndim)]))


def squeeze(x: Any, axis: int | Sequence[int] | None = None, **unknown: Never) -> Variable:
    """x without axes of length 1: the given ones, or all of them.

    Raises:
        ValueError: an axis does not exist, or is longer than 1.
    """
    if unknown:
        raise unknown_keywords("squeeze", unknown)
    x = as_operand("squeeze", "x", x)
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if n == 1]
    axes = normalize_axes("squeeze", axis, x.ndim)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: axis {one} of x (shape {x.shape}) is not of length 1.")
    return reshaped(x, tuple([n for i, n in enumerate(x.shape) if i not in axes]))


class BroadcastTo(FunctionNode):
    """y = x repeated along new axes and along axes of length 1.

    x: (s) -> y: (shape).   dL/dx = sum_to(dL/dy, s)
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, shape: Shape) -> None:
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).broadcast_to(x, self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (unbroadcast(gy, self, 0),)


def broadcast_to(x: Any, shape: Sequence[int]) -> Variable:
    """x repeated to ``shape``.

    Raises:
        ValueError: the shape of x does not broadcast to ``shape``.
    """
    source = as_operand("broadcast_to", "x", x)
    wanted = as_shape("broadcast_to", "shape", shape)
    if wanted == source.shape:
        return unchanged(source)
    if not broadcasts_to(source.shape, wanted) or any(n < 0 for n in wanted):
        raise ValueError(
            f"broadcast_to: x has shape {source.shape}, which cannot become {wanted}. Axes line "
            "up from the right; only axes of length 1 can be repeated."
        )
    return BroadcastTo(wanted).apply((source,))[0]


def repeated(x: Variable, shape: Shape) -> Variable:
    """``broadcast_to`` in a gradient: without a check, since the shapes fit."""
    return x if x.shape == shape else BroadcastTo(shape).apply((x,))[0]


def broadcasts_to(shape: Shape, wanted: Shape) -> bool:
    """Whether an array of ``shape`` can be repeated to the shape ``wanted``."""
    if len(shape) > len(wanted):
        return False
    aligned = wanted[len(wanted) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, aligned, strict=True))


def broadcast_arrays(*xs: Any) -> tuple[Variable, ...]:
    """The arguments, each repeated to the common shape.

    xs: (s), (t), ... -> ys: (broadcast of s, t, ...) each.

        >>> x, y = F.broadcast_arrays(tn.asarray([[1.0], [2.0]]), tn.asarray([3.0, 4.0]))
        >>> x.tolist(), y.tolist()
        ([[1.0, 1.0], [2.0, 2.0]], [[3.0, 4.0], [3.0, 4.0]])

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    variables = as_operand_list("broadcast_arrays", "xs", xs)
    shape = common_shape("broadcast_arrays", *(x.shape for x in variables))
    return tuple(broadcast_to(x, shape) for x in variables)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape by broadcasting.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    return common_shape("broadcast_shapes", *shapes)


def common_shape(function: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The result of ``broadcast_shapes``, with the function's name for messages."""
    ndim = max((len(shape) for shape in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, start=ndim - len(shape)):
            if result[i] == 1:
                result[i] = n
            elif n not in (1, result[i]):
                raise ValueError(f"{function}: {shapes} do not broadcast together.")
    return tuple(result)


class SumTo(FunctionNode):
    """y = x summed over the axes repeated by a broadcast from ``shape``.

    x: (s) -> y: (shape).   dL/dx = broadcast_to(dL/dy, s)
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, shape: Shape) -> None:
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        y = sum_array(x, self.axes_of(x.shape), keepdims=True, dtype=x.dtype)
        return (namespace_of(x).reshape(y, self.shape),)

    def axes_of(self, shape: Shape) -> tuple[int, ...]:
        """The axes of an input shape that are summed."""
        new = len(shape) - len(self.shape)
        repeated = [new + i for i, n in enumerate(self.shape) if n == 1 and shape[new + i] != 1]
        return (*range(new), *repeated)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (repeated(gy, input_shape(self)),)


def sum_to(x: Any, shape: Sequence[int]) -> Variable:
    """x summed to ``shape``: the counterpart of ``broadcast_to``, for gradients of broadcasts.

    Raises:
        ValueError: ``shape`` does not broadcast to the shape of x.
    """
    source = as_operand("sum_to", "x", x)
    wanted = as_shape("sum_to", "shape", shape)
    if wanted == source.shape:
        return unchanged(source)
    if not broadcasts_to(wanted, source.shape):
        raise ValueError(
            f"sum_to: x has shape {source.shape}, which is no broadcast of {wanted}. Give the "
            "shape that x had before it was broadcast."
        )
    return SumTo(wanted).apply((source,))[0]


def unbroadcast(gx: Variable, function: FunctionNode, i: int) -> Variable:
    """A gradient brought back to input ``i``: summed over broadcast axes, and cast."""
    node = input_nodes(function)[i]
    if gx.shape != node.shape:
        gx = SumTo(node.shape).apply((gx,))[0]
    if gx.dtype != node.dtype:
        gx = AsType(node.dtype).apply((gx,))[0]
    return gx


def full_beside(example: Variable, shape: Shape, value: float) -> Variable:
    """A constant of the example's dtype and device, outside the graph; an array for an array."""
    array = raw_of(example)
    full = namespace_of(array).full(shape, value, dtype=array.dtype, device=array.device)
    return constant_beside(example, full)


def zeros_beside(example: Variable, shape: Shape) -> Variable:
    """Zeros of the example's dtype and device, outside the graph."""
    return full_beside(example, shape, 0.0)

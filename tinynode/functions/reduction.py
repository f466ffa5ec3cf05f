"""Functions that reduce axes: sum, mean, max, min."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.arithmetic import divide
from tinynode.functions.casting import astype
from tinynode.functions.comparison import equal
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.selection import where
from tinynode.functions.shaping import broadcast_to, broadcasts_to, normalize_axes, reshape
from tinynode.type_check import expect, is_floating

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple

Axis = int | Sequence[int] | None


class Reduction(FunctionNode):
    """Base of functions that reduce ``axes``: kept with length 1 if ``keepdims``, else dropped."""

    def __init__(self, axes: tuple[int, ...], keepdims: bool) -> None:
        self.axes = axes
        self.keepdims = keepdims

    def _spread(self, y: Variable) -> Variable:
        """Something of the output's shape, repeated along the reduced axes to the input's."""
        assert self.inputs is not None and self.inputs[0].shape is not None
        shape = self.inputs[0].shape
        kept = tuple(1 if i in self.axes else n for i, n in enumerate(shape))
        return broadcast_to(reshape(y, kept), shape)


class Sum(Reduction):
    """y = the sum of x over axes.

    x: (s) -> y: (s without the axes, or with 1 in their place).   dL/dx = dL/dy, repeated
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).sum(x, axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert gy is not None
        return (self._spread(gy),)


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Variable:
    """The sum over one axis, several, or all.

    Raises:
        ValueError: an axis does not exist.
    """
    x = as_operand("sum", "x", x)
    return Sum(normalize_axes("sum", axis, x.ndim), keepdims).apply((x,))[0]


class Mean(Reduction):
    """y = the arithmetic mean of x over axes; n elements make one of y.

    x: (s), floating -> y: (s without the axes, or with 1 in their place).
    dL/dx = dL/dy / n, repeated
    """

    input_names = ("x",)
    type_hint = "cast x to a floating dtype first."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]))

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).mean(x, axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert gy is not None and self.inputs is not None and self.inputs[0].shape is not None
        n = math.prod(self.inputs[0].shape[axis] for axis in self.axes)
        return (self._spread(gy * (1.0 / n) if n else gy),)


def mean(x: Any, axis: Axis = None, *, weights: Any = None, keepdims: bool = False) -> Variable:
    """The mean over one axis, several, or all; with weights, sum(w * x) / sum(w).

    Args:
        x: floating.
        axis: one axis, several, or None for all.
        weights: they broadcast to the shape of x.
        keepdims: keep the reduced axes with length 1.

    Raises:
        ValueError: an axis does not exist, or the weights do not broadcast to x.
        InvalidType: x is not floating.
    """
    x = as_operand("mean", "x", x, weights)
    axes = normalize_axes("mean", axis, x.ndim)
    if weights is None:
        return Mean(axes, keepdims).apply((x,))[0]
    x, weights = as_operands("mean", x, weights, names=("x", "weights"))
    if not broadcasts_to(weights.shape, x.shape):
        raise ValueError(
            f"mean: weights have shape {weights.shape}, which does not broadcast to that of x, "
            f"{x.shape}. Reshape or index the weights."
        )
    spread = broadcast_to(weights, x.shape)
    return divide(sum(x * spread, axes, keepdims), sum(spread, axes, keepdims))


class _Extremum(Reduction):
    """Base of max and min. Ties share the gradient evenly.

    dL/dx = dL/dy / k where x is one of k elements equal to y, else 0
    """

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        assert gy is not None
        winners = equal(x, self._spread(y))
        number = sum(astype(winners, x.dtype), self.axes)
        share = gy / reshape(number, gy.shape)
        return (where(winners, self._spread(share), 0),)


class Max(_Extremum):
    """y = the largest element of x over axes.

    x: (s) -> y: (s without the axes, or with 1 in their place).
    dL/dx = dL/dy / k where x is one of k elements equal to y, else 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).max(x, axis=self.axes, keepdims=self.keepdims),)


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Variable:
    """The largest element over one axis, several, or all; ties share the gradient evenly.

    Raises:
        ValueError: an axis does not exist, or has no elements.
    """
    x = as_operand("max", "x", x)
    axes = normalize_axes("max", axis, x.ndim)
    require_elements("max", x, axes)
    return Max(axes, keepdims).apply((x,))[0]


class Min(_Extremum):
    """y = the smallest element of x over axes.

    x: (s) -> y: (s without the axes, or with 1 in their place).
    dL/dx = dL/dy / k where x is one of k elements equal to y, else 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).min(x, axis=self.axes, keepdims=self.keepdims),)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Variable:
    """The smallest element over one axis, several, or all; ties share the gradient evenly.

    Raises:
        ValueError: an axis does not exist, or has no elements.
    """
    x = as_operand("min", "x", x)
    axes = normalize_axes("min", axis, x.ndim)
    require_elements("min", x, axes)
    return Min(axes, keepdims).apply((x,))[0]


def require_elements(function: str, x: Variable, axes: tuple[int, ...]) -> None:
    """Raises ValueError if one of the axes has no elements."""
    for axis in axes:
        if x.shape[axis] == 0:
            raise ValueError(
                f"{function}: x has shape {x.shape}: axis {axis} is empty, so there is none."
            )

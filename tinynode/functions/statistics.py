"""Products, variances, running sums and products."""

from __future__ import annotations

import math
from typing import Any

from tinynode.backend import Array, Arrays, namespace_of
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.elementwise import sqrt
from tinynode.functions.error_function import as_floating
from tinynode.functions.operands import as_operand
from tinynode.functions.rearranging import flip
from tinynode.functions.reduction import Axis, Reduction, mean, sum
from tinynode.functions.shaping import (
    concat,
    normalize_axes,
    normalize_axis,
    permute_dims,
    reshape,
    zeros_beside,
)
from tinynode.variable import Variable


class Prod(Reduction):
    """y = the product of x over axes.

    x: (s) -> y: (s without the axes, or with 1 in their place).
    dL/dx_i = dL/dy * (the product of the other elements): right where elements are 0, too
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).prod(x, axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (self._spread(gy) * _product_of_others(x, self.axes),)


def _product_of_others(x: Variable, axes: tuple[int, ...]) -> Variable:
    """For each element the product of the others over axes: those before times those after."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    order = rest + axes
    moved = permute_dims(x, order)
    length = math.prod(x.shape[axis] for axis in axes)
    rows = reshape(moved, (*(x.shape[i] for i in rest), length))
    others = _before(rows) * flip(_before(flip(rows, axis=-1)), axis=-1)
    inverse = sorted(range(x.ndim), key=order.__getitem__)
    return permute_dims(reshape(others, moved.shape), inverse)


def _before(x: Variable) -> Variable:
    """The product of the elements before each one along the last axis; 1 for the first."""
    if x.shape[-1] == 0:
        return x
    axis = x.ndim - 1
    return cumulative_prod(concat([_first(x, axis, 1), x[..., :-1]], axis=axis), axis=axis)


def prod(x: Any, axis: Axis = None, keepdims: bool = False) -> Variable:
    """The product over one axis, several, or all.

    Raises:
        ValueError: an axis does not exist.
    """
    x = as_operand("prod", "x", x)
    return Prod(normalize_axes("prod", axis, x.ndim), keepdims).apply((x,))[0]


def var(x: Any, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Variable:
    """The variance over one axis, several, or all: sum((x - mean)^2) / (n - correction).

    dL/dx = dL/dy * 2 (x - mean) / (n - correction).

    Args:
        x: floating.
        axis: one axis, several, or None for all.
        correction: 0 for the population's variance, 1 for the sample's.
        keepdims: keep the reduced axes with length 1.

    Raises:
        OperandError: x is not floating.
        ValueError: an axis does not exist, or n is 0 or not above ``correction``.
    """
    return _variance("var", x, axis, correction, keepdims)


def _variance(function: str, x: Any, axis: Axis, correction: float, keepdims: bool) -> Variable:
    x = as_floating(function, "x", x)
    axes = normalize_axes(function, axis, x.ndim)
    n = math.prod(x.shape[i] for i in axes)
    if n == 0 or n <= correction:
        raise ValueError(
            f"{function}: {n} elements of x (shape {x.shape}) make one of y, but correction is "
            f"{correction}: give more elements or a smaller correction."
        )
    deviation = x - mean(x, axes, keepdims=True)
    return sum(deviation * deviation, axes, keepdims) / float(n - correction)


def std(x: Any, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Variable:
    """The standard deviation over one axis, several, or all: the square root of ``var``.

    dL/dx = dL/dy * (x - mean) / (y (n - correction)): not finite where all elements are equal.

    Raises:
        OperandError: x is not floating.
        ValueError: an axis does not exist, or n is 0 or not above ``correction``.
    """
    return sqrt(_variance("std", x, axis, correction, keepdims))


class CumulativeSum(FunctionNode):
    """y_i = x_0 + ... + x_i along an axis.

    x: (s) -> y: (s).   dL/dx_i = dL/dy_i + dL/dy_(i+1) + ...
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).cumulative_sum(x, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        backwards = cumulative_sum(flip(gy, axis=self.axis), axis=self.axis)
        return (flip(backwards, axis=self.axis),)


def cumulative_sum(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Variable:
    """The running sum along an axis; it may be left out for a one-dimensional x.

    Args:
        x: a Variable or an array.
        axis: the axis.
        include_initial: begin with a 0, so the result is one longer.

    Raises:
        ValueError: the axis does not exist, or is left out where x has not one axis.
    """
    x = as_operand("cumulative_sum", "x", x)
    axis = _running_axis("cumulative_sum", x, axis)
    y = CumulativeSum(axis).apply((x,))[0]
    return concat([_first(y, axis, 0), y], axis=axis) if include_initial else y


def _running_axis(function: str, x: Variable, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{function}: x has shape {x.shape}, so the axis must be given.")
    return normalize_axis(function, 0 if axis is None else axis, x.ndim)


def _first(x: Variable, axis: int, value: int) -> Variable:
    """One element along the axis, outside the graph."""
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    zeros = zeros_beside(x, shape)
    return zeros + value if value else zeros


class CumulativeProd(FunctionNode):
    """y_i = x_0 * ... * x_i along an axis.

    x: (s) -> y: (s).   With y_(-1) = 1 and t the linear scan t_i = dL/dy_i + x_(i+1) t_(i+1):
    dL/dx_i = t_i * y_(i-1): right where elements are 0, too
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).cumulative_prod(x, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        assert gy is not None
        if x.shape[self.axis] == 0:
            return (gy,)
        all_but_first = (slice(None),) * self.axis + (slice(1, None),)
        all_but_last = (slice(None),) * self.axis + (slice(None, -1),)
        factors = concat([x[all_but_first], _first(x, self.axis, 0)], axis=self.axis)
        scan = LinearScan(self.axis).apply(
            (flip(factors, axis=self.axis), flip(gy, axis=self.axis))
        )
        before = concat([_first(x, self.axis, 1), y[all_but_last]], axis=self.axis)
        return (flip(scan[0], axis=self.axis) * before,)


def cumulative_prod(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Variable:
    """The running product along an axis; it may be left out for a one-dimensional x.

    Args:
        x: a Variable or an array.
        axis: the axis.
        include_initial: begin with a 1, so the result is one longer.

    Raises:
        ValueError: the axis does not exist, or is left out where x has not one axis.
    """
    x = as_operand("cumulative_prod", "x", x)
    axis = _running_axis("cumulative_prod", x, axis)
    y = CumulativeProd(axis).apply((x,))[0]
    return concat([_first(y, axis, 1), y], axis=axis) if include_initial else y


class LinearScan(FunctionNode):
    """s_0 = b_0, s_i = b_i + a_i s_(i-1) along an axis: what the gradient of a running product is.

    a: (s), b: (s) -> s: (s).   With g = dL/ds and t_i = g_i + a_(i+1) t_(i+1), a scan from behind:
    dL/db = t   dL/da_i = t_i * s_(i-1), and 0 for the first
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        a, b = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        state = self._slice(b, 0)
        states = [state]
        for i in range(1, b.shape[self.axis]):
            state = self._slice(b, i) + self._slice(a, i) * state
            states.append(state)
        return (namespace_of(a).concat(states, axis=self.axis),)

    def _slice(self, x: Array, i: int) -> Array:
        return x[(slice(None),) * self.axis + (slice(i, i + 1), ...)]

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gs,) = grad_outputs
        (a,) = self.get_retained_inputs()
        (s,) = self.get_retained_outputs()
        assert gs is not None
        axis = self.axis
        all_but_first = (slice(None),) * axis + (slice(1, None),)
        all_but_last = (slice(None),) * axis + (slice(None, -1),)
        factors = concat([a[all_but_first], _first(a, axis, 0)], axis=axis)
        scan = LinearScan(axis).apply((flip(factors, axis=axis), flip(gs, axis=axis)))
        t = flip(scan[0], axis=axis)
        before = concat([_first(s, axis, 0), s[all_but_last]], axis=axis)
        return t * before, t

"""The length of vectors, in any norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.functions.arithmetic import abs, pow
from tinynode.functions.casting import astype, narrowed, widened
from tinynode.functions.comparison import equal, not_equal
from tinynode.functions.operands import as_floating
from tinynode.functions.reduction import max as max_
from tinynode.functions.reduction import min as min_
from tinynode.functions.reduction import sum as sum_
from tinynode.functions.selection import where
from tinynode.functions.shaping import normalize_axes


def vector_norm(
    x: Any,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Variable:
    """The p-norm (sum |x_i|^p)^(1/p), over one axis, several, or all; its gradient at 0 is 0.

    Args:
        x: floating.
        axis: one axis, several, or None for all.
        keepdims: keep the reduced axes with length 1.
        ord: p. ``inf`` is the largest |x_i|, ``-inf`` the smallest, 0 the number that is not 0.

    Raises:
        OperandError: x is not floating, or ``ord`` is not a number.
        ValueError: an axis does not exist.
    """
    x = as_floating("vector_norm", "x", x)
    if not isinstance(ord, int | float | numpy.integer | numpy.floating):
        raise OperandError(f"vector_norm: ord must be a number, got {describe(ord)}.")
    axes = normalize_axes("vector_norm", axis, x.ndim)
    if ord == math.inf:
        return max_(abs(x), axes, keepdims)
    if ord == -math.inf:
        return min_(abs(x), axes, keepdims)
    if ord == 0:
        return sum_(astype(not_equal(x, 0), x.dtype), axes, keepdims)
    if ord == 1:
        return sum_(abs(x), axes, keepdims)
    wide = widened(x)  # the squares of float16 overflow soon
    if ord == 2:
        norm = SafeSqrt().apply((sum_(wide * wide, axes, keepdims),))[0]
    else:
        norm = _root(sum_(_power_of_abs(wide, ord), axes, keepdims), ord)
    return narrowed(norm, x)


def _power_of_abs(x: Variable, p: float) -> Variable:
    """|x|^p, with gradient 0 where x is 0 and p is positive."""
    if p < 0:
        return pow(abs(x), p)
    zero = equal(x, 0)
    return where(zero, 0, pow(abs(where(zero, 1, x)), p))


def _root(total: Variable, p: float) -> Variable:
    """total^(1/p), with gradient 0 where the total is 0."""
    zero = equal(total, 0)
    return where(zero, 0, pow(where(zero, 1, total), 1.0 / p))


class SafeSqrt(FunctionNode):
    """y = sqrt(x), with gradient 0 at x = 0: the length of a vector, from its sum of squares.

    x: (s), not negative -> y: (s).   dL/dx = dL/dy / (2 y), and 0 where y = 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).sqrt(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (gy * SafeReciprocal().apply((y,))[0] * 0.5,)


class SafeReciprocal(FunctionNode):
    """y = 1 / x, and 0 where x = 0.   x: (s) -> y: (s).   dL/dx = -dL/dy * y^2"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        zero = namespace_of(x).astype(x == 0, x.dtype)
        return ((1.0 - zero) / (x + zero),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (-(gy * y * y),)

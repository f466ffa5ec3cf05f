"""Comparisons, tests of elements, maximum, minimum and clip, elementwise.

The result of a comparison or of a test is bool, without a gradient.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.arithmetic import BroadcastingNode, masked
from tinynode.functions.checked import checked_float
from tinynode.functions.operands import (
    as_floating,
    as_operand,
    as_operands,
    first_variable,
)
from tinynode.functions.shapes import unbroadcast

__all__ = [
    "Clip",
    "ClipGrad",
    "Equal",
    "ExtremeGrad",
    "Greater",
    "GreaterEqual",
    "IsFinite",
    "IsInf",
    "IsNaN",
    "Less",
    "LessEqual",
    "Maximum",
    "Minimum",
    "NotEqual",
    "SignBit",
    "clip",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "not_equal",
    "signbit",
]
__dir__ = __all__.copy  # for completion


class Equal(BroadcastingNode):
    """z = (x == y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).equal(x, y),)


def equal(x: Any, y: Any) -> Variable:
    """Whether x == y, elementwise."""
    return Equal().apply((x, y))[0]


class NotEqual(BroadcastingNode):
    """z = (x != y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).not_equal(x, y),)


def not_equal(x: Any, y: Any) -> Variable:
    """Whether x != y, elementwise."""
    return NotEqual().apply((x, y))[0]


class Less(BroadcastingNode):
    """z = (x < y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less(x, y),)


def less(x: Any, y: Any) -> Variable:
    """Whether x < y, elementwise."""
    return Less().apply((x, y))[0]


class LessEqual(BroadcastingNode):
    """z = (x <= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less_equal(x, y),)


def less_equal(x: Any, y: Any) -> Variable:
    """Whether x <= y, elementwise."""
    return LessEqual().apply((x, y))[0]


class Greater(BroadcastingNode):
    """z = (x > y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater(x, y),)


def greater(x: Any, y: Any) -> Variable:
    """Whether x > y, elementwise."""
    return Greater().apply((x, y))[0]


class GreaterEqual(BroadcastingNode):
    """z = (x >= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater_equal(x, y),)


def greater_equal(x: Any, y: Any) -> Variable:
    """Whether x >= y, elementwise."""
    return GreaterEqual().apply((x, y))[0]


class IsFinite(FunctionNode):
    """y = x is neither infinite nor NaN.   x: (s) -> y: (s), bool. No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).isfinite(x),)


def isfinite(x: Any) -> Variable:
    """Whether x is neither infinite nor NaN, elementwise."""
    return IsFinite().apply((as_operand("isfinite", "x", x),))[0]


class IsInf(FunctionNode):
    """y = x is infinite, of either sign.   x: (s) -> y: (s), bool. No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).isinf(x),)


def isinf(x: Any) -> Variable:
    """Whether x is infinite, elementwise."""
    return IsInf().apply((as_operand("isinf", "x", x),))[0]


class IsNaN(FunctionNode):
    """y = x is NaN.   x: (s) -> y: (s), bool. No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).isnan(x),)


def isnan(x: Any) -> Variable:
    """Whether x is NaN, elementwise."""
    return IsNaN().apply((as_operand("isnan", "x", x),))[0]


class SignBit(FunctionNode):
    """y = x has a minus sign, for -0.0 too.   x: (s) -> y: (s), bool. No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).signbit(x),)


def signbit(x: Any) -> Variable:
    """Whether x has a minus sign, elementwise; true of -0.0. For real floating x."""
    return SignBit().apply((as_floating("signbit", "x", x),))[0]


class _Extreme(BroadcastingNode):
    """Base of maximum and minimum."""

    input_names = ("x1", "x2")

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(ExtremeGrad().apply((x, y, z, gz))[0], self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(ExtremeGrad().apply((y, x, z, gz))[0], self, 1)
        return gx, gy


class Maximum(_Extreme):
    """z = the larger of x and y, elementwise, with broadcasting; NaN if x or y is NaN.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g where x > y, g/2 where x = y, else 0, s)
    dL/dy = sum_to(g where y > x, g/2 where x = y, else 0, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return (namespace_of(x).maximum(x, y),)


def maximum(x1: Any, x2: Any) -> Variable:
    """The larger of two, elementwise; ties share the gradient evenly."""
    return Maximum().apply(as_operands("maximum", x1, x2, ("x1", "x2")))[0]


class Minimum(_Extreme):
    """z = the smaller of x and y, elementwise, with broadcasting; NaN if x or y is NaN.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g where x < y, g/2 where x = y, else 0, s)
    dL/dy = sum_to(g where y < x, g/2 where x = y, else 0, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return (namespace_of(x).minimum(x, y),)


def minimum(x1: Any, x2: Any) -> Variable:
    """The smaller of two, elementwise; ties share the gradient evenly."""
    return Minimum().apply(as_operands("minimum", x1, x2, ("x1", "x2")))[0]


class ExtremeGrad(FunctionNode):
    """gx = g where x was chosen, g/2 where x = y, else 0: the gradient of maximum and minimum.

    x, y: shapes that broadcast to (s), z: (s) the chosen, g: (s) -> gx: (s).
    dL/dg is the same function of dL/dgx; dL/dx, dL/dy and dL/dz are 0
    """

    input_counts = (4,)
    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y, z, g = inputs
        xp = namespace_of(z)
        self.retain_inputs((0, 1, 2))
        tied = xp.astype(x == y, g.dtype)
        return (masked(g, x == z) * (1.0 - tied * 0.5),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        x, y, z = self.get_retained_inputs()
        return None, None, None, ExtremeGrad().apply((x, y, z, ggx))[0]


class Clip(FunctionNode):
    """y = low where x < low, high where x > high, else x; None is no bound.

    x: (s) -> y: (s).   dL/dx = dL/dy where low <= x <= high, else 0
    """

    is_elementwise = True

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = checked_float(self, "low", low)
        self.high = checked_float(self, "high", high)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        low, high = self.low, self.high
        if low is not None and high is not None and low > high:
            low = high  # the upper bound wins; the standard leaves it open
        return (namespace_of(x).clip(x, min=low, max=high),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return ClipGrad(self.low, self.high).apply((x, gy))


class ClipGrad(FunctionNode):
    """gx = gy where low <= x <= high, else 0: the gradient of ``Clip``.

    x: (s), gy: (s) -> gx: (s).   dL/dx = 0   dL/dgy = dL/dgx where low <= x <= high, else 0
    """

    input_counts = (2,)
    is_elementwise = True

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = checked_float(self, "low", low)
        self.high = checked_float(self, "high", high)

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        inside = xp.ones_like(x, dtype=xp.bool)
        if self.low is not None:
            inside = inside & (x >= self.low)
        if self.high is not None:
            inside = inside & (x <= self.high)
        return (masked(gy, inside),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return None, ClipGrad(self.low, self.high).apply((x, ggx))[0]


def clip(x: Any, min: Any = None, max: Any = None) -> Variable:
    """x with the elements held between two bounds.

    At a bound the gradient is 1 if the bound is a number, as in PyTorch. Variables as bounds
    receive the gradient where x lies beyond them; x and bound share evenly at ties.

    Args:
        x: a Variable or an array.
        min: a number, an array, a Variable, or None for no lower bound.
        max: the upper bound, or None for none. It wins where the bounds cross.

    Raises:
        OperandError: a bound has another type.
    """
    x = as_operand("clip", "x", x, first_variable(min, max))
    if _is_constant(min) and _is_constant(max):
        return Clip(_number(min), _number(max)).apply((x,))[0]
    bounded = x if min is None else maximum(*as_operands("clip", x, min, ("x", "min")))
    if max is None:
        return bounded
    return minimum(*as_operands("clip", bounded, max, ("x", "max")))


def _is_constant(bound: Any) -> bool:
    return bound is None or isinstance(bound, int | float | numpy.integer | numpy.floating)


def _number(bound: Any) -> Any:
    """A bound as a Python number, with a weak dtype beside x, as in arithmetic."""
    return bound.item() if isinstance(bound, numpy.generic) else bound

"""Exponentials, logarithms and powers beyond exp, log, sqrt and pow."""

from __future__ import annotations

import math
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.activation import sigmoid
from tinynode.functions.broadcasting import BroadcastingNode, unbroadcast
from tinynode.functions.operands import as_floating, as_operand, as_operands
from tinynode.functions.selection import where
from tinynode.functions.zero_safe import zero_safe_multiply


class Expm1(FunctionNode):
    """y = e^x - 1.   x: (s) -> y: (s).   dL/dx = dL/dy * (y + 1)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).expm1(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (gy * (y + 1.0),)


def expm1(x: Any) -> Variable:
    """e^x - 1, elementwise, precise near 0."""
    return Expm1().apply((as_operand("expm1", "x", x),))[0]


class Log1p(FunctionNode):
    """y = ln(1 + x).   x: (s) -> y: (s).   dL/dx = dL/dy / (1 + x)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log1p(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (zero_safe_multiply(gy, 1.0 / (x + 1.0)),)


def log1p(x: Any) -> Variable:
    """ln(1 + x), elementwise, precise near 0; -inf at -1, NaN below."""
    return Log1p().apply((as_operand("log1p", "x", x),))[0]


class Log2(FunctionNode):
    """y = the logarithm of x to base 2.   x: (s) -> y: (s).   dL/dx = dL/dy / (x ln 2)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log2(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (zero_safe_multiply(gy, (1.0 / math.log(2.0)) / x),)


def log2(x: Any) -> Variable:
    """The logarithm to base 2, elementwise; -inf at 0, NaN below."""
    return Log2().apply((as_operand("log2", "x", x),))[0]


class Log10(FunctionNode):
    """y = the logarithm of x to base 10.   x: (s) -> y: (s).   dL/dx = dL/dy / (x ln 10)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log10(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (zero_safe_multiply(gy, (1.0 / math.log(10.0)) / x),)


def log10(x: Any) -> Variable:
    """The logarithm to base 10, elementwise; -inf at 0, NaN below."""
    return Log10().apply((as_operand("log10", "x", x),))[0]


class Square(FunctionNode):
    """y = x^2.   x: (s) -> y: (s).   dL/dx = dL/dy * 2 x"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).square(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (gy * (x * 2.0),)


def square(x: Any) -> Variable:
    """x^2, elementwise."""
    return Square().apply((as_operand("square", "x", x),))[0]


class Reciprocal(FunctionNode):
    """y = 1 / x.   x: (s) -> y: (s).   dL/dx = -dL/dy * y^2"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).reciprocal(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (-zero_safe_multiply(zero_safe_multiply(gy, y), y),)


def reciprocal(x: Any) -> Variable:
    """1 / x, elementwise; infinite at 0.

    Raises:
        OperandError: x is not floating.
    """
    return Reciprocal().apply((as_floating("reciprocal", "x", x),))[0]


class LogAddExp(BroadcastingNode):
    """z = ln(e^x + e^y), without overflow.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz, p = 1 / (1 + e^(y-x)):   dL/dx = sum_to(g p, s)   dL/dy = sum_to(g (1 - p), t)
    Where x and y are the same infinity, p = 1/2.
    """

    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        xp = namespace_of(x)
        larger = xp.maximum(x, y)
        limit = xp.asarray(xp.finfo(larger.dtype).max, dtype=larger.dtype, device=larger.device)
        # held within the finite numbers, because inf - inf is NaN
        difference = xp.minimum(x, y) - xp.maximum(xp.minimum(larger, limit), -limit)
        return (larger + xp.log1p(xp.exp(difference)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        assert gz is not None
        same = SameInfinity().apply((x, y))[0]
        difference = where(same, 0, x) - where(same, 0, y)
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(gz * sigmoid(difference), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(gz * sigmoid(-difference), self, 1)
        return gx, gy


class SameInfinity(BroadcastingNode):
    """z = whether x and y are one and the same infinity, so that x - y is NaN.

    x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return ((x == y) & namespace_of(x).isinf(x),)


def logaddexp(x1: Any, x2: Any) -> Variable:
    """ln(e^x1 + e^x2), elementwise, without overflow.

    Raises:
        OperandError: x1 or x2 is not floating.
    """
    x1, x2 = as_operands("logaddexp", x1, x2, ("x1", "x2"))
    return LogAddExp().apply(
        (as_floating("logaddexp", "x1", x1), as_floating("logaddexp", "x2", x2))
    )[0]

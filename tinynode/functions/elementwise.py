"""Functions of one variable, elementwise."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.operands import as_operand
from tinynode.functions.zero_safe import zero_safe_multiply


class Exp(FunctionNode):
    """y = e^x.   x: (s) -> y: (s).   dL/dx = dL/dy * y"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).exp(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (gy * y,)


def exp(x: Any) -> Variable:
    """e^x, elementwise."""
    return Exp().apply((as_operand("exp", "x", x),))[0]


class Log(FunctionNode):
    """y = ln x.   x: (s) -> y: (s).   dL/dx = dL/dy / x, and 0 where dL/dy = 0 and x = 0"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (zero_safe_multiply(gy, 1.0 / x),)


def log(x: Any) -> Variable:
    """The natural logarithm, elementwise; -inf at 0, NaN below."""
    return Log().apply((as_operand("log", "x", x),))[0]


class Sqrt(FunctionNode):
    """y = sqrt(x).   x: (s) -> y: (s).   dL/dx = dL/dy / (2 y), and 0 where dL/dy = 0 and y = 0"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).sqrt(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (zero_safe_multiply(gy, 0.5 / y),)


def sqrt(x: Any) -> Variable:
    """The square root, elementwise; NaN below 0, infinite gradient at 0."""
    return Sqrt().apply((as_operand("sqrt", "x", x),))[0]


class Sin(FunctionNode):
    """y = sin x.   x: (s) in radians -> y: (s).   dL/dx = dL/dy * cos x"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).sin(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (gy * cos(x),)


def sin(x: Any) -> Variable:
    """The sine of x in radians, elementwise."""
    return Sin().apply((as_operand("sin", "x", x),))[0]


class Cos(FunctionNode):
    """y = cos x.   x: (s) in radians -> y: (s).   dL/dx = -dL/dy * sin x"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).cos(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (-gy * sin(x),)


def cos(x: Any) -> Variable:
    """The cosine of x in radians, elementwise."""
    return Cos().apply((as_operand("cos", "x", x),))[0]


class Tanh(FunctionNode):
    """y = tanh x.   x: (s) -> y: (s).   dL/dx = dL/dy * (1 - y^2)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).tanh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (gy * (1.0 - y * y),)


def tanh(x: Any) -> Variable:
    """The hyperbolic tangent, elementwise."""
    return Tanh().apply((as_operand("tanh", "x", x),))[0]


class Sign(FunctionNode):
    """y = -1, 0 or 1 as x is below, at or above 0.   x: (s) -> y: (s). It has no gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).sign(x),)


def sign(x: Any) -> Variable:
    """-1, 0 or 1, elementwise."""
    return Sign().apply((as_operand("sign", "x", x),))[0]

"""Trigonometric and hyperbolic functions with inverses; angles are in radians."""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.functions import guards
from tinynode.functions.arithmetic import BroadcastingNode, zero_safe_divide, zero_safe_multiply
from tinynode.functions.exponential import in_blocks
from tinynode.functions.operands import as_operand, real_operands
from tinynode.functions.shapes import unbroadcast

__all__ = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "Cos",
    "Cosh",
    "Hypot",
    "Sin",
    "Sinh",
    "Tan",
    "Tanh",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "hypot",
    "sin",
    "sinh",
    "tan",
    "tanh",
]
__dir__ = __all__.copy  # for completion


class Sin(FunctionNode):
    """y = sin x.   x: (s) in radians -> y: (s).   dL/dx = dL/dy * cos x"""

    is_elementwise = True
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).sin(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * cos(x),)


def sin(x: Any) -> Variable:
    """The sine of x in radians, elementwise.

    y = sin(x).   x: (s) -> y: (s).   dL/dx = dL/dy * cos(x)

        >>> [round(y, 4) for y in F.sin(tn.asarray([0.0, 1.0])).tolist()]
        [0.0, 0.8415]
    """
    return Sin().apply((as_operand("sin", "x", x),))[0]


class Cos(FunctionNode):
    """y = cos x.   x: (s) in radians -> y: (s).   dL/dx = -dL/dy * sin x"""

    is_elementwise = True
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).cos(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (-gy * sin(x),)


def cos(x: Any) -> Variable:
    """The cosine of x in radians, elementwise.

    y = cos(x).   x: (s) -> y: (s).   dL/dx = -dL/dy * sin(x)

        >>> [round(y, 4) for y in F.cos(tn.asarray([0.0, 1.0])).tolist()]
        [1.0, 0.5403]
    """
    return Cos().apply((as_operand("cos", "x", x),))[0]


class Tanh(FunctionNode):
    """y = tanh x.   x: (s) -> y: (s).   dL/dx = dL/dy / cosh(x)^2"""

    is_elementwise = True
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).tanh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return TanhGrad().apply((x, gy))


class TanhGrad(FunctionNode):
    """gx = gy / cosh(x)^2: the gradient of ``Tanh``. The usual 1 - tanh(x)^2 cancels near 1.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = -2 tanh(x) * (the same function of h * gy)
    """

    input_counts = (2,)
    is_elementwise = True
    wide = True
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        return (in_blocks(_tanh_gradient, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = ggy = None
        if 0 in target_input_indexes:
            gx = TanhGrad().apply((x, h * gy))[0] * tanh(x) * -2.0
        if 1 in target_input_indexes:
            ggy = TanhGrad().apply((x, h))[0]
        return gx, ggy


def _tanh_gradient(x: Array, gy: Array) -> Array:
    with numpy.errstate(over="ignore"):  # 1 / inf is right: the slope is 0 there
        slopes = 1.0 / namespace_of(x).cosh(x)
    slopes *= slopes
    return slopes * gy


def tanh(x: Any) -> Variable:
    """The hyperbolic tangent, elementwise.

    y = tanh(x).   x: (s) -> y: (s).   dL/dx = dL/dy * (1 - y^2)

        >>> F.tanh(tn.asarray([0.0, 100.0])).tolist()
        [0.0, 1.0]
    """
    return Tanh().apply((as_operand("tanh", "x", x),))[0]


class Tan(FunctionNode):
    """y = tan x.   x: (s) -> y: (s).   dL/dx = dL/dy * (1 + y^2)"""

    is_elementwise = True
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).tan(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * (y * y + 1.0),)


def tan(x: Any) -> Variable:
    """The tangent of x in radians, elementwise."""
    return Tan().apply((as_operand("tan", "x", x),))[0]


class CircleRoot(FunctionNode):
    """y = sqrt(1 - x^2).   x: (s) -> y: (s).   dL/dx = -dL/dy * x / y

    The derivative of (1 - x) (1 + x) by the product rule cancels near 0.
    """

    is_elementwise = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).sqrt((1.0 - x) * (1.0 + x)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        return (zero_safe_divide(-gy * x, y),)


class HyperbolaRoot(FunctionNode):
    """y = sqrt(x^2 - 1) without overflow.   x: (s) -> y: (s).   dL/dx = dL/dy * x / y"""

    is_elementwise = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (xp.sqrt(x - 1.0) * xp.sqrt(x + 1.0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        return (zero_safe_multiply(gy, x / y),)


class Asin(FunctionNode):
    """y = arcsin x.   x: (s) -> y: (s).   dL/dx = dL/dy / sqrt(1 - x^2)"""

    is_elementwise = True
    guard = guards.EDGE.format("asin", "-1 + eps", "1 - eps")

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).asin(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy, CircleRoot().apply((x,))[0]),)


def asin(x: Any) -> Variable:
    """The inverse sine in radians, elementwise; NaN outside -1 to 1, infinite slope there."""
    return Asin().apply((as_operand("asin", "x", x),))[0]


class Acos(FunctionNode):
    """y = arccos x.   x: (s) -> y: (s).   dL/dx = -dL/dy / sqrt(1 - x^2)"""

    is_elementwise = True
    guard = guards.EDGE.format("acos", "-1 + eps", "1 - eps")

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).acos(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (-zero_safe_divide(gy, CircleRoot().apply((x,))[0]),)


def acos(x: Any) -> Variable:
    """The inverse cosine in radians, elementwise; NaN outside -1 to 1, infinite slope there."""
    return Acos().apply((as_operand("acos", "x", x),))[0]


class Atan(FunctionNode):
    """y = arctan x.   x: (s) -> y: (s).   dL/dx = dL/dy / (1 + x^2)"""

    is_elementwise = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).atan(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        length = hypot(x, 1.0)  # x^2 + 1 overflows
        return (gy / length / length,)


def atan(x: Any) -> Variable:
    """The inverse tangent in radians, elementwise."""
    return Atan().apply((as_operand("atan", "x", x),))[0]


class Sinh(FunctionNode):
    """y = sinh x.   x: (s) -> y: (s).   dL/dx = dL/dy * cosh x"""

    infinite_slope = True
    is_elementwise = True
    guard = guards.OVERFLOW.format("sinh", 710, 89, 11)
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).sinh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * cosh(x),)


def sinh(x: Any) -> Variable:
    """The hyperbolic sine, elementwise."""
    return Sinh().apply((as_operand("sinh", "x", x),))[0]


class Cosh(FunctionNode):
    """y = cosh x.   x: (s) -> y: (s).   dL/dx = dL/dy * sinh x"""

    infinite_slope = True
    is_elementwise = True
    guard = guards.OVERFLOW.format("cosh", 710, 89, 11)
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).cosh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * sinh(x),)


def cosh(x: Any) -> Variable:
    """The hyperbolic cosine, elementwise."""
    return Cosh().apply((as_operand("cosh", "x", x),))[0]


class Asinh(FunctionNode):
    """y = arsinh x.   x: (s) -> y: (s).   dL/dx = dL/dy / sqrt(x^2 + 1)"""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).asinh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy / hypot(x, 1.0),)


def asinh(x: Any) -> Variable:
    """The inverse hyperbolic sine, elementwise."""
    return Asinh().apply((as_operand("asinh", "x", x),))[0]


class Acosh(FunctionNode):
    """y = arcosh x.   x: (s) -> y: (s).   dL/dx = dL/dy / sqrt(x^2 - 1)"""

    is_elementwise = True
    guard = guards.EDGE.format("acosh", "1 + eps", "None")

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).acosh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy, HyperbolaRoot().apply((x,))[0]),)


def acosh(x: Any) -> Variable:
    """The inverse hyperbolic cosine, elementwise; NaN below 1, infinite gradient at 1."""
    return Acosh().apply((as_operand("acosh", "x", x),))[0]


class Atanh(FunctionNode):
    """y = artanh x.   x: (s) -> y: (s).   dL/dx = dL/dy / (1 - x^2)"""

    is_elementwise = True
    guard = guards.EDGE.format("atanh", "-1 + eps", "1 - eps")

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).atanh(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        root = CircleRoot().apply((x,))[0]
        return (zero_safe_divide(zero_safe_divide(gy, root), root),)


def atanh(x: Any) -> Variable:
    """The inverse hyperbolic tangent, elementwise; infinite at -1 and 1, NaN beyond."""
    return Atanh().apply((as_operand("atanh", "x", x),))[0]


class Cosine(BroadcastingNode):
    """c = x / r with r = hypot(x, y): the cosine of the angle of the point (x, y), 0 at (0, 0).

    x: (s), y: (t) -> c: (broadcast of s and t).
    With h = dL/dc, s = y / r:   dL/dx = sum_to(h * s * s / r, s)
    dL/dy = -sum_to(h * c * s / r, t)
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        length = xp.hypot(x, y)
        return (x / xp.where(length == 0, xp.ones_like(length), length),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, y = self.get_retained_inputs()
        (c,) = self.get_retained_outputs()
        sine = cosine(y, x)
        turn = sine / hypot(x, y)
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(zero_safe_multiply(h, turn * sine), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(-zero_safe_multiply(h, turn * c), self, 1)
        return gx, gy


def cosine(x: Variable, y: Variable) -> Variable:
    """x / hypot(x, y), and 0 at (0, 0)."""
    return Cosine().apply((x, y))[0]


class Atan2(BroadcastingNode):
    """z = the angle of the point (y, x), from -pi to pi.

    x1 = y: (s), x2 = x: (t) -> z: (broadcast of s and t).
    With g = dL/dz, r = hypot(x, y):   dL/dy = sum_to(g * (x / r) / r, s)
    dL/dx = -sum_to(g * (y / r) / r, t)
    """

    guard = guards.ATAN2
    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        y, x = inputs
        self.retain_inputs((0, 1))
        return (namespace_of(y).atan2(y, x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        y, x = self.get_retained_inputs()
        length = hypot(x, y)  # x^2 + y^2 overflows
        gy = gx = None
        if 0 in target_input_indexes:
            gy = unbroadcast(zero_safe_multiply(gz, cosine(x, y) / length), self, 0)
        if 1 in target_input_indexes:
            gx = unbroadcast(-zero_safe_multiply(gz, cosine(y, x) / length), self, 1)
        return gy, gx


def atan2(x1: Any, x2: Any) -> Variable:
    """The angle of the point with ordinate x1 and abscissa x2, in radians from -pi to pi."""
    return Atan2().apply(real_operands("atan2", x1, x2))[0]


class Hypot(BroadcastingNode):
    """z = sqrt(x^2 + y^2), without overflow in between.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g * x / z, s)   dL/dy = sum_to(g * y / z, t), both 0 at z = 0
    """

    guard = guards.HYPOT
    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (namespace_of(x).hypot(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(gz * cosine(x, y), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(gz * cosine(y, x), self, 1)
        return gx, gy


def hypot(x1: Any, x2: Any) -> Variable:
    """sqrt(x1^2 + x2^2), elementwise; the gradient at (0, 0) is 0."""
    return Hypot().apply(real_operands("hypot", x1, x2))[0]

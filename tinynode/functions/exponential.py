"""Exponentials, logarithms and powers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from tinynode.core.array_arguments import array_operand, raw_of
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    COMPLEX,
    Array,
    Arrays,
    backend_of,
    is_float16,
    is_integer,
    kind_of,
    namespace_of,
    put,
)
from tinynode.errors import OperandError, dtype_name
from tinynode.functions import guards
from tinynode.functions.arithmetic import BroadcastingNode, zero_safe_divide, zero_safe_multiply
from tinynode.functions.checked import checked_float
from tinynode.functions.comparison import equal
from tinynode.functions.complex_numbers import conj
from tinynode.functions.data_types import astype, narrowed, widened
from tinynode.functions.operands import (
    as_differentiable,
    as_floating,
    as_number,
    as_operand,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import unbroadcast

__all__ = [
    "Exp",
    "Expm1",
    "Log",
    "Log10",
    "Log1p",
    "Log2",
    "Pow",
    "PowConstant",
    "Reciprocal",
    "Sqrt",
    "Square",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "reciprocal",
    "rsqrt",
    "sqrt",
    "square",
]
__dir__ = __all__.copy  # for completion


class Exp(FunctionNode):
    """y = e^x.   x: (s) -> y: (s).   dL/dx = dL/dy * y"""

    is_elementwise = True
    guard = guards.EXP.format("exp")
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).exp(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * y,)


def exp(x: Any) -> Variable:
    """e^x, elementwise.

    y = e^x.   x: (s) -> y: (s).   dL/dx = dL/dy * y

        >>> [round(y, 4) for y in F.exp(tn.asarray([0.0, 1.0])).tolist()]
        [1.0, 2.7183]
    """
    return Exp().apply((as_operand("exp", "x", x),))[0]


class Expm1(FunctionNode):
    """y = e^x - 1.   x: (s) -> y: (s).   dL/dx = dL/dy * e^x"""

    is_elementwise = True
    guard = guards.OVERFLOW.format("expm1", 709, 88, 11)
    complex_rule = "conjugate"
    finite_slope = True
    infinite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).expm1(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * exp(x),)  # y + 1 is 0 from e^x < eps on


def expm1(x: Any) -> Variable:
    """e^x - 1, elementwise, precise near 0."""
    return Expm1().apply((as_operand("expm1", "x", x),))[0]


class Log(FunctionNode):
    """y = ln x.   x: (s) -> y: (s).   dL/dx = dL/dy / x, and 0 where dL/dy = 0 and x = 0"""

    is_elementwise = True
    guard = guards.LOG.format("log")
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy, x),)


def log(x: Any) -> Variable:
    """The natural logarithm, elementwise; -inf at 0, NaN below.

    y = log(x).   x: (s) -> y: (s).   dL/dx = dL/dy / x

        >>> [round(y, 4) for y in F.log(tn.asarray([1.0, 2.0])).tolist()]
        [0.0, 0.6931]
    """
    return Log().apply((as_operand("log", "x", x),))[0]


class Log1p(FunctionNode):
    """y = ln(1 + x).   x: (s) -> y: (s).   dL/dx = dL/dy / (1 + x)"""

    is_elementwise = True
    guard = guards.LOG1P
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log1p(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy, x + 1.0),)


def log1p(x: Any) -> Variable:
    """ln(1 + x), elementwise, precise near 0; -inf at -1, NaN below."""
    return Log1p().apply((as_operand("log1p", "x", x),))[0]


class Log2(FunctionNode):
    """y = the logarithm of x to base 2.   x: (s) -> y: (s).   dL/dx = dL/dy / (x ln 2)"""

    is_elementwise = True
    guard = guards.LOG.format("log2")
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log2(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy * (1.0 / math.log(2.0)), x),)


def log2(x: Any) -> Variable:
    """The logarithm to base 2, elementwise; -inf at 0, NaN below."""
    return Log2().apply((as_operand("log2", "x", x),))[0]


class Log10(FunctionNode):
    """y = the logarithm of x to base 10.   x: (s) -> y: (s).   dL/dx = dL/dy / (x ln 10)"""

    is_elementwise = True
    guard = guards.LOG.format("log10")
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).log10(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_divide(gy * (1.0 / math.log(10.0)), x),)


def log10(x: Any) -> Variable:
    """The logarithm to base 10, elementwise; -inf at 0, NaN below."""
    return Log10().apply((as_operand("log10", "x", x),))[0]


class Sqrt(FunctionNode):
    """y = sqrt(x).   x: (s) -> y: (s).   dL/dx = dL/dy / (2 y), and 0 where dL/dy = 0 and y = 0"""

    is_elementwise = True
    guard = guards.SQRT
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).sqrt(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (zero_safe_divide(gy * 0.5, y),)


def sqrt(x: Any) -> Variable:
    """The square root, elementwise; NaN below 0, infinite gradient at 0.

    y = x^(1/2).   x: (s) -> y: (s).   dL/dx = dL/dy / (2 y)

        >>> F.sqrt(tn.asarray([4.0, 9.0])).tolist()
        [2.0, 3.0]
    """
    return Sqrt().apply((as_operand("sqrt", "x", x),))[0]


def rsqrt(x: Any) -> Variable:
    """1 / sqrt(x), elementwise; dL/dx = -dL/dy * y^3 / 2.

    Raises:
        OperandError: x is not floating.
    """
    return reciprocal(sqrt(as_floating("rsqrt", "x", x)))


class Square(FunctionNode):
    """y = x^2.   x: (s) -> y: (s).   dL/dx = dL/dy * 2 x"""

    is_elementwise = True
    guard = guards.SQUARE
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).square(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * x * 2.0,)


def square(x: Any) -> Variable:
    """x^2, elementwise."""
    return Square().apply((as_operand("square", "x", x),))[0]


class Reciprocal(FunctionNode):
    """y = 1 / x.   x: (s) -> y: (s).   dL/dx = -dL/dy * y^2"""

    is_elementwise = True
    guard = guards.DIVISION
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).reciprocal(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (-zero_safe_multiply(zero_safe_multiply(gy, y), y),)


def reciprocal(x: Any) -> Variable:
    """1 / x, elementwise; infinite at 0.

    Raises:
        OperandError: x is not floating.
    """
    return Reciprocal().apply((as_differentiable("reciprocal", "x", x),))[0]


class Pow(BroadcastingNode):
    """z = x^y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g * y * x^(y-1), s)   dL/dy = sum_to(g * z * ln x, t), where
    ln x counts as 0 at x = 0. Beside complex numbers, ln x of x < 0 is ln |x| + i pi
    """

    infinite_slope = True
    guard = guards.POWER
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return (namespace_of(x).pow(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        if is_float16(raw_of(z)):  # z and x^(y-1) may overflow where their products do not
            x, y = widened(x), widened(y)
            z = pow(x, y)
        if self.is_complex:  # the conjugate of a real x < 0 lies on the other side of the cut
            x = x if kind_of(x.raw) == COMPLEX else conj(astype(x, z.dtype))
        gx = gy = None
        at_zero = equal(x, 0)
        if 0 in target_input_indexes:
            # x^0 is 1 at x = 0 too: the derivative there is 0, not 0 * 0^-1
            exponent = where(at_zero, where(equal(y, 0), 1, y - 1), y - 1)
            slope = narrowed(y * pow(x, exponent), gz)
            gx = unbroadcast(zero_safe_multiply(gz, slope), self, 0)
        if 1 in target_input_indexes:
            log_x = log(where(at_zero, 1, x))
            slope = narrowed(z * log_x, gz)
            gy = unbroadcast(zero_safe_multiply(gz, slope), self, 1)
        return gx, gy


class PowConstant(FunctionNode):
    """y = x^c for a number c.

    x: (s) -> y: (s).   dL/dx = dL/dy * c * x^(c-1)
    """

    is_elementwise = True
    guard = guards.POWER
    complex_rule = "conjugate"

    def __init__(self, exponent: float) -> None:
        self.exponent = checked_float(self, "exponent", exponent)

    @property
    def finite_slope(self) -> bool:  # type: ignore[override]
        """True for 1, 2, 3 ...: other powers have no finite derivative at 0, or below."""
        return self.exponent >= 1 and float(self.exponent).is_integer()

    @property
    def label(self) -> str:
        return f"PowConstant({self.exponent:g})"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (x**self.exponent,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        c = self.exponent
        if c == 0:
            return (gy * 0.0,)  # x^-1 would be infinite at 0
        if c == 1:
            return (gy,)
        if not float(c).is_integer():
            return (zero_safe_multiply(gy, ScaledPower(c, c - 1).apply((x,))[0]),)
        derivative = x * c if c == 2 else pow(x, c - 1) * c
        if self.finite_slope:
            return (gy * derivative,)
        return (zero_safe_multiply(gy, derivative),)


class ScaledPower(FunctionNode):
    """y = k x^c for numbers k and c, of which c is no integer: the derivatives of a power.

    x: (s) -> y: (s).   dL/dx = dL/dy * k c x^(c-1)
    """

    is_elementwise = True
    wide = True
    guard = guards.POWER
    complex_rule = "conjugate"

    def __init__(self, factor: float, exponent: float) -> None:
        self.factor = checked_float(self, "factor", factor)
        self.exponent = checked_float(self, "exponent", exponent)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        if math.fabs(self.factor) >= 1.0:
            return (x**self.exponent * self.factor,)
        root = x ** (0.5 * self.exponent)  # x^c may overflow where k x^c does not
        return (root * self.factor * root,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        node = ScaledPower(self.factor * self.exponent, self.exponent - 1)
        return (zero_safe_multiply(gy, node.apply((x,))[0]),)


def pow(x: Any, y: Any) -> Variable:
    """x^y, elementwise. A Python number as exponent is cheaper than an array of the number.

    Raises:
        OperandError: x is an integer Variable and y a negative number.
    """
    base = x if isinstance(x, Variable) else array_operand(x)
    is_number = isinstance(y, int | float | numpy.integer | numpy.floating)
    if base is not None and is_number and array_operand(y) is None:
        exponent = y.item() if isinstance(y, numpy.generic) else y
        if isinstance(exponent, int):
            as_number("pow", "y", exponent)  # not too large for a float
        if exponent < 0 and is_integer(base.raw):
            raise OperandError(
                f"pow: x is {dtype_name(x.dtype)}, and has no power {exponent} among the "
                "integers. Cast it first with astype."
            )
        return PowConstant(exponent).apply((x,))[0]
    return Pow().apply((x, y))[0]


BLOCK = 1 << 15


def in_blocks(function: Callable[..., Array], *arrays: Array, dtype: Any = None) -> Array:
    """An elementwise function of arrays of the same shape, computed in blocks that fit the cache.

    For functions of many steps: the results of the steps are then read from the cache. GPUs get
    the whole arrays at once. ``dtype`` is that of the results, by default that of the arrays.
    """
    first = arrays[0]
    if math.prod(first.shape) <= BLOCK or "cpu" not in backend_of(first).capabilities:
        return function(*arrays)
    xp = namespace_of(first)
    flat = [xp.reshape(x, (-1,)) for x in arrays]
    dtype = first.dtype if dtype is None else dtype
    y = xp.empty(flat[0].shape, dtype=dtype, device=first.device)
    for start in range(0, y.shape[0], BLOCK):
        part = slice(start, min(start + BLOCK, y.shape[0]))
        y = put(y, part, function(*(x[part] for x in flat)))
    return xp.reshape(y, first.shape)

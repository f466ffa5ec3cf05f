"""Exponentials, logarithms, powers, sigmoid and the error function.

Neither NumPy nor the Array API standard has the error function. Double precision takes two
polynomials, of x^2 near 0 and of 1 / (|x| + 1) beyond. Single precision takes the tanh of a
polynomial. ``python tools/erf_coefficients.py`` prints the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from tinynode.core.array_arguments import array_operand
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    COMPLEX,
    Array,
    Arrays,
    backend_of,
    is_integer,
    kind_of,
    namespace_of,
    put,
)
from tinynode.errors import OperandError, dtype_name
from tinynode.functions import guards
from tinynode.functions.arithmetic import BroadcastingNode, zero_safe_multiply
from tinynode.functions.checked import checked_float
from tinynode.functions.comparison import equal
from tinynode.functions.complex_numbers import conj
from tinynode.functions.data_types import astype
from tinynode.functions.operands import (
    as_differentiable,
    as_floating,
    as_number,
    as_operand,
    as_operands,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import unbroadcast

__all__ = [
    "Erf",
    "Exp",
    "Expm1",
    "Log",
    "Log10",
    "Log1p",
    "Log2",
    "LogAddExp",
    "Pow",
    "PowConstant",
    "Reciprocal",
    "SameInfinity",
    "Sigmoid",
    "Sqrt",
    "Square",
    "erf",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "pow",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "square",
]


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
    """e^x, elementwise."""
    return Exp().apply((as_operand("exp", "x", x),))[0]


class Expm1(FunctionNode):
    """y = e^x - 1.   x: (s) -> y: (s).   dL/dx = dL/dy * (y + 1)"""

    is_elementwise = True
    guard = guards.EXP.format("expm1")
    complex_rule = "conjugate"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).expm1(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * (y + 1.0),)


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
        return (zero_safe_multiply(gy, 1.0 / x),)


def log(x: Any) -> Variable:
    """The natural logarithm, elementwise; -inf at 0, NaN below."""
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
        return (zero_safe_multiply(gy, 1.0 / (x + 1.0)),)


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
        return (zero_safe_multiply(gy, (1.0 / math.log(2.0)) / x),)


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
        return (zero_safe_multiply(gy, (1.0 / math.log(10.0)) / x),)


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
        return (zero_safe_multiply(gy, 0.5 / y),)


def sqrt(x: Any) -> Variable:
    """The square root, elementwise; NaN below 0, infinite gradient at 0."""
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
        return (gy * (x * 2.0),)


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
        if self.is_complex:  # the conjugate of a real x < 0 lies on the other side of the cut
            x = x if kind_of(x.raw) == COMPLEX else conj(astype(x, z.dtype))
        gx = gy = None
        at_zero = equal(x, 0)
        if 0 in target_input_indexes:
            # x^0 is 1 at x = 0 too: the derivative there is 0, not 0 * 0^-1
            exponent = where(at_zero, where(equal(y, 0), 1, y - 1), y - 1)
            gx = unbroadcast(zero_safe_multiply(gz, y * pow(x, exponent)), self, 0)
        if 1 in target_input_indexes:
            log_x = log(where(at_zero, 1, x))
            gy = unbroadcast(zero_safe_multiply(gz, z * log_x), self, 1)
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
        derivative = x * c if c == 2 else pow(x, c - 1) * c
        if self.finite_slope:
            return (gy * derivative,)
        return (zero_safe_multiply(gy, derivative),)


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


BLOCK = 1 << 17


def in_blocks(function: Callable[..., Array], *arrays: Array) -> Array:
    """An elementwise function of arrays of the same shape, computed in blocks that fit the cache.

    For functions of many steps: the results of the steps are then read from the cache. GPUs get
    the whole arrays at once.
    """
    first = arrays[0]
    if math.prod(first.shape) <= BLOCK or "cpu" not in backend_of(first).capabilities:
        return function(*arrays)
    xp = namespace_of(first)
    flat = [xp.reshape(x, (-1,)) for x in arrays]
    y = xp.empty(flat[0].shape, dtype=first.dtype, device=first.device)
    for start in range(0, y.shape[0], BLOCK):
        part = slice(start, min(start + BLOCK, y.shape[0]))
        y = put(y, part, function(*(x[part] for x in flat)))
    return xp.reshape(y, first.shape)


class Sigmoid(FunctionNode):
    """y = 1 / (1 + e^-x).   x: (s) -> y: (s).   dL/dx = dL/dy * y * (1 - y)"""

    is_elementwise = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_outputs((0,))
        return (in_blocks(sigmoid_array, inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * y * (1.0 - y),)


def sigmoid_array(x: Array) -> Array:
    """sigmoid of an array: e^x / (e^x + 1) below 0, 1 / (1 + e^-x) above.

    No value overflows, and tiny values keep the relative precision.
    """
    xp = namespace_of(x)
    small = xp.exp(-xp.abs(x))
    y = xp.maximum(small, xp.astype(x > 0, x.dtype))
    small += 1.0
    y /= small
    return y


def sigmoid(x: Any) -> Variable:
    """1 / (1 + e^-x), elementwise."""
    return Sigmoid().apply((as_floating("sigmoid", "x", x),))[0]


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

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        same = SameInfinity().apply((x, y))[0]
        difference = where(same, 0, x) - where(same, 0, y)
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(gz * sigmoid(difference), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(gz * sigmoid(-difference), self, 1)
        return gx, gy


class SameInfinity(BroadcastingNode):
    """z = True where x and y are the same infinity, so x - y is NaN.

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


# Double precision: erf(x) = x P(x^2) for |x| <= 1; highest power first
NEAR = (
    -7.795898827002142e-10,
    1.3720064546777686e-08,
    -1.6208483801871705e-07,
    1.6447424703317362e-06,
    -1.492473690741966e-05,
    0.00012055294904839707,
    -0.0008548325975389692,
    0.0052239776071164225,
    -0.02686617064323777,
    0.11283791670945006,
    -0.37612638903183543,
    1.1283791670955126,
)


# erfc(x) = e^(-x^2) Q(t) with t = 1 / (x + 1), for x from 1 to 6
FAR = (
    -95.35965186115287,
    632.61396501419,
    -1964.679849509119,
    3781.80713020002,
    -5028.601973086149,
    4864.481696785832,
    -3503.94700395126,
    1886.9033060379222,
    -752.2371738935755,
    220.68365371886213,
    -51.28436186107191,
    11.649375219808183,
    -1.6303967594932711,
    -0.5321980272968525,
    -0.29751121839467776,
    0.28311246255145406,
    0.5641426746425217,
    0.5641909314014267,
    -1.8171859161372416e-08,
)


# Single precision: erf(x) = tanh(x P(x^2)) for |x| <= 3.95; beyond, the tanh is 1 or -1
SINGLE = (
    1.418889618118443e-07,
    -5.6689487542282446e-06,
    8.76393498894835e-05,
    -0.0006197877597973668,
    -0.00019183019105411655,
    0.1027690569609405,
    1.1283792740375254,
)


class Erf(FunctionNode):
    """y = 2 / sqrt(pi) * (the integral of e^(-t^2) from 0 to x).

    x: (s) -> y: (s).   dL/dx = dL/dy * 2 / sqrt(pi) * e^(-x^2)
    """

    is_elementwise = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (in_blocks(partial(erf_array, namespace_of(x)), x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * exp(-(x * x)) * (2.0 / math.sqrt(math.pi)),)


def erf(x: Any) -> Variable:
    """The error function, elementwise.

    Raises:
        OperandError: x is not floating.
    """
    return Erf().apply((as_floating("erf", "x", x),))[0]


def erf_array(xp: Any, x: Array) -> Array:
    """erf of a floating array, or of a NumPy scalar."""
    return _single_erf(xp, x) if x.dtype == xp.float32 else _double_erf(xp, x)


def _single_erf(xp: Any, x: Array) -> Array:
    inner = xp.clip(x, min=-6.0, max=6.0)
    y = _polynomial(SINGLE, inner * inner)
    y *= inner
    return xp.tanh(y)


def _double_erf(xp: Any, x: Array) -> Array:
    size = xp.minimum(xp.abs(x), xp.asarray(6.0, dtype=x.dtype, device=x.device))
    square = size * size
    is_near = xp.astype(size <= 1, x.dtype)  # products with 0 and 1 are quicker than where
    near = _polynomial(NEAR, square * is_near)
    near *= size
    near *= is_near
    far = _polynomial(FAR, 1.0 / (size + 1.0))
    far *= xp.exp(-square)
    far = 1.0 - far
    far *= 1.0 - is_near
    return xp.copysign(near + far, x)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's rule, highest power first."""
    total = x * coefficients[0]
    total += coefficients[1]
    for coefficient in coefficients[2:]:
        total *= x
        total += coefficient
    return total

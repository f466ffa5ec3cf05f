"""Special functions: erfc, the inverse of erf, the logarithm of Gamma, and the polygammas.

NumPy and the Array API standard have none of them. All are computed in double precision, from
``+ - * /``, ``exp`` and ``log``, so they run on each array library. The stated errors are the
largest relative ones against tables; near a zero of ``lgamma`` and ``digamma`` they are absolute.
"""

from __future__ import annotations

import math
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.functions import guards
from tinynode.functions.arithmetic import zero_safe_multiply
from tinynode.functions.attributes import HIGHEST_ORDER, Order
from tinynode.functions.checked import checked
from tinynode.functions.gaussian import (
    GAUSS_ENDS,
    Gauss,
    erf_array,
    gauss_array,
    normal_array,
    normal_tail,
)
from tinynode.functions.operands import as_floating, as_integer

__all__ = [
    "ErfInv",
    "Erfc",
    "LGamma",
    "PolyGamma",
    "digamma",
    "erfc",
    "erfinv",
    "lgamma",
    "polygamma",
]
__dir__ = __all__.copy  # for completion

LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""The coefficients of Lanczos's series for g = 7, of nine terms."""

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers B_2 to B_16."""


def _number(xp: Any, like: Array, value: float) -> Array:
    """A number as an array without axes, on the device of another array."""
    return xp.asarray(value, dtype=like.dtype, device=like.device)


def _erfc(xp: Any, x: Array) -> Array:
    """erfc of a float64 array: twice the normal distribution at -sqrt(2) x."""
    return normal_array(xp, x * -math.sqrt(2.0), gauss_array(xp, 1.0, x)) * 2.0


class Erfc(FunctionNode):
    """y = 1 - erf(x), without the loss of digits for large x.

    x: (s) -> y: (s).   dL/dx = -dL/dy * 2 / sqrt(pi) * e^(-x^2)
    """

    is_elementwise = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        return (xp.astype(_erfc(xp, xp.astype(x, xp.float64)), x.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * Gauss(1.0).apply((x,))[0] * (-2.0 / math.sqrt(math.pi)),)


def erfc(x: Any) -> Variable:
    """1 - erf(x), elementwise; the relative error is below 1e-13 for x up to 26.

    Raises:
        OperandError: x is not floating.
    """
    return Erfc().apply((as_floating("erfc", "x", x),))[0]


def _erfinv(xp: Any, y: Array) -> Array:
    """The inverse of erf on a float64 array: Winitzki's formula, then Halley's steps."""
    size = xp.abs(y)
    inside = xp.where(size < 1, size, _number(xp, size, 0.0))
    fall = xp.log1p(-inside * inside)
    a = 0.147
    t = 2.0 / (math.pi * a) + 0.5 * fall
    x = xp.sqrt((-fall / a) / (xp.sqrt(t * t - fall / a) + t))
    for _ in range(3):
        # near 1, the distance to 1 has more digits than erf
        error = xp.where(inside < 0.5, erf_array(xp, x) - inside, (1.0 - inside) - _erfc(xp, x))
        step = error * xp.exp(x * x) * (0.5 * math.sqrt(math.pi))
        x = x - step / (1.0 + x * step)
    x = xp.where(size == 1, _number(xp, x, math.inf), x)
    x = xp.where((size > 1) | xp.isnan(size), _number(xp, x, math.nan), x)
    return xp.copysign(x, y)


class ErfInv(FunctionNode):
    """y with erf(y) = x.   x: (s) -> y: (s).   dL/dx = dL/dy * sqrt(pi) / 2 * e^(y^2)"""

    is_elementwise = True
    guard = guards.EDGE.format("erfinv", "-1 + eps", "1 - eps")

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        return (xp.astype(_erfinv(xp, xp.astype(x, xp.float64)), x.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_multiply(gy, ErfInvSlope().apply((x,))[0]),)


class ErfInvSlope(FunctionNode):
    """z = sqrt(pi) / 2 * e^(y^2) with y = erfinv(x): the derivative of ``ErfInv``.

    x: (s) -> z: (s).   dL/dx = dL/dz * 2 y z^2
    e^(y^2) would multiply the rounding error of y by 2 y^2. So z is taken from 1 - |x|, which is
    e^(-y^2) erfcx(|y|), and erfcx varies slowly.
    """

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        y = _erfinv(xp, xp.astype(x, xp.float64))
        size = xp.clip(xp.abs(y) * math.sqrt(2.0), max=GAUSS_ENDS)
        tail = normal_tail(xp, size, _number(xp, size, math.sqrt(math.pi)))
        rest = 1.0 - xp.astype(xp.abs(x), xp.float64)
        is_end = rest == 0
        tail /= xp.where(is_end, _number(xp, rest, 1.0), rest)
        tail = xp.where(is_end, _number(xp, tail, math.inf), tail)
        return (xp.astype(tail, x.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        (x,), (z,) = self.get_retained_inputs(), self.get_retained_outputs()
        return (zero_safe_multiply(gz, erfinv(x) * 2.0 * z * z),)


def erfinv(x: Any) -> Variable:
    """The inverse of erf, elementwise: inf at 1, NaN beyond; the relative error is below 1e-13.

    Source of the first guess: Winitzki, A handy approximation for the error function, 2008.

    Raises:
        OperandError: x is not floating.
    """
    return ErfInv().apply((as_floating("erfinv", "x", x),))[0]


def _distance_to_integer(xp: Any, x: Array) -> Array:
    """x minus the nearest integer: sin(pi x) and tan(pi x) keep their digits."""
    finite = xp.where(xp.isinf(x), _number(xp, x, 0.0), x)
    return finite - xp.round(finite)


def _lgamma(xp: Any, x: Array) -> Array:
    """ln |Gamma(x)| of a float64 array: Lanczos's series from 0.5 on, else the reflection."""
    z = xp.where(xp.isinf(x), _number(xp, x, 1.0), xp.where(x < 0.5, 1.0 - x, x)) - 1.0
    series = 0.0 * z + LANCZOS[0]
    for i, coefficient in enumerate(LANCZOS[1:], 1):
        series = series + coefficient / (z + float(i))
    t = z + 7.5
    y = (z + 0.5) * xp.log(t) - t + xp.log(series) + 0.5 * math.log(2.0 * math.pi)
    distance = xp.abs(_distance_to_integer(xp, x))
    # near 0 sin(pi d) / pi is d, and pi d may be below the normal numbers
    sine = xp.where(distance < 1e-9, distance, xp.sin(math.pi * distance) / math.pi)
    pole = (x <= 0) & (sine == 0)
    mirrored = -xp.log(xp.where(pole | (x >= 0.5), _number(xp, x, 1.0), sine)) - y
    y = xp.where(x < 0.5, mirrored, y)
    return xp.where(pole | xp.isinf(x), _number(xp, y, math.inf), y)


class LGamma(FunctionNode):
    """y = ln |Gamma(x)|.   x: (s) -> y: (s).   dL/dx = dL/dy * digamma(x)"""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        return (xp.astype(_lgamma(xp, xp.astype(x, xp.float64)), x.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_multiply(gy, PolyGamma(0).apply((x,))[0]),)


def lgamma(x: Any) -> Variable:
    """ln |Gamma(x)|, elementwise: inf at 0, -1, -2 and so on; the error is below 1e-13.

    dL/dx = dL/dy * digamma(x). Source: Lanczos, A Precision Approximation of the Gamma Function,
    1964.

    Raises:
        OperandError: x is not floating.
    """
    return LGamma().apply((as_floating("lgamma", "x", x),))[0]


def _cotangent_derivative(xp: Any, n: int, x: Array) -> Array:
    """pi times the n-th derivative of cot(pi x): a polynomial in the cotangent."""
    coefficients = [0.0, 1.0]  # of c^0, c^1
    for _ in range(n):  # d/dx p(c) = -pi p'(c) (1 + c^2)
        slopes = [-math.pi * i * p for i, p in enumerate(coefficients)][1:]
        wide = zip([*slopes, 0.0, 0.0], [0.0, 0.0, *slopes], strict=True)
        coefficients = [a + b for a, b in wide]
    c = 1.0 / xp.tan(math.pi * x)
    total = _number(xp, c, coefficients[-1])  # not 0 * c, which is NaN at a pole
    for coefficient in reversed(coefficients[:-1]):
        total = total * c + coefficient
    return math.pi * total


def _polygamma(xp: Any, n: int, x: Array) -> Array:
    """The n-th derivative of digamma of a float64 array: recurrence, then Stirling's series."""
    sign = -1.0 if n % 2 else 1.0
    pole = (x <= 0) & (_distance_to_integer(xp, x) == 0)  # -inf counts as one
    x = xp.where(pole, _number(xp, x, 1.0), x)
    z = xp.where(x < 0, 1.0 - x, x)
    shift = 16 + 2 * n
    y = -1.0 / z ** (n + 1)
    for k in range(1, shift):
        y = y - 1.0 / (z + float(k)) ** (n + 1)
    y = y * (sign * math.factorial(n))
    w = z + float(shift)
    if n == 0:
        y = y + xp.log(w) - 0.5 / w
    else:
        head = math.factorial(n - 1) / w**n + math.factorial(n) / (2.0 * w ** (n + 1))
        y = y - sign * head
    for k, number in enumerate(BERNOULLI, 1):
        factor = number * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        y = y - (sign * factor) / w ** (2 * k + n)
    part = _distance_to_integer(xp, xp.where(x < 0, x, _number(xp, x, 0.25)))
    y = xp.where(x < 0, sign * y - _cotangent_derivative(xp, n, part), y)
    return xp.where(pole, _number(xp, y, math.nan), y)


class PolyGamma(FunctionNode):
    """y = the n-th derivative of digamma(x).   x: (s) -> y: (s).

    dL/dx = dL/dy * polygamma(n + 1, x)
    """

    is_elementwise = True

    def __init__(self, n: Order) -> None:
        self.n: int = checked(self, "n", n)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        return (xp.astype(_polygamma(xp, self.n, xp.astype(x, xp.float64)), x.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_multiply(gy, PolyGamma(self.n + 1).apply((x,))[0]),)


def digamma(x: Any) -> Variable:
    """The derivative of lgamma(x), elementwise: NaN at 0, -1, -2 and so on; error below 1e-13.

    Raises:
        OperandError: x is not floating.
    """
    return PolyGamma(0).apply((as_floating("digamma", "x", x),))[0]


def polygamma(n: int, x: Any) -> Variable:
    """The n-th derivative of digamma(x), elementwise; NaN at 0, -1, -2 and so on.

    The relative error is below 1e-12 for n up to 5 and x > 0.

    Args:
        n: the order, 0 for digamma itself.
        x: floating.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3 and 6.4.

    Raises:
        OperandError: x is not floating, or n is not an integer.
        ValueError: n is negative or above 1000.
    """
    order = as_integer("polygamma", "n", n)
    if order < 0:
        raise ValueError(f"polygamma: n must not be negative, got {n}.")
    if order > HIGHEST_ORDER:
        raise ValueError(
            f"polygamma: n must be at most {HIGHEST_ORDER}, got {n}. From 171 on, n! is infinite."
        )
    return PolyGamma(order).apply((as_floating("polygamma", "x", x),))[0]

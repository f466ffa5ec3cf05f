"""The bell curve of Gauss, the error function, and the normal distribution.

Neither NumPy nor the Array API standard has the error function. Double precision takes two
polynomials, of x^2 near 0 and of 1 / (|x| + 1) beyond. Single precision takes the tanh of a
polynomial. The tail of the normal distribution is the bell curve times a polynomial.
``python tools/erf_coefficients.py`` prints the coefficients.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.functions.checked import checked_float
from tinynode.functions.comparison import clip
from tinynode.functions.exponential import in_blocks
from tinynode.functions.operands import as_floating

__all__ = ["Erf", "Gauss", "erf"]
__dir__ = __all__.copy  # for completion

ROOT_2PI = math.sqrt(2.0 * math.pi)
GAUSS_ENDS = 40.0
"""e^(-x^2 / 2) is 0 from there on, in float64."""


class Gauss(FunctionNode):
    """y = e^(-c x^2) for c = 1, 1/2 or -1.   x: (s) -> y: (s).   dL/dx = -2 c x y * dL/dy"""

    is_elementwise = True
    wide = True
    finite_slope = True

    def __init__(self, c: float) -> None:
        self.c = checked_float(self, "c", c)

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (in_blocks(partial(gauss_array, namespace_of(inputs[0]), self.c), *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        held = clip(x, -GAUSS_ENDS, GAUSS_ENDS)  # inf * 0 is NaN
        return (gy * (held * y * (-2.0 * self.c)),)


def gauss_array(xp: Any, c: float, x: Array) -> Array:
    """e^(-c x^2) of an array.

    x^2 rounds, and e^(-c x^2) multiplies the error by c x^2. The square of a float32 is exact in
    float64. In float64, 64 x = h + l with an integer h: h^2 is exact, and (64 x)^2 - h^2 =
    l (64 x + h).
    """
    if x.dtype == xp.float32:
        square = xp.astype(x, xp.float64)
        square *= square
        square *= -c
        return xp.astype(xp.exp(square), x.dtype)
    wide = xp.clip(x, min=-GAUSS_ENDS, max=GAUSS_ENDS)
    wide *= 64.0
    high = xp.round(wide)
    rest = wide - high
    wide += high
    rest *= wide
    rest *= -c / 4096.0
    high *= high
    high *= -c / 4096.0
    y = xp.exp(high)
    y *= xp.exp(rest)
    return y


# P(-x) = e^(-x^2 / 2) R(t) with t = 1 / (1 + p x) for x >= 0; p = 0.3 and x to 14.5 in float32
SINGLE_TAIL = (
    0.03770317401813335,
    -0.1661200886853456,
    0.22287955606652618,
    -0.07050464459655743,
    0.13882203966097703,
    0.09608001688045445,
    0.12160964212470335,
    0.11952500682171485,
    5.31665277978752e-06,
)


# ... p = 0.2 and x to 39 in float64
DOUBLE_TAIL = (
    -0.0009759316565642549,
    0.01193303523019539,
    -0.0670204769827836,
    0.22860246712229215,
    -0.5288166758226608,
    0.8815766804131089,
    -1.1064694229244965,
    1.084533275770986,
    -0.8493299880965263,
    0.534603073671848,
    -0.27863663722022514,
    0.11919199042331757,
    -0.03419878109971259,
    0.026903223743479643,
    0.02286733466669414,
    0.03811063656723124,
    0.0497074462651851,
    0.06103191961963396,
    0.07021294141337327,
    0.07659697959813515,
    0.07978845313110683,
    0.07978845616758568,
    -1.2040075938417981e-12,
)


SINGLE, DOUBLE = (0.3, SINGLE_TAIL), (0.2, DOUBLE_TAIL)
"""p and the coefficients, by dtype."""


def normal_array(xp: Any, x: Array, bell: Array) -> Array:
    """P(x), the normal distribution, of an array and of e^(-x^2 / 2)."""
    tail = normal_tail(xp, xp.abs(x), bell)
    return xp.abs(xp.astype(x > 0, x.dtype) - tail)  # 1 - P(-x) above 0


def normal_tail(xp: Any, size: Array, bell: Array) -> Array:
    """P(-size) of sizes from 0 on, and of e^(-size^2 / 2)."""
    pace, coefficients = SINGLE if size.dtype == xp.float32 else DOUBLE
    tail = _polynomial(coefficients, 1.0 / (size * pace + 1.0))
    tail *= bell
    return tail


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
ERF_SINGLE = (
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
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (in_blocks(partial(erf_array, namespace_of(x)), x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * Gauss(1.0).apply((x,))[0] * (2.0 / math.sqrt(math.pi)),)


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
    y = _polynomial(ERF_SINGLE, inner * inner)
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

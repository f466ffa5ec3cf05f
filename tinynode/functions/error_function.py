"""The error function, which neither NumPy nor the Array API standard has.

Two polynomials, of x^2 near 0 and of 1 / (|x| + 1) beyond, give double precision; the tanh of one
gives single precision. ``python tools/erf_coefficients.py`` prints their coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, backend_of, namespace_of, put
from tinynode.functions.elementwise import exp
from tinynode.functions.operands import as_floating

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


def erf_array(xp: Any, x: Array) -> Array:
    """erf of a floating array, or of a scalar that NumPy made of one."""
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


BLOCK = 1 << 16


def in_blocks(function: Callable[..., Array], *arrays: Array) -> Array:
    """An elementwise function of arrays of one shape, computed in blocks that stay in the cache.

    For functions of many steps: the results of these are then read from the cache, and not from
    memory. GPUs get everything at once.
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


class Erf(FunctionNode):
    """y = 2 / sqrt(pi) * (the integral of e^(-t^2) from 0 to x).

    x: (s) -> y: (s).   dL/dx = dL/dy * 2 / sqrt(pi) * e^(-x^2)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (in_blocks(partial(erf_array, namespace_of(x)), x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (gy * exp(-(x * x)) * (2.0 / math.sqrt(math.pi)),)


def erf(x: Any) -> Variable:
    """The error function, elementwise.

    Raises:
        OperandError: x is not floating.
    """
    return Erf().apply((as_floating("erf", "x", x),))[0]

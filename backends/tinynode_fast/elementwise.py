"""Elementwise kernels: activations and their gradients, a few passes over each block."""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy import add, exp, multiply, subtract, tanh

from tinynode.devices import Arrays
from tinynode.functions.exponential import SINGLE
from tinynode_fast.blocks import number

_SQRT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_CUBIC = 0.044715
_SCALE = math.sqrt(2.0 / math.pi)
_DENSITY_ENDS = 40.0
"""e^(-x^2/2) is 0 from there on: beyond it x^2 may overflow."""
_TANH_ENDS = 10.0
"""The tanh of gelu is 1 or -1 from there on: beyond it x^3 may overflow."""


def _hold(x: Any, end: float, y: Any) -> None:
    """x held between -end and end, into y."""
    x.clip(number(-end, x.dtype), number(end, x.dtype), y)


def sigmoid(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """1 / (1 + e^-x); where e^-x overflows, it is 0."""
    (x,), (y,) = inputs, outputs
    one = number(1.0, x.dtype)
    numpy.negative(x, y)
    with numpy.errstate(over="ignore"):
        exp(y, y)
    add(y, one, y)
    numpy.divide(one, y, y)


def silu(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """x s, with s = sigmoid(x)."""
    sigmoid(inputs, outputs, scratch)
    multiply(outputs[0], inputs[0], outputs[0])


def silu_gradient(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """gy s (1 + x (1 - s)), with s = sigmoid(x)."""
    (x, gy), (gx,), (s,) = inputs, outputs, scratch
    one = number(1.0, x.dtype)
    sigmoid((x,), (s,), ())
    subtract(one, s, gx)
    multiply(gx, x, gx)
    add(gx, one, gx)
    multiply(gx, s, gx)
    multiply(gx, gy, gx)


def _polynomial(coefficients: tuple[float, ...], x: Any, y: Any) -> None:
    """Horner's rule, highest power first, into y."""
    multiply(x, number(coefficients[0], x.dtype), y)
    for coefficient in coefficients[1:-1]:
        add(y, number(coefficient, x.dtype), y)
        multiply(y, x, y)
    add(y, number(coefficients[-1], x.dtype), y)


def _erf(x: Any, y: Any, square: Any) -> None:
    """erf(x / sqrt 2) into y, in single precision; x^2 stays in ``square``.

    erf(z) is the tanh of an odd polynomial. Where z is beyond the polynomial's range, the tanh is
    1 or -1; where powers of z overflow, too.
    """
    multiply(x, x, square)
    _polynomial(_HALVED, square, y)
    multiply(y, x, y)
    tanh(y, y)


_HALVED = tuple(c * 0.5 ** (len(SINGLE) - 1 - i) * _SQRT_HALF for i, c in enumerate(SINGLE))
"""The polynomial of ``_erf``, as one of x^2 in place of (x / sqrt 2)^2."""


def _weigh(x: Any, y: Any, spare: Any) -> None:
    """x (1 + y) / 2 into y."""
    add(y, number(1.0, x.dtype), y)
    multiply(x, number(0.5, x.dtype), spare)
    multiply(y, spare, y)


def gelu(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """x (1 + erf(x / sqrt 2)) / 2, in single precision."""
    (x,), (y,), (square,) = inputs, outputs, scratch
    with numpy.errstate(over="ignore"):
        _erf(x, y, square)
    _weigh(x, y, square)


def gelu_gradient(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """gy ((1 + erf(x / sqrt 2)) / 2 + x e^(-x^2/2) / sqrt(2 pi)), in single precision."""
    (x, gy), (gx,), (square, held) = inputs, outputs, scratch
    half = number(0.5, x.dtype)
    _hold(x, _DENSITY_ENDS, held)
    _erf(held, gx, square)
    multiply(gx, half, gx)
    add(gx, half, gx)
    multiply(square, number(-0.5, x.dtype), square)
    exp(square, square)
    multiply(square, number(_DENSITY, x.dtype), square)
    multiply(square, held, square)
    add(gx, square, gx)
    multiply(gx, gy, gx)


def _tanh_of_cubic(x: Any, y: Any, square: Any) -> None:
    """tanh(c (x + a x^3)) into y, 1 or -1 where x^3 overflows; x^2 stays in ``square``."""
    multiply(x, x, square)
    multiply(square, number(_CUBIC * _SCALE, x.dtype), y)
    add(y, number(_SCALE, x.dtype), y)
    multiply(y, x, y)
    tanh(y, y)


def tanh_gelu(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """x (1 + tanh(c (x + a x^3))) / 2."""
    (x,), (y,), (square,) = inputs, outputs, scratch
    with numpy.errstate(over="ignore"):
        _tanh_of_cubic(x, y, square)
    _weigh(x, y, square)


def tanh_gelu_gradient(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """gy (1 + t + x (1 - t^2) u) / 2, with t the tanh and u = c (1 + 3 a x^2)."""
    (x, gy), (gx,), (square, t) = inputs, outputs, scratch
    one = number(1.0, x.dtype)
    _hold(x, _TANH_ENDS, gx)
    _tanh_of_cubic(gx, t, square)
    multiply(square, number(3.0 * _CUBIC * _SCALE, x.dtype), square)
    add(square, number(_SCALE, x.dtype), square)
    multiply(square, gx, square)
    multiply(t, t, gx)
    subtract(one, gx, gx)
    multiply(gx, square, gx)
    add(gx, t, gx)
    add(gx, one, gx)
    multiply(gx, number(0.5, x.dtype), gx)
    multiply(gx, gy, gx)

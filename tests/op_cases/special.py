"""Rows of special functions, against Python's ``math`` and against series."""

from __future__ import annotations

import math
from functools import partial, wraps
from typing import Any

import numpy as np

from op_cases.rows import (
    INTEGERS,
    Input,
    few,
    nz,
    pos,
    row,
    x,
)
from tinynode import functions as fn
from tinynode.functions.special import ErfInvSlope

EULER = 0.5772156649015329


# --- special functions ---------------------------------------------------------------------------


def inside(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-0.95, 0.95, size=shape)


def elementwise(f: Any) -> Any:
    """A function of Python's ``math`` on arrays, in the dtype of the argument."""

    def call(x: Any) -> Any:
        values = [f(v) for v in np.asarray(x, np.float64).ravel().tolist()]
        return np.asarray(values, np.float64).reshape(np.shape(x)).astype(np.asarray(x).dtype)

    return call


def bisected_erfinv(y: float) -> float:
    low, high = -8.0, 8.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return low


def long_polygamma(n: int, x: float) -> float:
    """By reflection, 400 steps of the recurrence, and the first terms of Stirling's series."""
    if n == 0 and x < 0:
        return long_polygamma(0, 1 - x) - math.pi / math.tan(math.pi * x)
    if n == 1 and x < 0:
        return -long_polygamma(1, 1 - x) + (math.pi / math.sin(math.pi * x)) ** 2
    w = x + 400
    if n == 0:
        terms = [-1 / (x + k) for k in range(400)]
        return math.fsum([*terms, math.log(w), -0.5 / w, -1 / (12 * w**2), 1 / (120 * w**4)])
    terms = [1 / (x + k) ** (n + 1) * math.factorial(n) for k in range(400)]
    terms += [math.factorial(n - 1) / w**n, math.factorial(n) / (2 * w ** (n + 1))]
    terms += [
        math.factorial(n + 1) / (12 * w ** (n + 2)),
        -math.factorial(n + 3) / 720 / w ** (n + 4),
    ]
    return (-1) ** (n + 1) * math.fsum(terms)


for f, ref, make in (
    (fn.erfc, elementwise(math.erfc), x),
    (fn.erfinv, elementwise(bisected_erfinv), lambda *s, **m: Input(s, inside, **m)),
    (fn.lgamma, elementwise(math.lgamma), pos),
    (fn.digamma, elementwise(partial(long_polygamma, 0)), pos),
):
    row(f.__name__, "matrix", f, ref, make(3, 4))
    row(f.__name__, "0-d", f, ref, make())
    row(f.__name__, "zero-size", f, ref, make(0, 3))
    row(f.__name__, "transposed", f, ref, make(3, 4, layout="transposed"))
row("ErfInvSlope", "node", lambda x: ErfInvSlope().apply((x,))[0],
    lambda x: math.sqrt(math.pi) / 2 * np.exp(elementwise(bisected_erfinv)(x) ** 2),
    Input((3, 4), inside))  # fmt: skip
wide = Input((9,), lambda rng, s: np.linspace(-5.9, 25.0, 9))
row("erfc", "far", fn.erfc, elementwise(math.erfc), wide)
below = Input((7,), lambda rng, s: np.linspace(-4.3, -0.2, 7))
row("lgamma", "below-0", fn.lgamma, elementwise(math.lgamma), below)
row("digamma", "below-0", fn.digamma, elementwise(partial(long_polygamma, 0)), below)
row("digamma", "large", fn.digamma, elementwise(partial(long_polygamma, 0)),
    Input((3,), lambda rng, s: np.array([30.0, 1e3, 1e6])))  # fmt: skip


@wraps(fn.polygamma)
def polygamma(x: Any, n: int) -> Any:
    return fn.polygamma(n, x)


def np_polygamma(x: Any, n: int) -> Any:
    return elementwise(partial(long_polygamma, n))(x)


for order in (0, 1, 3):
    row("polygamma", f"order-{order}", polygamma, np_polygamma, pos(3, 4), n=order)
row("polygamma", "below-0", polygamma, np_polygamma, below, n=1)

row("rsqrt", "matrix", fn.rsqrt, lambda x: 1 / np.sqrt(x), pos(3, 4))
for what, s, t in (("same-shape", (2, 3), (2, 3)), ("broadcast", (2, 1), (4,)), ("0-d", (), ())):
    row("fmod", what, fn.fmod, np.fmod, x(*s), nz(*t))
row("fmod", "number", lambda x: fn.fmod(x * 5, 2.5), lambda x: np.fmod(x * 5, 2.5), x(3, 4))
row("fmod", "integers", fn.fmod, np.fmod, few(3, 4),
    Input((3, 4), lambda rng, s: rng.integers(1, 4, s)), order=0, dtypes=INTEGERS)  # fmt: skip

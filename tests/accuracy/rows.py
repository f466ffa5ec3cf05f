"""The rows of the table: each elementwise function with its value and derivatives by mpmath.

A row has one variable. A function of two variables has rows with a constant in the other place.
The constants "large" and "small" depend on the dtype: see ``constant``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpmath import mp, mpf

from tinynode import functions as fn

INF = float("inf")


@dataclass(frozen=True)
class Row:
    """One function of one variable.

    Attributes:
        name: the exported name, then what is special in this row.
        function: takes a Variable x, and the constant if there is one.
        exact: the value, the first and the second derivative as functions of mpmath.
        domain: the least and the largest x.
        marks: poles, branch points, zeros, and thresholds of the code.
        constant: the other operand: a number, "large", "small", or None.
        special: a special function: 8 ulp are allowed.
        at_zeros: a function of gamma without poles: negative integers are measured, too.
    """

    name: str
    function: Callable[..., Any]
    exact: tuple[Callable[..., Any], ...]
    domain: tuple[float, float] = (-INF, INF)
    marks: tuple[float, ...] = ()
    constant: float | str | None = None
    special: bool = False
    at_zeros: bool = False


ROWS: list[Row] = []
PRECISION = 250
"""Bits of the true results."""
ONE, HALF = mpf(1), mpf(0.5)
ABOVE_0, INSIDE = (0.0, INF), (-1.0, 1.0)


def row(name: str, function: Any, *exact: Any, **more: Any) -> None:
    """Add a row to the table."""
    ROWS.append(Row(name, function, exact, **more))


def flat(x: Any, *_: Any) -> Any:
    """The derivative of a piecewise constant function."""
    return mpf(0)


def one(x: Any, *_: Any) -> Any:
    return ONE


# --- arithmetic and rounding ---------------------------------------------------------------------

for name, rounded in (("floor", mp.floor), ("ceil", mp.ceil), ("round", mp.nint)):
    row(name, getattr(fn, name), rounded, marks=(0.5, 1.0, 1.5, -0.5, -1.0, -1.5))
row("trunc", fn.trunc, lambda x: mp.sign(x) * mp.floor(abs(x)), marks=(0.5, 1.0, -1.0))
row("sign", fn.sign, mp.sign)
row("abs", fn.abs, abs, mp.sign, flat)
row("negative", fn.negative, lambda x: -x, lambda x: -ONE, flat)
row("square", fn.square, lambda x: x**2, lambda x: 2 * x, lambda x: mpf(2))
row("add", fn.add, lambda x, c: x + c, one, flat, constant=3.0, marks=(-3.0,))
row("subtract", fn.subtract, lambda x, c: x - c, one, flat, constant=3.0, marks=(3.0,))
row("multiply", fn.multiply, lambda x, c: x * c, lambda x, c: c, flat, constant=3.0)
row("zero_safe_multiply", fn.zero_safe_multiply, lambda x, c: x * c, lambda x, c: c, flat,
    constant=3.0)  # fmt: skip
row("zero_safe_divide", lambda x, c: fn.zero_safe_divide(c, x), lambda x, c: c / x,
    lambda x, c: -c / x**2, lambda x, c: 2 * c / x**3, constant=3.0)  # fmt: skip
row("multiply by itself", lambda x: x * x, lambda x: x**2, lambda x: 2 * x, lambda x: mpf(2))
for c in (3.0, "large", "small"):
    row(f"divide, x / {c}", fn.divide, lambda x, c: x / c, lambda x, c: 1 / c, flat, constant=c)
    row(
        f"divide, {c} / x",
        lambda x, c: fn.divide(c, x),
        lambda x, c: c / x,
        lambda x, c: -c / x**2,
        lambda x, c: 2 * c / x**3,
        constant=c,
    )
row("reciprocal", fn.reciprocal, lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3)


def fmod(x: Any, y: Any) -> Any:
    return mp.sign(x) * mp.fmod(abs(x), abs(y))


def whole(x: Any, y: Any) -> Any:
    """floor(x / y), exactly."""
    with mp.workprec(2400):
        return mp.floor(x / y)


def whole_part(x: Any, y: Any) -> Any:
    """trunc(x / y), exactly."""
    return mp.sign(x) * mp.sign(y) * whole(abs(x), abs(y))


def remainder(x: Any, y: Any) -> Any:
    with mp.workprec(4600):
        return x - mp.floor(x / y) * y


for c in (2.75, -0.3):
    row(f"remainder, x % {c}", fn.remainder, remainder, one, flat, constant=c)
    row(f"fmod of x by {c}", fn.fmod, fmod, one, flat, constant=c)
row(
    "remainder, 2.75 % x",
    lambda x, c: fn.remainder(c, x),
    lambda x, c: remainder(c, x),
    lambda x, c: -whole(c, x),
    flat,
    constant=2.75,
    marks=(2.75, -2.75, 0.25, 0.6875),
)
row(
    "fmod of 2.75 by x",
    lambda x, c: fn.fmod(c, x),
    lambda x, c: fmod(c, x),
    lambda x, c: -whole_part(c, x),
    flat,
    constant=2.75,
    marks=(2.75, -2.75, 0.25, 0.6875),
)
for c in (1.5, -0.5):
    bigger, smaller = lambda x, c: max(x, c), lambda x, c: min(x, c)
    above, below = lambda x, c: (1 + mp.sign(x - c)) / 2, lambda x, c: (1 - mp.sign(x - c)) / 2
    row(f"maximum, {c}", fn.maximum, bigger, above, flat, constant=c)
    row(f"minimum, {c}", fn.minimum, smaller, below, flat, constant=c)
    row(f"copysign, {c}", fn.copysign, lambda x, c: abs(x) * mp.sign(c),
        lambda x, c: mp.sign(x) * mp.sign(c), flat, constant=c)  # fmt: skip


# --- powers, roots, exponentials, logarithms -----------------------------------------------------


def power(c: float) -> tuple[Any, Any, Any]:
    """x^c with its derivatives."""
    c = mpf(c)
    return (
        lambda x: x**c,
        lambda x: c * x ** (c - 1),
        lambda x: c * (c - 1) * x ** (c - 2),
    )


row("sqrt", fn.sqrt, mp.sqrt, lambda x: HALF / mp.sqrt(x), lambda x: -HALF / 2 / mp.sqrt(x) ** 3,
    domain=ABOVE_0)  # fmt: skip
row("rsqrt", fn.rsqrt, *power(-0.5), domain=ABOVE_0)
for c in (3, 5, -1, -2):
    row(f"pow, x^{c}", partial(lambda x, c: fn.pow(x, c), c=c), *power(c))
for c in (0.5, 1.5, -0.5, -1.5, 0.1):
    row(f"pow, x^{c}", partial(lambda x, c: fn.pow(x, c), c=c), *power(c), domain=ABOVE_0)
for c in (2.0, 2.75, 0.5):
    row(
        f"pow, {c}^x",
        lambda x, c: fn.pow(c, x),
        lambda x, c: c**x,
        lambda x, c: c**x * mp.log(c),
        lambda x, c: c**x * mp.log(c) ** 2,
        constant=c,
    )
row("exp", fn.exp, mp.exp, mp.exp, mp.exp)
row("expm1", fn.expm1, mp.expm1, mp.exp, mp.exp)
for name, base in (("log", mp.e), ("log2", mpf(2)), ("log10", mpf(10))):
    row(
        name,
        getattr(fn, name),
        partial(lambda x, b: mp.log(x) / mp.log(b), b=base),
        partial(lambda x, b: 1 / x / mp.log(b), b=base),
        partial(lambda x, b: -1 / x**2 / mp.log(b), b=base),
        domain=ABOVE_0,
        marks=(1.0,),
    )
row("log1p", fn.log1p, mp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2,
    domain=(-1.0, INF), marks=(-1.0,))  # fmt: skip


# --- trigonometric and hyperbolic functions ------------------------------------------------------


def circle(x: Any) -> Any:
    """1 - x^2."""
    return (1 - x) * (1 + x)


def hyperbola(x: Any) -> Any:
    """x^2 - 1."""
    return (x - 1) * (x + 1)


TURNS = (1.5707963267948966, 3.141592653589793, 4.71238898038469, 11.0, -3.141592653589793)
row("sin", fn.sin, mp.sin, mp.cos, lambda x: -mp.sin(x), marks=TURNS)
row("cos", fn.cos, mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x), marks=TURNS)
row("tan", fn.tan, mp.tan, lambda x: mp.sec(x) ** 2, lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2,
    marks=TURNS)  # fmt: skip
row("asin", fn.asin, mp.asin, lambda x: 1 / mp.sqrt(circle(x)),
    lambda x: x / mp.sqrt(circle(x)) ** 3, domain=INSIDE, marks=INSIDE)  # fmt: skip
row("acos", fn.acos, mp.acos, lambda x: -1 / mp.sqrt(circle(x)),
    lambda x: -x / mp.sqrt(circle(x)) ** 3, domain=INSIDE, marks=INSIDE)  # fmt: skip
row("atan", fn.atan, mp.atan, lambda x: 1 / (1 + x**2), lambda x: -2 * x / (1 + x**2) ** 2)
row("sinh", fn.sinh, mp.sinh, mp.cosh, mp.sinh)
row("cosh", fn.cosh, mp.cosh, mp.sinh, mp.cosh)
row("tanh", fn.tanh, mp.tanh, lambda x: mp.sech(x) ** 2,
    lambda x: -2 * mp.tanh(x) * mp.sech(x) ** 2)  # fmt: skip
row("asinh", fn.asinh, mp.asinh, lambda x: 1 / mp.sqrt(1 + x**2),
    lambda x: -x / mp.sqrt(1 + x**2) ** 3)  # fmt: skip
row("acosh", fn.acosh, mp.acosh, lambda x: 1 / mp.sqrt(hyperbola(x)),
    lambda x: -x / mp.sqrt(hyperbola(x)) ** 3, domain=(1.0, INF), marks=(1.0,))  # fmt: skip
row("atanh", fn.atanh, mp.atanh, lambda x: 1 / circle(x), lambda x: 2 * x / circle(x) ** 2,
    domain=INSIDE, marks=INSIDE)  # fmt: skip
for c in (1.0, -1.0, 300.0, "large", "small"):
    row(
        f"atan2 of (x, {c})",
        fn.atan2,
        lambda y, c: mp.atan2(y, c),
        lambda y, c: c / (c**2 + y**2),
        lambda y, c: -2 * c * y / (c**2 + y**2) ** 2,
        constant=c,
    )
    row(
        f"atan2 of ({c}, x)",
        lambda x, c: fn.atan2(c, x),
        lambda x, c: mp.atan2(c, x),
        lambda x, c: -c / (c**2 + x**2),
        lambda x, c: 2 * c * x / (c**2 + x**2) ** 2,
        constant=c,
    )
for c in (1.0, "large", "small"):
    row(
        f"hypot, {c}",
        fn.hypot,
        lambda x, c: mp.sqrt(x**2 + c**2),
        lambda x, c: x / mp.sqrt(x**2 + c**2),
        lambda x, c: c**2 / mp.sqrt(x**2 + c**2) ** 3,
        constant=c,
    )


# --- sigmoids, and activation functions ----------------------------------------------------------


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def bell(x: Any) -> Any:
    """The derivative of sigmoid."""
    return sigmoid(x) * sigmoid(-x)


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def normal(x: Any) -> Any:
    """The normal distribution."""
    if abs(x) > 1e4:  # the result underflows, and mpmath would take long
        return mpf(x > 0)
    return mp.erfc(-x / mp.sqrt(2)) / 2


def density(x: Any) -> Any:
    return mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)


row("sigmoid", fn.sigmoid, sigmoid, bell, lambda x: -bell(x) * mp.tanh(x / 2))
row("log_sigmoid", fn.log_sigmoid, lambda x: -softplus(-x), lambda x: sigmoid(-x),
    lambda x: -bell(x))  # fmt: skip
row("softplus", fn.softplus, softplus, sigmoid, bell)
row("softplus, beta 2", lambda x: fn.softplus(x, 2.0), lambda x: softplus(2 * x) / 2,
    lambda x: sigmoid(2 * x), lambda x: 2 * bell(2 * x))  # fmt: skip
ROOT_OF_SLOPE = -1.2784645427610738
silu_rows = (
    lambda x: x * sigmoid(x),
    lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
    lambda x: bell(x) * (2 - x * mp.tanh(x / 2)),
)
row("silu", fn.silu, *silu_rows, marks=(ROOT_OF_SLOPE,))
row("silu, beta 2", lambda x: fn.silu(x, 2.0), lambda x: silu_rows[0](2 * x) / 2,
    lambda x: silu_rows[1](2 * x), lambda x: 2 * silu_rows[2](2 * x))  # fmt: skip
row("gelu", fn.gelu, lambda x: x * normal(x), lambda x: normal(x) + x * density(x),
    lambda x: density(x) * (2 - x**2), marks=(-0.7517915246935645, 1.4142135),
    special=True)  # fmt: skip
with mp.workprec(PRECISION):
    CUBIC, SCALE = mpf(0.044715), mp.sqrt(2 / mp.pi)


def inner(x: Any) -> Any:
    return SCALE * (x + CUBIC * x**3)


def inner_slope(x: Any) -> Any:
    return SCALE * (1 + 3 * CUBIC * x**2)


def tanh_gelu_bend(x: Any) -> Any:
    u = 2 * inner(x)
    first, second = 2 * inner_slope(x), 12 * SCALE * CUBIC * x
    slope = bell(u)
    return 2 * slope * first + x * (slope * second - slope * mp.tanh(u / 2) * first**2)


row(
    "gelu by tanh",
    lambda x: fn.gelu(x, approximate=True),
    lambda x: x * sigmoid(2 * inner(x)),
    lambda x: sigmoid(2 * inner(x)) + x * bell(2 * inner(x)) * 2 * inner_slope(x),
    tanh_gelu_bend,
)


def ramp(x: Any) -> Any:
    """hard_sigmoid."""
    return min(max(x / 6 + HALF, mpf(0)), ONE)


row("hard_sigmoid", fn.hard_sigmoid, ramp, lambda x: mpf(abs(x) <= 3) / 6, flat,
    marks=(3.0, -3.0))  # fmt: skip
row("hard_silu", fn.hard_silu, lambda x: x * ramp(x),
    lambda x: ramp(x) + (x / 6 if abs(x) < 3 else 0), lambda x: mpf(abs(x) < 3) / 3,
    marks=(3.0, -3.0, -1.5))  # fmt: skip


def elu(alpha: Any, scale: Any) -> tuple[Any, Any, Any]:
    factor = mpf(alpha) * mpf(scale)
    return (
        lambda x: scale * x if x > 0 else factor * mp.expm1(x),
        lambda x: mpf(scale) if x > 0 else factor * mp.exp(x),
        lambda x: mpf(0) if x > 0 else factor * mp.exp(x),
    )


row("elu", fn.elu, *elu(1.0, 1.0))
row("selu", fn.selu, *elu(1.6732632423543772, 1.0507009873554805))
row("relu", fn.relu, lambda x: max(x, mpf(0)), lambda x: mpf(x > 0), flat)
row("relu6", fn.relu6, lambda x: min(max(x, mpf(0)), mpf(6)), lambda x: mpf(0 <= x <= 6), flat,
    marks=(6.0,))  # fmt: skip
row("clipped_relu", lambda x: fn.clipped_relu(x, 2.5), lambda x: min(max(x, mpf(0)), mpf(2.5)),
    lambda x: mpf(0 <= x <= 2.5), flat, marks=(2.5,))  # fmt: skip
row("clip", lambda x: fn.clip(x, -0.5, 1.5), lambda x: min(max(x, -HALF), 3 * HALF),
    lambda x: mpf(-0.5 <= x <= 1.5), flat, marks=(-0.5, 1.5))  # fmt: skip
row("leaky_relu", lambda x: fn.leaky_relu(x, 0.25), lambda x: x if x > 0 else x / 4,
    lambda x: ONE if x > 0 else ONE / 4, flat)  # fmt: skip
row("hard_tanh", fn.hard_tanh, lambda x: min(max(x, -ONE), ONE), lambda x: mpf(abs(x) <= 1), flat,
    marks=(-1.0, 1.0))  # fmt: skip
for c in (1.0, -2.0, 20.0):
    row(
        f"logaddexp, {c}",
        fn.logaddexp,
        lambda x, c: c + softplus(x - c),
        lambda x, c: sigmoid(x - c),
        lambda x, c: bell(x - c),
        constant=c,
        marks=(c,),
    )


def binary(x: Any, t: Any) -> Any:
    """Cross entropy of sigmoid."""
    return t * softplus(-x) + (1 - t) * softplus(x)


for c in (0.0, 1.0, 0.25):
    row(
        f"sigmoid_cross_entropy, label {c}",
        lambda x, t: fn.sigmoid_cross_entropy(x, fn.broadcast_to(t, x.shape), "none"),
        binary,
        lambda x, t: (1 - t) * sigmoid(x) - t * sigmoid(-x),
        lambda x, t: bell(x),
        constant=c,
    )


row("huber", lambda x, d: fn.huber(x, x.detach() * 0.0, 1.5, "none"),
    lambda x, d: x**2 / 2 if abs(x) <= d else d * (abs(x) - d / 2),
    lambda x, d: min(max(x, -d), d), lambda x, d: mpf(abs(x) <= d), constant=1.5,
    marks=(1.5, -1.5))  # fmt: skip
for c in (0.25, 0.75):
    row(f"kl_divergence of ({c}, x)",
        lambda p, q: fn.kl_divergence(fn.broadcast_to(q, p.shape), p, "none"),
        lambda p, q: p * (mp.log(p) - q), lambda p, q: mp.log(p) - q + 1, lambda p, q: 1 / p,
        constant=c, domain=(0.0, 1.0), marks=(1.0,))  # fmt: skip
    row(f"kl_divergence of (x, {c})",
        lambda q, p: fn.kl_divergence(q, fn.broadcast_to(p, q.shape), "none"),
        lambda q, p: p * (mp.log(p) - q), lambda q, p: -p, flat,
        constant=c, domain=(-INF, 0.0))  # fmt: skip


def beside_zero(x: Any) -> Any:
    """Rows [x_i, 0]: as scores of two classes they are those of sigmoid."""
    return fn.stack([x, x * 0.0], axis=1)


def cross_entropy(x: Any, label: int) -> Any:
    labels = fn.astype(fn.sign(x.detach()) * 0.0 + float(label), "int64")
    return fn.softmax_cross_entropy(beside_zero(x), labels, "none")


FINITE = (-1e4, 1e4)  # a row [x, 0] has x * 0, which is NaN at infinity
row("softmax_cross_entropy, [x, 0], label 0", partial(cross_entropy, label=0),
    lambda x: softplus(-x), lambda x: -sigmoid(-x), bell, domain=FINITE)  # fmt: skip
row("softmax_cross_entropy, [x, 0], label 1", partial(cross_entropy, label=1),
    softplus, sigmoid, bell, domain=FINITE)  # fmt: skip
row("log_softmax, [x, 0]", lambda x: fn.log_softmax(beside_zero(x))[:, 0],
    lambda x: -softplus(-x), lambda x: sigmoid(-x), lambda x: -bell(x),
    domain=FINITE)  # fmt: skip


# --- special functions ---------------------------------------------------------------------------

with mp.workprec(PRECISION):
    TWO_BY_ROOT_PI = 2 / mp.sqrt(mp.pi)


def gauss(x: Any) -> Any:
    return TWO_BY_ROOT_PI * mp.exp(-(x**2))


def tail(x: Any) -> Any:
    if abs(x) > 1e4:  # as in ``normal``
        return mpf(2 * (x < 0))
    return mp.erfc(x)


row("erf", fn.erf, lambda x: 1 - tail(x) if abs(x) > 1 else mp.erf(x), gauss,
    lambda x: -2 * x * gauss(x), special=True, marks=(1.0, 3.95, 6.0))  # fmt: skip
row("erfc", fn.erfc, tail, lambda x: -gauss(x), lambda x: 2 * x * gauss(x), special=True,
    marks=(2.0, -2.0))  # fmt: skip
row("erfinv", fn.erfinv, mp.erfinv, lambda x: mp.exp(mp.erfinv(x) ** 2) / TWO_BY_ROOT_PI,
    lambda x: 2 * mp.erfinv(x) * mp.exp(2 * mp.erfinv(x) ** 2) / TWO_BY_ROOT_PI**2,
    special=True, domain=INSIDE, marks=(-1.0, 1.0, 0.5))  # fmt: skip
POLES = (1.0, 2.0, 1.4616321449683622, -1.0, -2.0, -0.5040830082644554, -2.457024738220801)
GAMMA_DOMAIN = (-30.0, INF)
for n, name in enumerate(("lgamma", "digamma", "polygamma, order 1", "polygamma, order 2")):
    function = (fn.lgamma, fn.digamma, partial(fn.polygamma, 1), partial(fn.polygamma, 2))[n]
    psi = [lambda x: mp.re(mp.loggamma(x))]
    psi += [partial(lambda x, k: mp.psi(k, x), k=k) for k in range(5)]
    row(name, function, *psi[n : n + 3], special=True, domain=GAMMA_DOMAIN, marks=POLES)

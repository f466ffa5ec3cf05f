"""Derivatives of special functions: what ``xp.special`` needs to differentiate.

A rule is a function of the arguments, the value and the position of an argument. It gives the
derivative with respect to that argument, made of differentiable functions. None says that there is
no rule for the position. So each rule is right to second order, and beyond.

Source: NIST Digital Library of Mathematical Functions, chapters 5 to 10 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tinynode import functions
from tinynode.core.variable import Variable

Rule: TypeAlias = Callable[[Any, tuple[Variable, ...], Variable, int], Variable | None]
"""``rule(special, arguments, value, position)``: the derivative, or None."""

ROOT_2_PI = math.sqrt(2 * math.pi)


def ndtr(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """e^(-x^2 / 2) / sqrt(2 pi)"""
    return functions.exp(xs[0] * xs[0] * -0.5) / ROOT_2_PI


def log_ndtr(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """e^(-x^2 / 2 - y) / sqrt(2 pi)"""
    return functions.exp(xs[0] * xs[0] * -0.5 - y) / ROOT_2_PI


def ndtri(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """sqrt(2 pi) e^(y^2 / 2)"""
    return functions.exp(y * y * 0.5) * ROOT_2_PI


def ndtri_exp(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """sqrt(2 pi) e^(x + y^2 / 2)"""
    return functions.exp(xs[0] + y * y * 0.5) * ROOT_2_PI


def erfcinv(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """-sqrt(pi) / 2 e^(y^2)"""
    return functions.exp(y * y) * (-math.sqrt(math.pi) / 2)


def erfcx(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """2 x y - 2 / sqrt(pi)"""
    return xs[0] * y * 2.0 - 2 / math.sqrt(math.pi)


def dawsn(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """1 - 2 x y"""
    return 1.0 - xs[0] * y * 2.0


def entr(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """-log(x) - 1"""
    return -functions.log(xs[0]) - 1.0


def logit(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """1 / (x (1 - x))"""
    return 1.0 / (xs[0] * (1.0 - xs[0]))


def i0(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """i1(x)"""
    return special.i1(xs[0])  # type: ignore[no-any-return]


def i0e(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """i1e(x) - sign(x) y"""
    return special.i1e(xs[0]) - functions.sign(xs[0]) * y  # type: ignore[no-any-return]


def i1(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """(i0(x) + iv(2, x)) / 2, which needs no division by x"""
    return (special.i0(xs[0]) + special.iv(2.0, xs[0])) * 0.5  # type: ignore[no-any-return]


def i1e(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """(i0e(x) + ive(2, x)) / 2 - sign(x) y"""
    half = (special.i0e(xs[0]) + special.ive(2.0, xs[0])) * 0.5
    return half - functions.sign(xs[0]) * y  # type: ignore[no-any-return]


def iv(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: (iv(v - 1, x) + iv(v + 1, x)) / 2"""
    v, x = xs
    return None if i == 0 else (special.iv(v - 1.0, x) + special.iv(v + 1.0, x)) * 0.5


def ive(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: (ive(v - 1, x) + ive(v + 1, x)) / 2 - sign(x) y"""
    v, x = xs
    if i == 0:
        return None
    half = (special.ive(v - 1.0, x) + special.ive(v + 1.0, x)) * 0.5
    return half - functions.sign(x) * y  # type: ignore[no-any-return]


def j0(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """-j1(x)"""
    return -special.j1(xs[0])  # type: ignore[no-any-return]


def j1(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """(j0(x) - jv(2, x)) / 2"""
    return (special.j0(xs[0]) - special.jv(2.0, xs[0])) * 0.5  # type: ignore[no-any-return]


def jv(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: (jv(v - 1, x) - jv(v + 1, x)) / 2"""
    v, x = xs
    return None if i == 0 else (special.jv(v - 1.0, x) - special.jv(v + 1.0, x)) * 0.5


def kv(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: -(kv(v - 1, x) + kv(v + 1, x)) / 2"""
    v, x = xs
    return None if i == 0 else (special.kv(v - 1.0, x) + special.kv(v + 1.0, x)) * -0.5


def betaln(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """digamma(x_i) - digamma(x_0 + x_1)"""
    return functions.digamma(xs[i]) - functions.digamma(xs[0] + xs[1])


def beta(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """y (digamma(x_i) - digamma(x_0 + x_1))"""
    return y * betaln(special, xs, y, i)


def gamma(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """y digamma(x)"""
    return y * functions.digamma(xs[0])


def rgamma(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """-y digamma(x)"""
    return -y * functions.digamma(xs[0])


def betainc(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: x^(a - 1) (1 - x)^(b - 1) / B(a, b)"""
    a, b, x = xs
    if i != 2:
        return None
    power = special.xlogy_(a - 1.0, x) + special.xlog1py_(b - 1.0, -x)
    return functions.exp(power - special.betaln(a, b))


def gammainc(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: x^(a - 1) e^-x / gamma(a)"""
    a, x = xs
    return None if i == 0 else functions.exp(special.xlogy_(a - 1.0, x) - x - functions.lgamma(a))


def gammaincc(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: -x^(a - 1) e^-x / gamma(a)"""
    rate = gammainc(special, xs, y, i)
    return None if rate is None else -rate


def fdtr(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: the density of the F distribution with n and m degrees of freedom."""
    n, m, x = xs
    if i != 2:
        return None
    half_n, half_m = n * 0.5, m * 0.5
    power = special.xlogy_(half_n - 1.0, x) - (half_n + half_m) * functions.log1p(x * n / m)
    return functions.exp(power + half_n * functions.log(n / m) - special.betaln(half_n, half_m))


def fdtrc(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In x: minus the density of the F distribution with n and m degrees of freedom."""
    density = fdtr(special, xs, y, i)
    return None if density is None else -density


def zeta(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable | None:
    """In q: -s zeta(s + 1, q)"""
    if len(xs) == 1 or i == 0:
        return None
    s, q = xs
    return -s * special.zeta(s + 1.0, q)  # type: ignore[no-any-return]


def exp1(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """-e^-x / x"""
    return -functions.exp(-xs[0]) / xs[0]


def expi(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """e^x / x"""
    return functions.exp(xs[0]) / xs[0]


def exp2(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """y log(2)"""
    return y * math.log(2.0)


def exp10(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """y log(10)"""
    return y * math.log(10.0)


def cbrt(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """1 / (3 y^2)"""
    return 1.0 / (y * y * 3.0)


def spence(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """log(x) / (1 - x)"""
    return functions.log(xs[0]) / (1.0 - xs[0])


def kl_div(special: Any, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
    """In x: log(x / y).   In y: 1 - x / y"""
    return functions.log(xs[0] / xs[1]) if i == 0 else 1.0 - xs[0] / xs[1]


RULES: dict[str, Rule] = {
    "beta": beta,
    "betainc": betainc,
    "betaln": betaln,
    "cbrt": cbrt,
    "dawsn": dawsn,
    "entr": entr,
    "erfcinv": erfcinv,
    "erfcx": erfcx,
    "exp1": exp1,
    "exp10": exp10,
    "exp2": exp2,
    "expi": expi,
    "fdtr": fdtr,
    "fdtrc": fdtrc,
    "gamma": gamma,
    "gammainc": gammainc,
    "gammaincc": gammaincc,
    "i0": i0,
    "i0e": i0e,
    "i1": i1,
    "i1e": i1e,
    "iv": iv,
    "ive": ive,
    "j0": j0,
    "j1": j1,
    "jv": jv,
    "kl_div": kl_div,
    "kv": kv,
    "log_ndtr": log_ndtr,
    "logit": logit,
    "ndtr": ndtr,
    "ndtri": ndtri,
    "ndtri_exp": ndtri_exp,
    "rgamma": rgamma,
    "spence": spence,
    "_zeta": zeta,
}
"""The rules, by the names of scipy.special."""

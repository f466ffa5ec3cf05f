"""The derivatives of Bessel functions, of integrals and of hypergeometric series.

The rules are as in ``special_rules``, which adds ``SERIES_TABLE`` to the table of all rules.
Source of the formulas: NIST Digital Library of Mathematical Functions, chapters 6, 8, 10, 13, 15,
19 and 25.
"""

from __future__ import annotations

import math

from tinynode.array_api.special_nodes import Rule, special
from tinynode.core.variable import Variable
from tinynode.functions import abs, exp, log, sign, where

# --- Bessel functions ----------------------------------------------------------------------------


def _i0(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """i1(x)"""
    return special("i1", xs[0])


def _i0e(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """i1e(x) - sign(x) y"""
    return special("i1e", xs[0]) - sign(xs[0]) * y


def _i1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(i0(x) + iv(2, x)) / 2"""
    (x,) = xs
    return (special("i0", x) + special("iv", 2.0, x)) * 0.5


def _i1e(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(i0e(x) + ive(2, x)) / 2 - sign(x) y"""
    (x,) = xs
    return (special("i0e", x) + special("ive", 2.0, x)) * 0.5 - sign(x) * y


def _iv_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(iv(v - 1, x) + iv(v + 1, x)) / 2"""
    v, x = xs
    return (special("iv", v - 1.0, x) + special("iv", v + 1.0, x)) * 0.5


def _ive_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(ive(v - 1, x) + ive(v + 1, x)) / 2 - sign(x) y"""
    v, x = xs
    return (special("ive", v - 1.0, x) + special("ive", v + 1.0, x)) * 0.5 - sign(x) * y


def _j0(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-j1(x)"""
    return -special("j1", xs[0])


def _j1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(j0(x) - jv(2, x)) / 2"""
    (x,) = xs
    return (special("j0", x) - special("jv", 2.0, x)) * 0.5


def _jv_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(jv(v - 1, x) - jv(v + 1, x)) / 2"""
    v, x = xs
    return (special("jv", v - 1.0, x) - special("jv", v + 1.0, x)) * 0.5


def _y0(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-y1(x)"""
    return -special("y1", xs[0])


def _y1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(y0(x) - yv(2, x)) / 2"""
    (x,) = xs
    return (special("y0", x) - special("yv", 2.0, x)) * 0.5


def _yv_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(yv(v - 1, x) - yv(v + 1, x)) / 2"""
    v, x = xs
    return (special("yv", v - 1.0, x) - special("yv", v + 1.0, x)) * 0.5


def _k0(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-k1(x)"""
    return -special("k1", xs[0])


def _k0e(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y - k1e(x)"""
    return y - special("k1e", xs[0])


def _k1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-(k0(x) + kv(2, x)) / 2"""
    (x,) = xs
    return (special("k0", x) + special("kv", 2.0, x)) * -0.5


def _k1e(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y - (k0e(x) + kve(2, x)) / 2"""
    (x,) = xs
    return y - (special("k0e", x) + special("kve", 2.0, x)) * 0.5


def _kv_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-(kv(v - 1, x) + kv(v + 1, x)) / 2"""
    v, x = xs
    return (special("kv", v - 1.0, x) + special("kv", v + 1.0, x)) * -0.5


def _kve_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y - (kve(v - 1, x) + kve(v + 1, x)) / 2"""
    v, x = xs
    return y - (special("kve", v - 1.0, x) + special("kve", v + 1.0, x)) * 0.5


# --- integrals and series ------------------------------------------------------------------------


def _exp1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-e^-x / x"""
    return -exp(-xs[0]) / xs[0]


def _expi(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """e^x / x"""
    return exp(xs[0]) / xs[0]


def _expn_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-expn(n - 1, x), and -e^-x (1 + x) / x^2 for n = 0"""
    n, x = xs
    lowest = n == 0
    lower = special("expn", where(lowest, 0.0, n - 1.0), x)
    return -where(lowest, exp(-x) * (x + 1.0) / (x * x), lower)


def _spence(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(x) / (1 - x); between 1/2 and 3/2 as -hyp2f1(1, 1, 2, 1 - x), smooth at x = 1"""
    (x,) = xs
    is_near = abs(x - 1.0) < 0.5
    near, far = where(is_near, x, 1.0), where(is_near, 0.5, x)
    slope = log(far) / (1.0 - far)
    return where(is_near, -special("hyp2f1", 1.0, 1.0, 2.0, 1.0 - near), slope)


def _zeta_q(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-s zeta(s + 1, q)"""
    s, q = xs
    return -(s * special("zeta", s + 1.0, q))


def _ellipk(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 8 hyp2f1(3/2, 3/2, 2, m)"""
    return special("hyp2f1", 1.5, 1.5, 2.0, xs[0]) * (math.pi / 8.0)


def _ellipe(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-pi / 8 hyp2f1(1/2, 3/2, 2, m)"""
    return special("hyp2f1", 0.5, 1.5, 2.0, xs[0]) * (-math.pi / 8.0)


def _hyp0f1_z(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """hyp0f1(v + 1, z) / v"""
    v, z = xs
    return special("hyp0f1", v + 1.0, z) / v


def _hyp1f1_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """a / b hyp1f1(a + 1, b + 1, x)"""
    a, b, x = xs
    return a / b * special("hyp1f1", a + 1.0, b + 1.0, x)


def _hyp2f1_z(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """a b / c hyp2f1(a + 1, b + 1, c + 1, z)"""
    a, b, c, z = xs
    return a * b / c * special("hyp2f1", a + 1.0, b + 1.0, c + 1.0, z)


def _hyperu_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-a hyperu(a + 1, b + 1, x)"""
    a, b, x = xs
    return -(a * special("hyperu", a + 1.0, b + 1.0, x))


def _wrightomega(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y / (1 + y), and 1 / (1 + 1 / y) where y > 1: the derivative of y / (1 + y) cancels there"""
    is_large = y > 1
    small, large = where(is_large, 1.0, y), where(is_large, y, 1.0)
    return where(is_large, 1.0 / (1.0 / large + 1.0), small / (small + 1.0))


SERIES_TABLE: dict[str, tuple[Rule | None, ...]] = {
    "ellipe": (_ellipe,),
    "ellipk": (_ellipk,),
    "exp1": (_exp1,),
    "expi": (_expi,),
    "expn": (None, _expn_x),
    "hyp0f1": (None, _hyp0f1_z),
    "hyp1f1": (None, None, _hyp1f1_x),
    "hyp2f1": (None, None, None, _hyp2f1_z),
    "hyperu": (None, None, _hyperu_x),
    "i0": (_i0,),
    "i0e": (_i0e,),
    "i1": (_i1,),
    "i1e": (_i1e,),
    "iv": (None, _iv_x),
    "ive": (None, _ive_x),
    "j0": (_j0,),
    "j1": (_j1,),
    "jn": (None, _jv_x),
    "jv": (None, _jv_x),
    "k0": (_k0,),
    "k0e": (_k0e,),
    "k1": (_k1,),
    "k1e": (_k1e,),
    "kn": (None, _kv_x),
    "kv": (None, _kv_x),
    "kve": (None, _kve_x),
    "spence": (_spence,),
    "wrightomega": (_wrightomega,),
    "y0": (_y0,),
    "y1": (_y1,),
    "yn": (None, _yv_x),
    "yv": (None, _yv_x),
    "zeta": (None, _zeta_q),
}
"""The rules of each argument, by the names of scipy.special."""

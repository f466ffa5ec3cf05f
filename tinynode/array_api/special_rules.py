"""The derivatives of special functions.

A rule gives dy / dx_i from the tuple of arguments and the value y. A rule consists of
differentiable functions, so derivatives of derivatives are right, too. ``TABLE`` has the rules by
the names of scipy.special: one for each argument, None for an argument without a rule.

Source of the formulas: NIST Digital Library of Mathematical Functions, chapters 4 to 8 and 13.
"""

from __future__ import annotations

import math

from tinynode.array_api.special_nodes import RULES as RULES
from tinynode.array_api.special_nodes import Rule, ScaledTail, special
from tinynode.array_api.special_series import SERIES_TABLE
from tinynode.core.variable import Variable
from tinynode.functions import (
    Gauss,
    abs,
    cos,
    digamma,
    erf,
    exp,
    expm1,
    floor,
    hypot,
    lgamma,
    log,
    log1p,
    maximum,
    pow,
    round,
    sign,
    sin,
    sqrt,
    where,
)
from tinynode.functions.operands import as_operands
from tinynode.functions.trigonometric import cosine

ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2.0 * math.pi)


# --- error functions and the normal distribution -------------------------------------------------


def _erfcinv(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-sqrt(pi) / 2 e^(y^2), as -sqrt(pi) / 2 erfcx(|y|) / min(x, 2 - x)

    e^(y^2) multiplies the rounding error of y by 2 y^2. The second form does not.
    """
    (x,) = xs
    is_low = y > 0
    tail = special("erfcx", where(is_low, y, -y))
    return tail / where(is_low, x, 2.0 - x) * (-0.5 * ROOT_PI)


def _erfcx(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """2 x y - 2 / sqrt(pi)"""
    return ScaledTail(1).apply(xs)[0]


def _erfi(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """2 / sqrt(pi) e^(x^2)"""
    return Gauss(-1.0).apply(xs)[0] * (2.0 / ROOT_PI)


def _dawsn(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 - 2 x y"""
    return 1.0 - xs[0] * y * 2.0


def _ndtr(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """e^(-x^2 / 2) / sqrt(2 pi)"""
    return Gauss(0.5).apply(xs)[0] * (1.0 / ROOT_2PI)


def _log_ndtr(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """e^(-x^2 / 2 - y) / sqrt(2 pi); below 0 as sqrt(2 / pi) / erfcx(-x / sqrt(2))

    The second form keeps its digits where both terms of the exponent are large.
    """
    (x,) = xs
    negative = x < 0
    low, high = where(negative, x, 0.0), where(negative, 0.0, x)
    above = Gauss(0.5).apply((high,))[0] * exp(-where(negative, 0.0, y)) * (1.0 / ROOT_2PI)
    below = math.sqrt(2.0 / math.pi) / special("erfcx", low * (-1.0 / math.sqrt(2.0)))
    return where(negative, below, above)


def _ndtri(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """sqrt(2 pi) e^(y^2 / 2), as sqrt(pi / 2) erfcx(|y| / sqrt(2)) / min(x, 1 - x)"""
    (x,) = xs
    return _scaled_tail(y) / where(y > 0, 1.0 - x, x)


def _ndtri_exp(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """sqrt(2 pi) e^(x + y^2 / 2), as sqrt(pi / 2) erfcx(|y| / sqrt(2)) / min(1, e^-x - 1)"""
    return _scaled_tail(y) / where(y > 0, expm1(-maximum(xs[0], -1.0)), 1.0)


def _scaled_tail(y: Variable) -> Variable:
    """sqrt(2 pi) e^(y^2 / 2) P(-|y|), with the normal distribution P"""
    size = where(y > 0, y, -y)
    return special("erfcx", size * (1.0 / math.sqrt(2.0))) * math.sqrt(0.5 * math.pi)


def _owens_t_h(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-e^(-h^2 / 2) / sqrt(8 pi) erf(a h / sqrt(2))"""
    h, a = xs
    return Gauss(0.5).apply((h,))[0] * erf(a * h * (1.0 / math.sqrt(2.0))) * (-0.5 / ROOT_2PI)


def _owens_t_a(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """e^(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2))"""
    h, a = xs
    wide = a * a + 1.0
    return exp(h * h * wide * -0.5) / wide * (0.5 / math.pi)


# --- gamma and beta ------------------------------------------------------------------------------


def _gamma(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y digamma(x)"""
    return y * digamma(xs[0])


def _rgamma(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-y digamma(x); below 1/2 Gamma(1 - x) (cos(pi x) - digamma(1 - x) sin(pi x) / pi)

    The second form is finite at 0, -1, -2 and so on, where digamma has its poles.
    """
    (x,) = xs
    is_low = x < 0.5
    high, z = where(is_low, 1.0, x), where(is_low, 1.0 - x, 1.0)
    part = where(is_low, x, 0.0)
    part = part - round(part * 0.5).detach() * 2.0
    turn = part - round(part).detach()  # exact, from -1/2 to 1/2
    sign_of = 1.0 - abs(round(part).detach()) * 2.0
    slope = cos(turn * math.pi) - digamma(z) * sin(turn * math.pi) * (1.0 / math.pi)
    low = special("gamma", z) * sign_of * slope
    return where(is_low, low, -(special("rgamma", high) * digamma(high)))


def _loggamma(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """digamma(x)"""
    return digamma(xs[0])


def _polygamma_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """polygamma(n + 1, x)"""
    return special("polygamma", xs[0] + 1.0, xs[1])


def _betaln_a(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """digamma(a) - digamma(a + b)"""
    return digamma(xs[0]) - digamma(xs[0] + xs[1])


def _betaln_b(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """digamma(b) - digamma(a + b)"""
    return digamma(xs[1]) - digamma(xs[0] + xs[1])


def _beta_a(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y (digamma(a) - digamma(a + b))"""
    return y * _betaln_a(xs, y)


def _beta_b(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y (digamma(b) - digamma(a + b))"""
    return y * _betaln_b(xs, y)


def _binom_n(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y (digamma(n + 1) - digamma(n - k + 1))"""
    n, k = xs
    return y * (digamma(n + 1.0) - digamma(n - k + 1.0))


def _binom_k(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y (digamma(n - k + 1) - digamma(k + 1))"""
    n, k = xs
    return y * (digamma(n - k + 1.0) - digamma(k + 1.0))


def _poch_z(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y (digamma(z + m) - digamma(z))"""
    z, m = xs
    return y * (digamma(z + m) - digamma(z))


def _poch_m(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y digamma(z + m)"""
    return y * digamma(xs[0] + xs[1])


def gamma_density(a: Variable, x: Variable) -> Variable:
    """x^(a - 1) e^-x / Gamma(a)"""
    return exp(special("xlogy", a - 1.0, x) - x - lgamma(a))


def beta_density(a: Variable, b: Variable, x: Variable) -> Variable:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b)"""
    powers = special("xlogy", a - 1.0, x) + special("xlog1py", b - 1.0, -x)
    return exp(powers - special("betaln", a, b))


def _gammainc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x^(a - 1) e^-x / Gamma(a)"""
    return gamma_density(*xs)


def _gammaincc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-x^(a - 1) e^-x / Gamma(a)"""
    return -gamma_density(*xs)


def _gammaincinv_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """Gamma(a) e^y / y^(a - 1)"""
    return 1.0 / gamma_density(xs[0], y)


def _gammainccinv_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-Gamma(a) e^y / y^(a - 1)"""
    return -1.0 / gamma_density(xs[0], y)


def _betainc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b)"""
    return beta_density(*xs)


def _betaincc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-x^(a - 1) (1 - x)^(b - 1) / B(a, b)"""
    return -beta_density(*xs)


def _betaincinv_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """B(a, b) / (y^(a - 1) (1 - y)^(b - 1))"""
    return 1.0 / beta_density(xs[0], xs[1], y)


def _betainccinv_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-B(a, b) / (y^(a - 1) (1 - y)^(b - 1))"""
    return -1.0 / beta_density(xs[0], xs[1], y)


# --- distributions -------------------------------------------------------------------------------


def t_density(df: Variable, t: Variable) -> Variable:
    """Gamma((n + 1) / 2) / (Gamma(n / 2) sqrt(n pi)) (1 + t^2 / n)^(-(n + 1) / 2)"""
    half = (df + 1.0) * 0.5
    front = lgamma(half) - lgamma(df * 0.5) - half * log1p(t * t / df)
    return exp(front) / sqrt(df * math.pi)


def f_density(n: Variable, m: Variable, x: Variable) -> Variable:
    """The F distribution's density: r^(n/2) x^(n/2 - 1) (1 + r x)^(-(n+m)/2) / B, r = n / m"""
    a, b = n * 0.5, m * 0.5
    powers = special("xlogy", a - 1.0, x) - (a + b) * log1p(x * n / m) + a * log(n / m)
    return exp(powers - special("betaln", a, b))


def _stdtr_t(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """Student's density at t"""
    return t_density(*xs)


def _stdtrit_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / (Student's density at y)"""
    return 1.0 / t_density(xs[0], y)


def _fdtr_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """The F distribution's density at x"""
    return f_density(*xs)


def _fdtrc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-(the F distribution's density at x)"""
    return -f_density(*xs)


def _fdtri_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / (the F distribution's density at y)"""
    return 1.0 / f_density(xs[0], xs[1], y)


def _chdtr_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(x / 2)^(v / 2 - 1) e^(-x / 2) / (2 Gamma(v / 2))"""
    return gamma_density(xs[0] * 0.5, xs[1] * 0.5) * 0.5


def _chdtrc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-(x / 2)^(v / 2 - 1) e^(-x / 2) / (2 Gamma(v / 2))"""
    return gamma_density(xs[0] * 0.5, xs[1] * 0.5) * -0.5


def _chdtri_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / (the derivative of chdtrc at y)"""
    return -2.0 / gamma_density(xs[0] * 0.5, y * 0.5)


def _gdtr_a(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x (a x)^(b - 1) e^(-a x) / Gamma(b)"""
    a, b, x = xs
    return x * gamma_density(b, a * x)


def _gdtr_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """a (a x)^(b - 1) e^(-a x) / Gamma(b)"""
    a, b, x = xs
    return a * gamma_density(b, a * x)


def _gdtrc_a(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-x (a x)^(b - 1) e^(-a x) / Gamma(b)"""
    return -_gdtr_a(xs, y)


def _gdtrc_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-a (a x)^(b - 1) e^(-a x) / Gamma(b)"""
    return -_gdtr_x(xs, y)


def _pdtr_m(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-m^k e^-m / k!, with k rounded down"""
    return -gamma_density(floor(xs[0]) + 1.0, xs[1])


def _pdtrc_m(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """m^k e^-m / k!, with k rounded down"""
    return gamma_density(floor(xs[0]) + 1.0, xs[1])


def _bdtr_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-p^k (1 - p)^(n - k - 1) / B(n - k, k + 1), with k rounded down"""
    k, n, p = xs
    return -beta_density(floor(k) + 1.0, n - floor(k), p)


def _bdtrc_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """p^k (1 - p)^(n - k - 1) / B(n - k, k + 1), with k rounded down"""
    return -_bdtr_p(xs, y)


def _nbdtr_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """p^(n - 1) (1 - p)^k / B(n, k + 1)"""
    k, n, p = xs
    return beta_density(n, k + 1.0, p)


def _nbdtrc_p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-p^(n - 1) (1 - p)^k / B(n, k + 1)"""
    return -_nbdtr_p(xs, y)


# --- logarithms, exponentials and losses ---------------------------------------------------------


def _box_bend(logarithm: Variable, k: Variable) -> Variable:
    """The derivative of (e^(k l) - 1) / k in k: l^2 / 2 hyp1f1(2, 3, k l), smooth at k = 0"""
    bend = special("hyp1f1", 2.0, 3.0, k * logarithm)
    return logarithm * logarithm * bend * 0.5


def _like(x: Variable, number: float) -> Variable:
    """A number as a Variable of another's dtype and device"""
    return as_operands("radian", x, number)[1]


def _xlogy_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(y)"""
    return log(xs[1])


def _xlogy_y(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x / y, and 0 where both are 0"""
    x, y_ = xs
    dead = (x == 0) & (y_ == 0)
    return where(dead, 0.0, x / where(dead, 1.0, y_))


def _xlog1py_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(1 + y)"""
    return log1p(xs[1])


def _xlog1py_y(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x / (1 + y), and 0 where both are 0"""
    x, wide = xs[0], xs[1] + 1.0
    dead = (x == 0) & (wide == 0)
    return where(dead, 0.0, x / where(dead, 1.0, wide))


def _entr(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-log(x) - 1"""
    return -log(xs[0]) - 1.0


def _rel_entr_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(x / y) + 1"""
    return log(xs[0] / xs[1]) + 1.0


def _rel_entr_y(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-x / y"""
    return -(xs[0] / xs[1])


def _kl_div_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(x / y)"""
    return log(xs[0] / xs[1])


def _kl_div_y(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 - x / y"""
    return 1.0 - xs[0] / xs[1]


def _logit(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / x + 1 / (1 - x)"""
    return 1.0 / xs[0] + 1.0 / (1.0 - xs[0])


def _exp2(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y log(2)"""
    return y * math.log(2.0)


def _exp10(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y log(10)"""
    return y * math.log(10.0)


def _expm1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """e^x"""
    return exp(xs[0])


def _exprel(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """hyp1f1(2, 3, x) / 2"""
    return special("hyp1f1", 2.0, 3.0, xs[0]) * 0.5


def _log1p(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / (1 + x)"""
    return 1.0 / (xs[0] + 1.0)


def _cosm1(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-sin(x)"""
    return -sin(xs[0])


def _powm1_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y x^(y - 1)"""
    x, power = xs
    return power * pow(x, power - 1.0)


def _powm1_y(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x^y log(x)"""
    return pow(*xs) * log(xs[0])


def _cbrt(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """1 / (3 y^2)"""
    return 1.0 / (y * y * 3.0)


def _sinc(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-pi^2 x / 3 hyp0f1(5/2, -(pi x)^2 / 4), and (cos(pi x) - y) / x beyond 1"""
    (x,) = xs
    is_near = abs(x) < 1
    near, far = where(is_near, x, 0.0), where(is_near, 1.0, x)
    turn = far - round(far * 0.5).detach() * 2.0  # cos(pi x) needs an exact remainder
    bent = special("hyp0f1", 2.5, near * near * (-0.25 * math.pi**2))
    slope = (cos(turn * math.pi) - special("sinc", far)) / far
    return where(is_near, near * bent * (-(math.pi**2) / 3.0), slope)


def _boxcox_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """x^(k - 1)"""
    x, k = xs
    return pow(x, k - 1.0)


def _boxcox_k(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """log(x)^2 / 2 hyp1f1(2, 3, k log(x))"""
    return _box_bend(log(xs[0]), xs[1])


def _boxcox1p_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(1 + x)^(k - 1)"""
    x, k = xs
    return pow(x + 1.0, k - 1.0)


def _boxcox1p_k(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """the rule of boxcox in k, at 1 + x"""
    return _box_bend(log1p(xs[0]), xs[1])


def _inv_boxcox_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """y^(1 - k)"""
    return pow(y, 1.0 - xs[1])


def _inv_boxcox_k(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-y^(1 - k) (dz/dk of z = boxcox(y, k))"""
    k = xs[1]
    return -pow(y, 1.0 - k) * _box_bend(log(y), k)


def _inv_boxcox1p_x(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(1 + y)^(1 - k)"""
    return pow(y + 1.0, 1.0 - xs[1])


def _inv_boxcox1p_k(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-(1 + y)^(1 - k) (dz/dk of z = boxcox1p(y, k))"""
    k = xs[1]
    return -pow(y + 1.0, 1.0 - k) * _box_bend(log1p(y), k)


def _huber_delta(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """|r| - d where |r| > d, else 0"""
    d, r = xs
    return where(abs(r) > d, abs(r) - d, 0.0)


def _huber_r(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """r where |r| <= d, else d sign(r)"""
    d, r = xs
    return where(abs(r) > d, d * sign(r), r)


def _pseudo_huber_delta(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """(h - d)^2 / h with h = sqrt(d^2 + r^2), where h - d = r^2 / (h + d)"""
    d, r = xs
    length = hypot(d, r)
    rest = r * (r / (length + d))
    return rest * (rest / length)


def _pseudo_huber_r(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """d r / sqrt(d^2 + r^2)"""
    d, r = xs
    return d * cosine(r, d)


def _radian_d(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 180"""
    return _like(xs[0], math.pi / 180.0)


def _radian_m(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 10800"""
    return _like(xs[1], math.pi / 10800.0)


def _radian_s(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 648000"""
    return _like(xs[2], math.pi / 648000.0)


def _sindg(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 180 cosdg(x)"""
    return special("cosdg", xs[0]) * (math.pi / 180.0)


def _cosdg(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-pi / 180 sindg(x)"""
    return special("sindg", xs[0]) * (-math.pi / 180.0)


def _tandg(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """pi / 180 (1 + y^2)"""
    return y * (y * (math.pi / 180.0)) + math.pi / 180.0


def _cotdg(xs: tuple[Variable, ...], y: Variable) -> Variable:
    """-pi / 180 (1 + y^2)"""
    return y * (y * (-math.pi / 180.0)) - math.pi / 180.0


TABLE: dict[str, tuple[Rule | None, ...]] = {
    "bdtr": (None, None, _bdtr_p),
    "bdtrc": (None, None, _bdtrc_p),
    "beta": (_beta_a, _beta_b),
    "betainc": (None, None, _betainc_x),
    "betaincc": (None, None, _betaincc_x),
    "betainccinv": (None, None, _betainccinv_p),
    "betaincinv": (None, None, _betaincinv_p),
    "betaln": (_betaln_a, _betaln_b),
    "binom": (_binom_n, _binom_k),
    "boxcox": (_boxcox_x, _boxcox_k),
    "boxcox1p": (_boxcox1p_x, _boxcox1p_k),
    "cbrt": (_cbrt,),
    "chdtr": (None, _chdtr_x),
    "chdtrc": (None, _chdtrc_x),
    "chdtri": (None, _chdtri_p),
    "cosdg": (_cosdg,),
    "cosm1": (_cosm1,),
    "cotdg": (_cotdg,),
    "dawsn": (_dawsn,),
    "entr": (_entr,),
    "erfcinv": (_erfcinv,),
    "erfcx": (_erfcx,),
    "erfi": (_erfi,),
    "exp10": (_exp10,),
    "exp2": (_exp2,),
    "expm1": (_expm1,),
    "exprel": (_exprel,),
    "fdtr": (None, None, _fdtr_x),
    "fdtrc": (None, None, _fdtrc_x),
    "fdtri": (None, None, _fdtri_p),
    "gamma": (_gamma,),
    "gammainc": (None, _gammainc_x),
    "gammaincc": (None, _gammaincc_x),
    "gammainccinv": (None, _gammainccinv_p),
    "gammaincinv": (None, _gammaincinv_p),
    "gdtr": (_gdtr_a, None, _gdtr_x),
    "gdtrc": (_gdtrc_a, None, _gdtrc_x),
    "huber": (_huber_delta, _huber_r),
    "inv_boxcox": (_inv_boxcox_x, _inv_boxcox_k),
    "inv_boxcox1p": (_inv_boxcox1p_x, _inv_boxcox1p_k),
    "kl_div": (_kl_div_x, _kl_div_y),
    "log1p": (_log1p,),
    "log_ndtr": (_log_ndtr,),
    "loggamma": (_loggamma,),
    "logit": (_logit,),
    "nbdtr": (None, None, _nbdtr_p),
    "nbdtrc": (None, None, _nbdtrc_p),
    "ndtr": (_ndtr,),
    "ndtri": (_ndtri,),
    "ndtri_exp": (_ndtri_exp,),
    "owens_t": (_owens_t_h, _owens_t_a),
    "pdtr": (None, _pdtr_m),
    "pdtrc": (None, _pdtrc_m),
    "poch": (_poch_z, _poch_m),
    "polygamma": (None, _polygamma_x),
    "powm1": (_powm1_x, _powm1_y),
    "pseudo_huber": (_pseudo_huber_delta, _pseudo_huber_r),
    "radian": (_radian_d, _radian_m, _radian_s),
    "rel_entr": (_rel_entr_x, _rel_entr_y),
    "rgamma": (_rgamma,),
    "sinc": (_sinc,),
    "sindg": (_sindg,),
    "stdtr": (None, _stdtr_t),
    "stdtrit": (None, _stdtrit_p),
    "tandg": (_tandg,),
    "xlog1py": (_xlog1py_x, _xlog1py_y),
    "xlogy": (_xlogy_x, _xlogy_y),
}
"""The rules of each argument, by the names of scipy.special."""

RULES.update(TABLE | SERIES_TABLE)

"""The rows of ``xp.special``: each argument with a derivative rule, by mpmath.

The values come from SciPy, so most errors of values are SciPy's. Functions of three and four
arguments have no row: ``coverage.py`` has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from mpmath import mp, mpf

from accuracy.rows import ABOVE_0, INF, ONE, PRECISION, Row, flat
from tinynode.array_api.special import COMPOSED_BY_SCIPY

SPECIAL_ROWS: list[Row] = []
PREFIX = "special."


class Called:
    """A function of ``xp.special`` with x at one position, and the other operand beside it."""

    def __init__(self, name: str, position: int) -> None:
        self.name, self.position = name, position

    def __call__(self, x: Any, *others: Any) -> Any:
        own = x.__array_namespace__().special
        arguments = list(others)
        arguments.insert(self.position, x)
        if self.name in COMPOSED_BY_SCIPY:
            return own.call(self.name, *arguments)
        return getattr(own, self.name)(*arguments)


def special(name: str, *exact: Any, position: int = 0, **more: Any) -> None:
    """Add a row for one argument of a function."""
    title = PREFIX + name
    if "constant" in more:
        c = more["constant"]
        title += f", ({c}, x)" if position else f", (x, {c})"
    SPECIAL_ROWS.append(Row(title, Called(name, position), exact, special=True, **more))


def deep(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with 2400 bits, where a formula cancels near 0."""

    def call(*arguments: Any) -> Any:
        with mp.workprec(2400):
            return function(*arguments)

    return call


def of_order(function: Callable[..., Any]) -> tuple[Any, ...]:
    """``function(k, x, ...)`` for the orders k = 0, 1, 2 of the derivative."""
    return tuple(partial(function, k) for k in range(3))


# --- exponentials, logarithms, entropies ---------------------------------------------------------

for name, base in (("exp2", 2), ("exp10", 10)):
    special(
        name,
        partial(lambda x, b: mp.power(b, x), b=base),
        partial(lambda x, b: mp.power(b, x) * mp.log(b), b=base),
        partial(lambda x, b: mp.power(b, x) * mp.log(b) ** 2, b=base),
    )
special("expm1", mp.expm1, mp.exp, mp.exp)
special("log1p", mp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2,
        domain=(-1.0, INF), marks=(-1.0,))  # fmt: skip
special("exprel", *of_order(lambda k, x: mp.hyp1f1(k + 1, k + 2, x) / (k + 1)),
        domain=(-1e4, 1e4))  # fmt: skip
special("cosm1", lambda x: -2 * mp.sin(x / 2) ** 2, lambda x: -mp.sin(x), lambda x: -mp.cos(x),
        domain=(-1e4, 1e4))  # fmt: skip
special(
    "cbrt",
    lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2),
    lambda x: -2 * mp.sign(x) / (9 * mp.cbrt(abs(x)) ** 5),
)
special("logit", lambda x: mp.log(x) - mp.log1p(-x), lambda x: 1 / (x * (1 - x)),
        lambda x: (2 * x - 1) / (x * (1 - x)) ** 2, domain=(0.0, 1.0),
        marks=(0.5, 1.0))  # fmt: skip
special("entr", lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1, lambda x: -1 / x,
        domain=ABOVE_0, marks=(0.36787944117144233, 1.0))  # fmt: skip
for c in (2.5, 0.3):
    special("xlogy", lambda x, c: x * mp.log(c), lambda x, c: mp.log(c), flat, constant=c)
    special("xlogy", lambda y, c: c * mp.log(y), lambda y, c: c / y, lambda y, c: -c / y**2,
            position=1, constant=c, domain=ABOVE_0, marks=(1.0,))  # fmt: skip
    special("xlog1py", lambda x, c: x * mp.log1p(c), lambda x, c: mp.log1p(c), flat, constant=c)
    special("xlog1py", lambda y, c: c * mp.log1p(y), lambda y, c: c / (1 + y),
            lambda y, c: -c / (1 + y) ** 2, position=1, constant=c, domain=(-1.0, INF),
            marks=(-1.0,))  # fmt: skip
    special("rel_entr", lambda x, c: x * mp.log(x / c), lambda x, c: mp.log(x / c) + 1,
            lambda x, c: 1 / x, constant=c, domain=ABOVE_0, marks=(c,))  # fmt: skip
    special("rel_entr", lambda y, c: c * mp.log(c / y), lambda y, c: -c / y,
            lambda y, c: c / y**2, position=1, constant=c, domain=ABOVE_0, marks=(c,))  # fmt: skip
    special("kl_div", lambda x, c: x * mp.log(x / c) - x + c, lambda x, c: mp.log(x / c),
            lambda x, c: 1 / x, constant=c, domain=ABOVE_0, marks=(c,))  # fmt: skip
    special("kl_div", lambda y, c: c * mp.log(c / y) - c + y, lambda y, c: 1 - c / y,
            lambda y, c: c / y**2, position=1, constant=c, domain=ABOVE_0, marks=(c,))  # fmt: skip


# --- powers and losses ---------------------------------------------------------------------------


def power_of(k: int, x: Any, c: Any) -> Any:
    """The derivatives of (x^c - 1) / c from the first on."""
    return x ** (c - 1) if k == 1 else (c - 1) * x ** (c - 2)


def bend(k: int, logarithm: Any, c: Any) -> Any:
    """The derivatives of (e^(c l) - 1) / c in c."""
    return logarithm ** (k + 1) * mp.hyp1f1(k + 1, k + 2, c * logarithm) / (k + 1)


special("boxcox", lambda x, c: (x**c - 1) / c, partial(power_of, 1), partial(power_of, 2),
        constant=0.5, domain=ABOVE_0, marks=(1.0,))  # fmt: skip
special("boxcox", *of_order(lambda k, c, x: bend(k, mp.log(x), c)), position=1, constant=2.5,
        domain=(-100.0, 100.0))  # fmt: skip
special("boxcox1p", lambda x, c: mp.expm1(c * mp.log1p(x)) / c,
        lambda x, c: power_of(1, 1 + x, c), lambda x, c: power_of(2, 1 + x, c), constant=0.5,
        domain=(-1.0, INF), marks=(-1.0,))  # fmt: skip
special("boxcox1p", *of_order(lambda k, c, x: bend(k, mp.log1p(x), c)), position=1, constant=2.5,
        domain=(-100.0, 100.0))  # fmt: skip
special(
    "inv_boxcox",
    lambda x, c: (c * x + 1) ** (1 / c),
    lambda x, c: (c * x + 1) ** (1 / c - 1),
    lambda x, c: (1 - c) * (c * x + 1) ** (1 / c - 2),
    constant=0.25,
    domain=(-4.0, INF),
    marks=(-4.0,),
)
special(
    "inv_boxcox1p",
    lambda x, c: mp.expm1(mp.log1p(c * x) / c),
    lambda x, c: (c * x + 1) ** (1 / c - 1),
    lambda x, c: (1 - c) * (c * x + 1) ** (1 / c - 2),
    constant=0.25,
    domain=(-4.0, INF),
    marks=(-4.0,),
)
special("powm1", lambda x, c: mp.expm1(c * mp.log(x)), lambda x, c: c * x ** (c - 1),
        lambda x, c: c * (c - 1) * x ** (c - 2), constant=2.5, domain=ABOVE_0,
        marks=(1.0,))  # fmt: skip
special("powm1", lambda y, c: mp.expm1(y * mp.log(c)), lambda y, c: c**y * mp.log(c),
        lambda y, c: c**y * mp.log(c) ** 2, position=1, constant=1.5)  # fmt: skip
special("huber", lambda r, d: r**2 / 2 if abs(r) <= d else d * (abs(r) - d / 2),
        lambda r, d: min(max(r, -d), d), lambda r, d: mpf(abs(r) <= d), position=1,
        constant=1.5, marks=(1.5, -1.5))  # fmt: skip
special("huber", lambda d, r: r**2 / 2 if abs(r) <= d else d * (abs(r) - d / 2),
        lambda d, r: max(abs(r) - d, mpf(0)), lambda d, r: -mpf(d < r), constant=1.5,
        domain=ABOVE_0)  # fmt: skip


def pseudo_huber(d: Any, r: Any) -> Any:
    root = mp.sqrt(1 + (r / d) ** 2)
    return r**2 / (root + 1)


def pseudo_huber_slope(d: Any, r: Any) -> Any:
    """The derivative in d: q = r / d, s = sqrt(1 + q^2): d (s - 1)^2 / s."""
    root = mp.sqrt(1 + (r / d) ** 2)
    return d * ((r / d) ** 2 / (root + 1)) ** 2 / root


special(
    "pseudo_huber",
    lambda r, d: pseudo_huber(d, r),
    lambda r, d: r / mp.sqrt(1 + (r / d) ** 2),
    lambda r, d: 1 / mp.sqrt(1 + (r / d) ** 2) ** 3,
    position=1,
    constant=1.5,
)
special("pseudo_huber", pseudo_huber, pseudo_huber_slope, constant=1.5, domain=ABOVE_0)


# --- angles in degrees ---------------------------------------------------------------------------

with mp.workprec(PRECISION):
    DEGREE, TURN = mp.pi / 180, (-1e6, 1e6)


def cotangent(x: Any) -> Any:
    return mp.cot(x * mp.pi / 180)


special("sindg", lambda x: mp.sin(x * mp.pi / 180), lambda x: DEGREE * mp.cos(x * mp.pi / 180),
        lambda x: -(DEGREE**2) * mp.sin(x * mp.pi / 180), domain=TURN)  # fmt: skip
special("cosdg", lambda x: mp.cos(x * mp.pi / 180), lambda x: -DEGREE * mp.sin(x * mp.pi / 180),
        lambda x: -(DEGREE**2) * mp.cos(x * mp.pi / 180), domain=TURN)  # fmt: skip
special(
    "tandg",
    lambda x: mp.tan(x * mp.pi / 180),
    lambda x: DEGREE * mp.sec(x * mp.pi / 180) ** 2,
    lambda x: 2 * DEGREE**2 * mp.tan(x * mp.pi / 180) * mp.sec(x * mp.pi / 180) ** 2,
    domain=TURN,
)
special(
    "cotdg",
    cotangent,
    lambda x: -DEGREE * mp.csc(x * mp.pi / 180) ** 2,
    lambda x: 2 * DEGREE**2 * cotangent(x) * mp.csc(x * mp.pi / 180) ** 2,
    domain=TURN,
)
special(
    "sinc",
    lambda x: mp.sinc(mp.pi * x),
    deep(lambda x: (mp.cos(mp.pi * x) - mp.sinc(mp.pi * x)) / x),
    deep(lambda x: -mp.pi * mp.sin(mp.pi * x) / x
         - 2 * (mp.cos(mp.pi * x) - mp.sinc(mp.pi * x)) / x**2),
    domain=(-1e3, 1e3),
)  # fmt: skip


# --- error functions and the normal distribution -------------------------------------------------


def scaled_tail(k: int, x: Any) -> Any:
    """The k-th derivative of erfcx; beyond 10^4 by the asymptotic series."""
    if x > 1e4:
        total, term = mpf(0), 1 / (x * mp.sqrt(mp.pi))
        for n in range(20):
            factors = mp.rf(2 * n + 1, k) * (-1) ** k / x**k
            total += term * factors
            term *= -(2 * n + 1) / (2 * x**2)
        return total
    y = mp.exp(x**2) * mp.erfc(x) if x > -1e4 else 2 * mp.exp(x**2)
    slope = 2 * x * y - 2 / mp.sqrt(mp.pi)
    return (y, slope, 2 * y + 2 * x * slope)[k]


with mp.workprec(PRECISION):
    ROOT_2 = mp.sqrt(2)


def normal(x: Any) -> Any:
    """The normal distribution."""
    return mp.erfc(-x / ROOT_2) / 2


def density(x: Any) -> Any:
    return mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)


def log_normal(k: int, x: Any) -> Any:
    """The derivatives of ln P(x) from P(x) = e^(-x^2 / 2) erfcx(-x / sqrt 2) / 2."""
    u = -x / ROOT_2
    e, slope = scaled_tail(0, u), scaled_tail(1, u)
    if k == 0:
        return mp.log(e / 2) - x**2 / 2 if x < 0 else mp.log1p(-normal(-x))
    hazard = mp.sqrt(2 / mp.pi) / e
    return hazard if k == 1 else hazard * slope / (e * ROOT_2)


def quantile(p: Any) -> Any:
    """The inverse of the normal distribution."""
    return ROOT_2 * mp.erfinv(2 * p - 1) if p > 0.25 else -ROOT_2 * inverse_tail(2 * p)


def inverse_tail(x: Any) -> Any:
    """The inverse of erfc, by Newton's steps on ln erfc."""
    if x > 0.5:
        return mp.erfinv(1 - x)
    y = mp.sqrt(-mp.log(x))
    for _ in range(200):
        tail = scaled_tail(0, y)
        step = (mp.log(tail) - y**2 - mp.log(x)) * tail * mp.sqrt(mp.pi) / 2
        y += step
        if abs(step) < abs(y) * mpf(2) ** -240:
            break
    return y


def inverse_erfc(k: int, x: Any) -> Any:
    y = -inverse_tail(2 - x) if x > 1 else inverse_tail(x)
    slope = -mp.sqrt(mp.pi) / 2 * mp.exp(y**2)
    return (y, slope, 2 * y * slope**2)[k]


def log_quantile(k: int, x: Any) -> Any:
    """The derivatives of the quantile of e^x."""
    p = mp.exp(x)
    y = quantile(p)
    slope = p / density(y)
    return (y, slope, slope * (1 + y * slope))[k]


special("erfcx", *of_order(scaled_tail), marks=(1.0, 1.5, 2.0))
special("erfi", lambda x: mp.erfi(x), lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(x**2),
        lambda x: 4 * x / mp.sqrt(mp.pi) * mp.exp(x**2), domain=(-30.0, 30.0))  # fmt: skip


def dawson(k: int, x: Any) -> Any:
    with mp.workprec(2400):
        y = mp.sqrt(mp.pi) / 2 * mp.exp(-(x**2)) * mp.erfi(x)
        slope = 1 - 2 * x * y
        return (y, slope, -2 * y - 2 * x * slope)[k]


special("dawsn", *of_order(dawson), domain=(-40.0, 40.0), marks=(0.9241388730045917,))
special("ndtr", normal, density, lambda x: -x * density(x), domain=(-40.0, 40.0))
special("log_ndtr", *of_order(log_normal), domain=(-INF, 40.0), marks=(-1.0, 1.0))
special("ndtri", quantile, lambda p: 1 / density(quantile(p)),
        lambda p: quantile(p) / density(quantile(p)) ** 2, domain=(0.0, 1.0),
        marks=(0.5, 1.0))  # fmt: skip
special("ndtri_exp", *of_order(log_quantile), domain=(-1e4, 0.0), marks=(-0.6931471805599453,))
special("erfcinv", *of_order(inverse_erfc), domain=(0.0, 2.0), marks=(1.0, 2.0))


# --- gamma functions -----------------------------------------------------------------------------

SIDE = (-30.0, INF)


def gamma(k: int, x: Any) -> Any:
    y, psi = mp.gamma(x), mp.psi(0, x)
    return (y, y * psi, y * (psi**2 + mp.psi(1, x)))[k]


def reciprocal_gamma(k: int, x: Any) -> Any:
    """By the reflection: Gamma(1 - x) sin(pi x) / pi."""
    if x > 0.5:
        y, psi = mp.rgamma(x), mp.psi(0, x)
        return (y, -y * psi, y * (psi**2 - mp.psi(1, x)))[k]
    g, psi = mp.gamma(1 - x), mp.psi(0, 1 - x)
    sine, cosine = mp.sinpi(x) / mp.pi, mp.cospi(x)
    bent = psi**2 + mp.psi(1, 1 - x)
    return (g * sine, g * (cosine - psi * sine),
            g * (bent * sine - 2 * psi * cosine - mp.pi**2 * sine))[k]  # fmt: skip


def log_gamma(k: int, x: Any) -> Any:
    return mp.loggamma(x) if k == 0 else mp.psi(k - 1, x)


special("gamma", *of_order(gamma), domain=(-30.0, 180.0), marks=(1.0, 1.4616321449683622))
special("rgamma", *of_order(reciprocal_gamma), domain=(-30.0, 180.0), at_zeros=True,
        marks=(-1.0, -2.0, -3.0, -20.0, 1.4616321449683622))  # fmt: skip
special("loggamma", *of_order(log_gamma), domain=ABOVE_0, marks=(1.0, 1.4616321449683622, 2.0))
special("polygamma", *of_order(lambda k, x, n: mp.psi(int(n) + k, x)), position=1, constant=2.0,
        domain=(0.0, 1e70))  # fmt: skip
special("zeta", lambda q, s: mp.zeta(s, q), lambda q, s: -s * mp.zeta(s + 1, q),
        lambda q, s: s * (s + 1) * mp.zeta(s + 2, q), position=1, constant=2.5,
        domain=(0.0, 1e3))  # fmt: skip


def log_beta(k: int, a: Any, b: Any) -> Any:
    if k == 0:
        return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return mp.psi(k - 1, a) - mp.psi(k - 1, a + b)


def beta(k: int, a: Any, b: Any) -> Any:
    y, slope = mp.exp(log_beta(0, a, b)), log_beta(1, a, b)
    return (y, y * slope, y * (slope**2 + log_beta(2, a, b)))[k]


for position in (0, 1):
    special("beta", *of_order(beta), position=position, constant=2.5, domain=(0.0, 1e4))
    special("betaln", *of_order(log_beta), position=position, constant=2.5, domain=(0.0, 1e4))


def rising(k: int, z: Any, m: Any) -> Any:
    """The derivatives of Gamma(z + m) / Gamma(z) in z."""
    y, slope = mp.gammaprod([z + m], [z]), mp.psi(0, z + m) - mp.psi(0, z)
    return (y, y * slope, y * (slope**2 + mp.psi(1, z + m) - mp.psi(1, z)))[k]


def rising_by_count(k: int, m: Any, z: Any) -> Any:
    y, slope = mp.gammaprod([z + m], [z]), mp.psi(0, z + m)
    return (y, y * slope, y * (slope**2 + mp.psi(1, z + m)))[k]


special("poch", *of_order(rising), constant=2.5, domain=(0.0, 1e4))
special("poch", *of_order(rising_by_count), position=1, constant=2.5, domain=(0.0, 100.0))


# --- Bessel functions, integrals -----------------------------------------------------------------


@cache
def bessel(kind: str, n: int, x: Any) -> Any:
    """J_n, Y_n, I_n or K_n of an order that may be negative; mpmath is quicker from 0 on."""
    sign = -1 if n < 0 and n % 2 and kind in "jy" else 1
    return sign * getattr(mp, f"bessel{kind}")(abs(n), x)


def bessel_slopes(kind: str, n: int, k: int, x: Any) -> Any:
    """The k-th derivative: (A_(n-1) - A_(n+1)) / 2 for J and Y; a sum for I and K."""
    sign, front = (-1 if kind in "jy" else 1), (-1 if kind == "k" else 1)
    if k == 0:
        return bessel(kind, n, x)
    if k == 1:
        return front * (bessel(kind, n - 1, x) + sign * bessel(kind, n + 1, x)) / 2
    outer = bessel(kind, n - 2, x) + bessel(kind, n + 2, x)
    return (outer + 2 * sign * bessel(kind, n, x)) / 4


def scaled_bessel(kind: str, n: int, k: int, x: Any) -> Any:
    """The derivatives of e^-|x| I_n(x) and of e^x K_n(x)."""
    y, slope, curve = [bessel_slopes(kind, n, i, x) for i in range(3)]
    s = -mp.sign(x) if kind == "i" else ONE
    return mp.exp(s * x) * (y, slope + s * y, curve + 2 * s * slope + y)[k]


DOMAINS = {"j": (-60.0, 60.0), "y": (0.0, 60.0), "i": (-60.0, 60.0), "k": (0.0, 60.0)}
for n in (0, 1):
    for kind, domain in DOMAINS.items():
        special(f"{kind}{n}", *of_order(partial(bessel_slopes, kind, n)), domain=domain)
    for kind in "ik":
        special(f"{kind}{n}e", *of_order(partial(scaled_bessel, kind, n)), domain=DOMAINS[kind])
special("exp1", mp.e1, lambda x: -mp.exp(-x) / x, lambda x: mp.exp(-x) * (1 / x + 1 / x**2),
        domain=(0.0, 700.0))  # fmt: skip
special("expi", mp.ei, lambda x: mp.exp(x) / x, lambda x: mp.exp(x) * (1 / x - 1 / x**2),
        domain=(-700.0, 700.0), marks=(0.37250741078136663, 1.0))  # fmt: skip
special("expn", lambda x, n: mp.expint(2, x), lambda x, n: -mp.e1(x), lambda x, n: mp.exp(-x) / x,
        position=1, constant=2.0, domain=(0.0, 700.0))  # fmt: skip
special(
    "spence",
    lambda x: mp.re(mp.polylog(2, 1 - x)),
    lambda x: mp.log(x) / (1 - x) if x != 1 else -ONE,
    deep(lambda x: (1 / x - 1 + mp.log(x)) / (1 - x) ** 2 if x != 1 else ONE / 2),
    domain=(0.0, 1e4),
    marks=(1.0, 2.0),
)
special("ellipk", mp.ellipk, lambda m: mp.pi / 8 * mp.hyp2f1(1.5, 1.5, 2, m),
        lambda m: 9 * mp.pi / 64 * mp.hyp2f1(2.5, 2.5, 3, m), domain=(-100.0, 0.99))  # fmt: skip
special("ellipe", mp.ellipe, lambda m: -mp.pi / 8 * mp.hyp2f1(0.5, 1.5, 2, m),
        lambda m: -3 * mp.pi / 64 * mp.hyp2f1(1.5, 2.5, 3, m), domain=(-100.0, 0.99))  # fmt: skip


def omega(k: int, x: Any) -> Any:
    """Wright's omega: w + ln w = x."""
    w = mp.re(mp.lambertw(mp.exp(x)))
    return (w, w / (1 + w), w / (1 + w) ** 3)[k]


special("wrightomega", *of_order(omega), domain=(-600.0, 600.0), marks=(1.0, -2.0))
special("gammainc", lambda x, a: mp.gammainc(a, 0, x, regularized=True),
        lambda x, a: mp.exp(-x) * x ** (a - 1) / mp.gamma(a),
        lambda x, a: mp.exp(-x) * x ** (a - 2) * (a - 1 - x) / mp.gamma(a), position=1,
        constant=2.5, domain=(0.0, 700.0))  # fmt: skip
special("gammaincc", lambda x, a: mp.gammainc(a, x, regularized=True),
        lambda x, a: -mp.exp(-x) * x ** (a - 1) / mp.gamma(a),
        lambda x, a: -mp.exp(-x) * x ** (a - 2) * (a - 1 - x) / mp.gamma(a), position=1,
        constant=2.5, domain=(0.0, 700.0))  # fmt: skip

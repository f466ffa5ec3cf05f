"""Print the coefficients of the polynomials in tinynode/functions/gaussian.py.

Near 0, erf(x) = x P(x^2) for |x| <= 1. Beyond, erfc(x) = e^(-x^2) Q(t) with t = 1 / (x + 1) for
1 <= x <= 6; above 6, erf is 1 in double precision. The normal distribution is
P(-x) = e^(-x^2 / 2) R(t) with t = 1 / (1 + p x). All are Chebyshev fits, made with mpmath
(``pip install mpmath``) in 40 digits. Run: ``python tools/erf_coefficients.py``
"""

from __future__ import annotations

from functools import partial

import mpmath


def near_zero(square: mpmath.mpf) -> mpmath.mpf:
    """erf(x) / x as a function of x^2."""
    if square < mpmath.mpf(10) ** -30:
        return 2 / mpmath.sqrt(mpmath.pi)
    x = mpmath.sqrt(square)
    return mpmath.erf(x) / x


def scaled_complement(t: mpmath.mpf) -> mpmath.mpf:
    """e^(x^2) erfc(x) as a function of t = 1 / (x + 1)."""
    x = 1 / t - 1
    return mpmath.exp(x * x) * mpmath.erfc(x)


def scaled_tail(pace: float, t: mpmath.mpf) -> mpmath.mpf:
    """e^(x^2 / 2) P(-x) as a function of t = 1 / (1 + pace x)."""
    x = (1 / t - 1) / mpmath.mpf(pace)
    return mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2)) / 2


def main() -> None:
    mpmath.mp.dps = 40
    fits = [
        ("NEAR", near_zero, [0, 1], 12),
        ("FAR", scaled_complement, [mpmath.mpf(1) / 7, mpmath.mpf(1) / 2], 19),
        ("SINGLE_TAIL", partial(scaled_tail, 0.3), [1 / (1 + 0.3 * mpmath.mpf(14.5)), 1], 9),
        ("DOUBLE_TAIL", partial(scaled_tail, 0.2), [1 / (1 + 0.2 * mpmath.mpf(39)), 1], 23),
    ]
    for name, function, interval, terms in fits:
        coefficients, error = mpmath.chebyfit(function, interval, terms, error=True)
        print(f"# {name}: absolute error {mpmath.nstr(error, 2)}; highest power first")
        print(f"{name} = (")
        for coefficient in coefficients:
            print(f"    {float(coefficient)!r},")
        print(")")


if __name__ == "__main__":
    main()

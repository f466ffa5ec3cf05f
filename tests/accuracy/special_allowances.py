"""The exceptions of ``xp.special``: most are errors of SciPy's values, or roots of a result."""

from __future__ import annotations

from accuracy.rows import INF

FIRST, SECOND = 1, 2
SLOPES = (FIRST, SECOND)
SINGLE, DOUBLE = ("float32",), ("float64",)
SCIPY = "a value of SciPy has this error"
ROOT = "the result has a root there: its terms cancel"
CANCELS = "two terms cancel for large x"
SUBNORMAL = "a factor is below the normal numbers, and has few bits"
OVERFLOW = "an intermediate result overflows or underflows"
EXPONENT = "the exponent is rounded, and e^u multiplies the error by |u|"

SCIPY_VALUES = """beta betaln boxcox boxcox1p cosm1 cotdg dawsn erfcinv erfcx erfi exp1 expi expn
exprel gammainc gammaincc i1 inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div log_ndtr loggamma
ndtr ndtri_exp poch pseudo_huber rgamma sinc spence tandg wrightomega y0 y1"""
"""Functions of SciPy with more than 8 ulp somewhere; the page has the numbers."""

SPECIAL_TABLE = (
    ("logit", (SECOND,), 0.4, 0.6, 8, ROOT, {"unit": 16.0}),
    ("entr", (FIRST,), 0.2, 0.6, 8, ROOT, {"unit": 1.0}),
    ("rel_entr, (x", (FIRST,), 0.05, 2.0, 8, ROOT, {"unit": 1.0}),
    ("rel_entr, (x", (FIRST,), 0.0, 1.2e-38, INF, OVERFLOW, {"dtypes": SINGLE}),
    ("rel_entr, (x", (FIRST,), 1e38, INF, INF, OVERFLOW, {"dtypes": SINGLE}),
    ("rel_entr, (x", (FIRST,), 0.0, 2.3e-308, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("rel_entr, (x", (FIRST,), 5e307, INF, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("kl_div", (FIRST,), 0.2, 4.0, 8, ROOT, {"unit": 1.0}),
    ("kl_div, (x", (FIRST,), 0.0, 1.2e-38, INF, OVERFLOW, {"dtypes": SINGLE}),
    ("kl_div, (x", (FIRST,), 1e38, INF, INF, OVERFLOW, {"dtypes": SINGLE}),
    ("kl_div, (x", (FIRST,), 0.0, 2.3e-308, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("kl_div, (x", (FIRST,), 5e307, INF, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("exprel", SLOPES, -INF, INF, 64, SCIPY, {}),
    ("exprel", SLOPES, 80.0, INF, INF, SCIPY, {"dtypes": SINGLE}),
    ("exprel", SLOPES, 700.0, INF, INF, SCIPY, {}),
    ("cbrt", (SECOND,), -INF, INF, 12, "seven roundings", {}),
    ("boxcox", SLOPES, -INF, INF, 256, SCIPY, {}),
    ("boxcox", (SECOND,), -INF, INF, INF, OVERFLOW, {"share": 0.03}),
    ("inv_boxcox", SLOPES, -INF, -3.9, INF, "the end of the domain: y^-c overflows", {}),
    ("inv_boxcox1p", SLOPES, -INF, -3.0, INF, "y + 1 cancels", {}),
    ("inv_boxcox", SLOPES, -INF, INF, 512, SCIPY, {}),
    ("inv_boxcox", SLOPES, 1e9, INF, INF, "y overflows, or y^-c underflows", {"dtypes": SINGLE}),
    ("inv_boxcox", SLOPES, 1e70, INF, INF, "y overflows, or y^-c underflows", {}),
    ("tandg", SLOPES, -INF, INF, 256, SCIPY, {"dtypes": DOUBLE}),
    ("cotdg", SLOPES, -INF, INF, INF, SCIPY, {}),
    ("sinc", SLOPES, -INF, INF, 8, ROOT, {"unit": 1.0}),
    ("erfcx", SLOPES, -INF, 1.5, 512, SCIPY, {}),
    ("dawsn", (FIRST,), -INF, INF, 16, CANCELS, {"unit": 1.0}),
    ("dawsn", (SECOND,), -INF, INF, 1024, CANCELS, {"unit": 1.0}),
    ("log_ndtr", (SECOND,), -INF, INF, 64, SCIPY, {"dtypes": DOUBLE}),
    ("log_ndtr", (SECOND,), -INF, -1e18, INF, OVERFLOW, {}),
    ("ndtri", (SECOND,), 0.4, 0.6, 8, ROOT, {"unit": 5.0}),
    ("ndtri", (SECOND,), 0.0, 1.0, 16, "ten roundings", {}),
    ("ndtri_exp", SLOPES, -INF, 0.0, 16, SCIPY, {}),
    ("ndtri_exp", SLOPES, -1e-15, 0.0, INF, SCIPY, {"dtypes": DOUBLE}),
    ("erfcinv", (SECOND,), 0.8, 1.2, 8, ROOT, {"unit": 1.0}),
    ("gamma", SLOPES, -INF, 3.0, 32, ROOT, {"unit": 1.0}),
    ("rgamma", (FIRST,), -INF, 3.0, 64, ROOT, {"unit": 1.0}),
    ("rgamma", (SECOND,), -INF, 3.0, 8192, ROOT, {"unit": 1.0}),
    ("rgamma", (SECOND,), 3.0, INF, 64, "psi^2 and psi' cancel", {}),
    ("loggamma", (FIRST,), 0.0, 3.0, 16, ROOT, {"unit": 1.0}),
    ("wrightomega", SLOPES, -INF, 0.0, 32, SCIPY, {}),
    ("beta", SLOPES, 0.0, INF, 30000, CANCELS, {}),
    ("poch", SLOPES, 0.0, 1e-16, INF, OVERFLOW, {}),
    ("poch, (x", (SECOND,), 0.0, 0.1, INF, "1 / x^2 cancels", {}),
    ("poch", SLOPES, 0.0, INF, 50000, CANCELS, {}),
    ("j", SLOPES, -INF, INF, 8, ROOT, {"unit": 1.0}),
    ("y", SLOPES, 1.0, INF, 8, ROOT, {"unit": 1.0}),
    ("y", SLOPES, 0.0, 1.0, INF, OVERFLOW, {"share": 0.03}),
    ("k", SLOPES, 0.0, 1.0, INF, OVERFLOW, {"share": 0.03}),
    ("expi", SLOPES, 1.0, INF, INF, OVERFLOW, {"share": 0.001}),
    ("i", SLOPES, -INF, INF, 16, SCIPY, {"dtypes": DOUBLE}),
    ("i", SLOPES, -1e-150, 1e-150, INF, SCIPY, {"dtypes": DOUBLE}),
    ("i0e", SLOPES, -INF, INF, 8, CANCELS, {"unit": 1.0}),
    ("i1e", SLOPES, -INF, INF, 8, CANCELS, {"unit": 1.0}),
    ("k0e", SLOPES, 0.0, INF, 8, CANCELS, {"unit": 1.0}),
    ("k0e", SLOPES, 0.5, 5.0, 64, CANCELS, {}),
    ("k1", (SECOND,), 0.0, 1e-100, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("y1", (SECOND,), 0.0, 1e-100, INF, OVERFLOW, {"dtypes": DOUBLE}),
    ("k1e", SLOPES, 0.0, INF, 8, CANCELS, {"unit": 1.0}),
    ("expi", (SECOND,), 0.5, 1.5, 8, ROOT, {"unit": 1.0}),
    ("expn", (FIRST,), 0.0, INF, 16, SCIPY, {}),
    ("ellip", SLOPES, -INF, 0.0, 128, SCIPY, {}),
    ("gammainc", SLOPES, 0.0, INF, 1024, EXPONENT, {}),
    ("gammainc", SLOPES, 0.0, 1e-20, INF, SUBNORMAL, {}),
    ("gammainc", (SECOND,), 1.0, 2.0, 8, ROOT, {"unit": 1.0}),
)
"""The start of the name, orders, lowest and largest x, ulp, reason, more; see ``Allowance``."""

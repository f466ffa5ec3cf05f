"""Where more than the usual ulp are allowed, and why.

The usual limits: 4 ulp for values, 8 for special functions and for derivatives, and 2 for values
in float16. An allowance is for a row, or for all rows whose name starts so, in a range of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accuracy.rows import INF, Row
from accuracy.special_allowances import SCIPY, SCIPY_VALUES, SPECIAL_TABLE

VALUE, FIRST, SECOND = 0, 1, 2
ALL = (VALUE, FIRST, SECOND)
HALF, SINGLE, DOUBLE = "float16", "float32", "float64"


@dataclass(frozen=True)
class Allowance:
    """An exception of the table.

    Attributes:
        name: the start of the names of the rows.
        orders: of value, first and second derivative.
        low: the least x.
        high: the largest x.
        limit: the allowed ulp.
        reason: why the usual limit does not hold.
        unit: at a root: the error is counted in the ulp of this number, not of the result.
        dtypes: the dtypes.
        compiled: True for compiled functions on ``fast`` alone.
        share: only results of at least this share of the largest number.
        is_subnormal: only results near the normal numbers' end, or below.
    """

    name: str
    orders: tuple[int, ...]
    low: float
    high: float
    limit: float
    reason: str
    unit: float = 0.0
    dtypes: tuple[str, ...] = (HALF, SINGLE, DOUBLE)
    compiled: bool = False
    share: float = 0.0
    is_subnormal: bool = False

    def holds(self, row: Row, order: int, dtype: str, device: str) -> bool:
        """True for the rows, orders and dtypes of this allowance."""
        is_here = device == "fast" or not self.compiled
        is_row = row.name.startswith(self.name)
        return is_here and is_row and order in self.orders and dtype in self.dtypes

    def covers(self, x: Any, size: Any) -> Any:
        """True where x and the size of the true result are within this allowance."""
        info = np.finfo(x.dtype)
        wide = x.astype(np.float64)
        inside = (wide >= self.low) & (wide <= self.high) & (size >= self.share * float(info.max))
        return inside & (size <= 16.0 * float(info.tiny)) if self.is_subnormal else inside


ROOT = "the result has a root there: its terms cancel"
SUBNORMAL = "a factor is below the normal numbers, and has few bits"
OVERFLOW = "the square of 1 / length overflows in between"
EXPONENT = "the exponent is rounded, and e^u multiplies the error by |u|"
REFLECTION = "pi x is rounded in the reflection formula"
TABLE = (
    Allowance("", (FIRST, SECOND), -INF, INF, INF, SUBNORMAL, is_subnormal=True),
    Allowance("pow, x^0.1", (FIRST, SECOND), 0.0, INF, 300, "the exponent c - 1 is rounded"),
    Allowance("atan2 of (x, small", (SECOND,), -0.01, 0.01, INF, OVERFLOW, dtypes=(HALF,)),
    Allowance("atan2 of (small, x", (SECOND,), -0.01, 0.01, INF, OVERFLOW, dtypes=(HALF,)),
    Allowance("softplus, beta 2", (VALUE,), 3e4, INF, INF, "beta x overflows", dtypes=(HALF,)),
    Allowance("softplus, beta 2", (VALUE,), 1.7e38, INF, INF, "beta x overflows"),
    Allowance("silu, beta 2", (SECOND,), -380.0, 380.0, 64, SUBNORMAL, dtypes=(DOUBLE,)),
    Allowance("silu", (VALUE,), -1e3, -5.0, 8, SUBNORMAL, dtypes=(HALF,)),
    Allowance("silu", (VALUE,), -110.0, -40.0, 120, SUBNORMAL, dtypes=(SINGLE,)),
    Allowance("silu", (VALUE,), -750.0, -350.0, 1000, SUBNORMAL, dtypes=(DOUBLE,)),
    Allowance("silu", (FIRST,), -1.7, -0.6, 8, ROOT, unit=0.25),
    Allowance("silu", (SECOND,), -2.6, 2.6, 8, ROOT, unit=0.25),
    Allowance("hard_silu", (FIRST,), -1.7, -1.3, 8, ROOT, unit=0.25),
    Allowance("kl_divergence of (0", (FIRST,), 0.1, 1.0, 8, ROOT, unit=1.0),
    Allowance("kl_divergence of (x", (VALUE,), -4.0, 0.0, 2, ROOT, unit=1.0),
    Allowance("gelu", (FIRST,), -1.3, -0.6, 8, ROOT, unit=0.25),
    Allowance("gelu", (SECOND,), -1.6, 1.6, 8, ROOT, unit=0.25),
    Allowance("gelu by tanh", (VALUE, FIRST), -INF, -1.0, 1500, EXPONENT),
    Allowance("gelu by tanh", (SECOND,), -INF, INF, 4000, EXPONENT),
    Allowance("logaddexp", ALL, -INF, INF, 512, EXPONENT),
    Allowance("sigmoid_cross_entropy, label 0.25", (FIRST,), -1.4, -0.8, 8, ROOT, unit=0.25),
    Allowance("softmax_cross_entropy", (FIRST, SECOND), -INF, INF, 32, EXPONENT),
    Allowance("log_softmax", (FIRST, SECOND), -INF, INF, 32, EXPONENT),
    Allowance("softmax_cross_entropy", ALL, -INF, INF, INF, SUBNORMAL, compiled=True,
              is_subnormal=True),
    Allowance("erfinv", (SECOND,), -1.0, 1.0, 16, "the slope has 4 ulp, and is squared"),
    Allowance("polygamma", ALL, 1e150, INF, INF, "x^2 overflows, and the result underflows"),
    Allowance("lgamma", (VALUE,), -30.0, 4.0, 64, ROOT, unit=1.0),
    Allowance("lgamma", (FIRST,), -30.0, 3.0, 64, ROOT, unit=1.0),
    Allowance("digamma", (VALUE,), -30.0, 3.0, 64, ROOT, unit=1.0),
    Allowance("lgamma", (SECOND,), -30.0, 0.0, 1000, REFLECTION),
    Allowance("digamma", (FIRST, SECOND), -30.0, 0.0, 1000, REFLECTION),
    Allowance("polygamma", ALL, -30.0, 0.0, 1000, REFLECTION),
    Allowance(
        "log_softmax",
        ALL,
        80.0,
        INF,
        INF,
        "below the normal numbers e^x is 0: there exp takes many times as long",
        compiled=True,
    ),
    *[
        Allowance(f"special.{name}", (VALUE,), -INF, INF, INF, SCIPY)
        for name in SCIPY_VALUES.split()
    ],
    *[Allowance(f"special.{name}", *facts, **more) for name, *facts, more in SPECIAL_TABLE],
)  # fmt: skip


def judged(row: Row, order: int, device: str, x: Any, found: Any, size: Any) -> Any:
    """The errors as multiples of what is allowed: right up to 1."""
    dtype = str(x.dtype)
    usual = 8.0 if order or row.special else 4.0
    if dtype == HALF and not order:
        usual = 2.0
    shares = found / usual
    for allowance in TABLE:
        if not allowance.holds(row, order, dtype, device):
            continue
        error = found
        if allowance.unit:
            with np.errstate(invalid="ignore"):
                error = found * np.minimum(size / allowance.unit, 1.0)
        allowed = np.zeros(x.shape) if allowance.limit == INF else error / allowance.limit
        shares = np.where(allowance.covers(x, size), np.minimum(shares, allowed), shares)
    return shares


def comparable(row: Row, order: int, x: Any, found: Any, size: Any) -> Any:
    """The errors for a table: at roots in the unit of the terms, 0 where a factor is subnormal."""
    for allowance in TABLE:
        if not allowance.holds(row, order, str(x.dtype), "numpy"):
            continue
        if allowance.unit:
            with np.errstate(invalid="ignore"):
                scaled = found * np.minimum(size / allowance.unit, 1.0)
            found = np.where(allowance.covers(x, size), scaled, found)
        if allowance.is_subnormal:
            found = np.where(allowance.covers(x, size), 0.0, found)
    return found

"""Measure: the grid of a row, and errors in units of the last place (ulp).

An ulp is the distance of neighbouring numbers of the dtype at the true result. Below the normal
numbers it is the smallest subnormal number.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpf

import tinynode as tn
from accuracy.rows import PRECISION, Row
from tinynode import functions as fn

DTYPES = ("float16", "float32", "float64")
ORDERS = ("value", "first derivative", "second derivative")
SPARSE, DENSE = 20, 200
"""Numbers of each sign in the logarithmic grid."""


# --- the grid ------------------------------------------------------------------------------------


@cache
def grid_of_all(dtype: str, count: int) -> Any:
    """Numbers of both signs from the smallest subnormal to the largest number, more around 1."""
    info = np.finfo(dtype)
    lowest, highest = np.log2(float(info.smallest_subnormal)), float(info.maxexp)
    steps = np.arange(count)
    mantissas = 1.0 + (steps * 0.6180339887498949) % 1.0
    exponents = np.floor(np.linspace(lowest, highest - 1, count))
    wide = np.ldexp(mantissas, exponents.astype(np.int64))
    usual = np.linspace(0.0, 20.0, count) + 0.1 * (mantissas - 1.0)
    tails = np.linspace(20.0, 800.0, count // 2) + mantissas[: count // 2]
    ends = [info.smallest_subnormal, info.tiny, info.max, 0.5, 1.0, 2.0, 8.0, 17.0]
    positive = np.concatenate([wide, usual, tails, np.array(ends, np.float64)])
    positive = positive[positive <= float(info.max)].astype(dtype)
    return np.concatenate([positive, -positive])


def grid(row: Row, dtype: str, count: int) -> Any:
    """The grid of all rows within the domain of this row, and the neighbourhoods of the marks."""
    bits = np.finfo(dtype).nmant
    near = 2.0 ** -np.arange(3, bits + 1, 1 if count > SPARSE else 4)
    parts = [grid_of_all(dtype, count)]
    for mark in row.marks:
        center = np.asarray(mark, dtype)
        sides = [np.nextafter(center, np.asarray(end, dtype)) for end in (-np.inf, np.inf)]
        parts += [center[None], *[side[None] for side in sides]]
        parts += [(mark * (1.0 + sign * near)).astype(dtype) for sign in (-1.0, 1.0)]
    x = np.unique(np.concatenate(parts))
    with np.errstate(over="ignore"):
        low, high = np.asarray(row.domain).astype(dtype)
    x = x[(x >= low) & (x <= high) & (x != 0)]
    if "gamma" in row.name and not row.at_zeros:  # values at poles are measured beside them
        x = x[(x > 0) | (x != np.round(x))]
    return x


def constant(row: Row, dtype: str) -> Any:
    """The other operand as an array without axes, or None."""
    if row.constant is None:
        return None
    info = np.finfo(dtype)
    exponents = {"large": info.maxexp * 3 // 4, "small": info.minexp * 3 // 4}
    number = row.constant
    if isinstance(number, str):
        number = 1.5 * 2.0 ** exponents[number]
    return np.asarray(number, dtype)


# --- the true results ----------------------------------------------------------------------------


def true_results(row: Row, order: int, x: Any, c: Any) -> tuple[Any, Any]:
    """The true results as a sum of two float64 numbers; NaN where there is none."""
    more = () if c is None else (mpf(float(c)),)
    high, low = np.full(x.shape, np.nan), np.zeros(x.shape)
    with mp.workprec(PRECISION):
        for i, number in enumerate(x.tolist()):
            try:
                result = row.exact[order](mpf(number), *more)
            except (ZeroDivisionError, ValueError):  # a pole
                continue
            if isinstance(result, mpf | int) and not mp.isnan(result):
                high[i] = float(result)
                low[i] = float(result - mpf(high[i])) if np.isfinite(high[i]) else 0.0
    return high, low


def errors(got: Any, true: tuple[Any, Any], order: int) -> Any:
    """Errors in ulp; 0 where there is no result, or a derivative that the dtype can't hold."""
    high, low = true
    info = np.finfo(got.dtype)
    size = np.abs(high)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1
        exponent = np.maximum(exponent, info.minexp)
        ulp = np.ldexp(1.0, np.maximum(exponent - info.nmant, -1074))
        wide = got.astype(np.float64)
        found = np.abs((wide - high) - low) / ulp
        largest = float(info.max)
        is_over = size > largest * (1.0 - 8 * float(info.eps))
        ends_well = (wide == np.sign(high) * np.inf) | (found <= 8)
    found = np.where(is_over, np.where(ends_well | (order > 0), 0.0, np.inf), found)
    found = np.where(np.isnan(high), 0.0, found)
    return np.where(np.isnan(found), np.inf, found)


# --- tinynode's results --------------------------------------------------------------------------


def results(row: Row, x: Any, c: Any) -> list[Any]:
    """Value, first and second derivative of tinynode, as far as the row has them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        variable = tn.Variable(x)
        y = called(row, variable, c)
        found = [y.detach().numpy()]
        for _ in row.exact[1:]:
            y = derivative(y, variable)
            found.append(y.detach().numpy())
    return found


def called(row: Row, x: Any, c: Any) -> Any:
    """The row's function of a Variable, beside the constant as an array."""
    return row.function(x) if c is None else row.function(x, tn.asarray(c))


def derivative(y: Any, x: Any) -> Any:
    """dy_i / dx_i as a Variable; 0 where y does not depend on x."""
    gx = None
    if y.requires_grad:
        (gx,) = tn.grad([fn.sum(y)], [x], enable_double_backprop=True)
    return tn.Variable(np.zeros_like(x.array), requires_grad=False) if gx is None else gx


def compiled_results(rows: list[Row], dtype: str, count: int) -> list[list[Any]]:
    """As ``results``, of all rows in three compiled functions, on the device in use."""
    constants = [constant(row, dtype) for row in rows]
    xs = [tn.Variable(grid(row, dtype, count)) for row in rows]
    numbers = tuple(range(len(rows)))

    def values(*xs: Any) -> Any:
        return tuple([called(*one) for one in zip(rows, xs, constants, strict=True)])

    def total(*xs: Any) -> Any:
        return fn.add_all(*[fn.sum(y) for y in values(*xs)])

    def total_slope(*xs: Any) -> Any:
        slopes = [g for g in tn.gradient(total, argnums=numbers)(*xs) if g is not None]
        return fn.add_all(*[fn.sum(g) for g in slopes if g.requires_grad])

    found = []
    for function in (values, *[tn.gradient(f, argnums=numbers) for f in (total, total_slope)]):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            compiled = tn.compile(function)
            for _ in range(2):  # the second run is the library's, where there is one
                ys = compiled(*xs)
        found.append([np.zeros_like(x.array) if y is None else y.detach().numpy()
                      for x, y in zip(xs, ys, strict=True)])  # fmt: skip
    return [list(parts) for parts in zip(*found, strict=True)]

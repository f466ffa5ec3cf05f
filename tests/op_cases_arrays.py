"""Rows of the table for the functions of arrays: elementwise, statistical, moving, gathering,
indexing, sorting, products and linear algebra.

Requirement: as in ``op_cases.py``, which brings what the rows are made of and the drivers of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np
from op_cases import (
    ALL,
    AXES,
    BROADCASTS,
    INTEGERS,
    LAYOUTS,
    Input,
    distinct,
    few,
    integers,
    node,
    nonzero,
    nonzero_integers,
    normal,
    np_set_item,
    nz,
    positive,
    row,
    x,
)

from tinynode import functions as fn
from tinynode.functions import linalg
from tinynode.functions.indexing import Place, Slice

# --- values --------------------------------------------------------------------------------------


def inside(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Between -1 and 1, and away from the poles and kinks there."""
    return rng.uniform(-0.8, 0.8, size=shape)


def above_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(1.5, 4, size=shape)


def beside_distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Far from each other, and at least 0.05 from all values of ``distinct``."""
    return distinct(rng, shape) + 0.05


def off_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A quarter away from the nearest integer: no step moves them over it."""
    return rng.integers(-3, 3, size=shape) + rng.choice([0.25, 0.75], size=shape)


def halves(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(-3, 3, size=shape) + 0.5


def near_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of both signs; no value of ``halves`` divided by one of these is close to an integer."""
    return rng.uniform(0.95, 1.05, size=shape) * rng.choice([-1.0, 1.0], size=shape)


def with_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """About half of them 0: several in most rows and columns, none in some."""
    return nonzero(rng, shape) * rng.integers(0, 2, size=shape)


def indices(*shape: int, n: int, low: int | None = None, **more: Any) -> Input:
    """Integers that count in an axis of length n, from both ends; several are equal."""
    return Input(shape, partial(integers, low=-n if low is None else low, high=n), "int64", **more)


def sep(*shape: int, **more: Any) -> Input:
    return Input(shape, distinct, **more)


def zeros(*shape: int, **more: Any) -> Input:
    return Input(shape, with_zeros, **more)


SHAPES: list[tuple[str, tuple[int, ...]]] = [
    ("matrix", (2, 3)),
    ("0-d", ()),
    ("zero-size", (0, 3)),
    ("one", (1, 1, 1)),
]


# --- functions of one variable -------------------------------------------------------------------


# function, the same in NumPy, values of x, order
UNARY: list[tuple[Any, Any, Any, int]] = [
    (fn.acos, np.arccos, inside, 2),
    (fn.acosh, np.arccosh, above_one, 2),
    (fn.asin, np.arcsin, inside, 2),
    (fn.asinh, np.arcsinh, normal, 2),
    (fn.atan, np.arctan, normal, 2),
    (fn.atanh, np.arctanh, inside, 2),
    (fn.ceil, np.ceil, off_integers, 0),
    (fn.cosh, np.cosh, normal, 2),
    (fn.expm1, np.expm1, normal, 2),
    (fn.floor, np.floor, off_integers, 0),
    (fn.log10, np.log10, positive, 2),
    (fn.log1p, np.log1p, inside, 2),
    (fn.log2, np.log2, positive, 2),
    (fn.positive, np.positive, normal, 2),
    (fn.reciprocal, np.reciprocal, nonzero, 2),
    (fn.round, np.round, off_integers, 0),
    (fn.sinh, np.sinh, normal, 2),
    (fn.square, np.square, normal, 2),
    (fn.tan, np.tan, inside, 2),
    (fn.trunc, np.trunc, off_integers, 0),
]
for f, ref, make_x, order in UNARY:
    unary = partial(row, f.__name__, order=order)
    for what, s in SHAPES:
        unary(what, f, ref, Input(s, make_x))
    for how in LAYOUTS:
        unary(how, f, ref, Input((3, 4), make_x, layout=how))
for f, ref in ((fn.ceil, np.ceil), (fn.floor, np.floor), (fn.trunc, np.trunc)):
    row(f.__name__, "integers", f, ref, few(9), order=0, dtypes=INTEGERS)
row("round", "integers", fn.round, np.round, few(9), order=0, dtypes=INTEGERS)
row("round", "ties", fn.round, np.round, Input((9,), halves), order=0)
row("square", "integers", fn.square, np.square, few(9), order=0, dtypes=INTEGERS)
row("positive", "integers", fn.positive, np.positive, few(9), order=0, dtypes=INTEGERS)
row("positive", "operator", lambda x: +x, np.positive, x(2, 3))
for function, of_numpy in ((fn.real, np.real), (fn.imag, np.imag), (fn.conj, np.conj)):
    row(function.__name__, "real", function, of_numpy, x(2, 3))
row("tan", "of-an-array", fn.tan, np.tan, x(3, raw=True), order=0)


# --- functions of two variables ------------------------------------------------------------------

# function, the same in NumPy, values of x1, values of x2
BINARY: list[tuple[Any, Any, Any, Any]] = [
    (fn.atan2, np.arctan2, nonzero, nonzero),
    (fn.copysign, np.copysign, nonzero, nonzero),
    (fn.hypot, np.hypot, nonzero, nonzero),
    (fn.logaddexp, np.logaddexp, normal, normal),
    (fn.maximum, np.maximum, distinct, beside_distinct),
    (fn.minimum, np.minimum, distinct, beside_distinct),
    (fn.remainder, np.remainder, halves, near_one),
]
for f, ref, make_x, make_y in BINARY:
    binary = partial(row, f.__name__)
    for what, s, t in BROADCASTS:
        binary(what, f, ref, Input(s, make_x), Input(t, make_y))
    for how in LAYOUTS:
        binary(how, f, ref, Input((3, 4), make_x, layout=how), Input((3, 4), make_y, layout=how))
    left, right = Input((2, 3), make_x), Input((3,), make_y)
    binary("x1-without-grad", f, ref, replace(left, grad=False), right)
    binary("x2-without-grad", f, ref, left, replace(right, grad=False))
    binary("array-right", f, ref, left, replace(right, raw=True))
    binary("array-left", f, ref, replace(left, raw=True), right)
    binary("number-right", lambda x, f=f: f(x, 0.97), lambda x, ref=ref: ref(x, 0.97), left)
    binary("number-left", lambda y, f=f: f(1.5, y), lambda y, ref=ref: ref(1.5, y), right)
    for s, t in (("float32", "float64"), ("float64", "float32")):
        pair = replace(left, dtype=s), replace(right, dtype=t)
        binary(f"{s}-and-{t}", f, ref, *pair, single=True)
for f, ref in ((fn.maximum, np.maximum), (fn.minimum, np.minimum)):
    row(f.__name__, "integers", f, ref, few(2, 9), few(9), order=0, dtypes=INTEGERS)
    same = partial(row, f.__name__, "same-variable-twice")
    same(lambda x, f=f: f(x, x), lambda x: x, x(2, 3))
row("hypot", "same-variable-twice", lambda x: fn.hypot(x, x), lambda x: np.hypot(x, x), nz(2, 3))
row(
    "logaddexp",
    "same-variable-twice",
    lambda x: fn.logaddexp(x, x),
    lambda x: np.logaddexp(x, x),
    x(3),
)
pair = few(4, 3), Input((3,), nonzero_integers)
row("remainder", "integers", fn.remainder, np.remainder, *pair, order=0, dtypes=INTEGERS)


def np_extreme_grad(x: Any, y: Any, z: Any, g: Any) -> Any:
    return np.where(x == z, np.where(x == y, g / 2, g), 0)


def some_infinite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.choice([1, np.inf, -np.inf], size=shape)


def np_same_infinity(x: Any, y: Any) -> Any:
    return (x == y) & np.isinf(x)


quads = (few(5, 9, grad=False), few(9, grad=False), few(5, 9, grad=False), x(5, 9))
row("ExtremeGrad", "node", node(fn.ExtremeGrad), np_extreme_grad, *quads)
pair = Input((4, 9), some_infinite), Input((9,), some_infinite)
row("SameInfinity", "node", node(fn.SameInfinity), np_same_infinity, *pair, order=0)


# --- clip ----------------------------------------------------------------------------------------

BOUNDS: list[tuple[str, dict[str, Any]]] = [
    ("both", {"min": -0.3, "max": 0.4}),
    ("lower", {"min": -0.3}),
    ("upper", {"max": 0.4}),
    ("none", {}),
    ("ints", {"min": -1, "max": 1}),
    ("int-and-float", {"min": 0, "max": 0.8}),
    ("crossed", {"min": 0.4, "max": -0.3}),
]


def np_clip_grad(x: Any, g: Any, min: float | None, max: float | None) -> Any:
    above = True if min is None else x >= min
    return g * (above & (True if max is None else x <= max))


def np_clip(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


for what, bounds in BOUNDS:
    row("clip", what, fn.clip, np_clip, sep(3, 4), **bounds)
    if bounds and what != "crossed":
        low, high = bounds.get("min"), bounds.get("max")
        row(
            "ClipGrad",
            what,
            node(fn.ClipGrad, low, high),
            partial(np_clip_grad, min=low, max=high),
            sep(3, 4, grad=False),
            x(3, 4),
        )
for what, s in SHAPES:
    row("clip", what, fn.clip, np_clip, sep(*s), min=-0.3, max=0.4)
for how in LAYOUTS:
    row("clip", how, fn.clip, np_clip, sep(3, 4, layout=how), min=-0.3, max=0.4)
low, high = Input((4,), lambda rng, s: rng.uniform(-0.7, -0.67, s)), sep()
row("clip", "positional", lambda x: fn.clip(x, -0.3, 0.4), lambda x: np.clip(x, -0.3, 0.4), sep(9))
row("clip", "integers", fn.clip, np.clip, few(9), order=0, dtypes=INTEGERS, min=-1, max=2)
row("clip", "lower-variable", fn.clip, np_clip, sep(3, 4), low)
row("clip", "lower-array", fn.clip, np_clip, sep(3, 4), replace(low, raw=True))
row("clip", "lower-broadcasts", fn.clip, np_clip, sep(4), replace(low, shape=(3, 1)))
row("clip", "lower-variable-upper-number", fn.clip, np_clip, sep(3, 4), low, max=0.4)
row("clip", "upper-variable", lambda x, b: fn.clip(x, None, b), np.minimum, sep(3, 4), low)
row("clip", "both-variables", fn.clip, np_clip, sep(3, 4), low, replace(low, make=above_one))
row("clip", "variables-crossed", fn.clip, np_clip, sep(3, 4), replace(low, make=above_one), low)
row(
    "clip",
    "lower-number-upper-variable",
    lambda x, b: fn.clip(x, -1.03, b),
    lambda x, b: np_clip(x, -1.03, b),
    sep(3, 4),
    low,
)


# --- products, variances, running sums and products ----------------------------------------------

for what, s, axes in AXES:
    row("prod", what, fn.prod, np.prod, nz(*s), **axes)
    row("prod", f"zeros-{what}", fn.prod, np.prod, zeros(*s), **axes)
for how in LAYOUTS:
    row("prod", how, fn.prod, np.prod, nz(3, 4, layout=how), axis=0)
row("prod", "four-of-which-some-are-0", fn.prod, np.prod, zeros(5, 4), axis=1)
row("prod", "zero-size-all", fn.prod, np.prod, x(0, 3))
row("prod", "zero-size-first-axis", fn.prod, np.prod, x(0, 3), axis=0)
row("prod", "integers", fn.prod, np.prod, few(2, 3), order=0, dtypes=INTEGERS, axis=0)


def np_var(x: Any, correction: float = 0, **axes: Any) -> Any:
    return np.var(x, ddof=correction, **axes)


def np_std(x: Any, correction: float = 0, **axes: Any) -> Any:
    return np.std(x, ddof=correction, **axes)


for what, s, axes in AXES:
    row("var", what, fn.var, np_var, x(*s), **axes)
    if what not in ("0-d", "one-axes", "no-axes"):  # of one element each: no slope at 0
        row("std", what, fn.std, np_std, x(*s), **axes)
for f, ref in ((fn.var, np_var), (fn.std, np_std)):
    for correction in (1, 0.5, -1):
        row(f.__name__, f"correction-{correction}", f, ref, x(3, 4), axis=0, correction=correction)
    row(f.__name__, "correction-two-axes", f, ref, x(3, 2, 2), axis=(0, 2), correction=1)
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, x(3, 4, layout=how), axis=1)


def np_running(function: Any, first: float) -> Callable[..., Any]:
    """np.cumsum or np.cumprod in the standard's terms."""

    def run(x: Any, axis: int = 0, include_initial: bool = False) -> Any:
        y = function(x, axis)
        shape = list(y.shape)
        shape[axis] = 1
        start = np.full(shape, first, y.dtype)
        return np.concat([start, y], axis) if include_initial else y

    return run


RUNNING: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("vector", (4,), {}),
    ("one", (1,), {}),
    ("first-axis", (3, 2), {"axis": 0}),
    ("last-axis", (2, 4), {"axis": -1}),
    ("middle-axis", (2, 3, 2), {"axis": 1}),
    ("initial", (4,), {"include_initial": True}),
    ("initial-middle-axis", (2, 3, 2), {"axis": 1, "include_initial": True}),
    ("zero-size", (0,), {}),
    ("zero-size-initial", (0,), {"include_initial": True}),
    ("zero-size-other-axis", (0, 3), {"axis": 1}),
    ("zero-size-this-axis", (3, 0), {"axis": 1}),
]
np_cumsum, np_cumprod = np_running(np.cumsum, 0), np_running(np.cumprod, 1)
for what, s, constants in RUNNING:
    row("cumulative_sum", what, fn.cumulative_sum, np_cumsum, x(*s), **constants)
    row("cumulative_prod", what, fn.cumulative_prod, np_cumprod, nz(*s), **constants)
    row("cumulative_prod", f"zeros-{what}", fn.cumulative_prod, np_cumprod, zeros(*s), **constants)
for how in LAYOUTS:
    row("cumulative_sum", how, fn.cumulative_sum, np_cumsum, x(3, 4, layout=how), axis=0)
    row("cumulative_prod", how, fn.cumulative_prod, np_cumprod, nz(3, 4, layout=how), axis=0)
row("cumulative_prod", "zeros-rows", fn.cumulative_prod, np_cumprod, zeros(6, 5), axis=1)
for f, ref in ((fn.cumulative_sum, np_cumsum), (fn.cumulative_prod, np_cumprod)):
    running = partial(row, f.__name__, order=0, dtypes=INTEGERS)
    running("integers", f, ref, few(9))
    running("integers-initial", f, ref, few(2, 3), axis=1, include_initial=True)


def np_diff(x: Any, axis: int = -1, n: int = 1) -> Any:
    return np.diff(x, n, axis)


for what, s, constants in (
    ("vector", (4,), {}),
    ("one", (1,), {}),
    ("first-axis", (3, 2), {"axis": 0}),
    ("middle-axis", (2, 3, 2), {"axis": 1}),
    ("twice", (2, 4), {"n": 2}),
    ("never", (2, 4), {"n": 0}),
    ("until-nothing-is-left", (2, 3), {"n": 3}),
    ("zero-size", (0, 3), {}),
):
    row("diff", what, fn.diff, np_diff, x(*s), **constants)
for how in LAYOUTS:
    row("diff", how, fn.diff, np_diff, x(3, 4, layout=how), axis=0)
row("diff", "integers", fn.diff, np_diff, few(9), order=0, dtypes=INTEGERS)
row(
    "diff",
    "prepend-and-append",
    lambda x, y, z: fn.diff(x, prepend=y, append=z, axis=0),
    lambda x, y, z: np.diff(x, prepend=y, append=z, axis=0),
    x(2, 3),
    x(1, 3),
    x(2, 3),
)


def np_logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


for what, s, constants in (
    ("all", (2, 3), {}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("keepdims", (2, 3), {"axis": 0, "keepdims": True}),
    ("two-axes", (2, 3, 2), {"axis": (0, 2)}),
    ("0-d", (), {}),
    ("zero-size", (0, 3), {"axis": 1}),
):
    row("logsumexp", what, fn.logsumexp, np_logsumexp, x(*s), **constants)
for how in LAYOUTS:
    row("logsumexp", how, fn.logsumexp, np_logsumexp, x(3, 4, layout=how), axis=1)


def np_linear_scan(a: Any, b: Any, axis: int) -> Any:
    a, s = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0).copy()
    for i in range(1, len(s)):
        s[i] += a[i] * s[i - 1]
    return np.moveaxis(s, 0, axis)


for what, s, axis in (
    ("vector", (4,), 0),
    ("one", (1,), 0),
    ("first-axis", (3, 2), 0),
    ("last-axis", (2, 4), 1),
    ("middle-axis", (2, 3, 2), 1),
    ("zero-size-other-axis", (0, 3), 1),
):
    ref = partial(np_linear_scan, axis=axis)
    row("LinearScan", what, node(fn.LinearScan, axis), ref, x(*s), x(*s))


# --- another order, another number ---------------------------------------------------------------

FLIPS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("all", (2, 3), {}),
    ("vector", (4,), {"axis": 0}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("two-axes", (2, 3, 4), {"axis": (0, 2)}),
    ("two-axes-from-the-end", (2, 3, 4), {"axis": [-1, -2]}),
    ("no-axes", (2, 3), {"axis": ()}),
    ("0-d", (), {}),
    ("zero-size", (0, 3), {"axis": 1}),
]


def np_flip(x: Any, axis: Any = None) -> Any:
    return np.flip(x, tuple(axis) if isinstance(axis, list) else axis)


for what, s, constants in FLIPS:
    row("flip", what, fn.flip, np_flip, x(*s), **constants)
ROLLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("flat", (2, 3), {"shift": 2}),
    ("flat-back", (2, 3), {"shift": -1}),
    ("vector", (4,), {"shift": 1}),
    ("first-axis", (3, 2), {"shift": 1, "axis": 0}),
    ("last-axis", (2, 4), {"shift": -1, "axis": -1}),
    ("further-than-the-length", (3, 2), {"shift": 7, "axis": 0}),
    ("two-axes", (3, 4), {"shift": (1, -2), "axis": (0, 1)}),
    ("one-shift-for-two-axes", (3, 4), {"shift": 1, "axis": (0, 1)}),
    ("one-of-each-in-tuples", (3, 4), {"shift": (2,), "axis": (1,)}),
    ("axes-from-the-end", (3, 4, 2), {"shift": [1, 2], "axis": [-1, -2]}),
    ("by-nothing", (3,), {"shift": 0, "axis": 0}),
    ("0-d", (), {"shift": 1}),
    ("zero-size", (0, 3), {"shift": 1, "axis": 0}),
    ("zero-size-flat", (0, 3), {"shift": 1}),
]
for what, s, constants in ROLLS:
    row("roll", what, fn.roll, np.roll, x(*s), **constants)
for how in LAYOUTS:
    row("flip", how, fn.flip, np_flip, x(3, 4, layout=how), axis=1)
    row("roll", how, fn.roll, np.roll, x(3, 4, layout=how), shift=1, axis=1)
row("flip", "integers", fn.flip, np_flip, few(2, 3), order=0, dtypes=INTEGERS, axis=1)
row("roll", "integers", fn.roll, np.roll, few(2, 3), order=0, dtypes=INTEGERS, shift=2)

for what, s, places in (
    ("first-to-last", (2, 3, 4), (0, -1)),
    ("last-to-first", (2, 3, 4), (-1, 0)),
    ("first-to-middle", (2, 3, 4), (0, 1)),
    ("stays", (2, 3), (1, 1)),
    ("two", (2, 3, 4), ((0, 1), (1, 2))),
    ("two-to-places-that-fall", (2, 3, 4), ((0, 1), (-1, 0))),
    ("two-of-four", (2, 1, 3, 4), ([3, 0], [0, 2])),
    ("none", (2, 3), ((), ())),
    ("zero-size", (0, 3), (0, 1)),
):
    moves = {"source": places[0], "destination": places[1]}
    row("moveaxis", what, fn.moveaxis, np.moveaxis, x(*s), **moves)
for what, s, axis in (
    ("first", (2, 3), 0),
    ("last", (2, 3), -1),
    ("middle", (2, 3), 1),
    ("before-the-last", (2, 3), -2),
    ("several", (2, 3), (0, 2)),
    ("several-from-the-end", (2, 3), [-1, 0, -3]),
    ("none", (2, 3), ()),
    ("of-0-d", (), 0),
    ("zero-size", (0, 3), 1),
):
    expected = partial(np.expand_dims, axis=tuple(axis) if isinstance(axis, list) else axis)
    row("expand_dims", what, lambda x, a=axis: fn.expand_dims(x, a), expected, x(*s))
row("expand_dims", "by-name", fn.expand_dims, np.expand_dims, x(2, 3), axis=1)
row("expand_dims", "default", fn.expand_dims, lambda x: x[None], x(2, 3))
for what, s, axis in (
    ("first", (1, 2, 3), 0),
    ("last", (2, 3, 1), -1),
    ("middle", (2, 1, 3), 1),
    ("one-of-two", (1, 2, 1), 2),
    ("several", (1, 2, 1), (0, 2)),
    ("all", (1, 1), (0, -1)),
    ("none", (1, 2), ()),
    ("zero-size", (0, 1, 3), 1),
):
    row("squeeze", what, fn.squeeze, np.squeeze, x(*s), axis=axis)


@wraps(fn.stack)
def stack(*xs: Any, axis: int = 0) -> Any:
    return fn.stack(xs, axis=axis)


def np_stack(*xs: Any, axis: int = 0) -> Any:
    return np.stack(xs, axis)


for what, s, count, axis in (
    ("two", (2, 3), 2, 0),
    ("three", (3,), 3, 0),
    ("one", (2, 3), 1, 0),
    ("last-axis", (2, 3), 2, -1),
    ("last-axis-from-the-front", (2, 3), 2, 2),
    ("middle-axis", (2, 3), 3, 1),
    ("0-d", (), 3, 0),
    ("zero-size", (0, 3), 2, 1),
):
    row("stack", what, stack, np_stack, *[x(*s)] * count, axis=axis)
row("stack", "default-axis", lambda *xs: fn.stack(list(xs)), np_stack, x(2), x(2))
row(
    "stack",
    "same-variable-twice",
    lambda x: fn.stack([x, x * x, x]),
    lambda x: np_stack(x, x * x, x),
    x(3),
)
row("stack", "array-among-them", stack, np_stack, x(2, 3), x(2, 3, raw=True), axis=1)
row("stack", "x-without-grad", stack, np_stack, x(2, 3, grad=False), x(2, 3))
row("stack", "integers", stack, np_stack, few(3), few(3), order=0, dtypes=INTEGERS)


def np_unstack(x: Any, axis: int = 0) -> Any:
    return tuple(np.moveaxis(x, axis, 0))


for what, s, axis in (
    ("matrix", (2, 3), 0),
    ("last-axis", (2, 3), -1),
    ("middle-axis", (2, 3, 2), 1),
    ("vector", (3,), 0),
    ("one", (1, 3), 0),
    ("zero-size", (2, 0), 0),
):
    row("unstack", what, fn.unstack, np_unstack, x(*s), axis=axis)
row("unstack", "one-is-used", lambda x: fn.unstack(x)[1], lambda x: x[1], x(3, 2))
row("unstack", "into-nothing", fn.unstack, np_unstack, x(0, 3), order=0)
for what, s, repetitions in (
    ("vector", (3,), (2,)),
    ("matrix", (2, 3), (2, 3)),
    ("new-axes", (3,), (2, 1, 2)),
    ("fewer-than-axes", (2, 3), (2,)),
    ("once", (2, 3), (1, 1)),
    ("never", (2, 3), (0, 2)),
    ("no-numbers", (2, 3), ()),
    ("0-d", (), (2, 3)),
    ("zero-size", (0, 3), (2, 2)),
    ("list", (2, 2), [1, 3]),
):
    call = partial(fn.tile, repetitions=repetitions)
    row(
        "tile",
        what,
        lambda x, r=repetitions: fn.tile(x, r),
        partial(np.tile, reps=repetitions),
        x(*s),
    )
row(
    "tile",
    "by-name",
    fn.tile,
    lambda x, repetitions: np.tile(x, repetitions),
    x(2),
    repetitions=(3,),
)


def np_pad(x: Any, pad_width: Any, value: float = 0) -> Any:
    return np.pad(x, pad_width, constant_values=value) if x.ndim else x.copy()


def np_meshgrid(*arrays: Any, indexing: str) -> Any:
    return tuple(np.meshgrid(*arrays, indexing=indexing))


for what, s, repeats, axes in (
    ("vector", (3,), 2, {}),
    ("flat", (2, 3), 2, {}),
    ("first-axis", (2, 3), 3, {"axis": 0}),
    ("last-axis", (2, 3), 2, {"axis": -1}),
    ("middle-axis", (2, 3, 2), 2, {"axis": 1}),
    ("once", (2, 3), 1, {"axis": 0}),
    ("never", (2, 3), 0, {"axis": 0}),
    ("0-d", (), 3, {}),
    ("zero-size", (0, 3), 2, {"axis": 1}),
):
    row("repeat", what, fn.repeat, np.repeat, x(*s), repeats=repeats, **axes)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    row("moveaxis", how, fn.moveaxis, np.moveaxis, one, source=0, destination=1)
    row("stack", how, stack, np_stack, one, one, axis=1)
    row("unstack", how, fn.unstack, np_unstack, one, axis=1)
    row(
        "tile",
        how,
        fn.tile,
        lambda x, repetitions: np.tile(x, repetitions),
        one,
        repetitions=(2, 1),
    )
    row("repeat", how, fn.repeat, np.repeat, one, repeats=2, axis=1)
    row("pad", how, fn.pad, np_pad, one, pad_width=1)
    row("tril", how, fn.tril, np.tril, one)
    row("triu", how, fn.triu, np.triu, one)
row("repeat", "list", lambda x: fn.repeat(x, [1, 0, 2]), lambda x: np.repeat(x, [1, 0, 2]), x(3))
row(
    "repeat",
    "array-of-repeats",
    lambda x: fn.repeat(x, np.array([2, 0, 1]), axis=1),
    lambda x: np.repeat(x, [2, 0, 1], axis=1),
    x(2, 3),
)
for what, s, width, value in (
    ("matrix", (2, 3), 1, 0),
    ("value", (2, 3), 1, 2.5),
    ("pair", (2, 3), (0, 2), 0),
    ("each-axis", (2, 3), ((1, 0), (0, 2)), -1.0),
    ("nothing", (2, 3), 0, 0),
    ("zero-size", (0, 3), 1, 4.0),
    ("0-d", (), 1, 0),
):
    row("pad", what, fn.pad, np_pad, x(*s), pad_width=width, value=value)
row("pad", "integers", fn.pad, np_pad, few(2, 3), order=0, dtypes=INTEGERS, pad_width=1, value=7)
for f, ref in ((fn.tril, np.tril), (fn.triu, np.triu)):
    for what, s, k in (
        ("square", (3, 3), 0),
        ("wide", (2, 4), 1),
        ("tall", (4, 2), -1),
        ("stack", (2, 3, 3), 0),
        ("nothing-is-left", (2, 2), 5 if f is fn.triu else -5),
        ("zero-size", (0, 3), 0),
    ):
        row(f.__name__, what, f, ref, x(*s), k=k)
    row(f.__name__, "integers", f, ref, few(3, 3), order=0, dtypes=INTEGERS)
for what, shapes, how in (
    ("two", ((2,), (3,)), "xy"),
    ("matrix-order", ((2,), (3,)), "ij"),
    ("three", ((2,), (3,), (1,)), "xy"),
    ("one", ((2,),), "xy"),
    ("zero-size", ((0,), (3,)), "xy"),
):
    row("meshgrid", what, fn.meshgrid, np_meshgrid, *(x(*s) for s in shapes), indexing=how)
np_broadcast = np.broadcast_arrays
row("broadcast_arrays", "two", fn.broadcast_arrays, np_broadcast, x(2, 1), x(3))
row("broadcast_arrays", "three", fn.broadcast_arrays, np_broadcast, x(2, 1, 1), x(3, 1), x())
row("broadcast_arrays", "one", fn.broadcast_arrays, np_broadcast, x(2, 3))
row("broadcast_arrays", "zero-size", fn.broadcast_arrays, np_broadcast, x(0, 1), x(1, 3))
row(
    "broadcast_arrays",
    "array",
    lambda x, y: fn.broadcast_arrays(x, y)[0],
    lambda x, y: np_broadcast(x, y)[0],
    x(3),
    x(2, 1, raw=True),
)


# --- gathering -----------------------------------------------------------------------------------


def np_add_at(values: Any, indices: Any, length: int) -> Any:
    y = np.zeros((length, *values.shape[1:]), values.dtype)
    np.add.at(y, indices, values)
    return y


def np_take_rows(x: Any, indices: Any) -> Any:
    return x[indices]


for what, rest, k in (
    ("vector", (), 5),
    ("matrix", (2,), 5),
    ("three-axes", (2, 3), 4),
    ("no-indices", (2,), 0),
    ("zero-size-rest", (0,), 3),
):
    row("TakeRows", what, node(fn.TakeRows), np_take_rows, x(3, *rest), indices(k, n=3))
    ref = partial(np_add_at, length=3)
    row("AddAt", what, node(fn.AddAt, 3), ref, x(k, *rest), indices(k, n=3))
for how in LAYOUTS:
    pair = x(4, 3, layout=how), indices(4, n=3)
    row("AddAt", how, node(fn.AddAt, 3), partial(np_add_at, length=3), *pair)


def np_take(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, indices, axis)


TAKES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("vector", (3,), (5,), {}),
    ("vector-axis", (3,), (5,), {"axis": -1}),
    ("first-axis", (3, 2), (5,), {"axis": 0}),
    ("last-axis", (2, 3), (4,), {"axis": -1}),
    ("middle-axis", (2, 3, 2), (4,), {"axis": 1}),
    ("one-index", (2, 3), (1,), {"axis": 1}),
    ("no-index", (2, 3), (0,), {"axis": 1}),
    ("0-d-index", (2, 3, 2), (), {"axis": 1}),
    ("two-axes-of-indices", (2, 3, 2), (2, 4), {"axis": 1}),
    ("three-axes-of-indices", (3, 2), (1, 2, 2), {"axis": 0}),
    ("zero-size-other-axis", (0, 3), (4,), {"axis": 1}),
]
for what, s, k, axes in TAKES:
    row("take", what, fn.take, np_take, x(*s), indices(*k, n=3), **axes)
three = {"indices": [2, 0, 2], "axis": 1}
row("take", "list", fn.take, np_take, x(2, 3), **three)
row("take", "tuple", fn.take, np_take, x(2, 3), indices=(-1, 0), axis=1)
row("take", "integer", fn.take, np_take, x(2, 3), indices=-1, axis=1)
row("take", "empty-list", fn.take, np_take, x(2, 3), indices=np.zeros(0, int).tolist(), axis=0)
row("take", "array", fn.take, np_take, x(2, 3), indices(4, n=3, raw=True), axis=1)
row("take", "int32", fn.take, np_take, x(3), replace(indices(4, n=3), dtype="int32"))
row(
    "take",
    "same-variable-twice",
    lambda x, i: fn.take(x * x, i) * x[:4],
    lambda x, i: (x * x)[i] * x[:4],
    x(5),
    indices(4, n=5),
)
row("take", "of-integers", fn.take, np_take, few(9), indices(5, n=9), order=0, dtypes=("int64",))
for how in LAYOUTS:
    pair = x(3, 4, layout=how), indices(5, n=4, layout=how)
    row("take", how, fn.take, np_take, *pair, axis=1)


def np_take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    return np.take_along_axis(x, indices, axis)


def np_positions_along_axis(indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    places = np.arange(math.prod(shape)).reshape(shape)
    return np.take_along_axis(places, indices, axis).ravel()


ALONG: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = [
    ("vector", (3,), (5,), -1),
    ("first-axis", (3, 2), (5, 2), 0),
    ("last-axis", (2, 3), (2, 4), -1),
    ("middle-axis", (2, 3, 2), (2, 4, 2), 1),
    ("one-index", (2, 3), (2, 1), 1),
    ("no-index", (2, 3), (2, 0), 1),
    ("zero-size-other-axis", (0, 3), (0, 2), 1),
]
for what, s, k, axis in ALONG:
    row(
        "take_along_axis",
        what,
        fn.take_along_axis,
        np_take_along_axis,
        x(*s),
        indices(*k, n=3),
        axis=axis,
    )
    f = node(fn.PositionsAlongAxis, axis % len(s), s)
    ref = partial(np_positions_along_axis, axis=axis, shape=s)
    row("PositionsAlongAxis", what, f, ref, indices(*k, n=3), order=0, dtypes=("int64",))
row(
    "take_along_axis",
    "default-axis",
    fn.take_along_axis,
    np_take_along_axis,
    x(2, 3),
    indices(2, 5, n=3),
)
row(
    "take_along_axis",
    "array",
    fn.take_along_axis,
    np_take_along_axis,
    x(2, 3),
    indices(2, 5, n=3, raw=True),
)
for how in LAYOUTS:
    pair = x(3, 4, layout=how), indices(3, 5, n=4, layout=how)
    row("take_along_axis", how, fn.take_along_axis, np_take_along_axis, *pair)


# --- indexing with arrays ------------------------------------------------------------------------


def half_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """As many True as False, so that every draw selects equally many."""
    size = math.prod(shape)
    return (rng.permutation(size) < size // 2).reshape(shape)


def half(*shape: int, **more: Any) -> Input:
    return Input(shape, half_true, "bool", **more)


def none_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape, bool)


def all_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.ones(shape, bool)


def each_once(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> Any:
    """Different integers from 0 to n - 1."""
    return rng.permutation(n)[: math.prod(shape)].reshape(shape)


def once(*shape: int, n: int) -> Input:
    return Input(shape, partial(each_once, n=n), "int64")


def get(index: Callable[..., Any], x: Any, *arrays: Any) -> Any:
    return fn.get_item(x, index(*arrays))


def np_get(index: Callable[..., Any], x: Any, *arrays: Any) -> Any:
    return x[index(*arrays)]


def put(index: Callable[..., Any], x: Any, v: Any, *arrays: Any) -> Any:
    return fn.set_item(x, index(*arrays), v)


def np_put(index: Callable[..., Any], x: Any, v: Any, *arrays: Any) -> Any:
    return np_set_item(x, v, index(*arrays))


MIXED = "array_api_strict takes integer arrays beside integers only, one for every axis"
CPU_ONLY = "array_api_strict writes by a bool array on its device CPU_DEVICE only"
WRITES = "array_api_strict writes nowhere by integer arrays"
ALONE = "array_api_strict takes a bool array by itself only"

in_3, in_4 = indices(5, n=3), indices(5, n=4)

# x, the index, the arrays in it, why array_api_strict refuses it
Arrays = list[Input]
READS: list[tuple[str, tuple[int, ...], Callable[..., Any], Arrays, str]] = [
    ("array", (3, 4), lambda i: i, [in_3], ""),
    ("array-of-two-axes", (3, 4), lambda i: i, [indices(2, 3, n=3)], ""),
    ("array-in-tuple", (3,), lambda i: (i,), [in_3], ""),
    ("array-without-elements", (3, 4), lambda i: i, [indices(0, n=3)], ""),
    ("array-and-ellipsis", (3, 4), lambda i: (i, ...), [in_3], MIXED),
    ("ellipsis-and-array", (2, 3, 4), lambda i: (..., i), [in_4], MIXED),
    ("array-and-slice", (3, 4), lambda i: (i, slice(3, 0, -2)), [in_3], MIXED),
    ("slice-and-array", (3, 4), lambda i: (slice(1, 9), i), [in_4], MIXED),
    ("slice-array-none", (3, 4), lambda i: (ALL, i, None), [in_4], MIXED),
    ("arrays", (3, 4), lambda i, j: (i, j), [indices(7, n=3), indices(7, n=4)], ""),
    ("arrays-broadcast", (3, 4), lambda i, j: (i, j), [indices(5, 1, n=3), indices(3, n=4)], ""),
    ("array-and-integer", (3, 4), lambda i: (i, -1), [in_3], ""),
    ("integer-and-array", (3, 4), lambda i: (1, i), [in_4], ""),
    ("arrays-and-none", (3, 4), lambda i, j: (i, j, None), [in_3, in_4], ""),
    ("none-and-array", (3,), lambda i: (None, i), [in_3], ""),
    ("arrays-apart", (3, 2, 4), lambda i, j: (i, ALL, j), [in_3, in_4], MIXED),
    ("arrays-beside", (2, 3, 4), lambda i, j: (ALL, i, j), [in_3, in_4], MIXED),
    ("none-between-arrays", (2, 3, 4), lambda i, j: (ALL, i, None, j), [in_3, in_4], MIXED),
    ("array-zero-size", (0, 3), lambda i: (ALL, i), [in_3], MIXED),
    ("mask", (3, 4), lambda m: m, [half(3, 4)], ""),
    ("mask-of-a-vector", (5,), lambda m: m, [half(5)], ""),
    ("mask-of-the-first-axis", (4, 3), lambda m: m, [half(4)], ""),
    ("mask-of-the-first-axes", (2, 3, 2), lambda m: m, [half(2, 3)], ""),
    ("mask-of-nothing", (2, 3), lambda m: m, [Input((2, 3), none_true, "bool")], ""),
    ("mask-of-everything", (2, 3), lambda m: m, [Input((2, 3), all_true, "bool")], ""),
    ("mask-in-tuple", (3, 4), lambda m: (m,), [half(3, 4)], ""),
    ("mask-zero-size", (0, 3), lambda m: m, [half(0, 3)], ""),
    ("mask-and-slice", (4, 3), lambda m: (m, slice(1, None)), [half(4)], ALONE),
    ("slice-and-mask", (2, 4), lambda m: (ALL, m), [half(4)], ALONE),
    ("ellipsis-and-mask", (2, 3, 4), lambda m: (..., m), [half(4)], ALONE),
    ("integer-and-mask", (2, 2, 3), lambda m: (1, m), [half(2, 3)], ALONE),
    ("mask-and-array", (2, 2, 4), lambda m, i: (m, i), [half(2, 2), indices(2, n=4)], ALONE),
]  # fmt: skip
for what, s, index, arrays, reason in READS:
    f, ref = partial(get, index), partial(np_get, index)
    row("get_item", what, f, ref, x(*s), *arrays, not_on_strict=reason)
raw = indices(5, n=3, raw=True)
row("get_item", "raw-array", partial(get, lambda i: i), partial(np_get, lambda i: i), x(3, 4), raw)
pair = x(3, 4), half(3, 4, raw=True)
row("get_item", "raw-mask", partial(get, lambda m: m), partial(np_get, lambda m: m), *pair)
pair = x(3, 4), replace(in_3, dtype="int32")
row("get_item", "int32", lambda x, i: x[i, 1], lambda x, i: x[i, 1], *pair)
row("get_item", "list", lambda x: x[[2, 0, 2]], lambda x: x[[2, 0, 2]], x(3, 4))
row(
    "get_item",
    "lists",
    lambda x: x[[2, 0, 2], [1, -1, 1]],
    lambda x: x[[2, 0, 2], [1, -1, 1]],
    x(3, 4),
)
row(
    "get_item",
    "bool-list",
    lambda x: x[[True, False, True]],
    lambda x: x[[True, False, True]],
    x(3, 4),
)
row("get_item", "empty-list", lambda x: x[[]], lambda x: x[[]], x(3, 4))
row(
    "get_item",
    "own-mask",
    lambda x: x[x > 0] ** 2,
    lambda x: x[x > 0] ** 2,
    nz(3, dtype="float64"),
)
pair = few(3, 4), half(3, 4)
row(
    "get_item",
    "mask-of-integers",
    lambda x, m: x[m],
    lambda x, m: x[m],
    *pair,
    order=0,
    dtypes=INTEGERS,
)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    f = partial(get, lambda i, j: (i, j)), partial(np_get, lambda i, j: (i, j))
    row("get_item", f"arrays-{how}", *f, one, indices(5, n=3, layout=how), in_4)
    f = partial(get, lambda m: m), partial(np_get, lambda m: m)
    row("get_item", f"mask-{how}", *f, one, half(3, 4, layout=how))

# x, the value, the index, the arrays in it (no element twice), why array_api_strict refuses it
PAIR = [once(2, n=3), once(2, n=4)]
PUTS: list[tuple[str, tuple[int, ...], tuple[int, ...], Callable[..., Any], Arrays, str]] = [
    ("array", (3, 4), (2, 4), lambda i: i, [once(2, n=3)], WRITES),
    ("array-value-broadcasts", (4, 3), (3,), lambda i: i, [once(2, n=4)], WRITES),
    ("array-and-slice", (3, 4), (2, 2), lambda i: (i, slice(1, 3)), [once(2, n=3)], WRITES),
    ("slice-array-none", (3, 4), (3, 2, 1), lambda i: (ALL, i, None), [once(2, n=4)], WRITES),
    ("arrays", (3, 4), (3,), lambda i, j: (i, j), [once(3, n=3), once(3, n=4)], WRITES),
    ("broadcast", (3, 4), (2, 3), lambda i, j: (i, j), [once(2, 1, n=3), once(3, n=4)], WRITES),
    ("arrays-apart", (3, 2, 4), (2, 2), lambda i, j: (i, ALL, j), PAIR, WRITES),
    ("none-between", (2, 3, 4), (2, 2, 1), lambda i, j: (ALL, i, None, j), PAIR, WRITES),
    ("none-ellipsis", (3, 2, 4), (2, 1, 2), lambda i, j: (None, i, ..., j), PAIR, WRITES),
    ("array-and-integer", (3, 4), (2,), lambda i: (i, 1), [once(2, n=3)], WRITES),
    ("mask", (3, 4), (6,), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-value-0-d", (3, 4), (), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-value-one", (3, 4), (1,), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-of-the-first-axis", (4, 3), (2, 3), lambda m: m, [half(4)], CPU_ONLY),
    ("mask-of-the-first-axis-value-broadcasts", (4, 3), (3,), lambda m: m, [half(4)], CPU_ONLY),
    ("mask-of-nothing", (2, 3), (0,), lambda m: m, [Input((2, 3), none_true, "bool")], CPU_ONLY),
    ("mask-of-everything", (2, 3), (6,), lambda m: m, [Input((2, 3), all_true, "bool")], CPU_ONLY),
    ("slice-and-mask", (2, 4), (2, 2), lambda m: (ALL, m), [half(4)], ALONE),
]  # fmt: skip
for what, s, t, index, arrays, reason in PUTS:
    f, ref = partial(put, index), partial(np_put, index)
    row("set_item", what, f, ref, x(*s), x(*t), *arrays, not_on_strict=reason)
row(
    "set_item",
    "mask-number",
    lambda x, m: fn.set_item(x, m, 2.5),
    lambda x, m: np.where(m, 2.5, x).astype(x.dtype),
    x(3, 4),
    half(3, 4),
    not_on_strict=CPU_ONLY,
)
row(
    "set_item",
    "list",
    lambda x, v: fn.set_item(x, [2, 0], v),
    lambda x, v: np_set_item(x, v, [2, 0]),
    x(3, 4),
    x(2, 4),
    not_on_strict=WRITES,
)
pair = x(3, 4), x(6, grad=False), half(3, 4)
f = partial(put, lambda m: m), partial(np_put, lambda m: m)
row("set_item", "mask-v-without-grad", *f, *pair, not_on_strict=CPU_ONLY)
row(
    "set_item",
    "mask-x-without-grad",
    *f,
    x(3, 4, grad=False),
    x(6),
    half(3, 4),
    not_on_strict=CPU_ONLY,
)
for how in LAYOUTS:
    row(
        "set_item",
        f"mask-{how}",
        *f,
        x(3, 4, layout=how),
        x(6),
        half(3, 4, layout=how),
        not_on_strict=CPU_ONLY,
    )


def np_positions(index: Callable[..., Any], shape: tuple[int, ...], *arrays: Any) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)[index(*arrays)].ravel()


AFTER_1 = Slice(1, None, None)
# the index as a constant, and the same of arrays
PLACES: list[tuple[str, tuple[int, ...], Any, Callable[..., Any], Arrays, str]] = [
    ("arrays", (3, 4), (Place(1), Place(1)), lambda i, j: (i, j), [in_3, in_4], ""),
    ("mask", (3, 4), (Place(2),), lambda m: m, [half(3, 4)], ""),
    ("mask-of-the-first-axis", (4, 3), (Place(1),), lambda m: m, [half(4)], ""),
    ("slice-and-array", (3, 4), (AFTER_1, Place(1)), lambda i: (slice(1, None), i), [in_4], MIXED),
]  # fmt: skip
for what, s, frozen, index, arrays, reason in PLACES:
    how = {"order": 0, "dtypes": ("int64",), "not_on_strict": reason}
    row(
        "Positions",
        what,
        node(fn.Positions, frozen, s),
        partial(np_positions, index, s),
        *arrays,
        **how,
    )


# --- sorting -------------------------------------------------------------------------------------


def np_sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    y = np.sort(x, axis)
    return np.flip(y, axis) if descending else y


def np_argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Equal elements in their order, whichever way they are sorted."""
    return np.argsort(-x if descending else x, axis, stable=True)


SORTS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("vector", (6,), {}),
    ("default-axis", (2, 4), {}),
    ("first-axis", (4, 2), {"axis": 0}),
    ("middle-axis", (2, 4, 2), {"axis": 1}),
    ("negative-axis", (2, 4, 2), {"axis": -2}),
    ("descending", (6,), {"descending": True}),
    ("descending-first-axis", (4, 3), {"axis": 0, "descending": True}),
    ("not-stable", (6,), {"stable": False}),
    ("one", (1,), {}),
    ("zero-size", (0, 3), {}),
    ("zero-size-this-axis", (2, 0), {"descending": True}),
]
for what, s, constants in SORTS:
    row("sort", what, fn.sort, np_sort, sep(*s), **constants)
    row("argsort", what, fn.argsort, np_argsort, sep(*s), order=0, **constants)
    row("argsort", f"ties-{what}", fn.argsort, np_argsort, few(*s), order=0, **constants)
for how in LAYOUTS:
    row("sort", how, fn.sort, np_sort, sep(3, 4, layout=how))
    row("argsort", how, fn.argsort, np_argsort, sep(3, 4, layout=how), order=0)
row("sort", "integers", fn.sort, np_sort, few(9), order=0, dtypes=INTEGERS)
row("argsort", "integers", fn.argsort, np_argsort, few(9), order=0, dtypes=INTEGERS)
row(
    "sort",
    "twice",
    lambda x: fn.sort(fn.sort(x * x, descending=True)),
    lambda x: np.sort(x * x),
    sep(5),
)

for f, ref in ((fn.argmax, np.argmax), (fn.argmin, np.argmin)):
    extreme = partial(row, f.__name__, order=0)
    for what, s, axes in (
        ("flat", (3, 4), {}),
        ("flat-keepdims", (3, 4), {"keepdims": True}),
        ("first-axis", (3, 4), {"axis": 0}),
        ("last-axis-keepdims", (3, 4), {"axis": -1, "keepdims": True}),
        ("middle-axis", (2, 5, 3), {"axis": 1}),
        ("0-d", (), {}),
        ("zero-size-other-axis", (0, 3), {"axis": 1}),
    ):
        extreme(what, f, ref, few(*s), **axes)
    extreme("integers", f, ref, few(9), dtypes=INTEGERS)
    for how in LAYOUTS:
        extreme(how, f, ref, sep(3, 4, layout=how), axis=1)


# --- products ------------------------------------------------------------------------------------

for what, s, t, axes in (
    ("default", (2, 3, 4), (3, 4, 2), {}),
    ("one", (2, 3), (3, 4), {"axes": 1}),
    ("outer", (2, 3), (2,), {"axes": 0}),
    ("all", (2, 3), (2, 3), {"axes": 2}),
    ("pairs", (2, 3, 4), (4, 5, 2), {"axes": ((2, 0), (0, 2))}),
    ("pair-in-the-middle", (2, 3, 4), (5, 3), {"axes": ([1], [1])}),
    ("pairs-from-the-end", (2, 3, 4), (3, 4, 2), {"axes": ((-1, -2), (-2, 0))}),
    ("no-pairs", (2,), (3,), {"axes": ((), ())}),
    ("pair-in-a-list", (2, 3), (3, 2), {"axes": [[0], [1]]}),
    ("0-d", (), (3,), {"axes": 0}),
    ("zero-size", (0, 3), (3, 2), {"axes": 1}),
    ("nothing-to-sum", (2, 0), (0, 3), {"axes": 1}),
):
    row("tensordot", what, fn.tensordot, np.tensordot, x(*s), x(*t), **axes)
row("tensordot", "array", fn.tensordot, np.tensordot, x(2, 3), x(3, 2, raw=True), axes=1)
row(
    "tensordot", "x-without-grad", fn.tensordot, np.tensordot, x(2, 3, grad=False), x(3, 2), axes=1
)
row(
    "tensordot",
    "same-variable-twice",
    lambda x: fn.tensordot(x, x),
    lambda x: np.tensordot(x, x),
    x(2, 3),
)
for what, s, t, axes in (
    ("vectors", (3,), (3,), {}),
    ("matrices", (2, 3), (2, 3), {}),
    ("broadcast", (2, 3), (3,), {}),
    ("broadcast-both", (2, 1, 3), (4, 3), {}),
    ("axis", (3, 2), (3, 2), {"axis": -2}),
    ("axis-broadcast", (4, 3, 2), (3, 1), {"axis": -2}),
    ("zero-size", (0, 3), (3,), {}),
    ("nothing-to-sum", (2, 0), (2, 0), {}),
):
    row("vecdot", what, fn.vecdot, np.vecdot, x(*s), x(*t), **axes)
row("vecdot", "array", fn.vecdot, np.vecdot, x(2, 3), x(3, raw=True))
row("vecdot", "same-variable-twice", lambda x: fn.vecdot(x, x), lambda x: np.vecdot(x, x), x(2, 3))
for how in LAYOUTS:
    pair = x(3, 4, layout=how), x(3, 4, layout=how)
    row("tensordot", how, fn.tensordot, np.tensordot, *pair, axes=([0], [0]))
    row("vecdot", how, fn.vecdot, np.vecdot, *pair)


@wraps(fn.einsum)
def einsum(*xs: Any, subscripts: str) -> Any:
    return fn.einsum(subscripts, *xs)


def np_einsum(*xs: Any, subscripts: str) -> Any:
    return np.array(np.einsum(subscripts, *xs))


EINSUMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("i->i", [(3,)]),
    ("i->", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("->", [()]),
    ("ijk->ik", [(2, 3, 4)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(2, 2, 3)]),
    ("iji->j", [(2, 3, 2)]),
    ("iii->i", [(2, 2, 2)]),
    ("iijj->ij", [(2, 2, 3, 3)]),
    ("...->...", [(2, 3)]),
    ("i...->...", [(2, 3, 2)]),
    ("...i", [(2, 3)]),
    ("...ii->...", [(2, 3, 3)]),
    ("i,i->", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("i,j", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,kj->i", [(2, 3), (4, 3)]),
    ("ij,k->k", [(2, 3), (4,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    ("ii,i->i", [(3, 3), (3,)]),
    ("ij,ji", [(2, 3), (3, 2)]),
    (",i->i", [(), (3,)]),
    ("...i,i->...", [(2, 3), (3,)]),
    ("...ij,...jk", [(2, 2, 3), (3, 2)]),
    ("...i,...i->...", [(4, 1, 3), (2, 3)]),
    ("...i,j->j...", [(2, 3), (2,)]),
    ("i...,i...->i...", [(2, 3), (2, 3)]),
    (" i j , j -> i ", [(2, 3), (3,)]),
    ("ij,ij->ij", [(1, 3), (2, 3)]),
    ("ij,j", [(2, 1), (3,)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("i,j,k->kji", [(2,), (3,), (2,)]),
    ("ij,jk,kl", [(2, 3), (3, 2), (2, 4)]),
    ("ij,jk,ki->", [(2, 3), (3, 2), (2, 2)]),
    ("...i,ij,...j->...", [(2, 2), (2, 3), (2, 3)]),
    ("i,ij,j,k", [(2,), (2, 3), (3,), (2,)]),
    ("ij,jk", [(0, 3), (3, 2)]),
    ("ij,jk", [(2, 0), (0, 3)]),
    ("ij->i", [(2, 0)]),
]  # fmt: skip
for text, shapes in EINSUMS:
    lengths = " ".join(",".join(str(n) for n in s) for s in shapes)
    row(
        "einsum",
        f"{text} of {lengths}",
        einsum,
        np_einsum,
        *[x(*s) for s in shapes],
        subscripts=text,
    )
matrices = {"subscripts": "ij,jk"}
row("einsum", "array-right", einsum, np_einsum, x(2, 3), x(3, 2, raw=True), **matrices)
row("einsum", "array-left", einsum, np_einsum, x(2, 3, raw=True), x(3, 2), **matrices)
row("einsum", "x-without-grad", einsum, np_einsum, x(2, 3, grad=False), x(3, 2), **matrices)
row("einsum", "y-without-grad", einsum, np_einsum, x(2, 3), x(3, 2, grad=False), **matrices)
row(
    "einsum", "same-variable-twice", lambda x: fn.einsum("ij,kj", x, x), lambda x: x @ x.T, x(2, 3)
)
row(
    "einsum",
    "integers",
    einsum,
    np_einsum,
    few(2, 3),
    few(3, 2),
    order=0,
    dtypes=("int64",),
    **matrices,
)
pair = x(2, 3, dtype="float32"), x(3, 2, dtype="float64")
row("einsum", "float32-and-float64", einsum, np_einsum, *pair, single=True, **matrices)
row(
    "einsum",
    "three-dtypes",
    einsum,
    np_einsum,
    *pair,
    x(2, dtype="float32"),
    single=True,
    subscripts="ij,jk,k",
)
for how in LAYOUTS:
    row("einsum", how, einsum, np_einsum, x(3, 4, layout=how), x(4, 2, layout=how), **matrices)


# --- linear algebra ------------------------------------------------------------------------------


def invertible(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape) + 3 * np.eye(shape[-1])


def separated(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Matrices whose singular values are 1, 2, 3, ..., in turned directions."""
    u, s, vt = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    return (u * np.arange(s.shape[-1], 0, -1.0)) @ vt


def definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Symmetric, with eigenvalues 1, 2, 3, ..."""
    v = np.linalg.svd(rng.normal(size=shape))[0]
    return (v * np.arange(1.0, shape[-1] + 1)) @ np.matrix_transpose(v)


def inv_(*shape: int, **more: Any) -> Input:
    return Input(shape, invertible, **more)


def svd_(*shape: int, **more: Any) -> Input:
    return Input(shape, separated, **more)


def spd(*shape: int, **more: Any) -> Input:
    return Input(shape, definite, **more)


def np_symmetric(x: Any) -> Any:
    return (x + np.matrix_transpose(x)) * 0.5


def symmetric(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the symmetric part, so that steps in any direction keep it symmetric."""

    @wraps(function)
    def call(x: Any, **constants: Any) -> Any:
        return function((x + fn.matrix_transpose(x)) * 0.5, **constants)

    return call


def of_symmetric(reference: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, **constants: Any) -> Any:
        return reference(np_symmetric(x), **constants)

    return call


SQUARES: list[tuple[str, tuple[int, ...]]] = [
    ("single", (3, 3)),
    ("stack", (2, 3, 3)),
    ("two-axes-of-a-stack", (2, 1, 2, 2)),
    ("one", (1, 1)),
    ("no-stack", (0, 2, 2)),
    ("no-rows", (0, 0)),
]


def np_slogdet(x: Any) -> Any:
    return tuple(np.linalg.slogdet(x))


for f, ref in (
    (linalg.inv, np.linalg.inv),
    (linalg.det, np.linalg.det),
    (linalg.slogdet, np_slogdet),
):
    for what, s in SQUARES:
        row(f.__name__, what, f, ref, inv_(*s))
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, inv_(3, 3, layout=how))


def well_conditioned(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of full rank, with leading columns that are far from dependent."""
    return 0.3 * normal(rng, shape) + 2 * np.eye(*shape[-2:])


def np_qr(x: Any) -> Any:
    return tuple(np.linalg.qr(x))


def singular(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Two rows are equal, so elimination finds a determinant of exactly 0."""
    x = invertible(rng, shape)
    x[..., -1, :] = x[..., 0, :]
    return x


for what, s in (("singular", (3, 3)), ("singular-stack", (2, 2, 2)), ("singular-large", (5, 5))):
    row("det", what, linalg.det, np.linalg.det, Input(s, singular))
row("det", "zero", linalg.det, np.linalg.det, Input((1, 1), lambda rng, s: np.zeros(s)))
row("inv", "of-its-own", lambda x: linalg.inv(linalg.inv(x)), np.copy, inv_(2, 2))
row(
    "det",
    "negative",
    linalg.det,
    np.linalg.det,
    Input((2, 2), lambda rng, s: -invertible(rng, s)[..., ::-1, :]),
)
row(
    "slogdet",
    "logabsdet",
    lambda x: linalg.slogdet(x).logabsdet,
    lambda x: np_slogdet(x)[1],
    inv_(2, 3, 3),
)
row("slogdet", "sign", lambda x: linalg.slogdet(x).sign, lambda x: np_slogdet(x)[0], inv_(2, 3, 3))
row(
    "slogdet",
    "negative",
    linalg.slogdet,
    np_slogdet,
    Input((3, 3), lambda rng, s: -invertible(rng, s)),
)


for what, s in (*SQUARES[:4], ("tall", (4, 2)), ("wide", (2, 4)), ("stack-tall", (2, 3, 2))):
    values = Input(s, well_conditioned)
    row("pinv", what, linalg.pinv, np.linalg.pinv, values)
    row("qr", what, linalg.qr, np_qr, values)
for how in LAYOUTS:
    row("pinv", how, linalg.pinv, np.linalg.pinv, Input((4, 2), well_conditioned, layout=how))
    row("qr", how, linalg.qr, np_qr, Input((4, 2), well_conditioned, layout=how))
row("pinv", "no-rows", linalg.pinv, np.linalg.pinv, x(0, 3))
row(
    "pinv",
    "of-rank-one",
    lambda x, y: linalg.pinv(linalg.outer(x, y), rtol=1e-3),
    lambda x, y: np.outer(y, x) / (np.sum(x * x) * np.sum(y * y)),
    nz(3),
    nz(2),
)
row(
    "qr",
    "complete",
    lambda x: linalg.qr(x, mode="complete"),
    np_qr,
    Input((2, 3), well_conditioned),
)
row(
    "qr",
    "q-alone",
    lambda x: linalg.qr(x).Q,
    lambda x: np_qr(x)[0],
    Input((3, 2), well_conditioned),
)
row(
    "qr",
    "r-alone",
    lambda x: linalg.qr(x).R,
    lambda x: np_qr(x)[1],
    Input((3, 2), well_conditioned),
)


def np_solve(a: Any, b: Any) -> Any:
    return (np.linalg.inv(a) @ (b[:, None] if b.ndim == 1 else b)).reshape(
        *np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]
    )


for what, s, t in (
    ("matrix", (3, 3), (3, 2)),
    ("vector", (3, 3), (3,)),
    ("stacks", (2, 3, 3), (2, 3, 2)),
    ("stack-and-matrix", (2, 3, 3), (3, 2)),
    ("stack-and-vector", (2, 3, 3), (3,)),
    ("matrix-and-stack", (3, 3), (2, 3, 2)),
    ("stacks-broadcast", (2, 1, 2, 2), (3, 2, 1)),
    ("one", (1, 1), (1, 1)),
    ("no-columns", (2, 2), (2, 0)),
    ("no-stack", (0, 2, 2), (0, 2, 1)),
    ("no-rows", (0, 0), (0, 2)),
):
    row("solve", what, linalg.solve, np_solve, inv_(*s), x(*t))
row("solve", "array-left", linalg.solve, np_solve, inv_(3, 3, raw=True), x(3, 2))
row("solve", "array-right", linalg.solve, np_solve, inv_(3, 3), x(3, raw=True))
row("solve", "x1-without-grad", linalg.solve, np_solve, inv_(3, 3, grad=False), x(3, 2))
row("solve", "x2-without-grad", linalg.solve, np_solve, inv_(3, 3), x(3, 2, grad=False))
row("solve", "same-variable-twice", lambda x: linalg.solve(x, x @ x), np.copy, inv_(3, 3))
for how in LAYOUTS:
    row("solve", how, linalg.solve, np_solve, inv_(3, 3, layout=how), x(3, 2, layout=how))


def np_cholesky(x: Any, upper: bool = False) -> Any:
    lower = np.linalg.cholesky(x)
    return np.matrix_transpose(lower) if upper else lower


def signed(v: Any) -> Any:
    """Columns with the sign that makes their first element positive: it is free otherwise."""
    return v * fn.sign(v.detach()[..., :1, :])


def np_signed(v: Any) -> Any:
    return v * np.sign(v[..., :1, :])


@wraps(linalg.eigh)
def eigh_both(x: Any) -> Any:
    w, v = linalg.eigh(x)
    return w, signed(v)


def np_eigh_both(x: Any) -> Any:
    w, v = np.linalg.eigh(x)
    return w, np_signed(v)


f, ref = symmetric(linalg.cholesky), of_symmetric(np_cholesky)
for what, s in SQUARES:
    row("cholesky", what, f, ref, spd(*s))
    row("eigvalsh", what, symmetric(linalg.eigvalsh), of_symmetric(np.linalg.eigvalsh), spd(*s))
    row("eigh", what, symmetric(eigh_both), of_symmetric(np_eigh_both), spd(*s))
    row(
        "eigh",
        f"vectors-{what}",
        symmetric(lambda x: eigh_both(x)[1]),
        of_symmetric(lambda x: np_eigh_both(x)[1]),
        spd(*s),
    )
row("cholesky", "upper", f, ref, spd(2, 3, 3), upper=True)
row(
    "eigh",
    "values-by-name",
    symmetric(lambda x: linalg.eigh(x).eigenvalues),
    of_symmetric(np.linalg.eigvalsh),
    spd(3, 3),
)
f, ref = symmetric(linalg.eigh), of_symmetric(lambda x: tuple(np.linalg.eigh(x)))
row("eigh", "as-it-is", f, ref, spd(2, 2), dtypes=("float64",))
f, ref = symmetric(linalg.cholesky), of_symmetric(np_cholesky)
for how in LAYOUTS:
    row("cholesky", how, f, ref, spd(3, 3, layout=how))
    row("eigh", how, symmetric(eigh_both), of_symmetric(np_eigh_both), spd(3, 3, layout=how))


@wraps(linalg.svd)
def svd_parts(x: Any, parts: str = "USV") -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    sign = fn.sign(u.detach()[..., :1, :])
    whole = {"U": u * sign, "S": s, "V": vh * fn.matrix_transpose(sign)}
    return tuple(whole[part] for part in parts)


def np_svd_parts(x: Any, parts: str = "USV") -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    sign = np.sign(u[..., :1, :])
    whole = {"U": u * sign, "S": s, "V": vh * np.matrix_transpose(sign)}
    return tuple(whole[part] for part in parts)


def svd_and_back(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return fn.matmul(u * s[..., None, :], vh)


OBLONGS: list[tuple[str, tuple[int, ...]]] = [
    ("square", (3, 3)),
    ("tall", (4, 2)),
    ("wide", (2, 4)),
    ("stack", (2, 3, 2)),
    ("stack-wide", (2, 2, 3)),
    ("one-column", (3, 1)),
    ("no-stack", (0, 3, 2)),
]
for what, s in OBLONGS:
    row("svdvals", what, linalg.svdvals, np.linalg.svdvals, svd_(*s))
    for parts in ("USV", "U", "V") if what in ("square", "tall", "wide") else ("USV",):
        row("svd", f"{parts}-{what}", svd_parts, np_svd_parts, svd_(*s), parts=parts)
row("svd", "put-together", svd_and_back, np.copy, svd_(3, 2))
row("svd", "full-square", lambda x: linalg.svd(x).S, np.linalg.svdvals, svd_(3, 3))
for how in LAYOUTS:
    row("svd", how, svd_parts, np_svd_parts, svd_(3, 4, layout=how))
    row("svdvals", how, linalg.svdvals, np.linalg.svdvals, svd_(3, 4, layout=how))

for what, s, constants in (
    ("square", (3, 3), {}),
    ("tall", (4, 2), {}),
    ("wide", (2, 4), {}),
    ("stack", (2, 3, 4), {}),
    ("above", (3, 4), {"offset": 1}),
    ("below", (3, 4), {"offset": -1}),
    ("corner-above", (3, 4), {"offset": 3}),
    ("corner-below", (3, 4), {"offset": -2}),
    ("tall-below", (4, 2), {"offset": -2}),
    ("outside-above", (3, 4), {"offset": 4}),
    ("outside-below", (2, 3, 4), {"offset": -3}),
    ("far-outside-above", (3, 4), {"offset": 5}),
    ("far-outside-below", (3, 4), {"offset": -5}),
    ("one", (1, 1), {}),
    ("no-columns", (2, 0), {}),
    ("no-stack", (0, 2, 2), {}),
):
    row("diagonal", what, linalg.diagonal, np.linalg.diagonal, x(*s), **constants)
    row("trace", what, linalg.trace, np.linalg.trace, x(*s), **constants)
row(
    "diagonal",
    "integers",
    linalg.diagonal,
    np.linalg.diagonal,
    few(2, 3),
    order=0,
    dtypes=INTEGERS,
)
for how in LAYOUTS:
    row("diagonal", how, linalg.diagonal, np.linalg.diagonal, x(3, 4, layout=how), offset=1)
    row("trace", how, linalg.trace, np.linalg.trace, x(3, 4, layout=how))
    row("outer", how, linalg.outer, np.linalg.outer, x(3, layout=how), x(4, layout=how))
    row("cross", how, linalg.cross, np.linalg.cross, x(4, 3, layout=how), x(4, 3, layout=how))
row("outer", "vectors", linalg.outer, np.linalg.outer, x(3), x(4))
row("outer", "zero-size", linalg.outer, np.linalg.outer, x(0), x(4))
row("outer", "array", linalg.outer, np.linalg.outer, x(3), x(4, raw=True))
row("outer", "same-variable-twice", lambda x: linalg.outer(x, x), lambda x: np.outer(x, x), x(3))
for what, s, t, axes in (
    ("vectors", (3,), (3,), {}),
    ("matrices", (2, 3), (2, 3), {}),
    ("axis", (3, 2), (3, 2), {"axis": -2}),
    ("zero-size", (0, 3), (0, 3), {}),
    ("broadcast", (2, 3), (3,), {}),
    ("broadcast-both", (2, 1, 3), (4, 3), {}),
):
    row("cross", what, linalg.cross, np.linalg.cross, x(*s), x(*t), **axes)
row("cross", "array", linalg.cross, np.linalg.cross, x(2, 3), x(2, 3, raw=True))
row(
    "cross",
    "with-itself",
    lambda x: linalg.cross(x, x * x),
    lambda x: np.linalg.cross(x, x * x),
    x(3),
)


def first_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return nonzero(rng, shape) * (np.arange(math.prod(shape)) > 0)


for p in (2, 1, 3, 2.5, 0.5, -1, math.inf, -math.inf, 0):
    norms = partial(row, "vector_norm", order=0 if p == 0 else 2)
    for what, s, axes in (
        ("all", (2, 3), {}),
        ("axis", (2, 3), {"axis": -1}),
        ("axes-keepdims", (2, 3, 2), {"axis": (0, 2), "keepdims": True}),
    ):
        values = Input(s, lambda rng, s: distinct(rng, s) * 1.1 + 0.01)
        norms(f"{p}-{what}", linalg.vector_norm, np.linalg.vector_norm, values, ord=p, **axes)
for what, s, axes in AXES:
    row("vector_norm", what, linalg.vector_norm, np.linalg.vector_norm, nz(*s), **axes)
row(
    "vector_norm",
    "4-some-zeros",
    linalg.vector_norm,
    np.linalg.vector_norm,
    Input((4,), first_zero),
    ord=4,
)
for p in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
    for what, s, keepdims in (
        ("tall", (3, 2), {}),
        ("stack-keepdims", (2, 2, 3), {"keepdims": True}),
        ("no-stack", (0, 2, 2), {}),
    ):
        norm = linalg.matrix_norm, np.linalg.matrix_norm
        row("matrix_norm", f"{p}-{what}", *norm, svd_(*s), ord=p, **keepdims)
row("matrix_norm", "default", linalg.matrix_norm, np.linalg.matrix_norm, x(2, 3))
for n in (0, 1, 2, 3, 5, 6, -1, -2, -3):
    for what, s in (("single", (2, 2)), ("stack", (2, 3, 3))):
        row(
            "matrix_power",
            f"{n}-{what}",
            linalg.matrix_power,
            np.linalg.matrix_power,
            inv_(*s),
            n=n,
        )
row("matrix_power", "no-stack", linalg.matrix_power, np.linalg.matrix_power, inv_(0, 2, 2), n=2)
for how in LAYOUTS:
    one = svd_(3, 4, layout=how)
    row("vector_norm", how, linalg.vector_norm, np.linalg.vector_norm, one, axis=0)
    row("matrix_norm", how, linalg.matrix_norm, np.linalg.matrix_norm, one, ord=1)
    row(
        "matrix_power",
        how,
        linalg.matrix_power,
        np.linalg.matrix_power,
        inv_(3, 3, layout=how),
        n=3,
    )

"""Rows of elementwise functions: arithmetic, functions of one and of two variables, comparisons,
bits, truth values, choosing, clip."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from op_cases.rows import (
    BROADCASTS,
    INTEGERS,
    LAYOUTS,
    Input,
    distinct,
    few,
    integers,
    mask,
    node,
    nonzero,
    nonzero_integers,
    normal,
    nz,
    pos,
    positive,
    row,
    sep,
    x,
)
from tinynode import functions as fn

# --- arithmetic ----------------------------------------------------------------------------------

# function, the same in NumPy, values of x, values of y
BINARY: list[tuple[Any, Any, Any, Any]] = [
    (fn.add, np.add, normal, normal),
    (fn.subtract, np.subtract, normal, normal),
    (fn.multiply, np.multiply, normal, normal),
    (fn.divide, np.divide, normal, nonzero),
    (fn.pow, np.power, positive, normal),
    (fn.zero_safe_multiply, np.multiply, normal, normal),
]
for f, ref, make_x, make_y in BINARY:
    binary = partial(row, f.__name__)
    for what, s, t in BROADCASTS:
        binary(what, f, ref, Input(s, make_x), Input(t, make_y))
    for how in LAYOUTS:
        binary(how, f, ref, Input((3, 4), make_x, layout=how), Input((3, 4), make_y, layout=how))
    left, right = Input((2, 3), make_x), Input((3,), make_y)
    binary("x-without-grad", f, ref, replace(left, grad=False), right)
    binary("y-without-grad", f, ref, left, replace(right, grad=False))
    for s, t in (("float32", "float64"), ("float64", "float32")):
        pair = replace(left, dtype=s), replace(right, dtype=t)
        binary(f"{s}-and-{t}", f, ref, *pair, single=True)

row("add", "same-variable-twice", lambda x: fn.add(x, x), lambda x: x + x, x(2, 3))
row("add", "operator", lambda x, y: x + y, np.add, x(2, 3), x(3))
row("add", "number-right", lambda x: x + 2.5, lambda x: x + 2.5, x(2, 3))
row("add", "number-left", lambda x: 2.5 + x, lambda x: 2.5 + x, x(2, 3))
row("add", "int-beside-float", lambda x: x + 2, lambda x: x + 2, x(2, 3))
row("add", "numpy-scalar-right", lambda x: x + np.float64(2.5), lambda x: x + 2.5, x(2, 3))
row("add", "numpy-scalar-left", lambda x: np.float64(2.5) + x, lambda x: 2.5 + x, x(2, 3))
row("add", "array-right", fn.add, np.add, x(2, 3), x(3, raw=True))
row("add", "array-left", fn.add, np.add, x(2, 1, raw=True), x(3))
row("add", "integers", fn.add, np.add, few(3), few(2, 3), order=0, dtypes=INTEGERS)

row("subtract", "same-variable-twice", lambda x: fn.subtract(x, x), lambda x: x - x, x(2, 3))
row("subtract", "operator", lambda x, y: x - y, np.subtract, x(2, 3), x(3))
row("subtract", "number-right", lambda x: x - 2.5, lambda x: x - 2.5, x(2, 3))
row("subtract", "number-left", lambda x: 2.5 - x, lambda x: 2.5 - x, x(2, 3))
row("subtract", "numpy-scalar-left", lambda x: np.float32(2.5) - x, lambda x: 2.5 - x, x(2, 3))
row("subtract", "array-right", fn.subtract, np.subtract, x(2, 3), x(3, raw=True))
row("subtract", "array-left", fn.subtract, np.subtract, x(2, 1, raw=True), x(3))

row("multiply", "same-variable-twice", lambda x: fn.multiply(x, x), lambda x: x * x, x(2, 3))
row("multiply", "three-times", lambda x: x * x * x, lambda x: x**3, x(2, 3))
row("multiply", "operator", lambda x, y: x * y, np.multiply, x(2, 3), x(3))
row("multiply", "number-right", lambda x: x * 2.5, lambda x: x * 2.5, x(2, 3))
row("multiply", "number-left", lambda x: 2.5 * x, lambda x: 2.5 * x, x(2, 3))
row("multiply", "numpy-scalar-left", lambda x: np.float64(2.5) * x, lambda x: 2.5 * x, x(2, 3))
row("multiply", "numpy-int-right", lambda x: x * np.int64(3), lambda x: x * 3, x(2, 3))
row("multiply", "array-right", fn.multiply, np.multiply, x(2, 3), x(3, raw=True))
row("multiply", "array-left", fn.multiply, np.multiply, x(2, 1, raw=True), x(3))

row("divide", "same-variable-twice", lambda x: fn.divide(x, x), lambda x: x / x, nz(3))
row("divide", "operator", lambda x, y: x / y, np.divide, x(2, 3), nz(3))
row("divide", "number-right", lambda x: x / 2.5, lambda x: x / 2.5, x(2, 3))
row("divide", "number-left", lambda x: 2.5 / x, lambda x: 2.5 / x, nz(2, 3))
row("divide", "numpy-scalar-left", lambda x: np.float64(2) / x, lambda x: 2 / x, nz(3))
row("divide", "array-right", fn.divide, np.divide, x(2, 3), nz(3, raw=True))
row("divide", "array-left", fn.divide, np.divide, x(2, 1, raw=True), nz(3))

row("floor_divide", "floats", fn.floor_divide, np.floor_divide, x(2, 3), nz(3), order=0)
row("floor_divide", "operator", lambda x, y: x // y, np.floor_divide, x(2, 3), nz(3), order=0)
row("floor_divide", "number-right", lambda x: x // 0.4, lambda x: x // 0.4, x(2, 3), order=0)
row("floor_divide", "number-left", lambda x: 3 // x, lambda x: 3 // x, nz(3), order=0)
row("floor_divide", "zero-size", fn.floor_divide, np.floor_divide, x(0, 3), nz(3), order=0)
pair = few(4, 3), Input((3,), nonzero_integers)
row("floor_divide", "integers", fn.floor_divide, np.floor_divide, *pair, order=0, dtypes=INTEGERS)

row("pow", "same-variable-twice", lambda x: fn.pow(x, x), lambda x: x**x, pos(2, 3))
row("pow", "operator", lambda x, y: x**y, np.power, pos(2, 3), x(3))
row("pow", "number-base", lambda x: 2.5**x, lambda x: 2.5**x, x(2, 3))
row("pow", "array-base", fn.pow, np.power, pos(2, 3, raw=True), x(3))
row("pow", "base-below-0", fn.pow, np.power, nz(2, 3), few(3, raw=True))
row("pow", "constant-0", lambda x: x**0, lambda x: x**0.0, x(2, 3))
row("pow", "constant-1", lambda x: x**1, lambda x: x**1.0, x(2, 3))
row("pow", "constant-2", lambda x: fn.pow(x, 2), lambda x: x * x, x(2, 3))
row("pow", "constant-3", lambda x: x**3, lambda x: x * x * x, x(2, 3))
row("pow", "constant--1", lambda x: x**-1, lambda x: 1 / x, nz(2, 3))
row("pow", "constant--2", lambda x: x**-2.0, lambda x: 1 / x**2, nz(2, 3))
row("pow", "constant-0.5", lambda x: x**0.5, np.sqrt, pos(2, 3))
row("pow", "constant-1.5", lambda x: x**1.5, lambda x: x * np.sqrt(x), pos(2, 3))
row("pow", "constant--0.5", lambda x: x**-0.5, lambda x: 1 / np.sqrt(x), pos(2, 3))
row("pow", "constant-numpy-scalar", lambda x: x ** np.float64(3), lambda x: x**3, x(2, 3))
row("pow", "constant-numpy-int", lambda x: x ** np.int32(3), lambda x: x**3, x(2, 3))
row("pow", "constant-0-d", lambda x: x**3, lambda x: x**3, x())
row("pow", "constant-zero-size", lambda x: x**3, lambda x: x**3, x(0, 3))
row("pow", "constant-strided", lambda x: x**3, lambda x: x**3, x(2, 3, layout="strided"))

row("add_all", "one", fn.add_all, np.copy, x(2, 3))
row("add_all", "two", fn.add_all, np.add, x(2, 3), x(2, 3))
row("add_all", "four", fn.add_all, lambda *xs: sum(xs), x(3), x(3), x(3), x(3))
row("add_all", "same-variable-twice", lambda x: fn.add_all(x, x, x), lambda x: 3 * x, x(3))
row("add_all", "array-among-them", fn.add_all, np.add, x(2, 3), x(2, 3, raw=True))
row("add_all", "second-without-grad", fn.add_all, np.add, x(2, 3), x(2, 3, grad=False))
row("add_all", "0-d", fn.add_all, np.add, x(), x())
row("add_all", "zero-size", fn.add_all, np.add, x(0, 3), x(0, 3))
row("add_all", "transposed", fn.add_all, np.add, x(2, 3, layout="transposed"), x(2, 3))


# --- functions of one variable -------------------------------------------------------------------


def np_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def np_relu(x: Any) -> Any:
    return np.maximum(x, 0)


# function, the same in NumPy, values of x, order
UNARY: list[tuple[Any, Any, Any, int]] = [
    (fn.abs, np.abs, nonzero, 2),
    (fn.copy, np.copy, normal, 2),
    (fn.cos, np.cos, normal, 2),
    (fn.exp, np.exp, normal, 2),
    (fn.identity, np.copy, normal, 2),
    (fn.log, np.log, positive, 2),
    (fn.negative, np.negative, normal, 2),
    (fn.relu, np_relu, nonzero, 2),
    (fn.sigmoid, np_sigmoid, normal, 2),
    (fn.sign, np.sign, nonzero, 0),
    (fn.sin, np.sin, normal, 2),
    (fn.sqrt, np.sqrt, positive, 2),
    (fn.tanh, np.tanh, normal, 2),
]
for f, ref, make_x, order in UNARY:
    unary = partial(row, f.__name__, order=order)
    for what, s in (("matrix", (2, 3)), ("0-d", ()), ("zero-size", (0, 3)), ("one", (1, 1, 1))):
        unary(what, f, ref, Input(s, make_x))
    for how in LAYOUTS:
        unary(how, f, ref, Input((3, 4), make_x, layout=how))
row("negative", "operator", lambda x: -x, np.negative, x(2, 3))
row("negative", "integers", fn.negative, np.negative, few(9), order=0, dtypes=INTEGERS)
row("abs", "operator", lambda x: abs(x), np.abs, nz(2, 3))
row("abs", "integers", fn.abs, np.abs, few(9), order=0, dtypes=INTEGERS)
row("sign", "integers", fn.sign, np.sign, few(9), order=0, dtypes=INTEGERS)
row("exp", "of-an-array", fn.exp, np.exp, x(3, raw=True), order=0)
row("ReLUGrad", "node", node(fn.ReLUGrad), lambda y, g: g * (y > 0), nz(2, 3), x(2, 3))
row("copy", "integers", fn.copy, np.copy, few(9), order=0, dtypes=INTEGERS)


# --- comparisons ---------------------------------------------------------------------------------

COMPARISONS: list[tuple[Any, Any]] = [
    (fn.equal, np.equal),
    (fn.not_equal, np.not_equal),
    (fn.less, np.less),
    (fn.less_equal, np.less_equal),
    (fn.greater, np.greater),
    (fn.greater_equal, np.greater_equal),
]
for f, ref in COMPARISONS:
    compare = partial(row, f.__name__, order=0)
    for what, s, t in BROADCASTS:
        compare(what, f, ref, Input(s, integers), Input(t, integers))
    compare("integers", f, ref, few(2, 9), few(9), dtypes=INTEGERS)
    compare("array-left", f, ref, few(2, 9, raw=True), few(9))
    compare("number", lambda x, f=f: f(x, 1), lambda x, ref=ref: ref(x, 1), few(9))
    compare("number-left", lambda x, f=f: f(1, x), lambda x, ref=ref: ref(1, x), few(9))
row("equal", "operator", lambda x, y: x == y, np.equal, few(9), few(9), order=0)
row("not_equal", "operator", lambda x, y: x != y, np.not_equal, few(9), few(9), order=0)
row("less", "operator", lambda x, y: x < y, np.less, few(9), few(9), order=0)
row("less_equal", "operator", lambda x, y: x <= y, np.less_equal, few(9), few(9), order=0)
row("greater", "operator", lambda x, y: x > y, np.greater, few(9), few(9), order=0)
row("greater_equal", "operator", lambda x, y: x >= y, np.greater_equal, few(9), few(9), order=0)


def some_infinite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.choice([1, np.inf, -np.inf, np.nan], size=shape)


# --- bits, truth values, and tests of elements ---------------------------------------------------


def bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Integers with many bits, of both signs."""
    return rng.integers(-200, 200, size=shape)


def places(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """By how many bits to shift."""
    return rng.integers(0, 5, size=shape)


BITWISE: list[tuple[Any, Any, Any, Any]] = [
    (fn.bitwise_and, np.bitwise_and, lambda x, y: x & y, bits),
    (fn.bitwise_or, np.bitwise_or, lambda x, y: x | y, bits),
    (fn.bitwise_xor, np.bitwise_xor, lambda x, y: x ^ y, bits),
    (fn.bitwise_left_shift, np.left_shift, lambda x, y: x << y, places),
    (fn.bitwise_right_shift, np.right_shift, lambda x, y: x >> y, places),
]
for f, ref, operator, draw in BITWISE:
    of_bits = partial(row, f.__name__, order=0, dtypes=INTEGERS)
    for what, s, t in BROADCASTS:
        of_bits(what, f, ref, Input(s, bits), Input(t, draw))
    of_bits("operator", operator, ref, Input((2, 9), bits), Input((9,), draw))
    of_bits("array-left", f, ref, Input((9,), bits, raw=True), Input((9,), draw))
    of_bits(
        "number", lambda x, g=operator: g(x, 3), lambda x, g=operator: g(x, 3), Input((9,), bits)
    )
    of_bits(
        "number-left",
        lambda y, g=operator: g(9, y),
        lambda y, g=operator: g(9, y),
        Input((9,), draw),
    )
LOGIC: list[tuple[Any, Any]] = [
    (fn.bitwise_and, np.bitwise_and),
    (fn.bitwise_or, np.bitwise_or),
    (fn.bitwise_xor, np.bitwise_xor),
    (fn.logical_and, np.logical_and),
    (fn.logical_or, np.logical_or),
    (fn.logical_xor, np.logical_xor),
]
for f, ref in LOGIC:
    row(f.__name__, "bools", f, ref, mask(4, 9), mask(9), order=0, single=True)
    row(
        f.__name__,
        "bool-number",
        lambda x, f=f: f(x, True),
        lambda x, r=ref: r(x, True),
        mask(9),
        order=0,
        single=True,
    )
row(
    "bitwise_invert",
    "integers",
    fn.bitwise_invert,
    np.invert,
    Input((9,), bits),
    order=0,
    dtypes=INTEGERS,
)
row("bitwise_invert", "operator", lambda x: ~x, np.invert, mask(9), order=0, single=True)
row("logical_not", "bools", fn.logical_not, np.logical_not, mask(9), order=0, single=True)
TESTS: list[tuple[Any, Any]] = [
    (fn.isfinite, np.isfinite),
    (fn.isinf, np.isinf),
    (fn.isnan, np.isnan),
    (fn.signbit, np.signbit),
]
for f, ref in TESTS:
    row(f.__name__, "special-values", f, ref, Input((4, 9), some_infinite), order=0)
    row(
        f.__name__,
        "zeros",
        f,
        ref,
        Input((9,), lambda rng, s: rng.choice([0.0, -0.0], size=s)),
        order=0,
    )


def np_keep_zeros(y: Any, g: Any, d: Any) -> Any:
    return np.where((g == 0) & ~np.isfinite(d), 0, y)


row(
    "KeepZeros",
    "node",
    node(fn.KeepZeros),
    np_keep_zeros,
    x(9),
    Input((4, 9), lambda rng, shape: 1.0 * rng.integers(-1, 2, size=shape), grad=False),
    Input((9,), some_infinite, grad=False),
)


# --- choosing ------------------------------------------------------------------------------------


def choose(c: Any, x: Any, y: Any) -> Any:
    """np.where, in which a number is as weak as it is in arithmetic."""
    dtype = np.result_type(x, y)
    return np.where(c, x, y).astype(dtype)


for what, s, t in BROADCASTS:
    row("where", what, fn.where, choose, mask(*np.broadcast_shapes(s, t)), x(*s), x(*t))
for how in LAYOUTS:
    row("where", how, fn.where, choose, mask(3, 4), x(3, 4, layout=how), x(3, 4, layout=how))
row("where", "condition-leading-axes", fn.where, choose, mask(3), x(2, 3), x(2, 1))
row("where", "condition-broadcasts-x", fn.where, choose, mask(4, 1, 3), x(2, 3), x())
row("where", "condition-0-d", fn.where, choose, mask(), x(2, 3), x(3))
row("where", "condition-array", fn.where, choose, mask(2, 3, raw=True), x(2, 3), x(2, 3))
row(
    "where",
    "number-x",
    lambda c, y: fn.where(c, 1.5, y),
    lambda c, y: choose(c, 1.5, y),
    mask(9),
    x(9),
)
row(
    "where",
    "number-y",
    lambda c, x: fn.where(c, x, 0),
    lambda c, x: choose(c, x, 0),
    mask(9),
    x(9),
)
row("where", "array-x", fn.where, choose, mask(2, 3), x(3, raw=True), x(2, 3))
row("where", "array-y", fn.where, choose, mask(2, 3), x(2, 3), x(3, raw=True))
row(
    "where",
    "two-numbers",
    lambda c: fn.where(c, 1.5, 2),
    lambda c: np.where(c, np.float32(1.5), 2),
    mask(2, 3),
    order=0,
    single=True,
)
row(
    "where",
    "two-integers",
    lambda c: fn.where(c, 1, 2),
    lambda c: np.where(c, 1, 2),
    mask(3),
    order=0,
    single=True,
)
row("where", "x-without-grad", fn.where, choose, mask(2, 3), x(2, 3, grad=False), x(3))
row("where", "y-without-grad", fn.where, choose, mask(2, 3), x(2, 3), x(3, grad=False))
row("where", "same-variable-twice", lambda c, x: fn.where(c, x, x), lambda c, x: x, mask(9), x(9))
pair = x(2, 9, dtype="float32"), x(9, dtype="float64")
row("where", "float32-and-float64", fn.where, choose, mask(9), *pair, single=True)
row("where", "integers", fn.where, choose, mask(9), few(9), few(9), order=0, dtypes=INTEGERS)


# --- values of the next functions ----------------------------------------------------------------


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


SHAPES: list[tuple[str, tuple[int, ...]]] = [
    ("matrix", (2, 3)),
    ("0-d", ()),
    ("zero-size", (0, 3)),
    ("one", (1, 1, 1)),
]


# --- functions of one variable -------------------------------------------------------------------


# function, the same in NumPy, values of x, order
ONE_VARIABLE: list[tuple[Any, Any, Any, int]] = [
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
for f, ref, make_x, order in ONE_VARIABLE:
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
TWO_VARIABLES: list[tuple[Any, Any, Any, Any]] = [
    (fn.atan2, np.arctan2, nonzero, nonzero),
    (fn.copysign, np.copysign, nonzero, nonzero),
    (fn.hypot, np.hypot, nonzero, nonzero),
    (fn.logaddexp, np.logaddexp, normal, normal),
    (fn.maximum, np.maximum, distinct, beside_distinct),
    (fn.minimum, np.minimum, distinct, beside_distinct),
    (fn.remainder, np.remainder, halves, near_one),
]
for f, ref, make_x, make_y in TWO_VARIABLES:
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


def infinite_or_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.choice([1, np.inf, -np.inf], size=shape)


def np_same_infinity(x: Any, y: Any) -> Any:
    return (x == y) & np.isinf(x)


quads = (few(5, 9, grad=False), few(9, grad=False), few(5, 9, grad=False), x(5, 9))
row("ExtremeGrad", "node", node(fn.ExtremeGrad), np_extreme_grad, *quads)
pair = Input((4, 9), infinite_or_one), Input((9,), infinite_or_one)
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

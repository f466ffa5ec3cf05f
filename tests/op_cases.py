"""The table of what every function does: one row for each claim.

Requirement: a function is right on every backend, for every kind of input, to second order, and a
function that nobody checks cannot be exported. A row says what is computed, on which inputs, and
the same in plain NumPy; the drivers in ``op_drivers.py`` do the rest.

    row("add", "leading-axes", fn.add, np.add, x(2, 3), x(3))

reads: ``fn.add`` on normal inputs of these shapes gives what ``np.add`` gives, and has gradients
of first and second order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import functions as fn
from tinynode.functions.cross_entropies import RowWeights
from tinynode.functions.indexing import freeze_index

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32")
ALL = slice(None)


# --- what a row is made of -----------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(0.5, 2, size=shape)


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of both signs, and away from the kink or the pole at 0."""
    return positive(rng, shape) * rng.choice([-1.0, 1.0], size=shape)


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """At least 0.25 apart, so that small steps change no order."""
    size = int(np.prod(shape))
    return (rng.permutation(size).reshape(shape) - size / 2) * 0.25 + 0.1


def integers(
    rng: np.random.Generator, shape: tuple[int, ...], low: int = -3, high: int = 4
) -> Any:
    """Few values, so that some of them are equal."""
    return rng.integers(low, high, size=shape)


def nonzero_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(1, 4, size=shape) * rng.choice([-1, 1], size=shape)


def bools(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.random(size=shape) < 0.5


@dataclass(frozen=True)
class Input:
    """One input of a row.

    Attributes:
        shape: its shape.
        make: how its values are drawn.
        dtype: its dtype; None takes the dtype at which the row is run.
        layout: "contiguous"; or "strided", "transposed", "reversed" in memory.
        raw: hand it over as an array, not as a Variable.
        grad: whether it requires a gradient, if its dtype is floating.
    """

    shape: tuple[int, ...]
    make: Callable[..., Any] = normal
    dtype: str | None = None
    layout: str = "contiguous"
    raw: bool = False
    grad: bool = True


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        operation: the exported name that the row is about.
        id: the operation and what is special in this row.
        function: takes Variables (or arrays, where an input is raw); gives one or a tuple of them.
        reference: the same in plain NumPy.
        inputs: the inputs.
        order: how often it can be differentiated, 2 at most; 0 for functions without a gradient.
        dtypes: the dtypes at which it is run; the first is the one of the derivatives.
        single: a float32 step inside limits the precision of derivatives at float64.
        smooth: what the derivatives are compared with, where ``reference`` rounds.
        not_on_strict: why array_api_strict refuses what the row does; empty if it does not.
        constants: further keyword arguments of function and reference.
    """

    operation: str
    id: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[Input, ...]
    order: int = 2
    dtypes: tuple[str, ...] = FLOATS
    single: bool = False
    smooth: Callable[..., Any] | None = None
    not_on_strict: str = ""
    constants: dict[str, Any] = field(default_factory=dict)


CASES: list[Case] = []


def row(
    operation: str,
    claim: str,
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Input,
    order: int = 2,
    dtypes: tuple[str, ...] = FLOATS,
    single: bool = False,
    smooth: Callable[..., Any] | None = None,
    not_on_strict: str = "",
    **constants: Any,
) -> None:
    """Add a row to the table."""
    id = f"{operation}-{claim}"
    dtypes = dtypes[:1] if single else dtypes
    how = (order, dtypes, single, smooth, not_on_strict)
    CASES.append(Case(operation, id, function, reference, inputs, *how, constants))


def of_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence, as one of separate arguments."""

    @wraps(function)
    def call(*xs: Any, **constants: Any) -> Any:
        return function(list(xs), **constants)

    return call


def node(kind: type[tn.FunctionNode], *attributes: Any) -> Callable[..., Any]:
    """A FunctionNode class as a function: for gradient nodes, which have no function."""

    def call(*xs: Any) -> Any:
        return kind(*attributes).apply(xs)[0]

    return call


LAYOUTS = ("strided", "transposed", "reversed")
BROADCASTS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("same-shape", (2, 3), (2, 3)),
    ("leading-axes-of-y", (2, 3), (3,)),
    ("leading-axes-of-x", (3,), (4, 2, 3)),
    ("one-axis-of-y", (2, 3), (2, 1)),
    ("one-axis-of-x", (2, 1), (2, 3)),
    ("one-axes-of-both", (2, 1), (1, 3)),
    ("leading-and-one-axes", (4, 1, 3), (2, 1)),
    ("0-d-x", (), (2, 3)),
    ("0-d-y", (2, 3), ()),
    ("0-d-both", (), ()),
    ("size-one-and-0-d", (1,), ()),
    ("zero-size", (0, 3), (0, 3)),
    ("zero-size-leading", (0, 3), (3,)),
    ("zero-size-one-axis", (1, 3), (0, 3)),
]


# Inputs by their values, so that a row fits on a line: x(2, 3) is a normal input of that shape.


def x(*shape: int, **more: Any) -> Input:
    return Input(shape, normal, **more)


def pos(*shape: int, **more: Any) -> Input:
    return Input(shape, positive, **more)


def nz(*shape: int, **more: Any) -> Input:
    return Input(shape, nonzero, **more)


def few(*shape: int, **more: Any) -> Input:
    return Input(shape, integers, **more)


def mask(*shape: int, **more: Any) -> Input:
    return Input(shape, bools, dtype="bool", **more)


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


def np_is_dead(g: Any, d: Any) -> Any:
    return (g == 0) & ~np.isfinite(d)


row("IsDead", "node", node(fn.IsDead), np_is_dead, few(4, 9), Input((9,), some_infinite), order=0)


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


# --- reductions ----------------------------------------------------------------------------------

AXES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("all", (2, 3), {}),
    ("all-keepdims", (2, 3), {"keepdims": True}),
    ("0-d", (), {}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("last-axis-keepdims", (2, 3), {"axis": -1, "keepdims": True}),
    ("middle-axis", (2, 3, 4), {"axis": 1}),
    ("two-axes", (2, 3, 4), {"axis": (0, 2)}),
    ("two-axes-from-the-end", (2, 3, 4), {"axis": (-1, -3)}),
    ("two-axes-keepdims", (2, 3, 4), {"axis": (2, 0), "keepdims": True}),
    ("one-axes", (1, 3, 1), {"axis": (0, 1)}),
    ("no-axes", (2, 3), {"axis": ()}),
    ("zero-size", (0, 3), {"axis": 1}),
]
for f, ref, make_x in (
    (fn.sum, np.sum, normal),
    (fn.mean, np.mean, normal),
    (fn.max, np.max, distinct),
    (fn.min, np.min, distinct),
):
    for what, s, axes in AXES:
        row(f.__name__, what, f, ref, Input(s, make_x), **axes)
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, Input((3, 4), make_x, layout=how), axis=0)
row("sum", "zero-size-all", fn.sum, np.sum, x(0, 3))
row("sum", "zero-size-first-axis", fn.sum, np.sum, x(0, 3), axis=0)
row("sum", "method", lambda x: x.sum(1, keepdims=True), lambda x: x.sum(1, keepdims=True), x(2, 3))
row("sum", "integers", fn.sum, np.sum, few(2, 3), order=0, dtypes=("int64",), axis=0)
row("mean", "method", lambda x: x.mean((0, 1)), lambda x: x.mean((0, 1)), x(2, 3))
row("max", "integers", fn.max, np.max, few(2, 9), order=0, dtypes=INTEGERS, axis=0)
row("min", "integers", fn.min, np.min, few(2, 9), order=0, dtypes=INTEGERS, axis=0)


def weighted(x: Any, w: Any, **axes: Any) -> Any:
    return fn.mean(x, weights=w, **axes)


def np_weighted(x: Any, w: Any, axis: Any = None, keepdims: bool = False) -> Any:
    w = np.broadcast_to(w, x.shape)
    return (x * w).sum(axis, keepdims=keepdims) / w.sum(axis, keepdims=keepdims)


row("mean", "weights", weighted, np_weighted, x(2, 3), pos(2, 3))
row("mean", "weights-of-the-last-axis", weighted, np_weighted, x(2, 3), pos(3), axis=1)
row("mean", "weights-keepdims", weighted, np_weighted, x(2, 3), pos(2, 1), axis=0, keepdims=True)
row("mean", "weights-array", weighted, np_weighted, x(2, 3), pos(3, raw=True), axis=-1)


# --- shapes --------------------------------------------------------------------------------------

for what, s, shape in (
    ("to-one-axis", (2, 3), (6,)),
    ("to-three-axes", (6, 4), (2, 3, 4)),
    ("worked-out", (2, 6), (3, -1)),
    ("flat", (2, 3), -1),
    ("same-shape", (2, 3), (2, 3)),
    ("from-0-d", (), (1, 1)),
    ("to-0-d", (1,), ()),
    ("zero-size", (0, 3), (3, 0, 2)),
):
    row("reshape", what, fn.reshape, np.reshape, x(*s), shape=shape)
for how in LAYOUTS:
    row("reshape", how, fn.reshape, np.reshape, x(3, 4, layout=how), shape=(2, 6))
row("reshape", "method", lambda x: x.reshape(3, 2), lambda x: x.reshape(3, 2), x(2, 3))

for what, s, order_of_axes in (
    ("matrix", (2, 3), (1, 0)),
    ("rotate", (2, 3, 4), (2, 0, 1)),
    ("rotate-back", (2, 3, 4), (1, 2, 0)),
    ("negative-axes", (2, 3, 4), (-1, 0, -2)),
    ("same-order", (2, 3), (0, 1)),
    ("0-d", (), ()),
    ("zero-size", (0, 3), (1, 0)),
):
    row("permute_dims", what, fn.permute_dims, np.permute_dims, x(*s), axes=order_of_axes)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    row("permute_dims", how, fn.permute_dims, np.permute_dims, one, axes=(1, 0))
row("permute_dims", "T", lambda x: x.T, lambda x: x.T, x(2, 3, 4))
row(
    "permute_dims",
    "method",
    lambda x: x.transpose(0, 2, 1),
    lambda x: x.transpose(0, 2, 1),
    x(2, 3, 4),
)
row("matrix_transpose", "matrix", fn.matrix_transpose, np.matrix_transpose, x(2, 3))
row("matrix_transpose", "stack", fn.matrix_transpose, np.matrix_transpose, x(4, 2, 3))
row("matrix_transpose", "zero-size", fn.matrix_transpose, np.matrix_transpose, x(0, 3))

# the shape of x, and the shape that it is broadcast to
REPEATS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("leading-axis", (3,), (2, 3)),
    ("one-axis", (2, 1), (2, 3)),
    ("middle-one-axis", (2, 1, 3), (2, 4, 3)),
    ("leading-and-one-axes", (1, 3, 1), (2, 4, 3, 5)),
    ("from-0-d", (), (2, 3)),
    ("from-size-one", (1, 1), (2, 3)),
    ("size-one-to-size-one", (1,), (1, 1)),
    ("size-one-to-longer", (1,), (1, 4)),
    ("same-shape", (2, 3), (2, 3)),
    ("to-zero-size", (1, 3), (0, 3)),
    ("zero-size", (0, 1), (0, 3)),
]


def np_sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    new = x.ndim - len(shape)
    x = x.sum(tuple(range(new)), dtype=x.dtype)
    for axis, n in enumerate(shape):
        if n == 1:
            x = x.sum(axis, keepdims=True, dtype=x.dtype)
    return x


for what, s, t in REPEATS:
    row("broadcast_to", what, fn.broadcast_to, np.broadcast_to, x(*s), shape=t)
    row("sum_to", what, fn.sum_to, np_sum_to, x(*t), shape=s)
for how in LAYOUTS:
    one = x(3, 1, layout=how)
    row("broadcast_to", how, fn.broadcast_to, np.broadcast_to, one, shape=(2, 3, 4))
    row("sum_to", how, fn.sum_to, np_sum_to, x(3, 4, layout=how), shape=(1, 4))
row("sum_to", "integers", fn.sum_to, np_sum_to, few(2, 3), order=0, dtypes=INTEGERS, shape=(3,))

concat = of_list(fn.concat)
np_concat = of_list(np.concat)
row("concat", "one", concat, np_concat, x(2, 3))
row("concat", "first-axis", concat, np_concat, x(2, 3), x(1, 3), x(4, 3))
row("concat", "last-axis", concat, np_concat, x(2, 3), x(2, 1), axis=-1)
row("concat", "middle-axis", concat, np_concat, x(2, 3, 4), x(2, 1, 4), axis=1)
row("concat", "flattened", concat, np_concat, x(2, 3), x(4), axis=None)
row("concat", "0-d-flattened", concat, np_concat, x(), x(2), axis=None)
row("concat", "empty-part", concat, np_concat, x(2, 3), x(0, 3), x(1, 3))
row("concat", "zero-size", concat, np_concat, x(0, 3), x(0, 3))
row("concat", "array-among-them", concat, np_concat, x(2, 3), x(1, 3, raw=True), x(2, 3))
row("concat", "second-without-grad", concat, np_concat, x(2), x(3, grad=False), x(1))
row(
    "concat",
    "same-variable-twice",
    lambda x: fn.concat([x, x]),
    lambda x: np.concat([x, x]),
    x(2, 3),
)
row("concat", "integers", concat, np_concat, few(2), few(3), order=0, dtypes=INTEGERS)
for how in LAYOUTS:
    row("concat", how, concat, np_concat, x(2, 3, layout=how), x(2, 3, layout=how), axis=1)

SPLITS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("sections", (4, 3), {"indices_or_sections": 2}),
    ("one-section", (4, 3), {"indices_or_sections": 1}),
    ("positions", (5, 2), {"indices_or_sections": [1, 3]}),
    ("last-axis", (2, 6), {"indices_or_sections": 3, "axis": -1}),
    ("middle-axis", (2, 5, 3), {"indices_or_sections": [2], "axis": 1}),
    ("empty-part", (4,), {"indices_or_sections": [2, 2]}),
    ("empty-first-part", (4,), {"indices_or_sections": [0, 3]}),
    ("no-positions", (4,), {"indices_or_sections": []}),
    ("zero-size", (0, 3), {"indices_or_sections": 2}),
]
for what, s, constants in SPLITS:
    row("split", what, fn.split, np.split, x(*s), **constants)
for how in LAYOUTS:
    row("split", how, fn.split, np.split, x(4, 3, layout=how), indices_or_sections=2)
row(
    "split",
    "first-unused",
    lambda x: fn.split(x, [1, 3])[1:],
    lambda x: np.split(x, [1, 3])[1:],
    x(5, 2),
)
row(
    "split",
    "only-the-last",
    lambda x: fn.split(x, 3, 1)[2],
    lambda x: np.split(x, 3, 1)[2],
    x(2, 6),
)
row("split", "only-the-middle", lambda x: fn.split(x, [1, 4])[1], lambda x: x[1:4], x(6, 2))


# --- indexing ------------------------------------------------------------------------------------


@wraps(fn.set_item)
def set_item(x: Any, v: Any, index: Any) -> Any:
    return fn.set_item(x, index, v)


def np_get_item(x: Any, index: Any) -> Any:
    return x[index]


def np_set_item(x: Any, v: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = v
    return y


def np_zeros_with(gy: Any, index: Any, shape: tuple[int, ...]) -> Any:
    return np_set_item(np.zeros(shape, gy.dtype), gy, index)


INDICES: list[tuple[str, tuple[int, ...], Any]] = [
    ("integer", (3, 4), 1),
    ("last-integer", (3, 4), -1),
    ("numpy-integer", (3, 4), np.int64(1)),
    ("all-integers", (3, 4), (1, -2)),
    ("slice", (5,), slice(1, 3)),
    ("open-slice", (5, 2), slice(2, None)),
    ("whole", (2, 3), slice(None)),
    ("step", (5,), slice(None, None, 2)),
    ("negative-step", (5,), slice(None, None, -1)),
    ("negative-step-from", (6, 2), slice(4, 0, -2)),
    ("slice-from-the-end", (5,), slice(-3, -1)),
    ("two-slices", (4, 5), (slice(1, 3), slice(None, None, 2))),
    ("integer-and-slice", (4, 5), (2, slice(1, 4))),
    ("slice-and-integer", (4, 5), (slice(1, 4), -1)),
    ("ellipsis", (2, 3), ...),
    ("ellipsis-first", (2, 3, 4), (..., 1)),
    ("ellipsis-in-between", (2, 3, 4), (1, ..., slice(1, 3))),
    ("ellipsis-for-nothing", (2, 3), (0, ..., 1)),
    ("none-first", (2, 3), None),
    ("none-and-slice", (2, 3), (None, slice(0, 1))),
    ("none-in-between", (2, 3), (slice(None), None, 1)),
    ("none-last", (2, 3), (..., None)),
    ("empty-slice", (4, 2), slice(2, 2)),
    ("slice-past-the-end", (4, 2), slice(2, 9)),
    ("slice-before-the-start", (4, 2), slice(-9, 2)),
    ("slice-behind-the-end", (4, 2), slice(7, 9)),
    ("negative-step-past-both", (4, 2), slice(9, -9, -1)),
    ("negative-step-from-before-the-start", (4, 2), slice(-9, None, -1)),
    ("empty-negative-step", (0, 2), slice(None, None, -1)),
    ("zero-size", (0, 3), (slice(None), 1)),
    ("0-d-empty-tuple", (), ()),
    ("0-d-ellipsis", (), ...),
]
for what, s, index in INDICES:
    selection = np.empty(s)[index].shape
    row("get_item", what, fn.get_item, np_get_item, x(*s), index=index)
    row("set_item", what, set_item, np_set_item, x(*s), x(*selection), index=index)
    frozen, _ = freeze_index("get_item", index, tn.Variable(np.empty(s)))
    grad_of = node(fn.GetItemGrad, frozen, s)
    ref = partial(np_zeros_with, index=index, shape=s)
    row("GetItemGrad", what, grad_of, ref, x(*selection))
for how in LAYOUTS:
    row("get_item", how, fn.get_item, np_get_item, x(3, 4, layout=how), index=(ALL, 1))
    pair = x(3, 4, layout=how), x(3, 2, layout=how)
    row("set_item", how, set_item, np_set_item, *pair, index=(ALL, slice(1, 3)))
row("get_item", "operator", lambda x: x[1:, ::2], lambda x: x[1:, ::2], x(3, 4))
row("get_item", "overlapping-twice", lambda x: x[1:] * x[:-1], lambda x: x[1:] * x[:-1], x(5))
row("get_item", "integers", fn.get_item, np_get_item, few(9), order=0, dtypes=INTEGERS, index=2)
row("set_item", "value-broadcast", set_item, np_set_item, x(3, 4), x(4), index=slice(1, 3))
row("set_item", "value-one-axis", set_item, np_set_item, x(3, 4), x(2, 1), index=slice(1, 3))
row("set_item", "value-0-d", set_item, np_set_item, x(3, 4), x(), index=(ALL, 2))
row("set_item", "value-leading-axis", set_item, np_set_item, x(4), x(1, 2), index=slice(1, 3))
row("set_item", "value-array", set_item, np_set_item, x(3, 4), x(4, raw=True), index=1)
row(
    "set_item",
    "number",
    lambda x: fn.set_item(x, 1, 2.5),
    lambda x: np_set_item(x, 2.5, 1),
    x(3, 4),
)
row("set_item", "x-without-grad", set_item, np_set_item, x(3, 4, grad=False), x(4), index=1)
row("set_item", "v-without-grad", set_item, np_set_item, x(3, 4), x(4, grad=False), index=1)
row(
    "set_item",
    "same-variable",
    lambda x: fn.set_item(x, 1, x[0] * x[1]),
    lambda x: np_set_item(x, x[0] * x[1], 1),
    x(3, 4),
)
for s, t in (("float32", "float64"), ("float64", "float32")):
    pair = x(3, 4, dtype=s), x(4, dtype=t)
    row("set_item", f"{t}-into-{s}", set_item, np_set_item, *pair, single=True, index=1)
row(
    "set_item",
    "integers",
    set_item,
    np_set_item,
    few(9),
    few(2),
    order=0,
    dtypes=INTEGERS,
    index=slice(2, 4),
)


# --- matrix products -----------------------------------------------------------------------------

MATRICES: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("vectors", (3,), (3,)),
    ("matrix-vector", (2, 3), (3,)),
    ("vector-matrix", (2,), (2, 3)),
    ("matrices", (2, 3), (3, 4)),
    ("row-and-column", (1, 3), (3, 1)),
    ("outer", (2, 1), (1, 3)),
    ("stacks", (5, 2, 3), (5, 3, 4)),
    ("stack-and-matrix", (5, 2, 3), (3, 4)),
    ("matrix-and-stack", (2, 3), (5, 3, 4)),
    ("stack-and-vector", (5, 2, 3), (3,)),
    ("vector-and-stack", (2,), (5, 2, 3)),
    ("stacks-broadcast", (5, 1, 2, 3), (1, 4, 3, 2)),
    ("stack-one-axis", (1, 2, 3), (5, 3, 4)),
    ("no-rows", (0, 3), (3, 4)),
    ("nothing-to-sum", (2, 0), (0, 3)),
    ("no-stack", (0, 2, 3), (3, 4)),
]
for what, s, t in MATRICES:
    row("matmul", what, fn.matmul, np.matmul, x(*s), x(*t))
for how in LAYOUTS:
    row("matmul", how, fn.matmul, np.matmul, x(3, 4, layout=how), x(4, 2, layout=how))
row("matmul", "same-variable-twice", lambda x: fn.matmul(x, x), lambda x: x @ x, x(3, 3))
row("matmul", "with-own-transpose", lambda x: x @ x.T, lambda x: x @ x.T, x(2, 3))
row("matmul", "operator", lambda x, y: x @ y, np.matmul, x(2, 3), x(3, 4))
row("matmul", "array-right", fn.matmul, np.matmul, x(2, 3), x(3, 4, raw=True))
row("matmul", "array-left", fn.matmul, np.matmul, x(2, 3, raw=True), x(3, 4))
row("matmul", "x-without-grad", fn.matmul, np.matmul, x(2, 3, grad=False), x(3, 4))
row("matmul", "y-without-grad", fn.matmul, np.matmul, x(2, 3), x(3, 4, grad=False))
pair = x(2, 3, dtype="float32"), x(3, 4, dtype="float64")
row("matmul", "float32-and-float64", fn.matmul, np.matmul, *pair, single=True)
for flags in ((False, True), (True, False), (True, True)):
    row("MatMulOfTransposed", f"{flags}", node(fn.MatMulOfTransposed, *flags),
        lambda x, y, turn=flags: (x.T if turn[0] else x) @ (y.T if turn[1] else y),
        x(*((3, 2) if flags[0] else (2, 3))), x(*((4, 3) if flags[1] else (3, 4))))  # fmt: skip


def np_linear(x: Any, w: Any, b: Any = 0) -> Any:
    return (x @ w.T + b).astype(x.dtype)


row("linear", "matrix", fn.linear, np_linear, x(5, 3), x(2, 3), x(2))
row("linear", "without-bias", fn.linear, np_linear, x(5, 3), x(2, 3))
row("linear", "vector", fn.linear, np_linear, x(3), x(2, 3), x(2))
row("linear", "vector-without-bias", fn.linear, np_linear, x(3), x(2, 3))
row("linear", "leading-axes", fn.linear, np_linear, x(2, 4, 3), x(5, 3), x(5))
row("linear", "leading-axes-without-bias", fn.linear, np_linear, x(2, 4, 3), x(5, 3))
row("linear", "no-rows", fn.linear, np_linear, x(0, 3), x(2, 3), x(2))
row("linear", "no-features", fn.linear, np_linear, x(4, 0), x(2, 0), x(2))
row("linear", "one-each", fn.linear, np_linear, x(1, 1), x(1, 1), x(1))
row("linear", "data-without-grad", fn.linear, np_linear, x(5, 3, grad=False), x(2, 3), x(2))
row("linear", "only-bias", fn.linear, np_linear, x(5, 3, grad=False), x(2, 3, grad=False), x(2))
row("linear", "array-of-data", fn.linear, np_linear, x(5, 3, raw=True), x(2, 3), x(2))
row("linear", "bias-array", fn.linear, np_linear, x(5, 3), x(2, 3), x(2, raw=True))
row("linear", "same-variable-twice", lambda x: fn.linear(x, x), lambda x: x @ x.T, x(3, 3))
for how in LAYOUTS:
    row("linear", how, fn.linear, np_linear, x(5, 3, layout=how), x(2, 3, layout=how), x(2))


# --- softmax and losses --------------------------------------------------------------------------


def np_log_softmax(x: Any, axis: int = -1) -> Any:
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


for what, s, axes in (
    ("last-axis", (2, 3), {}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("middle-axis", (2, 3, 4), {"axis": 1}),
    ("negative-axis", (2, 3, 4), {"axis": -2}),
    ("vector", (4,), {}),
    ("one-class", (3, 1), {}),
    ("zero-size", (0, 3), {}),
):
    row("log_softmax", what, fn.log_softmax, np_log_softmax, x(*s), **axes)
for how in LAYOUTS:
    row("log_softmax", how, fn.log_softmax, np_log_softmax, x(3, 4, layout=how))


def np_weights(labels: Any, g: Any, reduction: str, ignore_label: int) -> Any:
    """What each row counts: g, or 0 if it is ignored, divided by their number under "mean"."""
    counts = (labels != ignore_label).astype(g.dtype)
    return counts * g / max(counts.sum(), 1) if reduction == "mean" else counts * g


def np_cross_entropy(x: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1) -> Any:
    valid = labels != ignore_label
    picked = np_log_softmax(x, 1)[np.arange(len(labels)), np.where(valid, labels, 0)]
    weights = np_weights(labels, np.ones((), x.dtype), reduction, ignore_label)
    losses = -picked * weights
    return losses if reduction == "none" else losses.sum()


def np_cross_entropy_grad(
    log_p: Any, g: Any, labels: Any, reduction: str, ignore_label: int
) -> Any:
    one_hot = labels[:, None] == np.arange(log_p.shape[1])
    weights = np_weights(labels, g, reduction, ignore_label)
    return (np.exp(log_p) - one_hot) * weights[:, None]


def np_row_weights(log_p: Any, g: Any, labels: Any, reduction: str, ignore_label: int) -> Any:
    return np_weights(labels, g, reduction, ignore_label)[:, None]


def labels(n: int, low: int = 0, dtype: str = "int64", **more: Any) -> Input:
    """Labels of three classes, from 0; with a lower ``low`` some stand for rows to ignore."""
    return Input((n,), partial(integers, low=low, high=3), dtype=dtype, **more)


def both_outputs(x: Any, labels: Any) -> Any:
    return fn.SoftmaxCrossEntropy("mean", -1).apply((x, labels))


def np_both_outputs(x: Any, labels: Any) -> Any:
    return np_cross_entropy(x, labels), np_log_softmax(x)


row("SoftmaxCrossEntropy", "both-outputs", both_outputs, np_both_outputs, x(9, 3), labels(9, -1))
cross_entropy = partial(row, "softmax_cross_entropy")
for reduction in ("mean", "sum", "none"):
    f, ref, how = fn.softmax_cross_entropy, np_cross_entropy, {"reduction": reduction}
    cross_entropy(reduction, f, ref, x(5, 3), labels(5), **how)
    cross_entropy(f"{reduction}-ignore", f, ref, x(9, 3), labels(9, -1), **how)
    cross_entropy(f"{reduction}-ignore-2", f, ref, x(9, 3), labels(9), ignore_label=2, **how)
    cross_entropy(f"{reduction}-no-rows", f, ref, x(0, 3), labels(0), **how)
    cross_entropy(f"{reduction}-one-row", f, ref, x(1, 3), labels(1), **how)
    for kind, ref, g in (
        (fn.SoftmaxCrossEntropyGrad, np_cross_entropy_grad, x(9) if reduction == "none" else x()),
        (RowWeights, np_row_weights, x(9) if reduction == "none" else x()),
    ):
        f = node(kind, reduction, -1)
        ref = partial(ref, reduction=reduction, ignore_label=-1)
        row(kind.__name__, reduction, f, ref, x(9, 3), g, labels(9, -1))
f, ref = fn.softmax_cross_entropy, np_cross_entropy
cross_entropy("int32-labels", f, ref, x(5, 3), labels(5, dtype="int32"))
cross_entropy("labels-array", f, ref, x(5, 3), labels(5, raw=True))
one_class = Input((4,), partial(integers, low=-1, high=1), "int64")
cross_entropy("one-class", f, ref, x(4, 1), one_class)
for how in LAYOUTS:
    cross_entropy(how, f, ref, x(5, 3, layout=how), labels(5, layout=how))


def np_squared_error(x: Any, y: Any, reduction: str = "mean") -> Any:
    squared = (x - y) ** 2
    return squared if reduction == "none" else getattr(squared, reduction)()


f, ref = fn.mean_squared_error, np_squared_error
for reduction in ("mean", "sum", "none"):
    row("mean_squared_error", reduction, f, ref, x(2, 3), x(2, 3), reduction=reduction)
row("mean_squared_error", "0-d", f, ref, x(), x())
row("mean_squared_error", "zero-size", f, ref, x(0, 3), x(0, 3), reduction="sum")
row("mean_squared_error", "array-of-targets", f, ref, x(2, 3), x(2, 3, raw=True))
row("mean_squared_error", "targets-without-grad", f, ref, x(2, 3), x(2, 3, grad=False))
row(
    "mean_squared_error",
    "same-variable-twice",
    lambda x: fn.mean_squared_error(x, x),
    lambda x: 0 * x.sum(),
    x(2, 3),
)
for how in LAYOUTS:
    row("mean_squared_error", how, f, ref, x(3, 4, layout=how), x(3, 4, layout=how))


# --- dtypes and devices --------------------------------------------------------------------------


def np_astype(x: Any, dtype: str) -> Any:
    return x.astype(dtype)


def np_same(x: Any, **ignored: Any) -> Any:
    return x


@wraps(fn.to_device)
def to_device(x: Any) -> Any:
    """To a device of another library, whichever this one is on."""
    return fn.to_device(x, "numpy" if str(x.device) != "numpy" else "strict:device1")


wide, narrow = x(2, 3, dtype="float64"), x(2, 3, dtype="float32")
row("astype", "same-dtype", fn.astype, np_astype, wide, dtype="float64")
row(
    "astype",
    "to-float32",
    fn.astype,
    np_astype,
    wide,
    single=True,
    smooth=np_same,
    dtype="float32",
)
row(
    "astype",
    "to-float64",
    fn.astype,
    np_astype,
    narrow,
    single=True,
    smooth=np_same,
    dtype="float64",
)
row("astype", "to-int", fn.astype, np_astype, x(9), order=0, dtype="int32")
row("astype", "to-bool", fn.astype, np_astype, few(9), order=0, dtype="bool")
row("astype", "from-int", fn.astype, np_astype, few(9), order=0, dtypes=INTEGERS, dtype="float64")
row("astype", "method", lambda x: x.astype("float64"), np.copy, wide)
row("to_device", "there", to_device, np.copy, x(2, 3))
row("to_device", "there-and-back", lambda x: to_device(to_device(x) ** 2), lambda x: x**2, x(2, 3))
row("to_device", "0-d", to_device, np.copy, x())
row("to_device", "zero-size", to_device, np.copy, x(0, 3))
row("to_device", "integers", to_device, np.copy, few(9), order=0, dtypes=INTEGERS)
row("to_device", "same-device", lambda x: fn.to_device(x, x.device), np_same, x(2, 3))

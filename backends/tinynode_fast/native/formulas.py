"""Formulas: what an operator computes for an element, as C.

Requirement: a learner reads and changes the C of an operator, in a line. The letters of a
formula are the operands in order. ``s = e; y`` names a part of the formula. Functions have their
names for double, and numbers are written with a point. The emitter adds ``f`` for float32.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NewType

import numpy

from tinynode import functions
from tinynode.errors import describe
from tinynode.functions import (
    activation,
    comparison,
    cross_entropies,
    gaussian,
    logistic,
    special,
    trigonometric,
)
from tinynode_fast.native.build import has_vector_functions

_NAMES = """acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp expm1 hypot log log10
log1p log2 pow sin sinh tan tanh"""
FUNCTIONS = frozenset(_NAMES.split())
"""Functions of a loop with a vector form; without such a form NumPy is quicker."""
CALL = re.compile(r"\b(?!is)([a-z][a-z0-9]*)\(")
"""A called function, without those such as ``isnan``, which have the same name for float."""


CNumber = NewType("CNumber", str)
"""A constant of C, made by ``number`` and ``integer`` alone: mypy refuses other texts."""
CFormula = NewType("CFormula", str)
"""The text of a formula, made by ``formula`` alone."""
_CHARACTERS = re.compile(r"[\w\s.+\-*/()<>=!&|?:;,]*", re.ASCII)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_PLAIN = "fabs sqrt floor ceil rint trunc copysign isfinite isinf INFINITY NAN"
_KNOWN = FUNCTIONS.union(_PLAIN.split())


def formula(text: str, **numbers: CNumber) -> CFormula:
    """A formula with constants in the places ``{name}``.

    Raises:
        ValueError: the text has more than letters, numbers, operators and known functions.
    """
    return _checked(text.format(**numbers) if numbers else text)


@functools.lru_cache(1024)
def _checked(text: str) -> CFormula:
    words = [word for word in _WORD.findall(text) if len(word) > 1]
    if not _CHARACTERS.fullmatch(text) or not _KNOWN.issuperset(words):
        raise ValueError(
            f"formula: {text!r} must have letters, numbers, operators and functions of math.h "
            "alone. Give a constant as {name}, and name=number(value)."
        )
    return CFormula(text)


@functools.lru_cache(1024)
def functions_in(text: str) -> frozenset[str]:
    """The functions with a vector form that a formula calls."""
    return FUNCTIONS.intersection(CALL.findall(text))


class ElementFormula(NamedTuple):
    """An elementwise operator: ``text`` computes an element from the operands' elements."""

    name: str
    letters: tuple[str, ...]
    text: CFormula

    @property
    def in_c(self) -> bool:
        """True if a loop in C is as quick as NumPy."""
        return has_vector_functions() or not functions_in(self.text)

    @property
    def in_numpy(self) -> Any:
        """The function of NumPy with the same name, or None."""
        found = getattr(numpy, self.name, None)
        is_usual = isinstance(found, numpy.ufunc) and self.name not in ("maximum", "minimum")
        return found if is_usual else None  # these two take ``out`` by name alone

    def agrees(self, shapes: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> bool:
        """True if all operands broadcast to the result."""
        return all(broadcasts(shape, result) for shape in shapes)


class Reduction(NamedTuple):
    """The sum or the largest number over axes. The axes stay, with length 1.

    The largest number ignores NaN. "rows" adds up each row in the place of an index.
    """

    name: str  # "sum", "largest" or "rows"
    axes: tuple[int, ...]

    def agrees(self, shapes: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> bool:
        """True if the result has the kept shape; of "rows", if each row has a place."""
        x = shapes[0]
        if self.name != "rows":
            return kept_shape(x, self.axes) == result
        return shapes[1] == (x[0], *[1] * len(x[1:])) and x[1:] == result[1:]


def broadcasts(shape: Sequence[int], wide: Sequence[int]) -> bool:
    """True if a shape broadcasts to a wide shape."""
    pairs = zip(reversed(shape), reversed(wide), strict=False)
    return len(shape) <= len(wide) and all(n in (1, m) for n, m in pairs)


def exact_axes(shape: tuple[int, ...], axes: Iterable[Any]) -> tuple[int, ...]:
    """Axes of a shape as integers from 0 on: the C has them in comments.

    Raises:
        TypeError: an axis is no integer.
        IndexError: an axis is outside the shape.
    """
    every = range(len(shape))
    return tuple([every[axis] for axis in axes])


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a reduction, which keeps the axes with length 1."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def number(value: Any) -> CNumber:
    """A number as a floating constant of C. No other text of an operator is written into C.

    Raises:
        TypeError: the value is no number.
    """
    if not isinstance(value, numbers.Real):
        raise TypeError(f"number: a constant of C must be a number, got {describe(value)}.")
    exact = float(value)
    text = repr(exact).replace("inf", "INFINITY").replace("nan", "NAN")
    return CNumber(text if exact >= 0 else f"({text})")


def integer(value: Any) -> CNumber:
    """An integer of 64 bits as a constant of C.

    Raises:
        TypeError: the value is no integer.
        ValueError: the integer has more than 64 bits.
    """
    exact = int(operator.index(value))
    if not is_int64(exact):
        raise ValueError(f"integer: a constant of C has at most 64 bits, got {exact}.")
    if exact == -(2**63):  # C has no such literal
        return CNumber(f"({exact + 1} - 1)")
    return CNumber(str(exact))


def is_int64(value: int) -> bool:
    """True for an integer of 64 bits with a sign."""
    return -(2**63) <= value < 2**63


def clipped(letter: str, end: float) -> str:
    """x between -end and end, or NaN, as a part of a formula."""
    return f"{letter} = x < -{end} ? -{end} : x > {end} ? {end} : x"


def normal(is_single: bool) -> str:
    """The normal distribution at x, n, by ``normal_array``; k is x, held, and b the bell curve."""
    pace, tail = gaussian.SINGLE if is_single else gaussian.DOUBLE
    return (
        f"{clipped('k', gaussian.GAUSS_ENDS)}; {gauss(is_single, '0.5', 'k')}; "
        f"t = 1.0 / (fabs(k) * {pace} + 1.0); r = ({_horner(tail, 't')}) * b; "
        "n = x > 0 ? 1.0 - r : r"
    )


def _horner(coefficients: Sequence[float], letter: str) -> str:
    """A polynomial, highest power first."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text}) * {letter} + {coefficient!r}"
    return text


def gauss(is_single: bool, c: str, letter: str = "x") -> str:
    """e^(-c x^2), b, without the rounding of x^2: see ``functions/gaussian.py``.

    x is h plus less than 1 / 512 in single precision, and 2^-21 in double. So e^(c (h^2 - x^2)) is
    near 1, and four terms of its series do.
    """
    grid = 256.0 if is_single else 2.0**20
    return (
        f"h = rint({letter} * {grid}) * {1.0 / grid!r}; "
        f"o = (h - {letter}) * (h + {letter}) * {c}; "
        f"b = exp(h * h * -{c}) * (((o * {1.0 / 6.0!r} + 0.5) * o + 1.0) * o + 1.0)"
    )


_SIGMOID = "e = exp(-fabs(x)); d = 1.0 / (1.0 + e); s = (x < 0 ? e : 1.0) * d"
_BOTH_SIGMOIDS = "d = 1.0 / (1.0 + e); s = ({0} < 0 ? e : 1.0) * d; t = ({0} < 0 ? 1.0 : e) * d"
"""sigmoid(x) and sigmoid(-x), from e^-|x|; a division takes as long as many products."""
_CUBIC, _SCALE = 0.044715, 2.0 * math.sqrt(2.0 / math.pi)
_TANH_GELU = (
    f"{clipped('k', 25.0)}; v = (k * k * {_CUBIC * _SCALE!r} + {_SCALE!r}) * k; e = exp(-fabs(v))"
)
_UNARY = {
    functions.Negative: "-x",
    functions.Positive: "x",
    functions.Abs: "fabs(x)",
    functions.Square: "x * x",
    functions.Sqrt: "sqrt(x)",
    functions.Reciprocal: "1.0 / x",
    functions.Floor: "floor(x)",
    functions.Ceil: "ceil(x)",
    functions.Round: "rint(x)",
    functions.Trunc: "trunc(x)",
    functions.Sign: "x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x",
    functions.ReLU: "x > 0 || x != x ? x : 0.0",
    functions.Sigmoid: f"{_SIGMOID}; s",
    functions.LogSigmoid: "(x < 0 ? x : -0.0) - log1p(exp(-fabs(x)))",
    activation.SiLU: f"{_SIGMOID}; s == 0 ? -0.0 : s * x",
    activation.TanhGELU: f"{_TANH_GELU}; d = 1.0 / (1.0 + e); s = (v < 0 ? e : 1.0) * d; "
    "s == 0 ? -0.0 : s * x",
    trigonometric.CircleRoot: "sqrt((1.0 - x) * (1.0 + x))",
    trigonometric.HyperbolaRoot: "sqrt(x - 1.0) * sqrt(x + 1.0)",
    **{
        getattr(functions, name.capitalize()): f"{name}(x)"
        for name in sorted(FUNCTIONS - {"erf", "erfc", "atan2", "hypot", "pow"})
    },
    gaussian.Erf: "erf(x)",
    special.Erfc: "erfc(x)",
    comparison.IsFinite: "isfinite(x) != 0",
    comparison.IsInf: "isinf(x) != 0",
    comparison.IsNaN: "x != x",
}
_BINARY = {
    functions.Add: "x + y",
    functions.Subtract: "x - y",
    functions.Multiply: "x * y",
    functions.ZeroSafeMultiply: "x * (isfinite(y) || x != 0 ? y : 0.0)",
    functions.ZeroSafeDivide: "x / (x != 0 || (y != 0 && y == y) ? y : 1.0)",
    functions.Divide: "x / y",
    functions.Direction: "x / (y + (y == 0 ? 1.0 : 0.0))",
    functions.Maximum: "x >= y || x != x ? x : y",
    functions.Minimum: "x <= y || x != x ? x : y",
    functions.CopySign: "copysign(x, y)",
    functions.LogAddExp: "m = x >= y || x != x ? x : y; n = x <= y || x != x ? x : y; "
    "m + log1p(exp(isinf(m) ? n : n - m))",
    functions.Hypot: "hypot(x, y)",
    trigonometric.Cosine: "r = hypot(x, y); x / (r == 0 ? 1.0 : r)",
    functions.Atan2: "atan2(x, y)",
    functions.Equal: "x == y",
    functions.NotEqual: "x != y",
    functions.Less: "x < y",
    functions.LessEqual: "x <= y",
    functions.Greater: "x > y",
    functions.GreaterEqual: "x >= y",
    functions.ReLUGrad: "x > 0 ? y : 0.0",
    trigonometric.TanhGrad: "e = exp(-fabs(x)); r = 2.0 * e / (e * e + 1.0); r * r * y",
    logistic.SigmoidGrad: "e = exp(-fabs(x)); d = 1.0 / (1.0 + e); e * d * d * y",
    cross_entropies.SigmoidError: "e = exp(-fabs(x)); s = e / (1.0 + e); "
    "x > 0 ? (1.0 - y) - s : s - y",
    activation.SiLUGrad: f"{clipped('h', 1000.0)}; e = exp(-fabs(x)); "
    f"{_BOTH_SIGMOIDS.format('x')}; (h * t + 1.0) * s * y",
    activation.TanhGELUGrad: f"{_TANH_GELU}; w = k * k * {3.0 * _CUBIC * _SCALE!r} + {_SCALE!r}; "
    f"{_BOTH_SIGMOIDS.format('v')}; (k * t * w + 1.0) * s * y",
}
FORMULAS: dict[type, ElementFormula] = {
    **{
        kind: ElementFormula(kind.__name__.lower(), ("x",), formula(text))
        for kind, text in _UNARY.items()
    },
    **{
        kind: ElementFormula(kind.__name__.lower(), ("x", "y"), formula(text))
        for kind, text in _BINARY.items()
    },
    functions.Where: ElementFormula("where", ("c", "x", "y"), formula("c ? x : y")),
    functions.KeepZeros: ElementFormula(
        "keepzeros", ("y", "g", "d"), formula("g == 0 && !isfinite(d) ? 0.0 : y")
    ),
}
"""The formulas of operators without settings."""

"""The elementwise functions of the standard."""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.base import NUMBERS, NamespaceBase
from tinynode.core.variable import Variable
from tinynode.functions.bitwise import (
    BitwiseAnd,
    BitwiseInvert,
    BitwiseLeftShift,
    BitwiseOr,
    BitwiseRightShift,
    BitwiseXor,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
)
from tinynode.functions.comparison import SignBit


class Elementwise(NamespaceBase):
    """The elementwise functions, and ``clip``.

    A number beside an array takes the dtype of the array. For formulas and gradients, see
    ``tinynode.functions``.
    """

    # --- of one argument -----------------------------------------------------------------------

    def abs(self, x: Any, /) -> Variable:
        """|x| by element; the gradient at 0 is 0."""
        return functions.abs(self._lift("abs", x))

    def acos(self, x: Any, /) -> Variable:
        """The inverse cosine, in radians."""
        return functions.acos(self._lift("acos", x))

    def acosh(self, x: Any, /) -> Variable:
        """The inverse hyperbolic cosine."""
        return functions.acosh(self._lift("acosh", x))

    def asin(self, x: Any, /) -> Variable:
        """The inverse sine, in radians."""
        return functions.asin(self._lift("asin", x))

    def asinh(self, x: Any, /) -> Variable:
        """The inverse hyperbolic sine."""
        return functions.asinh(self._lift("asinh", x))

    def atan(self, x: Any, /) -> Variable:
        """The inverse tangent, in radians."""
        return functions.atan(self._lift("atan", x))

    def atanh(self, x: Any, /) -> Variable:
        """The inverse hyperbolic tangent."""
        return functions.atanh(self._lift("atanh", x))

    def bitwise_invert(self, x: Any, /) -> Variable:
        """~x, of integers or bools."""
        return BitwiseInvert().apply((self._lift("bitwise_invert", x),))[0]

    def ceil(self, x: Any, /) -> Variable:
        """x rounded up; the gradient is 0."""
        return functions.ceil(self._lift("ceil", x))

    def cos(self, x: Any, /) -> Variable:
        """The cosine of x in radians."""
        return functions.cos(self._lift("cos", x))

    def cosh(self, x: Any, /) -> Variable:
        """The hyperbolic cosine."""
        return functions.cosh(self._lift("cosh", x))

    def exp(self, x: Any, /) -> Variable:
        """e^x."""
        return functions.exp(self._lift("exp", x))

    def expm1(self, x: Any, /) -> Variable:
        """e^x - 1, precise near 0."""
        return functions.expm1(self._lift("expm1", x))

    def floor(self, x: Any, /) -> Variable:
        """x rounded down; the gradient is 0."""
        return functions.floor(self._lift("floor", x))

    def isfinite(self, x: Any, /) -> Variable:
        """True where x is neither infinite nor NaN."""
        return functions.isfinite(self._lift("isfinite", x))

    def isinf(self, x: Any, /) -> Variable:
        """True where x is infinite."""
        return functions.isinf(self._lift("isinf", x))

    def isnan(self, x: Any, /) -> Variable:
        """True where x is NaN."""
        return functions.isnan(self._lift("isnan", x))

    def log(self, x: Any, /) -> Variable:
        """The natural logarithm."""
        return functions.log(self._lift("log", x))

    def log10(self, x: Any, /) -> Variable:
        """The logarithm to base 10."""
        return functions.log10(self._lift("log10", x))

    def log1p(self, x: Any, /) -> Variable:
        """log(1 + x), precise near 0."""
        return functions.log1p(self._lift("log1p", x))

    def log2(self, x: Any, /) -> Variable:
        """The logarithm to base 2."""
        return functions.log2(self._lift("log2", x))

    def logical_not(self, x: Any, /) -> Variable:
        """not x, of bools."""
        return LogicalNot().apply((self._lift("logical_not", x),))[0]

    def negative(self, x: Any, /) -> Variable:
        """-x."""
        return functions.negative(self._lift("negative", x))

    def positive(self, x: Any, /) -> Variable:
        """+x."""
        return functions.positive(self._lift("positive", x))

    def reciprocal(self, x: Any, /) -> Variable:
        """1 / x."""
        return functions.reciprocal(self._lift("reciprocal", x))

    def round(self, x: Any, /) -> Variable:
        """The nearest integer, even at ties; the gradient is 0."""
        return functions.round(self._lift("round", x))

    def sign(self, x: Any, /) -> Variable:
        """-1, 0 or 1; the gradient is 0."""
        return functions.sign(self._lift("sign", x))

    def signbit(self, x: Any, /) -> Variable:
        """True where the sign bit is set: for negative numbers and -0."""
        return SignBit().apply((self._lift("signbit", x),))[0]

    def sin(self, x: Any, /) -> Variable:
        """The sine of x in radians."""
        return functions.sin(self._lift("sin", x))

    def sinh(self, x: Any, /) -> Variable:
        """The hyperbolic sine."""
        return functions.sinh(self._lift("sinh", x))

    def sqrt(self, x: Any, /) -> Variable:
        """The square root."""
        return functions.sqrt(self._lift("sqrt", x))

    def square(self, x: Any, /) -> Variable:
        """x^2."""
        return functions.square(self._lift("square", x))

    def tan(self, x: Any, /) -> Variable:
        """The tangent of x in radians."""
        return functions.tan(self._lift("tan", x))

    def tanh(self, x: Any, /) -> Variable:
        """The hyperbolic tangent."""
        return functions.tanh(self._lift("tanh", x))

    def trunc(self, x: Any, /) -> Variable:
        """x without the fraction; the gradient is 0."""
        return functions.trunc(self._lift("trunc", x))

    # --- of two arguments ----------------------------------------------------------------------

    def add(self, x1: Any, x2: Any, /) -> Variable:
        """x1 + x2."""
        return functions.add(*self._pair("add", x1, x2))

    def atan2(self, x1: Any, x2: Any, /) -> Variable:
        """The angle of the point (x2, x1), in radians."""
        return functions.atan2(*self._pair("atan2", x1, x2))

    def bitwise_and(self, x1: Any, x2: Any, /) -> Variable:
        """x1 & x2."""
        return BitwiseAnd().apply(self._two("bitwise_and", x1, x2))[0]

    def bitwise_left_shift(self, x1: Any, x2: Any, /) -> Variable:
        """x1 << x2."""
        return BitwiseLeftShift().apply(self._two("bitwise_left_shift", x1, x2))[0]

    def bitwise_or(self, x1: Any, x2: Any, /) -> Variable:
        """x1 | x2."""
        return BitwiseOr().apply(self._two("bitwise_or", x1, x2))[0]

    def bitwise_right_shift(self, x1: Any, x2: Any, /) -> Variable:
        """x1 >> x2."""
        return BitwiseRightShift().apply(self._two("bitwise_right_shift", x1, x2))[0]

    def bitwise_xor(self, x1: Any, x2: Any, /) -> Variable:
        """x1 ^ x2."""
        return BitwiseXor().apply(self._two("bitwise_xor", x1, x2))[0]

    def copysign(self, x1: Any, x2: Any, /) -> Variable:
        """|x1| with the sign of x2."""
        return functions.copysign(*self._pair("copysign", x1, x2))

    def divide(self, x1: Any, x2: Any, /) -> Variable:
        """x1 / x2."""
        return functions.divide(*self._pair("divide", x1, x2))

    def equal(self, x1: Any, x2: Any, /) -> Variable:
        """x1 == x2."""
        return functions.equal(*self._pair("equal", x1, x2))

    def floor_divide(self, x1: Any, x2: Any, /) -> Variable:
        """x1 / x2, rounded down; the gradient is 0."""
        return functions.floor_divide(*self._pair("floor_divide", x1, x2))

    def greater(self, x1: Any, x2: Any, /) -> Variable:
        """x1 > x2."""
        return functions.greater(*self._pair("greater", x1, x2))

    def greater_equal(self, x1: Any, x2: Any, /) -> Variable:
        """x1 >= x2."""
        return functions.greater_equal(*self._pair("greater_equal", x1, x2))

    def hypot(self, x1: Any, x2: Any, /) -> Variable:
        """sqrt(x1^2 + x2^2), without overflow."""
        return functions.hypot(*self._pair("hypot", x1, x2))

    def less(self, x1: Any, x2: Any, /) -> Variable:
        """x1 < x2."""
        return functions.less(*self._pair("less", x1, x2))

    def less_equal(self, x1: Any, x2: Any, /) -> Variable:
        """x1 <= x2."""
        return functions.less_equal(*self._pair("less_equal", x1, x2))

    def logaddexp(self, x1: Any, x2: Any, /) -> Variable:
        """log(e^x1 + e^x2), without overflow."""
        return functions.logaddexp(*self._pair("logaddexp", x1, x2))

    def logical_and(self, x1: Any, x2: Any, /) -> Variable:
        """x1 and x2, of bools."""
        return LogicalAnd().apply(self._two("logical_and", x1, x2))[0]

    def logical_or(self, x1: Any, x2: Any, /) -> Variable:
        """x1 or x2, of bools."""
        return LogicalOr().apply(self._two("logical_or", x1, x2))[0]

    def logical_xor(self, x1: Any, x2: Any, /) -> Variable:
        """Either x1 or x2, of bools."""
        return LogicalXor().apply(self._two("logical_xor", x1, x2))[0]

    def maximum(self, x1: Any, x2: Any, /) -> Variable:
        """The larger argument; the gradient goes half to each at ties."""
        return functions.maximum(*self._pair("maximum", x1, x2))

    def minimum(self, x1: Any, x2: Any, /) -> Variable:
        """The smaller argument; the gradient goes half to each at ties."""
        return functions.minimum(*self._pair("minimum", x1, x2))

    def multiply(self, x1: Any, x2: Any, /) -> Variable:
        """x1 * x2."""
        return functions.multiply(*self._pair("multiply", x1, x2))

    def nextafter(self, x1: Any, x2: Any, /) -> Variable:
        """The next floating number after x1, towards x2.

        Raises:
            NotImplementedError: an argument requires a gradient.
        """
        arrays = [self._array_without_rule("nextafter", x) for x in self._pair("", x1, x2)]
        return self._new(self._xp.nextafter(*arrays))

    def not_equal(self, x1: Any, x2: Any, /) -> Variable:
        """x1 != x2."""
        return functions.not_equal(*self._pair("not_equal", x1, x2))

    def pow(self, x1: Any, x2: Any, /) -> Variable:
        """x1 to the power of x2."""
        return functions.pow(*self._pair("pow", x1, x2))

    def remainder(self, x1: Any, x2: Any, /) -> Variable:
        """The remainder of x1 / x2, with the sign of x2."""
        return functions.remainder(*self._pair("remainder", x1, x2))

    def subtract(self, x1: Any, x2: Any, /) -> Variable:
        """x1 - x2."""
        return functions.subtract(*self._pair("subtract", x1, x2))

    def clip(self, x: Any, /, min: Any = None, max: Any = None) -> Variable:
        """x, at least ``min`` and at most ``max``; the result has the dtype of x."""
        x = self._lift("clip", x)
        lower, upper = self._bound(x, min), self._bound(x, max)
        if lower is None and upper is None:
            return functions.copy(x)
        return functions.clip(x, lower, upper)

    def _bound(self, x: Variable, bound: Any) -> Any:
        """A bound of ``clip``: None, a number, or a Variable of the dtype of x."""
        if bound is None or isinstance(bound, NUMBERS):
            return bound
        return self._cast("clip", bound, x.dtype)

    # --- complex numbers -----------------------------------------------------------------------

    def conj(self, x: Any, /) -> Variable:
        """The complex conjugate."""
        return functions.conj(self._lift("conj", x))

    def imag(self, x: Any, /) -> Variable:
        """The imaginary part."""
        return functions.imag(self._lift("imag", x))

    def real(self, x: Any, /) -> Variable:
        """The real part."""
        return functions.real(self._lift("real", x))

"""The elementwise functions of the standard: a table, and the functions with work of their own."""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.base import NUMBERS, Forwarder, NamespaceBase
from tinynode.core.variable import Variable
from tinynode.functions import (
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
    SignBit,
)


class OneArray(Forwarder):
    """The function of a single array."""

    def __call__(self, namespace: NamespaceBase, x: Any, /) -> Variable:
        y: Variable = self.function(namespace._lift(self.__name__, x))
        return y


class TwoArrays(Forwarder):
    """The function of two arrays, or of an array and a number."""

    def __call__(self, namespace: NamespaceBase, x1: Any, x2: Any, /) -> Variable:
        y: Variable = self.function(*namespace._pair(self.__name__, x1, x2))
        return y


class NodeOfOne(Forwarder):
    """The FunctionNode of a single array, which does not check the dtype."""

    def __call__(self, namespace: NamespaceBase, x: Any, /) -> Variable:
        y: Variable = self.function().apply((namespace._lift(self.__name__, x),))[0]
        return y


class NodeOfTwo(Forwarder):
    """The FunctionNode of two arrays, which does not check the dtypes."""

    def __call__(self, namespace: NamespaceBase, x1: Any, x2: Any, /) -> Variable:
        y: Variable = self.function().apply(namespace._two(self.__name__, x1, x2))[0]
        return y


class ElementwiseFunctions(NamespaceBase):
    """The elementwise functions, and ``clip``.

    A number beside an array takes the dtype of the array. For formulas and gradients, see
    ``tinynode.functions``.
    """

    abs = OneArray(functions.abs)
    acos = OneArray(functions.acos)
    acosh = OneArray(functions.acosh)
    asin = OneArray(functions.asin)
    asinh = OneArray(functions.asinh)
    atan = OneArray(functions.atan)
    atanh = OneArray(functions.atanh)
    bitwise_invert = NodeOfOne(BitwiseInvert)
    ceil = OneArray(functions.ceil)
    conj = OneArray(functions.conj)
    cos = OneArray(functions.cos)
    cosh = OneArray(functions.cosh)
    exp = OneArray(functions.exp)
    expm1 = OneArray(functions.expm1)
    floor = OneArray(functions.floor)
    imag = OneArray(functions.imag)
    isfinite = OneArray(functions.isfinite)
    isinf = OneArray(functions.isinf)
    isnan = OneArray(functions.isnan)
    log = OneArray(functions.log)
    log10 = OneArray(functions.log10)
    log1p = OneArray(functions.log1p)
    log2 = OneArray(functions.log2)
    logical_not = NodeOfOne(LogicalNot)
    negative = OneArray(functions.negative)
    positive = OneArray(functions.positive)
    real = OneArray(functions.real)
    reciprocal = OneArray(functions.reciprocal)
    round = OneArray(functions.round)
    sign = OneArray(functions.sign)
    signbit = NodeOfOne(SignBit)
    sin = OneArray(functions.sin)
    sinh = OneArray(functions.sinh)
    sqrt = OneArray(functions.sqrt)
    square = OneArray(functions.square)
    tan = OneArray(functions.tan)
    tanh = OneArray(functions.tanh)
    trunc = OneArray(functions.trunc)

    add = TwoArrays(functions.add)
    atan2 = TwoArrays(functions.atan2)
    bitwise_and = NodeOfTwo(BitwiseAnd)
    bitwise_left_shift = NodeOfTwo(BitwiseLeftShift)
    bitwise_or = NodeOfTwo(BitwiseOr)
    bitwise_right_shift = NodeOfTwo(BitwiseRightShift)
    bitwise_xor = NodeOfTwo(BitwiseXor)
    copysign = TwoArrays(functions.copysign)
    divide = TwoArrays(functions.divide)
    equal = TwoArrays(functions.equal)
    floor_divide = TwoArrays(functions.floor_divide)
    greater = TwoArrays(functions.greater)
    greater_equal = TwoArrays(functions.greater_equal)
    hypot = TwoArrays(functions.hypot)
    less = TwoArrays(functions.less)
    less_equal = TwoArrays(functions.less_equal)
    logaddexp = TwoArrays(functions.logaddexp)
    logical_and = NodeOfTwo(LogicalAnd)
    logical_or = NodeOfTwo(LogicalOr)
    logical_xor = NodeOfTwo(LogicalXor)
    maximum = TwoArrays(functions.maximum)
    minimum = TwoArrays(functions.minimum)
    multiply = TwoArrays(functions.multiply)
    not_equal = TwoArrays(functions.not_equal)
    pow = TwoArrays(functions.pow)
    remainder = TwoArrays(functions.remainder)
    subtract = TwoArrays(functions.subtract)

    def nextafter(self, x1: Any, x2: Any, /) -> Variable:
        """The next floating number after x1, towards x2.

        Raises:
            NotImplementedError: an argument requires a gradient.
        """
        arrays = [self._array_without_rule("nextafter", x) for x in self._pair("", x1, x2)]
        return self._new(self._xp.nextafter(*arrays))

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

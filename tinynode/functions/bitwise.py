"""Bits and truth values, elementwise: ``&``, ``|``, ``^``, ``~``, ``<<``, ``>>``, and logic.

Requirement: integers and bools only, and no mixture of the two, as in the Array API standard. The
results have no gradient.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import BOOL, INTEGER, Arrays, kind_of, namespace_of
from tinynode.errors import OperandError, dtype_name
from tinynode.functions.arithmetic import BroadcastingNode
from tinynode.functions.operands import as_operand, as_operands

__all__ = [
    "BitwiseAnd",
    "BitwiseInvert",
    "BitwiseLeftShift",
    "BitwiseOr",
    "BitwiseRightShift",
    "BitwiseXor",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "LogicalXor",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]
__dir__ = __all__.copy  # for completion

Operands = tuple[Variable, Variable]

_CURE = "A comparison such as x != 0 gives bools; x.astype('int64') gives integers."


def _pair(function: str, x1: Any, x2: Any, kinds: tuple[int, ...], expected: str) -> Operands:
    """Two operands as Variables of one kind of dtype.

    Raises:
        OperandError: another kind of dtype, or two kinds.
    """
    x, y = as_operands(function, x1, x2, ("x1", "x2"))
    kind = kind_of(x.filled_array())
    if kind not in kinds or kind_of(y.filled_array()) != kind:
        raise OperandError(
            f"{function}: x1 and x2 must be {expected}, got {dtype_name(x.dtype)} and "
            f"{dtype_name(y.dtype)}. {_CURE}"
        )
    return x, y


def _bits(function: str, x1: Any, x2: Any) -> Operands:
    return _pair(function, x1, x2, (BOOL, INTEGER), "two integer or two bool inputs")


def _integers(function: str, x1: Any, x2: Any) -> Operands:
    return _pair(function, x1, x2, (INTEGER,), "two integer inputs")


def _truth_values(function: str, x1: Any, x2: Any) -> Operands:
    return _pair(function, x1, x2, (BOOL,), "two bool inputs")


def _as_kind(function: str, value: Any, kinds: tuple[int, ...], expected: str) -> Variable:
    """The only operand of a function, of one of the kinds of dtypes."""
    x = as_operand(function, "x", value)
    if kind_of(x.filled_array()) not in kinds:
        raise OperandError(f"{function}: x must be {expected}, got {dtype_name(x.dtype)}. {_CURE}")
    return x


class BitwiseAnd(BroadcastingNode):
    """z = the bits that are 1 in x and in y.

    x: (s), y: (t), integer or bool -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_and(x, y),)


def bitwise_and(x1: Any, x2: Any) -> Variable:
    """``x1 & x2``: the bits that are 1 in both, elementwise.

    Raises:
        OperandError: the inputs are not two integers or two bools.
    """
    return BitwiseAnd().apply(_bits("bitwise_and", x1, x2))[0]


class BitwiseOr(BroadcastingNode):
    """z = the bits that are 1 in x or in y.

    x: (s), y: (t), integer or bool -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_or(x, y),)


def bitwise_or(x1: Any, x2: Any) -> Variable:
    """``x1 | x2``: the bits of x and of y together, elementwise.

    Raises:
        OperandError: the inputs are not two integers or two bools.
    """
    return BitwiseOr().apply(_bits("bitwise_or", x1, x2))[0]


class BitwiseXor(BroadcastingNode):
    """z = the bits that differ in x and y.

    x: (s), y: (t), integer or bool -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_xor(x, y),)


def bitwise_xor(x1: Any, x2: Any) -> Variable:
    """``x1 ^ x2``: the bits that differ, elementwise.

    Raises:
        OperandError: the inputs are not two integers or two bools.
    """
    return BitwiseXor().apply(_bits("bitwise_xor", x1, x2))[0]


class BitwiseLeftShift(BroadcastingNode):
    """z = the bits of x, y places up: x times 2 to the power y, without the bits that drop out.

    x: (s), y: (t), integer -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_left_shift(x, y),)


def bitwise_left_shift(x1: Any, x2: Any) -> Variable:
    """``x1 << x2``: the bits moved up, elementwise. A negative ``x2`` is undefined.

    Raises:
        OperandError: an input is not integer.
    """
    return BitwiseLeftShift().apply(_integers("bitwise_left_shift", x1, x2))[0]


class BitwiseRightShift(BroadcastingNode):
    """z = the bits of x, y places down, with the sign of x: floor of x over 2 to the power y.

    x: (s), y: (t), integer -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_right_shift(x, y),)


def bitwise_right_shift(x1: Any, x2: Any) -> Variable:
    """``x1 >> x2``: the bits moved down, elementwise. A negative ``x2`` is undefined.

    Raises:
        OperandError: an input is not integer.
    """
    return BitwiseRightShift().apply(_integers("bitwise_right_shift", x1, x2))[0]


class BitwiseInvert(FunctionNode):
    """y = the bits of x, each turned over; not x, for bools.

    x: (s), integer or bool -> y: (s). No gradient.
    """

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).bitwise_invert(x),)


def bitwise_invert(x: Any) -> Variable:
    """``~x``: each bit turned over, elementwise.

    Raises:
        OperandError: x is neither integer nor bool.
    """
    x = _as_kind("bitwise_invert", x, (BOOL, INTEGER), "integer or bool")
    return BitwiseInvert().apply((x,))[0]


class LogicalAnd(BroadcastingNode):
    """z = x and y.   x: (s), y: (t), bool -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_and(x, y),)


def logical_and(x1: Any, x2: Any) -> Variable:
    """Whether both are true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalAnd().apply(_truth_values("logical_and", x1, x2))[0]


class LogicalOr(BroadcastingNode):
    """z = x or y.   x: (s), y: (t), bool -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_or(x, y),)


def logical_or(x1: Any, x2: Any) -> Variable:
    """Whether one or both are true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalOr().apply(_truth_values("logical_or", x1, x2))[0]


class LogicalXor(BroadcastingNode):
    """z = x or y, not both.   x: (s), y: (t), bool -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_xor(x, y),)


def logical_xor(x1: Any, x2: Any) -> Variable:
    """Whether exactly one is true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalXor().apply(_truth_values("logical_xor", x1, x2))[0]


class LogicalNot(FunctionNode):
    """y = not x.   x: (s), bool -> y: (s), bool. No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).logical_not(x),)


def logical_not(x: Any) -> Variable:
    """Whether x is false, elementwise.

    Raises:
        OperandError: x is not bool.
    """
    return LogicalNot().apply((_as_kind("logical_not", x, (BOOL,), "bool"),))[0]

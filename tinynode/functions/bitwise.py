"""Bits and truth values, elementwise: ``&``, ``|``, ``^``, ``~``, ``<<``, ``>>``, and logic.

Requirement: integers and bools only, and no mixture of the two, as in the Array API standard. The
results have no gradient.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import BOOL, INTEGER, Arrays, kind_of, namespace_of
from tinynode.errors import OperandError, dtype_name, snake_case
from tinynode.functions.arithmetic import BroadcastingNode
from tinynode.functions.operands import as_operand

_CURE = "A comparison such as x != 0 gives bools; x.astype('int64') gives integers."


class _TwoOfOneKind(BroadcastingNode):
    """Base of the functions of two inputs; ``kinds`` are the allowed kinds of dtypes."""

    input_names = ("x1", "x2")
    kinds: tuple[int, ...] = (BOOL, INTEGER)
    expected = "two integer or two bool inputs"

    def as_variables(self, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        """The inputs as Variables of one kind.

        Raises:
            OperandError: another kind of dtype, or two kinds.
        """
        x, y = super().as_variables(inputs)
        kind = kind_of(x.filled_array())
        if kind not in self.kinds or kind_of(y.filled_array()) != kind:
            raise OperandError(
                f"{snake_case(type(self).__name__)}: expected {self.expected}, got "
                f"{dtype_name(x.dtype)} and {dtype_name(y.dtype)}. {_CURE}"
            )
        return x, y


def _as_kind(function: str, value: Any, kinds: tuple[int, ...], expected: str) -> Variable:
    """The only operand of a function, of one of the kinds of dtypes."""
    x = as_operand(function, "x", value)
    if kind_of(x.filled_array()) not in kinds:
        raise OperandError(f"{function}: x must be {expected}, got {dtype_name(x.dtype)}. {_CURE}")
    return x


class BitwiseAnd(_TwoOfOneKind):
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
    return BitwiseAnd().apply((x1, x2))[0]


class BitwiseOr(_TwoOfOneKind):
    """z = the bits that are 1 in x or in y.

    x: (s), y: (t), integer or bool -> z: (broadcast of s and t). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_or(x, y),)


def bitwise_or(x1: Any, x2: Any) -> Variable:
    """``x1 | x2``: the bits that are 1 in one or both, elementwise.

    Raises:
        OperandError: the inputs are not two integers or two bools.
    """
    return BitwiseOr().apply((x1, x2))[0]


class BitwiseXor(_TwoOfOneKind):
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
    return BitwiseXor().apply((x1, x2))[0]


class BitwiseLeftShift(_TwoOfOneKind):
    """z = the bits of x, y places up: x times 2 to the power y, without the bits that drop out.

    x: (s), y: (t), integer -> z: (broadcast of s and t). No gradient.
    """

    kinds = (INTEGER,)
    expected = "two integer inputs"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_left_shift(x, y),)


def bitwise_left_shift(x1: Any, x2: Any) -> Variable:
    """``x1 << x2``: the bits moved up, elementwise. A negative ``x2`` is undefined.

    Raises:
        OperandError: an input is not integer.
    """
    return BitwiseLeftShift().apply((x1, x2))[0]


class BitwiseRightShift(_TwoOfOneKind):
    """z = the bits of x, y places down, with the sign of x: floor of x over 2 to the power y.

    x: (s), y: (t), integer -> z: (broadcast of s and t). No gradient.
    """

    kinds = (INTEGER,)
    expected = "two integer inputs"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_right_shift(x, y),)


def bitwise_right_shift(x1: Any, x2: Any) -> Variable:
    """``x1 >> x2``: the bits moved down, elementwise. A negative ``x2`` is undefined.

    Raises:
        OperandError: an input is not integer.
    """
    return BitwiseRightShift().apply((x1, x2))[0]


class BitwiseInvert(FunctionNode):
    """y = the bits of x, each turned over; not x, for bools.

    x: (s), integer or bool -> y: (s). No gradient.
    """

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


class LogicalAnd(_TwoOfOneKind):
    """z = x and y.   x: (s), y: (t), bool -> z: (broadcast of s and t), bool. No gradient."""

    kinds = (BOOL,)
    expected = "two bool inputs"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_and(x, y),)


def logical_and(x1: Any, x2: Any) -> Variable:
    """Whether both are true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalAnd().apply((x1, x2))[0]


class LogicalOr(_TwoOfOneKind):
    """z = x or y.   x: (s), y: (t), bool -> z: (broadcast of s and t), bool. No gradient."""

    kinds = (BOOL,)
    expected = "two bool inputs"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_or(x, y),)


def logical_or(x1: Any, x2: Any) -> Variable:
    """Whether one or both are true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalOr().apply((x1, x2))[0]


class LogicalXor(_TwoOfOneKind):
    """z = x or y, not both.   x: (s), y: (t), bool -> z: (broadcast of s and t). No gradient."""

    kinds = (BOOL,)
    expected = "two bool inputs"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).logical_xor(x, y),)


def logical_xor(x1: Any, x2: Any) -> Variable:
    """Whether exactly one is true, elementwise.

    Raises:
        OperandError: an input is not bool.
    """
    return LogicalXor().apply((x1, x2))[0]


class LogicalNot(FunctionNode):
    """y = not x.   x: (s), bool -> y: (s), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).logical_not(x),)


def logical_not(x: Any) -> Variable:
    """Whether x is false, elementwise.

    Raises:
        OperandError: x is not bool.
    """
    return LogicalNot().apply((_as_kind("logical_not", x, (BOOL,), "bool"),))[0]

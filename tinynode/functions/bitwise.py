"""Bitwise operations on integers and bools, elementwise; the results have no gradient.

On bools ``x & y`` is "and", ``x | y`` "or", ``x ^ y`` "either, but not both", ``~x`` "not".
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import BOOL, INTEGER, Arrays, kind_of, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.functions.arithmetic import BroadcastingNode
from tinynode.functions.operands import as_operand, as_operands


class BitwiseAnd(BroadcastingNode):
    """z = x & y.   x: (s), y: (t), integers or bools -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_and(x, y),)


def bitwise_and(x: Any, y: Any) -> Variable:
    """x & y, elementwise, of integers or bools.

    Raises:
        OperandError: an argument has another dtype.
    """
    return BitwiseAnd().apply(_bits("bitwise_and", x, y))[0]


class BitwiseOr(BroadcastingNode):
    """z = x | y.   x: (s), y: (t), integers or bools -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_or(x, y),)


def bitwise_or(x: Any, y: Any) -> Variable:
    """x | y, elementwise, of integers or bools.

    Raises:
        OperandError: an argument has another dtype.
    """
    return BitwiseOr().apply(_bits("bitwise_or", x, y))[0]


class BitwiseXor(BroadcastingNode):
    """z = x ^ y.   x: (s), y: (t), integers or bools -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_xor(x, y),)


def bitwise_xor(x: Any, y: Any) -> Variable:
    """x ^ y, elementwise, of integers or bools.

    Raises:
        OperandError: an argument has another dtype.
    """
    return BitwiseXor().apply(_bits("bitwise_xor", x, y))[0]


class BitwiseInvert(FunctionNode):
    """z = ~x.   x: (s), integers or bools -> z: (s). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).bitwise_invert(x),)


def bitwise_invert(x: Any) -> Variable:
    """~x, elementwise, of integers or bools.

    Raises:
        OperandError: x has another dtype.
    """
    x = as_operand("bitwise_invert", "x", x)
    _require("bitwise_invert", "x", x, INTEGER)
    return BitwiseInvert().apply((x,))[0]


class BitwiseLeftShift(BroadcastingNode):
    """z = x << y.   x: (s), y: (t), integers -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_left_shift(x, y),)


def bitwise_left_shift(x: Any, y: Any) -> Variable:
    """x << y, elementwise, of integers.

    Raises:
        OperandError: an argument has another dtype.
    """
    return BitwiseLeftShift().apply(_integers("bitwise_left_shift", x, y))[0]


class BitwiseRightShift(BroadcastingNode):
    """z = x >> y.   x: (s), y: (t), integers -> z: (broadcast of s and t). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).bitwise_right_shift(x, y),)


def bitwise_right_shift(x: Any, y: Any) -> Variable:
    """x >> y, elementwise, of integers.

    Raises:
        OperandError: an argument has another dtype.
    """
    return BitwiseRightShift().apply(_integers("bitwise_right_shift", x, y))[0]


def _bits(function: str, x: Any, y: Any) -> tuple[Variable, Variable]:
    """Two operands of integers or bools."""
    x, y = as_operands(function, x, y)
    _require(function, "x", x, INTEGER)
    _require(function, "y", y, INTEGER)
    return x, y


def _integers(function: str, x: Any, y: Any) -> tuple[Variable, Variable]:
    """Two operands of integers."""
    x, y = _bits(function, x, y)
    for argument, value in (("x", x), ("y", y)):
        if kind_of(value.filled_array()) == BOOL:
            raise OperandError(
                f"{function}: {argument} must have an integer dtype, got {describe(value)}. Cast "
                'it first: x.astype("int64").'
            )
    return x, y


def _require(function: str, argument: str, value: Variable, kind: int) -> None:
    """Raises OperandError if a Variable has a dtype above a kind."""
    if kind_of(value.filled_array()) > kind:
        raise OperandError(
            f"{function}: {argument} must have an integer dtype or be bool, got "
            f"{describe(value)}. Compare first, (x > 0) & (y > 0), or cast with astype."
        )

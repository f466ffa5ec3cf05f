"""Functions that are constant in pieces: they have no gradient."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.operands import as_operand


class Floor(FunctionNode):
    """y = the largest integer not above x.   x: (s) -> y: (s). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).floor(x),)


def floor(x: Any) -> Variable:
    """The largest integer not above x, elementwise."""
    return Floor().apply((as_operand("floor", "x", x),))[0]


class Ceil(FunctionNode):
    """y = the smallest integer not below x.   x: (s) -> y: (s). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).ceil(x),)


def ceil(x: Any) -> Variable:
    """The smallest integer not below x, elementwise."""
    return Ceil().apply((as_operand("ceil", "x", x),))[0]


class Round(FunctionNode):
    """y = the integer nearest to x, the even one at ties.   x: (s) -> y: (s). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).round(x),)


def round(x: Any) -> Variable:
    """The nearest integer, elementwise; the even one at ties."""
    return Round().apply((as_operand("round", "x", x),))[0]


class Trunc(FunctionNode):
    """y = x without its fraction.   x: (s) -> y: (s). No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).trunc(x),)


def trunc(x: Any) -> Variable:
    """x without its fraction, elementwise: rounded towards 0."""
    return Trunc().apply((as_operand("trunc", "x", x),))[0]

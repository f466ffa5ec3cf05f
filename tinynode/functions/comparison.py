"""Comparisons, elementwise: they give bools, which have no gradient."""

from __future__ import annotations

from typing import Any

from tinynode.backend import Arrays, namespace_of
from tinynode.functions.broadcasting import BroadcastingNode
from tinynode.functions.operands import as_operands
from tinynode.variable import Variable


class Equal(BroadcastingNode):
    """z = (x == y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).equal(x, y),)


def equal(x: Any, y: Any) -> Variable:
    """Whether x == y, elementwise."""
    return Equal().apply(as_operands("equal", x, y))[0]


class NotEqual(BroadcastingNode):
    """z = (x != y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).not_equal(x, y),)


def not_equal(x: Any, y: Any) -> Variable:
    """Whether x != y, elementwise."""
    return NotEqual().apply(as_operands("not_equal", x, y))[0]


class Less(BroadcastingNode):
    """z = (x < y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less(x, y),)


def less(x: Any, y: Any) -> Variable:
    """Whether x < y, elementwise."""
    return Less().apply(as_operands("less", x, y))[0]


class LessEqual(BroadcastingNode):
    """z = (x <= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less_equal(x, y),)


def less_equal(x: Any, y: Any) -> Variable:
    """Whether x <= y, elementwise."""
    return LessEqual().apply(as_operands("less_equal", x, y))[0]


class Greater(BroadcastingNode):
    """z = (x > y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater(x, y),)


def greater(x: Any, y: Any) -> Variable:
    """Whether x > y, elementwise."""
    return Greater().apply(as_operands("greater", x, y))[0]


class GreaterEqual(BroadcastingNode):
    """z = (x >= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater_equal(x, y),)


def greater_equal(x: Any, y: Any) -> Variable:
    """Whether x >= y, elementwise."""
    return GreaterEqual().apply(as_operands("greater_equal", x, y))[0]

"""Comparisons, elementwise: they give bools, which have no gradient."""

from __future__ import annotations

from typing import Any

from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.broadcasting import BroadcastingNode


class Equal(BroadcastingNode):
    """z = (x == y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).equal(x, y),)


def equal(x: Any, y: Any) -> Variable:
    """Whether x == y, elementwise."""
    return Equal().apply((x, y))[0]


class NotEqual(BroadcastingNode):
    """z = (x != y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).not_equal(x, y),)


def not_equal(x: Any, y: Any) -> Variable:
    """Whether x != y, elementwise."""
    return NotEqual().apply((x, y))[0]


class Less(BroadcastingNode):
    """z = (x < y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less(x, y),)


def less(x: Any, y: Any) -> Variable:
    """Whether x < y, elementwise."""
    return Less().apply((x, y))[0]


class LessEqual(BroadcastingNode):
    """z = (x <= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).less_equal(x, y),)


def less_equal(x: Any, y: Any) -> Variable:
    """Whether x <= y, elementwise."""
    return LessEqual().apply((x, y))[0]


class Greater(BroadcastingNode):
    """z = (x > y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater(x, y),)


def greater(x: Any, y: Any) -> Variable:
    """Whether x > y, elementwise."""
    return Greater().apply((x, y))[0]


class GreaterEqual(BroadcastingNode):
    """z = (x >= y).   x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient."""

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).greater_equal(x, y),)


def greater_equal(x: Any, y: Any) -> Variable:
    """Whether x >= y, elementwise."""
    return GreaterEqual().apply((x, y))[0]

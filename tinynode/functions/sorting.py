"""Sorting, and where the largest and smallest elements stand."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.gathering import TakeAlongAxis
from tinynode.functions.operands import as_operand
from tinynode.functions.reduction import require_elements
from tinynode.functions.shaping import normalize_axis, reshape


class ArgSort(FunctionNode):
    """i = the indices that sort x along an axis, equal elements in their order; no gradient.

    x: (s) -> i: (s), integer.
    """

    def __init__(self, axis: int, descending: bool) -> None:
        self.axis = axis
        self.descending = descending

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        if not self.descending:
            return (xp.argsort(x, axis=self.axis, stable=True),)
        # reversed twice, so that equal elements keep their order here, too
        backwards = xp.argsort(xp.flip(x, axis=self.axis), axis=self.axis, stable=True)
        return (x.shape[self.axis] - 1 - xp.flip(backwards, axis=self.axis),)


def argsort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Variable:
    """The indices that sort x along an axis. The sort is stable, whatever ``stable`` says.

    Raises:
        ValueError: the axis does not exist.
    """
    x = as_operand("argsort", "x", x)
    return ArgSort(normalize_axis("argsort", axis, x.ndim), descending).apply((x,))[0]


def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Variable:
    """x sorted along an axis: x taken along the axis at ``argsort(x)``.

    The gradient goes back through the permutation; equal elements keep their order. The sort is
    stable, whatever ``stable`` says.

    Raises:
        ValueError: the axis does not exist.
    """
    x = as_operand("sort", "x", x)
    axis = normalize_axis("sort", axis, x.ndim)
    order = ArgSort(axis, descending).apply((x,))[0]
    return TakeAlongAxis(axis).apply((x, order))[0]


class ArgMax(FunctionNode):
    """i = the index of the largest element along an axis, the first at ties; no gradient.

    x: (s) -> i: (s without the axis, or with 1 in its place), integer.
    """

    def __init__(self, axis: int, keepdims: bool) -> None:
        self.axis = axis
        self.keepdims = keepdims

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).argmax(x, axis=self.axis, keepdims=self.keepdims),)


def argmax(x: Any, *, axis: int | None = None, keepdims: bool = False) -> Variable:
    """The index of the largest element along an axis, or in x flattened; the first at ties.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    x = as_operand("argmax", "x", x)
    if axis is not None:
        axis = normalize_axis("argmax", axis, x.ndim)
        require_elements("argmax", x, (axis,))
        return ArgMax(axis, keepdims).apply((x,))[0]
    require_elements("argmax", x, tuple(range(x.ndim)))
    index = ArgMax(0, False).apply((reshape(x, -1),))[0]
    return reshape(index, (1,) * x.ndim) if keepdims else index


class ArgMin(FunctionNode):
    """i = the index of the smallest element along an axis, the first at ties; no gradient.

    x: (s) -> i: (s without the axis, or with 1 in its place), integer.
    """

    def __init__(self, axis: int, keepdims: bool) -> None:
        self.axis = axis
        self.keepdims = keepdims

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).argmin(x, axis=self.axis, keepdims=self.keepdims),)


def argmin(x: Any, *, axis: int | None = None, keepdims: bool = False) -> Variable:
    """The index of the smallest element along an axis, or in x flattened; the first at ties.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    x = as_operand("argmin", "x", x)
    if axis is not None:
        axis = normalize_axis("argmin", axis, x.ndim)
        require_elements("argmin", x, (axis,))
        return ArgMin(axis, keepdims).apply((x,))[0]
    require_elements("argmin", x, tuple(range(x.ndim)))
    index = ArgMin(0, False).apply((reshape(x, -1),))[0]
    return reshape(index, (1,) * x.ndim) if keepdims else index

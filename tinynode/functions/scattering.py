"""One-hot vectors, the largest elements, and additions at indices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Never

from tinynode.configuration import config
from tinynode.core.conversion import as_flag, asarray
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, any_true, is_integer, namespace_of
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.arithmetic import add
from tinynode.functions.attributes import Length
from tinynode.functions.checked import checked_length
from tinynode.functions.data_types import astype
from tinynode.functions.indexing import (
    AddAt,
    PositionsAlongAxis,
    TakeAlongAxis,
    index_variable,
    require_integers,
)
from tinynode.functions.operands import (
    as_integer,
    as_operand,
    first_variable,
    normalize_axis,
)
from tinynode.functions.searching import ArgSort
from tinynode.functions.shapes import moveaxis, reshape

__all__ = ["OneHot", "index_add", "one_hot", "scatter_add", "topk"]
__dir__ = __all__.copy  # for completion


class OneHot(FunctionNode):
    """y[..., c] = 1 where c is the index, else 0.

    indices: (s), integer -> y: (s, classes), integer. No gradient.
    """

    def __init__(self, classes: Length) -> None:
        self.classes = checked_length(self, "classes", classes)

    def forward(self, inputs: Arrays) -> Arrays:
        (indices,) = inputs
        xp = namespace_of(indices)
        wide = xp.astype(indices, xp.int64)
        if math.prod(wide.shape) and any_true((wide < 0) | (wide >= self.classes)):
            raise IndexError(
                f"one_hot: indices run from {int(xp.min(wide))} to {int(xp.max(wide))}; with "
                f"classes={self.classes} they must lie in 0 to {self.classes - 1}."
            )
        numbers = xp.arange(self.classes, dtype=xp.int64, device=indices.device)
        return (xp.astype(wide[..., None] == numbers, xp.int64),)


def one_hot(indices: Any, classes: int, dtype: Any = None, **unknown: Never) -> Variable:
    """Vectors with 1 at the index and 0 elsewhere: (shape of indices, classes). No gradient.

    y[..., j] = 1 where indices[...] = j, else 0.   indices: (s) -> y: (s, classes).

        >>> F.one_hot(tn.asarray([0, 2]), 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    Args:
        indices: integers from 0 to classes - 1, of any shape.
        classes: the length of the vectors.
        dtype: the dtype of the result; ``config.dtype`` by default.

    Raises:
        OperandError: the indices or ``classes`` are no integers.
        ValueError: ``classes`` is below 1.
        IndexError: an index is out of range.
    """
    if unknown:
        raise unknown_keywords("one_hot", unknown)
    if as_integer("one_hot", "classes", classes) < 1:
        raise ValueError(f"one_hot: classes must be 1 at least, got {classes}.")
    if isinstance(indices, list | tuple):
        indices = asarray(indices, requires_grad=False)
    given = as_operand("one_hot", "indices", indices)
    if not is_integer(given.raw):
        raise OperandError(f"one_hot: indices must be integers, got {describe(indices)}.")
    return astype(
        OneHot(int(classes)).apply((given,))[0], config.dtype if dtype is None else dtype
    )


class TopKResult(NamedTuple):
    """The result of ``topk``: values and indices, both of x's shape with length k at the axis."""

    values: Variable
    indices: Variable


def topk(x: Any, k: int, *, axis: int = -1, largest: bool = True) -> TopKResult:
    """The k largest (or smallest) elements along an axis, in order, and the indices.

    The gradient goes to the chosen elements; of equal elements the first are chosen.

    Args:
        x: (s).
        k: how many, from 0 to the length of the axis.
        axis: the axis.
        largest: False takes the smallest elements, the smallest first.

    Raises:
        OperandError: k is not an integer.
        ValueError: the axis does not exist, or is shorter than k.
    """
    x = as_operand("topk", "x", x)
    axis = normalize_axis("topk", axis, x.ndim)
    k = as_integer("topk", "k", k)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"topk: k must lie in 0 to {x.shape[axis]}, the length of axis {axis} of x (shape "
            f"{x.shape}), got {k}."
        )
    order = ArgSort(axis, as_flag("topk", "largest", largest)).apply((x,))[0]
    indices = order[(*(slice(None) for _ in range(axis)), slice(0, k))]
    return TopKResult(TakeAlongAxis(axis).apply((x, indices))[0], indices)


def index_add(x: Any, indices: Any, values: Any, *, axis: int = 0) -> Variable:
    """x, plus each part of values at an index along an axis; an index may come several times.

    dL/dx = dL/dy   dL/dvalues = take(dL/dy, indices, axis)

    Args:
        x: (s).
        indices: integers, (k).
        values: (s with length k at axis).
        axis: the axis.

    Raises:
        OperandError: the indices are not integers.
        IndexError: an index is out of range.
        ValueError: the axis does not exist, or the shapes do not fit together.
    """
    beside = first_variable(x, indices, values)
    x = as_operand("index_add", "x", x, beside)
    values = as_operand("index_add", "values", values, beside)
    axis = normalize_axis("index_add", axis, x.ndim)
    places = require_integers("index_add", indices, x, axis)
    expected = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    if places.ndim != 1 or values.shape != expected:
        raise ValueError(
            f"index_add: indices must be (k) and values of x's shape {x.shape} with length k at "
            f"axis {axis}; got shapes {places.shape} and {values.shape}."
        )
    added = AddAt(x.shape[axis]).apply((moveaxis(values, axis, 0), places))[0]
    return add(x, moveaxis(added, 0, axis))


def scatter_add(x: Any, indices: Any, values: Any, *, axis: int = -1) -> Variable:
    """x, plus each element of values at an index along an axis: ``take_along_axis`` transposed.

    Along the other axes each element keeps the place. An index may come several times.
    dL/dx = dL/dy   dL/dvalues = take_along_axis(dL/dy, indices, axis)

    Args:
        x: (s).
        indices: integers, (s with any length at axis).
        values: of the shape of the indices.
        axis: the axis.

    Raises:
        OperandError: the indices are not integers.
        IndexError: an index is out of range.
        ValueError: the axis does not exist, or the shapes do not fit together.
    """
    beside = first_variable(x, indices, values)
    x = as_operand("scatter_add", "x", x, beside)
    values = as_operand("scatter_add", "values", values, beside)
    axis = normalize_axis("scatter_add", axis, x.ndim)
    indices = index_variable("scatter_add", indices, x)
    expected = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if indices.shape != expected or values.shape != expected:
        cure = " Whole rows: index_add(x, indices, values, axis=0)." if indices.ndim == 1 else ""
        raise ValueError(
            f"scatter_add: indices and values must have x's shape {x.shape} but for axis {axis}; "
            f"got shapes {indices.shape} and {values.shape}.{cure}"
        )
    places = require_integers("scatter_add", indices, x, axis)
    positions = PositionsAlongAxis(axis, x.shape).apply((places,))[0]
    added = AddAt(math.prod(x.shape)).apply((reshape(values, -1), positions))[0]
    return add(x, reshape(added, x.shape))

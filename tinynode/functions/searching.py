"""Choosing elements by a condition.

Sorting, and where the largest and smallest elements stand."""

from __future__ import annotations

from typing import Any, Never

from tinynode.configuration import config
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.attributes import Axis
from tinynode.functions.checked import checked_axis, checked_flag
from tinynode.functions.indexing import TakeAlongAxis
from tinynode.functions.masking import mark_masked
from tinynode.functions.operands import (
    as_integer,
    as_operand,
    as_operands,
    checked_range,
    first_variable,
    is_number,
    normalize_axis,
    require_elements,
)
from tinynode.functions.shapes import reshape, unbroadcast, zeros_beside
from tinynode.type_check import TypeInfoTuple, broadcasts, expect

__all__ = [
    "ArgMax",
    "ArgMin",
    "ArgSort",
    "Where",
    "argmax",
    "argmin",
    "argsort",
    "sort",
    "tril",
    "triu",
    "where",
]
__dir__ = __all__.copy  # for completion


class Where(FunctionNode):
    """z = x where the condition holds, y elsewhere.

    condition: (c), bool, x: (s), y: (t) -> z: (broadcast of c, s and t).
    With g = dL/dz:   dL/dx = sum_to(g where c else 0, s)   dL/dy = sum_to(0 where c else g, t)
    """

    input_counts = (3,)
    is_elementwise = True
    complex_rule = "conjugate"
    input_names = ("condition", "x", "y")
    type_hint = "reshape or index so that the axes line up from the right."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        condition, x, y = in_types
        expect(broadcasts(condition, x), broadcasts(condition, y), broadcasts(x, y))

    def forward(self, inputs: Arrays) -> Arrays:
        condition, x, y = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).where(condition, x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        (condition,) = self.get_retained_inputs()
        mark_masked(self)
        zero = zeros_beside(gz, ())
        gx = gy = None
        if 1 in target_input_indexes:
            gx = unbroadcast(where(condition, gz, zero), self, 1)
        if 2 in target_input_indexes:
            gy = unbroadcast(where(condition, zero, gz), self, 2)
        return None, gx, gy


def where(condition: Any, x: Any, y: Any) -> Variable:
    """x where ``condition`` holds, y elsewhere. The branch not taken has no effect.

    condition: (c), x: (s), y: (t) -> z: (broadcast of c, s and t).

        >>> x = tn.asarray([-1.0, 2.0])
        >>> F.where(x > 0, x, 0.0).tolist()
        [0.0, 2.0]

    Args:
        condition: a bool Variable or array.
        x: a Variable, an array or a number.
        y: a Variable, an array or a number. Two numbers with a float among them give
            ``config.dtype``.

    Raises:
        InvalidType: the shapes do not broadcast together.
        OperandError: the condition is not bool, or an argument has another type.
    """
    condition = as_operand("where", "condition", condition, first_variable(x, y))
    if condition.dtype != condition.xp.bool:
        raise OperandError(
            f"where: condition must be bool, got {describe(condition)}. Compare first: x > 0."
        )
    if is_number(x) and is_number(y):
        x = _number_beside(condition, x, y)
    elif is_number(x):
        y = as_operand("where", "y", y, condition)
    x, y = as_operands("where", x, y, beside=condition)
    return Where().apply((condition, x, y))[0]


def _number_beside(condition: Variable, x: float, y: float) -> Variable:
    """x as a 0-d Variable, floating if a number is floating."""
    xp, device = condition.xp, condition.device
    dtype = getattr(xp, config.dtype) if isinstance(x + y, float) else None
    return wrap_array(xp.asarray(x, dtype=dtype, device=condition.raw.device), device, False)


def tril(x: Any, *, k: int = 0) -> Variable:
    """x with 0 above a diagonal of the last two axes; the gradient there is 0.

    Args:
        x: (..., n, m).
        k: the diagonal: 0 for the main diagonal, positive above, negative below.

    Raises:
        OperandError: k is not an integer.
        ValueError: x has fewer than two axes.
    """
    x = as_operand("tril", "x", x)
    return where(_lower("tril", x, k), x, zeros_beside(x, ()))


def triu(x: Any, *, k: int = 0) -> Variable:
    """x with 0 below a diagonal of the last two axes; the gradient there is 0.

    Args:
        x: (..., n, m).
        k: the diagonal: 0 for the main diagonal, positive above, negative below.

    Raises:
        OperandError: k is not an integer.
        ValueError: x has fewer than two axes.
    """
    x = as_operand("triu", "x", x)
    return where(_lower("triu", x, k, 1), zeros_beside(x, ()), x)


def _lower(function: str, x: Variable, k: Any, above: int = 0) -> Array:
    """True on and below the diagonal k - above: (n, m), bool."""
    diagonal = checked_range(function, "k", as_integer(function, "k", k) - above)
    if x.ndim < 2:
        raise ValueError(f"{function}: x needs two axes at least, its shape is {x.shape}.")
    xp, device = x.xp, x.raw.device
    rows = xp.arange(x.shape[-2], device=device)[:, None]
    return xp.arange(x.shape[-1], device=device)[None, :] <= rows + diagonal


class _ArgExtreme(FunctionNode):
    """Base of argmax and argmin: the index along ``axis``, kept with length 1 if ``keepdims``."""

    def __init__(self, axis: Axis, keepdims: bool) -> None:
        self.axis = checked_axis(self, axis)
        self.keepdims = checked_flag(self, "keepdims", keepdims)


class ArgMax(_ArgExtreme):
    """i = the index of the largest element along an axis, the first at ties; no gradient.

    x: (s) -> i: (s without the axis, or with length 1 there), integer.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).argmax(x, axis=self.axis, keepdims=self.keepdims),)


class ArgMin(_ArgExtreme):
    """i = the index of the smallest element along an axis, the first at ties; no gradient.

    x: (s) -> i: (s without the axis, or with length 1 there), integer.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).argmin(x, axis=self.axis, keepdims=self.keepdims),)


def argmax(
    x: Any, *, axis: int | None = None, keepdims: bool = False, **unknown: Never
) -> Variable:
    """The index of the largest element along an axis, or in x flattened; the first at ties.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    if unknown:
        raise unknown_keywords("argmax", unknown)
    return _arg_extreme("argmax", ArgMax, x, axis, keepdims)


def argmin(
    x: Any, *, axis: int | None = None, keepdims: bool = False, **unknown: Never
) -> Variable:
    """The index of the smallest element along an axis, or in x flattened; the first at ties.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    if unknown:
        raise unknown_keywords("argmin", unknown)
    return _arg_extreme("argmin", ArgMin, x, axis, keepdims)


def _arg_extreme(
    function: str, node: type[_ArgExtreme], x: Any, axis: int | None, keepdims: bool
) -> Variable:
    """The index by ``node`` along an axis, or in x flattened."""
    x = as_operand(function, "x", x)
    keepdims = as_flag(function, "keepdims", keepdims)
    if axis is not None:
        axis = normalize_axis(function, axis, x.ndim)
        require_elements(function, x, (axis,))
        return node(axis, keepdims).apply((x,))[0]
    require_elements(function, x, tuple(range(x.ndim)))
    index = node(0, False).apply((reshape(x, -1),))[0]
    return reshape(index, (1,) * x.ndim) if keepdims else index


class ArgSort(FunctionNode):
    """i = the indices that sort x along an axis, equal elements in the given order; no gradient.

    x: (s) -> i: (s), integer.
    """

    def __init__(self, axis: Axis, descending: bool) -> None:
        self.axis = checked_axis(self, axis)
        self.descending = checked_flag(self, "descending", descending)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        if not self.descending:
            return (xp.argsort(x, axis=self.axis, stable=True),)
        # reversed twice, so that equal elements keep the order here, too
        backwards = xp.argsort(xp.flip(x, axis=self.axis), axis=self.axis, stable=True)
        return (x.shape[self.axis] - 1 - xp.flip(backwards, axis=self.axis),)


def argsort(
    x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True, **unknown: Never
) -> Variable:
    """The indices that sort x along an axis. The sort is stable, for either value of ``stable``.

    Raises:
        ValueError: the axis does not exist.
    """
    if unknown:
        raise unknown_keywords("argsort", unknown)
    x = as_operand("argsort", "x", x)
    descending = as_flag("argsort", "descending", descending)
    as_flag("argsort", "stable", stable)
    return ArgSort(normalize_axis("argsort", axis, x.ndim), descending).apply((x,))[0]


def sort(
    x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True, **unknown: Never
) -> Variable:
    """x sorted along an axis: x taken along the axis at ``argsort(x)``.

    The gradient goes back through the permutation; equal elements keep the order. The sort is
    stable, for either value of ``stable``.

    Raises:
        ValueError: the axis does not exist.
    """
    if unknown:
        raise unknown_keywords("sort", unknown)
    x = as_operand("sort", "x", x)
    descending = as_flag("sort", "descending", descending)
    as_flag("sort", "stable", stable)
    axis = normalize_axis("sort", axis, x.ndim)
    order = ArgSort(axis, descending).apply((x,))[0]
    return TakeAlongAxis(axis).apply((x, order))[0]

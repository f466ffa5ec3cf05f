"""Reductions (sum, mean, max, prod, var, logsumexp), differences, running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Never

import numpy

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    counts_of,
    is_differentiable,
    is_float16,
    is_known_true,
    mean_array,
    namespace_of,
    running_sum_array,
    sum_array,
)
from tinynode.devices import is_floating as is_floating_array
from tinynode.errors import InvalidType, OperandError, describe, dtype_name, unknown_keywords
from tinynode.functions import guards
from tinynode.functions.arithmetic import abs, divide, zero_safe_multiply
from tinynode.functions.attributes import Axes
from tinynode.functions.checked import checked_flag, checked_float, checked_rising_axes
from tinynode.functions.comparison import equal
from tinynode.functions.data_types import astype, narrowed, widened
from tinynode.functions.indexing import get_item
from tinynode.functions.manipulation import concat, flip
from tinynode.functions.masking import keep_zeros
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_number,
    as_operand,
    as_operands,
    first_variable,
    input_shape,
    normalize_axes,
    normalize_axis,
    require_elements,
)
from tinynode.functions.scaling import are_usual, scale_of
from tinynode.functions.searching import where
from tinynode.functions.shapes import (
    AxisNode,
    broadcast_to,
    broadcasts_to,
    permute_dims,
    repeated,
    reshape,
    reshaped,
    zeros_beside,
)
from tinynode.type_check import TypeInfoTuple, expect, is_floating

__all__ = [
    "CumulativeProd",
    "CumulativeSum",
    "LinearScan",
    "LogSumExp",
    "Max",
    "Mean",
    "Min",
    "Prod",
    "Std",
    "Sum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
__dir__ = __all__.copy  # for completion

Axis = int | Sequence[int] | None


class ReducingNode(FunctionNode):
    """Base of functions that reduce ``axes``: kept with length 1 if ``keepdims``, else dropped."""

    is_reduction = True

    def __init__(self, axes: Axes, keepdims: bool) -> None:
        self.axes = checked_rising_axes(self, axes)
        self.keepdims = checked_flag(self, "keepdims", keepdims)

    def row_axes(self) -> tuple[int, ...]:
        return self.axes

    def _kept(self, y: Variable) -> Variable:
        """A Variable of the output's shape, with the reduced axes kept with length 1."""
        shape = tuple([1 if i in self.axes else n for i, n in enumerate(input_shape(self))])
        return reshaped(y, shape)

    def _spread(self, y: Variable) -> Variable:
        """A Variable of the output's shape, repeated along the reduced axes to the input's."""
        if self.axes != tuple(range(len(self.axes))):
            y = self._kept(y)  # leading axes come back by the broadcast alone
        return repeated(y, input_shape(self))


class Sum(ReducingNode):
    """y = the sum of x over axes.

    x: (s) -> y: (s without the axes, or with length 1 there).   dL/dx = dL/dy, repeated
    """

    guard = guards.SUM
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (sum_array(x, self.axes, self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (self._spread(gy),)


def sum(x: Any, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Variable:
    """The sum over an axis, several, or all.

    y = the sum of x over the axes.   x: (s) -> y: (s without the axes).   dL/dx = dL/dy, repeated

        >>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> F.sum(x).item(), F.sum(x, axis=1).tolist()
        (10.0, [3.0, 7.0])

    Raises:
        ValueError: an axis does not exist.
    """
    if unknown:
        raise unknown_keywords("sum", unknown)
    x = as_operand("sum", "x", x)
    keepdims = as_flag("sum", "keepdims", keepdims)
    return Sum(normalize_axes("sum", axis, x.ndim), keepdims).apply((x,))[0]


class Mean(ReducingNode):
    """y = the arithmetic mean of x over axes; n elements of x make an element of y.

    x: (s), floating -> y: (s without the axes, or with length 1 there).
    dL/dx = dL/dy / n, repeated
    """

    guard = guards.SUM
    is_polynomial = True
    input_names = ("x",)
    type_hint = "cast x to a floating dtype first."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]))

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (mean_array(x, self.axes, self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        n = math.prod(input_shape(self)[axis] for axis in self.axes)
        return (self._spread(narrowed(widened(gy) * (1.0 / n), gy) if n else gy),)


def mean(
    x: Any, axis: Axis = None, *, weights: Any = None, keepdims: bool = False, **unknown: Never
) -> Variable:
    """The mean over an axis, several, or all; with weights, sum(w * x) / sum(w).

    y = (the sum of x over the axes) / n.   x: (s) -> y: (s without the axes).

        >>> x = tn.asarray([[1.0, 2.0], [3.0, 5.0]])
        >>> F.mean(x).item(), F.mean(x, axis=0).tolist()
        (2.75, [2.0, 3.5])

    Args:
        x: floating.
        axis: an axis, several axes, or None for all.
        weights: of a shape that broadcasts to the shape of x; or a vector along the axis.
        keepdims: keep the reduced axes with length 1.

    Raises:
        ValueError: an axis does not exist, or the weights do not broadcast to x.
        InvalidType: x is not floating.
    """
    if unknown:
        raise unknown_keywords("mean", unknown)
    x = as_operand("mean", "x", x, weights)
    if not is_differentiable(x.filled_array()):
        name = dtype_name(x.dtype)
        raise InvalidType(
            "x.dtype is a floating dtype",
            name,
            f'mean: x must be floating, got {describe(x)}. Write x.astype("float32").mean().',
        )
    axes = normalize_axes("mean", axis, x.ndim)
    keepdims = as_flag("mean", "keepdims", keepdims)
    if weights is None and not is_floating_array(x.raw):  # complex
        return sum(x, axes, keepdims) / float(math.prod(x.shape[i] for i in axes))
    if weights is None:
        return Mean(axes, keepdims).apply((x,))[0]
    x, weights = as_operands("mean", x, weights, names=("x", "weights"))
    if len(axes) == 1 and weights.shape == (x.shape[axes[0]],):
        weights = reshape(weights, (weights.size, *(1 for _ in x.shape[axes[0] + 1 :])))
    if not broadcasts_to(weights.shape, x.shape):
        raise ValueError(
            f"mean: weights have shape {weights.shape}, which does not broadcast to that of x, "
            f"{x.shape}. Reshape or index the weights."
        )
    wide, spread = widened(x), broadcast_to(widened(weights), x.shape)
    y = divide(sum(wide * spread, axes, keepdims), sum(spread, axes, keepdims))
    return narrowed(y, x) if is_float16(weights.raw) else y


class _Extremum(ReducingNode):
    """Base of max and min. Ties share the gradient evenly.

    dL/dx = dL/dy / k where x is among k elements equal to y, else 0; NaN where y is NaN
    """

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        gy = self._kept(grad_outputs[0])
        winners, wide = equal(x, self._kept(y)), widened(gy)
        number = sum(astype(winners, wide.dtype), self.axes, keepdims=True)
        number = where(equal(number, 0), math.nan, number)  # no element equals NaN
        share, rest = narrowed(wide / number, gy), narrowed(number * 0.0, gy)
        return (where(winners, share, rest),)


class Max(_Extremum):
    """y = the largest element of x over axes.

    x: (s) -> y: (s without the axes, or with length 1 there).
    dL/dx = dL/dy / k where x is among k elements equal to y, else 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).max(x, axis=self.axes, keepdims=self.keepdims),)


def max(x: Any, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Variable:
    """The largest element over an axis, several, or all; ties share the gradient evenly.

    y = max of x over the axes.   x: (s) -> y: (s without the axes).

        >>> x = tn.asarray([[1.0, 2.0], [4.0, 3.0]])
        >>> F.max(x).item(), F.max(x, axis=1).tolist()
        (4.0, [2.0, 4.0])

    Raises:
        ValueError: an axis does not exist, or has no elements.
    """
    return _extremum("max", Max, x, axis, keepdims, unknown)


class Min(_Extremum):
    """y = the smallest element of x over axes.

    x: (s) -> y: (s without the axes, or with length 1 there).
    dL/dx = dL/dy / k where x is among k elements equal to y, else 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).min(x, axis=self.axes, keepdims=self.keepdims),)


def min(x: Any, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Variable:
    """The smallest element over an axis, several, or all; ties share the gradient evenly.

    Raises:
        ValueError: an axis does not exist, or has no elements.
    """
    return _extremum("min", Min, x, axis, keepdims, unknown)


def _extremum(
    function: str,
    node: type[_Extremum],
    x: Any,
    axis: Axis,
    keepdims: bool,
    unknown: dict[str, Never],
) -> Variable:
    """The largest or smallest elements over axes, by ``node``."""
    if unknown:
        raise unknown_keywords(function, unknown)
    if getattr(axis, "shape", ()) != ():
        raise OperandError(
            f"{function}: axis must be an integer or a tuple of integers, got {describe(axis)}. "
            f"For two arrays, element by element, use {function}imum(x, y)."
        )
    x = as_operand(function, "x", x)
    axes = normalize_axes(function, axis, x.ndim)
    require_elements(function, x, axes)
    return node(axes, as_flag(function, "keepdims", keepdims)).apply((x,))[0]


class Prod(ReducingNode):
    """y = the product of x over axes.

    x: (s) -> y: (s without the axes, or with length 1 there).
    dL/dx_i = dL/dy * (the product of the other elements): right where elements are 0, too
    """

    guard = guards.PRODUCT

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).prod(counts_of(x), axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (self._spread(gy) * _in_rows(_product_of_others, x, self.axes),)


def _product_of_others(x: Variable) -> Variable:
    """For each element the product of the others in its row: those before times those after."""
    return _before(x) * flip(_before(flip(x, axis=-1)), axis=-1)


def _in_rows(
    function: Callable[[Variable], Variable], x: Variable, axes: tuple[int, ...]
) -> Variable:
    """A function of rows, on the elements along several axes as rows."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    order = rest + axes
    moved = permute_dims(x, order)
    length = math.prod(x.shape[axis] for axis in axes)
    y = function(reshape(moved, (*(x.shape[i] for i in rest), length)))
    inverse = sorted(range(x.ndim), key=order.__getitem__)
    return permute_dims(reshape(y, moved.shape), inverse)


def _before(x: Variable) -> Variable:
    """The product of the elements before each element along the last axis; 1 for the first."""
    if x.shape[-1] == 0:
        return x
    axis = x.ndim - 1
    return cumulative_prod(concat([_first(x, axis, 1), x[..., :-1]], axis=axis), axis=axis)


def prod(x: Any, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Variable:
    """The product over an axis, several, or all.

    Raises:
        ValueError: an axis does not exist.
    """
    if unknown:
        raise unknown_keywords("prod", unknown)
    x = as_operand("prod", "x", x)
    keepdims = as_flag("prod", "keepdims", keepdims)
    return Prod(normalize_axes("prod", axis, x.ndim), keepdims).apply((x,))[0]


def var(
    x: Any, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, **unknown: Never
) -> Variable:
    """The variance over an axis, several, or all: sum((x - mean)^2) / (n - correction).

    dL/dx = dL/dy * 2 (x - mean) / (n - correction).

    Args:
        x: floating.
        axis: an axis, several axes, or None for all.
        correction: 0 for the population's variance, 1 for the sample's.
        keepdims: keep the reduced axes with length 1.

    Raises:
        OperandError: x is not floating.
        ValueError: an axis does not exist, or n is 0 or not above ``correction``.
    """
    if unknown:
        raise unknown_keywords("var", unknown)
    x = as_floating("var", "x", x)
    axes = normalize_axes("var", axis, x.ndim)
    keepdims = as_flag("var", "keepdims", keepdims)
    divisor = _divisor("var", x, axes, correction)
    wide = widened(x)  # the squares of float16 would overflow
    deviation = wide - mean(wide, axes, keepdims=True)
    return narrowed(sum(deviation * deviation, axes, keepdims) / divisor, x)


def _divisor(function: str, x: Variable, axes: tuple[int, ...], correction: float) -> float:
    """n - correction, for n elements of x that make one of y.

    Raises:
        ValueError: the divisor would not be positive.
    """
    as_number(function, "correction", correction)
    n = math.prod(x.shape[i] for i in axes)
    if n == 0 or n <= correction:
        raise ValueError(
            f"{function}: {n} elements of x (shape {x.shape}) make one of y, but correction is "
            f"{correction}: give more elements or a smaller correction."
        )
    return float(n - correction)


class Std(ReducingNode):
    """y = sqrt(sum((x - mean x)^2) / k) over axes: the standard deviation, with a divisor k.

    x: (s), float32 or float64 -> y: (s without the axes, or with length 1 there).
    dL/dx = dL/dy * (x - mean x) / (k y): NaN where all elements are equal, since there is no slope
    Of one element, y is always 0, and so is dL/dx.
    """

    guard = guards.STD
    wide = True

    def __init__(self, axes: Axes, keepdims: bool, divisor: float) -> None:
        super().__init__(axes, keepdims)
        self.divisor = checked_float(self, "divisor", divisor)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        if not self.axes:
            return (x - x,)
        with numpy.errstate(over="ignore", invalid="ignore"):
            squares = self._squares(x)
        y = xp.sqrt(squares / self.divisor)
        if 0 not in x.shape and not are_usual(squares):
            scale = scale_of(x, self.axes)
            y = xp.sqrt(self._squares(x * scale) / self.divisor) / scale
        return (y if self.keepdims else xp.squeeze(y, axis=self.axes),)

    def _squares(self, x: Array) -> Array:
        """The sums of the squared deviations; the axes stay with length 1."""
        deviation = x - mean_array(x, self.axes, keepdims=True)
        return sum_array(deviation * deviation, self.axes, keepdims=True)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (x,) = self.get_retained_inputs()
        y = self._kept(self.get_retained_outputs()[0])
        share = self._kept(grad_outputs[0]) * (1.0 / self.divisor)
        deviation = x - mean(x, self.axes, keepdims=True)
        is_constant = math.prod([x.shape[axis] for axis in self.axes]) == 1
        return (zero_safe_multiply(share, deviation if is_constant else deviation / y),)


def std(
    x: Any, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, **unknown: Never
) -> Variable:
    """The standard deviation over an axis, several, or all: the square root of ``var``.

    dL/dx = dL/dy * (x - mean) / (y (n - correction)): not finite where all elements are equal.
    The standard deviation of one element is always 0, and so is the gradient.

    Raises:
        OperandError: x is not floating.
        ValueError: an axis does not exist, or n is 0 or not above ``correction``.
    """
    if unknown:
        raise unknown_keywords("std", unknown)
    x = as_floating("std", "x", x)
    axes = normalize_axes("std", axis, x.ndim)
    keepdims = as_flag("std", "keepdims", keepdims)
    divisor = _divisor("std", x, axes, correction)
    return narrowed(Std(axes, keepdims, divisor).apply((widened(x),))[0], x)


class Softmax(AxisNode):
    """y = e^x / (sum of e^x over an axis); 0 everywhere where every x is -inf.

    One +inf of a row has the limit 1, and the others have 0. With several +inf the row is NaN.
    x: (s) -> y: (s).   With g = dL/dy:   dL/dx = y * (g - (sum of g * y over the axis))
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_outputs((0,))
        if x.shape[self.axis] == 0:
            return inputs
        largest = xp.max(x, axis=self.axis, keepdims=True)
        is_finite = is_known_true(xp.isfinite(largest))
        if not is_finite:
            x, largest = with_limits(x, largest, self.axis)
        y = xp.exp(x - largest)
        total = sum_array(y, self.axis, keepdims=True)
        if not is_finite:  # the largest adds e^0, so a total below 1 is 0: every x is -inf
            total = xp.maximum(total, xp.ones((), dtype=x.dtype, device=x.device))
        y /= total
        return (y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return SoftmaxGrad(self.axis).apply((y, gy))


def with_limits(x: Array, largest: Array, axis: int) -> tuple[Array, Array]:
    """Rows with the softmax that rows with infinities have as a limit, and a finite largest x.

    A row [2, inf] becomes [-inf, 0]. Several +inf have no limit, and become NaN.
    """
    xp = namespace_of(x)
    zero = xp.zeros((), dtype=x.dtype, device=x.device)
    is_infinite = x == math.inf
    count = xp.sum(xp.astype(is_infinite, x.dtype), axis=axis, keepdims=True)
    at_infinity = xp.where(count > 1, zero + math.nan, zero)
    others = xp.minimum(x, zero - math.inf)  # NaN stays NaN
    is_limit = largest == math.inf
    x = xp.where(is_limit, xp.where(is_infinite, at_infinity, others), x)
    lowest = xp.asarray(xp.finfo(x.dtype).min, dtype=x.dtype, device=x.device)
    return x, xp.maximum(xp.where(is_limit, at_infinity, largest), lowest)


class SoftmaxGrad(AxisNode):
    """gx = y * (g - t), t = the sum of g * y over an axis: the gradient of ``Softmax``.

    y: (s), with the sum 1 over the axis, g: (s) -> gx: (s).
    With h = dL/dgx, u = the sum of h * y:   dL/dy = (h - u) * (g - t)   dL/dg = y * (h - u)
    """

    input_counts = (2,)
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        y, g = inputs
        self.retain_inputs((0, 1))
        gx = g - sum_array(y * g, self.axis, keepdims=True)
        # where a y is almost 1, the first sum is almost g, and its rounding is all that is left
        gx -= sum_array(y * gx, self.axis, keepdims=True)
        gx *= y
        return (gx,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        y, g = self.get_retained_inputs()
        gy = gg = None
        if 0 in target_input_indexes:
            t = Sum((self.axis,), keepdims=True).apply((y * g,))[0]
            u = Sum((self.axis,), keepdims=True).apply((y * h,))[0]
            gy = (h - u) * (g - t)
        if 1 in target_input_indexes:
            gg = SoftmaxGrad(self.axis).apply((y, h))[0]
        return gy, gg


class LogSumExp(ReducingNode):
    """y = ln(sum of e^x) over axes; -inf where every x is -inf, with gradient 0.

    x: (s) -> y: (s without the axes, or with length 1 there).
    dL/dx = dL/dy * softmax(x): e^(x - y) would be wrong where y is large, and rounded
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        self.retain_outputs((0,))  # for messages about NaN
        largest = xp.max(x, axis=self.axes, keepdims=True)
        shift = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
        total = sum_array(xp.exp(x - shift), self.axes, keepdims=True)
        # where all are -inf the total is 0, and the logarithm is the largest, -inf
        empty = total == 0
        log_total = xp.log(xp.where(empty, xp.ones_like(total), total)) + shift
        y = xp.where(empty, largest, log_total)
        return (y if self.keepdims else xp.squeeze(y, axis=self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        if len(self.axes) == 1:
            return (self._spread(gy) * Softmax(self.axes[0]).apply((x,))[0],)
        return (self._spread(gy) * _in_rows(_softmax_of_rows, x, self.axes),)


def _softmax_of_rows(x: Variable) -> Variable:
    return Softmax(x.ndim - 1).apply((x,))[0]


def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Variable:
    """ln(sum of e^x) over an axis, several, or all: the largest x is subtracted first.

    No exponential overflows; dL/dx = dL/dy * softmax(x). With one x of +inf, y is inf and the
    gradient is the limit, 1 there and 0 elsewhere. With several, the gradient is NaN. Where every
    x is -inf, y is -inf and the gradient is 0.

    Raises:
        OperandError: x is not floating.
        ValueError: an axis does not exist, or has no elements.
    """
    if unknown:
        raise unknown_keywords("logsumexp", unknown)
    x = as_floating("logsumexp", "x", x)
    axes = normalize_axes("logsumexp", axis, x.ndim)
    require_elements("logsumexp", x, axes)
    return LogSumExp(axes, as_flag("logsumexp", "keepdims", keepdims)).apply((x,))[0]


def diff(
    x: Any, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Variable:
    """The differences x_(i+1) - x_i along an axis, n times.

    Args:
        x: a Variable or an array.
        axis: the axis, shorter by 1 each time.
        n: how often.
        prepend: an array before x along the axis, with x's dtype and shape but for the axis.
        append: an array after x.

    Raises:
        OperandError: n is not an integer.
        ValueError: n is negative, or the axis does not exist.
        InvalidType: ``prepend`` or ``append`` does not fit.
    """
    x = as_operand("diff", "x", x, first_variable(prepend, append))
    axis = normalize_axis("diff", axis, x.ndim)
    times = as_integer("diff", "n", n)
    if times < 0:
        raise ValueError(f"diff: n must not be negative, got {n}.")
    parts = [part for part in (prepend, x, append) if part is not None]
    y = concat(parts, axis=axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(times):
        if y.shape[axis] == 0:
            break  # an empty axis stays empty
        y = y[(*before, slice(1, None))] - y[(*before, slice(None, -1))]
    return y


class CumulativeSum(AxisNode):
    """y_i = x_0 + ... + x_i along an axis.

    x: (s) -> y: (s).   dL/dx_i = dL/dy_i + dL/dy_(i+1) + ...
    """

    complex_rule = "conjugate"
    is_polynomial = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (running_sum_array(x, self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        backwards = cumulative_sum(flip(gy, axis=self.axis), axis=self.axis)
        return (flip(backwards, axis=self.axis),)


def cumulative_sum(
    x: Any, *, axis: int | None = None, include_initial: bool = False, **unknown: Never
) -> Variable:
    """The running sum along an axis; optional for a one-dimensional x.

    y[i] = x[0] + ... + x[i].   x: (..., n, ...) -> y: (..., n, ...).

        >>> F.cumulative_sum(tn.asarray([1.0, 2.0, 3.0])).tolist()
        [1.0, 3.0, 6.0]

    Args:
        x: a Variable or an array.
        axis: the axis.
        include_initial: begin with a 0, so the result is longer by 1.

    Raises:
        ValueError: the axis does not exist, or is left out although x is not one-dimensional.
    """
    if unknown:
        raise unknown_keywords("cumulative_sum", unknown)
    x = as_operand("cumulative_sum", "x", x)
    axis = _running_axis("cumulative_sum", x, axis)
    include_initial = as_flag("cumulative_sum", "include_initial", include_initial)
    y = CumulativeSum(axis).apply((x,))[0]
    return concat([_first(y, axis, 0), y], axis=axis) if include_initial else y


def _running_axis(function: str, x: Variable, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{function}: x has shape {x.shape}, so the axis must be given.")
    return normalize_axis(function, 0 if axis is None else axis, x.ndim)


def _first(x: Variable, axis: int, value: int) -> Variable:
    """An array of length 1 along the axis, outside the graph."""
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    zeros = zeros_beside(x, shape)
    return zeros + value if value else zeros


class CumulativeProd(AxisNode):
    """y_i = x_0 * ... * x_i along an axis.

    x: (s) -> y: (s).   With y_(-1) = 1 and t the linear scan t_i = dL/dy_i + x_(i+1) t_(i+1):
    dL/dx_i = t_i * y_(i-1): right where elements are 0, too
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).cumulative_prod(counts_of(x), axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        if x.shape[self.axis] == 0:
            return (gy,)
        before = concat([_first(y, self.axis, 1), _all_but_last(y, self.axis)], axis=self.axis)
        if self.is_masked:  # x_i counts for y_i and those behind
            size = flip(
                cumulative_sum(flip(abs(gy), axis=self.axis), axis=self.axis), axis=self.axis
            )
            x, before = keep_zeros(x, size, x), keep_zeros(before, size, before)
        return (_scan_from_behind(x, gy, self.axis) * before,)


def cumulative_prod(
    x: Any, *, axis: int | None = None, include_initial: bool = False, **unknown: Never
) -> Variable:
    """The running product along an axis; optional for a one-dimensional x.

    Args:
        x: a Variable or an array.
        axis: the axis.
        include_initial: begin with a 1, so the result is longer by 1.

    Raises:
        ValueError: the axis does not exist, or is left out although x is not one-dimensional.
    """
    if unknown:
        raise unknown_keywords("cumulative_prod", unknown)
    x = as_operand("cumulative_prod", "x", x)
    axis = _running_axis("cumulative_prod", x, axis)
    include_initial = as_flag("cumulative_prod", "include_initial", include_initial)
    y = CumulativeProd(axis).apply((x,))[0]
    return concat([_first(y, axis, 1), y], axis=axis) if include_initial else y


class LinearScan(AxisNode):
    """s_0 = b_0, s_i = b_i + a_i s_(i-1) along an axis: the gradient of a running product.

    a: (s), b: (s) -> s: (s).   With g = dL/ds and t_i = g_i + a_(i+1) t_(i+1), a scan from behind:
    dL/db = t   dL/da_i = t_i * s_(i-1), and 0 for the first
    """

    input_counts = (2,)
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        a, b = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        xp = namespace_of(a)
        a, b = xp.moveaxis(a, self.axis, 0), xp.moveaxis(b, self.axis, 0)
        rows = (b.shape[0], math.prod(b.shape[1:]))
        flat_a, flat_b = xp.reshape(a, rows), xp.reshape(b, rows)  # factors lie side by side
        states = [flat_b[0, ...]]
        for i in range(1, rows[0]):
            states.append(flat_b[i, ...] + flat_a[i, ...] * states[-1])
        return (xp.moveaxis(xp.reshape(xp.stack(states), b.shape), 0, self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gs,) = grad_outputs
        (a,) = self.get_retained_inputs()
        (s,) = self.get_retained_outputs()
        t = _scan_from_behind(a, gs, self.axis)
        later = _all_but_first(t, self.axis) * _all_but_last(s, self.axis)
        return concat([_first(a, self.axis, 0), later], axis=self.axis), t


def _scan_from_behind(a: Variable, g: Variable, axis: int) -> Variable:
    """t_i = g_i + a_(i+1) t_(i+1) along an axis."""
    factors = concat([_all_but_first(a, axis), _first(a, axis, 0)], axis=axis)
    scan = LinearScan(axis).apply((flip(factors, axis=axis), flip(g, axis=axis)))
    return flip(scan[0], axis=axis)


def _all_but_first(y: Variable, axis: int) -> Variable:
    return get_item(y, (slice(None),) * axis + (slice(1, None),))


def _all_but_last(y: Variable, axis: int) -> Variable:
    return get_item(y, (slice(None),) * axis + (slice(None, -1),))

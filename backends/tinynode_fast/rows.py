"""Kernels on the rows of a matrix: softmax, cross-entropy, standardization, products, and sums.

The sums of rows are products of matrices, with ones or with another row. BLAS computes them
several times quicker than ``numpy.sum``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy

from tinynode.devices import Arrays, Fallback
from tinynode_fast.blocks import number, run
from tinynode_fast.kernel import Kernel
from tinynode_fast.limits import LIMITS


def as_rows(x: Any, axes: tuple[int, ...]) -> Any:
    """x as a matrix whose rows run along the axes, or a ``Fallback``."""
    first = x.ndim - len(axes)
    if axes != tuple(range(first, x.ndim)) or not x.flags.c_contiguous:
        return Fallback("the axes are not the last ones in memory")
    return x.reshape(math.prod(x.shape[:first]), -1)


def row_sums(x: Any) -> Any:
    """The sum of each row: (rows, n) -> (rows, 1)."""
    if x.shape[1] > LIMITS.row_sum:
        return x.sum(axis=1, keepdims=True)
    return x @ numpy.ones(x.shape[1], x.dtype)[:, None]


def row_products(x: Any, y: Any) -> Any:
    """The sum of x * y over each row: (rows, n) -> (rows, 1)."""
    if x.shape[1] > LIMITS.row_sum:
        return (x * y).sum(axis=1, keepdims=True)
    return numpy.vecdot(x, y)[:, None]


# --- softmax -------------------------------------------------------------------------------------


def exponentials(x: Any, shifted: Any, e: Any) -> Any:
    """Write x - shift and e^(x - shift); return the sums of the rows of e, (rows, 1).

    If no row lies far below, the shift is the maximum of the whole block. A single maximum is
    several times quicker than the maxima of short rows. A sample of the rows foretells the case,
    and the sums prove it. Else the shift is the maximum of each row.
    """
    if x.shape[1] < LIMITS.short_row:  # pragma: no mutate: both ways give the same sums
        largest = x.max()
        # pragma: no mutate: the sums below prove whether one maximum serves
        if x[: LIMITS.sampled_rows].max(axis=1).min() > largest - LIMITS.near:
            total = row_sums(numpy.exp(numpy.subtract(x, largest, shifted), e))
            if total.min() > math.exp(-LIMITS.near):
                return total
    largest = x.max(axis=1, keepdims=True)
    largest[largest == -numpy.inf] = 0
    return row_sums(numpy.exp(numpy.subtract(x, largest, shifted), e))


def softmax(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """e^x / (sum of e^x), and 0 where every x is -inf."""
    (x,), (y,) = inputs, outputs
    total = exponentials(x, y, y)
    total[total == 0] = 1
    numpy.divide(y, total, y)


def log_softmax(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """x - ln(sum of e^x), and 0 where rounding gives a number above 0."""
    (x,), (y,), (e,) = inputs, outputs, scratch
    total = exponentials(x, y, e)
    numpy.subtract(y, numpy.log(total), y)
    y.clip(number(-math.inf, y.dtype), number(0.0, y.dtype), y)  # quicker than minimum


@dataclass(frozen=True)
class Rowwise(Kernel):
    """A block function on the rows along ``node.axis``, with one output."""

    least: int = LIMITS.small

    def compute(self, node: Any, arrays: Arrays) -> Any:
        (x,) = arrays
        length = x.shape[node.axis]
        few = length >= LIMITS.short_row or x.size < LIMITS.many_rows * length
        if few and x.size < LIMITS.threaded:  # neither one maximum nor threads gain time
            return None
        rows = as_rows(x, (node.axis,))
        if isinstance(rows, Fallback):
            return rows
        y = numpy.empty(rows.shape, x.dtype)
        run(self.function, (rows,), (y,), self.scratch)
        return (y.reshape(x.shape),)


# --- cross-entropy -------------------------------------------------------------------------------


def cross_entropy_rows(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """log_p = log_softmax(x), and loss = -log_p[label], for each row."""
    (x, labels), (log_p, losses) = inputs, outputs
    log_softmax((x,), (log_p,), scratch)
    numpy.negative(log_p[numpy.arange(len(x)), labels], losses)


def cross_entropy(node: Any, x: Any, labels: Any, *weights: Any) -> Any:
    if (reason := _unusual_labels(node, x, labels, weights)) is not None:
        return reason
    log_p, losses = numpy.empty(x.shape, x.dtype), numpy.empty(len(x), x.dtype)
    run(cross_entropy_rows, (x, labels), (log_p, losses), scratch=1)
    if node.reduction == "none":
        return losses, log_p
    total = losses.sum(keepdims=True)
    if node.reduction == "mean":
        total /= len(x)
    return total.reshape(()), log_p


def _unusual_labels(node: Any, x: Any, labels: Any, weights: Arrays) -> Fallback | None:
    """None if every label counts alike; else the reason for a fallback."""
    if weights or node.smoothing:
        return Fallback("class weights or smoothing")
    if not x.flags.c_contiguous:
        return Fallback("the matrix is not in one piece of memory")
    low, high = labels.min(), labels.max()
    if low < 0 or high >= x.shape[1] or low <= node.ignore_label <= high:
        return Fallback("some labels may be ignored or wrong")
    return None


def cross_entropy_gradient(node: Any, log_p: Any, g: Any, labels: Any, *weights: Any) -> Any:
    if (reason := _unusual_labels(node, log_p, labels, weights)) is not None:
        return reason
    scale = g / number(len(labels), g.dtype) if node.reduction == "mean" else g
    gx = numpy.exp(log_p)
    gx *= scale[:, None] if scale.ndim else scale
    gx[numpy.arange(len(gx)), labels] -= scale
    return (gx,)


# --- standardization -----------------------------------------------------------------------------


def standardize_rows(
    center: bool, eps: Any, inputs: Arrays, outputs: Arrays, scratch: Arrays
) -> None:
    """y = (x - m) r, m and r = 1 / sqrt(mean of (x - m)^2 + eps); m = 0 without ``center``."""
    (x,), (y, m, r) = inputs, outputs
    part = number(1.0 / x.shape[1], x.dtype)
    m[...] = 0
    centred = x
    if center:
        long = x.shape[1] > LIMITS.row_mean
        numpy.multiply(x.sum(axis=1, keepdims=True) if long else row_sums(x), part, m)
        centred = numpy.subtract(x, m, y)
    numpy.multiply(row_products(centred, centred), part, r)
    numpy.add(r, eps, r)
    numpy.sqrt(r, r)
    numpy.divide(number(1.0, r.dtype), r, r)
    numpy.multiply(centred, r, y)


def standardize(node: Any, x: Any) -> Any:
    rows = as_rows(x, node.axes)
    if isinstance(rows, Fallback):
        return rows
    y = numpy.empty(rows.shape, x.dtype)
    m, r = (numpy.empty((len(rows), 1), x.dtype) for _ in range(2))
    function = partial(standardize_rows, node.center, number(node.eps, x.dtype))
    run(function, (rows,), (y, m, r))
    kept = (*x.shape[: x.ndim - len(node.axes)], *(1 for _ in node.axes))
    return y.reshape(x.shape), m.reshape(kept), r.reshape(kept)


def standardize_gradient_rows(
    center: bool, inputs: Arrays, outputs: Arrays, scratch: Arrays
) -> None:
    """r (g - mean g - y mean(g y)), without ``mean g`` if not ``center``."""
    (g, y, r), (gx,) = inputs, outputs
    part = number(1.0 / g.shape[1], g.dtype)
    share = row_products(g, y)
    share *= part
    numpy.multiply(y, share, gx)
    numpy.subtract(g, gx, gx)
    numpy.multiply(gx, r, gx)
    if center:
        shift = row_sums(g)
        shift *= part
        shift *= r
        numpy.subtract(gx, shift, gx)


def standardize_gradient(node: Any, g: Any, y: Any, r: Any) -> Any:
    if g.shape != y.shape or len({g.dtype, y.dtype, r.dtype}) > 1:
        return Fallback("the inputs differ in shape or dtype")
    rows, others = as_rows(g, node.axes), as_rows(y, node.axes)
    if isinstance(rows, Fallback) or isinstance(others, Fallback):
        return Fallback("the axes are not the last ones in memory")
    gx = numpy.empty(rows.shape, g.dtype)
    function = partial(standardize_gradient_rows, node.center)
    run(function, (rows, others, r.reshape(-1, 1)), (gx,))
    return (gx.reshape(g.shape),)


# --- products ------------------------------------------------------------------------------------


def product(x: Any, y: Any, out: Any = None) -> Any:
    """x y for x (..., n, k) and y (k, m), the leading axes of x flattened: one call of BLAS."""
    rows = math.prod(x.shape[:-1])
    flat = None if out is None else out.reshape(rows, y.shape[1])
    z = numpy.matmul(x.reshape(rows, x.shape[-1]), y, flat)
    return z.reshape(*x.shape[:-1], y.shape[1])


def matmul(node: Any, x: Any, y: Any) -> Any:
    if x.ndim == 2:
        return None
    if y.ndim != 2 or not x.flags.c_contiguous:
        return Fallback("not a stack of matrices times one matrix")
    return (product(x, y),)


def linear(node: Any, x: Any, w: Any, b: Any = None) -> Any:
    if not x.flags.c_contiguous or w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
        return Fallback("not in one piece of memory, or of several dtypes")
    y = product(x, w.T)
    if b is not None:
        numpy.add(y, b, y)
    return (y,)


# --- sums ----------------------------------------------------------------------------------------


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a sum over axes that keeps them with length 1."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def sum_axes(node: Any, x: Any) -> Any:
    kept = kept_shape(x.shape, node.axes)
    left = tuple([n for i, n in enumerate(x.shape) if i not in node.axes])
    return sum_by_product(x, node.axes, kept if node.keepdims else left)


def sum_to(node: Any, x: Any) -> Any:
    return sum_by_product(x, node.axes_of(x.shape), node.shape)


def sum_by_product(x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The sum over the first or last axes in memory, in a shape.

    None where NumPy is as quick, ``Fallback`` for other axes.
    """
    length = math.prod([x.shape[i] for i in axes])
    rest = x.size // length
    if rest == 1 or max(length, rest) < LIMITS.rows_summed:
        return None
    others = [i for i in range(x.ndim) if i not in axes]
    first, last = x.transpose([*axes, *others]), x.transpose([*others, *axes])
    if first.flags.c_contiguous:
        if length < LIMITS.rows_summed:
            return None
        return ((numpy.ones(length, x.dtype) @ first.reshape(length, rest)).reshape(shape),)
    if not last.flags.c_contiguous or length > LIMITS.row_sum:
        return Fallback("the axes are neither the first nor the last ones in memory")
    if rest < LIMITS.rows_summed:
        return None
    return ((last.reshape(rest, length) @ numpy.ones(length, x.dtype)).reshape(shape),)

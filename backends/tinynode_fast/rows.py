"""Kernels on the rows of a matrix: softmax and its kind, standardization, and sums.

A row's sums are products of matrices (with ones, or with another row), which BLAS computes several
times quicker than ``numpy.sum``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy

from tinynode.devices import Fallback
from tinynode.functions import activation, normalization, shapes, statistical
from tinynode.functions.cross_entropy import SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad
from tinynode_fast import blocks
from tinynode_fast.blocks import Arrays, Entry, Kernel, number, run
from tinynode_fast.elementwise import FLOATS

LONGEST = 4096
"""Longer rows are summed by NumPy, which adds up pairwise and rounds less."""
LONGEST_MEAN = 256
"""Means of longer rows are by NumPy too: rounding shows where numbers are far from 0."""
FEW = 256
"""Fewer rows are summed by NumPy, as quickly."""


def as_rows(x: Any, axes: tuple[int, ...]) -> Any:
    """x as a matrix whose rows run along the axes, or why it is none."""
    first = x.ndim - len(axes)
    if x.dtype not in FLOATS:
        return Fallback(f"{x.dtype} has no kernel")
    if axes != tuple(range(first, x.ndim)) or not x.flags.c_contiguous:
        return Fallback("the axes are not the last ones in memory")
    if not x.size:
        return Fallback("no elements")
    return x.reshape(math.prod(x.shape[:first]), -1)


def row_sums(x: Any) -> Any:
    """The sum of each row: (rows, n) -> (rows, 1)."""
    if x.shape[1] > LONGEST:
        return x.sum(axis=1, keepdims=True)
    return x @ numpy.ones(x.shape[1], x.dtype)[:, None]


def row_products(x: Any, y: Any) -> Any:
    """The sum of x * y over each row: (rows, n) -> (rows, 1)."""
    if x.shape[1] > LONGEST:
        return (x * y).sum(axis=1, keepdims=True)
    return numpy.vecdot(x, y)[:, None]


# --- softmax -------------------------------------------------------------------------------------


NEAR = 9.0
WIDE = 256
SAMPLE = 64
MANY = 192
"""With fewer rows, that gains nothing."""


def exponentials(x: Any, shifted: Any, e: Any) -> Any:
    """x - (what is about the largest of a row) and e to its power; the rows' sums, (rows, 1).

    The largest of the whole block is found several times quicker than those of short rows. It
    serves where no row is far below it, which a sample of the rows foretells: then nothing that
    counts is rounded to 0.
    """
    if x.shape[1] < WIDE:
        largest = x.max()
        if x[:SAMPLE].max(axis=1).min() > largest - NEAR:
            total = _exponentials(x, largest, shifted, e)
            if total.min() > math.exp(-NEAR):
                return total
    rows = x.max(axis=1, keepdims=True)
    rows[rows == -numpy.inf] = 0
    return _exponentials(x, rows, shifted, e)


def _exponentials(x: Any, shift: Any, shifted: Any, e: Any) -> Any:
    numpy.subtract(x, shift, shifted)
    numpy.exp(shifted, e)
    return row_sums(e)


def softmax_rows(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """e^x / (sum of e^x), and 0 where every x is -inf."""
    (x,), (y,) = inputs, outputs
    total = exponentials(x, y, y)
    total[total == 0] = 1
    numpy.divide(y, total, y)


def log_softmax_rows(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """x - ln(sum of e^x); where it would be above 0 by rounding, it is 0."""
    (x,), (y,), (e,) = inputs, outputs, scratch
    total = exponentials(x, y, e)
    numpy.subtract(y, numpy.log(total), y)
    y.clip(number(-math.inf, y.dtype), number(0.0, y.dtype), y)  # quicker than minimum


def apply(kernel: Kernel, scratch: int, node: Any, arrays: Arrays) -> Any:
    """Run one of the two along ``node.axis``; not where threads and short rows gain nothing."""
    (x,) = arrays
    length = x.shape[node.axis]
    if x.size < blocks.THREADED and (length >= WIDE or x.size < MANY * length):
        return None
    rows = as_rows(x, (node.axis,))
    if isinstance(rows, Fallback):
        return rows
    node.retain_outputs((0,))
    y = numpy.empty(rows.shape, x.dtype)
    run(kernel, (rows,), (y,), scratch)
    return (y.reshape(x.shape),)


def _usual_labels(node: Any, x: Any, labels: Any, rest: Arrays) -> Fallback | None:
    """None if every label counts, and counts alike; else why the kernel does not serve."""
    if rest or node.smoothing:
        return Fallback("class weights or smoothing")
    if x.dtype not in FLOATS or not x.flags.c_contiguous or not x.size:
        return Fallback("not a matrix of floats as it lies in memory")
    low, high = labels.min(), labels.max()
    if low < 0 or high >= x.shape[1] or low <= node.ignore_label <= high:
        return Fallback("some labels may be ignored or wrong")
    return None


def cross_entropy(node: Any, arrays: Arrays) -> Any:
    x, labels, *rest = arrays
    why_not = _usual_labels(node, x, labels, tuple(rest))
    if why_not is not None:
        return why_not
    node.retain_inputs((1,))
    node.retain_outputs((1,))
    log_p = numpy.empty(x.shape, x.dtype)
    run(log_softmax_rows, (x,), (log_p,), 1)
    losses = log_p[numpy.arange(len(x)), labels]
    numpy.negative(losses, losses)
    if node.reduction == "none":
        return losses, log_p
    total = losses.sum(keepdims=True)
    if node.reduction == "mean":
        total /= len(x)
    return total.reshape(()), log_p


def cross_entropy_gradient(node: Any, arrays: Arrays) -> Any:
    log_p, g, labels, *rest = arrays
    why_not = _usual_labels(node, log_p, labels, tuple(rest))
    if why_not is not None:
        return why_not
    node.retain_inputs((0, 1, 2))
    scale = g / number(len(labels), g.dtype) if node.reduction == "mean" else g
    gx = numpy.exp(log_p)
    gx *= scale[:, None] if scale.ndim else scale
    gx[numpy.arange(len(gx)), labels] -= scale
    return (gx,)


# --- standardization -----------------------------------------------------------------------------


def centred_rows(eps: Any, inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """y = (x - m) r, and m and r."""
    (x,), (y, m, r) = inputs, outputs
    part = number(1.0 / x.shape[1], x.dtype)
    long = x.shape[1] > LONGEST_MEAN
    numpy.multiply(x.sum(axis=1, keepdims=True) if long else row_sums(x), part, m)
    numpy.subtract(x, m, y)
    _scale(y, y, r, eps, part)


def uncentred_rows(eps: Any, inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """y = x r, and m = 0 and r."""
    (x,), (y, m, r) = inputs, outputs
    m[...] = 0
    _scale(x, y, r, eps, number(1.0 / x.shape[1], x.dtype))


def _scale(centred: Any, y: Any, r: Any, eps: Any, part: Any) -> None:
    """y = centred * r, with r = 1 / sqrt(mean of centred^2 + eps)."""
    numpy.multiply(row_products(centred, centred), part, r)
    numpy.add(r, eps, r)
    numpy.sqrt(r, r)
    numpy.divide(number(1.0, r.dtype), r, r)
    numpy.multiply(centred, r, y)


def standardize(node: Any, arrays: Arrays) -> Any:
    (x,) = arrays
    rows = as_rows(x, node.axes)
    if isinstance(rows, Fallback):
        return rows
    node.retain_outputs((0, 2))
    y = numpy.empty(rows.shape, x.dtype)
    m, r = (numpy.empty((len(rows), 1), x.dtype) for _ in range(2))
    kernel = centred_rows if node.center else uncentred_rows
    run(partial(kernel, number(node.eps, x.dtype)), (rows,), (y, m, r))
    kept = (*x.shape[: x.ndim - len(node.axes)], *(1 for _ in node.axes))
    return y.reshape(x.shape), m.reshape(kept), r.reshape(kept)


def centred_gradient_rows(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """r (g - mean g - y mean(g y))."""
    uncentred_gradient_rows(inputs, outputs, scratch)
    (g, _, r), (gx,) = inputs, outputs
    shift = row_sums(g)
    shift *= number(1.0 / g.shape[1], g.dtype)
    shift *= r
    numpy.subtract(gx, shift, gx)


def uncentred_gradient_rows(inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """r (g - y mean(g y))."""
    (g, y, r), (gx,) = inputs, outputs
    share = row_products(g, y)
    share *= number(1.0 / g.shape[1], g.dtype)
    numpy.multiply(y, share, gx)
    numpy.subtract(g, gx, gx)
    numpy.multiply(gx, r, gx)


def standardize_gradient(node: Any, arrays: Arrays) -> Any:
    g, y, r = arrays
    matrices = [as_rows(g, node.axes), as_rows(y, node.axes)]
    for matrix in matrices:
        if isinstance(matrix, Fallback):
            return matrix
    rows = matrices[0]
    if rows.shape != matrices[1].shape or len({g.dtype, y.dtype, r.dtype}) > 1:
        return Fallback("the inputs differ in shape or dtype")
    node.retain_inputs((0, 1, 2))
    gx = numpy.empty(rows.shape, g.dtype)
    kernel = centred_gradient_rows if node.center else uncentred_gradient_rows
    run(kernel, (*matrices, r.reshape(-1, 1)), (gx,))
    return (gx.reshape(g.shape),)


# --- sums ----------------------------------------------------------------------------------------


def sum_axes(node: Any, arrays: Arrays) -> Any:
    (x,) = arrays
    total = _sum_over(x, node.axes)
    if total is None or isinstance(total, Fallback):
        return total
    kept = tuple(1 if i in node.axes else n for i, n in enumerate(x.shape))
    left = tuple(n for i, n in enumerate(x.shape) if i not in node.axes)
    return (total.reshape(kept if node.keepdims else left),)


def sum_to(node: Any, arrays: Arrays) -> Any:
    (x,) = arrays
    new = x.ndim - len(node.shape)
    axes = [*range(new)]
    axes += [new + i for i, n in enumerate(node.shape) if n == 1 and x.shape[new + i] != 1]
    total = _sum_over(x, tuple(axes))
    if total is None or isinstance(total, Fallback):
        return total
    return (total.reshape(node.shape),)


def _sum_over(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum over axes that lie side by side in memory, first or last: a vector.

    None where NumPy is as quick.
    """
    if x.dtype not in FLOATS or not x.size:
        return Fallback(f"{x.dtype} has no kernel" if x.size else "no elements")
    length = math.prod([x.shape[i] for i in axes])
    rest = x.size // length
    if rest == 1 or max(length, rest) < FEW:
        return None
    order = [*axes, *(i for i in range(x.ndim) if i not in axes)]
    first = x.transpose(order)
    if first.flags.c_contiguous:
        return numpy.ones(length, x.dtype) @ first.reshape(length, rest) if length >= FEW else None
    last = x.transpose([*order[len(axes) :], *axes])
    if not last.flags.c_contiguous or length > LONGEST:
        return Fallback("the axes are neither the first nor the last ones in memory")
    return last.reshape(rest, length) @ numpy.ones(length, x.dtype) if rest >= FEW else None


KERNELS: dict[type, Entry] = {
    activation.Softmax: Entry("softmax", 4096, partial(apply, softmax_rows, 0)),
    activation.LogSoftmax: Entry("log_softmax", 4096, partial(apply, log_softmax_rows, 1)),
    SoftmaxCrossEntropy: Entry("cross_entropy", 0, cross_entropy),
    SoftmaxCrossEntropyGrad: Entry("cross_entropy_gradient", 0, cross_entropy_gradient),
    normalization.Standardize: Entry("standardize", 1 << 14, standardize),
    normalization.StandardizeGrad: Entry("standardize_gradient", 1 << 14, standardize_gradient),
    statistical.Sum: Entry("sum_axes", 1 << 13, sum_axes),
    shapes.SumTo: Entry("sum_to", 1 << 13, sum_to),
}

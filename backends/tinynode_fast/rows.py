"""Rules of rows: softmax, and cross entropy with integer labels.

Requirement: as in the functions, no formula overflows or loses small probabilities. A wrong label
raises the error of the function.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy

from tinynode.functions import activation, loss
from tinynode.net.operator import EMPTY
from tinynode_fast.actions import Names
from tinynode_fast.draft import Draft
from tinynode_fast.native.formulas import formula, integer, is_int64, number

INTEGERS = {numpy.dtype("int64"), numpy.dtype("int32")}
"""The dtypes of labels."""


def softmax(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """e = e^(x - max), y = e / sum of e; 0 where every x is -inf, NaN where several are +inf."""
    m, e = _exponentials(to, reads[0], node.axis, at_largest=1.0)
    total = to.reduced("sum", (node.axis,), e)
    text = "m == INFINITY && s > 1.0 ? NAN : (s == 0 ? 1.0 : s)"
    to.computed("e / s", writes[0], e=e, s=to.computed(text, s=total, m=m))


def softmax_grad(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """t = sum of g y, r = sum of (g - t) y, gx = (g - t - r) y: r is the rounding of t."""
    (y, g), axes = reads, (node.axis,)
    t = to.reduced("sum", axes, to.computed("g * y", g=g, y=y))
    rounding = to.reduced("sum", axes, to.computed("(g - t) * y", g=g, t=t, y=y))
    to.computed("(g - t - r) * y", writes[0], g=g, t=t, r=rounding, y=y)


def log_softmax(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """y = x - max - log of the sum of e^(x - max); the largest x count apart, for log1p."""
    m, others = _exponentials(to, reads[0], node.axis, at_largest=0.0)
    largest = to.computed("x == m ? 1.0 : 0.0", x=reads[0], m=m)
    sums = [to.reduced("sum", (node.axis,), part) for part in (others, largest)]
    text = "m == INFINITY && n > 1.0 ? NAN : log1p(r + (n - 1.0))"
    log = to.computed(text, r=sums[0], n=sums[1], m=m)
    text = "y = (x == m ? 0.0 : x - m) - l; y > 0 ? 0.0 : y"
    to.computed(text, writes[0], x=reads[0], m=m, l=log)


def _exponentials(to: Draft, x: str, axis: int, at_largest: float) -> tuple[str, str]:
    """m = max and e = e^(x - m), along an axis; at the largest x, e is a given number.

    Where m is +inf, e is 0 elsewhere. Below the normal numbers e is 0. So x is kept above: there
    ``exp`` takes many times as long.
    """
    axes = (axis,)
    m = to.computed("m == -INFINITY ? 0.0 : m", m=to.reduced("largest", axes, x))
    low = {"low": number(math.ceil(math.log(numpy.finfo(to.forms[x][1]).tiny)))}
    low["top"] = number(at_largest)
    text = "h = (x < t ? t : x) - m; x == m ? {top} : exp(h) * (x - m < {low} ? 0.0 : 1.0)"
    t = to.computed(formula("m == INFINITY ? -m : m + {low}", **low), m=m)
    e = to.computed(formula(text, **low), x=x, m=m, t=t)
    return m, e


def _column(to: Draft, node: Any, x: str, labels: str) -> str | None:
    """The labels of the rows of x as a column; None without a rule."""
    shape, kind = to.shape(x), to.forms[labels][1]
    is_usual = not node.smoothing and len(shape) == 2
    if not is_usual or shape[1] == 1 or kind not in INTEGERS or not to.is_native:
        return None
    if not is_int64(node.ignore_label):  # equal to no label
        return None
    return to.reshaped(labels, (shape[0], 1))


def _classes(to: Draft, labels: str, n: int) -> str:
    """The constant row 0, 1, ... n - 1, in the dtype of labels."""
    name = to.fresh((1, n), labels)
    to.constants[name] = numpy.arange(n, dtype=to.forms[labels][1]).reshape(1, n)
    return name


def _per_label(to: Draft, node: Any, total: str, column: str) -> str:
    """A total, or for the mean a total divided by the number of counted labels."""
    if node.reduction != "mean":
        return total
    ones = to.fresh(to.shape(column), total)
    ignored = {"label": integer(node.ignore_label)}
    to.computed(formula("y == {label} ? 0.0 : 1.0", **ignored), ones, y=column)
    count = to.reduced("sum", (0, 1), ones)
    return to.computed("s / (m == 0 ? 1.0 : m)", s=total, m=count)


def check_labels(n: int, ignored: int, labels: Any, out: Any) -> None:
    """Raise the function's ValueError for a label that is no class."""
    unsigned = labels.view(f"u{labels.itemsize}")  # a negative label is a huge number
    if numpy.maximum.reduce(unsigned) >= n:
        loss.check_labels("softmax_cross_entropy", "x", labels, n, ignored)


def cross_entropy(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """log_p = log_softmax(x), loss_i = -log_p[label_i]; the sum, or the mean."""
    x, (y, log_p) = reads[0], writes
    is_usual = len(reads) == 2 and y != EMPTY and to.one_dtype(x, y, log_p)
    column = _column(to, node, x, reads[1]) if is_usual else None
    if column is None:
        return
    check = partial(check_labels, to.shape(x)[1], node.ignore_label)
    to.call(check, (reads[1],), (to.fresh((), reads[1]),))
    log_p = to.fresh(to.shape(x), x) if log_p == EMPTY else log_p
    log_softmax(to, activation.LogSoftmax(1), (x,), (log_p,))
    classes = _classes(to, column, to.shape(x)[1])
    ignored = {"label": integer(node.ignore_label)}
    text = "c == y && y != {label} ? -l : 0.0"
    losses = to.computed(formula(text, **ignored), l=log_p, y=column, c=classes)
    axes = (1,) if node.reduction == "none" else (0, 1)
    total = _per_label(to, node, to.reduced("sum", axes, losses), column)
    to.reshaped(total, to.shape(y), y)


def cross_entropy_grad(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """gx = g / m (e^log_p - 1 at the label), 0 in a row whose label is ignored."""
    log_p, g = reads[:2]
    column = _column_of_gradient(to, node, reads, writes)
    if column is None:
        return
    g = _factor(to, node, g, column)
    classes = _classes(to, column, to.shape(log_p)[1])
    ignored = {"label": integer(node.ignore_label)}
    log_label = to.computed("c == y ? l : 0.0", l=log_p, y=column, c=classes)
    error = to.computed("expm1(l)", l=to.reduced("sum", (1,), log_label))
    text = "e = exp(l); y == {label} ? 0.0 : (c == y ? d : e) * s"
    to.computed(formula(text, **ignored), writes[0], l=log_p, y=column, s=g, c=classes, d=error)


def _column_of_gradient(to: Draft, node: Any, reads: Names, writes: Names) -> str | None:
    """The column of labels of a gradient of log_p, g and labels; None for others."""
    is_usual = len(reads) == 3 and to.one_dtype(*reads[:2], *writes)
    return _column(to, node, reads[0], reads[2]) if is_usual else None


def _factor(to: Draft, node: Any, g: str, column: str) -> str:
    """g / m for each row, or one number for all rows."""
    if node.reduction == "none":
        return to.reshaped(g, to.shape(column))
    return _per_label(to, node, g, column)


def row_weights(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """c = g / m, 0 in a row whose label is ignored."""
    column = _column_of_gradient(to, node, reads, writes)
    if column is None:
        return
    ignored = {"label": integer(node.ignore_label)}
    factor = _factor(to, node, reads[1], column)
    text = formula("y == {label} ? 0.0 : s", **ignored)
    to.computed(text, writes[0], y=column, s=factor)

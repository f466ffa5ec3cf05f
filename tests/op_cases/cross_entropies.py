"""Rows of softmax, cross entropies and the squared error."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from op_cases.rows import (
    LAYOUTS,
    Input,
    integers,
    node,
    row,
    x,
)
from tinynode import functions as fn
from tinynode.functions.cross_entropies import RowWeights

# --- softmax and losses --------------------------------------------------------------------------


def np_log_softmax(x: Any, axis: int = -1) -> Any:
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


for what, s, axes in (
    ("last-axis", (2, 3), {}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("middle-axis", (2, 3, 4), {"axis": 1}),
    ("negative-axis", (2, 3, 4), {"axis": -2}),
    ("vector", (4,), {}),
    ("one-class", (3, 1), {}),
    ("zero-size", (0, 3), {}),
):
    row("log_softmax", what, fn.log_softmax, np_log_softmax, x(*s), **axes)
for how in LAYOUTS:
    row("log_softmax", how, fn.log_softmax, np_log_softmax, x(3, 4, layout=how))


def np_weights(labels: Any, g: Any, reduction: str, ignore_label: int) -> Any:
    """What each row counts: g, or 0 if it is ignored, divided by their number under "mean"."""
    counts = (labels != ignore_label).astype(g.dtype)
    return counts * g / max(counts.sum(), 1) if reduction == "mean" else counts * g


def np_cross_entropy(x: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1) -> Any:
    valid = labels != ignore_label
    picked = np_log_softmax(x, 1)[np.arange(len(labels)), np.where(valid, labels, 0)]
    weights = np_weights(labels, np.ones((), x.dtype), reduction, ignore_label)
    losses = -picked * weights
    return losses if reduction == "none" else losses.sum()


def np_cross_entropy_grad(
    log_p: Any, g: Any, labels: Any, reduction: str, ignore_label: int
) -> Any:
    one_hot = labels[:, None] == np.arange(log_p.shape[1])
    weights = np_weights(labels, g, reduction, ignore_label)
    return (np.exp(log_p) - one_hot) * weights[:, None]


def np_row_weights(log_p: Any, g: Any, labels: Any, reduction: str, ignore_label: int) -> Any:
    return np_weights(labels, g, reduction, ignore_label)[:, None]


def labels(n: int, low: int = 0, dtype: str = "int64", **more: Any) -> Input:
    """Labels of three classes, from 0; with a lower ``low`` some stand for rows to ignore."""
    return Input((n,), partial(integers, low=low, high=3), dtype=dtype, **more)


def both_outputs(x: Any, labels: Any) -> Any:
    return fn.SoftmaxCrossEntropy("mean", -1).apply((x, labels))


def np_both_outputs(x: Any, labels: Any) -> Any:
    return np_cross_entropy(x, labels), np_log_softmax(x)


row("SoftmaxCrossEntropy", "both-outputs", both_outputs, np_both_outputs, x(9, 3), labels(9, -1))
cross_entropy = partial(row, "softmax_cross_entropy")
for reduction in ("mean", "sum", "none"):
    f, ref, how = fn.softmax_cross_entropy, np_cross_entropy, {"reduction": reduction}
    cross_entropy(reduction, f, ref, x(5, 3), labels(5), **how)
    cross_entropy(f"{reduction}-ignore", f, ref, x(9, 3), labels(9, -1), **how)
    cross_entropy(f"{reduction}-ignore-2", f, ref, x(9, 3), labels(9), ignore_label=2, **how)
    cross_entropy(f"{reduction}-no-rows", f, ref, x(0, 3), labels(0), **how)
    cross_entropy(f"{reduction}-one-row", f, ref, x(1, 3), labels(1), **how)
    for kind, ref, g in (
        (fn.SoftmaxCrossEntropyGrad, np_cross_entropy_grad, x(9) if reduction == "none" else x()),
        (RowWeights, np_row_weights, x(9) if reduction == "none" else x()),
    ):
        f = node(kind, reduction, -1)
        ref = partial(ref, reduction=reduction, ignore_label=-1)
        row(kind.__name__, reduction, f, ref, x(9, 3), g, labels(9, -1))
f, ref = fn.softmax_cross_entropy, np_cross_entropy
cross_entropy("int32-labels", f, ref, x(5, 3), labels(5, dtype="int32"))
cross_entropy("labels-array", f, ref, x(5, 3), labels(5, raw=True))
one_class = Input((4,), partial(integers, low=-1, high=1), "int64")
cross_entropy("one-class", f, ref, x(4, 1), one_class)
for how in LAYOUTS:
    cross_entropy(how, f, ref, x(5, 3, layout=how), labels(5, layout=how))


def np_squared_error(x: Any, y: Any, reduction: str = "mean") -> Any:
    squared = (x - y) ** 2
    return squared if reduction == "none" else getattr(squared, reduction)()


f, ref = fn.mean_squared_error, np_squared_error
for reduction in ("mean", "sum", "none"):
    row("mean_squared_error", reduction, f, ref, x(2, 3), x(2, 3), reduction=reduction)
row("mean_squared_error", "0-d", f, ref, x(), x())
row("mean_squared_error", "zero-size", f, ref, x(0, 3), x(0, 3), reduction="sum")
row("mean_squared_error", "array-of-targets", f, ref, x(2, 3), x(2, 3, raw=True))
row("mean_squared_error", "targets-without-grad", f, ref, x(2, 3), x(2, 3, grad=False))
row(
    "mean_squared_error",
    "same-variable-twice",
    lambda x: fn.mean_squared_error(x, x),
    lambda x: 0 * x.sum(),
    x(2, 3),
)
for how in LAYOUTS:
    row("mean_squared_error", how, f, ref, x(3, 4, layout=how), x(3, 4, layout=how))

"""Cross entropy under vmap: the rows of all examples are the rows of one call.

Requirement: a net has the cross entropy of a vmapped function as one operator, which a plan may
fuse. Eager code makes a few calls of the array library. Each row has a loss of its own by
``reduction="none"``. The reduction of each example follows.

    x: (n, rows, classes), labels: (n, rows) -> losses: (n rows) -> (n, rows) -> (n)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinynode.functions.cross_entropies import (
    RowWeights,
    SoftmaxCrossEntropy,
    SoftmaxCrossEntropyGrad,
)


def _cross_entropy(library: Any, node: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The losses of the examples, and log_softmax(x)."""
    x, labels, *weights = arrays
    base, (n, rows, classes) = library.xp, x.shape
    flat, flat_labels = base.reshape(x, (n * rows, classes)), base.reshape(labels, (n * rows,))
    each = SoftmaxCrossEntropy("none", node.ignore_label, node.smoothing)
    losses, log_p = library.run(each, (flat, flat_labels, *weights))
    node.retain_inputs(tuple(range(1, len(arrays))))
    node.retain_outputs((1,))
    log_p = base.reshape(log_p, (n, rows, classes))
    losses = base.reshape(losses, (n, rows))
    if node.reduction == "none":
        return losses, log_p
    if rows == 1 and _is_own_mean(node, weights):
        return base.reshape(losses, (n,)), log_p
    total = base.sum(losses, axis=1)
    if node.reduction == "mean":
        total = total / _divisors(base, node, labels, weights, total.dtype)
    return total, log_p


def _gradient(library: Any, node: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The gradient of x, or the factor of each row; ``g`` is the gradient of each loss."""
    log_p, g, labels, *weights = arrays
    base, (n, rows, classes) = library.xp, log_p.shape
    if node.reduction == "mean" and not (rows == 1 and _is_own_mean(node, weights)):
        g = g / _divisors(base, node, labels, weights, g.dtype)
    if node.reduction != "none":
        g = base.broadcast_to(base.reshape(g, (n, 1)), (n, rows))
    flat, flat_labels = base.reshape(log_p, (n * rows, classes)), base.reshape(labels, (n * rows,))
    each = type(node)("none", node.ignore_label, node.smoothing)
    (found,) = library.run(each, (flat, base.reshape(g, (n * rows,)), flat_labels, *weights))
    is_of_rows = type(node) is RowWeights
    node.retain_inputs((0, *range(2, len(arrays))) if is_of_rows else tuple(range(len(arrays))))
    return (base.reshape(found, (n, rows, found.shape[1])),)


def _is_own_mean(node: Any, weights: Sequence[Any]) -> bool:
    """True if the loss of a single row is the mean and the sum of the example."""
    return node.reduction == "sum" or not weights


def _divisors(base: Any, node: Any, labels: Any, weights: Sequence[Any], dtype: Any) -> Any:
    """m of each example, as ``_LabelledRows._divisor``: (n)."""
    counts = base.astype(labels != node.ignore_label, dtype)
    if weights:
        n, rows = labels.shape
        places = labels * base.astype(labels != node.ignore_label, labels.dtype)
        of_labels = base.take(weights[0], base.reshape(places, (n * rows,)), axis=0)
        counts = counts * base.reshape(of_labels, (n, rows))
    total = base.sum(counts, axis=1)
    return total + base.astype(total == 0, dtype)


RULES: dict[type, Callable[..., tuple[Any, ...]]] = {
    SoftmaxCrossEntropy: _cross_entropy,
    SoftmaxCrossEntropyGrad: _gradient,
    RowWeights: _gradient,
}
"""From a node and the wrapped arrays of all examples, with the hidden axis, to the outputs."""


def run_on_rows(library: Any, node: Any, arrays: Sequence[Any]) -> tuple[Any, ...] | None:
    """The outputs of a node with labelled rows, for all examples; None without a rule.

    x: (n, s), or (1, s) for all examples. Class weights must be the same in all examples.
    """
    rule = RULES.get(type(node))
    if rule is None:
        return None
    count = 2 if rule is _cross_entropy else 3
    weights = arrays[count:]
    if any(w.shape[0] != 1 for w in weights):
        return None
    n = max({x.shape[0] for x in arrays} - {1}, default=1)
    whole = [_repeated(library.xp, x, n) for x in arrays[:count]]
    return rule(library, node, (*whole, *[w[0, ...] for w in weights]))


def _repeated(base: Any, x: Any, n: int) -> Any:
    return x if x.shape[0] == n else base.broadcast_to(x, (n, *x.shape[1:]))

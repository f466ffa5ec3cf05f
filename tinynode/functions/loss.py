"""Loss functions: what training makes small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinynode.backend import Array, Arrays, namespace_of
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.activation import log_softmax_array, log_softmax_gradient
from tinynode.functions.elementwise import exp
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.reduction import mean, sum
from tinynode.functions.shaping import reshape
from tinynode.type_check import expect, is_floating, is_integer
from tinynode.variable import Variable, wrap_array

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


def check_reduction(function: str, reduction: str) -> str:
    """Raises ValueError unless the reduction is "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f'{function}: reduction must be "mean", "sum" or "none", got {reduction!r}.'
        )
    return reduction


def mean_squared_error(x: Any, y: Any, reduction: str = "mean") -> Variable:
    """(x - y)^2, as the mean, as the sum, or for each element.

    x: (s), y: (s) -> 0-d, or (s) with ``reduction="none"``. With d = x - y and n elements, the
    mean has dL/dx = 2 d / n and dL/dy = -2 d / n.

    Raises:
        ValueError: the shapes differ (a broadcast here is a mistake more often than not), or the
            reduction is unknown.
    """
    x, y = as_operands("mean_squared_error", x, y)
    check_reduction("mean_squared_error", reduction)
    if x.shape != y.shape:
        raise ValueError(
            f"mean_squared_error: x has shape {x.shape}, y has {y.shape}: they must be equal. "
            "Reshape one, or use broadcast_to."
        )
    squared: Variable = (x - y) ** 2
    if reduction == "none":
        return squared
    return mean(squared) if reduction == "mean" else sum(squared)


class SoftmaxCrossEntropy(FunctionNode):
    """loss_i = -log_softmax(x_i)[label_i], as the mean, as the sum, or for each row.

    x: (n, classes), labels: (n), integer -> loss: 0-d, or (n); and log_softmax(x), which backward
    retains. Rows whose label is ``ignore_label`` do not count.
    With p = softmax(x), o = one-hot labels, m rows that count:   dL/dx = dL/dloss * (p - o) / m
    """

    input_names = ("x", "labels")
    type_hint = (
        "x is (n, classes), floating; labels is (n), integer; for one-hot labels use argmax."
    )

    def __init__(self, reduction: str, ignore_label: int) -> None:
        self.reduction = reduction
        self.ignore_label = ignore_label

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, labels = in_types
        expect(is_floating(x), is_integer(labels))
        expect(x.ndim == 2, labels.ndim == 1)
        expect(x.shape[0] == labels.shape[0], x.shape[1] >= 1)

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels = inputs
        xp = namespace_of(x)
        self._check_labels(labels, x.shape[1])
        self.retain_inputs((1,))
        self.retain_outputs((1,))
        log_p = log_softmax_array(x, 1)
        valid = labels != self.ignore_label
        chosen = xp.where(valid, labels, xp.zeros_like(labels))[:, None]
        picked = xp.take_along_axis(log_p, chosen, axis=1)[:, 0]
        losses = xp.where(valid, -picked, xp.zeros_like(picked))
        if self.reduction == "none":
            return losses, log_p
        total = xp.sum(losses)
        if self.reduction == "mean":
            total = total / _count(valid, x)
        return total, log_p

    def _check_labels(self, labels: Array, classes: int) -> None:
        xp = namespace_of(labels)
        wrong = ((labels < 0) | (labels >= classes)) & (labels != self.ignore_label)
        if xp.any(wrong):
            example = int(labels[int(xp.argmax(xp.astype(wrong, xp.int8)))])
            raise ValueError(
                f"softmax_cross_entropy: labels must lie in 0 to {classes - 1} (x has {classes} "
                f"classes) or be ignore_label={self.ignore_label}, got {example}."
            )

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gloss, glog_p = grad_outputs
        (labels,) = self.get_retained_inputs()
        (log_p,) = self.get_retained_outputs()
        gx = None
        if gloss is not None:
            node = SoftmaxCrossEntropyGrad(self.reduction, self.ignore_label)
            gx = node.apply((log_p, labels, gloss))[0]
        if glog_p is not None:  # under double backprop the gradient of log_p comes back here
            direct = log_softmax_gradient(log_p, glog_p, 1)
            gx = direct if gx is None else gx + direct
        return gx, None


def _count(valid: Array, like: Array) -> Array:
    """The number of rows that count, at least 1, in the dtype of ``like``."""
    xp = namespace_of(like)
    rows = xp.sum(xp.astype(valid, like.dtype))
    return xp.maximum(rows, xp.ones_like(rows))


class SoftmaxCrossEntropyGrad(FunctionNode):
    """gx = g * (e^log_p - one_hot(labels)), divided by the number of rows under "mean".

    log_p: (n, classes), labels: (n), g: 0-d or (n) -> gx: (n, classes). The gradient of
    ``SoftmaxCrossEntropy``; with h = dL/dgx and c = g / rows:
    dL/dlog_p = h * c * e^log_p   dL/dg = sum of h * gx / g, over the row or over all
    """

    def __init__(self, reduction: str, ignore_label: int) -> None:
        self.reduction = reduction
        self.ignore_label = ignore_label

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, labels, g = inputs
        xp = namespace_of(log_p)
        self.retain_inputs((0, 1, 2))
        classes = xp.arange(log_p.shape[1], dtype=xp.int64, device=log_p.device)
        chosen = xp.astype(labels, xp.int64)[:, None]  # a small dtype may not hold all classes
        one_hot = xp.astype(chosen == classes[None, :], log_p.dtype)
        return ((xp.exp(log_p) - one_hot) * self._row_weights(labels, g, log_p),)

    def _row_weights(self, labels: Array, g: Array, like: Array) -> Array:
        """What each row's p - o is multiplied by: (n, 1)."""
        xp = namespace_of(like)
        valid = labels != self.ignore_label
        if self.reduction == "mean":
            g = g / _count(valid, like)
        return (xp.astype(valid, like.dtype) * g)[:, None]

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (h,) = grad_outputs
        log_p, labels, g = self.get_retained_inputs()
        assert h is not None
        # gx is linear in g, so its derivative by g is gx at g = 1
        one = wrap_array(g.xp.ones_like(g._array), g._device, False)
        node = SoftmaxCrossEntropyGrad(self.reduction, self.ignore_label)
        per_g = node.apply((log_p, labels, one))[0]
        weights = RowWeights(self.reduction, self.ignore_label).apply((log_p, labels, g))[0]
        glog_p = h * exp(log_p) * weights
        axis = 1 if self.reduction == "none" else None
        return glog_p, None, sum(h * per_g, axis=axis)


class RowWeights(SoftmaxCrossEntropyGrad):
    """w = g for each row that counts, 0 for the others, divided by their number under "mean".

    log_p: (n, classes), of which only the dtype counts, labels: (n), g: 0-d or (n) -> w: (n, 1).
    dL/dg = sum of dL/dw / rows, over the row or over all
    """

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, labels, g = inputs
        self.retain_inputs((0, 1))
        return (self._row_weights(labels, g, log_p),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gw,) = grad_outputs
        log_p, labels = self.get_retained_inputs()
        assert gw is not None
        one = wrap_array(
            gw.xp.ones((), dtype=gw.dtype, device=gw._array.device), gw._device, False
        )
        share = RowWeights(self.reduction, self.ignore_label).apply((log_p, labels, one))[0]
        total = gw * share
        gg = reshape(total, -1) if self.reduction == "none" else sum(total)
        return None, None, gg


def softmax_cross_entropy(
    x: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1
) -> Variable:
    """The cross entropy of softmax(x) against integer labels.

    Args:
        x: scores before softmax, (n, classes).
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the rows that count, "sum", or "none" for a loss of each row.
        ignore_label: rows with this label do not count.

    Raises:
        InvalidType: the shapes or dtypes do not fit together.
        ValueError: a label is out of range, or the reduction is unknown.
    """
    x = as_operand("softmax_cross_entropy", "x", x)
    labels = as_operand("softmax_cross_entropy", "labels", labels)
    check_reduction("softmax_cross_entropy", reduction)
    return SoftmaxCrossEntropy(reduction, ignore_label).apply((x, labels))[0]

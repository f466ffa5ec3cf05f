"""Loss functions: what training makes small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinynode.backend import Array, Arrays, namespace_of
from tinynode.backend import is_integer as is_integer_array
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.activation import (
    log_softmax_array,
    log_softmax_gradient,
    relu,
    softplus,
)
from tinynode.functions.arithmetic import abs
from tinynode.functions.casting import astype
from tinynode.functions.comparison import equal, not_equal
from tinynode.functions.elementwise import exp, log
from tinynode.functions.extrema import clip, maximum
from tinynode.functions.gathering import take_along_axis
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.reduction import mean, sum
from tinynode.functions.selection import where
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
    _require_equal_shapes("mean_squared_error", x, "y", y)
    return _reduce((x - y) ** 2, reduction)


class SoftmaxCrossEntropy(FunctionNode):
    """loss_i = -(sum over classes of q_i * log_softmax(x_i)), as the mean, the sum, or by row.

    x: (n, classes), labels: (n), integer, class weights w: (classes) or none -> loss: 0-d, or (n);
    and log_softmax(x), which backward retains.
    q_i = w * ((1 - smoothing) * one_hot(label_i) + smoothing / classes), 0 where the label is
    ``ignore_label``; the mean divides by the sum of w[label_i] over the rows that count.
    With p = softmax(x), r_i the sum of q_i, m that divisor:   dL/dx = dL/dloss * (p r - q) / m
    """

    type_hint = (
        "x is (n, classes), floating; labels is (n), integer; for one-hot labels use argmax."
    )

    def __init__(self, reduction: str, ignore_label: int, smoothing: float = 0.0) -> None:
        self.reduction = reduction
        self.ignore_label = ignore_label
        self.smoothing = smoothing

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, labels = in_types[0], in_types[1]
        expect(is_floating(x), is_integer(labels))
        expect(x.ndim == 2, labels.ndim == 1)
        expect(x.shape[0] == labels.shape[0], x.shape[1] >= 1)
        if len(in_types) == 3:
            expect(in_types[2].ndim == 1, in_types[2].shape[0] == x.shape[1])
            expect(in_types[2].dtype == x.dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels, *weights = inputs
        xp = namespace_of(x)
        self._check_labels(labels, x.shape[1])
        self.retain_inputs(range(1, len(inputs)))
        self.retain_outputs((1,))
        log_p = log_softmax_array(x, 1)
        if weights or self.smoothing:
            losses = -xp.sum(self._targets(labels, weights, log_p) * log_p, axis=1)
        else:
            valid = labels != self.ignore_label
            chosen = xp.where(valid, labels, xp.zeros_like(labels))[:, None]
            picked = xp.take_along_axis(log_p, chosen, axis=1)[:, 0]
            losses = xp.where(valid, -picked, xp.zeros_like(picked))
        if self.reduction == "none":
            return losses, log_p
        total = xp.sum(losses)
        if self.reduction == "mean":
            total = total / self._divisor(labels, weights, x)
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

    def _targets(self, labels: Array, weights: Sequence[Array], like: Array) -> Array:
        """q: what each row's log_softmax is weighted with, (n, classes)."""
        xp = namespace_of(like)
        classes = xp.arange(like.shape[1], dtype=labels.dtype, device=like.device)
        q = xp.astype(labels[:, None] == classes[None, :], like.dtype)
        if self.smoothing:
            q = q * (1.0 - self.smoothing) + self.smoothing / like.shape[1]
        q = q * xp.astype(labels != self.ignore_label, like.dtype)[:, None]
        return q * weights[0] if weights else q

    def _divisor(self, labels: Array, weights: Sequence[Array], like: Array) -> Array:
        """m: the number of rows that count, or the sum of their labels' weights."""
        xp = namespace_of(like)
        valid = labels != self.ignore_label
        counts = xp.astype(valid, like.dtype)
        if weights:
            counts = counts * xp.take(weights[0], xp.where(valid, labels, xp.zeros_like(labels)))
        total = xp.sum(counts)
        return xp.where(total == 0, xp.ones_like(total), total)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gloss, glog_p = grad_outputs
        constants = self.get_retained_inputs()
        (log_p,) = self.get_retained_outputs()
        gx = None
        if gloss is not None:
            node = SoftmaxCrossEntropyGrad(self.reduction, self.ignore_label, self.smoothing)
            gx = node.apply((log_p, gloss, *constants))[0]
        if glog_p is not None:  # under double backprop the gradient of log_p comes back here
            direct = log_softmax_gradient(log_p, glog_p, 1)
            gx = direct if gx is None else gx + direct
        return (gx, *(None for _ in constants))


class SoftmaxCrossEntropyGrad(SoftmaxCrossEntropy):
    """gx = g * (e^log_p r - q) / m: the gradient of ``SoftmaxCrossEntropy``.

    log_p: (n, classes), g: 0-d or (n), labels: (n), w: (classes) or none -> gx: (n, classes).
    With h = dL/dgx:   dL/dlog_p = h * g * e^log_p r / m   dL/dg = sum of h * (e^log_p r - q) / m,
    over the row or over all
    """

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 3)

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, g, labels, *weights = inputs
        xp = namespace_of(log_p)
        self.retain_inputs(range(len(inputs)))
        q = self._targets(labels, weights, log_p)
        rows = xp.sum(q, axis=1, keepdims=True)
        return ((xp.exp(log_p) * rows - q) * self._scale(g, labels, weights, log_p),)

    def _scale(self, g: Array, labels: Array, weights: Sequence[Array], like: Array) -> Array:
        """g / m, as a column or a 0-d array."""
        if self.reduction == "none":
            return g[:, None]
        return g / self._divisor(labels, weights, like) if self.reduction == "mean" else g

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (h,) = grad_outputs
        log_p, g, *constants = self.get_retained_inputs()
        assert h is not None
        arguments = (self.reduction, self.ignore_label, self.smoothing)
        # gx is linear in g, so its derivative by g is gx at g = 1
        one = wrap_array(g.xp.ones_like(g._array), g._device, False)
        per_g = SoftmaxCrossEntropyGrad(*arguments).apply((log_p, one, *constants))[0]
        rows = RowWeights(*arguments).apply((log_p, g, *constants))[0]
        axis = 1 if self.reduction == "none" else None
        gradients = (h * exp(log_p) * rows, sum(h * per_g, axis=axis))
        return (*gradients, *(None for _ in constants))


class RowWeights(SoftmaxCrossEntropyGrad):
    """c = g r / m: what each row of e^log_p is multiplied by in the gradient.

    log_p: (n, classes), of which only shape and dtype count, g: 0-d or (n), labels: (n), w:
    (classes) or none -> c: (n, 1).   dL/dg = sum of dL/dc * r / m, over the row or over all
    """

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, g, labels, *weights = inputs
        self.retain_inputs((0, *range(2, len(inputs))))
        q = self._targets(labels, weights, log_p)
        rows = namespace_of(log_p).sum(q, axis=1, keepdims=True)
        return (rows * self._scale(g, labels, weights, log_p),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gc,) = grad_outputs
        log_p, *constants = self.get_retained_inputs()
        assert gc is not None
        shape = (log_p.shape[0],) if self.reduction == "none" else ()
        ones = gc.xp.ones(shape, dtype=gc.dtype, device=gc._array.device)
        one = wrap_array(ones, gc._device, False)
        node = RowWeights(self.reduction, self.ignore_label, self.smoothing)
        total = gc * node.apply((log_p, one, *constants))[0]
        gg = reshape(total, -1) if self.reduction == "none" else sum(total)
        return (None, gg, *(None for _ in constants))


def softmax_cross_entropy(
    x: Any,
    labels: Any,
    reduction: str = "mean",
    ignore_label: int = -1,
    class_weight: Any = None,
    label_smoothing: float = 0.0,
) -> Variable:
    """The cross entropy of softmax(x) against integer labels.

    Args:
        x: scores before softmax, (n, classes).
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the rows that count, "sum", or "none" for a loss of each row.
        ignore_label: rows with this label do not count.
        class_weight: a weight for each class, (classes), without a gradient; the mean is then the
            weighted mean over the rows.
        label_smoothing: how much of a label is spread evenly over all classes, from 0 to 1.

    Raises:
        InvalidType: the shapes or dtypes do not fit together.
        ValueError: a label is out of range, the smoothing is, or the reduction is unknown.

    Source of label smoothing: Szegedy et al., Rethinking the Inception Architecture, 2016.
    """
    x = as_operand("softmax_cross_entropy", "x", x)
    labels = as_operand("softmax_cross_entropy", "labels", labels)
    check_reduction("softmax_cross_entropy", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(
            f"softmax_cross_entropy: label_smoothing must lie in 0 to 1, got {label_smoothing}."
        )
    inputs = [x, labels]
    if class_weight is not None:
        inputs.append(as_operands("softmax_cross_entropy", class_weight, x)[0].detach())
    node = SoftmaxCrossEntropy(reduction, ignore_label, float(label_smoothing))
    return node.apply(inputs)[0]


def nll(log_p: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1) -> Variable:
    """The negative log likelihood -log_p[i, label_i] of integer labels.

    dL/dlog_p[i, c] = -dL/dloss at c = label_i, else 0; divided by the number of rows under mean.

    Args:
        log_p: logarithms of probabilities, (n, classes), as ``log_softmax`` gives them.
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the rows that count, "sum", or "none" for a loss of each row.
        ignore_label: rows with this label do not count.

    Raises:
        ValueError: shapes do not fit together, or the reduction is unknown.
        IndexError: a label is out of range.
    """
    log_p = as_operand("nll", "log_p", log_p)
    labels = as_operand("nll", "labels", labels)
    check_reduction("nll", reduction)
    if log_p.ndim != 2 or labels.shape != log_p.shape[:1]:
        raise ValueError(
            f"nll: log_p must be (n, classes) and labels (n); got shapes {log_p.shape} and "
            f"{labels.shape}."
        )
    valid = not_equal(labels, ignore_label)
    chosen = reshape(where(valid, labels, 0), (labels.shape[0], 1))
    picked = reshape(take_along_axis(log_p, chosen, axis=1), -1)
    return _reduce_valid(where(valid, -picked, 0), valid, reduction)


def _reduce_valid(losses: Variable, valid: Variable, reduction: str) -> Variable:
    """The mean over the entries that count (at least one), the sum, or each."""
    if reduction == "none":
        return losses
    total = sum(losses)
    if reduction == "sum":
        return total
    return total / maximum(sum(astype(valid, losses.dtype)), 1)


def sigmoid_cross_entropy(
    x: Any, t: Any, reduction: str = "mean", ignore_label: int = -1
) -> Variable:
    """-t ln(sigmoid(x)) - (1 - t) ln(1 - sigmoid(x)), elementwise, then reduced.

    dL/dx = dL/dloss * (sigmoid(x) - t), divided by the entries that count under "mean".

    Args:
        x: scores before the sigmoid, (s).
        t: labels 0 and 1, or probabilities, (s).
        reduction: "mean" over the entries that count, "sum", or "none".
        ignore_label: entries of integer labels with this value do not count.

    Raises:
        ValueError: the shapes differ, or the reduction is unknown.
    """
    x = as_operand("sigmoid_cross_entropy", "x", x)
    t = as_operand("sigmoid_cross_entropy", "t", t)
    check_reduction("sigmoid_cross_entropy", reduction)
    _require_equal_shapes("sigmoid_cross_entropy", x, "t", t)
    if not is_integer_array(t._array):
        return _reduce(softplus(x) - x * t, reduction)
    valid = not_equal(t, ignore_label)
    losses = softplus(x) - x * astype(where(valid, t, 0), x.dtype)
    return _reduce_valid(where(valid, losses, 0), valid, reduction)


def _require_equal_shapes(function: str, x: Variable, name: str, y: Variable) -> None:
    if x.shape != y.shape:
        raise ValueError(
            f"{function}: x has shape {x.shape}, {name} has {y.shape}: they must be equal. "
            "Reshape one, or use broadcast_to."
        )


def _reduce(losses: Variable, reduction: str) -> Variable:
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def mean_absolute_error(x: Any, y: Any, reduction: str = "mean") -> Variable:
    """|x - y|, as the mean, as the sum, or for each element; the gradient at x = y is 0.

    Raises:
        ValueError: the shapes differ, or the reduction is unknown.
    """
    x, y = as_operands("mean_absolute_error", x, y)
    check_reduction("mean_absolute_error", reduction)
    _require_equal_shapes("mean_absolute_error", x, "y", y)
    return _reduce(abs(x - y), reduction)


def huber(x: Any, y: Any, delta: float = 1.0, reduction: str = "mean") -> Variable:
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - y; then reduced.

    dL/dx = dL/dloss * (d held between -delta and delta).

    Source: Huber, Robust Estimation of a Location Parameter, 1964.

    Raises:
        ValueError: the shapes differ, delta is not positive, or the reduction is unknown.
    """
    x, y = as_operands("huber", x, y)
    check_reduction("huber", reduction)
    _require_equal_shapes("huber", x, "y", y)
    if delta <= 0:
        raise ValueError(f"huber: delta must be positive, got {delta}.")
    difference = x - y
    inner = clip(difference, -float(delta), float(delta))
    return _reduce(inner * (difference - inner * 0.5), reduction)


def hinge(x: Any, labels: Any, reduction: str = "mean") -> Variable:
    """max(0, 1 - t x) for each class, t = 1 for the label and -1 for the others; then reduced.

    dL/dx = -dL/dloss * t where t x < 1, else 0.

    Args:
        x: scores, (n, classes).
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the rows of the sums over classes, "sum", or "none": each element.

    Source: Cortes and Vapnik, Support-Vector Networks, 1995.

    Raises:
        ValueError: the shapes do not fit together, or the reduction is unknown.
    """
    x = as_operand("hinge", "x", x)
    labels = as_operand("hinge", "labels", labels)
    check_reduction("hinge", reduction)
    if x.ndim != 2 or labels.shape != x.shape[:1]:
        raise ValueError(
            f"hinge: x must be (n, classes) and labels (n); got shapes {x.shape} and "
            f"{labels.shape}."
        )
    classes = x.xp.arange(x.shape[1], dtype=labels.dtype, device=x._array.device)
    sides = astype(equal(reshape(labels, (-1, 1)), classes), x.dtype) * 2.0 - 1.0
    losses = relu(1.0 - sides * x)
    if reduction == "none":
        return losses
    total = sum(losses)
    return total / float(x.shape[0] or 1) if reduction == "mean" else total


def kl_divergence(log_q: Any, p: Any, reduction: str = "mean") -> Variable:
    """p (ln p - log_q), elementwise, where p = 0 counts as 0; the divergence of p from q.

    dL/dlog_q = -dL/dloss * p   dL/dp = dL/dloss * (ln p - log_q + 1)

    Args:
        log_q: logarithms of the model's probabilities, (s).
        p: the target's probabilities, (s).
        reduction: "mean" over the first axis of the sums over the others, "sum", or "none".

    Raises:
        ValueError: the shapes differ, or the reduction is unknown.
    """
    log_q, p = as_operands("kl_divergence", log_q, p)
    check_reduction("kl_divergence", reduction)
    _require_equal_shapes("kl_divergence", log_q, "p", p)
    zero = equal(p, 0)
    losses = where(zero, 0, p * (log(where(zero, 1, p)) - log_q))
    if reduction == "none":
        return losses
    total = sum(losses)
    if reduction == "sum" or losses.ndim == 0:
        return total
    return total / float(losses.shape[0] or 1)

"""Cross entropy: of softmax, of sigmoid, and of given log probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    add_at,
    is_known_true,
    mean_array,
    namespace_of,
    put,
    sum_array,
)
from tinynode.devices import is_floating as is_floating_array
from tinynode.devices import is_integer as is_integer_array
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.activation import (
    log_sigmoid,
    log_softmax,
    log_softmax_array,
    log_softmax_gradient,
)
from tinynode.functions.arithmetic import BroadcastingNode, zero_safe_multiply
from tinynode.functions.attributes import INT64, Fraction, Length, Reduction
from tinynode.functions.checked import checked_fraction, checked_label, checked_length
from tinynode.functions.comparison import equal, not_equal
from tinynode.functions.data_types import astype, narrowed, promoted, widened
from tinynode.functions.exponential import Exp
from tinynode.functions.logistic import sigmoid_gradient, sigmoid_of_negative
from tinynode.functions.loss import (
    as_labels,
    check_labels,
    check_reduction,
    one_hot_array,
    reduce,
    reduce_counted,
    require_equal_shapes,
    scores_and_labels,
    signed_labels,
)
from tinynode.functions.operands import (
    as_floating,
    as_label,
    as_number,
    as_operand,
    as_operands,
    first_variable,
    input_shape,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import broadcasts_to, full_beside, reshape, unbroadcast
from tinynode.functions.statistical import sum
from tinynode.type_check import TypeInfoTuple, expect, is_floating, is_integer

__all__ = [
    "RowWeights",
    "SoftmaxCrossEntropy",
    "SoftmaxCrossEntropyGrad",
    "nll",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]
__dir__ = __all__.copy  # for completion


class _LabelledRows(FunctionNode):
    """Base of softmax cross entropy and the gradients: rows of scores with integer labels."""

    def __init__(self, reduction: Reduction, ignore_label: int, smoothing: Fraction = 0.0) -> None:
        self.reduction = check_reduction(type(self).__name__, reduction)
        self.ignore_label = checked_label(self, ignore_label)
        self.smoothing = checked_fraction(self, "smoothing", smoothing)

    def row_axes(self) -> tuple[int, ...]:
        return (1,) if self.reduction == "none" else (0, 1)

    def _counts(self, valid: Array, labels: Array, weights: Sequence[Array], like: Array) -> Array:
        """w[label_i], or 1 without weights, and 0 where the row is not valid: (n)."""
        xp = namespace_of(like)
        counts = xp.astype(valid, like.dtype)
        if weights:
            counts = counts * xp.take(weights[0], labels * xp.astype(valid, labels.dtype))
        return counts

    def _divisor(self, counts: Array, weights: Sequence[Array]) -> Array:
        """m: the number of counted rows, or the sum of the weights of the labels; 1 for 0."""
        xp = namespace_of(counts)
        # of zeros and ones, the ones are counted: quicker than a sum
        number = sum_array(counts) if weights else xp.count_nonzero(counts)
        total = xp.asarray(number, dtype=counts.dtype)
        return total + xp.asarray(total == 0, dtype=counts.dtype)


class SoftmaxCrossEntropy(_LabelledRows):
    """loss_i = -(sum over classes of q_i * log_softmax(x_i)), as the mean, the sum, or by row.

    x: (n, classes), labels: (n), integer, class weights w: (classes) or none -> loss: 0-d, or (n);
    and log_softmax(x), retained for backward.
    q_i = w * ((1 - smoothing) * one_hot(label_i) + smoothing / classes), 0 where the label is
    ``ignore_label``; the mean divides by the sum of w[label_i] over the counted rows.
    With p = softmax(x), r_i the sum of q_i, m the divisor:   dL/dx = dL/dloss * (p r - q) / m
    """

    input_counts = (2, 3)
    output_counts = (2,)
    input_names = ("x", "labels", "class_weight")
    type_hint = (
        "x is (n, classes), floating; labels is (n), integer; for one-hot labels use argmax. More "
        "axes: bring the classes to the last, reshape x to (-1, classes) and labels to (-1,)."
    )
    wide = True

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, labels = in_types[0], in_types[1]
        expect(is_floating(x), is_integer(labels))
        expect(x.ndim == 2, labels.ndim == 1)
        expect(x.shape[0] == labels.shape[0], x.shape[1] >= 1)
        if len(in_types) == 3:
            expect(in_types[2].ndim == 1, in_types[2].dtype == x.dtype)
            expect(in_types[2].shape[0] == x.shape[1])

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels, *weights = inputs
        xp = namespace_of(x)
        valid = check_labels("softmax_cross_entropy", "x", labels, x.shape[1], self.ignore_label)
        self.retain_inputs(tuple(range(1, len(inputs))))
        self.retain_outputs((1,))
        log_p = log_softmax_array(x, 1)
        chosen = labels if valid is None else labels * xp.astype(valid, labels.dtype)
        losses = -log_p[xp.arange(labels.shape[0], device=x.device), chosen]
        if weights:
            losses = _zero_safe_product(xp.take(weights[0], chosen), losses)
        if self.smoothing:
            spread = sum_array(_zero_safe_product(weights[0], log_p) if weights else log_p, 1)
            even = spread * (self.smoothing / x.shape[1])
            losses = -even if self.smoothing == 1.0 else losses * (1.0 - self.smoothing) - even
        if valid is not None:
            losses = xp.where(valid, losses, xp.zeros((), dtype=x.dtype, device=x.device))
        if self.reduction == "none":
            return losses, log_p
        total = sum_array(losses)
        if self.reduction != "mean":
            return total, log_p
        if valid is None and not weights:
            return total / max(labels.shape[0], 1), log_p
        valid = labels != self.ignore_label if valid is None else valid
        return total / self._divisor(self._counts(valid, labels, weights, x), weights), log_p

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gloss, glog_p = grad_outputs
        constants = self.get_retained_inputs()
        (log_p,) = self.get_retained_outputs()
        gx = None
        if gloss is not None:
            node = SoftmaxCrossEntropyGrad(self.reduction, self.ignore_label, self.smoothing)
            gx = node.apply((log_p, gloss, *constants))[0]
        if glog_p is not None:  # the gradient of log_p, under double backprop
            direct = log_softmax_gradient(log_p, glog_p, 1)
            gx = direct if gx is None else gx + direct
        return (gx, *(None for _ in constants))


def _zero_safe_product(weight: Array, losses: Array) -> Array:
    """weight * losses, and 0 for a class of weight 0, whose probability may be 0, too."""
    xp = namespace_of(losses)
    if not is_known_true(xp.isfinite(losses)):
        losses = xp.where(weight == 0, xp.zeros_like(losses), losses)
    return weight * losses


class SoftmaxCrossEntropyGrad(_LabelledRows):
    """gx = g * (e^log_p r - q) / m: the gradient of ``SoftmaxCrossEntropy``.

    log_p: (n, classes), g: 0-d or (n), labels: (n), w: (classes) or none -> gx: (n, classes).
    With h = dL/dgx:   dL/dlog_p = h * g * e^log_p r / m   dL/dg = sum of h * (e^log_p r - q) / m,
    over the row or over all
    """

    input_counts = (3, 4)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 3)

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, g, labels, *weights = inputs
        xp = namespace_of(log_p)
        self.retain_inputs(tuple(range(len(inputs))))
        valid = labels != self.ignore_label
        if self.smoothing:
            return (self._smoothed(log_p, g, labels, valid, weights),)
        gx = _exp_minus_labels(log_p, labels * xp.astype(valid, labels.dtype))
        factor = self._row_factor(valid, g, weights)
        if factor is None:
            gx = self._without_ignored(gx, valid)
            counts = self._counts(valid, labels, weights, log_p)
            factor = (counts * self._scale(g, counts, weights))[:, None]
        gx *= factor
        return (gx,)

    def _smoothed(
        self, log_p: Array, g: Array, labels: Array, valid: Array, weights: Sequence[Array]
    ) -> Array:
        """The gradient with smoothing: q has a part of each class."""
        xp = namespace_of(log_p)
        gx, hot = self._without_ignored(xp.exp(log_p), valid), one_hot_array(labels, log_p)
        counts = self._counts(valid, labels, weights, log_p)
        scale = self._scale(g, counts, weights)
        gx *= (self._row_sums(counts, valid, weights) * scale)[:, None]
        hot *= (counts * scale * (1.0 - self.smoothing))[:, None]
        gx -= hot
        even = (xp.astype(valid, log_p.dtype) * scale * (self.smoothing / log_p.shape[1]))[:, None]
        gx -= even * weights[0] if weights else even
        return gx

    def _without_ignored(self, gx: Array, valid: Array) -> Array:
        """0 in the ignored rows, which may have NaN."""
        if is_known_true(valid):
            return gx
        xp = namespace_of(gx)
        return xp.where(valid[:, None], gx, xp.zeros_like(gx))

    def _row_factor(self, valid: Array, g: Array, weights: Sequence[Array]) -> Array | None:
        """g / m for each row, 0-d or (n, 1), if every row is known to count as one."""
        if weights or self.smoothing or not is_known_true(valid):
            return None
        scale = g / max(valid.shape[0], 1) if self.reduction == "mean" else g
        return scale[:, None] if self.reduction == "none" else scale

    def _row_sums(self, counts: Array, valid: Array, weights: Sequence[Array]) -> Array:
        """r: the sum of q over classes, (n)."""
        if not weights or not self.smoothing:
            return counts
        xp = namespace_of(counts)
        even = xp.astype(valid, counts.dtype) * (mean_array(weights[0]) * self.smoothing)
        return counts * (1.0 - self.smoothing) + even

    def _scale(self, g: Array, counts: Array, weights: Sequence[Array]) -> Array:
        """g / m: (n) or 0-d."""
        return g / self._divisor(counts, weights) if self.reduction == "mean" else g

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        log_p, g, *constants = self.get_retained_inputs()
        arguments = (self.reduction, self.ignore_label, self.smoothing)
        glog_p = gg = None
        if 0 in target_input_indexes:
            rows = RowWeights(*arguments).apply((log_p, g, *constants))[0]
            glog_p = h * Exp().apply((log_p,))[0] * rows
        if 1 in target_input_indexes:
            # gx is linear in g, so the derivative by g is gx at g = 1
            one = full_beside(g, g.shape, 1.0)
            per_g = SoftmaxCrossEntropyGrad(*arguments).apply((log_p, one, *constants))[0]
            gg = sum(h * per_g, axis=1 if self.reduction == "none" else None)
        return (glog_p, gg, *(None for _ in constants))


def _exp_minus_labels(log_p: Array, labels: Array) -> Array:
    """e^log_p, minus 1 at each row's label; a label that is no class has no place in the row."""
    xp = namespace_of(log_p)
    if not is_known_true((labels >= 0) & (labels < log_p.shape[1])):
        return xp.where(one_hot_array(labels, log_p) > 0, xp.expm1(log_p), xp.exp(log_p))
    places = (xp.arange(labels.shape[0], device=log_p.device), labels)
    return put(xp.exp(log_p), places, xp.expm1(log_p[places]))  # e^log_p - 1 cancels near 0


class RowWeights(SoftmaxCrossEntropyGrad):
    """c = g r / m: the factor of each row of e^log_p in the gradient.

    log_p: (n, classes), only shape and dtype count, g: 0-d or (n), labels: (n), w:
    (classes) or none -> c: (n, 1).   dL/dg = sum of dL/dc * r / m, over the row or over all
    """

    def forward(self, inputs: Arrays) -> Arrays:
        log_p, g, labels, *weights = inputs
        self.retain_inputs((0, *range(2, len(inputs))))
        valid = labels != self.ignore_label
        factor = self._row_factor(valid, g, weights)
        if factor is not None:
            xp = namespace_of(log_p)
            return (xp.astype(valid, log_p.dtype)[:, None] * factor,)  # ones, of shape (n, 1)
        counts = self._counts(valid, labels, weights, log_p)
        sums = self._row_sums(counts, valid, weights)
        return ((sums * self._scale(g, counts, weights))[:, None],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gc,) = grad_outputs
        log_p, *constants = self.get_retained_inputs()
        shape = (log_p.shape[0],) if self.reduction == "none" else ()
        one = full_beside(gc, shape, 1.0)
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
    **unknown: Never,
) -> Variable:
    """The cross entropy of softmax(x) against integer labels, or against probabilities.

    loss[i] = -log(softmax(x[i])[labels[i]]).   x: (n, classes) -> loss: (), or (n) for "none".

        >>> scores = tn.asarray([[0.0, 0.0], [0.0, np.log(3.0)]])
        >>> losses = F.softmax_cross_entropy(scores, np.array([0, 1]), reduction="none")
        >>> [round(loss, 4) for loss in losses.tolist()]
        [0.6931, 0.2877]

    Args:
        x: scores before softmax, (n, classes).
        labels: (n), integers from 0 to classes - 1; or probabilities t, (n, classes), floating,
            for the losses -(sum of t * log_softmax(x)), differentiable by t too.
        reduction: "mean" over the counted rows (0 if there are none), "sum", or "none" for a loss
            of each row. With probabilities, the mean divides by n.
        ignore_label: the label of rows to leave out.
        class_weight: a weight for each class, (classes), without a gradient; the mean is then the
            weighted mean over the rows.
        label_smoothing: how much of a label is spread evenly over all classes, from 0 to 1.

    Raises:
        InvalidType: the shapes or dtypes do not fit together.
        ValueError: a label is out of range, the smoothing is, or the reduction is unknown.

    Source of label smoothing: Szegedy et al., Rethinking the Inception Architecture, 2016.
    """
    if unknown:
        raise unknown_keywords("softmax_cross_entropy", unknown)
    x = as_operand("softmax_cross_entropy", "x", x, first_variable(labels, class_weight))
    labels = signed_labels(as_labels("softmax_cross_entropy", labels, x))
    chosen = check_reduction("softmax_cross_entropy", reduction)
    label_smoothing = as_number("softmax_cross_entropy", "label_smoothing", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(
            f"softmax_cross_entropy: label_smoothing must lie in 0 to 1, got {label_smoothing}."
        )
    ignore_label = as_label("softmax_cross_entropy", "ignore_label", ignore_label)
    weights = []
    if class_weight is not None:
        x, weight = promoted(x, _class_weights(x, class_weight))
        weights.append(widened(weight.detach()))
    if is_floating_array(labels.raw) and x.ndim == 2 and labels.shape == x.shape:
        x, labels = promoted(x, labels)
        inputs = [widened(x), labels, *weights]
        return narrowed(_against_probabilities(inputs, reduction, label_smoothing), x)
    node = SoftmaxCrossEntropy(chosen, ignore_label, float(label_smoothing))
    # the sum over the rows soon overflows in float16
    return narrowed(node.apply((widened(x), labels, *weights))[0], x)


def _class_weights(x: Variable, class_weight: Any) -> Variable:
    """The weights of the classes as a Variable, checked."""
    name = "softmax_cross_entropy"
    weight = as_operands(name, class_weight, x, ("class_weight", "x"))[0]
    as_floating(name, "class_weight", weight)
    if weight.shape != x.shape[1:2]:
        raise ValueError(
            f"{name}: class_weight has shape {weight.shape}; beside x of shape {x.shape} it must "
            f"have {x.shape[1:2]}, a weight for each class."
        )
    return weight


def _against_probabilities(inputs: list[Variable], reduction: str, smoothing: float) -> Variable:
    """The cross entropy of softmax(x) against t, both (n, classes); inputs: x, t, and weights."""
    x, t, *weights = inputs
    q = t * (1.0 - smoothing) + smoothing / x.shape[1] if smoothing else t
    log_p = log_softmax(x, axis=1)
    terms = zero_safe_multiply(q, log_p)  # a class of target 0 may have the probability 0
    if weights:
        terms = zero_safe_multiply(weights[0], terms)
    return reduce(-sum(terms, axis=1), reduction)


class TakeLabels(FunctionNode):
    """y_i = x[i, label_i], and 0 where the label is ``ignore_label``.

    x: (n, classes), labels: (n), integer -> y: (n).   dL/dx = PutLabels(dL/dy)
    """

    input_counts = (2,)

    def __init__(self, ignore_label: int) -> None:
        self.ignore_label = checked_label(self, ignore_label)

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels = inputs
        xp = namespace_of(x)
        valid = check_labels("nll", "log_p", labels, x.shape[1], self.ignore_label)
        self.retain_inputs((1,))
        chosen = labels if valid is None else labels * xp.astype(valid, labels.dtype)
        picked = xp.take_along_axis(x, chosen[:, None], axis=1)[:, 0]
        if valid is None:
            return (picked,)
        return (xp.where(valid, picked, xp.zeros((), dtype=x.dtype, device=x.device)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (labels,) = self.get_retained_inputs()
        shape = input_shape(self)
        return PutLabels(self.ignore_label, shape[1]).apply((gy, labels))[0], None


class PutLabels(FunctionNode):
    """y = zeros, but y[i, label_i] = g_i where the label is not ``ignore_label``.

    g: (n), labels: (n), integer -> y: (n, classes).   dL/dg = TakeLabels(dL/dy)
    """

    input_counts = (2,)

    def __init__(self, ignore_label: int, classes: Length) -> None:
        self.ignore_label = checked_label(self, ignore_label)
        self.classes = checked_length(self, "classes", classes)

    def forward(self, inputs: Arrays) -> Arrays:
        g, labels = inputs
        xp = namespace_of(g)
        self.retain_inputs((1,))
        valid = labels != self.ignore_label
        rows = xp.arange(labels.shape[0], dtype=xp.int64, device=g.device) * self.classes
        places = rows + labels * xp.astype(valid, labels.dtype)
        values = xp.where(valid, g, xp.zeros((), dtype=g.dtype, device=g.device))
        y = add_at(places, values, labels.shape[0] * self.classes)
        return (xp.reshape(y, (labels.shape[0], self.classes)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (labels,) = self.get_retained_inputs()
        return TakeLabels(self.ignore_label).apply((gy, labels))[0], None


def nll(
    log_p: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1, **unknown: Never
) -> Variable:
    """The negative log likelihood -log_p[i, label_i] of integer labels.

    dL/dlog_p[i, c] = -dL/dloss at c = label_i, else 0; divided by the number of rows under mean.

    Args:
        log_p: logarithms of probabilities, (n, classes), as from ``log_softmax``.
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the counted rows (0 if there are none), "sum", or "none" for a loss
            of each row.
        ignore_label: the label of rows to leave out.

    Raises:
        OperandError: log_p is not floating, or the labels are not integers.
        ValueError: shapes do not fit together, a label is out of range, or the reduction is
            unknown.
    """
    if unknown:
        raise unknown_keywords("nll", unknown)
    log_p, labels = scores_and_labels("nll", "log_p", log_p, labels)
    check_reduction("nll", reduction)
    ignore_label = as_label("nll", "ignore_label", ignore_label)
    losses = -TakeLabels(ignore_label).apply((log_p, labels))[0]
    return reduce_counted(losses, labels, reduction, ignore_label)


class SigmoidCrossEntropy(BroadcastingNode):
    """y = max(x, 0) - x t + ln(1 + e^-|x|), equal to -t ln(s) - (1 - t) ln(1 - s), s = sigmoid(x).

    x: (s), t: (s) -> y: (s).   dL/dx = dL/dy * SigmoidError(x, t)   dL/dt = -dL/dy * x
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, t = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        zero = xp.zeros((), dtype=x.dtype, device=x.device)
        size, factor = xp.abs(x), xp.where(x > zero, 1.0 - t, t)
        # max(x, 0) - x t = |x| factor; 0, not NaN, where |x| is infinite and the factor is 0
        return (xp.where(factor == 0, zero, size) * factor + xp.log1p(xp.exp(-size)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        x, t = self.get_retained_inputs()
        gx = gt = None
        if 0 in target_input_indexes:
            gx = unbroadcast(gy * SigmoidError().apply((x, t))[0], self, 0)
        if 1 in target_input_indexes:
            gt = unbroadcast(-(gy * x), self, 1)
        return gx, gt


class SigmoidError(BroadcastingNode):
    """z = sigmoid(x) - t; above x = 0 as (1 - t) - sigmoid(-x), which does not cancel at t = 1.

    x: (s), t: (s) -> z: (s).   dL/dx = dL/dz * sigmoid(x) * sigmoid(-x)   dL/dt = -dL/dz
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, t = inputs
        self.retain_inputs((0,))
        xp = namespace_of(x)
        small = sigmoid_of_negative(xp, xp.abs(x))
        positive = xp.astype(x > 0, x.dtype)
        error = positive - t
        error += small * (1.0 - 2.0 * positive)
        return (error,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        (x,) = self.get_retained_inputs()
        gx = gt = None
        if 0 in target_input_indexes:
            gx = unbroadcast(sigmoid_gradient(x, gz), self, 0)
        if 1 in target_input_indexes:
            gt = unbroadcast(-gz, self, 1)
        return gx, gt


class BinaryLabels(FunctionNode):
    """y = t, after a check: a label other than 0, 1 and ``ignore_label`` is an error.

    t: (s), integer -> y: (s). No gradient. As a function, a net checks the labels of each run.
    """

    is_elementwise = True

    def __init__(self, ignore_label: int) -> None:
        self.ignore_label = checked_label(self, ignore_label)

    def forward(self, inputs: Arrays) -> Arrays:
        (t,) = inputs
        flat = namespace_of(t).reshape(t, (-1,))
        check_labels("sigmoid_cross_entropy", "t, of 0 and 1,", flat, 2, self.ignore_label)
        return inputs


def sigmoid_cross_entropy(
    x: Any,
    t: Any,
    reduction: str = "mean",
    ignore_label: int = -1,
    pos_weight: Any = None,
    **unknown: Never,
) -> Variable:
    """-t ln(sigmoid(x)) - (1 - t) ln(1 - sigmoid(x)), elementwise, then reduced.

    dL/dx = dL/dloss * (sigmoid(x) - t), divided by the counted entries under "mean".

    Args:
        x: scores before the sigmoid, (s), floating.
        t: labels 0 and 1, bool, or probabilities in floating point, (s).
        reduction: "mean" over the counted entries (0 if there are none), "sum", or "none".
        ignore_label: the value of integer labels to leave out.
        pos_weight: a factor of the first term, a number or an array that broadcasts to (s).

    Raises:
        OperandError: x is not floating.
        ValueError: the shapes differ, an integer label is out of range, or the reduction is
            unknown.
    """
    if unknown:
        raise unknown_keywords("sigmoid_cross_entropy", unknown)
    x = as_operand("sigmoid_cross_entropy", "x", x, t)
    labels = as_operand("sigmoid_cross_entropy", "t", t, x)
    check_reduction("sigmoid_cross_entropy", reduction)
    ignore_label = as_label("sigmoid_cross_entropy", "ignore_label", ignore_label)
    require_equal_shapes("sigmoid_cross_entropy", x, "t", labels)
    if not is_floating_array(x.raw):
        raise OperandError(f"sigmoid_cross_entropy: x must be floating, got {describe(x)}.")
    if not is_integer_array(labels.raw):
        targets = as_operands("sigmoid_cross_entropy", x, t, names=("x", "t"))[1]
        if not is_floating_array(targets.raw):
            targets = astype(targets, x.dtype)  # bool
        x, targets = promoted(x, targets)
        losses = _binary_losses(widened(x), widened(targets), pos_weight)
        return narrowed(reduce(losses, reduction), x)
    (labels,) = BinaryLabels(ignore_label).apply((signed_labels(labels),))
    is_used = INT64.takes(ignore_label)  # else no label is equal
    valid = not_equal(labels, ignore_label) if is_used else equal(labels, labels)
    wide = widened(x)
    losses = where(valid, _binary_losses(wide, astype(labels, wide.dtype), pos_weight), 0)
    return narrowed(reduce_counted(losses, labels, reduction, ignore_label), x)


def _binary_losses(x: Variable, t: Variable, pos_weight: Any) -> Variable:
    """The losses of ``sigmoid_cross_entropy``, elementwise."""
    if pos_weight is None:
        return SigmoidCrossEntropy().apply((x, t))[0]
    weight = as_operands("sigmoid_cross_entropy", pos_weight, x, ("pos_weight", "x"))[0]
    if not broadcasts_to(weight.shape, x.shape):
        raise ValueError(
            f"sigmoid_cross_entropy: pos_weight has shape {weight.shape}, which does not "
            f"broadcast to that of x, {x.shape}."
        )
    # where a factor is 0, the logarithm may be infinite
    positive = zero_safe_multiply(weight * t, log_sigmoid(x))
    negative = zero_safe_multiply(1.0 - t, log_sigmoid(-x))
    return -(positive + negative)

"""Losses of values, labels, distributions and distances between vectors; shared helpers."""

from __future__ import annotations

import math
from typing import Any, Never

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, any_true, is_known_true, namespace_of, sum_array
from tinynode.devices import is_floating as is_floating_array
from tinynode.devices import is_integer as is_integer_array
from tinynode.errors import OperandError, describe, short_text, unknown_keywords
from tinynode.functions.activation import relu
from tinynode.functions.arithmetic import BroadcastingNode, abs, masked
from tinynode.functions.attributes import Reduction, Shape
from tinynode.functions.checked import checked_float, checked_label, checked_shape
from tinynode.functions.comparison import clip, equal, maximum
from tinynode.functions.data_types import astype, narrowed, promoted, widened
from tinynode.functions.exponential import log, square
from tinynode.functions.indexing import index_list
from tinynode.functions.linalg import vector_norm
from tinynode.functions.operands import (
    as_floating,
    as_label,
    as_number,
    as_operand,
    as_operands,
    first_variable,
    input_shape,
    normalize_axis,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import unbroadcast
from tinynode.functions.statistical import mean, sum

__all__ = [
    "contrastive",
    "cosine_similarity",
    "gaussian_nll",
    "hinge",
    "huber",
    "kl_divergence",
    "mean_absolute_error",
    "mean_squared_error",
    "normalize",
    "triplet_margin",
]
__dir__ = __all__.copy  # for completion


_REDUCTIONS: tuple[Reduction, ...] = ("mean", "sum", "none")


def check_reduction(function: str, reduction: str) -> Reduction:
    """The reduction. Raises ValueError unless it is "mean", "sum" or "none"."""
    for known in _REDUCTIONS:
        if isinstance(reduction, str) and reduction == known:
            return known
    is_mean = isinstance(reduction, str) and reduction == "batchmean"
    hint = ' "mean" is PyTorch\'s "batchmean".' if is_mean else ""
    raise ValueError(
        f'{function}: reduction must be "mean", "sum" or "none", got {short_text(reduction)}.'
        f"{hint}"
    )


def both_floating(
    function: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y")
) -> tuple[Variable, Variable]:
    """Both as floating Variables of one dtype: the differences of small integers wrap around."""
    x, y = as_operands(function, x, y, names)
    x, y = promoted(as_floating(function, names[0], x), as_floating(function, names[1], y))
    return x, y


def require_equal_shapes(function: str, x: Variable, name: str, y: Variable) -> None:
    if x.shape != y.shape:
        raise ValueError(
            f"{function}: x has shape {x.shape}, {name} has {y.shape}: they must be equal. "
            "Reshape one, or use broadcast_to."
        )


def reduce(losses: Variable, reduction: str) -> Variable:
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def mean_squared_error(x: Any, y: Any, reduction: str = "mean", **unknown: Never) -> Variable:
    """(x - y)^2, as the mean, as the sum, or for each element.

    x: (s), y: (s) -> 0-d, or (s) with ``reduction="none"``. With d = x - y and n elements, the
    mean has dL/dx = 2 d / n and dL/dy = -2 d / n.

        >>> F.mean_squared_error(tn.asarray([1.0, 2.0]), tn.asarray([1.0, 4.0])).item()
        2.0

    Raises:
        OperandError: x or y is not floating.
        ValueError: the shapes differ (a broadcast here is a mistake more often than not), or the
            reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("mean_squared_error", unknown)
    x, y = both_floating("mean_squared_error", x, y)
    check_reduction("mean_squared_error", reduction)
    require_equal_shapes("mean_squared_error", x, "y", y)
    losses = (widened(x) - widened(y)) ** 2  # 300 squared is beyond float16
    return narrowed(reduce(losses, reduction), x)


def mean_absolute_error(x: Any, y: Any, reduction: str = "mean", **unknown: Never) -> Variable:
    """|x - y|, as the mean, as the sum, or for each element; the gradient at x = y is 0.

    Raises:
        OperandError: x or y is not floating.
        ValueError: the shapes differ, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("mean_absolute_error", unknown)
    x, y = both_floating("mean_absolute_error", x, y)
    check_reduction("mean_absolute_error", reduction)
    require_equal_shapes("mean_absolute_error", x, "y", y)
    losses = abs(widened(x) - widened(y))
    return narrowed(reduce(losses, reduction), x)


class Huber(FunctionNode):
    """y = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).

    d: (s) -> y: (s).   dL/dd = dL/dy * (d held between -delta and delta)
    """

    is_elementwise = True

    def __init__(self, delta: float) -> None:
        self.delta = checked_float(self, "delta", delta)

    def forward(self, inputs: Arrays) -> Arrays:
        (d,) = inputs
        self.retain_inputs((0,))
        inner = namespace_of(d).clip(d, min=-self.delta, max=self.delta)
        return (inner * (d - inner * 0.5),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (d,) = self.get_retained_inputs()
        return (gy * clip(d, -self.delta, self.delta),)


def huber(
    x: Any, y: Any, delta: float = 1.0, reduction: str = "mean", **unknown: Never
) -> Variable:
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - y; then reduced.

    dL/dx = dL/dloss * (d held between -delta and delta).

    Source: Huber, Robust Estimation of a Location Parameter, 1964.

    Raises:
        OperandError: x or y is not floating, or delta is not a number.
        ValueError: the shapes differ, delta is not positive, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("huber", unknown)
    x, y = both_floating("huber", x, y)
    check_reduction("huber", reduction)
    require_equal_shapes("huber", x, "y", y)
    if not as_number("huber", "delta", delta) > 0:
        raise ValueError(f"huber: delta must be positive, got {delta}.")
    losses = Huber(float(delta)).apply((widened(x) - widened(y),))[0]
    return narrowed(reduce(losses, reduction), x)


def check_labels(
    function: str, argument: str, labels: Array, classes: int, ignore_label: int
) -> Array | None:
    """For each label False if it is ``ignore_label``, else True; or None: every row counts.

    Raises:
        ValueError: a label is neither a class of the argument nor ``ignore_label``.
    """
    xp = namespace_of(labels)
    is_class = (labels >= 0) & (labels < classes)
    if type(ignore_label) is int and not 0 <= ignore_label < classes and is_known_true(is_class):
        return None
    valid = labels != ignore_label
    wrong = valid & ~is_class
    if any_true(wrong):
        example = int(labels[int(xp.argmax(xp.astype(wrong, xp.int8)))])
        raise ValueError(
            f"{function}: labels must lie in 0 to {classes - 1} ({argument} has {classes} "
            f"classes) or be ignore_label={short_text(ignore_label)}, got {example}."
        )
    return valid


def one_hot_array(labels: Array, like: Array) -> Array:
    """1 at each row's label, else 0, in the shape and dtype of ``like``: (n, classes)."""
    xp = namespace_of(like)
    classes = xp.arange(like.shape[1], dtype=xp.int64, device=like.device)
    # a small dtype may not hold all classes
    wide = xp.astype(labels, xp.int64, copy=False)[:, None]
    return xp.astype(wide == classes[None, :], like.dtype)


def signed_labels(labels: Variable) -> Variable:
    """Integers as int64: labels are compared with -1, and PyTorch gathers by int64 only."""
    if labels.dtype != labels.xp.int64 and is_integer_array(labels.filled_array()):
        return astype(labels, labels.xp.int64)
    return labels


def as_labels(function: str, labels: Any, x: Variable) -> Variable:
    """Labels beside scores x, as a Variable; a list of integers becomes an array on x's device."""
    if isinstance(labels, list | tuple):
        return index_list(function, "labels", labels, x)
    return as_operand(function, "labels", labels, x)


def scores_and_labels(
    function: str, argument: str, x: Any, labels: Any
) -> tuple[Variable, Variable]:
    """x: (n, classes), floating, and labels: (n), integer, as Variables."""
    x = as_operand(function, argument, x, labels)
    labels = as_labels(function, labels, x)
    if x.ndim != 2 or labels.shape != x.shape[:1]:
        raise ValueError(
            f"{function}: {argument} must be (n, classes) and labels (n); got shapes {x.shape} "
            f"and {labels.shape}. More axes: bring the classes to the last, and reshape to (-1, "
            "classes) and (-1,)."
        )
    if not is_floating_array(x.raw):
        raise OperandError(f"{function}: {argument} must be floating, got {describe(x)}.")
    if not is_integer_array(labels.raw):
        raise OperandError(f"{function}: labels must be integers, got {describe(labels)}.")
    return x, signed_labels(labels)


class MeanOfCounted(FunctionNode):
    """y = the sum of the losses / m, m = the number of labels other than ``ignore_label``.

    m is 1 at least. losses: (any), labels: (any), integer -> y: 0-d.
    dL/dlosses = dL/dy / m, for each loss
    """

    input_counts = (2,)
    wide = True

    def __init__(self, ignore_label: int) -> None:
        self.ignore_label = checked_label(self, ignore_label)

    def forward(self, inputs: Arrays) -> Arrays:
        losses, labels = inputs
        self.retain_inputs((1,))
        return (sum_array(losses) / self._count(labels, losses),)

    def _count(self, labels: Array, like: Array) -> Array:
        xp = namespace_of(like)
        count = sum_array(xp.astype(labels != self.ignore_label, like.dtype))
        return xp.maximum(count, xp.ones((), dtype=like.dtype, device=like.device))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (labels,) = self.get_retained_inputs()
        shape = input_shape(self)
        return MeanOfCountedGrad(self.ignore_label, shape).apply((gy, labels))[0], None


class MeanOfCountedGrad(MeanOfCounted):
    """y = g / m everywhere: the gradient of ``MeanOfCounted``.

    g: 0-d, labels: (any), integer -> y: (shape).   dL/dg = MeanOfCounted(dL/dy, labels)
    """

    def __init__(self, ignore_label: int, shape: Shape) -> None:
        super().__init__(ignore_label)
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        g, labels = inputs
        self.retain_inputs((1,))
        return (namespace_of(labels).broadcast_to(g / self._count(labels, g), self.shape),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (labels,) = self.get_retained_inputs()
        return MeanOfCounted(self.ignore_label).apply((gy, labels))[0], None


def reduce_counted(
    losses: Variable, labels: Variable, reduction: str, ignore_label: int
) -> Variable:
    """The mean over the counted labels, the sum, or each loss."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    return MeanOfCounted(ignore_label).apply((losses, labels))[0]


class Hinge(FunctionNode):
    """y = max(0, 1 - t x), t = 1 for the label and -1 for other classes; 0 in rows to ignore.

    x: (n, classes), labels: (n), integer -> y: (n, classes).   dL/dx = HingeGrad(x, labels, dL/dy)
    """

    input_counts = (2,)

    def __init__(self, ignore_label: int) -> None:
        self.ignore_label = checked_label(self, ignore_label)

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels = inputs
        xp = namespace_of(x)
        valid = check_labels("hinge", "x", labels, x.shape[1], self.ignore_label)
        self.retain_inputs((0, 1))
        zero = xp.zeros((), dtype=x.dtype, device=x.device)
        losses = xp.maximum(self._margin(x, one_hot_array(labels, x)), zero)
        return (losses if valid is None else xp.where(valid[:, None], losses, zero),)

    def _margin(self, x: Array, hot: Array) -> Array:
        """1 - t x, with t = 2 hot - 1."""
        return (1.0 - 2.0 * hot) * x + 1.0

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        x, labels = self.get_retained_inputs()
        return HingeGrad(self.ignore_label).apply((x, labels, gy))[0], None


class HingeGrad(Hinge):
    """gx = -gy t where t x < 1, else 0, and 0 in rows to ignore: the gradient of ``Hinge``.

    x: (n, classes), labels: (n), integer, gy: (n, classes) -> gx: (n, classes).
    dL/dx = 0   dL/dgy = the same function of dL/dgx
    """

    input_counts = (3,)

    def forward(self, inputs: Arrays) -> Arrays:
        x, labels, gy = inputs
        self.retain_inputs((0, 1))
        hot = one_hot_array(labels, x)
        inside = (self._margin(x, hot) > 0) & (labels != self.ignore_label)[:, None]
        return (masked(gy * (1.0 - 2.0 * hot), inside),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        x, labels = self.get_retained_inputs()
        return None, None, HingeGrad(self.ignore_label).apply((x, labels, ggx))[0]


def hinge(
    x: Any,
    labels: Any,
    reduction: str = "mean",
    ignore_label: int = -1,
    *,
    p: int = 1,
    **unknown: Never,
) -> Variable:
    """max(0, 1 - t x)^p for each class, t = 1 for the label and -1 for the others; then reduced.

    With p = 1:   dL/dx = -dL/dloss * t where t x < 1, else 0.

    Args:
        x: scores, (n, classes), floating.
        labels: (n), integers from 0 to classes - 1.
        reduction: "mean" over the counted rows (0 if there are none) of the sums over classes,
            "sum", or "none": each element.
        ignore_label: the label of rows to leave out.
        p: 1, or 2 for the squared loss.

    Source: Cortes and Vapnik, Support-Vector Networks, 1995; p = 2: Tang, Deep Learning using
    Linear Support Vector Machines, 2013.

    Raises:
        OperandError: x is not floating, or the labels are not integers.
        ValueError: the shapes do not fit together, a label is out of range, the reduction is
            unknown, or p is neither 1 nor 2.
    """
    if unknown:
        raise unknown_keywords("hinge", unknown)
    x, labels = scores_and_labels("hinge", "x", x, labels)
    check_reduction("hinge", reduction)
    if p not in (1, 2):
        raise ValueError(f"hinge: p must be 1 or 2, got {short_text(p)}.")
    ignore_label = as_label("hinge", "ignore_label", ignore_label)
    losses = Hinge(ignore_label).apply((widened(x), labels))[0]
    if p == 2:
        losses = square(losses)
    return narrowed(reduce_counted(losses, labels, reduction, ignore_label), x)


class KLDivergence(BroadcastingNode):
    """y = p (ln p - log_q), and 0 where p = 0.

    log_q: (s), p: (s) -> y: (s).
    dL/dlog_q = -dL/dy * p   dL/dp = dL/dy * (ln p - log_q + 1), and 0 where p = 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        log_q, p = inputs
        xp = namespace_of(p)
        self.retain_inputs((0, 1))
        ratio = xp.log(xp.where(p == 0, xp.ones_like(p), p)) - log_q
        return (p * xp.where(p == 0, xp.zeros_like(ratio), ratio),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        log_q, p = self.get_retained_inputs()
        gq = gp = None
        if 0 in target_input_indexes:
            gq = unbroadcast(-(gy * p), self, 0)
        if 1 in target_input_indexes:
            zero = equal(p, 0)
            ratio = log(where(zero, 1, p)) - log_q + 1.0
            gp = unbroadcast(gy * where(zero, 0, ratio), self, 1)
        return gq, gp


def kl_divergence(log_q: Any, p: Any, reduction: str = "mean", **unknown: Never) -> Variable:
    """p (ln p - log_q), elementwise, where p = 0 counts as 0; the divergence of p from q.

    dL/dlog_q = -dL/dloss * p   dL/dp = dL/dloss * (ln p - log_q + 1)

    Args:
        log_q: logarithms of the model's probabilities, (s).
        p: the target's probabilities, (s).
        reduction: "mean" over the first axis of the sums over the others, "sum", or "none".

    Raises:
        OperandError: log_q or p is not floating.
        ValueError: the shapes differ, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("kl_divergence", unknown)
    log_q, p = both_floating("kl_divergence", log_q, p, ("log_q", "p"))
    check_reduction("kl_divergence", reduction)
    require_equal_shapes("kl_divergence", log_q, "p", p)
    losses = KLDivergence().apply((widened(log_q), widened(p)))[0]
    if reduction != "none":
        losses = sum(losses)
    if reduction == "mean" and log_q.ndim:
        losses = losses / float(log_q.shape[0] or 1)
    return narrowed(losses, log_q)


def normalize(
    x: Any, axis: int = -1, ord: float = 2, eps: float = 1e-12, **unknown: Never
) -> Variable:
    """x / max(|x|, eps), with the p-norm along an axis: vectors of length 1.

    With n = |x| > eps and y = x / n, p = 2:   dL/dx = (g - y (y . g)) / n, where g = dL/dy.

    Args:
        x: floating.
        axis: the axis along which the vectors lie; the last by default.
        ord: p, as for ``linalg.vector_norm``.
        eps: the least divisor; a vector of zeros stays zeros.

    Raises:
        OperandError: x is not floating, or a setting is not a number.
        ValueError: the axis does not exist.
    """
    if unknown:
        raise unknown_keywords("normalize", unknown)
    x = as_floating("normalize", "x", x)
    axis = normalize_axis("normalize", axis, x.ndim)
    as_number("normalize", "ord", ord)
    wide = widened(x)
    norm = vector_norm(wide, axis=axis, keepdims=True, ord=ord)
    return narrowed(wide / maximum(norm, as_number("normalize", "eps", eps)), x)


def cosine_similarity(
    x1: Any, x2: Any, axis: int = -1, eps: float = 1e-8, **unknown: Never
) -> Variable:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along an axis: the cosine of the angle.

    Args:
        x1: (s), floating.
        x2: (t); s and t broadcast.
        axis: the axis of the vectors, after broadcasting; the last by default.
        eps: the least length.

    Returns:
        (the broadcast of s and t, without the axis).

    Raises:
        OperandError: x1 or x2 is not floating.
        ValueError: the shapes do not broadcast, or the axis does not exist.
    """
    if unknown:
        raise unknown_keywords("cosine_similarity", unknown)
    x1, x2 = both_floating("cosine_similarity", x1, x2, ("x1", "x2"))
    ndim = x1.ndim if x1.ndim > x2.ndim else x2.ndim
    axis = normalize_axis("cosine_similarity", axis, ndim) - ndim  # from the end, for both
    product = normalize(widened(x1), axis, 2, eps) * normalize(widened(x2), axis, 2, eps)
    return narrowed(sum(product, axis=axis), x1)


def triplet_margin(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    ord: float = 2,
    reduction: str = "mean",
    **unknown: Never,
) -> Variable:
    """max(0, |a - p| - |a - n| + margin) for each triple of vectors, then reduced.

    Each difference gets 1e-6 added before the norm, as in PyTorch.

    Args:
        anchor: a, (..., features), floating.
        positive: p, vectors of the same class, of a's shape.
        negative: n, vectors of another class, of a's shape.
        margin: how much farther the negative should be.
        ord: p of the norm.
        reduction: "mean", "sum", or "none" for a loss of each triple.

    Source: Schroff et al., FaceNet, 2015.

    Raises:
        OperandError: an argument is not floating.
        ValueError: the shapes differ, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("triplet_margin", unknown)
    name = "triplet_margin"
    beside = first_variable(anchor, positive, negative)
    anchor = as_floating(name, "anchor", anchor, beside)
    positive = as_floating(name, "positive", positive, beside)
    negative = as_floating(name, "negative", negative, beside)
    check_reduction(name, reduction)
    as_number(name, "ord", ord)
    require_equal_shapes(name, anchor, "positive", positive)
    require_equal_shapes(name, anchor, "negative", negative)
    three = promoted(anchor, positive, negative)
    anchor, positive, negative = [widened(x) for x in three]
    near = vector_norm(anchor - positive + 1e-6, axis=-1, ord=ord)
    far = vector_norm(anchor - negative + 1e-6, axis=-1, ord=ord)
    losses = relu(near - far + as_number(name, "margin", margin))
    return narrowed(reduce(losses, reduction), three[0])


def contrastive(
    x1: Any, x2: Any, same: Any, margin: float = 1.0, reduction: str = "mean", **unknown: Never
) -> Variable:
    """d^2 / 2 for pairs of one class, max(0, margin - d)^2 / 2 for others, with d = |x1 - x2|.

    Args:
        x1: (n, features), floating.
        x2: (n, features).
        same: (n), integers or bools: 1 for pairs of one class, else 0.
        margin: the distance from which pairs of two classes cost nothing.
        reduction: "mean", "sum", or "none" for a loss of each pair.

    Source: Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping,
    2006.

    Raises:
        OperandError: x1 or x2 is not floating.
        ValueError: the shapes do not fit together, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("contrastive", unknown)
    beside = first_variable(x1, x2, same)
    x1 = as_floating("contrastive", "x1", x1, beside)
    x2 = as_floating("contrastive", "x2", x2, beside)
    check_reduction("contrastive", reduction)
    require_equal_shapes("contrastive", x1, "x2", x2)
    if x1.ndim != 2:
        raise ValueError(f"contrastive: x1 must be (n, features), its shape is {x1.shape}.")
    same = as_operands("contrastive", same, x1, names=("same", "x1"))[0]
    if same.shape != x1.shape[:1]:
        raise ValueError(
            f"contrastive: same must have shape {x1.shape[:1]}, one entry for each pair, got "
            f"{same.shape}."
        )
    if same.requires_grad:
        raise OperandError(f"contrastive: same must be of 0 and 1, got {describe(same)}.")
    x1, x2 = promoted(x1, x2)
    d = vector_norm(widened(x1) - widened(x2), axis=1)
    y = astype(same, d.dtype)
    apart = relu(as_number("contrastive", "margin", margin) - d)
    losses = (y * d * d + (1.0 - y) * apart * apart) * 0.5
    return narrowed(reduce(losses, reduction), x1)


def gaussian_nll(
    mean: Any,
    y: Any,
    variance: Any,
    reduction: str = "mean",
    full: bool = False,
    eps: float = 1e-6,
    **unknown: Never,
) -> Variable:
    """(ln v + (mean - y)^2 / v) / 2 with v = max(variance, eps): -ln of a normal density.

    dL/dmean = dL/dloss * (mean - y) / v   dL/dv = dL/dloss * (1 - (mean - y)^2 / v) / (2 v)

    Args:
        mean: the predicted means, (s), floating.
        y: the observed values, (s).
        variance: the predicted variances, (s), or of a shape that broadcasts to s.
        reduction: "mean", "sum", or "none".
        full: True adds the constant ln(2 pi) / 2.
        eps: the least variance.

    Source: Nix and Weigend, Estimating the mean and variance of the target probability
    distribution, 1994.

    Raises:
        OperandError: an argument is not floating.
        ValueError: the shapes differ, or the reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("gaussian_nll", unknown)
    beside = first_variable(mean, y, variance)
    mean = as_floating("gaussian_nll", "mean", mean, beside)
    y = as_floating("gaussian_nll", "y", y, beside)
    variance = as_floating("gaussian_nll", "variance", variance, beside)
    check_reduction("gaussian_nll", reduction)
    full = as_flag("gaussian_nll", "full", full)
    if mean.shape != y.shape:
        raise ValueError(
            f"gaussian_nll: mean has shape {mean.shape}, y has {y.shape}: they must be equal."
        )
    three = promoted(mean, y, variance)
    mean, y, variance = [widened(x) for x in three]
    v = maximum(variance, as_number("gaussian_nll", "eps", eps))
    d = mean - y
    losses = (log(v) + d * d / v) * 0.5
    losses = losses + 0.5 * math.log(2.0 * math.pi) if full else losses
    return narrowed(reduce(losses, reduction), three[0])

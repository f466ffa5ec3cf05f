"""Vectors of unit length and the cosine between vectors; losses of distances between vectors."""

from __future__ import annotations

import math
from typing import Any

from tinynode.core.variable import Variable
from tinynode.errors import OperandError, describe
from tinynode.functions.activation import relu
from tinynode.functions.comparison import maximum
from tinynode.functions.data_types import astype, narrowed, widened
from tinynode.functions.exponential import log
from tinynode.functions.linalg import vector_norm
from tinynode.functions.loss import (
    both_floating,
    check_reduction,
    reduce,
    require_equal_shapes,
)
from tinynode.functions.operands import (
    as_floating,
    as_number,
    as_operands,
    first_variable,
    normalize_axis,
)
from tinynode.functions.statistical import sum


def normalize(x: Any, axis: int = -1, ord: float = 2, eps: float = 1e-12) -> Variable:
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
    x = as_floating("normalize", "x", x)
    axis = normalize_axis("normalize", axis, x.ndim)
    wide = widened(x)
    norm = vector_norm(wide, axis=axis, keepdims=True, ord=ord)
    return narrowed(wide / maximum(norm, as_number("normalize", "eps", eps)), x)


def cosine_similarity(x1: Any, x2: Any, axis: int = -1, eps: float = 1e-8) -> Variable:
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
    name = "triplet_margin"
    beside = first_variable(anchor, positive, negative)
    anchor = as_floating(name, "anchor", anchor, beside)
    positive = as_floating(name, "positive", positive, beside)
    negative = as_floating(name, "negative", negative, beside)
    check_reduction(name, reduction)
    require_equal_shapes(name, anchor, "positive", positive)
    require_equal_shapes(name, anchor, "negative", negative)
    near = vector_norm(anchor - positive + 1e-6, axis=-1, ord=ord)
    far = vector_norm(anchor - negative + 1e-6, axis=-1, ord=ord)
    return reduce(relu(near - far + as_number(name, "margin", margin)), reduction)


def contrastive(
    x1: Any, x2: Any, same: Any, margin: float = 1.0, reduction: str = "mean"
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
    y = astype(same, x1.dtype)
    d = vector_norm(x1 - x2, axis=1)
    apart = relu(as_number("contrastive", "margin", margin) - d)
    return reduce((y * d * d + (1.0 - y) * apart * apart) * 0.5, reduction)


def gaussian_nll(
    mean: Any,
    y: Any,
    variance: Any,
    reduction: str = "mean",
    full: bool = False,
    eps: float = 1e-6,
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
    beside = first_variable(mean, y, variance)
    mean = as_floating("gaussian_nll", "mean", mean, beside)
    y = as_floating("gaussian_nll", "y", y, beside)
    variance = as_floating("gaussian_nll", "variance", variance, beside)
    check_reduction("gaussian_nll", reduction)
    if mean.shape != y.shape:
        raise ValueError(
            f"gaussian_nll: mean has shape {mean.shape}, y has {y.shape}: they must be equal."
        )
    v = maximum(variance, as_number("gaussian_nll", "eps", eps))
    d = mean - y
    losses = (log(v) + d * d / v) * 0.5
    return reduce(losses + 0.5 * math.log(2.0 * math.pi) if full else losses, reduction)

"""Rows of the functions of neural networks: activations, losses, convolution, pooling,
normalisation, embedding, dropout, attention.

Requirement: the references are written from the definitions, with loops where these say "for each
window", so that they share no idea with what they check.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial, wraps
from itertools import product
from typing import Any

import numpy as np

import tinynode as tn
from op_cases.cross_entropies import np_log_softmax
from op_cases.elementwise import np_sigmoid
from op_cases.rows import (
    LAYOUTS,
    Input,
    distinct,
    integers,
    mask,
    node,
    nonzero,
    nz,
    pos,
    row,
    x,
)
from tinynode import functions as fn
from tinynode.functions.activation import ELUGrad, HardSiLUGrad, SiLUGrad
from tinynode.functions.convolution import Conv2dGradW, Conv2dGradX
from tinynode.functions.cross_entropies import (
    PutLabels,
    SigmoidCrossEntropy,
    SigmoidError,
    TakeLabels,
)
from tinynode.functions.exponential import ScaledPower
from tinynode.functions.image_windows import Windows
from tinynode.functions.logistic import SigmoidGrad
from tinynode.functions.loss import (
    Hinge,
    HingeGrad,
    Huber,
    KLDivergence,
    MeanOfCounted,
    MeanOfCountedGrad,
)
from tinynode.functions.normalization import batch_norm_with_statistics
from tinynode.functions.pooling import SumBlocks2d
from tinynode.functions.recurrent import GRUSteps, LSTMSteps, StepMask
from tinynode.functions.trigonometric import CircleRoot, Cosine, HyperbolaRoot, TanhGrad

REDUCTIONS = ("mean", "sum", "none")


def far(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of both signs, small and large: on both sides of where a formula changes."""
    return rng.choice([-1.0, 1.0], size=shape) * np.exp(rng.uniform(-3, 1.7, size=shape))


def unlike(*shape: int, **more: Any) -> Input:
    """Values that are well apart, so that a small step makes no other element the largest."""
    return Input(shape, distinct, **more)


# --- activations ---------------------------------------------------------------------------------


def erf(x: Any) -> Any:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x), x.dtype)


def np_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def np_tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def np_elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))


def np_leaky_relu(x: Any, slope: float = 0.01) -> Any:
    return np.where(x > 0, x, slope * x)


def np_softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


def np_hard_sigmoid(x: Any) -> Any:
    return np.minimum(np.maximum(x / 6 + 0.5, 0), 1)


# function, the same in NumPy, values of x, further arguments
ACTIVATIONS: list[tuple[Any, Any, Any, dict[str, Any]]] = [
    (fn.erf, erf, far, {}),
    (fn.gelu, np_gelu, far, {}),
    (fn.gelu, np_tanh_gelu, far, {"approximate": True}),
    (fn.elu, np_elu, nonzero, {}),
    (fn.selu, lambda x: 1.0507009873554805 * np_elu(x, 1.6732632423543772), nonzero, {}),
    (fn.leaky_relu, np_leaky_relu, nonzero, {}),
    (fn.log_sigmoid, lambda x: -np_softplus(-x), far, {}),
    (fn.softplus, np_softplus, far, {}),
    (fn.silu, lambda x: x * np_sigmoid(x), far, {}),
    (fn.hard_tanh, lambda x: np.clip(x, -1, 1), far, {}),
    (fn.hard_sigmoid, np_hard_sigmoid, far, {}),
    (fn.hard_silu, lambda x: x * np_hard_sigmoid(x), far, {}),
]


def ignoring(function: Any, *names: str) -> Any:
    """A reference that takes arguments which choose it and do not change it."""

    def call(*xs: Any, **constants: Any) -> Any:
        return function(*xs, **{k: v for k, v in constants.items() if k not in names})

    return call


for f, ref, make_x, how in ACTIVATIONS:
    activation = partial(row, f.__name__, **how)
    prefix = "tanh-" if how else ""
    ref = ignoring(ref, *how)
    for what, s in (("matrix", (3, 4)), ("0-d", ()), ("zero-size", (0, 3))):
        activation(prefix + what, f, ref, Input(s, make_x))
    for layout in LAYOUTS[:2]:
        activation(prefix + layout, f, ref, Input((3, 4), make_x, layout=layout))
row("leaky_relu", "slope", fn.leaky_relu, np_leaky_relu, nz(3, 4), slope=0.25)
row("leaky_relu", "slope-0", fn.leaky_relu, np_leaky_relu, nz(3, 4), slope=0)
row("leaky_relu", "slope-little-above-1", fn.leaky_relu, np_leaky_relu, nz(3, 4), slope=1.5)
row("leaky_relu", "slope-above-1", fn.leaky_relu, np_leaky_relu, nz(3, 4), slope=1e3)
row("leaky_relu", "of-an-array", fn.leaky_relu, np_leaky_relu, nz(3, 4, raw=True), order=0)
row("elu", "alpha", fn.elu, np_elu, nz(3, 4), alpha=0.3)
row("sigmoid", "far", fn.sigmoid, np_sigmoid, Input((3, 4), far))


def np_softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(np_log_softmax(x, axis))


for what, s, axes in (
    ("last-axis", (2, 3), {}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("middle-axis", (2, 3, 4), {"axis": 1}),
    ("negative-axis", (2, 3, 4), {"axis": -3}),
    ("vector", (4,), {}),
    ("one-class", (3, 1), {}),
    ("zero-size", (0, 3), {}),
):
    row("softmax", what, fn.softmax, np_softmax, x(*s), **axes)
row("softmax", "empty-axis", fn.softmax, np.copy, x(2, 0))
for layout in LAYOUTS[:2]:
    row("softmax", layout, fn.softmax, np_softmax, x(3, 4, layout=layout))
row("softmax", "times-log_softmax", lambda x: fn.softmax(x) * fn.log_softmax(x),
    lambda x: np_softmax(x) * np_log_softmax(x), x(2, 3))  # fmt: skip


def np_glu(x: Any, axis: int = -1) -> Any:
    a, b = np.split(x, 2, axis)
    return a * np_sigmoid(b)


for what, s, axes in (
    ("last-axis", (2, 6), {}),
    ("first-axis", (4, 3), {"axis": 0}),
    ("zero-size", (0, 4), {}),
):
    row("glu", what, fn.glu, np_glu, x(*s), **axes)
row("glu", "strided", fn.glu, np_glu, x(3, 4, layout="strided"))


# the nodes of gradients, which give second orders, on their own: so to third order
def np_softmax_grad(x: Any, g: Any, axis: int) -> Any:
    y = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    return y * (g - (y * g).sum(axis, keepdims=True))


for axis in (0, 1):  # of a softmax, because y has the sum 1
    row("SoftmaxGrad", f"axis-{axis}",
        lambda x, g, axis=axis: fn.SoftmaxGrad(axis).apply((fn.softmax(x, axis), g))[0],
        partial(np_softmax_grad, axis=axis), x(3, 4), x(3, 4))  # fmt: skip
root = math.sqrt(2 * math.pi)
row("GELUGrad", "node", node(fn.GELUGrad),
    lambda x, g: g * (0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / root),
    x(3, 4), x(3, 4))  # fmt: skip
row("LeakyReLUGrad", "node", node(fn.LeakyReLUGrad, 0.1),
    lambda x, g: np.where(x > 0, g, 0.1 * g), nz(3, 4), x(3, 4))  # fmt: skip


row("ELUGrad", "node", node(ELUGrad, 0.5, 2.0),
    lambda x, g: g * np.where(x > 0, 2, np.exp(x)).astype(x.dtype), nz(3, 4), x(3, 4))  # fmt: skip
row("SiLUGrad", "node", node(SiLUGrad),
    lambda x, g: g * np_sigmoid(x) * (1 + x * np_sigmoid(-x)), x(3, 4), x(3, 4))  # fmt: skip
row("TanhGrad", "node", node(TanhGrad), lambda x, g: g / np.cosh(x) ** 2, x(3, 4), x(3, 4))
row("SigmoidGrad", "node", node(SigmoidGrad),
    lambda x, g: g * np_sigmoid(x) * np_sigmoid(-x), x(3, 4), x(3, 4))  # fmt: skip
row("SigmoidError", "node", node(SigmoidError), lambda x, t: np_sigmoid(x) - t, x(3, 4), x(3, 4))
row("Gauss", "node", node(fn.Gauss, 0.5), lambda x: np.exp(x * x * -0.5), x(3, 4))
row("CircleRoot", "node", node(CircleRoot), lambda x: np.sqrt(1 - x * x),
    Input((3, 4), lambda rng, s: rng.uniform(-0.8, 0.8, s)))  # fmt: skip
row("HyperbolaRoot", "node", node(HyperbolaRoot), lambda x: np.sqrt(x * x - 1),
    Input((3, 4), lambda rng, s: rng.uniform(1.5, 4, s)))  # fmt: skip
row("Cosine", "node", node(Cosine), lambda x, y: x / np.hypot(x, y), nz(3, 4), nz(4))
row(
    "ScaledPower", "small-factor", node(ScaledPower, 0.5, -1.5), lambda x: 0.5 * x**-1.5, pos(3, 4)
)
row(
    "ScaledPower", "large-factor", node(ScaledPower, -2.5, 1.5), lambda x: -2.5 * x**1.5, pos(3, 4)
)
row("zero_safe_divide", "broadcast", fn.zero_safe_divide, np.divide, x(3, 4), nz(4))


def np_tanh_gelu_grad(x: Any, g: Any) -> Any:
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return g * 0.5 * (1 + np.tanh(u) + x * slope / np.cosh(u) ** 2)


row("TanhGELUGrad", "node", node(fn.TanhGELUGrad), np_tanh_gelu_grad, x(3, 4), x(3, 4))

# second orders where the gradient that comes in is a constant
constant = "g-without-grad"
row("GELUGrad", constant, node(fn.GELUGrad),
    lambda x, g: g * (0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / root),
    x(3, 4), x(3, 4, grad=False))  # fmt: skip
row("TanhGELUGrad", constant, node(fn.TanhGELUGrad), np_tanh_gelu_grad,
    x(3, 4), x(3, 4, grad=False))  # fmt: skip
row("ELUGrad", constant, node(ELUGrad, 0.5, 2.0),
    lambda x, g: g * np.where(x > 0, 2, np.exp(x)).astype(x.dtype),
    nz(3, 4), x(3, 4, grad=False))  # fmt: skip
row("SiLUGrad", constant, node(SiLUGrad),
    lambda x, g: g * np_sigmoid(x) * (1 + x * np_sigmoid(-x)),
    x(3, 4), x(3, 4, grad=False))  # fmt: skip
row("TanhGrad", constant, node(TanhGrad), lambda x, g: g / np.cosh(x) ** 2,
    x(3, 4), x(3, 4, grad=False))  # fmt: skip
row("SigmoidGrad", constant, node(SigmoidGrad),
    lambda x, g: g * np_sigmoid(x) * np_sigmoid(-x), x(3, 4), x(3, 4, grad=False))  # fmt: skip


def np_hard_silu_grad(x: Any, g: Any) -> Any:
    return g * (np_hard_sigmoid(x) + np.where(np.abs(x) < 3, x / 6, 0))


row("HardSiLUGrad", "node", node(HardSiLUGrad), np_hard_silu_grad, Input((3, 4), far), x(3, 4))
row("HardSiLUGrad", constant, node(HardSiLUGrad), np_hard_silu_grad,
    Input((3, 4), far), x(3, 4, grad=False))  # fmt: skip


# --- losses of two arrays ------------------------------------------------------------------------


def reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else getattr(losses, reduction)()


def np_huber(x: Any, y: Any, delta: float = 1.0, reduction: str = "mean") -> Any:
    d = np.abs(x - y)
    return reduced(np.where(d <= delta, d * d / 2, delta * (d - delta / 2)), reduction)


def np_absolute_error(x: Any, y: Any, reduction: str = "mean") -> Any:
    return reduced(np.abs(x - y), reduction)


def np_kl_divergence(log_q: Any, p: Any, reduction: str = "mean") -> Any:
    p = p.astype(np.result_type(p, log_q))  # the logarithm in the wider dtype
    losses = p * (np.log(p) - log_q)
    if reduction == "mean" and losses.ndim:
        return losses.sum() / losses.dtype.type(max(len(losses), 1))
    return reduced(losses, "none" if reduction == "none" else "sum")


def np_bce(x: Any, t: Any, reduction: str = "mean") -> Any:
    """Of targets in float, from the definition."""
    p = np_sigmoid(x)
    return reduced(-t * np.log(p) - (1 - t) * np.log(1 - p), reduction)


def np_bce_labels(x: Any, t: Any, reduction: str = "mean", ignore_label: int = -1) -> Any:
    valid = t != ignore_label
    losses = np.where(valid, np_bce(x, (t == 1).astype(x.dtype), "none"), 0)
    total = losses.sum() / x.dtype.type(max(valid.sum(), 1))
    return total if reduction == "mean" else reduced(losses, reduction)


def shares(*shape: int, **more: Any) -> Input:
    """Probabilities strictly between 0 and 1."""
    return Input(shape, lambda rng, shape: rng.uniform(0.1, 0.9, size=shape), **more)


def signs(*shape: int, low: int = 0, **more: Any) -> Input:
    """Labels 0 and 1; with low=-1 some are to be ignored."""
    return Input(shape, partial(integers, low=low, high=2), **{"dtype": "int64", **more})


# function, the same in NumPy, values of x and of y
PAIRS: list[tuple[Any, Any, Any, Any]] = [
    (fn.mean_absolute_error, np_absolute_error, x, x),
    (fn.huber, np_huber, lambda *s, **more: Input(s, far, **more), x),
    (fn.kl_divergence, np_kl_divergence, x, shares),
    (fn.sigmoid_cross_entropy, np_bce, x, shares),
]
for f, ref, first, second in PAIRS:
    loss = partial(row, f.__name__)
    for how in REDUCTIONS:
        loss(how, f, ref, first(3, 4), second(3, 4), reduction=how)
    loss("three-axes", f, ref, first(2, 3, 4), second(2, 3, 4))
    loss("0-d", f, ref, first(), second())
    loss("zero-size", f, ref, first(0, 3), second(0, 3), reduction="sum")
    loss("array-of-targets", f, ref, first(3, 4), second(3, 4, raw=True))
    loss("x-without-grad", f, ref, first(3, 4, grad=False), second(3, 4))
    loss("targets-without-grad", f, ref, first(3, 4), second(3, 4, grad=False))
    for layout in LAYOUTS[:2]:
        loss(layout, f, ref, first(3, 4, layout=layout), second(3, 4, layout=layout))
below = Input((2, 3), lambda rng, s: -rng.uniform(2.5, 3, size=s))  # away from all y, so no kink
for f, ref, _, second in PAIRS[:3]:
    y = pos if second is x else second
    pair = replace(below, dtype="float64"), y(2, 3, dtype="float32")
    row(f.__name__, "float64-and-float32", f, ref, *pair, single=True)
row("huber", "delta", fn.huber, np_huber, Input((9,), far), x(9), delta=0.4, reduction="sum")
row("Huber", "node", node(Huber, 0.5),
    lambda x: np_huber(x, 0 * x, 0.5, "none"), Input((3, 4), far))  # fmt: skip
row("SigmoidCrossEntropy", "node", node(SigmoidCrossEntropy),
    partial(np_bce, reduction="none"), Input((3, 4), far), x(3, 4))  # fmt: skip
row("KLDivergence", "node", node(KLDivergence),
    partial(np_kl_divergence, reduction="none"), x(3, 4), shares(3, 4))  # fmt: skip
row("kl_divergence", "of-log_softmax",
    lambda x, t: fn.kl_divergence(fn.log_softmax(x), fn.softmax(t)),
    lambda x, t: np_kl_divergence(np_log_softmax(x), np.exp(np_log_softmax(t))),
    x(3, 4), x(3, 4))  # fmt: skip

bce = partial(row, "sigmoid_cross_entropy")
f, ref = fn.sigmoid_cross_entropy, np_bce_labels
for how in REDUCTIONS:
    bce(f"labels-{how}", f, ref, x(3, 4), signs(3, 4), reduction=how)
    bce(f"labels-{how}-ignore", f, ref, x(3, 4), signs(3, 4, low=-1), reduction=how)
    bce(f"labels-{how}-no-rows", f, ref, x(0, 4), signs(0, 4), reduction=how)
zeros = Input((3, 4), lambda rng, shape: np.zeros(shape), dtype="int64")
bce("labels-all-ignored", f, ref, x(3, 4), zeros, ignore_label=0)
bce("labels-ignore-1", f, ref, x(3, 4), signs(3, 4), ignore_label=1)
bce("labels-int32", f, ref, x(3, 4), signs(3, 4, dtype="int32"))
bce("labels-uint8", f, ref, x(3, 4), signs(3, 4, dtype="uint8"))
bce("labels-bool", f, ref, x(3, 4), mask(3, 4))
bce("labels-array", f, ref, x(3, 4), signs(3, 4, raw=True))
bce("far", f, ref, Input((3, 4), far), signs(3, 4))


# --- losses of labels ----------------------------------------------------------------------------


def np_weighted_cross_entropy(
    x: Any,
    labels: Any,
    reduction: str = "mean",
    ignore_label: int = -1,
    class_weight: Any = None,
    label_smoothing: float = 0.0,
) -> Any:
    """Row by row, class by class."""
    n, classes = x.shape
    w = np.ones(classes) if class_weight is None else np.asarray(class_weight)
    log_p = np_log_softmax(x, 1)
    losses, counts = np.zeros(n), 0.0
    for i, label in enumerate(labels.tolist()):
        if label == ignore_label:
            continue
        counts += w[label]
        for c in range(classes):
            q = (1 - label_smoothing) * (c == label) + label_smoothing / classes
            losses[i] -= w[c] * q * log_p[i, c]
    if reduction == "none":
        return losses.astype(x.dtype)
    return np.asarray(losses.sum() / ((counts or 1) if reduction == "mean" else 1), x.dtype)


def labels(n: int, low: int = 0, dtype: str = "int64", **more: Any) -> Input:
    """Labels of three classes, from 0; with a lower ``low`` some stand for rows to ignore."""
    return Input((n,), partial(integers, low=low, high=3), dtype=dtype, **more)


def with_weights(x: Any, w: Any, labels: Any, **how: Any) -> Any:
    return fn.softmax_cross_entropy(x, labels, class_weight=w, **how)


def np_with_weights(x: Any, w: Any, labels: Any, **how: Any) -> Any:
    return np_weighted_cross_entropy(x, labels, class_weight=w, **how)


cross_entropy = partial(row, "softmax_cross_entropy")
smooth = {"label_smoothing": 0.1}
weights = pos(3, grad=False)
f, ref = fn.softmax_cross_entropy, np_weighted_cross_entropy
for how, ignore in product(REDUCTIONS, (None, -1, 1)):
    what = how if ignore is None else f"{how}-ignore-{ignore}"
    some = labels(7, -1 if ignore == -1 else 0)
    more = {"reduction": how} | ({} if ignore is None else {"ignore_label": ignore})
    cross_entropy(f"smooth-{what}", f, ref, x(7, 3), some, **smooth, **more)
    of_weights = with_weights, np_with_weights, x(7, 3), weights
    cross_entropy(f"weights-{what}", *of_weights, some, **more)
    cross_entropy(f"weights-smooth-{what}", *of_weights, some, **smooth, **more)
cross_entropy("smooth-1", f, ref, x(7, 3), labels(7, -1), label_smoothing=1.0)
cross_entropy("smooth-one-class", f, ref, x(4, 1),
              Input((4,), partial(integers, low=-1, high=1), "int64"), **smooth)  # fmt: skip
cross_entropy("smooth-no-rows", f, ref, x(0, 3), labels(0), **smooth)
cross_entropy("weights-no-rows", with_weights, np_with_weights, x(0, 3), weights, labels(0))
cross_entropy("weights-array", with_weights, np_with_weights, x(7, 3), pos(3, raw=True), labels(7))
cross_entropy("weights-get-no-gradient",
              lambda x, w, labels: with_weights(x, w, labels),
              lambda x, w, labels: np_with_weights(x, np.float32(np.ones(3)), labels),
              x(7, 3), Input((3,), lambda rng, s: np.ones(s), grad=False), labels(7))  # fmt: skip
cross_entropy("weights-one-class", with_weights, np_with_weights, x(4, 1), pos(1, grad=False),
              Input((4,), partial(integers, low=-1, high=1), "int64"), **smooth)  # fmt: skip
cross_entropy("weights-of-labels-0-smooth", with_weights, np_with_weights, x(4, 3),
              Input((3,), lambda rng, s: np.array([0.0, 1.0, 2.0]), grad=False),
              Input((4,), lambda rng, s: np.array([0, 0, -1, 0]), "int64"), **smooth)  # fmt: skip
cross_entropy("uint8-labels", f, ref, x(7, 3), labels(7, dtype="uint8"))
for layout in LAYOUTS[:2]:
    cross_entropy(f"weights-smooth-{layout}", with_weights, np_with_weights,
                  x(7, 3, layout=layout), weights, labels(7, -1), **smooth)  # fmt: skip


def np_nll(log_p: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1) -> Any:
    n = len(labels)
    losses = [0 if k == ignore_label else -log_p[i, k] for i, k in enumerate(labels.tolist())]
    losses = np.asarray(losses, log_p.dtype).reshape(n)
    counts = log_p.dtype.type(max((labels != ignore_label).sum(), 1))
    return losses.sum() / counts if reduction == "mean" else reduced(losses, reduction)


def np_hinge(x: Any, labels: Any, reduction: str = "mean", ignore_label: int = -1) -> Any:
    losses, counts = np.zeros_like(x), 0
    for i, label in enumerate(labels.tolist()):
        if label == ignore_label:
            continue
        counts += 1
        for c in range(x.shape[1]):
            losses[i, c] = max(0, 1 - x[i, c] if c == label else 1 + x[i, c])
    total = losses.sum() / x.dtype.type(counts or 1)
    return total if reduction == "mean" else reduced(losses, reduction)


for f, ref in ((fn.nll, np_nll), (fn.hinge, np_hinge)):
    loss = partial(row, f.__name__)
    for how in REDUCTIONS:
        loss(how, f, ref, x(7, 3), labels(7), reduction=how)
        loss(f"{how}-ignore", f, ref, x(7, 3), labels(7, -1), reduction=how)
        loss(f"{how}-ignore-1", f, ref, x(7, 3), labels(7), reduction=how, ignore_label=1)
    loss("no-rows", f, ref, x(0, 3), labels(0))
    only_ignored = Input((4,), partial(integers, low=-1, high=0), "int64")
    loss("one-class", f, ref, x(3, 1), Input((3,), lambda rng, s: np.array([0, -1, -1]), "int64"))
    loss("all-ignored", f, ref, x(4, 3), only_ignored)
    loss("one-row", f, ref, x(1, 3), labels(1))
    loss("int32-labels", f, ref, x(7, 3), labels(7, dtype="int32"))
    loss("uint8-labels", f, ref, x(7, 3), labels(7, dtype="uint8"))
    loss("labels-array", f, ref, x(7, 3), labels(7, raw=True))
    for layout in LAYOUTS[:2]:
        loss(layout, f, ref, x(7, 3, layout=layout), labels(7, layout=layout))


def np_hinge_grad(x: Any, labels: Any, g: Any) -> Any:
    t = np.where(np.arange(x.shape[1]) == labels[:, None], 1, -1)
    return g * np.where((t * x < 1) & (labels != -1)[:, None], -t, 0).astype(g.dtype)


def np_put_labels(g: Any, labels: Any) -> Any:
    return np.where(np.arange(3) == labels[:, None], g[:, None], 0)


row("Hinge", "node", node(Hinge, -1), partial(np_hinge, reduction="none"), x(7, 3), labels(7, -1))
row("HingeGrad", "node", node(HingeGrad, -1), np_hinge_grad, x(7, 3), labels(7, -1), x(7, 3))
row("TakeLabels", "node", node(TakeLabels, -1),
    lambda x, labels: -np_nll(x, labels, "none"), x(7, 3), labels(7, -1))  # fmt: skip
row("MeanOfCounted", "node", node(MeanOfCounted, -1),
    lambda x, labels: x.sum() / x.dtype.type((labels != -1).sum()),
    x(7), labels(7, -1))  # fmt: skip
row("MeanOfCountedGrad", "node", node(MeanOfCountedGrad, -1, (7, 2)),
    lambda g, labels: np.full((7, 2), g / g.dtype.type((labels != -1).sum())),
    x(), labels(7, -1))  # fmt: skip
row("PutLabels", "node", node(PutLabels, -1, 3), np_put_labels, x(7), labels(7, -1))


# --- convolution ---------------------------------------------------------------------------------


def two(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def padded(x: Any, padding: tuple[int, int], value: float = 0.0) -> Any:
    width = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding]
    return np.pad(x, width, constant_values=value)


def window(x: Any, r: int, q: int, size: Any, stride: Any, dilation: Any = (1, 1)) -> Any:
    """The (r, q)-th window of images, as a view."""
    axes = zip((r, q), size, stride, dilation, strict=True)
    return x[(..., *(slice(i * s, i * s + (k - 1) * d + 1, d) for i, k, s, d in axes))]


def np_conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """For each output channel, for each window: a sum of products."""
    s, p, d = two(stride), two(padding), two(dilation)
    x, size, out = padded(x, p), w.shape[2:], len(w)
    reach = [(k - 1) * e + 1 for k, e in zip(size, d, strict=True)]
    counts = [(n - k) // e + 1 for n, k, e in zip(x.shape[2:], reach, s, strict=True)]
    y = np.zeros((len(x), out, *counts), x.dtype)
    for o, r, q in np.ndindex(out, *counts):
        group = o // (out // groups)
        part = window(x, r, q, size, s, d)[:, group * w.shape[1] : (group + 1) * w.shape[1]]
        y[:, o, r, q] = (part * w[o]).sum((1, 2, 3)) + (0 if b is None else b[o])
    return y


def np_conv1d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Any:
    x, out = np.pad(x, [(0, 0), (0, 0), (padding, padding)]), len(w)
    count = (x.shape[2] - (w.shape[2] - 1) * dilation - 1) // stride + 1
    y = np.zeros((len(x), out, count), x.dtype)
    for o, q in np.ndindex(out, count):
        group = o // (out // groups)
        for c, j in np.ndindex(*w.shape[1:]):
            y[:, o, q] += w[o, c, j] * x[:, group * w.shape[1] + c, q * stride + j * dilation]
        y[:, o, q] += 0 if b is None else b[o]
    return y


def np_conv_transpose2d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Each pixel stamps the kernel, times its value, on the output."""
    s, p, d, extra = two(stride), two(padding), two(dilation), two(output_padding)
    n, channels, *image = x.shape
    out, size = w.shape[1] * groups, w.shape[2:]
    sizes = zip(image, s, d, size, extra, strict=True)
    full = [(m - 1) * t + e * (k - 1) + 1 + more for m, t, e, k, more in sizes]
    y = np.zeros((n, out, *full), x.dtype)
    for c, r, q in np.ndindex(channels, *image):
        first = c // (channels // groups) * w.shape[1]
        part = window(y, r, q, size, s, d)[:, first : first + w.shape[1]]
        part += x[:, c, r, q, None, None, None] * w[c]
    y = y[:, :, p[0] : full[0] - p[0], p[1] : full[1] - p[1]]
    return y if b is None else y + b[:, None, None]


# what is special, shape of x, shape of w, arguments
CONVOLUTIONS: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("square", (2, 2, 4, 4), (3, 2, 2, 2), {}),
    ("rectangular", (2, 2, 4, 5), (2, 2, 3, 2), {}),
    ("one-by-one", (2, 3, 2, 3), (2, 3, 1, 1), {}),
    ("whole-image", (2, 2, 3, 4), (2, 2, 3, 4), {}),
    ("stride", (2, 2, 5, 6), (2, 2, 2, 2), {"stride": 2}),
    ("stride-beyond-kernel", (1, 2, 5, 7), (2, 2, 1, 2), {"stride": (2, 3)}),
    ("padding", (2, 2, 3, 3), (2, 2, 3, 3), {"padding": 1}),
    ("padding-rectangular", (1, 2, 3, 2), (2, 2, 3, 1), {"padding": (2, 1)}),
    ("padding-beyond-kernel", (1, 1, 2, 2), (1, 1, 2, 2), {"padding": 3}),
    ("dilation", (1, 2, 5, 5), (2, 2, 2, 2), {"dilation": 2}),
    ("dilation-rectangular", (1, 2, 3, 6), (2, 2, 2, 3), {"dilation": (1, 2)}),
    (
        "stride-padding-dilation",
        (1, 2, 5, 4),
        (2, 2, 2, 2),
        {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)},
    ),
    ("groups", (2, 4, 3, 3), (2, 2, 2, 2), {"groups": 2}),
    ("depthwise", (1, 3, 4, 3), (6, 1, 2, 2), {"groups": 3, "padding": 1}),
    ("groups-stride", (1, 2, 4, 4), (4, 1, 2, 3), {"groups": 2, "stride": 2, "padding": (0, 1)}),
    ("no-images", (0, 2, 3, 3), (2, 2, 2, 2), {"padding": 1}),
    ("no-outputs", (2, 2, 3, 3), (0, 2, 2, 2), {}),
    ("no-channels", (2, 0, 3, 3), (2, 0, 2, 2), {}),
]
for what, s, t, how in CONVOLUTIONS:
    row("conv2d", what, fn.conv2d, np_conv2d, x(*s), x(*t), **how)
    row("conv2d", f"{what}-bias", fn.conv2d, np_conv2d, x(*s), x(*t), x(t[0]), **how)
conv2d = partial(row, "conv2d")
for layout in LAYOUTS:
    parts = x(2, 2, 3, 4, layout=layout), x(2, 2, 2, 2, layout=layout), x(2, layout=layout)
    conv2d(layout, fn.conv2d, np_conv2d, *parts, padding=1)
pair = fn.conv2d, np_conv2d
conv2d("data-without-grad", *pair, x(1, 2, 3, 3, grad=False), x(2, 2, 2, 2), x(2))
conv2d("kernel-without-grad", *pair, x(1, 2, 3, 3), x(2, 2, 2, 2, grad=False), x(2))
conv2d("only-bias", *pair, x(1, 2, 3, 3, grad=False), x(2, 2, 2, 2, grad=False), x(2))
conv2d("array-of-data", *pair, x(1, 2, 3, 3, raw=True), x(2, 2, 2, 2), x(2))
conv2d("bias-array", *pair, x(1, 2, 3, 3), x(2, 2, 2, 2), x(2, raw=True))
conv2d("same-variable-twice", lambda x: fn.conv2d(x, x, padding=1),
       lambda x: np_conv2d(x, x, padding=1), x(2, 2, 2, 2))  # fmt: skip
conv2d("squared", lambda x, w: fn.conv2d(x, w) ** 2,
       lambda x, w: np_conv2d(x, w) ** 2, x(1, 2, 3, 3), x(2, 2, 2, 2))  # fmt: skip

for what, s, t, how in (
    ("plain", (2, 2, 5), (3, 2, 3), {}),
    ("one-window", (2, 2, 3), (3, 2, 3), {}),
    ("stride", (2, 2, 6), (2, 2, 2), {"stride": 2}),
    ("padding", (2, 2, 3), (2, 2, 3), {"padding": 2}),
    ("dilation", (1, 2, 6), (2, 2, 2), {"dilation": 3}),
    ("everything", (2, 4, 7), (2, 2, 3), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    ("no-signals", (0, 2, 5), (3, 2, 3), {}),
):
    row("conv1d", what, fn.conv1d, np_conv1d, x(*s), x(*t), **how)
    row("conv1d", f"{what}-bias", fn.conv1d, np_conv1d, x(*s), x(*t), x(t[0]), **how)
row("conv1d", "strided", fn.conv1d, np_conv1d, x(2, 2, 5, layout="strided"),
    x(3, 2, 3, layout="transposed"), padding=1)  # fmt: skip

for what, s, t, how in (
    ("square", (2, 2, 3, 3), (2, 3, 2, 2), {}),
    ("rectangular", (1, 2, 3, 2), (2, 2, 1, 3), {}),
    ("stride", (1, 2, 2, 3), (2, 2, 3, 3), {"stride": 2}),
    ("stride-beyond-kernel", (1, 2, 3, 2), (2, 1, 2, 1), {"stride": (3, 2)}),
    ("padding", (1, 2, 3, 3), (2, 2, 3, 3), {"padding": (1, 2)}),
    ("output-padding", (1, 2, 3, 2), (2, 2, 3, 3),
     {"stride": (2, 3), "padding": 1, "output_padding": (1, 2)}),
    ("dilation", (1, 2, 2, 2), (2, 1, 2, 2), {"dilation": (2, 3), "output_padding": 1}),
    ("groups", (2, 4, 2, 2), (4, 3, 2, 2), {"groups": 2}),
    ("everything", (1, 4, 2, 3), (4, 1, 2, 3), {
        "stride": 2, "padding": 1, "output_padding": (0, 1), "dilation": (1, 2), "groups": 2}),
    ("no-images", (0, 2, 3, 3), (2, 1, 2, 2), {}),
):  # fmt: skip
    f, ref = fn.conv_transpose2d, np_conv_transpose2d
    row("conv_transpose2d", what, f, ref, x(*s), x(*t), **how)
    bias = x(t[1] * how.get("groups", 1))
    row("conv_transpose2d", f"{what}-bias", f, ref, x(*s), x(*t), bias, **how)
for layout in LAYOUTS[:2]:
    parts = x(2, 2, 2, 3, layout=layout), x(2, 2, 2, 2, layout=layout)
    row("conv_transpose2d", layout, f, ref, *parts, stride=2)


def np_conv2d_grad_w(
    x: Any, g: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    x = padded(x, padding)
    inputs, outputs = x.shape[1] // groups, g.shape[1] // groups
    gw = np.zeros((g.shape[1], inputs, *size), x.dtype)
    for o, r, q in np.ndindex(*g.shape[1:]):
        first = o // outputs * inputs
        part = window(x, r, q, size, stride, dilation)[:, first : first + inputs]
        gw[o] += (part * g[:, o, r, q, None, None, None]).sum(0)
    return gw


# windows that leave a row of the image over, in two groups
leaving = Windows((2, 2), (2, 1), (1, 0), (1, 2))
row("Conv2dGradX", "node", node(Conv2dGradX, leaving, 2, (5, 4)),
    lambda g, w: np_conv_transpose2d(g, w, None, (2, 1), (1, 0), (1, 0), (1, 2), 2),
    x(2, 4, 3, 2), x(4, 1, 2, 2))  # fmt: skip
row("Conv2dGradW", "node", node(Conv2dGradW, leaving, 2),
    lambda x, g: np_conv2d_grad_w(x, g, *leaving, 2), x(2, 2, 5, 4), x(2, 4, 3, 2))  # fmt: skip
for what, parts in (
    ("images-without-grad", (x(2, 2, 5, 4, grad=False), x(2, 4, 3, 2))),
    ("g-without-grad", (x(2, 2, 5, 4), x(2, 4, 3, 2, grad=False))),
):
    row("Conv2dGradW", what, node(Conv2dGradW, leaving, 2),
        lambda x, g: np_conv2d_grad_w(x, g, *leaving, 2), *parts)  # fmt: skip


def np_bilinear(x1: Any, x2: Any, w: Any, b: Any = None) -> Any:
    y = np.zeros((len(x1), len(w)), x1.dtype)
    for n, o in np.ndindex(*y.shape):
        y[n, o] = x1[n] @ w[o] @ x2[n] + (0 if b is None else b[o])
    return y


row("bilinear", "bias", fn.bilinear, np_bilinear, x(4, 3), x(4, 2), x(5, 3, 2), x(5))
row("bilinear", "without-bias", fn.bilinear, np_bilinear, x(4, 3), x(4, 2), x(5, 3, 2))
row("bilinear", "no-rows", fn.bilinear, np_bilinear, x(0, 3), x(0, 2), x(5, 3, 2), x(5))
row("bilinear", "transposed", fn.bilinear, np_bilinear, x(4, 3, layout="transposed"),
    x(4, 2, layout="reversed"), x(5, 3, 2, layout="strided"))  # fmt: skip
row("bilinear", "same-variable-twice", lambda x, w: fn.bilinear(x, x, w),
    lambda x, w: np_bilinear(x, x, w), x(4, 3), x(2, 3, 3))  # fmt: skip


# --- windows and pooling -------------------------------------------------------------------------


def np_unfold(x: Any, windows: Windows) -> Any:
    n, channels, *image = x.shape
    counts = windows.counts((image[0], image[1]))
    x = padded(x, windows.padding)
    y = np.zeros((channels, *windows.size, n, *counts), x.dtype)
    for r, q in np.ndindex(*counts):
        part = window(x, r, q, windows.size, windows.stride, windows.dilation)
        y[:, :, :, :, r, q] = np.moveaxis(part, 0, -1)
    return y


def np_fold(y: Any, windows: Windows, image: tuple[int, int]) -> Any:
    channels, n, counts = y.shape[0], y.shape[3], y.shape[4:]
    p = windows.padding
    x = np.zeros((n, channels, image[0] + 2 * p[0], image[1] + 2 * p[1]), y.dtype)
    for r, q in np.ndindex(*counts):
        part = window(x, r, q, windows.size, windows.stride, windows.dilation)
        part += np.moveaxis(y[:, :, :, :, r, q], -1, 0)
    return x[:, :, p[0] : p[0] + image[0], p[1] : p[1] + image[1]]


overlapping = Windows((2, 3), (1, 2), (1, 0), (2, 1))
row("Unfold", "node", node(fn.Unfold, overlapping),
    partial(np_unfold, windows=overlapping), x(2, 2, 4, 5))  # fmt: skip
row("Fold", "node", node(fn.Fold, overlapping, (4, 5)),
    partial(np_fold, windows=overlapping, image=(4, 5)), x(2, 2, 3, 2, 4, 2))  # fmt: skip


def np_pool(
    x: Any, kernel_size: Any, stride: Any, padding: Any, border: float, reduce: Any
) -> Any:
    size, p = two(kernel_size), two(padding)
    s = size if stride is None else two(stride)
    x = padded(x, p, border)
    counts = [(n - k) // e + 1 for n, k, e in zip(x.shape[2:], size, s, strict=True)]
    y = np.zeros((*x.shape[:2], *counts), x.dtype)
    for r, q in np.ndindex(*counts):
        y[:, :, r, q] = reduce(window(x, r, q, size, s), (2, 3))
    return y


def np_max_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    return np_pool(x, kernel_size, stride, padding, -np.inf, np.max)


def np_avg_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    return np_pool(x, kernel_size, stride, padding, 0.0, np.mean)


for f, ref in ((fn.max_pool2d, np_max_pool2d), (fn.avg_pool2d, np_avg_pool2d)):
    pool = partial(row, f.__name__)
    for what, s, how in (
        ("square", (2, 2, 4, 4), {"kernel_size": 2}),
        ("rectangular", (2, 2, 4, 6), {"kernel_size": (2, 3)}),
        ("rest-left-out", (1, 2, 5, 5), {"kernel_size": 2}),
        ("overlapping", (2, 2, 5, 5), {"kernel_size": 3, "stride": 1}),
        ("overlapping-rectangular", (1, 2, 5, 6), {"kernel_size": (3, 2), "stride": (2, 1)}),
        ("gaps", (1, 2, 5, 7), {"kernel_size": (1, 2), "stride": (2, 3)}),
        ("padding", (1, 2, 4, 4), {"kernel_size": 2, "padding": 1}),
        ("padding-overlapping", (2, 2, 5, 4), {"kernel_size": 3, "stride": 2, "padding": (1, 0)}),
        ("whole-image", (2, 2, 3, 4), {"kernel_size": (3, 4)}),
        ("one-by-one", (1, 2, 2, 3), {"kernel_size": 1}),
        ("no-images", (0, 2, 3, 3), {"kernel_size": 2, "padding": 1}),
        ("no-channels", (2, 0, 3, 3), {"kernel_size": 2}),
    ):
        pool(what, f, ref, unlike(*s), **how)
    for layout in LAYOUTS:
        pool(layout, f, ref, unlike(2, 2, 4, 5, layout=layout), kernel_size=3, stride=1)
    pool("squared", lambda x, f=f: f(x, 3, 1) ** 2, lambda x, ref=ref: ref(x, 3, 1) ** 2,
         unlike(1, 2, 4, 4))  # fmt: skip
row("max_pool2d", "more-than-128-places", fn.max_pool2d, np_max_pool2d, unlike(1, 1, 12, 13),
    kernel_size=12)  # fmt: skip

row("max_pool2d", "many-rows", fn.max_pool2d, np_max_pool2d, unlike(1, 1, 27, 5),
    kernel_size=(26, 5), stride=1)  # fmt: skip


def winners(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """For windows of 2 x 3: which of the six places won."""
    return rng.integers(0, 6, size=shape)


def np_scatter(g: Any, won: Any, windows: Windows, image: tuple[int, int]) -> Any:
    p = windows.padding
    gx = np.zeros((*g.shape[:2], image[0] + 2 * p[0], image[1] + 2 * p[1]), g.dtype)
    for n, c, r, q in np.ndindex(*g.shape):
        i, j = divmod(int(won[n, c, r, q]), windows.size[1])
        gx[n, c, r * windows.stride[0] + i, q * windows.stride[1] + j] += g[n, c, r, q]
    return gx[:, :, p[0] : p[0] + image[0], p[1] : p[1] + image[1]]


def np_gather(x: Any, won: Any, windows: Windows) -> Any:
    x = padded(x, windows.padding)
    y = np.zeros(won.shape, x.dtype)
    for n, c, r, q in np.ndindex(*won.shape):
        i, j = divmod(int(won[n, c, r, q]), windows.size[1])
        y[n, c, r, q] = x[n, c, r * windows.stride[0] + i, q * windows.stride[1] + j]
    return y


pooling = Windows((2, 3), (1, 2), (1, 0), (1, 1))
won = Input((2, 1, 5, 2), winners, dtype="int8")
row("MaxPool2dGrad", "node", node(fn.MaxPool2dGrad, pooling, (4, 5)),
    partial(np_scatter, windows=pooling, image=(4, 5)), x(2, 1, 5, 2), won)  # fmt: skip
row("TakeWinners", "node", node(fn.TakeWinners, pooling),
    partial(np_gather, windows=pooling), x(2, 1, 4, 5), won)  # fmt: skip


def np_spread(g: Any, windows: Windows, image: tuple[int, int]) -> Any:
    p = windows.padding
    gx = np.zeros((*g.shape[:2], image[0] + 2 * p[0], image[1] + 2 * p[1]), g.dtype)
    for r, q in np.ndindex(*g.shape[2:]):
        part = window(gx, r, q, windows.size, windows.stride)
        part += g[:, :, r, q, None, None] / math.prod(windows.size)
    return gx[:, :, p[0] : p[0] + image[0], p[1] : p[1] + image[1]]


row("AvgPool2dGrad", "node", node(fn.AvgPool2dGrad, pooling, (4, 5)),
    partial(np_spread, windows=pooling, image=(4, 5)), x(2, 1, 5, 2))  # fmt: skip

for what, s in (
    ("images", (2, 3, 3, 4)),
    ("one-pixel", (2, 3, 1, 1)),
    ("no-images", (0, 3, 2, 2)),
):
    row("global_max_pool2d", what, fn.global_max_pool2d, partial(np.max, axis=(2, 3)), unlike(*s))
    row("global_avg_pool2d", what, fn.global_avg_pool2d, partial(np.mean, axis=(2, 3)), x(*s))


def np_upsample(x: Any, scale: Any) -> Any:
    return np.repeat(np.repeat(x, two(scale)[0], 2), two(scale)[1], 3)


for what, s, scale in (
    ("square", (2, 2, 2, 3), 2),
    ("rectangular", (1, 2, 3, 2), (1, 3)),
    ("by-1", (1, 2, 2, 2), 1),
    ("no-images", (0, 2, 2, 2), 2),
):
    row("upsample_nearest2d", what, fn.upsample_nearest2d, np_upsample, x(*s), scale=scale)
row("upsample_nearest2d", "transposed", fn.upsample_nearest2d, np_upsample,
    x(1, 2, 2, 3, layout="transposed"), scale=2)  # fmt: skip


row("SumBlocks2d", "node", node(SumBlocks2d, (2, 3)),
    lambda x: x.reshape(2, 2, 2, 2, 1, 3).sum((3, 5)), x(2, 2, 4, 3))  # fmt: skip


# --- normalisation -------------------------------------------------------------------------------


def np_standardize(x: Any, axes: Any, eps: float, center: bool = True) -> Any:
    m = x.mean(axes, keepdims=True) if center else np.zeros_like(x.sum(axes, keepdims=True))
    r = 1 / np.sqrt(((x - m) ** 2).mean(axes, keepdims=True) + x.dtype.type(eps))
    return (x - m) * r, m, r


def scaled(y: Any, gamma: Any, beta: Any, shape: Any) -> Any:
    y = y if gamma is None else y * gamma.reshape(shape)
    return y if beta is None else y + beta.reshape(shape)


def of_channels(x: Any) -> tuple[int, ...]:
    return (x.shape[1],) + (1,) * (x.ndim - 2)


def but_channels(x: Any) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def np_batch_norm(x: Any, gamma: Any = None, beta: Any = None, eps: float = 1e-5) -> Any:
    return scaled(np_standardize(x, but_channels(x), eps)[0], gamma, beta, of_channels(x))


def np_group_norm(
    x: Any, gamma: Any = None, beta: Any = None, groups: int = 1, eps: float = 1e-5
) -> Any:
    y = np.zeros_like(x)
    size = x.shape[1] // groups
    for n, k in np.ndindex(len(x), groups):
        part = x[n, k * size : (k + 1) * size]
        y[n, k * size : (k + 1) * size] = np_standardize(part, None, eps)[0]
    return scaled(y, gamma, beta, of_channels(x))


def np_instance_norm(x: Any, gamma: Any = None, beta: Any = None, eps: float = 1e-5) -> Any:
    return np_group_norm(x, gamma, beta, x.shape[1], eps)


@wraps(fn.group_norm)
def group_norm(x: Any, gamma: Any = None, beta: Any = None, **how: Any) -> Any:
    return fn.group_norm(x, how.pop("groups"), gamma, beta, **how)


def without(function: Any, position: int) -> Any:
    """The normalisation without one of its parameters: None in its place."""

    @wraps(function)
    def call(x: Any, parameter: Any = None, **how: Any) -> Any:
        pair = (None, parameter) if position == 0 else (parameter, None)
        return function(x, *pair, **how)

    return call


# function, the same in NumPy, shapes of x, arguments; there is a parameter for each channel
NORMALIZATIONS: list[tuple[Any, Any, list[tuple[int, ...]], dict[str, Any]]] = [
    (fn.batch_norm, np_batch_norm, [(5, 3), (3, 2, 4), (2, 2, 3, 2)], {}),
    (group_norm, np_group_norm, [(2, 4), (2, 4, 3), (2, 4, 2, 2)], {"groups": 2}),
    (fn.instance_norm, np_instance_norm, [(2, 3, 4), (2, 2, 2, 3)], {}),
]
for f, ref, shapes, how in NORMALIZATIONS:
    normalization = partial(row, f.__name__, **how)
    for s in shapes:
        what = f"{len(s)}-axes"
        normalization(what, f, ref, x(*s), pos(s[1]), x(s[1]))
    for position, name in enumerate(("gamma", "beta")):
        less = without(f, position), without(ref, position)
        normalization(f"without-{name}", *less, x(*s), pos(s[1]))
    bare = without(f, 0), without(ref, 0)
    normalization("without-both", *bare, x(*s))
    normalization("eps", f, ref, x(*s), pos(s[1]), x(s[1]), eps=0.5)
    normalization("only-parameters", f, ref, x(*s, grad=False), pos(s[1]), x(s[1]))
    normalization("data-only", f, ref, x(*s), pos(s[1], grad=False), x(s[1], raw=True))
    for layout in LAYOUTS[:2]:
        normalization(layout, f, ref, x(*s, layout=layout), pos(s[1]), x(s[1]))
for f, ref, shapes, how in NORMALIZATIONS[1:]:
    s = shapes[-1]
    row(f.__name__, "no-examples", f, ref, x(0, *s[1:]), pos(s[1]), x(s[1]), **how)
row("group_norm", "one-group", group_norm, np_group_norm, x(2, 3, 2), pos(3), x(3), groups=1)
row("batch_norm", "with-statistics", batch_norm_with_statistics,
    lambda x, gamma, beta: (np_batch_norm(x, gamma, beta), x.mean((0, 2)), x.var((0, 2))),
    x(3, 2, 4), pos(2), x(2))  # fmt: skip


def np_fixed_batch_norm(
    x: Any, mean: Any, variance: Any, gamma: Any = None, beta: Any = None, eps: float = 1e-5
) -> Any:
    shape = of_channels(x)
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + x.dtype.type(eps))
    return scaled(y, gamma, beta, shape)


@wraps(fn.fixed_batch_norm)
def fixed_batch_norm(
    x: Any, mean: Any, variance: Any, gamma: Any = None, beta: Any = None, eps: float = 1e-5
) -> Any:
    return fn.fixed_batch_norm(x, gamma, beta, mean, variance, eps)


f, ref = fixed_batch_norm, np_fixed_batch_norm
for s in ((4, 3), (2, 3, 4), (2, 3, 2, 2), (0, 3)):
    what = f"{len(s)}-axes" if s[0] else "no-examples"
    row("fixed_batch_norm", what, f, ref, x(*s), x(3), pos(3), pos(3), x(3))
row("fixed_batch_norm", "without-parameters", f, ref, x(4, 3), x(3), pos(3), eps=0.1)
row("fixed_batch_norm", "without-beta", f, ref, x(4, 3), x(3), pos(3), pos(3))
row("fixed_batch_norm", "without-gamma", lambda *xs: fixed_batch_norm(*xs[:3], None, xs[3]),
    lambda *xs: np_fixed_batch_norm(*xs[:3], None, xs[3]),
    x(4, 3), x(3), pos(3), x(3))  # fmt: skip
row("fixed_batch_norm", "statistics-arrays", f, ref, x(4, 3), x(3, raw=True), pos(3, raw=True),
    pos(3), x(3))  # fmt: skip
row("fixed_batch_norm", "transposed", f, ref, x(4, 3, layout="transposed"), x(3), pos(3))


def np_layer_norm(x: Any, gamma: Any, beta: Any = None, eps: float = 1e-5) -> Any:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    return scaled(np_standardize(x, axes, eps)[0], gamma, beta, gamma.shape)


def np_rms_norm(x: Any, gamma: Any, eps: float = 1e-5) -> Any:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + x.dtype.type(eps)) * gamma


@wraps(fn.layer_norm)
def layer_norm(x: Any, gamma: Any, beta: Any = None, **how: Any) -> Any:
    return fn.layer_norm(x, gamma, beta, **how)


for f, ref in ((layer_norm, np_layer_norm), (fn.rms_norm, np_rms_norm)):
    name = f.__name__
    normalization = partial(row, name)
    for what, s, t in (
        ("rows", (3, 4), (4,)),
        ("vector", (5,), (5,)),
        ("three-axes", (2, 3, 4), (4,)),
        ("two-axes-of-gamma", (2, 3, 4), (3, 4)),
        ("all-axes", (2, 3), (2, 3)),
        ("no-rows", (0, 4), (4,)),
    ):
        parameters = [pos(*t), x(*t)] if name == "layer_norm" else [pos(*t)]
        normalization(what, f, ref, x(*s), *parameters)
    normalization("eps", f, ref, x(3, 4), pos(4), eps=0.5)
    normalization("data-only", f, ref, x(3, 4), pos(4, raw=True))
    normalization("only-gamma", f, ref, x(3, 4, grad=False), pos(4))
    for layout in LAYOUTS[:2]:
        normalization(layout, f, ref, x(3, 4, layout=layout), pos(4))
row("layer_norm", "without-beta", layer_norm, np_layer_norm, x(2, 3, 4), pos(3, 4))


def outputs(kind: Any, *attributes: Any) -> Any:
    """A FunctionNode class as a function that gives all of its outputs."""

    def call(*xs: Any) -> Any:
        return kind(*attributes).apply(xs)

    return call


def standardize_grad(g: Any, y: Any, r: Any, axes: Any, center: bool) -> Any:
    average = partial(np.mean, axis=axes, keepdims=True)
    return r * (g - (average(g) if center else 0) - y * average(g * y))


for axes, center in (((1,), True), ((0, 2), True), ((1,), False), ((0, 1, 2), False)):
    what = f"axes-{'-'.join(map(str, axes))}" + ("" if center else "-off-center")
    three = outputs(fn.Standardize, axes, 0.1, center)
    ref = partial(np_standardize, axes=axes, eps=0.1, center=center)
    row("Standardize", f"three-outputs-{what}", three, ref, x(3, 4, 2))
    kept = tuple(1 if i in axes else n for i, n in enumerate((3, 4, 2)))
    row("StandardizeGrad", what, node(fn.StandardizeGrad, axes, center),
        partial(standardize_grad, axes=axes, center=center),
        x(3, 4, 2), x(3, 4, 2), pos(*kept))  # fmt: skip
row("Standardize", "only-the-mean", lambda x: outputs(fn.Standardize, (0,), 0.1, True)(x)[1],
    lambda x: x.mean(0, keepdims=True), x(3, 4))  # fmt: skip
row("Standardize", "only-the-root", lambda x: outputs(fn.Standardize, (0,), 0.1, True)(x)[2],
    lambda x: np_standardize(x, 0, 0.1)[2], x(3, 4))  # fmt: skip


# --- embedding, dropout, attention ---------------------------------------------------------------


def few_indices(*shape: int, high: int = 4, **more: Any) -> Input:
    """Integers from 0; in more than ``high`` places some of them come twice."""
    return Input(shape, partial(integers, low=0, high=high), **{"dtype": "int64", **more})


def np_embedding(indices: Any, w: Any) -> Any:
    return np.asarray([w[i] for i in indices.ravel()], w.dtype).reshape(*indices.shape, -1)


for what, s in (("vector", (9,)), ("matrix", (3, 5)), ("three-axes", (2, 3, 2)), ("0-d", ())):
    row("embedding", what, fn.embedding, np_embedding, few_indices(*s), x(4, 3))
row("embedding", "no-indices", fn.embedding, lambda i, w: np.zeros((0, 3), w.dtype),
    few_indices(0), x(4, 3))  # fmt: skip
row("embedding", "one-row", fn.embedding, np_embedding, few_indices(9, high=1), x(1, 3))
row("embedding", "int32-indices", fn.embedding, np_embedding,
    few_indices(9, dtype="int32"), x(4, 3))  # fmt: skip
row("embedding", "indices-array", fn.embedding, np_embedding, few_indices(9, raw=True), x(4, 3))
row("embedding", "number", lambda w: fn.embedding(2, w), lambda w: w[2], x(4, 3))
row("embedding", "list", lambda w: fn.embedding([0, 2, 2], w), lambda w: w[[0, 2, 2]], x(4, 3))
for layout in LAYOUTS[:2]:
    row("embedding", layout, fn.embedding, np_embedding, few_indices(3, 4), x(4, 3, layout=layout))
row("StepMask", "node", node(StepMask, "LSTM", 3),
    lambda lengths: np.arange(3)[:, None] < lengths[None, :], few_indices(6),
    order=0)  # fmt: skip


def np_lstm(x: Any, h: Any, c: Any, w: Any) -> Any:
    ys = []
    for of_x in x:
        i, f, g, o = np.split(of_x + h @ w.T, 4, axis=-1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        ys.append(h)
    return np.stack(ys)


def np_gru(x: Any, h: Any, w: Any, b: Any = 0.0) -> Any:
    ys = []
    for of_x in x:
        (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(of_x, 3, -1), np.split(h @ w.T + b, 3, -1)
        z = 1 / (1 + np.exp(-x_z - h_z))
        n = np.tanh(x_n + h_n / (1 + np.exp(-x_r - h_r)))
        h = (1 - z) * n + z * h
        ys.append(h)
    return np.stack(ys)


for what, steps, rows, size in (("small", 3, 2, 2), ("one-step", 1, 2, 1), ("no-rows", 2, 0, 2)):
    parts = x(steps, rows, 4 * size), x(rows, size), x(rows, size), x(4 * size, size)
    row("LSTMSteps", what, node(LSTMSteps, False), np_lstm, *parts)
    row("LSTMSteps", f"{what}-reverse", node(LSTMSteps, True),
        lambda x, *others: np_lstm(x[::-1], *others)[::-1], *parts)  # fmt: skip
    parts = x(steps, rows, 3 * size), x(rows, size), x(3 * size, size)
    row("GRUSteps", what, node(GRUSteps, False), np_gru, *parts)
    row("GRUSteps", f"{what}-bias-reverse", node(GRUSteps, True),
        lambda x, *others: np_gru(x[::-1], *others)[::-1], *parts, x(3 * size))  # fmt: skip


@wraps(fn.dropout)
def dropout(x: Any, ratio: float, seed: int) -> Any:
    return fn.dropout(x, ratio, np.random.default_rng(seed))


def np_dropout(x: Any, ratio: float, seed: int) -> Any:
    kept = np.random.default_rng(seed).random(x.shape) >= ratio
    return x * kept.astype(x.dtype) / x.dtype.type(1 - ratio)


def np_same(x: Any, **ignored: Any) -> Any:
    return x


for what, s in (("matrix", (5, 6)), ("three-axes", (2, 3, 4)), ("0-d", ()), ("zero-size", (0, 3))):
    row("dropout", what, dropout, np_dropout, x(*s), ratio=0.4, seed=3)
row("dropout", "transposed", dropout, np_dropout, x(5, 6, layout="transposed"), ratio=0.4, seed=4)
row("dropout", "ratio-0", dropout, np_same, x(5, 6), ratio=0.0, seed=3)
row("dropout", "same-seed-twice",
    lambda x: (dropout(x, 0.5, 7), dropout(x * x, 0.5, 7)),
    lambda x: (np_dropout(x, 0.5, 7), np_dropout(x * x, 0.5, 7)), x(5, 6))  # fmt: skip


def outside_training(x: Any, **how: Any) -> Any:
    with tn.using_config(train=False):
        return dropout(x, **how)


row("dropout", "outside-training", outside_training, np_same, x(5, 6), ratio=0.5, seed=3)


def np_attention(query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False) -> Any:
    """Query by query: the mean of the values that it may see, weighted by e^score."""
    n, m, e = query.shape[-2], key.shape[-2], value.shape[-1]
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if mask is not None:
        lead = np.broadcast_shapes(lead, mask.shape[:-2])
    query, key, value = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (query, key, value))
    seen = np.broadcast_to(True if mask is None else mask, (*lead, n, m))
    y = np.zeros((*lead, n, e), query.dtype)
    for place in np.ndindex(*lead, n):
        keys = [j for j in range(m) if seen[place][j] and (j <= place[-1] or not causal)]
        if keys:
            scores = key[place[:-1]][keys] @ query[place] / math.sqrt(query.shape[-1] or 1)
            weights = np.exp(scores - scores.max())
            y[place] = weights @ value[place[:-1]][keys] / weights.sum()
    return y


def some_see_nothing(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A mask in which the first query sees no key, and the second sees one."""
    seen = rng.random(size=shape) < 0.6
    seen[..., 0, :] = False
    seen[..., 1, :] = False
    seen[..., 1, 1] = True
    return seen


def seen(*shape: int, **more: Any) -> Input:
    return Input(shape, some_see_nothing, dtype="bool", **more)


attention = partial(row, "scaled_dot_product_attention")
f, ref = fn.scaled_dot_product_attention, np_attention
for what, q, k, v in (
    ("matrices", (3, 2), (4, 2), (4, 5)),
    ("batch", (2, 3, 2), (2, 4, 2), (2, 4, 2)),
    ("heads", (2, 2, 3, 2), (2, 2, 3, 2), (2, 2, 3, 1)),
    ("broadcast-batch", (2, 1, 3, 2), (2, 4, 2), (4, 3)),
    ("one-key", (2, 3, 2), (2, 1, 2), (2, 1, 2)),
    ("no-batch", (0, 3, 2), (0, 4, 2), (0, 4, 2)),
    ("no-queries", (0, 2), (4, 2), (4, 3)),
):
    attention(what, f, ref, x(*q), x(*k), x(*v))
    attention(f"{what}-causal", f, ref, x(*q), x(*k), x(*v), causal=True)
three = x(2, 3, 2), x(2, 4, 2), x(2, 4, 2)
for what, m in (
    ("mask", seen(3, 4)),
    ("mask-of-batch", seen(2, 3, 4)),
    ("mask-broadcast", Input((1, 4), lambda rng, s: [[True, False, True, False]], dtype="bool")),
    ("mask-beyond-batch", seen(2, 1, 3, 4)),
    ("mask-array", seen(3, 4, raw=True)),
):
    attention(what, f, ref, *three, m)
    attention(f"{what}-causal", f, ref, *three, m, causal=True)
nobody = Input((3, 4), lambda rng, s: np.zeros(s), dtype="bool")
attention("mask-of-nobody", f, ref, *three, nobody)
attention("no-keys", f, ref, x(3, 2), x(0, 2), x(0, 2))
attention("no-features", f, ref, x(3, 0), x(4, 0), x(4, 2))
for layout in LAYOUTS[:2]:
    parts = [x(2, 3, 2, layout=layout), x(2, 4, 2, layout=layout), x(2, 4, 2, layout=layout)]
    attention(layout, f, ref, *parts, seen(3, 4, layout=layout))
attention("same-variable",
          lambda x: fn.scaled_dot_product_attention(x, x, x, causal=True),
          lambda x: np_attention(x, x, x, causal=True), x(2, 4, 3))  # fmt: skip

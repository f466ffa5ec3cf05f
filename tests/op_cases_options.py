"""Rows of options: soft targets, weights, betas, modes of padding, named padding, axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_cases import Input, pos, row, x

from tinynode import functions as fn


def np_log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def np_soft(
    x: Any, t: Any, reduction: str = "mean", class_weight: Any = None, label_smoothing: float = 0.0
) -> Any:
    q = t * (1 - label_smoothing) + label_smoothing / x.shape[1]
    losses = -(np_log_softmax(x) * q * (1 if class_weight is None else class_weight)).sum(1)
    how = {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]
    return np.asarray(how(losses), x.dtype)


entropy = fn.softmax_cross_entropy
row("softmax_cross_entropy", "soft-mean", entropy, np_soft, x(4, 3), pos(4, 3))
row("softmax_cross_entropy", "soft-none", entropy, np_soft, x(4, 3), pos(4, 3), reduction="none",
    label_smoothing=0.2)  # fmt: skip
row("softmax_cross_entropy", "soft-weights",
    lambda x, t, w: entropy(x, t, "sum", class_weight=w),
    lambda x, t, w: np_soft(x, t, "sum", class_weight=w), x(4, 3), pos(4, 3), pos(3, raw=True),
)  # fmt: skip


def np_weighted(x: Any, t: Any, p: Any, reduction: str = "mean") -> Any:
    """The formula itself; x is small."""
    losses = p * t * np.log1p(np.exp(-x)) + (1 - t) * np.log1p(np.exp(x))
    return np.asarray(losses.mean() if reduction == "mean" else losses, x.dtype)


def weighted(x: Any, t: Any, p: Any, reduction: str = "mean") -> Any:
    return fn.sigmoid_cross_entropy(x, t, reduction, pos_weight=p)


labels = Input((3, 4), lambda rng, s: rng.integers(0, 2, s), dtype="int64")
row("sigmoid_cross_entropy", "pos-weight", weighted, np_weighted, x(3, 4), pos(3, 4), pos(4))
row("sigmoid_cross_entropy", "pos-weight-of-labels", weighted, np_weighted, x(3, 4), labels,
    pos(4), reduction="none")  # fmt: skip
row("sigmoid_cross_entropy", "pos-weight-number", lambda x, t: weighted(x, t, 2.5),
    lambda x, t: np_weighted(x, t, x.dtype.type(2.5)), x(3, 4), labels)  # fmt: skip

row("softplus", "beta", fn.softplus, lambda x, beta: np.log1p(np.exp(beta * x)) / beta, x(3, 4),
    beta=2.5)  # fmt: skip
row("silu", "beta", fn.silu, lambda x, beta: x / (1 + np.exp(-beta * x)), x(3, 4), beta=1.5)
row("selu", "constants", fn.selu,
    lambda x, alpha, scale: scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    pos(3, 4), alpha=1.5, scale=2.0)  # fmt: skip
row("squeeze", "no-axis", fn.squeeze, np.squeeze, x(1, 3, 1, 2))
row("squeeze", "no-axis-of-length-1", fn.squeeze, np.squeeze, x(3, 2))


def np_average(x: Any, w: Any, axis: int) -> Any:
    return np.asarray(np.average(x, axis, w), x.dtype)


for axis in (0, 1, -1):
    row("mean", f"vector-of-weights-{axis}", lambda x, w, axis: fn.mean(x, axis, weights=w),
        np_average, x(3, 3, 3), pos(3), axis=axis)  # fmt: skip

indices = Input((2, 3), lambda rng, s: np.array([[0, 2, 1], [1, 1, 2]]), dtype="int64")
row("embedding", "padding-index", lambda w, i: fn.embedding(i, w, padding_index=5),
    lambda w, i: w[i], x(4, 2), indices)  # fmt: skip

for mode in ("reflect", "edge"):
    row("pad", mode, lambda x, mode: fn.pad(x, ((1, 2), (3, 0)), mode=mode),
        lambda x, mode: np.pad(x, ((1, 2), (3, 0)), mode), x(3, 4), mode=mode)  # fmt: skip


def np_same(x: Any, w: Any, dilation: int = 1) -> Any:
    d, (out, _, kh, kw) = dilation, w.shape
    before = [d * (k - 1) // 2 for k in (kh, kw)]
    after = [d * (k - 1) - b for k, b in zip((kh, kw), before, strict=True)]
    wide = np.pad(x, ((0, 0), (0, 0), *zip(before, after, strict=True)))
    y = np.zeros((x.shape[0], out, *x.shape[2:]), x.dtype)
    for i, j in np.ndindex(kh, kw):
        part = wide[:, :, i * d : i * d + x.shape[2], j * d : j * d + x.shape[3]]
        y += np.einsum("nchw,oc->nohw", part, w[:, :, i, j])
    return y


def same(x: Any, w: Any, **how: Any) -> Any:
    return fn.conv2d(x, w, padding="same", **how)


row("conv2d", "same", same, np_same, x(1, 2, 4, 5), x(2, 2, 2, 3))
row("conv2d", "same-dilation", same, np_same, x(1, 1, 4, 5), x(1, 1, 3, 2), dilation=2)
row("conv2d", "valid", lambda x, w: fn.conv2d(x, w, padding="valid"),
    lambda x, w: np_same(x, w)[:, :, 1:-1, 1:-1], x(1, 1, 4, 5), x(1, 1, 3, 3))  # fmt: skip

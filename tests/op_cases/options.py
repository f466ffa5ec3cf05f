"""Rows of options: soft targets, weights, betas, modes of padding, named padding, axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from op_cases.networks import np_conv_transpose2d
from op_cases.rows import Input, distinct, pos, row, x
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


def window_elements(n: int, o: int, k: int, s: int, p: int, d: int) -> list[int]:
    """The places along an axis that window o has inside of an axis of length n."""
    return [i for i in (o * s - p + j * d for j in range(k)) if 0 <= i < n]


def np_counts(n: int, k: int, s: int, p: int, d: int) -> int:
    """The windows with ceil_mode, counted one by one: each begins in the image or before."""
    count = 1
    while (count - 1) * s + d * (k - 1) + 1 < n + 2 * p and count * s - p < n:
        count += 1
    return count


def np_max_ceil(x: Any, k: int, s: int, p: int, d: int) -> tuple[Any, Any]:
    n, c, height, width = x.shape
    y = np.zeros((n, c, np_counts(height, k, s, p, d), np_counts(width, k, s, p, d)), x.dtype)
    places = np.zeros(y.shape, np.int64)
    for a, b, r, q in np.ndindex(*y.shape):
        rows = window_elements(height, r, k, s, p, d)
        columns = window_elements(width, q, k, s, p, d)
        part = [(x[a, b, i, j], i * width + j) for i in rows for j in columns]
        y[a, b, r, q], places[a, b, r, q] = max(part)
    return y, places


def max_ceil(x: Any, how: tuple[int, ...]) -> Any:
    return fn.max_pool2d(x, *how, ceil_mode=True)


def unlike(*shape: int) -> Input:
    return Input(shape, distinct)


row("max_pool2d", "dilation", lambda x: fn.max_pool2d(x, 2, 1, 1, 2),
    lambda x: np_max_ceil(x, 2, 1, 1, 2)[0], unlike(2, 2, 4, 5))  # fmt: skip
for what, s, how in (
    ("rest", (2, 2, 5, 6), (2, 2, 0, 1)),
    ("nothing-remains", (1, 2, 4, 6), (2, 2, 0, 1)),
    ("padding", (1, 2, 5, 4), (3, 2, 1, 1)),
    ("begins-behind-the-image", (1, 1, 3, 3), (2, 2, 1, 1)),
    ("dilation", (1, 2, 6, 7), (2, 3, 1, 2)),
):
    row("max_pool2d", f"ceil-{what}", max_ceil, lambda x, how: np_max_ceil(x, *how)[0],
        unlike(*s), how=how)  # fmt: skip
row("max_pool2d", "indices", lambda x: fn.max_pool2d(x, 3, 2, 1, return_indices=True).indices,
    lambda x: np_max_ceil(x, 3, 2, 1, 1)[1], unlike(2, 2, 5, 5), order=0)  # fmt: skip


def np_avg(x: Any, ceil_mode: bool, count_include_pad: bool) -> Any:
    """Windows of 3 by 3, stride 2, padding 1."""
    n, c, *image = x.shape
    k, s, p = 3, 2, 1
    sizes = [np_counts(i, k, s, p, 1) if ceil_mode else (i + 2 * p - k) // s + 1 for i in image]
    y = np.zeros((n, c, *sizes), x.dtype)
    for r, q in np.ndindex(*sizes):
        rows, columns = (
            window_elements(i, o, k, s, p, 1) for i, o in zip(image, (r, q), strict=True)
        )
        number = len(rows) * len(columns)
        if count_include_pad:
            ends = [
                min(o * s - p + k, i + p) - (o * s - p) for i, o in zip(image, (r, q), strict=True)
            ]
            number = ends[0] * ends[1]
        y[:, :, r, q] = x[:, :, rows][..., columns].sum((2, 3)) / x.dtype.type(number)
    return y


for ceil_mode, counted in ((True, True), (True, False), (False, False)):
    for s in ((1, 2, 4, 6), (2, 1, 5, 4)):
        row("avg_pool2d", f"{s}-ceil-{ceil_mode}-counted-{counted}",
            partial(fn.avg_pool2d, kernel_size=3, stride=2, padding=1, ceil_mode=ceil_mode,
                    count_include_pad=counted),
            partial(np_avg, ceil_mode=ceil_mode, count_include_pad=counted), x(*s))  # fmt: skip


def np_unpool(x: Any, indices: Any, image: tuple[int, int]) -> Any:
    y = np.zeros((*x.shape[:2], *image), x.dtype)
    for a, b, r, q in np.ndindex(*x.shape):
        y[(a, b, *divmod(int(indices[a, b, r, q]), image[1]))] += x[a, b, r, q]
    return y


places = Input((1, 2, 2, 2), lambda rng, s: rng.choice(16, s, replace=False), dtype="int64")
row("max_unpool2d", "plain", fn.max_unpool2d,
    lambda x, i, kernel_size: np_unpool(x, i, (4, 4)), x(1, 2, 2, 2), places,
    kernel_size=2)  # fmt: skip
row("max_unpool2d", "size", lambda x, i: fn.max_unpool2d(x, i, 2, output_size=(4, 5)),
    lambda x, i: np_unpool(x, i, (4, 5)), x(1, 2, 2, 2), places)  # fmt: skip
row("max_unpool2d", "padding", lambda x, i: fn.max_unpool2d(x, i, (3, 4), (2, 1), (0, 1)),
    lambda x, i: np_unpool(x, i, (5, 3)), x(1, 2, 2, 2),
    Input((1, 2, 2, 2), lambda rng, s: rng.choice(15, s, replace=False), dtype="int64"),
)  # fmt: skip

for what, width, values in (
    ("pair", 2, (1.5, -2.5)),
    ("each-axis", ((1, 2), (3, 1)), ((1, 2), (3, 4))),
    ("no-width", ((0, 2), (0, 0)), ((1, 2), (3, 4))),
):
    row("pad", f"values-{what}", lambda x, w, v: fn.pad(x, w, v),
        lambda x, w, v: np.pad(x, w, constant_values=v), x(2, 3), w=width, v=values)  # fmt: skip
row("pad", "values-integers", lambda x: fn.pad(x, 1, (7, 8)),
    lambda x: np.pad(x, 1, constant_values=(7, 8)),
    Input((2, 3), lambda rng, s: rng.integers(0, 9, s), dtype="int64"), order=0)  # fmt: skip

classes = Input((5,), lambda rng, s: np.array([0, 2, 1, -1, 2]), dtype="int64")


def np_squared_hinge(x: Any, labels: Any, reduction: str) -> Any:
    t = np.where(np.arange(x.shape[1]) == labels[:, None], 1, -1).astype(x.dtype)
    losses = np.maximum(0, 1 - t * x) ** 2 * (labels != -1)[:, None].astype(x.dtype)
    total = {"mean": losses.sum() / x.dtype.type(4), "none": losses}
    return np.asarray(total[reduction], x.dtype)


for how in ("mean", "none"):
    row("hinge", f"squared-{how}", lambda x, t, reduction: fn.hinge(x, t, reduction, p=2),
        np_squared_hinge, x(5, 3), classes, reduction=how)  # fmt: skip

row("einsum", "lists", lambda x, y: fn.einsum(x, [0, 1], y, [1, 2], [2, 0]),
    lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), x(2, 3), x(3, 4))  # fmt: skip
row("einsum", "lists-without-output", lambda x, y: fn.einsum(x, [..., 3, 1], y, [..., 1, 0]),
    lambda x, y: np.einsum(x, [..., 3, 1], y, [..., 1, 0]), x(2, 2, 3), x(3, 4))  # fmt: skip

row("conv_transpose2d", "output-size",
    lambda x, w: fn.conv_transpose2d(x, w, stride=(2, 3), padding=1, output_size=(6, 6)),
    lambda x, w: np_conv_transpose2d(x, w, stride=(2, 3), padding=1, output_padding=(1, 2)),
    x(1, 2, 3, 2), x(2, 2, 3, 3))  # fmt: skip

row("dropout", "mask-given", lambda x, m: fn.dropout(x, mask=m), lambda x, m: x * m, x(3, 4),
    pos(3, 4))  # fmt: skip


def dropped_twice(x: Any) -> Any:
    y, m = fn.dropout(x, 0.4, np.random.default_rng(3), return_mask=True)
    return y, fn.dropout(x * x, mask=m)


def np_dropped_twice(x: Any) -> Any:
    kept = np.random.default_rng(3).random(x.shape) >= 0.4
    factors = kept.astype(x.dtype) / x.dtype.type(0.6)
    return x * factors, x * x * factors


row("dropout", "mask-again", dropped_twice, np_dropped_twice, x(3, 4))

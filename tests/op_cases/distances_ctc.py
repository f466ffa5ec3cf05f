"""Rows of rectifiers, unit vectors, distances, CTC and samples."""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

import numpy as np

from op_cases.rows import (
    Input,
    distinct,
    nz,
    pos,
    row,
    x,
)
from tinynode import functions as fn

EULER = 0.5772156649015329


# --- rectifiers ----------------------------------------------------------------------------------


def np_prelu(x: Any, w: Any) -> Any:
    if w.size == 1:
        return np.where(x > 0, x, x * w.reshape(()))
    return np.where(x > 0, x, x * w.reshape(w.size, *(1 for _ in x.shape[2:])))


for what, s, t in (
    ("one-slope", (2, 3), (1,)),
    ("0-d-slope", (2, 3), ()),
    ("channels", (2, 3), (3,)),
    ("images", (2, 3, 2, 2), (3,)),
    ("zero-size", (0, 3), (3,)),
):
    row("prelu", what, fn.prelu, np_prelu, nz(*s), x(*t))
row("clipped_relu", "matrix", fn.clipped_relu, lambda x: np.clip(x, 0, 20), nz(3, 4))
row("clipped_relu", "limit", lambda x: fn.clipped_relu(x, 1.0), lambda x: np.clip(x, 0, 1),
    Input((3, 4), distinct))  # fmt: skip
row("relu6", "matrix", lambda x: fn.relu6(x * 5), lambda x: np.clip(x * 5, 0, 6),
    Input((3, 4), distinct))  # fmt: skip
row("relu6", "function", fn.relu6, lambda x: np.clip(x, 0, 6), nz(3, 4))


def np_crelu(x: Any, axis: int = 1) -> Any:
    return np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis)


row("crelu", "matrix", fn.crelu, np_crelu, nz(2, 3))
row("crelu", "last-axis", fn.crelu, np_crelu, nz(2, 3, 2), axis=-1)


def np_maxout(x: Any, size: int, axis: int = 1) -> Any:
    moved = np.moveaxis(x, axis, -1)
    groups = moved.reshape(*moved.shape[:-1], -1, size)
    return np.moveaxis(groups.max(-1), -1, axis)


row("maxout", "matrix", fn.maxout, np_maxout, Input((3, 6), distinct), size=2)
row("maxout", "axis-0", fn.maxout, np_maxout, Input((4, 3, 2), distinct), size=4, axis=0)


# --- unit vectors, distances ---------------------------------------------------------------------


def np_normalize(x: Any, axis: int = -1, ord: float = 2, eps: float = 1e-12) -> Any:
    norm = np.linalg.norm(x, ord, axis, keepdims=True)
    return x / np.maximum(norm, x.dtype.type(eps))


row("normalize", "matrix", fn.normalize, np_normalize, x(3, 4))
row("normalize", "axis-0", fn.normalize, np_normalize, x(3, 4), axis=0)
row("normalize", "ord-1", fn.normalize, np_normalize, nz(3, 4), ord=1)
row("normalize", "large-eps", fn.normalize, np_normalize, x(3, 4), eps=20.0)


def np_cosine(x1: Any, x2: Any, axis: int = -1) -> Any:
    x1, x2 = np.broadcast_arrays(x1, x2)
    return np.sum(np_normalize(x1, axis, eps=1e-8) * np_normalize(x2, axis, eps=1e-8), axis)


row("cosine_similarity", "matrix", fn.cosine_similarity, np_cosine, x(3, 4), x(3, 4))
row("cosine_similarity", "broadcast", fn.cosine_similarity, np_cosine, x(3, 1, 4), x(2, 4))
row("cosine_similarity", "axis-0", fn.cosine_similarity, np_cosine, x(3, 4), x(3, 4), axis=0)


def reduced(losses: Any, reduction: str) -> Any:
    how = {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]
    return np.asarray(how(losses), losses.dtype)


def np_triplet(a: Any, p: Any, n: Any, reduction: str = "mean", margin: float = 1.0) -> Any:
    near = np.linalg.norm(a - p + a.dtype.type(1e-6), axis=-1)
    far = np.linalg.norm(a - n + a.dtype.type(1e-6), axis=-1)
    return reduced(np.maximum(near - far + margin, 0), reduction)


def np_contrastive(x1: Any, x2: Any, same: Any, reduction: str = "mean") -> Any:
    d, y = np.linalg.norm(x1 - x2, axis=1), same.astype(x1.dtype)
    return reduced((y * d**2 + (1 - y) * np.maximum(1 - d, 0) ** 2) / 2, reduction)


def np_gaussian_nll(m: Any, y: Any, v: Any, reduction: str = "mean", full: bool = False) -> Any:
    losses = (np.log(v) + (m - y) ** 2 / v) / 2 + (math.log(2 * math.pi) / 2 if full else 0)
    return reduced(losses.astype(m.dtype), reduction)


for r in ("mean", "sum", "none"):
    row("triplet_margin", r, fn.triplet_margin, np_triplet, x(5, 3), x(5, 3), x(5, 3), reduction=r)
    for kind in ("int64", "bool"):
        row("contrastive", f"{r}-{kind}", fn.contrastive, np_contrastive, x(6, 3), x(6, 3),
            Input((6,), lambda rng, s: np.array([1, 0, 0, 1, 0, 1]), dtype=kind),
            reduction=r)  # fmt: skip
    row("gaussian_nll", r, fn.gaussian_nll, np_gaussian_nll, x(3, 4), x(3, 4), pos(3, 4),
        reduction=r)  # fmt: skip
row("contrastive", "same-array", fn.contrastive, np_contrastive, x(3, 2), x(3, 2),
    Input((3,), lambda rng, s: np.array([1, 0, 1]), dtype="int64", raw=True))  # fmt: skip
row("gaussian_nll", "full", fn.gaussian_nll, np_gaussian_nll, x(3, 4), x(3, 4), pos(4), full=True)


# --- CTC -----------------------------------------------------------------------------------------


def paths(labels: list[int], steps: int, blank: int) -> Any:
    """All alignments of the labels with a number of steps."""
    if steps == 0:
        if not labels:
            yield ()
        return
    classes = {blank, *labels}
    for path in np.ndindex(*([max(classes) + 1] * steps)):
        kept = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in kept if c != blank] == labels:
            yield path


def np_ctc(
    log_p: Any, labels: Any, steps: Any = None, counts: Any = None,
    blank: int = 0, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The sum over all alignments, one by one."""
    n = labels.shape[0]
    steps = np.full(n, log_p.shape[0]) if steps is None else steps
    counts = np.full(n, labels.shape[1]) if counts is None else counts
    losses = np.zeros(n, log_p.dtype)
    for i in range(n):
        total = 0.0
        for path in paths(labels[i, : counts[i]].tolist(), int(steps[i]), blank):
            total += math.exp(math.fsum(float(log_p[t, i, c]) for t, c in enumerate(path)))
        losses[i] = -math.log(total) if total else math.inf
    if reduction == "mean":
        losses = losses / np.maximum(counts, 1).astype(losses.dtype)
    return reduced(losses, reduction)


def ctc_labels(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.array([[1, 1], [2, 1]])[: shape[0], : shape[1]]


def given(*values: int, **more: Any) -> Input:
    return Input((len(values),), lambda rng, s: np.array(values), dtype="int64", **more)


pairs = Input((2, 2), ctc_labels, dtype="int64")
for r in ("mean", "sum", "none"):
    row("ctc_loss", r, fn.ctc_loss, np_ctc, x(3, 2, 3), pairs, reduction=r)
row("ctc_loss", "lengths", fn.ctc_loss, np_ctc, x(4, 2, 3), pairs, given(4, 3), given(1, 2))
row("ctc_loss", "no-labels", fn.ctc_loss, np_ctc, x(3, 2, 3), pairs, given(3, 2), given(0, 1))
row(
    "ctc_loss",
    "impossible",
    fn.ctc_loss,
    np_ctc,
    x(2, 2, 3, grad=False),
    pairs,
    reduction="none",
    order=0,
)
row("ctc_loss", "last-blank", fn.ctc_loss, np_ctc, x(3, 2, 3),
    Input((2, 2), lambda rng, s: np.array([[0, 1], [1, 0]]), dtype="int32", raw=True),
    blank=2)  # fmt: skip
row(
    "ctc_loss",
    "one-step",
    fn.ctc_loss,
    np_ctc,
    x(1, 2, 3),
    Input((2, 1), ctc_labels, dtype="int64"),
)
row(
    "ctc_loss",
    "empty-labels",
    fn.ctc_loss,
    np_ctc,
    x(2, 2, 3),
    Input((2, 0), ctc_labels, dtype="int64"),
)


# --- samples -------------------------------------------------------------------------------------


@wraps(fn.gumbel_softmax)
def gumbel(x: Any, temperature: float, axis: int = -1, hard: bool = False) -> Any:
    return fn.gumbel_softmax(x, temperature, hard, axis, np.random.default_rng(3))


def np_gumbel(x: Any, temperature: float, axis: int = -1, hard: bool = False) -> Any:
    noise = np.random.default_rng(3).gumbel(size=x.shape).astype(x.dtype)
    scores = (x + noise) / x.dtype.type(temperature)
    e = np.exp(scores - scores.max(axis, keepdims=True))
    soft = e / e.sum(axis, keepdims=True)
    return (soft == soft.max(axis, keepdims=True)).astype(x.dtype) if hard else soft


row("gumbel_softmax", "matrix", gumbel, np_gumbel, x(3, 4), temperature=0.7)
row("gumbel_softmax", "axis-0", gumbel, np_gumbel, x(3, 4), temperature=2.0, axis=0)
row("gumbel_softmax", "hard", gumbel, np_gumbel, x(3, 4), temperature=1.0, hard=True,
    smooth=lambda x, temperature, hard: np_gumbel(x, temperature))  # fmt: skip
row("gumbel_softmax", "hard-axis-0", gumbel, np_gumbel, x(3, 4), temperature=1.0, hard=True,
    axis=0, smooth=lambda x, temperature, hard, axis: np_gumbel(x, temperature, axis))  # fmt: skip

"""Values, first and second gradients agree with an independent engine, PyTorch, in float64.

Every function that PyTorch has too is a row: its name, ours, theirs, and the inputs. Runs where
PyTorch is installed (``pip install '.[peers]'``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tinynode as tn

pytestmark = pytest.mark.slow

torch: Any = None
TF: Any = None
F = tn.functions
L = F.linalg

Row = tuple[str, Callable[..., Any], Callable[..., Any], Sequence[np.ndarray]]


@pytest.fixture(autouse=True, scope="module")
def pytorch() -> None:
    """Import PyTorch when a test of this file runs: the import takes seconds."""
    global torch, TF
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")
    TF = torch.nn.functional


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).uniform(0.5, 2.0, shape)


def inside(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).uniform(-0.9, 0.9, shape)


def spd(*shape: int) -> np.ndarray:
    """Symmetric, positive definite, with well separated eigenvalues."""
    a = normal(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))


def square(*shape: int) -> np.ndarray:
    return normal(*shape) + 3.0 * np.eye(shape[-1])


def symmetric(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """f of the symmetric part: so that the gradient is that of a symmetric matrix."""

    def of_symmetric_part(x: Any) -> Any:
        transposed = F.matrix_transpose(x) if isinstance(x, tn.Variable) else x.mT
        return f((x + transposed) * 0.5)

    return of_symmetric_part


labels = np.array([0, 2, -1, 1, 2])
weights = np.array([0.5, 1.5, 2.0])
idx = np.array([0, 2, 2, 1])
mask = np.array([[True, False, True], [False, True, True]])
attend = normal(4, 4, seed=9) > -0.5
attend[:, 0] = True


def t_labels() -> Any:
    return torch.from_numpy(labels)


UNARY = [
    ("exp", normal), ("expm1", normal), ("log", positive), ("log1p", positive), ("log2", positive),
    ("log10", positive), ("sqrt", positive), ("square", normal), ("reciprocal", positive),
    ("sin", normal), ("cos", normal), ("tan", inside), ("asin", inside), ("acos", inside),
    ("atan", normal), ("sinh", normal), ("cosh", normal), ("tanh", normal), ("asinh", normal),
    ("atanh", inside), ("abs", normal), ("negative", normal), ("positive", normal),
    ("sigmoid", normal), ("erf", normal), ("floor", normal), ("ceil", normal), ("round", normal),
    ("trunc", normal), ("sign", normal),
]  # fmt: skip
UNARY_TF = [
    ("relu", "relu"), ("elu", "elu"), ("selu", "selu"), ("silu", "silu"), ("gelu", "gelu"),
    ("softplus", "softplus"), ("log_sigmoid", "logsigmoid"), ("leaky_relu", "leaky_relu"),
    ("hard_tanh", "hardtanh"), ("hard_silu", "hardswish"),
]  # fmt: skip
BINARY = [
    ("add", normal), ("subtract", normal), ("multiply", normal), ("divide", positive),
    ("maximum", normal), ("minimum", normal), ("hypot", normal), ("logaddexp", normal),
    ("atan2", normal), ("copysign", normal), ("remainder", positive), ("pow", positive),
]  # fmt: skip


def rows() -> list[Row]:
    table: list[Row] = []
    for name, make in UNARY:
        table.append((name, getattr(F, name), getattr(torch, name), [make(3, 4)]))
    for name, theirs in UNARY_TF:
        table.append((name, getattr(F, name), getattr(TF, theirs), [normal(3, 4)]))
    for name, make in BINARY:
        ours, theirs_f = getattr(F, name), getattr(torch, name)
        table.append((name, ours, theirs_f, [make(3, 4), make(3, 4, seed=1)]))
        table.append((name + " broadcast", ours, theirs_f, [make(3, 1), make(2, 1, 4, seed=1)]))
    return (
        table
        + more_rows()
        + network_rows()
        + linalg_rows()
        + special_rows()
        + loss_rows()
        + volume_rows()
    )


def more_rows() -> list[Row]:
    x, y = normal(3, 4), normal(3, 4, seed=1)
    zeros = x * (np.abs(x) > 0.6)
    return [
        ("acosh", F.acosh, torch.acosh, [positive(3, 4) + 1.0]),
        # PyTorch's own hardsigmoid has a 1/6 of single precision in its gradient
        ("hard_sigmoid", F.hard_sigmoid, lambda a: torch.clamp(a / 6 + 0.5, 0, 1), [x]),
        ("pow 3", lambda a: a**3, lambda a: a**3, [x]),
        ("pow 2.5", lambda a: a**2.5, lambda a: a**2.5, [positive(3)]),
        ("pow -1", lambda a: a**-1, lambda a: a**-1, [positive(3)]),
        ("2 ** x", lambda a: 2.0**a, lambda a: 2.0**a, [x]),
        ("where", lambda a, b: F.where(mask, a, b),
         lambda a, b: torch.where(torch.from_numpy(mask), a, b), [normal(2, 3), normal(3)]),
        ("clip", lambda a: F.clip(a, -0.5, 0.7), lambda a: torch.clamp(a, -0.5, 0.7), [x]),
        ("sum", F.sum, torch.sum, [x]),
        ("sum axis", lambda a: F.sum(a, axis=(0, -1), keepdims=True),
         lambda a: torch.sum(a, (0, -1), True), [normal(2, 3, 4)]),
        ("mean axis", lambda a: F.mean(a, axis=1), lambda a: torch.mean(a, 1), [x]),
        ("max", F.max, lambda a: torch.amax(a, (0, 1)), [x]),
        ("max ties", lambda a: F.max(F.round(a) + a * 0, axis=1),
         lambda a: torch.amax(torch.round(a) + a * 0, 1), [x]),
        ("min axis", lambda a: F.min(a, axis=0), lambda a: torch.amin(a, 0), [x]),
        ("prod", F.prod, torch.prod, [x]),
        ("prod zeros", lambda a: F.prod(a, axis=1), lambda a: torch.prod(a, 1), [zeros]),
        ("var", lambda a: F.var(a, axis=1, correction=1), lambda a: torch.var(a, 1), [x]),
        ("std", lambda a: F.std(a, axis=0), lambda a: torch.std(a, 0, correction=0), [x]),
        ("cumulative_sum", lambda a: F.cumulative_sum(a, axis=1),
         lambda a: torch.cumsum(a, 1), [x]),
        ("cumulative_prod", lambda a: F.cumulative_prod(a, axis=1),
         lambda a: torch.cumprod(a, 1), [x]),
        ("cumulative_prod zeros", lambda a: F.cumulative_prod(a, axis=0),
         lambda a: torch.cumprod(a, 0), [zeros]),
        ("diff", lambda a: F.diff(a, n=2, axis=1), lambda a: torch.diff(a, 2, 1), [x]),
        ("logsumexp", lambda a: F.logsumexp(a, axis=1), lambda a: torch.logsumexp(a, 1), [x]),
        ("tril", lambda a: F.tril(a, k=-1), lambda a: torch.tril(a, -1), [x]),
        ("triu", lambda a: F.triu(a, k=1), lambda a: torch.triu(a, 1), [x]),
        ("pad", lambda a: F.pad(a, ((1, 0), (2, 3)), 0.5),
         lambda a: TF.pad(a, (2, 3, 1, 0), value=0.5), [x]),
        ("meshgrid", lambda a, b: F.meshgrid(a, b)[1] * F.meshgrid(a, b)[0],
         lambda a, b: torch.mul(*torch.meshgrid(a, b, indexing="xy")), [normal(3), normal(2)]),
        ("repeat each", lambda a: F.repeat(a, [2, 0, 1], axis=0),
         lambda a: torch.repeat_interleave(a, torch.tensor([2, 0, 1]), 0), [normal(3, 2)]),
        ("reshape", lambda a: F.reshape(a, (2, -1)) ** 2, lambda a: a.reshape(2, -1) ** 2, [x]),
        ("permute_dims", lambda a: F.permute_dims(a, (2, 0, 1)) ** 2,
         lambda a: a.permute(2, 0, 1) ** 2, [normal(2, 3, 4)]),
        ("moveaxis", lambda a: F.moveaxis(a, 0, -1), lambda a: torch.moveaxis(a, 0, -1),
         [normal(2, 3, 4)]),
        ("broadcast_to", lambda a: F.broadcast_to(a, (3, 4)),
         lambda a: torch.broadcast_to(a, (3, 4)), [normal(4)]),
        ("concat", lambda a, b: F.concat([a, b], axis=1),
         lambda a, b: torch.cat([a, b], 1), [x, y]),
        ("stack", lambda a, b: F.stack([a, b], axis=1),
         lambda a, b: torch.stack([a, b], 1), [x, y]),
        ("unstack", lambda a: F.unstack(a, axis=1)[2], lambda a: torch.unbind(a, 1)[2], [x]),
        ("split", lambda a: F.split(a, 2, axis=1)[1], lambda a: torch.split(a, 2, 1)[1], [x]),
        ("flip", lambda a: F.flip(a, axis=1), lambda a: torch.flip(a, (1,)), [x]),
        ("roll", lambda a: F.roll(a, (1, -2), axis=(0, 1)),
         lambda a: torch.roll(a, (1, -2), (0, 1)), [x]),
        ("roll flat", lambda a: F.roll(a, 3), lambda a: torch.roll(a, 3), [x]),
        ("tile", lambda a: F.tile(a, (2, 1, 3)), lambda a: torch.tile(a, (2, 1, 3)), [x]),
        ("repeat", lambda a: F.repeat(a, 3, axis=1),
         lambda a: torch.repeat_interleave(a, 3, 1), [x]),
        ("expand_dims", lambda a: F.expand_dims(a, axis=1), lambda a: a[:, None], [x]),
        ("squeeze", lambda a: F.squeeze(a, 1), lambda a: torch.squeeze(a, 1), [normal(3, 1, 4)]),
        ("getitem", lambda a: a[::-1, None, 1:3] ** 2,
         lambda a: torch.flip(a, (0,))[:, None, 1:3] ** 2, [x]),
        ("getitem array", lambda a: a[idx] ** 2, lambda a: a[torch.from_numpy(idx)] ** 2, [x]),
        ("getitem arrays", lambda a: a[idx, np.array([1, 1, 3, 0])],
         lambda a: a[torch.from_numpy(idx), torch.tensor([1, 1, 3, 0])], [x]),
        ("getitem mixed", lambda a: a[:, idx, None] ** 2,
         lambda a: a[:, torch.from_numpy(idx), None] ** 2, [x]),
        ("getitem bool", lambda a: a[mask] ** 2,
         lambda a: a[torch.from_numpy(mask)] ** 2, [normal(2, 3)]),
        ("take", lambda a: F.take(a, idx, axis=1),
         lambda a: torch.index_select(a, 1, torch.from_numpy(idx)), [x]),
        ("take_along_axis", lambda a: F.take_along_axis(a, idx[None, :2], axis=0),
         lambda a: torch.take_along_dim(a, torch.from_numpy(idx[None, :2]), 0), [normal(3, 2)]),
        ("sort", lambda a: F.sort(a, axis=1), lambda a: torch.sort(a, 1)[0], [x]),
        ("sort descending", lambda a: F.sort(a, axis=0, descending=True),
         lambda a: torch.sort(a, 0, descending=True)[0], [x]),
        ("matmul", F.matmul, torch.matmul, [normal(2, 3, 4), normal(4, 5)]),
        ("matmul vector", F.matmul, torch.matmul, [normal(2, 3, 4), normal(4)]),
        ("tensordot", lambda a, b: F.tensordot(a, b, axes=((0, 2), (1, 0))),
         lambda a, b: torch.tensordot(a, b, ((0, 2), (1, 0))), [normal(2, 3, 4), normal(4, 2, 5)]),
        ("vecdot", lambda a, b: F.vecdot(a, b), torch.linalg.vecdot, [x, normal(4)]),
        ("matrix_transpose", F.matrix_transpose, lambda a: a.mT, [x]),
        ("einsum", lambda a, b: F.einsum("bij,bjk->bik", a, b),
         lambda a, b: torch.einsum("bij,bjk->bik", a, b), [normal(2, 3, 4), normal(2, 4, 3)]),
        ("einsum trace", lambda a: F.einsum("ii->i", a), lambda a: torch.einsum("ii->i", a),
         [normal(3, 3)]),
        ("einsum three", lambda a, b, c: F.einsum("ij,jk,kl", a, b, c),
         lambda a, b, c: torch.einsum("ij,jk,kl", a, b, c),
         [normal(2, 3), normal(3, 4), normal(4, 2)]),
        ("einsum dots", lambda a, b: F.einsum("...i,i->...", a, b),
         lambda a, b: torch.einsum("...i,i->...", a, b), [normal(2, 3, 4), normal(4)]),
        ("einsum sum", lambda a, b: F.einsum("ij,k->k", a, b),
         lambda a, b: torch.einsum("ij,k->k", a, b), [x, normal(5)]),
    ]  # fmt: skip


def network_rows() -> list[Row]:
    x = normal(5, 3)
    image = normal(2, 4, 7, 6)
    q = [normal(2, 4, 5), normal(2, 4, 5, seed=1), normal(2, 4, 3, seed=2)]
    norm = [normal(2, 4, 3), positive(4), normal(4)]
    return [
        ("gelu tanh", lambda a: F.gelu(a, approximate=True),
         lambda a: TF.gelu(a, approximate="tanh"), [x]),
        ("softmax", lambda a: F.softmax(a, axis=0), lambda a: TF.softmax(a, 0), [x]),
        ("log_softmax", F.log_softmax, lambda a: TF.log_softmax(a, -1), [x]),
        ("glu", lambda a: F.glu(a, axis=1), lambda a: TF.glu(a, 1), [normal(3, 4)]),
        ("linear", F.linear, TF.linear, [normal(2, 5, 3), normal(4, 3), normal(4)]),
        ("bilinear", F.bilinear, TF.bilinear,
         [normal(5, 3), normal(5, 2), normal(4, 3, 2), normal(4)]),
        ("embedding", lambda w: F.embedding(np.array([[0, 2], [2, 2]]), w),
         lambda w: TF.embedding(torch.tensor([[0, 2], [2, 2]]), w), [x]),
        *[(f"softmax_cross_entropy {r} {s} {w}",
           lambda a, r=r, s=s, w=w: F.softmax_cross_entropy(
               a, labels, r, class_weight=weights if w else None, label_smoothing=s),
           lambda a, r=r, s=s, w=w: TF.cross_entropy(
               a, t_labels(), torch.from_numpy(weights) if w else None, ignore_index=-1,
               reduction=r, label_smoothing=s), [x])
          for r in ("mean", "sum", "none") for s in (0.0, 0.1) for w in (False, True)],
        *[(f"{ours} {r}", lambda a, b, ours=ours, r=r: getattr(F, ours)(a, b, reduction=r),
           lambda a, b, theirs=theirs, r=r: getattr(TF, theirs)(a, b, reduction=r),
           [x, normal(5, 3, seed=1)])
          for ours, theirs in (("mean_squared_error", "mse_loss"),
                               ("mean_absolute_error", "l1_loss"), ("huber", "huber_loss"))
          for r in ("mean", "sum", "none")],
        ("sigmoid_cross_entropy", F.sigmoid_cross_entropy, TF.binary_cross_entropy_with_logits,
         [x, positive(5, 3) / 2]),
        ("kl_divergence", F.kl_divergence,
         lambda a, b: TF.kl_div(a, b, reduction="batchmean"), [x, positive(5, 3)]),
        ("nll", lambda a: F.nll(a, labels),
         lambda a: TF.nll_loss(a, t_labels(), ignore_index=-1), [x]),
        ("conv1d", lambda *a: F.conv1d(*a, stride=2, padding=1, dilation=2),
         lambda *a: TF.conv1d(*a, stride=2, padding=1, dilation=2),
         [normal(2, 3, 9), normal(4, 3, 3), normal(4)]),
        ("conv2d", lambda *a: F.conv2d(*a, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
         lambda *a: TF.conv2d(*a, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
         [image, normal(6, 4, 3, 2), normal(6)]),
        ("conv2d groups", lambda *a: F.conv2d(*a, groups=2), lambda *a: TF.conv2d(*a, groups=2),
         [image, normal(6, 2, 3, 3), normal(6)]),
        ("conv_transpose2d",
         lambda *a: F.conv_transpose2d(*a, stride=2, padding=1, output_padding=1),
         lambda *a: TF.conv_transpose2d(*a, stride=2, padding=1, output_padding=1),
         [image, normal(4, 5, 3, 3), normal(5)]),
        ("conv_transpose2d groups",
         lambda *a: F.conv_transpose2d(*a, stride=(1, 2), groups=2, dilation=2),
         lambda *a: TF.conv_transpose2d(*a, stride=(1, 2), groups=2, dilation=2),
         [image, normal(4, 3, 2, 3), normal(6)]),
        ("max_pool2d ceil", lambda a: F.max_pool2d(a, 2, 3, 1, 2, ceil_mode=True),
         lambda a: TF.max_pool2d(a, 2, 3, 1, 2, ceil_mode=True), [image]),
        ("avg_pool2d ceil", lambda a: F.avg_pool2d(a, 3, 2, 1, ceil_mode=True),
         lambda a: TF.avg_pool2d(a, 3, 2, 1, ceil_mode=True), [image]),
        ("avg_pool2d uncounted",
         lambda a: F.avg_pool2d(a, 3, 2, 1, ceil_mode=True, count_include_pad=False),
         lambda a: TF.avg_pool2d(a, 3, 2, 1, ceil_mode=True, count_include_pad=False), [image]),
        ("max_pool2d", lambda a: F.max_pool2d(a, 3, 2, 1), lambda a: TF.max_pool2d(a, 3, 2, 1),
         [image]),
        ("avg_pool2d", lambda a: F.avg_pool2d(a, (2, 3), padding=1),
         lambda a: TF.avg_pool2d(a, (2, 3), padding=1), [image]),
        ("global_max_pool2d", F.global_max_pool2d, lambda a: torch.amax(a, (2, 3)), [image]),
        ("global_avg_pool2d", F.global_avg_pool2d, lambda a: torch.mean(a, (2, 3)), [image]),
        ("upsample_nearest2d", lambda a: F.upsample_nearest2d(a, (2, 3)),
         lambda a: TF.interpolate(a, scale_factor=(2, 3), mode="nearest"), [image]),
        ("batch_norm", F.batch_norm,
         lambda a, g, b: TF.batch_norm(a, None, None, g, b, training=True), norm),
        ("fixed_batch_norm", F.fixed_batch_norm,
         lambda a, g, b, m, v: (a - m[:, None]) / torch.sqrt(v[:, None] + 1e-5) * g[:, None]
         + b[:, None], [*norm, normal(4, seed=3), positive(4, seed=4)]),
        ("layer_norm", F.layer_norm, lambda a, g, b: TF.layer_norm(a, (4, 3), g, b),
         [normal(2, 4, 3), positive(4, 3), normal(4, 3)]),
        ("rms_norm", F.rms_norm, lambda a, g: TF.rms_norm(a, (3,), g, eps=1e-5),
         [normal(2, 4, 3), positive(3)]),
        ("group_norm", lambda a, g, b: F.group_norm(a, 2, g, b),
         lambda a, g, b: TF.group_norm(a, 2, g, b), norm),
        ("instance_norm", F.instance_norm,
         lambda a, g, b: TF.instance_norm(a, weight=g, bias=b), norm),
        ("attention", F.scaled_dot_product_attention, TF.scaled_dot_product_attention, q),
        ("attention causal", lambda *a: F.scaled_dot_product_attention(*a, causal=True),
         lambda *a: TF.scaled_dot_product_attention(*a, is_causal=True), q),
        ("attention mask", lambda *a: F.scaled_dot_product_attention(*a, mask=attend),
         lambda *a: TF.scaled_dot_product_attention(*a, attn_mask=torch.from_numpy(attend)), q),
    ]  # fmt: skip


def linalg_rows() -> list[Row]:
    a = square(2, 3, 3)
    tl = torch.linalg
    return [
        ("inv", L.inv, tl.inv, [a]),
        ("pinv", L.pinv, tl.pinv, [a]), ("pinv tall", L.pinv, tl.pinv, [normal(4, 2)]),
        ("qr q", lambda x: L.qr(x).Q ** 3, lambda x: tl.qr(x)[0] ** 3, [normal(4, 2)]),
        ("qr r wide", lambda x: L.qr(x).R, lambda x: tl.qr(x)[1], [normal(2, 4)]),
        ("solve", L.solve, tl.solve, [a, normal(2, 3, 4)]),
        ("solve vector", L.solve, tl.solve, [square(3, 3), normal(3)]),
        *[(f"solve_triangular {upper} {unit}",
           lambda x, y, upper=upper, unit=unit: L.solve_triangular(
               x, y, upper=upper, unit_diagonal=unit),
           lambda x, y, upper=upper, unit=unit: tl.solve_triangular(
               x, y, upper=upper, unitriangular=unit), [a, normal(2, 3, 4)])
          for upper in (False, True) for unit in (False, True)],
        *[(f"cholesky_solve {upper}",
           lambda x, y, upper=upper: L.cholesky_solve(
               x, (tn.functions.triu if upper else tn.functions.tril)(y), upper=upper),
           lambda x, y, upper=upper: torch.cholesky_solve(
               x, (torch.triu if upper else torch.tril)(y), upper=upper),
           [normal(2, 3, 4), a]) for upper in (False, True)],
        ("det", L.det, tl.det, [a]),
        ("slogdet", lambda x: L.slogdet(x).logabsdet, lambda x: tl.slogdet(x).logabsdet, [a]),
        ("cholesky", symmetric(L.cholesky), symmetric(tl.cholesky), [spd(2, 3, 3)]),
        ("cholesky upper", symmetric(lambda x: L.cholesky(x, upper=True)),
         symmetric(lambda x: tl.cholesky(x, upper=True)), [spd(3, 3)]),
        ("eigvalsh", symmetric(L.eigvalsh), symmetric(tl.eigvalsh), [spd(2, 3, 3)]),
        ("eigh", symmetric(lambda x: L.eigh(x).eigenvectors ** 2),
         symmetric(lambda x: tl.eigh(x).eigenvectors ** 2), [spd(3, 3)]),
        ("svdvals", L.svdvals, tl.svdvals, [normal(2, 4, 3)]),
        *[(f"svd {part} {shape}",
           lambda x, part=part: getattr(L.svd(x, full_matrices=False), part) ** 2,
           lambda x, part=part: getattr(tl.svd(x, full_matrices=False), part) ** 2,
           [normal(*shape)]) for part in ("U", "Vh") for shape in ((4, 3), (3, 4), (3, 3))],
        ("trace", L.trace, torch.trace, [normal(3, 4)]),
        *[(f"diagonal {o}", lambda x, o=o: L.diagonal(x, offset=o),
           lambda x, o=o: torch.diagonal(x, o, -2, -1), [normal(2, 3, 4)]) for o in (0, 1, -1, 3)],
        ("outer", L.outer, torch.outer, [normal(3), normal(4)]),
        ("cross", L.cross, tl.cross, [normal(2, 3), normal(1, 3, seed=1)]),
        *[(f"vector_norm {p}", lambda x, p=p: L.vector_norm(x, axis=1, ord=p),
           lambda x, p=p: tl.vector_norm(x, p, 1), [normal(3, 4)])
          for p in (2, 1, 3, 0.5, math.inf, -math.inf, -1)],
        *[(f"matrix_norm {p}", lambda x, p=p: L.matrix_norm(x, ord=p),
           lambda x, p=p: tl.matrix_norm(x, p), [normal(2, 3, 4)])
          for p in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)],
        *[(f"matrix_power {n}", lambda x, n=n: L.matrix_power(x, n),
           lambda x, n=n: tl.matrix_power(x, n), [a]) for n in (0, 1, 3, -2)],
    ]  # fmt: skip


def special_rows() -> list[Row]:
    x, some = normal(3, 4), normal(2, 3, 4)
    j = np.array([[0, 2, 2, 0], [1, 1, 0, 2]])
    t_j = torch.from_numpy(j)
    return [
        ("erfc", F.erfc, torch.erfc, [x]), ("erfinv", F.erfinv, torch.erfinv, [inside(3, 4)]),
        ("lgamma", F.lgamma, torch.lgamma, [x * 3]),
        ("digamma", F.digamma, torch.digamma, [positive(3, 4)]),
        *[(f"polygamma {n}", lambda a, n=n: F.polygamma(n, a),
           lambda a, n=n: torch.polygamma(n, a), [positive(3, 4)]) for n in (1, 2)],
        ("rsqrt", F.rsqrt, torch.rsqrt, [positive(3, 4)]),
        ("fmod", F.fmod, torch.fmod, [x * 3, positive(4)]),
        ("prelu", F.prelu, TF.prelu, [some, normal(3)]),
        ("prelu at 0", lambda a, w: F.prelu(a * 0, w), lambda a, w: TF.prelu(a * 0, w),
         [x, normal(1)]),
        ("relu6", F.relu6, TF.relu6, [x * 5]),
        ("normalize", lambda a: F.normalize(a, axis=1), TF.normalize, [some]),
        ("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, axis=1),
         TF.cosine_similarity, [some, normal(2, 3, 4, seed=1)]),
        ("topk", lambda a: F.topk(a, 2).values, lambda a: torch.topk(a, 2)[0], [x]),
        ("index_add", lambda a, b: F.index_add(a, idx, b, axis=0),
         lambda a, b: torch.index_add(a, 0, torch.from_numpy(idx), b), [x, normal(4, 4)]),
        ("scatter_add", lambda a, b: F.scatter_add(a, j, b, axis=0),
         lambda a, b: torch.scatter_add(a, 0, t_j, b), [x, normal(2, 4)]),
    ]  # fmt: skip


def volume_rows() -> list[Row]:
    signal, image, volume = normal(2, 4, 9), normal(2, 4, 5, 6), normal(2, 4, 5, 4, 6)
    grid = [image, inside(2, 3, 4, 2)]
    extra = {"output_padding": (1, 1, 0)}
    options = {"stride": (2, 1, 2), "padding": (1, 0, 1), "dilation": (1, 2, 1)}
    table: list[Row] = [
        ("conv3d", lambda *a: F.conv3d(*a, **options), lambda *a: TF.conv3d(*a, **options),
         [volume, normal(6, 4, 3, 2, 2), normal(6)]),
        ("conv3d groups", lambda *a: F.conv3d(*a, groups=2), lambda *a: TF.conv3d(*a, groups=2),
         [volume, normal(6, 2, 2, 2, 3)]),
        ("conv_transpose3d", lambda *a: F.conv_transpose3d(*a, **options, **extra),
         lambda *a: TF.conv_transpose3d(*a, **options, **extra),
         [volume, normal(4, 3, 2, 2, 2), normal(3)]),
        ("conv_transpose1d", lambda *a: F.conv_transpose1d(*a, stride=3, padding=1, groups=2),
         lambda *a: TF.conv_transpose1d(*a, stride=3, padding=1, groups=2),
         [signal, normal(4, 3, 4), normal(6)]),
        ("interpolate", lambda a: F.interpolate(a, size=(8, 4)),
         lambda a: TF.interpolate(a, size=(8, 4)), [image]),
        ("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), lambda a: TF.pixel_shuffle(a, 2),
         [image]),
        ("pixel_unshuffle", lambda a: F.pixel_unshuffle(a, 2),
         lambda a: TF.pixel_unshuffle(a, 2), [normal(2, 3, 4, 6)]),
    ]  # fmt: skip
    for corners in (False, True):
        for padding in ("zeros", "border"):
            how = {"padding_mode": padding, "align_corners": corners}
            ours = {"padding": padding, "align_corners": corners}
            table.append((f"grid_sample {how}", lambda *a, o=ours: F.grid_sample(*a, **o),
                          lambda *a, h=how: TF.grid_sample(*a, **h), grid))  # fmt: skip
        for mode, x, new in (("linear", signal, 5), ("bilinear", image, (7, 3)),
                             ("trilinear", volume, (3, 7, 6))):  # fmt: skip
            table.append((f"{mode} {corners}",
                          lambda a, n=new, c=corners: F.interpolate(
                              a, size=n, mode="linear", align_corners=c),
                          lambda a, n=new, m=mode, c=corners: TF.interpolate(
                              a, size=n, mode=m, align_corners=c), [x]))  # fmt: skip
    for axes, x, size in ((1, signal, 4), (2, image, (3, 4)), (3, volume, (2, 3, 4))):
        for kind in ("avg", "max"):
            names = f"adaptive_{kind}_pool{axes}d", f"{kind}_pool{axes}d"
            table.append((names[0], lambda a, f=names[0], n=size: getattr(F, f)(a, n),
                          lambda a, f=names[0], n=size: getattr(TF, f)(a, n), [x]))  # fmt: skip
            table.append((names[1], lambda a, f=names[1]: getattr(F, f)(a, 3, 2, 1),
                          lambda a, f=names[1]: getattr(TF, f)(a, 3, 2, 1), [x]))  # fmt: skip
    return table


def loss_rows() -> list[Row]:
    three = [normal(5, 3, seed=i) for i in range(3)]
    rows: list[Row] = []
    for r in ("mean", "sum", "none"):
        rows += [
            ("triplet_margin", lambda *a, r=r: F.triplet_margin(*a, reduction=r),
             lambda *a, r=r: TF.triplet_margin_loss(*a, reduction=r), three),
            ("gaussian_nll", lambda *a, r=r: F.gaussian_nll(*a, reduction=r, full=True),
             lambda *a, r=r: TF.gaussian_nll_loss(*a, reduction=r, full=True),
             [*three[:2], positive(5, 3)]),
        ]  # fmt: skip
    return rows


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_agrees_with_pytorch(reduction: str) -> None:
    """First order: PyTorch has no second one."""
    rng = np.random.default_rng(0)
    host, labels = normal(12, 3, 5), rng.integers(1, 5, (3, 4))
    steps, counts = np.array([12, 9, 11]), np.array([4, 3, 0])
    x, t = tn.Variable(host), torch.tensor(host, requires_grad=True)
    y = F.ctc_loss(F.log_softmax(x), labels, steps, counts, reduction=reduction)
    rest = (torch.from_numpy(a) for a in (labels, steps, counts))
    theirs = TF.ctc_loss(t.log_softmax(-1), *rest, reduction=reduction)
    close("ctc_loss", "value", y.array, theirs)
    close("ctc_loss", "gradient", tn.grad([F.sum(y)], [x])[0].array,
          torch.autograd.grad(theirs.sum(), t)[0])  # fmt: skip


LOOSE = dict.fromkeys(["lgamma", "digamma", "polygamma 1", "polygamma 2"], 1e-8)
"""PyTorch's trigamma has nine digits; the rows of the table compare with series of their own."""


def close(name: str, what: str, ours: Any, theirs: Any) -> None:
    expected = np.zeros_like(ours) if theirs is None else theirs.numpy(force=True)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    rtol = LOOSE.get(name, 1e-10)
    np.testing.assert_allclose(
        ours, expected, rtol=rtol, atol=1e-12 * scale, err_msg=f"{name}: {what}"
    )


def host(gradient: tn.Variable | None, x: np.ndarray) -> np.ndarray:
    return np.zeros_like(x) if gradient is None else gradient.array


def test_agrees_with_pytorch() -> None:
    for row in rows():
        check_row(row)


def check_row(row: Row) -> None:
    name, ours, theirs, arrays = row
    xs = [tn.Variable(x) for x in arrays]
    ts = [torch.tensor(x, requires_grad=True) for x in arrays]
    y, t = ours(*xs), theirs(*ts)
    close(name, "value", y.array, t)
    if not t.requires_grad:
        assert tn.grad([y], xs) == [None] * len(xs)
        return
    gy, gt = tn.Variable(normal(*y.shape, seed=5)), torch.tensor(normal(*y.shape, seed=5))
    gt.requires_grad_(True)
    gxs = tn.grad([y], xs, [gy], enable_double_backprop=True)
    gts = torch.autograd.grad(t, ts, gt, create_graph=True, allow_unused=True)
    for i, (gx, g) in enumerate(zip(gxs, gts, strict=True)):
        close(name, f"gradient {i}", host(gx, arrays[i]), g)
    pairs = [
        (gx, g)
        for gx, g in zip(gxs, gts, strict=True)
        if gx is not None and g is not None and g.requires_grad
    ]
    if not pairs:
        return
    vs = [normal(*gx.shape, seed=6) for gx, _ in pairs]
    second = tn.grad([gx for gx, _ in pairs], [*xs, gy], [tn.Variable(v) for v in vs])
    expected = torch.autograd.grad(
        [g for _, g in pairs], [*ts, gt], [torch.tensor(v) for v in vs], allow_unused=True
    )
    sources = [*arrays, gy.array]
    for i, (g2, e2) in enumerate(zip(second, expected, strict=True)):
        close(name, f"second gradient {i}", host(g2, sources[i]), e2)

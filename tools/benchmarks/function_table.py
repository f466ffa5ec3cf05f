"""The table of ``functions``: each function in tinynode, as a NumPy formula, and in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]


# --- inputs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """An input: the distribution of the values, and a shape for each size."""

    draw: Callable[[np.random.Generator, Shape], Any]
    small: Shape = (1000,)
    large: Shape = (1_048_576,)

    def make(self, size: str, seed: int) -> Any:
        values = self.draw(np.random.default_rng(seed), getattr(self, size))
        return values.astype(np.float32) if values.dtype.kind == "f" else values


def normal(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.standard_normal(shape)


def positive(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.uniform(0.5, 2, shape)


def inside(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.uniform(-0.9, 0.9, shape)


def shares(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.uniform(0.1, 0.9, shape)


def beyond_one(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.uniform(1.5, 3, shape)


def near_one(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.uniform(0.999, 1.001, shape)


def unlike(rng: np.random.Generator, shape: Shape) -> Any:
    """Values without repetition."""
    return rng.permutation(math.prod(shape)).reshape(shape) * 0.125


def mask(rng: np.random.Generator, shape: Shape) -> Any:
    return rng.random(shape) < 0.5


def square(rng: np.random.Generator, shape: Shape) -> Any:
    """Well-conditioned matrices."""
    return rng.standard_normal(shape) / math.sqrt(shape[-1]) + 2 * np.eye(shape[-1])


def symmetric(rng: np.random.Generator, shape: Shape) -> Any:
    """Positive definite, with eigenvalues well apart."""
    a = 0.1 * rng.standard_normal(shape) / math.sqrt(shape[-1])
    return a + np.swapaxes(a, -1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))


def below(n: int) -> Callable[[np.random.Generator, Shape], Any]:
    """Integers from 0 to below n."""

    def draw(rng: np.random.Generator, shape: Shape) -> Any:
        return rng.integers(0, n, shape)

    return draw


X = Data(normal)
POSITIVE = Data(positive)
MATRIX = Data(normal, (25, 40), (1024, 1024))
ROW = Data(normal, (40,), (1024,))
COLUMN = Data(normal, (25, 1), (1024, 1))
STACK = Data(square, (40, 5, 5), (40_000, 5, 5))
IMAGES = Data(normal, (1, 4, 16, 16), (16, 16, 64, 64))
SIGNALS = Data(normal, (2, 8, 64), (16, 16, 4096))
CHANNELS = Data(positive, (4,), (16,))
LABELS = Data(below(40), (25,), (1024,))


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A function in each library: callables, or for PyTorch a name.

    The first argument of ``ours`` is tinynode's module of functions, that of ``torch`` the module
    torch: each library is imported only if measured. The inputs follow. ``constants`` are keyword
    arguments of ``ours`` and ``numpy``.
    """

    name: str
    ours: Callable[..., Any]
    numpy: Callable[..., Any]
    torch: Callable[..., Any] | str | None
    data: tuple[Data, ...]
    constants: dict[str, Any] = field(default_factory=dict)


TABLE: list[Entry] = []


def entry(
    name: str,
    numpy: Callable[..., Any],
    torch: Callable[..., Any] | str | None,
    *data: Data,
    ours: Callable[..., Any] | None = None,
    **constants: Any,
) -> None:
    """Add a row; ``ours`` is by default tinynode's function ``name``."""

    def by_name(functions: Any, *xs: Any, **more: Any) -> Any:
        owner, _, last = name.rpartition(".")
        return getattr(functions.linalg if owner else functions, last)(*xs, **more)

    TABLE.append(Entry(name, ours or by_name, numpy, torch, data, constants))


def same(x: Any) -> Any:
    return x


# fmt: off

# one variable: name in all three libraries, values
for name, draw in (
    ("abs", normal), ("acos", inside), ("acosh", beyond_one), ("asin", inside), ("asinh", normal),
    ("atan", normal), ("atanh", inside), ("ceil", normal), ("cos", normal), ("cosh", normal),
    ("exp", normal), ("expm1", normal), ("floor", normal), ("log", positive),
    ("log10", positive), ("log1p", positive), ("log2", positive), ("negative", normal),
    ("positive", normal), ("reciprocal", positive), ("round", normal), ("sign", normal),
    ("sin", normal), ("sinh", normal), ("sqrt", positive), ("square", normal), ("tan", inside),
    ("tanh", normal), ("trunc", normal),
):
    entry(name, getattr(np, name), name, Data(draw))
entry("copy", np.copy, "clone", X)
entry("identity", same, lambda t, x: x.view_as(x), X)
entry("astype", lambda x, dtype: x.astype(dtype), lambda t, x: x.double(), X, dtype="float64")
entry("to_device", lambda x, device: x, lambda t, x: x.view_as(x), X, device="numpy")

# two variables
for name, draw in (
    ("add", normal), ("atan2", normal), ("copysign", normal), ("divide", positive),
    ("hypot", normal), ("logaddexp", normal), ("maximum", normal), ("minimum", normal),
    ("multiply", normal), ("pow", positive), ("remainder", positive), ("subtract", normal),
):
    entry(name, getattr(np, name), name, Data(draw), Data(draw))
for name, torch_name in (
    ("equal", "eq"), ("greater", "gt"), ("greater_equal", "ge"), ("less", "lt"),
    ("less_equal", "le"), ("not_equal", "ne"),
):
    entry(name, getattr(np, name), torch_name, X, X)
entry("floor_divide", np.floor_divide, lambda t, x, y: x.detach() // y.detach(), X, POSITIVE)
entry("add_all", lambda *xs: xs[0] + xs[1] + xs[2], lambda t, *xs: xs[0] + xs[1] + xs[2], X, X, X)
entry("zero_safe_multiply", np.multiply, "mul", X, POSITIVE)
entry("where", np.where, "where", Data(mask), X, X)
entry("clip", lambda x, **how: np.clip(x, -0.5, 0.5), lambda t, x: x.clamp(-0.5, 0.5), X,
      min=-0.5, max=0.5)

# reductions and running sums
for name, torch_name in (("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin")):
    ref = getattr(np, name)
    entry(name, lambda x, axis, f=ref: f(x, axis),
          lambda t, x, f=torch_name: getattr(t, f)(x, 1), MATRIX, axis=1)
entry("prod", lambda x, axis: np.prod(x, axis), lambda t, x: t.prod(x, 1),
      Data(near_one, (25, 40), (1024, 1024)), axis=1)
entry("var", lambda x, axis: np.var(x, axis), lambda t, x: t.var(x, 1, correction=0), MATRIX,
      axis=1)
entry("std", lambda x, axis: np.std(x, axis), lambda t, x: t.std(x, 1, correction=0), MATRIX,
      axis=1)
entry("diff", np.diff, "diff", MATRIX)
entry("logsumexp", lambda x, axis: np.log(np.sum(np.exp(x), axis)),
      lambda t, x: t.logsumexp(x, 1), MATRIX, axis=1)
entry("cumulative_sum", lambda x, axis: np.cumsum(x, axis), lambda t, x: t.cumsum(x, 1), MATRIX,
      axis=1)
entry("cumulative_prod", lambda x, axis: np.cumprod(x, axis), lambda t, x: t.cumprod(x, 1),
      Data(near_one, (25, 40), (1024, 1024)), axis=1)
entry("argmax", lambda x, axis: np.argmax(x, axis), lambda t, x: t.argmax(x, 1), MATRIX, axis=1)
entry("argmin", lambda x, axis: np.argmin(x, axis), lambda t, x: t.argmin(x, 1), MATRIX, axis=1)
UNLIKE = Data(unlike, (25, 40), (1024, 1024))
entry("argsort", np.argsort, "argsort", UNLIKE)
entry("sort", np.sort, lambda t, x: t.sort(x, 1)[0], UNLIKE)

# shapes
entry("reshape", lambda x, shape: x.reshape(shape), lambda t, x: x.reshape(-1), MATRIX, shape=-1)
entry("permute_dims", lambda x, axes: x.T, lambda t, x: x.permute(1, 0), MATRIX, axes=(1, 0))
entry("matrix_transpose", lambda x: x.T, lambda t, x: x.mT, MATRIX)
entry("moveaxis", lambda x, **how: x.T, lambda t, x: t.moveaxis(x, 0, 1), MATRIX,
      source=0, destination=1)
entry("expand_dims", lambda x, axis: x[:, None], lambda t, x: x[:, None], MATRIX, axis=1)
entry("squeeze", lambda x, axis: x[:, 0], lambda t, x: x.squeeze(1),
      Data(normal, (25, 1, 40), (1024, 1, 1024)), axis=1)
entry("broadcast_to", lambda x: np.broadcast_to(x, (x.size, x.size)),
      lambda t, x: x.expand(len(x), len(x)), Data(normal, (32,), (1024,)),
      ours=lambda F, x: F.broadcast_to(x, (x.size, x.size)))
entry("broadcast_arrays", np.broadcast_arrays, "broadcast_tensors", COLUMN, ROW)
entry("sum_to", lambda x: x.sum(0), lambda t, x: x.sum_to_size(x.shape[1]), MATRIX,
      ours=lambda F, x: F.sum_to(x, x.shape[1:]))
entry("concat", lambda *xs: np.concat(xs, 1), lambda t, *xs: t.cat(xs, 1), MATRIX, MATRIX,
      ours=lambda F, *xs: F.concat(xs, 1))
entry("stack", lambda *xs: np.stack(xs, 1), lambda t, *xs: t.stack(xs, 1), MATRIX, MATRIX,
      ours=lambda F, *xs: F.stack(xs, axis=1))
entry("split", lambda x, indices_or_sections, axis: np.split(x, indices_or_sections, axis),
      lambda t, x: t.chunk(x, 8, 1), MATRIX, indices_or_sections=8, axis=1)
entry("unstack", lambda x: tuple(x), lambda t, x: t.unbind(x),
      Data(normal, (10, 100), (10, 100_000)))
entry("flip", lambda x, axis: np.flip(x, axis), lambda t, x: t.flip(x, (1,)), MATRIX, axis=1)
entry("roll", lambda x, shift, axis: np.roll(x, shift, axis), lambda t, x: t.roll(x, 7, 1), MATRIX,
      shift=7, axis=1)
entry("tile", lambda x, repetitions: np.tile(x, repetitions), lambda t, x: t.tile(x, (2, 2)),
      Data(normal, (16, 16), (500, 500)), repetitions=(2, 2))
entry("repeat", lambda x, repeats, axis: np.repeat(x, repeats, axis),
      lambda t, x: t.repeat_interleave(x, 4, 1), Data(normal, (16, 16), (500, 500)),
      repeats=4, axis=1)
entry("tril", np.tril, "tril", MATRIX)
entry("triu", np.triu, "triu", MATRIX)
entry("meshgrid", np.meshgrid, lambda t, *xs: t.meshgrid(*xs, indexing="xy"),
      Data(normal, (40,), (1024,)), Data(normal, (25,), (1024,)))
entry("pad", np.pad, lambda t, x: t.nn.functional.pad(x, (2, 2, 2, 2)), MATRIX,
      pad_width=2)

# indices
entry("get_item", lambda x: x[::2, 1:], lambda t, x: x[::2, 1:], MATRIX,
      ours=lambda F, x: F.get_item(x, (slice(None, None, 2), slice(1, None))))


def torch_set_item(t: Any, x: Any, value: Any) -> Any:
    y = x.clone()
    y[1] = value
    return y


def numpy_set_item(x: Any, value: Any) -> Any:
    y = x.copy()
    y[1] = value
    return y


entry("set_item", numpy_set_item, torch_set_item, MATRIX, ROW,
      ours=lambda F, x, v: F.set_item(x, 1, v))
entry("take", lambda x, i, axis: np.take(x, i, axis), lambda t, x, i: t.index_select(x, 0, i),
      Data(normal, (40, 25), (1024, 1024)), Data(below(40), (40,), (1024,)), axis=0)
entry("take_along_axis", lambda x, i: np.take_along_axis(x, i, 1),
      lambda t, x, i: t.take_along_dim(x, i, 1),
      MATRIX, Data(below(40), (25, 40), (1024, 1024)))

# products
WIDE = Data(normal, (32, 32), (1024, 1024))
entry("matmul", np.matmul, "matmul", WIDE, WIDE)
entry("linear", lambda x, w, b: x @ w.T + b, "nn.functional.linear",
      WIDE, WIDE, Data(normal, (32,), (1024,)))
entry("tensordot", lambda x, y, axes: np.tensordot(x, y, axes),
      lambda t, x, y: t.tensordot(x, y, 1), WIDE, WIDE, axes=1)
entry("vecdot", np.vecdot, "linalg.vecdot", MATRIX, MATRIX)
entry("einsum", lambda x, y: np.einsum("ij,ij->i", x, y),
      lambda t, x, y: t.einsum("ij,ij->i", x, y), MATRIX, MATRIX,
      ours=lambda F, x, y: F.einsum("ij,ij->i", x, y))
entry("bilinear", lambda x, y, w, b: np.einsum("ni,oij,nj->no", x, w, y, optimize=True) + b,
      "nn.functional.bilinear",
      Data(normal, (20, 8), (2000, 64)), Data(normal, (20, 6), (2000, 60)),
      Data(normal, (5, 8, 6), (32, 64, 60)), Data(normal, (5,), (32,)))

# activations


def np_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def np_erf(x: Any) -> Any:
    """Abramowitz and Stegun 7.1.26: the usual code with NumPy alone; error 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    sum_ = (((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t
    return np.copysign(1 - (sum_ + 0.254829592) * t * np.exp(-x * x), x)


def np_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def np_glu(x: Any) -> Any:
    a, b = np.split(x, 2, -1)
    return a * np_sigmoid(b)


for name, ref, torch_name in (
    ("relu", lambda x: np.maximum(x, 0), "relu"),
    ("leaky_relu", lambda x: np.maximum(x, x * 0.01), "leaky_relu"),
    ("elu", lambda x: np.where(x > 0, x, np.expm1(x)), "elu"),
    ("selu", lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)), "selu"),
    ("gelu", lambda x: 0.5 * x * (1 + np_erf(x * math.sqrt(0.5))), "gelu"),
    ("silu", lambda x: x * np_sigmoid(x), "silu"),
    ("softplus", lambda x: np.log1p(np.exp(x)), "softplus"),
    ("log_sigmoid", lambda x: -np.log1p(np.exp(-x)), "logsigmoid"),
    ("hard_tanh", lambda x: np.clip(x, -1, 1), "hardtanh"),
    ("hard_sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), "hardsigmoid"),
    ("hard_silu", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "hardswish"),
):
    entry(name, ref, "nn.functional." + torch_name, X)
entry("gelu", lambda x, approximate: 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x**3))),
      lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), X, approximate=True)
entry("sigmoid", np_sigmoid, "sigmoid", X)
entry("erf", np_erf, "erf", X)
entry("softmax", np_softmax, lambda t, x: t.softmax(x, -1), MATRIX)
entry("log_softmax", np_log_softmax, lambda t, x: t.log_softmax(x, -1), MATRIX)
entry("glu", np_glu, "nn.functional.glu", MATRIX)

# losses


def np_cross_entropy(x: Any, labels: Any) -> Any:
    return -np_log_softmax(x)[np.arange(len(x)), labels].mean()


def np_hinge(x: Any, labels: Any) -> Any:
    t = np.where(np.arange(x.shape[1]) == labels[:, None], np.float32(1), np.float32(-1))
    return np.maximum(1 - t * x, 0).sum(1).mean()


def np_huber(x: Any, y: Any) -> Any:
    d = np.abs(x - y)
    return np.where(d <= 1, d * d / 2, d - 0.5).mean()


entry("softmax_cross_entropy", np_cross_entropy, "nn.functional.cross_entropy", MATRIX, LABELS)
entry("softmax_cross_entropy",
      lambda x, labels, label_smoothing: np_cross_entropy(x, labels) * 0.9
      - np_log_softmax(x).mean() * 0.1,
      lambda t, x, labels: t.nn.functional.cross_entropy(x, labels, label_smoothing=0.1),
      MATRIX, LABELS, label_smoothing=0.1)
entry("nll", lambda x, labels: -x[np.arange(len(x)), labels].mean(), "nn.functional.nll_loss",
      MATRIX, LABELS)
entry("hinge", np_hinge, None, MATRIX, LABELS)


def np_bce(x: Any, t: Any) -> Any:
    t = t.astype(x.dtype)
    return (np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))).mean()


entry("sigmoid_cross_entropy", np_bce,
      "nn.functional.binary_cross_entropy_with_logits", X, Data(shares))
entry("sigmoid_cross_entropy", np_bce,
      lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y.float()),
      X, Data(below(2)))
entry("mean_squared_error", lambda x, y: ((x - y) ** 2).mean(), "nn.functional.mse_loss", X, X)
entry("mean_absolute_error", lambda x, y: np.abs(x - y).mean(), "nn.functional.l1_loss",
      X, POSITIVE)
entry("huber", np_huber, "nn.functional.huber_loss", X, POSITIVE)
entry("kl_divergence", lambda q, p: (p * (np.log(p) - q)).sum(1).mean(),
      lambda t, q, p: t.nn.functional.kl_div(q, p, reduction="batchmean"),
      MATRIX, Data(shares, (25, 40), (1024, 1024)))

# convolution and pooling


def windows(x: Any, size: Shape, stride: int = 1) -> Any:
    axes = tuple(range(x.ndim - len(size), x.ndim))
    steps = (slice(None, None, stride),) * len(size)
    return np.lib.stride_tricks.sliding_window_view(x, size, axes)[
        (..., *steps, *len(size) * (ALL,))
    ]


ALL = slice(None)
BORDER = ((0, 0), (0, 0), (1, 1), (1, 1))


def np_conv2d(x: Any, w: Any, b: Any, padding: int) -> Any:
    y = np.tensordot(windows(np.pad(x, BORDER), w.shape[2:]), w, ((1, 4, 5), (1, 2, 3)))
    return y.transpose(0, 3, 1, 2) + b[:, None, None]


def np_conv1d(x: Any, w: Any, b: Any) -> Any:
    y = np.tensordot(windows(x, w.shape[2:]), w, ((1, 3), (1, 2)))
    return y.transpose(0, 2, 1) + b[:, None]


def np_conv_transpose2d(x: Any, w: Any, b: Any, stride: int) -> Any:
    """With kernels 2 x 2 and stride 2: blocks without overlap."""
    n, _, height, width = x.shape
    y = np.tensordot(x, w, ((1,), (0,))).transpose(0, 3, 1, 4, 2, 5)
    return y.reshape(n, w.shape[1], 2 * height, 2 * width) + b[:, None, None]


KERNELS = Data(normal, (4, 4, 3, 3), (16, 16, 3, 3))
entry("conv2d", np_conv2d, lambda t, *xs: t.nn.functional.conv2d(*xs, padding=1),
      IMAGES, KERNELS, CHANNELS, padding=1)
entry("conv1d", np_conv1d, "nn.functional.conv1d", SIGNALS, Data(normal, (8, 8, 5), (16, 16, 5)),
      Data(normal, (8,), (16,)))
entry("conv_transpose2d", np_conv_transpose2d,
      lambda t, *xs: t.nn.functional.conv_transpose2d(*xs, stride=2),
      Data(normal, (1, 4, 16, 16), (16, 16, 32, 32)), Data(normal, (4, 4, 2, 2), (16, 16, 2, 2)),
      CHANNELS, stride=2)
for size, stride in ((2, 2), (3, 1)):
    how = {"kernel_size": size, "stride": stride}
    entry("max_pool2d",
          lambda x, kernel_size, stride: windows(x, (kernel_size,) * 2, stride).max((-1, -2)),
          lambda t, x, how=(size, stride): t.nn.functional.max_pool2d(x, *how),
          IMAGES, **how)
    entry("avg_pool2d",
          lambda x, kernel_size, stride: windows(x, (kernel_size,) * 2, stride).mean((-1, -2)),
          lambda t, x, how=(size, stride): t.nn.functional.avg_pool2d(x, *how),
          IMAGES, **how)
entry("global_max_pool2d", lambda x: x.max((2, 3)), lambda t, x: t.amax(x, (2, 3)), IMAGES)
entry("global_avg_pool2d", lambda x: x.mean((2, 3)), lambda t, x: t.mean(x, (2, 3)), IMAGES)
entry("upsample_nearest2d", lambda x, scale: x.repeat(scale, 2).repeat(scale, 3),
      lambda t, x: t.nn.functional.interpolate(x, scale_factor=2), IMAGES, scale=2)

# normalisation


def np_normalized(x: Any, axes: Any) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def of_channels(x: Any) -> Any:
    return x[:, None, None]


def np_batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return np_normalized(x, (0, 2, 3)) * of_channels(gamma) + of_channels(beta)


def np_fixed_batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    y = (x - of_channels(mean)) / np.sqrt(of_channels(variance) + 1e-5)
    return y * of_channels(gamma) + of_channels(beta)


def np_group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    rows = np_normalized(x.reshape(len(x), 2, -1), 2).reshape(x.shape)
    return rows * of_channels(gamma) + of_channels(beta)


def np_rms_norm(x: Any, gamma: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma


entry("batch_norm", np_batch_norm,
      lambda t, x, g, b: t.nn.functional.batch_norm(x, None, None, g, b, training=True),
      IMAGES, CHANNELS, CHANNELS)
entry("fixed_batch_norm", np_fixed_batch_norm,
      lambda t, x, g, b, m, v: (x - of_channels(m)) / t.sqrt(of_channels(v) + 1e-5)
      * of_channels(g) + of_channels(b),
      IMAGES, CHANNELS, CHANNELS, CHANNELS, CHANNELS)
entry("group_norm", np_group_norm, lambda t, x, g, b: t.nn.functional.group_norm(x, 2, g, b),
      IMAGES, CHANNELS, CHANNELS, ours=lambda F, x, g, b: F.group_norm(x, 2, g, b))
entry("instance_norm",
      lambda x, g, b: np_normalized(x, (2, 3)) * of_channels(g) + of_channels(b),
      lambda t, x, g, b: t.nn.functional.instance_norm(x, weight=g, bias=b),
      IMAGES, CHANNELS, CHANNELS)
entry("layer_norm", lambda x, g, b: np_normalized(x, -1) * g + b,
      lambda t, x, g, b: t.nn.functional.layer_norm(x, g.shape, g, b), MATRIX, ROW, ROW)
entry("rms_norm", np_rms_norm,
      lambda t, x, g: t.nn.functional.rms_norm(x, g.shape, g, eps=1e-5), MATRIX, ROW)

# embedding, dropout, attention
TOKENS = Data(below(40), (40,), (16_384,))
entry("embedding", lambda indices, w: w[indices], "nn.functional.embedding",
      TOKENS, Data(normal, (40, 25), (1024, 64)))
generator = np.random.default_rng(0)
entry("dropout", lambda x: x * ((generator.random(x.shape) >= 0.5) * np.float32(2)),
      lambda t, x: t.nn.functional.dropout(x, 0.5), X,
      ours=lambda F, x: F.dropout(x, 0.5, generator))


def np_attention(query: Any, key: Any, value: Any, causal: bool = False) -> Any:
    scores = query @ key.mT / np.float32(math.sqrt(query.shape[-1]))
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, np.float32(-np.inf))
    return np_softmax(scores) @ value


HEADS = Data(normal, (2, 2, 8, 8), (4, 8, 128, 64))
entry("scaled_dot_product_attention", np_attention,
      "nn.functional.scaled_dot_product_attention", HEADS, HEADS, HEADS)
entry("scaled_dot_product_attention", np_attention,
      lambda t, *xs: t.nn.functional.scaled_dot_product_attention(*xs, is_causal=True),
      HEADS, HEADS, HEADS, causal=True)

# linear algebra
SYMMETRIC = Data(symmetric, (40, 5, 5), (40_000, 5, 5))
for name, ref, torch_name, data in (
    ("det", np.linalg.det, "linalg.det", STACK),
    ("inv", np.linalg.inv, "linalg.inv", STACK),
    ("slogdet", np.linalg.slogdet, "linalg.slogdet", STACK),
    ("cholesky", np.linalg.cholesky, "linalg.cholesky", SYMMETRIC),
    ("eigh", np.linalg.eigh, "linalg.eigh", SYMMETRIC),
    ("eigvalsh", np.linalg.eigvalsh, "linalg.eigvalsh", SYMMETRIC),
    ("svd", np.linalg.svd, "linalg.svd", SYMMETRIC),
    ("svdvals", np.linalg.svdvals, "linalg.svdvals", SYMMETRIC),
    ("trace", lambda x: np.linalg.trace(x), lambda t, x: x.diagonal(0, -2, -1).sum(-1), STACK),
    ("diagonal", lambda x: np.linalg.diagonal(x), lambda t, x: x.diagonal(0, -2, -1), STACK),
    ("matrix_norm", np.linalg.matrix_norm, "linalg.matrix_norm", STACK),
):
    entry(f"linalg.{name}", ref, torch_name, data)
entry("linalg.matrix_power", lambda x, n: np.linalg.matrix_power(x, n),
      lambda t, x: t.linalg.matrix_power(x, 3), STACK, n=3)
entry("linalg.solve", np.linalg.solve, "linalg.solve", STACK, STACK)
entry("linalg.solve_triangular", lambda a, b: np.linalg.solve(np.tril(a), b),
      lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False), STACK, STACK)
entry("linalg.cholesky_solve",
      lambda b, a: np.linalg.solve(np.tril(a) @ np.matrix_transpose(np.tril(a)), b),
      lambda t, b, a: t.cholesky_solve(b, t.tril(a)), STACK, STACK)
entry("linalg.vector_norm", lambda x, axis: np.linalg.vector_norm(x, axis=axis),
      lambda t, x: t.linalg.vector_norm(x, dim=1), MATRIX, axis=1)
entry("linalg.cross", np.linalg.cross, "linalg.cross",
      Data(normal, (300, 3), (300_000, 3)), Data(normal, (300, 3), (300_000, 3)))
entry("linalg.outer", np.linalg.outer, "outer",
      Data(normal, (25,), (1024,)), Data(normal, (40,), (1024,)))

entry("linalg.pinv", np.linalg.pinv, "linalg.pinv", STACK)
entry("linalg.qr", lambda x: np.linalg.qr(x)[1], lambda t, x: t.linalg.qr(x)[1], STACK,
      ours=lambda F, x: F.linalg.qr(x).R)

# activations, distances, places, windows
for name, ref, torch_name, draw in (
    ("rsqrt", lambda x: 1 / np.sqrt(x), "rsqrt", positive),
    ("relu6", lambda x: np.clip(x, 0, 6), "nn.functional.relu6", normal),
    ("erfc", lambda x: 1 - np_erf(x), "erfc", inside),
):
    entry(name, ref, torch_name, Data(draw))
entry("crelu", lambda x: np.concatenate((np.maximum(x, 0), np.maximum(-x, 0)), axis=1), None,
      MATRIX)
entry("clipped_relu", lambda x, limit: np.clip(x, 0, limit), lambda t, x: x.clamp(0, 2), X,
      limit=2.0)
entry("fmod", np.fmod, "fmod", X, POSITIVE)
entry("prelu", lambda x, w: np.where(x > 0, x, w * x), "nn.functional.prelu", X,
      Data(positive, (1,), (1,)))
entry("maxout", lambda x, size: x.reshape(*x.shape[:-1], -1, size).max(-1),
      lambda t, x: t.amax(x.unflatten(-1, (-1, 4)), -1), MATRIX, size=4)
entry("normalize", lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
      lambda t, x: t.nn.functional.normalize(x, dim=-1), MATRIX)
entry("cosine_similarity",
      lambda x, y: (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1),
      lambda t, x, y: t.nn.functional.cosine_similarity(x, y, dim=-1), MATRIX, MATRIX)
entry("topk", lambda x: -np.sort(-x, axis=-1)[..., :5], lambda t, x: t.topk(x, 5).values,
      Data(unlike, (25, 40), (1024, 1024)), ours=lambda F, x: F.topk(x, 5).values)
ADDED = Data(normal, (25, 40), (1024, 1024)), Data(below(25), (20,), (1000,))


def np_index_add(x: Any, indices: Any, values: Any) -> Any:
    y = x.copy()
    np.add.at(y, indices, values)
    return y


entry("index_add", np_index_add, lambda t, x, i, v: x.index_add(0, i, v), *ADDED,
      Data(normal, (20, 40), (1000, 1024)))
entry("max_pool1d", lambda x, kernel_size: x.reshape(*x.shape[:2], -1, kernel_size).max(-1),
      lambda t, x: t.nn.functional.max_pool1d(x, 2), SIGNALS, kernel_size=2)
entry("avg_pool1d", lambda x, kernel_size: x.reshape(*x.shape[:2], -1, kernel_size).mean(-1),
      lambda t, x: t.nn.functional.avg_pool1d(x, 2), SIGNALS, kernel_size=2)
entry("interpolate", lambda x, scale: x.repeat(scale, axis=2).repeat(scale, axis=3),
      lambda t, x: t.nn.functional.interpolate(x, scale_factor=2), IMAGES, scale=2)


def np_pixel_shuffle(x: Any, factor: int) -> Any:
    n, c, height, width = x.shape
    parts = x.reshape(n, c // factor**2, factor, factor, height, width)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(n, -1, height * factor, width * factor)


entry("pixel_shuffle", np_pixel_shuffle, lambda t, x: t.nn.functional.pixel_shuffle(x, 2), IMAGES,
      factor=2)

# names of the other functions, and the reasons for leaving them out
NOT_MEASURED = {
    "broadcast_shapes": "of shapes",
    "keyed_bits": "the draws of tinynode.random are measured as a whole",
    "linalg": "a module: its functions are measured",
    "linalg.matmul": "matmul itself",
    "linalg.matrix_transpose": "matrix_transpose itself",
    "linalg.tensordot": "tensordot itself",
    "linalg.vecdot": "vecdot itself",
    "zero_safe_divide": "divide of the table, where no divisor is 0",
    **dict.fromkeys(
        ("one_hot", "scatter_add", "max_unpool2d", "pixel_unshuffle", "contrastive",
         "triplet_margin", "gaussian_nll", "gumbel_softmax", "ctc_loss"),
        "a composition of functions of the table",
    ),
    **dict.fromkeys(
        ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
         "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool3d",
         "avg_pool3d", "conv3d", "conv_transpose1d", "conv_transpose3d", "grid_sample"),
        "by way of pooling, products or convolution of the table",
    ),
    **dict.fromkeys(
        ("bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
         "bitwise_right_shift", "bitwise_xor", "isfinite", "isinf", "isnan", "logical_and",
         "logical_not", "logical_or", "logical_xor", "signbit"),
        "one call of the array library, without a gradient",
    ),
    **dict.fromkeys(
        ("conj", "fft", "imag", "real"), "of complex numbers: the table has real ones"
    ),
    **dict.fromkeys(
        ("digamma", "erfinv", "lgamma", "polygamma"), "NumPy has no such function"
    ),
}

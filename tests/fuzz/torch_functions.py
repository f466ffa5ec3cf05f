"""tinynode's functions on PyTorch's tensors, for programs in the functional dialect.

Known departures between the libraries; each function here follows tinynode:

| PyTorch | tinynode | here |
|---|---|---|
| a 0-d tensor takes the dtype of the other operand | promotes as every array | ``promoted`` |
| int64 with float16 or float32 stays narrow | float64, as NumPy | ``promoted`` |
| an array beside a tensor is refused | takes the Variable's dtype | ``promoted`` |
| no negative steps in an index | as NumPy | ``get_item``, by positions |
| ``x[i] = v`` changes views and saved arrays | a new Variable | ``set_item``, ``in_place`` |
| ``float32 // float32`` is a floor of the exact quotient | NumPy's | ``floor_divide`` |
| ``var`` divides by n - 1 | by n | ``var``, ``std`` |
| ``clamp`` has gradient 0 at a bound | 1 | ``clip`` |
| ``x**0`` has second gradient NaN at 0 | 0 | ``pow`` |
| ``x**y`` has the derivative 0 by x and y at y = 0 | 1 / x | ``pow`` |
| ``sign`` of NaN is 0 | NaN | ``sign``, ``mean_absolute_error`` |
| ``copysign`` has second gradient NaN at 0 | 0 | ``copysign`` |
| ``softmax`` of a single ``inf`` in a row is NaN | 1 | ``with_limits`` |
| the gradient of ``logsumexp`` is e^(x - y), with a rounded y | softmax | ``logsumexp`` |
| ``elu`` and ``selu`` have the second gradient 0 at 0 | that of e^x | ``elu``, ``selu`` |
| ``hypot`` has the gradient NaN at (0, 0) | 0 | ``hypot`` |
| ``atan2`` has the gradient 0 at (0, 0) | NaN | ``atan2`` |
| the gradient of ``hard_sigmoid`` has a 1/6 of single precision | exact | ``hard_sigmoid`` |
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fuzz.programs import Program

TF = torch.nn.functional
torch.set_num_threads(1)  # the arrays are small

SAME = """
sin cos tanh sigmoid square negative exp expm1 sinh cosh erf atan asinh positive abs log sqrt log1p
log2 log10 reciprocal asin acos atanh acosh tan floor ceil round trunc sign tril triu
"""
SAME_NETWORK = {
    "relu": "relu", "gelu": "gelu", "silu": "silu", "softplus": "softplus",
    "log_sigmoid": "logsigmoid", "leaky_relu": "leaky_relu",
    "hard_tanh": "hardtanh", "hard_silu": "hardswish",
}  # fmt: skip
BINARY = """
add subtract multiply divide maximum minimum logaddexp remainder
less greater_equal equal not_equal less_equal greater
"""
OTHER_NAMES = {"equal": "eq", "not_equal": "ne"}


def tensor(value: Any) -> Any:
    """A copy: PyTorch has no negative strides."""
    return torch.from_numpy(np.array(value, order="C", copy=True))


def dtype_of(value: Any) -> Any:
    return np.dtype(str(value.dtype).removeprefix("torch."))


def torch_dtype(dtype: Any) -> Any:
    return getattr(torch, str(np.dtype(dtype)))


def promoted(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands as tensors of the dtype that tinynode computes in."""
    known = [one for one in (x, y) if isinstance(one, torch.Tensor)]
    if len(known) == 2:
        dtype = np.result_type(dtype_of(x), dtype_of(y))
        if torch_dtype(dtype) == known[0].dtype == known[1].dtype:
            return x, y
        return x.to(torch_dtype(dtype)), y.to(torch_dtype(dtype))
    (one,) = known
    dtype = one.dtype
    return tuple(v if v is one else torch.as_tensor(np.array(v), dtype=dtype) for v in (x, y))


def in_place(function: str, x: Any, y: Any) -> Any:
    return getattr(F, function)(x, y).to(x.dtype)


def floor_divide(x: Any, y: Any) -> Any:
    x, y = promoted(x, y)
    with np.errstate(all="ignore"):
        quotient = np.floor_divide(x.numpy(force=True), y.numpy(force=True))
    return torch.as_tensor(quotient)


def copysign(x: Any, y: Any) -> Any:
    x, y = promoted(x, y)
    turned = x * torch.where(torch.signbit(x) == torch.signbit(y), 1, -1)
    return torch.where(x == 0, turned.detach(), turned)  # the gradient at 0 is 0


def hypot(x: Any, y: Any) -> Any:
    x, y = promoted(x, y)
    is_origin = (x == 0) & (y == 0)
    length = torch.hypot(torch.where(is_origin, torch.ones_like(x), x), y)
    return torch.where(is_origin, torch.zeros_like(length), length)


def atan2(x: Any, y: Any) -> Any:
    x, y = promoted(x, y)
    undefined = torch.where((x == 0) & (y == 0), torch.hypot(x, y), 0)
    return torch.atan2(x, y) + undefined  # the gradient of the length 0 is NaN


def pow(x: Any, y: Any) -> Any:
    x, y = promoted(x, y)
    if y.ndim == 0 and not y.requires_grad and y == 0:
        return x * 0 + 1
    is_one = (y == 0) & (x > 0)  # x**0, whose second derivative by x and y is 1 / x
    if not y.requires_grad or not is_one.any():
        return torch.pow(x, y)
    base = torch.where(is_one, x, torch.ones_like(x))
    product = base * torch.pow(base, y - 1)
    one = 1 + (product - product.detach())  # the value without rounding, the derivatives of both
    return torch.where(is_one, one, torch.pow(x, y))


def sign(x: Any) -> Any:
    return torch.where(torch.isnan(x), x, torch.sign(x))


def zero_safe_multiply(x: Any, y: Any) -> Any:
    return F.multiply(x, y)


def hard_sigmoid(x: Any) -> Any:
    return torch.clamp(x / 6 + 0.5, 0, 1)


def hard_tanh(x: Any) -> Any:
    return F.clip(x, -1.0, 1.0)


def elu(x: Any) -> Any:
    return torch.where(x > 0, x, torch.expm1(torch.where(x > 0, 0, x)))


def selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * torch.where(x > 0, x, alpha * torch.expm1(torch.where(x > 0, 0, x)))


def identity(x: Any) -> Any:
    return x * 1


def detach(x: Any) -> Any:
    return x.detach()


def astype(x: Any, dtype: str) -> Any:
    return x.to(torch_dtype(dtype))


def clip(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else torch.where(x < low, low, x)
    return x if high is None else torch.where(x > high, high, x)


def where(mask: Any, x: Any, y: Any) -> Any:
    return torch.where(mask, *promoted(x, y))


def gelu(x: Any, approximate: bool = False) -> Any:
    return TF.gelu(x, approximate="tanh" if approximate else "none")


# --- reductions ---


def axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return axis if isinstance(axis, tuple) else (axis,)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    dtype = None if x.dtype.is_floating_point else torch.int64
    return torch.sum(x, axes, keepdims, dtype=dtype) if axes else x.to(dtype or x.dtype)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    return torch.mean(x, axes, keepdims) if axes else x


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    return torch.amax(x, axes, keepdims) if axes else x


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    return torch.amin(x, axes, keepdims) if axes else x


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    for one in sorted((a % x.ndim for a in axes_of(x, axis)), reverse=True):
        x = torch.prod(x, one, keepdims)
    return x


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    if not axes:
        return x
    largest = torch.amax(x, axes, keepdim=True).detach()
    total = torch.sum(torch.exp(x - largest), axes, keepdim=True).log() + largest
    return total if keepdims else total.squeeze(axes)


def var(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    axes = axes_of(x, axis)
    count = math.prod(x.shape[a] for a in axes)
    centered = x - mean(x, axis, True)
    return sum(centered * centered, axis, keepdims) / (count - correction)


def std(x: Any, axis: Any = None) -> Any:
    return torch.sqrt(var(x, axis))


# --- along an axis ---


class Replaced(torch.autograd.Function):
    """Other values, with the gradient of x."""

    @staticmethod
    def forward(context: Any, x: Any, values: Any) -> Any:
        return values

    @staticmethod
    def backward(context: Any, gy: Any) -> Any:
        return gy, None


def with_limits(x: Any, axis: int) -> Any:
    """Rows with a single inf become rows with the limit of their softmax."""
    is_infinite = x == math.inf
    is_limit = (torch.sum(is_infinite, axis, keepdim=True) == 1) & ~x.isnan().any(axis, True)
    limit = torch.where(is_infinite, 0.0, -math.inf).to(x.dtype)
    return Replaced.apply(x, torch.where(is_limit, limit, x.detach()))


def softmax(x: Any, axis: int = -1) -> Any:
    return torch.softmax(with_limits(x, axis), axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    return torch.log_softmax(with_limits(x, axis), axis)


def cumulative_sum(x: Any, axis: int) -> Any:
    return torch.cumsum(x, axis)


def cumulative_prod(x: Any, axis: int) -> Any:
    return torch.cumprod(x, axis)


def sort(x: Any, axis: int, descending: bool = False) -> Any:
    return torch.sort(x, dim=axis, descending=descending, stable=True).values


def argsort(x: Any, axis: int) -> Any:
    return torch.argsort(x, dim=axis, stable=True)


def argmax(x: Any, axis: int) -> Any:
    return torch.argmax(x, axis)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    return torch.take_along_dim(x, indices, axis)


def take(x: Any, indices: Any, axis: int) -> Any:
    moved = x.movedim(axis, 0)[indices]
    return moved if axis == 0 else moved.movedim(0, axis)


def flip(x: Any, axis: Any = None) -> Any:
    return torch.flip(x, axes_of(x, axis))


def roll(x: Any, shift: int, axis: Any = None) -> Any:
    return torch.roll(x, shift, axis)


def diff(x: Any, axis: int) -> Any:
    return torch.diff(x, dim=axis)


def glu(x: Any, axis: int) -> Any:
    return TF.glu(x, axis)


def repeat(x: Any, repeats: int, axis: int) -> Any:
    return torch.repeat_interleave(x, repeats, axis)


# --- shapes ---


def permute_dims(x: Any, axes: Any) -> Any:
    return torch.permute(x, axes)


def reshape(x: Any, shape: Any) -> Any:
    return torch.reshape(x, shape)


def expand_dims(x: Any, axis: int) -> Any:
    return torch.unsqueeze(x, axis)


def squeeze(x: Any, axis: int) -> Any:
    return torch.squeeze(x, axis)


def broadcast_to(x: Any, shape: Any) -> Any:
    return torch.broadcast_to(x, shape)


def sum_to(x: Any, shape: Any) -> Any:
    new = x.ndim - len(shape)
    ones = [new + i for i, n in enumerate(shape) if n == 1]
    x = sum(x, (*range(new), *ones), True)
    return x.reshape(shape)


def tile(x: Any, repetitions: Any) -> Any:
    return torch.tile(x, (repetitions,) if isinstance(repetitions, int) else repetitions)


def pad(x: Any, pad_width: Any, value: float) -> Any:
    pairs = [(pad_width, pad_width)] * x.ndim if isinstance(pad_width, int) else pad_width
    return TF.pad(x, [n for pair in reversed(pairs) for n in pair], value=value)


def matrix_transpose(x: Any) -> Any:
    return x.mT


def moveaxis(x: Any, source: int, target: int) -> Any:
    return torch.movedim(x, source, target)


def concat(xs: Any, axis: int) -> Any:
    return torch.concat(xs, axis)


def stack(xs: Any, axis: int) -> Any:
    return torch.stack(xs, axis)


def split(x: Any, places: Any, axis: int) -> Any:
    return torch.tensor_split(x, places, axis)


def unstack(x: Any, axis: int) -> Any:
    return torch.unbind(x, axis)


# --- indexing: positions in the flat array, found by NumPy ---


def positions(x: Any, index: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(_numbers(x)[index]).reshape(-1))


def _numbers(x: Any) -> Any:
    return np.arange(math.prod(x.shape)).reshape(tuple(x.shape))


def get_item(x: Any, index: Any) -> Any:
    return x.reshape(-1)[positions(x, index)].reshape(np.shape(_numbers(x)[index]))


def set_item(x: Any, index: Any, value: Any) -> Any:
    shape = np.shape(_numbers(x)[index])
    value = torch.broadcast_to(torch.as_tensor(value, dtype=x.dtype), shape)
    flat = x.reshape(-1).index_put((positions(x, index),), value.reshape(-1))
    return flat.reshape(x.shape)


# --- products, networks ---


def matmul(x: Any, y: Any) -> Any:
    return torch.matmul(*promoted(x, y))


def vecdot(x: Any, y: Any) -> Any:
    return torch.sum(x * y, -1)


def einsum(subscripts: str, *xs: Any) -> Any:
    return torch.einsum(subscripts, *xs)


def tensordot(x: Any, y: Any, axes: Any) -> Any:
    return torch.tensordot(*promoted(x, y), dims=axes)


def linear(x: Any, w: Any, b: Any = None) -> Any:
    return TF.linear(x, w, b)


def softmax_cross_entropy(x: Any, labels: Any, reduction: str, label_smoothing: float) -> Any:
    return TF.cross_entropy(
        with_limits(x, 1),
        torch.from_numpy(labels),
        ignore_index=-1,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def layer_norm(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    return TF.layer_norm(x, tuple(gamma.shape), gamma, beta, eps)


def rms_norm(x: Any, gamma: Any, eps: float) -> Any:
    return TF.rms_norm(x, tuple(gamma.shape), gamma, eps)


def batch_norm(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    return TF.batch_norm(x, None, None, gamma, beta, True, eps=eps)


def mean_squared_error(x: Any, y: Any, reduction: str) -> Any:
    return TF.mse_loss(x, y, reduction=reduction)


def mean_absolute_error(x: Any, y: Any, reduction: str) -> Any:
    d = x - y
    losses = d * sign(d)
    return losses if reduction == "none" else getattr(torch, reduction)(losses)


def huber(x: Any, y: Any, reduction: str) -> Any:
    return TF.huber_loss(x, y, reduction=reduction)


def scaled_dot_product_attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return softmax(scores, -1) @ v


def conv2d(x: Any, w: Any, b: Any, stride: int, padding: int) -> Any:
    return TF.conv2d(*promoted(x, w), b, stride, padding)


def conv_transpose2d(x: Any, w: Any, stride: int) -> Any:
    return TF.conv_transpose2d(*promoted(x, w), stride=stride)


def max_pool2d(x: Any, size: Any, stride: Any) -> Any:
    return TF.max_pool2d(x, size, stride)


def avg_pool2d(x: Any, size: Any, stride: Any, padding: Any) -> Any:
    return TF.avg_pool2d(x, size, stride, padding)


def binary(function: Any) -> Any:
    def call(x: Any, y: Any) -> Any:
        return function(*promoted(x, y))

    return call


LINALG = SimpleNamespace(
    inv=torch.linalg.inv,
    det=torch.linalg.det,
    cholesky=torch.linalg.cholesky,
    trace=lambda x: torch.sum(torch.diagonal(x, 0, -2, -1), -1),
)
OWN = {name: value for name, value in list(globals().items()) if callable(value)}
F = SimpleNamespace(
    **{
        **{name: getattr(torch, name) for name in SAME.split()},
        **{name: getattr(TF, theirs) for name, theirs in SAME_NETWORK.items()},
        **{name: binary(getattr(torch, OTHER_NAMES.get(name, name))) for name in BINARY.split()},
        **OWN,
        "copy": torch.clone,
        "linalg": LINALG,
    }
)


# --- the oracle ---


def run(program: Program) -> list[list[Any]]:
    """As ``derivatives``, with PyTorch's gradients."""
    function = program.function({"F": F, "np": np, "array": np.array}, functional=True)
    rng = np.random.default_rng(5)

    def like(x: Any) -> Any:
        drawn = np.asarray(rng.integers(-2000, 2001, tuple(x.shape)) / 1000)
        return tensor(drawn.astype(dtype_of(x))).requires_grad_()

    xs = [tensor(one.host()).requires_grad_(one.requires_grad) for one in program.inputs]
    ys = function(*xs)
    free = [x for x in xs if x.requires_grad]
    floats = [y for y in ys if y.dtype.is_floating_point]
    gys, vs = [like(y) for y in floats], [like(x) for x in free]
    known = [(y, gy) for y, gy in zip(floats, gys, strict=True) if y.requires_grad]
    gxs: Any = [None] * len(free)
    ggs: Any = [None] * len([*free, *gys])
    if known and free:
        ends, starts = zip(*known, strict=True)
        gxs = torch.autograd.grad(ends, free, starts, create_graph=True, allow_unused=True)
    pairs = zip(gxs, vs, strict=True)
    known = [(gx, v) for gx, v in pairs if gx is not None and gx.requires_grad]
    if known:
        ends, starts = zip(*known, strict=True)
        ggs = torch.autograd.grad(ends, [*free, *gys], starts, allow_unused=True)
    groups = (ys, gxs, ggs)
    return [[None if x is None else x.numpy(force=True) for x in group] for group in groups]

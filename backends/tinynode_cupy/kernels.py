"""CUDA kernels for the functions where CuPy's own operations pass over memory many times.

Not yet run on a GPU. The tests compile the formulas below with a C++ compiler for the host, and
compare with the portable forwards. CUDA, launches and speed are untested.

Requirement: a kernel replaces the forward of a class, and no more. A kernel retains the same
arrays as the forward, and returns ``Fallback`` for inputs without a kernel. Function classes do
not know CuPy, so the kernels stand in a table by class.

Dropout has no kernel. The mask is drawn on the host, to be equal on every device. The rest is a
multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy

from tinynode.devices import Fallback
from tinynode.functions.activation import GELU, GELUGrad, LogSoftmax, TanhGELU, TanhGELUGrad
from tinynode.functions.cross_entropies import SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad
from tinynode.functions.linalg import Cholesky, Inv, Solve
from tinynode.functions.loss import check_labels
from tinynode.functions.normalization import Standardize, StandardizeGrad
from tinynode.functions.scaling import scale_of, square_range
from tinynode.functions.triangular import SolveTriangular

Arrays = tuple[Any, ...]
Kernel = Callable[[Any, Arrays], Any]


class ElementwiseSource(NamedTuple):
    """The source of a ``cupy.ElementwiseKernel``: parameters, results, and the statements."""

    name: str
    inputs: str
    outputs: str
    body: str


class ReductionSource(NamedTuple):
    """The source of a ``cupy.ReductionKernel``: a term of each element, a result of the sum."""

    name: str
    inputs: str
    output: str
    term: str
    result: str


# CuPy reserves the names i, n and names with a leading underscore; T is the dtype of the arrays.
NORMAL = "T p = T(0.5) * erfc(-x * T(0.70710678118654752440)); "
# x held where the density or the sigmoid has ended: beyond it powers overflow; NaN stays
HOLD = "T held = x > T({0}) ? T({0}) : x < T(-{0}) ? T(-{0}) : x; "
# y = max(x, 0) - |x| P(-|x|): 0 at -inf, where x P(x) is NaN
RECTIFIED = "T rectified = x < T(0) ? T(0) : x; T size = fabs(held); "
# of 2 c (x + a x^3), c = sqrt(2 / pi): the sigmoid of the absolute value, and of minus this value
SIGMOIDS = HOLD.format(25) + (
    "T c = T(1.59576912160573071176); T square = held * held; "
    "T e = exp(-fabs((square * T(0.044715) + T(1)) * held * c)); "
    "T larger = T(1) / (T(1) + e); T smaller = e * larger; "
)
GELU_SOURCE = ElementwiseSource(
    "tinynode_gelu",
    "T x",
    "T y",
    HOLD.format(40)
    + RECTIFIED
    + "y = rectified - size * (T(0.5) * erfc(size * T(0.70710678118654752440)));",
)
GELU_GRAD_SOURCE = ElementwiseSource(
    "tinynode_gelu_grad",
    "T x, T gy",
    "T gx",
    NORMAL
    + HOLD.format(40)
    + "T density = exp(held * held * T(-0.5)) * T(0.39894228040143267794); "
    "gx = gy * (p + held * density);",
)
TANH_GELU_SOURCE = ElementwiseSource(
    "tinynode_tanh_gelu", "T x", "T y", SIGMOIDS + RECTIFIED + "y = rectified - size * smaller;"
)
TANH_GELU_GRAD_SOURCE = ElementwiseSource(
    "tinynode_tanh_gelu_grad",
    "T x, T gy",
    "T gx",
    SIGMOIDS + "T u = (square * T(0.134145) + T(1)) * c; "
    "T s = held < T(0) ? smaller : larger; T rest = held < T(0) ? larger : smaller; "
    "gx = gy * (s * (held * rest * u + T(1)));",
)
# The largest x add e^0 = 1 each, beside which a small rest of the sum would be lost.
COUNT_LARGEST_SOURCE = ReductionSource(
    "tinynode_count_largest", "T x, T largest", "T y", "x == largest ? T(1) : T(0)", "a"
)
SUM_REST_SOURCE = ReductionSource(
    "tinynode_sum_rest", "T x, T largest", "T y", "x == largest ? T(0) : exp(x - largest)", "a"
)
# One +inf in a row has the limit 0, with -inf beside it; rows without a limit are NaN.
LOG_SOFTMAX_SOURCE = ElementwiseSource(
    "tinynode_log_softmax",
    "T x, T largest, T count, T rest",
    "T y",
    "bool has_limit = isfinite(largest) || (count == T(1) && largest > T(0)); "
    "T shifted = x == largest && has_limit ? T(0) : x - largest; "
    "y = shifted - log1p((has_limit ? rest : largest - largest) + (count - T(1)));",
)
# One row of log_p, (rows, classes), for each label; CuPy gives i, the place of the label.
PICK_SOURCE = ElementwiseSource(
    "tinynode_pick_losses",
    "S label, raw T log_p, int64 classes, int64 ignored",
    "T loss, T counts",
    "bool valid = label != ignored; counts = valid ? T(1) : T(0); "
    "loss = valid ? -log_p[i * classes + label] : T(0);",
)
CROSS_ENTROPY_GRAD_SOURCE = ElementwiseSource(
    "tinynode_cross_entropy_grad",
    "T log_p, S label, S column, T scale, int64 ignored",
    "T gx",
    "gx = label == ignored ? T(0) : (label == column ? expm1(log_p) : exp(log_p)) * scale;",
)
# k is a power of two for each row, so that no square overflows: m is the mean of x k.
SCALED_MEAN_SOURCE = ReductionSource(
    "tinynode_scaled_mean", "T x, T k, T length", "T m", "x * k", "a / length"
)
SCALED_VARIANCE_SOURCE = ReductionSource(
    "tinynode_scaled_variance",
    "T x, T m, T k, T length",
    "T square",
    "(x * k - m) * (x * k - m)",
    "a / length",
)
STANDARDIZE_SOURCE = ElementwiseSource(
    "tinynode_standardize", "T x, T m, T k, T r", "T y", "y = (x * k - m) * r;"
)
MEAN_PRODUCT_SOURCE = ReductionSource(
    "tinynode_mean_product", "T g, T y, T length", "T mean", "g * y", "a / length"
)
STANDARDIZE_GRAD_SOURCE = ElementwiseSource(
    "tinynode_standardize_grad",
    "T g, T y, T r, T along, T offset",
    "T gx",
    "gx = (g - y * along - offset) * r;",
)


def compile_elementwise(source: ElementwiseSource) -> Any:
    """The kernel; CUDA compiles at the first call with a dtype."""
    return cupy.ElementwiseKernel(source.inputs, source.outputs, source.body, source.name)


def compile_reduction(source: ReductionSource) -> Any:
    """The kernel of a sum; CUDA compiles at the first call with a dtype."""
    variable = source.output.split()[-1]
    return cupy.ReductionKernel(
        source.inputs,
        source.output,
        source.term,
        "a + b",
        f"{variable} = {source.result}",
        "0",
        source.name,
    )


_gelu = compile_elementwise(GELU_SOURCE)
_gelu_grad = compile_elementwise(GELU_GRAD_SOURCE)
_tanh_gelu = compile_elementwise(TANH_GELU_SOURCE)
_tanh_gelu_grad = compile_elementwise(TANH_GELU_GRAD_SOURCE)
_count_largest = compile_reduction(COUNT_LARGEST_SOURCE)
_sum_rest = compile_reduction(SUM_REST_SOURCE)
_log_softmax = compile_elementwise(LOG_SOFTMAX_SOURCE)
_pick_losses = compile_elementwise(PICK_SOURCE)
_cross_entropy_grad = compile_elementwise(CROSS_ENTROPY_GRAD_SOURCE)
_scaled_mean = compile_reduction(SCALED_MEAN_SOURCE)
_scaled_variance = compile_reduction(SCALED_VARIANCE_SOURCE)
_standardize = compile_elementwise(STANDARDIZE_SOURCE)
_mean_product = compile_reduction(MEAN_PRODUCT_SOURCE)
_standardize_grad = compile_elementwise(STANDARDIZE_GRAD_SOURCE)


def _not_covered(*arrays: Any) -> Fallback | None:
    """The reason for a fallback, or None for float32 or float64 arrays with elements."""
    dtypes = {str(array.dtype) for array in arrays}
    if len(dtypes) > 1 or not dtypes <= {"float32", "float64"}:
        return Fallback(f"{', '.join(sorted(dtypes))} has no kernel")
    if any(array.size == 0 for array in arrays):
        return Fallback("an array without elements")
    return None


def gelu(node: Any, arrays: Arrays) -> Any:
    """``GELU`` in one pass."""
    node.retain_inputs((0,))
    return _not_covered(*arrays) or (_gelu(*arrays),)


def gelu_grad(node: Any, arrays: Arrays) -> Any:
    """``GELUGrad`` in one pass."""
    node.retain_inputs((0, 1))
    return _not_covered(*arrays) or (_gelu_grad(*arrays),)


def tanh_gelu(node: Any, arrays: Arrays) -> Any:
    """``TanhGELU`` in one pass."""
    node.retain_inputs((0,))
    return _not_covered(*arrays) or (_tanh_gelu(*arrays),)


def tanh_gelu_grad(node: Any, arrays: Arrays) -> Any:
    """``TanhGELUGrad`` in one pass."""
    node.retain_inputs((0, 1))
    return _not_covered(*arrays) or (_tanh_gelu_grad(*arrays),)


def _log_softmax_array(x: Any, axis: int) -> Any:
    """x - max - ln(sum of e^(x - max)), in four passes."""
    largest = cupy.max(x, axis=axis, keepdims=True)
    count = _count_largest(x, largest, axis=axis, keepdims=True)
    rest = _sum_rest(x, largest, axis=axis, keepdims=True)
    return _log_softmax(x, largest, count, rest)


def log_softmax(node: Any, arrays: Arrays) -> Any:
    """``LogSoftmax`` in four passes."""
    node.retain_outputs((0,))
    return _not_covered(*arrays) or (_log_softmax_array(arrays[0], node.axis),)


def softmax_cross_entropy(node: Any, arrays: Arrays) -> Any:
    """``SoftmaxCrossEntropy`` without weights of classes and without smoothing."""
    x, labels = arrays[:2]
    if len(arrays) > 2 or node.smoothing:
        return Fallback("weights of classes, or label smoothing")
    refused = _not_covered(x)
    if refused:
        return refused
    if x.shape[:-1] != labels.shape:  # the kernel reads a row of x for each label
        return Fallback("labels of another shape")
    classes = x.shape[1]
    check_labels("softmax_cross_entropy", "x", labels, classes, node.ignore_label)
    node.retain_inputs((1,))
    node.retain_outputs((1,))
    log_p = _log_softmax_array(x, 1)
    losses, counts = _pick_losses(labels, log_p, classes, node.ignore_label)
    if node.reduction == "none":
        return losses, log_p
    total = cupy.sum(losses)
    if node.reduction == "mean":
        total = total / cupy.maximum(cupy.sum(counts), 1)  # a sum of zeros and ones
    return total, log_p


def softmax_cross_entropy_grad(node: Any, arrays: Arrays) -> Any:
    """``SoftmaxCrossEntropyGrad`` in one pass over the classes, with the same conditions."""
    log_p, g, labels = arrays[:3]
    if len(arrays) > 3 or node.smoothing:
        return Fallback("weights of classes, or label smoothing")
    refused = _not_covered(log_p, g)
    if refused:
        return refused
    node.retain_inputs((0, 1, 2))
    counts = node._counts(labels != node.ignore_label, labels, (), log_p)
    scale = cupy.reshape(node._scale(g, counts, ()), (-1, 1))
    columns = cupy.arange(log_p.shape[1], dtype=cupy.int64)[None, :]
    wide = labels.astype(cupy.int64)[:, None]
    return (_cross_entropy_grad(log_p, wide, columns, scale, node.ignore_label),)


def _length(x: Any, axes: tuple[int, ...]) -> float:
    return float(math.prod(x.shape[axis] for axis in axes))


def standardize(node: Any, arrays: Arrays) -> Any:
    """``Standardize``, the core of all norms, in four passes: the first finds the scale."""
    (x,) = arrays
    refused = _not_covered(x)
    if refused:
        return refused
    node.retain_outputs((0, 2))
    length = _length(x, node.axes)
    k = scale_of(x, node.axes, may_be_small=node.eps > square_range(x).least)
    if node.center:
        m = _scaled_mean(x, k, length, axis=node.axes, keepdims=True)
    else:
        m = cupy.zeros_like(k)
    square = _scaled_variance(x, m, k, length, axis=node.axes, keepdims=True)
    r = 1.0 / cupy.sqrt(square + node.eps * k * k)
    return _standardize(x, m, k, r), m / k, r * k


def standardize_grad(node: Any, arrays: Arrays) -> Any:
    """``StandardizeGrad`` in three passes."""
    g, y, r = arrays
    refused = _not_covered(g, y, r)
    if refused:
        return refused
    node.retain_inputs((0, 1, 2))
    along = _mean_product(g, y, _length(y, node.axes), axis=node.axes, keepdims=True)
    offset = cupy.mean(g, axis=node.axes, keepdims=True) if node.center else cupy.zeros_like(r)
    return (_standardize_grad(g, y, r, along, offset),)


KERNELS: dict[type, Kernel] = {
    GELU: gelu,
    GELUGrad: gelu_grad,
    LogSoftmax: log_softmax,
    SoftmaxCrossEntropy: softmax_cross_entropy,
    SoftmaxCrossEntropyGrad: softmax_cross_entropy_grad,
    Standardize: standardize,
    StandardizeGrad: standardize_grad,
    TanhGELU: tanh_gelu,
    TanhGELUGrad: tanh_gelu_grad,
}
"""The kernels in place of portable forwards; a subclass runs the portable forward."""

CHECKED: frozenset[type] = frozenset({Cholesky, Inv, Solve, SolveTriangular})
"""Classes that raise LinAlgError, as with NumPy; CuPy raises only on request."""

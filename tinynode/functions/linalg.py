"""Linear algebra: the ``linalg`` extension of the Array API standard, for real matrices.

Matrices stand in the last two axes; all axes before them are a stack. ``cholesky``, ``eigh`` and
``eigvalsh`` read a symmetric matrix, and give the gradient as a symmetric matrix.

Source of the gradients: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode
Algorithmic Differentiation, 2008; Murray, Differentiation of the Cholesky decomposition, 2016.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Never

import numpy

from tinynode.core.array_arguments import constant_beside, raw_of
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    namespace_of,
    sum_array,
)
from tinynode.errors import OperandError, describe, short_text
from tinynode.functions import guards
from tinynode.functions.arithmetic import BroadcastingNode, abs, sign, zero_safe_multiply
from tinynode.functions.attributes import Axes
from tinynode.functions.checked import checked_float
from tinynode.functions.cofactors import Cofactors
from tinynode.functions.comparison import equal, not_equal
from tinynode.functions.data_types import astype, narrowed, promoted, widened
from tinynode.functions.decompositions import (
    FINITE,
    SINGULAR,
    MatrixNode,
    SquareMatrixNode,
    SystemNode,
    as_matrices,
    call_on_finite,
    column,
    eigh,
    eigvalsh,
    eye_beside,
    named_call,
    svd,
    svdvals,
    symmetric,
)
from tinynode.functions.exponential import pow
from tinynode.functions.indexing import get_item
from tinynode.functions.manipulation import concat
from tinynode.functions.masking import keep_zeros
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_number,
    as_operand,
    as_operands,
    normalize_axes,
)
from tinynode.functions.products import cross, matmul, matrix_transpose, outer, tensordot, vecdot
from tinynode.functions.scaling import are_usual, scale_of
from tinynode.functions.searching import tril, where
from tinynode.functions.shapes import (
    broadcast_to,
    expand_dims,
    reshape,
    squeeze,
    unbroadcast,
    zeros_beside,
)
from tinynode.functions.statistical import ReducingNode
from tinynode.functions.statistical import max as max_
from tinynode.functions.statistical import min as min_
from tinynode.functions.statistical import sum as sum_
from tinynode.functions.triangular import SolveTriangular, cholesky_solve, solve_triangular
from tinynode.habits import missing_attribute
from tinynode.type_check import TypeInfoTuple, expect, is_floating

__all__ = [
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
__dir__ = __all__.copy  # for completion


class Inv(SquareMatrixNode):
    """Y = X^-1.   X: (..., n, n) -> Y: (..., n, n).   dL/dX = -Y^T dL/dY Y^T"""

    guard = guards.SINGULAR

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (named_call("inv", namespace_of(x).linalg.inv, x, cure=SINGULAR),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        yt = matrix_transpose(y)
        return (-matmul(matmul(yt, gy), yt),)


def inv(x: Any) -> Variable:
    """The inverse of a square matrix.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
        ValueError: a matrix is singular (the array library's LinAlgError).
    """
    return Inv().apply((as_matrices("inv", "x", x),))[0]


class Solve(SystemNode):
    """X with A X = B.

    A: (..., n, n), B: (..., n, m) -> X: (..., n, m); the stacks broadcast.
    dL/dB = A^-T dL/dX   dL/dA = -dL/dB X^T, each summed to the input's shape
    """

    guard = guards.SINGULAR
    input_names = ("x1", "x2")
    type_hint = "x1 is (..., n, n) and x2 (..., n, m) or (n), both floating and of one dtype."

    def forward(self, inputs: Arrays) -> Arrays:
        a, b = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (named_call("solve", namespace_of(a).linalg.solve, a, b, cure=SINGULAR),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gx,) = grad_outputs
        (a,) = self.get_retained_inputs()
        (x,) = self.get_retained_outputs()
        gb = Solve().apply((matrix_transpose(a), gx))[0]
        ga = None
        if 0 in target_input_indexes:
            ga = unbroadcast(-matmul(gb, matrix_transpose(x)), self, 0)
        return ga, unbroadcast(gb, self, 1)


def solve(x1: Any, x2: Any) -> Variable:
    """The solution X of x1 X = x2.

    Args:
        x1: square matrices, (..., n, n).
        x2: a vector (n), or matrices (..., n, m).

    Raises:
        InvalidType: shapes do not fit together, or a matrix is not floating.
        ValueError: a matrix is singular (the array library's LinAlgError).
    """
    x1, x2 = as_operands("solve", x1, x2, ("x1", "x2"))
    x1, x2 = promoted(as_matrices("solve", "x1", x1), as_matrices("solve", "x2", x2))
    if x2.ndim == 1:
        return squeeze(Solve().apply((x1, expand_dims(x2, 1)))[0], -1)
    return Solve().apply((x1, x2))[0]


class Det(SquareMatrixNode):
    """y = det X.   X: (..., n, n) -> y: (...).   dL/dX = dL/dy * (the cofactors of X)"""

    guard = guards.SINGULAR

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).linalg.det(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (column(column(gy)) * Cofactors().apply((x,))[0],)


def det(x: Any) -> Variable:
    """The determinant of a square matrix.

    The gradient needs the inverse. For singular matrices of up to 32 rows, n^2 determinants take
    the place of the inverse. Larger singular matrices are an error that names ``inv``.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return Det().apply((as_matrices("det", "x", x),))[0]


class SlogDetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of the absolute value."""

    sign: Variable
    logabsdet: Variable


class SlogDet(SquareMatrixNode):
    """sign, l = the sign of det X, and ln |det X|.

    X: (..., n, n) -> sign: (...), l: (...).   dL/dX = dL/dl * X^-T; the sign has no gradient
    """

    output_counts = (2,)
    guard = guards.SINGULAR

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return tuple(namespace_of(x).linalg.slogdet(x))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gl = grad_outputs[1]
        (x,) = self.get_retained_inputs()
        if gl is None:
            return (x * 0.0,)
        return (column(column(gl)) * matrix_transpose(inv(x)),)


def slogdet(x: Any) -> SlogDetResult:
    """The sign of the determinant, and the logarithm of the absolute value.

    The gradient needs the inverse: a singular matrix is an error that names ``inv``.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return SlogDetResult(*SlogDet().apply((as_matrices("slogdet", "x", x),)))


class Cholesky(SquareMatrixNode):
    """L, lower triangular with L L^T = X.

    X: (..., n, n), symmetric positive definite -> L: (..., n, n).
    With P = the lower triangle of L^T dL/dL, the diagonal halved:   dL/dX = the symmetric part of
    L^-T P L^-1
    """

    guard = guards.SINGULAR

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        cure = "Each matrix must be symmetric, and its eigenvalues positive."
        return (named_call("cholesky", namespace_of(x).linalg.cholesky, x, cure=cure),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gl,) = grad_outputs
        (lower,) = self.get_retained_outputs()
        array = raw_of(lower)
        xp = namespace_of(array)
        mask = xp.tril(xp.ones_like(array)) - 0.5 * xp.eye(
            array.shape[-1], dtype=array.dtype, device=array.device
        )
        transposed = matrix_transpose(lower)
        inner = matmul(transposed, gl) * constant_beside(lower, mask)
        half = SolveTriangular(upper=True).apply((transposed, inner))[0]
        whole = SolveTriangular(upper=True).apply((transposed, matrix_transpose(half)))[0]
        return (symmetric(whole),)


def cholesky(x: Any, *, upper: bool = False) -> Variable:
    """The triangular factor of a symmetric positive definite matrix: L L^T, or U^T U.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
        ValueError: a matrix is not positive definite (the array library's LinAlgError).
    """
    upper = as_flag("cholesky", "upper", upper)
    lower = Cholesky().apply((as_matrices("cholesky", "x", x),))[0]
    return matrix_transpose(lower) if upper else lower


class Pinv(MatrixNode):
    """Y = X^+, the pseudo-inverse: singular values up to ``rtol`` times the largest count as 0.

    X: (..., n, m), floating -> Y: (..., m, n).   With G = dL/dY, where the rank does not change:
    dL/dX = -Y^T G Y^T + (1 - X Y) G^T Y Y^T + Y^T Y G^T (1 - Y X)
    """

    guard = guards.SINGULAR
    input_names = ("x",)
    type_hint = "x is (..., n, m), floating."

    def __init__(self, rtol: float | None) -> None:
        self.rtol = checked_float(self, "rtol", rtol)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]), in_types[0].ndim >= 2)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        pinv_of = partial(namespace_of(x).linalg.pinv, rtol=self.rtol)
        return (call_on_finite("pinv", pinv_of, x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        yt, gt = matrix_transpose(y), matrix_transpose(gy)
        left, right = matmul(matmul(gt, y), yt), matmul(matmul(yt, y), gt)
        gx = left - matmul(x, matmul(y, left)) + right - matmul(matmul(right, y), x)
        return (gx - matmul(matmul(yt, gy), yt),)


def pinv(x: Any, *, rtol: float | None = None) -> Variable:
    """The pseudo-inverse of Moore and Penrose, of matrices of any shape.

    The gradient holds where the rank is constant. The pseudo-inverse jumps where the rank changes.

    Args:
        x: matrices, (..., n, m).
        rtol: singular values up to rtol times the largest count as 0; None takes the array
            library's default.

    Source: Golub and Pereyra, The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
    Problems Whose Variables Separate, 1973.

    Raises:
        InvalidType: x is not a stack of floating matrices.
        OperandError: ``rtol`` is not a number.
    """
    least = None if rtol is None else as_number("pinv", "rtol", rtol)
    return Pinv(least).apply((as_matrices("pinv", "x", x),))[0]


class QrResult(NamedTuple):
    """Q, with orthonormal columns, and R, upper triangular."""

    Q: Variable
    R: Variable


class Qr(MatrixNode):
    """Q, R with X = Q R, Q^T Q = 1, R upper triangular.

    X: (..., n, m), n >= m -> Q: (..., n, m), R: (..., m, m).
    With M = R (dL/dR)^T - (dL/dQ)^T Q, and S the lower triangle of M mirrored above the diagonal:
    dL/dX = (dL/dQ + Q S) R^-T; needs an invertible R
    """

    guard = guards.SINGULAR
    output_counts = (2,)
    input_names = ("x",)
    type_hint = "x is (..., n, m), floating."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]), in_types[0].ndim >= 2)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 1))
        return tuple(named_call("qr", namespace_of(x).linalg.qr, x, cure=FINITE))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gq, gr = grad_outputs
        q, r = self.get_retained_outputs()
        gr = zeros_beside(r, r.shape) if gr is None else gr
        inner = matmul(r, matrix_transpose(gr))
        if gq is not None:
            inner = inner - matmul(matrix_transpose(gq), q)
        mirrored = tril(inner) + matrix_transpose(tril(inner, k=-1))
        total = matmul(q, mirrored)
        total = total if gq is None else total + gq
        solved = SolveTriangular(upper=True).apply((r, matrix_transpose(total)))[0]
        return (matrix_transpose(solved),)


def qr(x: Any, *, mode: str = "reduced") -> QrResult:
    """The decomposition x = Q R; of matrices with more columns than rows, R = (R1, Q^T X2).

    The gradient needs min(n, m) independent columns: the first columns.

    Args:
        x: matrices, (..., n, m).
        mode: "reduced", Q: (..., n, k) and R: (..., k, m) with k = min(n, m). "complete" is the
            same where n <= m, and has no gradient elsewhere.

    Source: Liao et al., Differentiable Programming Tensor Networks, 2019.

    Raises:
        InvalidType: x is not a stack of floating matrices.
        ValueError: the mode is unknown, or "complete" for matrices with more rows than columns.
    """
    x = as_matrices("qr", "x", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode must be "reduced" or "complete", got {mode!r}.')
    tall = x.ndim >= 2 and x.shape[-2] > x.shape[-1]
    if mode == "complete" and tall:
        raise ValueError(
            f"qr: the complete Q of x (shape {x.shape}) has no gradient, since its last columns "
            'are arbitrary; use mode="reduced".'
        )
    if x.ndim < 2 or x.shape[-2] >= x.shape[-1]:
        return QrResult(*Qr().apply((x,)))
    n = x.shape[-2]
    q, r = Qr().apply((x[..., :n],))
    return QrResult(q, concat([r, matmul(matrix_transpose(q), x[..., n:])], axis=-1))


def diagonal(x: Any, *, offset: int = 0) -> Variable:
    """The diagonal of a matrix; ``offset`` > 0 lies above the main diagonal, < 0 below.

    Raises:
        ValueError: x has fewer than two axes.
    """
    x = as_operand("diagonal", "x", x)
    _require_matrix("diagonal", x)
    offset = as_integer("diagonal", "offset", offset)
    n, m = x.shape[-2:]
    rows, columns = (n, m - offset) if offset >= 0 else (n + offset, m)
    length = rows if rows < columns else columns
    start = offset if offset >= 0 else -offset * m
    flat = reshape(x, (*x.shape[:-2], n * m))
    if length <= 0:
        return get_item(flat, (..., slice(0, 0)))
    return get_item(flat, (..., slice(start, start + (length - 1) * (m + 1) + 1, m + 1)))


def _require_matrix(function: str, x: Variable) -> None:
    if x.ndim < 2:
        raise ValueError(f"{function}: x needs two axes at least, its shape is {x.shape}.")


def trace(x: Any, *, offset: int = 0) -> Variable:
    """The sum of a diagonal of a matrix.

    Raises:
        ValueError: x has fewer than two axes.
    """
    x = as_operand("trace", "x", x)
    _require_matrix("trace", x)
    offset = as_integer("trace", "offset", offset)
    return sum_(diagonal(x, offset=offset), axis=-1)


def matrix_power(x: Any, n: int) -> Variable:
    """The n-th power of a square matrix, by repeated squaring; of the inverse for negative n.

    Raises:
        OperandError: x is not floating, or n is not an integer.
        ValueError: the matrix is not square.
    """
    base = as_floating("matrix_power", "x", x)
    try:
        n = operator.index(n)
    except TypeError:
        raise OperandError(f"matrix_power: n must be an integer, got {describe(n)}.") from None
    _require_matrix("matrix_power", base)
    if base.shape[-1] != base.shape[-2]:
        raise ValueError(f"matrix_power: x must be square, its shape is {base.shape}.")
    square = inv(base) if n < 0 else base
    power: Variable | None = None
    left = -n if n < 0 else n
    while left:
        if left % 2:
            power = square if power is None else matmul(power, square)
        left //= 2
        if left:
            square = matmul(square, square)
    if power is None:  # n = 0: the identity, with gradient 0
        nothing = zero_safe_multiply(zeros_beside(base, base.shape), base)
        return broadcast_to(eye_beside(base), base.shape) + nothing
    return power


def vector_norm(
    x: Any,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Variable:
    """The p-norm (sum |x_i|^p)^(1/p), over an axis, several, or all.

    Large and small numbers neither overflow nor underflow on the way. At x = 0 a norm has no
    slope: the gradient there is 0, the smallest of the slopes around, and second derivatives are
    not finite. For a squared length with all derivatives write ``vecdot(x, x)`` or
    ``sum(x * x)``, not ``vector_norm(x) ** 2``.

    Args:
        x: floating.
        axis: an axis, several axes, or None for all.
        keepdims: keep the reduced axes with length 1.
        ord: p. ``inf`` is the largest |x_i|, ``-inf`` the smallest, 0 the number of nonzero x_i.

    Raises:
        OperandError: x is not floating, or ``ord`` is not a number.
        ValueError: an axis does not exist.
    """
    x = as_floating("vector_norm", "x", x)
    as_number("vector_norm", "ord", ord)
    axes = normalize_axes("vector_norm", axis, x.ndim)
    keepdims = as_flag("vector_norm", "keepdims", keepdims)
    if ord == math.inf:
        return max_(abs(x), axes, keepdims)
    if ord == -math.inf:
        return min_(abs(x), axes, keepdims)
    if ord == 0:
        return sum_(astype(not_equal(x, 0), x.dtype), axes, keepdims)
    if ord == 1:
        return sum_(abs(x), axes, keepdims)
    wide = widened(x)
    return narrowed(VectorNorm(axes, keepdims, float(ord)).apply((wide,))[0], x)


class VectorNorm(ReducingNode):
    """y = (sum |x_i|^p)^(1/p) over axes, p = ord neither 0 nor infinite.

    x: (s), float32 or float64 -> y: (s without the axes, or with length 1 there).
    With u = x / y:   dL/dx = dL/dy * sign(u) |u|^(p-1), and 0 where y = 0 and p > 0
    """

    infinite_slope = True  # the second derivative, at y = 0
    wide = True

    def __init__(self, axes: Axes, keepdims: bool, ord: float) -> None:
        super().__init__(axes, keepdims)
        self.ord = checked_float(self, "ord", ord)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        if not self.axes:
            return (namespace_of(x).abs(x),)
        y = _length(x, self.axes) if self.ord == 2.0 else _norm(x, self.axes, self.ord)
        return (y if self.keepdims else namespace_of(x).squeeze(y, axis=self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        gy = self._kept(grad_outputs[0])
        (x,) = self.get_retained_inputs()
        y = self._kept(self.get_retained_outputs()[0])
        u = x / y if self.ord < 0.0 else Direction().apply((x, y))[0]
        if self.ord != 2.0:
            u = sign(u) * _power_of_abs(u, self.ord - 1.0)
        return (gy * u,)


def _length(x: Array, axes: tuple[int, ...]) -> Array:
    """The root of the sum of the squares over axes, which stay with length 1."""
    xp = namespace_of(x)
    with numpy.errstate(over="ignore"):
        squares = sum_array(x * x, axes, keepdims=True)
    if 0 in x.shape or are_usual(squares):
        return xp.sqrt(squares)
    scale = scale_of(x, axes)
    scaled = x * scale
    return xp.sqrt(sum_array(scaled * scaled, axes, keepdims=True)) / scale


def _norm(x: Array, axes: tuple[int, ...], p: float) -> Array:
    """The p-norm over axes, which stay with length 1; the numbers are divided by the largest."""
    xp = namespace_of(x)
    size = xp.abs(x)
    if 0 in x.shape:
        return sum_array(size, axes, keepdims=True)
    largest = (xp.max if p > 0.0 else xp.min)(size, axis=axes, keepdims=True)
    usable = xp.isfinite(largest) & (largest > 0.0)
    largest = xp.where(usable, largest, xp.ones_like(largest))
    return largest * sum_array((size / largest) ** p, axes, keepdims=True) ** (1.0 / p)


def _power_of_abs(x: Variable, p: float) -> Variable:
    """|x|^p, but 0 at x = 0 for p from -1 to 0: there the norm has no slope."""
    if not -1.0 < p < 0.0:
        return pow(abs(x), p)
    zero = equal(x, 0)
    return where(zero, 0, pow(abs(where(zero, 1, x)), p))


class Direction(BroadcastingNode):
    """u = x / y, and 0 where x = y = 0: vectors of length 1, from vectors and lengths.

    x: (s), y: (t) -> u: (broadcast of s and t).
    With g = dL/du:   dL/dx = sum_to(g / y, s)   dL/dy = -sum_to(g * u / y, t): not finite at y = 0
    """

    guard = guards.LENGTH
    infinite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return (x / (y + namespace_of(y).astype(y == 0, y.dtype)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (g,) = grad_outputs
        (y,) = self.get_retained_inputs()
        (u,) = self.get_retained_outputs()
        gx = g / y
        share = gx * u
        if self.is_masked:  # the gradient of y is a sum, so zeros are kept before
            gx, share = keep_zeros(gx, g, gx), keep_zeros(share, g, share)
        return self.unbroadcast(gx, -share)


def matrix_norm(x: Any, *, keepdims: bool = False, ord: float | str = "fro") -> Variable:
    """A norm of the matrices in the last two axes.

    Args:
        x: (..., n, m), floating.
        keepdims: keep the two axes with length 1.
        ord: "fro", the root of the sum of squares; "nuc", the sum of the singular values; 2 and
            -2, the largest and smallest singular value; 1 and -1, the largest and smallest sum of
            absolute values in a column; inf and -inf, in a row.

    Raises:
        OperandError: x is not floating.
        ValueError: x has fewer than two axes, or there is no such norm.
    """
    x = as_floating("matrix_norm", "x", x)
    _require_matrix("matrix_norm", x)
    keepdims = as_flag("matrix_norm", "keepdims", keepdims)
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord == "nuc":
        norm = sum_(svdvals(x), axis=-1)
    elif ord in (2, -2):
        values = svdvals(x)
        norm = max_(values, axis=-1) if ord == 2 else min_(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = sum_(abs(x), axis=-2 if ord in (1, -1) else -1)
        norm = max_(sums, axis=-1) if ord in (1, math.inf) else min_(sums, axis=-1)
    else:
        raise ValueError(
            f'matrix_norm: ord must be "fro", "nuc", 1, 2 or inf, +-, got {short_text(ord)}.'
        )
    return reshape(norm, (*norm.shape, 1, 1)) if keepdims else norm


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise missing_attribute("linalg", name, __all__)

"""Linear algebra: the ``linalg`` extension of the Array API standard, for real matrices.

Matrices stand in the last two axes; all axes before them are a stack. ``cholesky``, ``eigh`` and
``eigvalsh`` read a symmetric matrix, and give its gradient as a symmetric matrix.

Source of the gradients: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode
Algorithmic Differentiation, 2008; Murray, Differentiation of the Cholesky decomposition, 2016.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from tinynode.backend import Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.arithmetic import abs, multiply, pow
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.casting import astype
from tinynode.functions.comparison import equal, not_equal
from tinynode.functions.elementwise import sqrt
from tinynode.functions.error_function import as_floating
from tinynode.functions.indexing import get_item
from tinynode.functions.linear import matmul, matrix_transpose
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.products import tensordot, vecdot
from tinynode.functions.rearranging import expand_dims, roll, squeeze
from tinynode.functions.reduction import max as max_
from tinynode.functions.reduction import min as min_
from tinynode.functions.reduction import sum as sum_
from tinynode.functions.selection import where
from tinynode.functions.shaping import (
    broadcast_to,
    normalize_axes,
    reshape,
    zeros_beside,
)
from tinynode.functions.zero_safe import zero_safe_multiply
from tinynode.type_check import broadcasts, expect, is_floating
from tinynode.variable import Variable, wrap_array

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple

__all__ = [
    "cholesky",
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
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class SquareMatrixNode(FunctionNode):
    """Base of functions of one square, floating matrix."""

    input_names = ("x",)
    type_hint = "the last two axes must have one length; cast integers to a floating dtype."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x = in_types[0]
        expect(is_floating(x), x.ndim >= 2)
        expect(x.shape[-1] == x.shape[-2])


def _eye(like: Variable) -> Variable:
    """The identity matrix as long as the last axis of ``like``, outside the graph."""
    array = like._array
    eye = like.xp.eye(array.shape[-1], dtype=array.dtype, device=array.device)
    return wrap_array(eye, like._device, False)


def _symmetric(x: Variable) -> Variable:
    return (x + matrix_transpose(x)) * 0.5


def _column(x: Variable) -> Variable:
    return expand_dims(x, -1)


def _row(x: Variable) -> Variable:
    return expand_dims(x, -2)


class Inv(SquareMatrixNode):
    """Y = X^-1.   X: (..., n, n) -> Y: (..., n, n).   dL/dX = -Y^T dL/dY Y^T"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).linalg.inv(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
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
    return Inv().apply((as_operand("inv", "x", x),))[0]


class Solve(FunctionNode):
    """X with A X = B.

    A: (..., n, n), B: (..., n, m) -> X: (..., n, m); the stacks broadcast.
    dL/dB = A^-T dL/dX   dL/dA = -dL/dB X^T, each summed to its input's shape
    """

    input_names = ("x1", "x2")
    type_hint = "x1 is (..., n, n) and x2 (..., n, m) or (n), both floating and of one dtype."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        a, b = in_types
        expect(is_floating(a), a.dtype == b.dtype, a.ndim >= 2, b.ndim >= 2)
        expect(a.shape[-1] == a.shape[-2], a.shape[-1] == b.shape[-2])
        expect(broadcasts(a, b, last=2))

    def forward(self, inputs: Arrays) -> Arrays:
        a, b = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(a).linalg.solve(a, b),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
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
        InvalidType: shapes or dtypes do not fit together.
        ValueError: a matrix is singular (the array library's LinAlgError).
    """
    x1, x2 = as_operands("solve", x1, x2, ("x1", "x2"))
    if x2.ndim == 1:
        return squeeze(Solve().apply((x1, expand_dims(x2, 1)))[0], -1)
    return Solve().apply((x1, x2))[0]


class Det(SquareMatrixNode):
    """y = det X.   X: (..., n, n) -> y: (...).   dL/dX = dL/dy * y * X^-T, for invertible X"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).linalg.det(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (_column(_column(gy * y)) * matrix_transpose(inv(x)),)


def det(x: Any) -> Variable:
    """The determinant of a square matrix. Its gradient needs the inverse.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return Det().apply((as_operand("det", "x", x),))[0]


class SlogDetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Variable
    logabsdet: Variable


class SlogDet(SquareMatrixNode):
    """sign, l = the sign of det X, and ln |det X|.

    X: (..., n, n) -> sign: (...), l: (...).   dL/dX = dL/dl * X^-T; the sign has no gradient
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return tuple(namespace_of(x).linalg.slogdet(x))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gl = grad_outputs[1]
        (x,) = self.get_retained_inputs()
        if gl is None:
            return (x * 0.0,)
        return (_column(_column(gl)) * matrix_transpose(inv(x)),)


def slogdet(x: Any) -> SlogDetResult:
    """The sign of the determinant, and the logarithm of its absolute value.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return SlogDetResult(*SlogDet().apply((as_operand("slogdet", "x", x),)))


class Cholesky(SquareMatrixNode):
    """L, lower triangular with L L^T = X.

    X: (..., n, n), symmetric positive definite -> L: (..., n, n).
    With P = the lower triangle of L^T dL/dL, its diagonal halved:   dL/dX = the symmetric part of
    L^-T P L^-1
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).linalg.cholesky(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gl,) = grad_outputs
        (lower,) = self.get_retained_outputs()
        xp, array = lower.xp, lower._array
        mask = xp.tril(xp.ones_like(array)) - 0.5 * xp.eye(
            array.shape[-1], dtype=array.dtype, device=array.device
        )
        transposed = matrix_transpose(lower)
        inner = matmul(transposed, gl) * wrap_array(mask, lower._device, False)
        half = solve(transposed, inner)
        return (_symmetric(solve(transposed, matrix_transpose(half))),)


def cholesky(x: Any, *, upper: bool = False) -> Variable:
    """The triangular factor of a symmetric positive definite matrix: L L^T, or U^T U.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
        ValueError: a matrix is not positive definite (the array library's LinAlgError).
    """
    lower = Cholesky().apply((as_operand("cholesky", "x", x),))[0]
    return matrix_transpose(lower) if upper else lower


class EighResult(NamedTuple):
    """Eigenvalues in rising order, and eigenvectors as the columns of a matrix."""

    eigenvalues: Variable
    eigenvectors: Variable


class Eigh(SquareMatrixNode):
    """w, V with X = V diag(w) V^T.

    X: (..., n, n), symmetric -> w: (..., n), V: (..., n, n).
    With F_ij = 1 / (w_j - w_i) off the diagonal, 0 on it:
    dL/dX = the symmetric part of V (diag(dL/dw) + F * (V^T dL/dV)) V^T; not finite where two
    eigenvalues are equal and dL/dV is given
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 1))
        return tuple(namespace_of(x).linalg.eigh(x))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gw, gv = grad_outputs
        w, v = self.get_retained_outputs()
        vt = matrix_transpose(v)
        eye = _eye(v)
        inner = None if gw is None else _column(gw) * eye
        if gv is not None:
            gaps = (1.0 - eye) / (_row(w) - _column(w) + eye)
            turned = gaps * matmul(vt, gv)
            inner = turned if inner is None else inner + turned
        return (_symmetric(matmul(matmul(v, inner), vt)),)


def eigh(x: Any) -> EighResult:
    """Eigenvalues, in rising order, and eigenvectors (columns) of a symmetric matrix.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return EighResult(*Eigh().apply((as_operand("eigh", "x", x),)))


def eigvalsh(x: Any) -> Variable:
    """The eigenvalues of a symmetric matrix, in rising order.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return EighResult(*Eigh().apply((as_operand("eigvalsh", "x", x),))).eigenvalues


class SvdResult(NamedTuple):
    """U, the singular values in falling order, and V^T."""

    U: Variable
    S: Variable
    Vh: Variable


class Svd(FunctionNode):
    """U, s, V^T with X = U diag(s) V^T; k = min(n, m) columns of U and V.

    X: (..., n, m) -> U: (..., n, k), s: (..., k), V^T: (..., k, m).
    With F_ij = 1 / (s_j^2 - s_i^2) off the diagonal, J = F * (U^T dL/dU), K = F * (V^T dL/dV):
    dL/dX = U (diag(dL/ds) + (J + J^T) diag(s) + diag(s) (K + K^T)) V^T
    + (1 - U U^T) dL/dU diag(1/s) V^T + U diag(1/s) dL/dV^T (1 - V V^T)
    """

    input_names = ("x",)
    type_hint = "x is (..., n, m), floating."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]), in_types[0].ndim >= 2)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 1, 2))
        return tuple(namespace_of(x).linalg.svd(x, full_matrices=False))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gu, gs, gvt = grad_outputs
        u, s, vt = self.get_retained_outputs()
        terms: list[Variable] = []
        if gs is not None:
            terms.append(matmul(u * _row(gs), vt))
        if gu is not None:
            terms.extend(_turning_terms(u, s, vt, gu))
        if gvt is not None:  # the same for X^T = V diag(s) U^T
            turned = _turning_terms(
                matrix_transpose(vt), s, matrix_transpose(u), matrix_transpose(gvt)
            )
            terms.extend(matrix_transpose(term) for term in turned)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return (total,)


def _turning_terms(u: Variable, s: Variable, vt: Variable, gu: Variable) -> list[Variable]:
    """What dL/dU contributes to dL/dX: within the space that U spans, and out of it."""
    ut = matrix_transpose(u)
    eye = _eye(s)
    gaps = (1.0 - eye) / ((_row(s) - _column(s)) * (_row(s) + _column(s)) + eye)
    turned = gaps * matmul(ut, gu)
    within = matmul(matmul(u, (turned + matrix_transpose(turned)) * _row(s)), vt)
    if u.shape[-1] == u.shape[-2]:
        return [within]
    scaled = gu / _row(s)
    return [within, matmul(scaled - matmul(u, matmul(ut, scaled)), vt)]


def svd(x: Any, *, full_matrices: bool = True) -> SvdResult:
    """The singular value decomposition, x = U diag(S) Vh.

    Args:
        x: matrices, (..., n, m).
        full_matrices: the standard's default is True, which has no gradient where n and m differ;
            give False.

    Raises:
        InvalidType: x is not a stack of floating matrices.
        ValueError: ``full_matrices=True`` for matrices that are not square.
    """
    x = as_operand("svd", "x", x)
    if full_matrices and x.ndim >= 2 and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"svd: the full matrices of x (shape {x.shape}) have no gradient, since their last "
            "vectors are arbitrary; use full_matrices=False."
        )
    return SvdResult(*Svd().apply((x,)))


def svdvals(x: Any) -> Variable:
    """The singular values, in falling order.

    Raises:
        InvalidType: x is not a stack of floating matrices.
    """
    return SvdResult(*Svd().apply((as_operand("svdvals", "x", x),))).S


def diagonal(x: Any, *, offset: int = 0) -> Variable:
    """The diagonal of a matrix; ``offset`` > 0 lies above the main one, < 0 below.

    Raises:
        ValueError: x has fewer than two axes.
    """
    x = as_operand("diagonal", "x", x)
    _require_matrix("diagonal", x)
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
    return sum_(diagonal(x, offset=offset), axis=-1)


def outer(x1: Any, x2: Any) -> Variable:
    """The outer product x1_i x2_j of two vectors.

    Raises:
        ValueError: one is not one-dimensional.
    """
    x1, x2 = as_operands("outer", x1, x2, ("x1", "x2"))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are needed, got shapes {x1.shape} and {x2.shape}.")
    return multiply(expand_dims(x1, 1), x2)


def cross(x1: Any, x2: Any, *, axis: int = -1) -> Variable:
    """The cross product of vectors of three elements along an axis; other axes broadcast.

    Raises:
        ValueError: the axis does not have length 3.
    """
    x1, x2 = as_operands("cross", x1, x2, ("x1", "x2"))
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim) or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"cross: axis {axis} must be negative and of length 3 in x1 (shape {x1.shape}) and x2 "
            f"(shape {x2.shape})."
        )
    ahead = roll(x1, -1, axis=axis) * roll(x2, -2, axis=axis)
    return ahead - roll(x1, -2, axis=axis) * roll(x2, -1, axis=axis)


def vector_norm(
    x: Any,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Variable:
    """The p-norm (sum |x_i|^p)^(1/p), over one axis, several, or all; its gradient at 0 is 0.

    Args:
        x: floating.
        axis: one axis, several, or None for all.
        keepdims: keep the reduced axes with length 1.
        ord: p. ``inf`` is the largest |x_i|, ``-inf`` the smallest, 0 the number that is not 0.

    Raises:
        OperandError: x is not floating, or ``ord`` is not a number.
        ValueError: an axis does not exist.
    """
    x = as_floating("vector_norm", "x", x)
    if not isinstance(ord, int | float | numpy.integer | numpy.floating):
        raise OperandError(f"vector_norm: ord must be a number, got {describe(ord)}.")
    axes = normalize_axes("vector_norm", axis, x.ndim)
    if ord == math.inf:
        return max_(abs(x), axes, keepdims)
    if ord == -math.inf:
        return min_(abs(x), axes, keepdims)
    if ord == 0:
        return sum_(astype(not_equal(x, 0), x.dtype), axes, keepdims)
    if ord == 1:
        return sum_(abs(x), axes, keepdims)
    if ord == 2:
        return _root(sum_(x * x, axes, keepdims), 2)
    return _root(sum_(_power_of_abs(x, ord), axes, keepdims), ord)


def _power_of_abs(x: Variable, p: float) -> Variable:
    """|x|^p, with gradient 0 where x is 0 and p is positive."""
    if p < 0:
        return pow(abs(x), p)
    zero = equal(x, 0)
    return where(zero, 0, pow(abs(where(zero, 1, x)), p))


def _root(total: Variable, p: float) -> Variable:
    """total^(1/p), with gradient 0 where the total is 0."""
    zero = equal(total, 0)
    positive = where(zero, 1, total)
    return where(zero, 0, sqrt(positive) if p == 2 else pow(positive, 1.0 / p))


def matrix_norm(x: Any, *, keepdims: bool = False, ord: float | str = "fro") -> Variable:
    """A norm of the matrices in the last two axes.

    Args:
        x: (..., n, m), floating.
        keepdims: keep the two axes with length 1.
        ord: "fro", the root of the sum of squares; "nuc", the sum of the singular values; 2 and
            -2, the largest and smallest of them; 1 and -1, the largest and smallest sum of the
            absolute values in a column; inf and -inf, in a row.

    Raises:
        OperandError: x is not floating.
        ValueError: x has fewer than two axes, or there is no such norm.
    """
    x = as_floating("matrix_norm", "x", x)
    _require_matrix("matrix_norm", x)
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
        raise ValueError(f'matrix_norm: ord must be "fro", "nuc", 1, 2 or inf, +-, got {ord!r}.')
    return reshape(norm, (*norm.shape, 1, 1)) if keepdims else norm


def matrix_power(x: Any, n: int) -> Variable:
    """The n-th power of a square matrix, by repeated squaring; of its inverse for negative n.

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
        return broadcast_to(_eye(base), base.shape) + nothing
    return power

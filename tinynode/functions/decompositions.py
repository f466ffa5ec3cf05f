"""Eigenvalues and singular values, with vectors; and helpers for functions of matrices.

Source of the gradients: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode
Algorithmic Differentiation, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy

from tinynode.core.array_arguments import constant_beside, raw_of
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    all_true,
    is_float16,
    namespace_of,
    without_hidden_axes,
)
from tinynode.errors import OperandError, dtype_name
from tinynode.functions import guards
from tinynode.functions.operands import as_operand
from tinynode.functions.products import matmul, matrix_transpose
from tinynode.functions.shapes import expand_dims
from tinynode.type_check import TypeInfoTuple, broadcasts, expect, is_floating

__all__ = ["Eigh", "Svd"]
__dir__ = __all__.copy  # for completion


class MatrixNode(FunctionNode):
    """Base of functions of a stack of matrices, each for itself."""

    def row_axes(self) -> tuple[int, ...]:
        ndim = len(self.inputs[0].shape) if self.inputs else 2
        return (ndim - 2, ndim - 1)


class SquareMatrixNode(MatrixNode):
    """Base of functions of a square, floating matrix."""

    input_names: tuple[str, ...] = ("x",)
    type_hint = "the last two axes must have one length; cast integers to a floating dtype."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x = in_types[0]
        expect(is_floating(x), x.ndim >= 2)
        expect(x.shape[-1] == x.shape[-2])


class SystemNode(MatrixNode):
    """Base of systems of equations: a square, floating matrix and the columns on the right."""

    input_counts = (2,)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        a, b = in_types
        expect(is_floating(a), a.dtype == b.dtype, a.ndim >= 2, b.ndim >= 2)
        expect(a.shape[-1] == a.shape[-2], a.shape[-1] == b.shape[-2])
        expect(broadcasts(a, b, last=2))


def named_call(function: str, routine: Callable[..., Any], *matrices: Array, cure: str) -> Any:
    """The result of an array library's routine; a LinAlgError names function and shapes.

    Raises:
        ValueError: the library refuses the matrices (``numpy.linalg.LinAlgError``).
    """
    try:
        return routine(*matrices)
    except Exception as error:
        if type(error).__name__.lstrip("_") != "LinAlgError":  # PyTorch has an error of its own
            raise
        shapes = " and ".join(str(tuple(matrix.shape)) for matrix in matrices)
        raise numpy.linalg.LinAlgError(
            f"{function}: {error} for an argument of shape {shapes}, "
            f"{dtype_name(matrices[0].dtype)}. {cure}"
        ) from None


def call_on_finite(
    function: str, routine: Callable[..., Any], x: Array, read: Array | None = None
) -> Any:
    """The results of a routine for stacks; a matrix with NaN or infinities gives NaN.

    One such matrix may stop the routine for the whole stack, by versions of LAPACK. A mask hides
    the matrix, and the others have results; likewise for the examples of a vmapped function.

    Args:
        function: the name for errors.
        routine: singular values, eigenvalues, and what is made of them.
        x: a stack of matrices.
        read: x with zeros where the routine does not look; by default x.

    Raises:
        ValueError: no matrix is finite, and the library refuses them.
    """
    xp = namespace_of(x)
    is_finite = xp.all(xp.isfinite(x if read is None else read), axis=(-2, -1), keepdims=True)
    everywhere = without_hidden_axes(is_finite)  # examples may differ
    if all_true(everywhere) or all_true(~everywhere):
        return named_call(function, routine, x, cure=FINITE)
    results = named_call(function, routine, xp.where(is_finite, x, xp.zeros_like(x)), cure=FINITE)
    if not isinstance(results, tuple):
        return nan_unless(is_finite, results)
    return tuple(nan_unless(is_finite, result) for result in results)


def nan_unless(is_finite: Array, result: Array) -> Array:
    """A result for a stack, (..., n, m) or (..., n), with NaN where a matrix was not finite."""
    xp = namespace_of(result)
    if result.ndim < is_finite.ndim:
        is_finite = is_finite[..., 0]
    return xp.where(is_finite, result, xp.full_like(result, math.nan))


FINITE = "Look for NaN and infinities in it."


SINGULAR = "A matrix is singular: adding a small multiple of the identity makes it regular."


def as_matrices(function: str, argument: str, value: Any) -> Variable:
    """An argument of linear algebra as a Variable; array libraries have no float16 there.

    Raises:
        OperandError: the value is no Variable or array, or is float16.
    """
    x = as_operand(function, argument, value)
    if is_float16(x.raw):
        raise OperandError(
            f"{function}: {argument} is float16, which linear algebra does not know. Cast it: "
            f"{argument}.astype('float32')."
        )
    return x


def eye_beside(like: Variable) -> Variable:
    """The identity matrix as long as the last axis of ``like``, outside the graph."""
    array = raw_of(like)
    eye = namespace_of(array).eye(array.shape[-1], dtype=array.dtype, device=array.device)
    return constant_beside(like, eye)


def symmetric(x: Variable) -> Variable:
    return (x + matrix_transpose(x)) * 0.5


def column(x: Variable) -> Variable:
    return expand_dims(x, -1)


def row(x: Variable) -> Variable:
    return expand_dims(x, -2)


class EighResult(NamedTuple):
    """Eigenvalues in rising order, and eigenvectors as the columns of a matrix."""

    eigenvalues: Variable
    eigenvectors: Variable


class Eigh(SquareMatrixNode):
    """w, V with X = V diag(w) V^T.

    X: (..., n, n), symmetric -> w: (..., n), V: (..., n, n).
    With F_ij = 1 / (w_j - w_i) off the diagonal, 0 on the diagonal:
    dL/dX = the symmetric part of V (diag(dL/dw) + F * (V^T dL/dV)) V^T; not finite where two
    eigenvalues are equal and dL/dV is given
    """

    output_counts = (2,)
    guard = guards.EQUAL_VALUES
    infinite_slope = True  # of the vectors, where two values are equal

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 1))
        xp = namespace_of(x)
        return tuple(call_on_finite("eigh", xp.linalg.eigh, x, read=xp.tril(x)))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gw, gv = grad_outputs
        w, v = self.get_retained_outputs()
        vt = matrix_transpose(v)
        eye = eye_beside(v)
        inner = None if gw is None else column(gw) * eye
        if gv is not None:
            gaps = (1.0 - eye) / (row(w) - column(w) + eye)
            turned = gaps * matmul(vt, gv)
            inner = turned if inner is None else inner + turned
        return (symmetric(matmul(matmul(v, inner), vt)),)


def eigh(x: Any) -> EighResult:
    """Eigenvalues, in rising order, and eigenvectors (columns) of a symmetric matrix.

    The gradient of the eigenvectors is not finite where two eigenvalues are equal, since the
    vectors are arbitrary there. The gradient of the eigenvalues is finite, but not differentiable.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return EighResult(*Eigh().apply((as_matrices("eigh", "x", x),)))


def eigvalsh(x: Any) -> Variable:
    """The eigenvalues of a symmetric matrix, in rising order.

    Raises:
        InvalidType: x is not a stack of square floating matrices.
    """
    return EighResult(*Eigh().apply((as_matrices("eigvalsh", "x", x),))).eigenvalues


class SvdResult(NamedTuple):
    """U, the singular values in falling order, and V^T."""

    U: Variable
    S: Variable
    Vh: Variable


class Svd(MatrixNode):
    """U, s, V^T with X = U diag(s) V^T; k = min(n, m) columns of U and V.

    X: (..., n, m) -> U: (..., n, k), s: (..., k), V^T: (..., k, m).
    With F_ij = 1 / (s_j^2 - s_i^2) off the diagonal, J = F * (U^T dL/dU), K = F * (V^T dL/dV):
    dL/dX = U (diag(dL/ds) + (J + J^T) diag(s) + diag(s) (K + K^T)) V^T
    + (1 - U U^T) dL/dU diag(1/s) V^T + U diag(1/s) dL/dV^T (1 - V V^T); not finite where two
    singular values are equal, or a singular value is 0, and dL/dU or dL/dV is given
    """

    guard = guards.EQUAL_VALUES
    infinite_slope = True  # of the vectors, where two values are equal
    output_counts = (3,)
    input_names = ("x",)
    type_hint = "x is (..., n, m), floating."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]), in_types[0].ndim >= 2)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 1, 2))
        svd_of = partial(namespace_of(x).linalg.svd, full_matrices=False)
        return tuple(call_on_finite("svd", svd_of, x))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gu, gs, gvt = grad_outputs
        u, s, vt = self.get_retained_outputs()
        terms: list[Variable] = []
        if gs is not None:
            terms.append(matmul(u * row(gs), vt))
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
    """The part of dL/dX by dL/dU: within the space of the columns of U, and outside."""
    ut = matrix_transpose(u)
    eye = eye_beside(s)
    inner = matmul(ut, gu)
    gaps = (1.0 - eye) / (row(s) - column(s) + eye)
    shares = row(s) / (row(s) + column(s) + eye)  # gaps * shares is s_j F_ij, without squares
    within = matmul(matmul(u, (inner - matrix_transpose(inner)) * gaps * shares), vt)
    if u.shape[-1] == u.shape[-2]:
        return [within]
    scaled = gu / row(s)
    return [within, matmul(scaled - matmul(u, matmul(ut, scaled)), vt)]


def svd(x: Any, *, full_matrices: bool = True) -> SvdResult:
    """The singular value decomposition, x = U diag(S) Vh.

    The gradient of U and Vh is not finite where two singular values are equal or one is 0, since
    the vectors are arbitrary there. The gradient of S is finite, but not differentiable there.

    Args:
        x: matrices, (..., n, m).
        full_matrices: the standard's default is True, which has no gradient where n and m differ;
            give False.

    Raises:
        InvalidType: x is not a stack of floating matrices.
        ValueError: ``full_matrices=True`` for matrices without a square shape.
    """
    x = as_matrices("svd", "x", x)
    full_matrices = as_flag("svd", "full_matrices", full_matrices)
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
    return SvdResult(*Svd().apply((as_matrices("svdvals", "x", x),))).S

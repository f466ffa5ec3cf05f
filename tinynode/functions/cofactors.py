"""The cofactors of square matrices: the gradient of the determinant, also of singular matrices.

The cofactors of a regular X are det(X) X^-T. A singular X has no inverse. There each cofactor is
the determinant of a minor, which is X without a row and a column. Each function decides between
the two when it runs, so a net decides at each call.
"""

from __future__ import annotations

import math

import numpy

from tinynode.core.array_arguments import constant_beside, raw_of
from tinynode.core.function_node import Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, any_true, namespace_of, without_hidden_axes
from tinynode.devices.products import matrix_product
from tinynode.functions.decompositions import SINGULAR, SquareMatrixNode, column, named_call
from tinynode.functions.products import matmul, matrix_transpose
from tinynode.functions.shapes import moveaxis, reshape
from tinynode.type_check import TypeInfoTuple, expect

__all__ = ["Cofactors", "CofactorsGrad"]
__dir__ = __all__.copy  # for completion

MOST_ROWS = 32
"""Larger singular matrices are refused: they have too many minors."""


class Cofactors(SquareMatrixNode):
    """Y = the cofactors of X: Y_ij = (-1)^(i + j) det(X without row i and column j).

    X: (..., n, n) -> Y: (..., n, n).   dL/dX = ``CofactorsGrad`` of X and dL/dY
    """

    needs_values = True  # forward asks whether a matrix is singular

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (cofactors(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (CofactorsGrad().apply((x, gy))[0],)


class CofactorsGrad(SquareMatrixNode):
    """Z = the derivative of the cofactors of X along G, which is also the gradient along G.

    X, G: (..., n, n) -> Z: (..., n, n).
    With W = X^-T:   Z = det(X) (<G, W> W - W G^T W)
    With H = dL/dZ:   dL/dG = ``CofactorsGrad`` of X and H
    """

    input_counts = (2,)
    input_names = ("x", "g")
    needs_values = True  # forward asks whether a matrix is singular

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, g = in_types
        super().check_type_forward(in_types)
        expect(x.shape == g.shape, x.dtype == g.dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        x, g = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        determinant, transpose = xp.linalg.det(x), xp.linalg.matrix_transpose
        if needs_minors(x, determinant):
            return (from_minors(g, cofactors(minors(x))),)
        w = transpose(named_call("inv", xp.linalg.inv, x, cure=SINGULAR))
        along = xp.sum(g * w, axis=(-2, -1))[..., None, None]
        turned = matrix_product(matrix_product(w, transpose(g)), w)
        return (determinant[..., None, None] * (along * w - turned),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, g = self.get_retained_inputs()
        gx = gg = None
        if 0 in target_input_indexes:
            gx = _third_derivative(x, g, h)
        if 1 in target_input_indexes:
            gg = CofactorsGrad().apply((x, h))[0]
        return gx, gg


def needs_minors(x: Array, determinant: Array) -> bool:
    """True if a matrix is singular as far as its dtype can tell, in any example of vmap.

    The rounded determinant of a singular matrix is seldom 0. It is below eps times the product
    of the lengths of the rows (Hadamard's bound of a determinant). Minors of large matrices would
    take too long: ``inv`` refuses these.
    """
    if x.shape[-1] > MOST_ROWS:
        return False
    x, determinant = without_hidden_axes(x), without_hidden_axes(determinant)
    xp = namespace_of(x)
    with numpy.errstate(divide="ignore"):  # log 0: minus infinity is right
        lengths = xp.sum(xp.log(xp.linalg.vector_norm(x, axis=-1)), axis=-1)
        size = xp.log(xp.abs(determinant))
    return any_true((determinant == 0) | (size < lengths + math.log(xp.finfo(x.dtype).eps)))


def cofactors(x: Array) -> Array:
    """The cofactors of square matrices."""
    xp = namespace_of(x)
    determinant = xp.linalg.det(x)
    if needs_minors(x, determinant):
        return alternating(x) * xp.linalg.det(minors(x))
    inverse = named_call("inv", xp.linalg.inv, x, cure=SINGULAR)
    return determinant[..., None, None] * xp.linalg.matrix_transpose(inverse)


def alternating(x: Array) -> Array:
    """(-1)^(i + j), as long as the last axis of x."""
    xp = namespace_of(x)
    signs = xp.ones(x.shape[-1], dtype=x.dtype, device=x.device)
    signs = xp.where(xp.arange(x.shape[-1], device=x.device) % 2 == 0, signs, -signs)
    return signs[:, None] * signs


def minors(x: Array) -> Array:
    """At (i, j) the matrix x without row i and column j.

    x: (..., n, n) -> y: (..., n, n, n - 1, n - 1)
    """
    xp = namespace_of(x)
    n, shorter = x.shape[-1], max(x.shape[-1] - 1, 0)  # a matrix may have no rows
    kept = kept_rows(x)
    chosen = xp.take(xp.take(x, kept, axis=-2), kept, axis=-1)
    chosen = xp.reshape(chosen, (*x.shape[:-2], n, shorter, n, shorter))
    return xp.moveaxis(chosen, -2, -3)


def from_minors(g: Array, parts: Array) -> Array:
    """The sum over (i, j) of (-1)^(i + j) g_ij times a part, with a row i and a column j of zeros.

    g: (..., n, n), parts: (..., n, n, n - 1, n - 1) -> y: (..., n, n)
    """
    xp = namespace_of(g)
    length = parts.shape[-1] * parts.shape[-3]
    weighted = (alternating(g) * g)[..., None, None] * parts
    weighted = xp.reshape(xp.moveaxis(weighted, -3, -2), (*g.shape[:-2], length, length))
    choice = choice_of_rows(g)
    return matrix_product(matrix_product(xp.linalg.matrix_transpose(choice), weighted), choice)


def kept_rows(x: Array) -> Array:
    """The rows of all minors, one behind the other: all but the first, all but the second ..."""
    xp, n = namespace_of(x), x.shape[-1]
    kept = [k for i in range(n) for k in range(n) if k != i]
    return xp.asarray(kept, dtype=xp.int64, device=x.device)


def choice_of_rows(x: Array) -> Array:
    """The matrix C for which C X has the rows of all minors of X."""
    xp = namespace_of(x)
    unit = xp.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return xp.take(unit, kept_rows(x), axis=0)


def _third_derivative(x: Variable, g: Variable, h: Variable) -> Variable:
    """The gradient of <h, ``CofactorsGrad`` of x and g> with respect to x.

    It is the sum of (-1)^(i + j) g_ij ``CofactorsGrad`` of the minors (i, j) of x and h.
    """
    n, shorter = x.shape[-1], max(x.shape[-1] - 1, 0)
    signs = constant_beside(x, alternating(raw_of(x)))
    choice = constant_beside(x, choice_of_rows(raw_of(x)))

    def all_minors(matrix: Variable) -> Variable:
        chosen = matmul(matmul(choice, matrix), matrix_transpose(choice))
        return moveaxis(reshape(chosen, (*x.shape[:-2], n, shorter, n, shorter)), -2, -3)

    parts = CofactorsGrad().apply((all_minors(x), all_minors(h)))[0]
    parts = moveaxis(column(column(g * signs)) * parts, -3, -2)
    parts = reshape(parts, (*x.shape[:-2], n * shorter, n * shorter))
    return matmul(matmul(matrix_transpose(choice), parts), choice)

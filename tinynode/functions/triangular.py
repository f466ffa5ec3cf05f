"""Triangular systems: the solution by substitution, and by the factor of Cholesky.

Requirement: the Array API standard has no triangular solver. So substitution goes by blocks of
rows. The library's ``solve`` gets the block on the diagonal as an upper triangle: elimination has
nothing to do there, and exchanges no rows. So each step is a substitution.
"""

from __future__ import annotations

from typing import Any, Never

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.devices.products import matrix_product
from tinynode.errors import InvalidType, unknown_keywords
from tinynode.functions import guards
from tinynode.functions.checked import checked_flag
from tinynode.functions.data_types import promoted
from tinynode.functions.decompositions import SystemNode, as_matrices, eye_beside, named_call
from tinynode.functions.operands import as_operands
from tinynode.functions.products import matmul, matrix_transpose
from tinynode.functions.searching import tril, triu
from tinynode.functions.shapes import expand_dims, squeeze, unbroadcast

__all__ = ["SolveTriangular"]
__dir__ = __all__.copy  # for completion

BLOCK = 64
"""The rows of a block: large enough for products, and small beside the matrix."""
ZERO_ON_DIAGONAL = "The diagonal of a triangular matrix must have no zero."


class SolveTriangular(SystemNode):
    """X with A X = B, where A is the lower (upper) triangle of the first input.

    A: (..., n, n), B: (..., n, m) -> X: (..., n, m); the stacks broadcast.
    dL/dB = A^-T dL/dX   dL/dA = the triangle of -dL/dB X^T, each summed to the input's shape
    """

    guard = guards.SINGULAR
    input_names = ("a", "b")
    type_hint = "a is (..., n, n) and b (..., n, m) or (n), both floating and of one dtype."

    def __init__(self, upper: bool) -> None:
        self.upper = checked_flag(self, "upper", upper)

    def forward(self, inputs: Arrays) -> Arrays:
        a, b = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        if self.upper:
            return (_substituted(namespace_of(a).triu(a), b),)
        # the rows and columns of a lower triangle, in the other order, are an upper triangle
        xp = namespace_of(a)
        flipped = xp.flip(xp.tril(a), axis=(-2, -1))
        return (xp.flip(_substituted(flipped, xp.flip(b, axis=-2)), axis=-2),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gx,) = grad_outputs
        (a,) = self.get_retained_inputs()
        (x,) = self.get_retained_outputs()
        gb = SolveTriangular(not self.upper).apply((matrix_transpose(a), gx))[0]
        ga = None
        if 0 in target_input_indexes:
            whole = -matmul(gb, matrix_transpose(x))
            ga = unbroadcast(triu(whole) if self.upper else tril(whole), self, 0)
        return ga, unbroadcast(gb, self, 1)


def _substituted(a: Array, b: Array) -> Array:
    """X with A X = B for upper triangles A: the last block of rows first."""
    xp = namespace_of(a)
    n = a.shape[-1]
    x = None
    for start in reversed(range(0, max(n, 1), BLOCK)):
        stop = min(start + BLOCK, n)
        rest = b[..., start:stop, :]
        if x is not None:
            rest = rest - matrix_product(a[..., start:stop, stop:], x)
        square = a[..., start:stop, start:stop]
        block = named_call(
            "solve_triangular", xp.linalg.solve, square, rest, cure=ZERO_ON_DIAGONAL
        )
        x = block if x is None else xp.concat([block, x], axis=-2)
    return x


def solve_triangular(
    a: Any,
    b: Any,
    *,
    upper: bool = False,
    transpose: bool = False,
    unit_diagonal: bool = False,
    **unknown: Never,
) -> Variable:
    """The solution X of A X = B for a triangular A; the other triangle of ``a`` is not read.

    The cost is n^2 m multiplications for m columns, and 43 n^2 more for blocks of 64 rows;
    ``solve`` needs 2/3 n^3. The gradient of ``a`` is 0 in the other triangle. A lower triangle has
    its rows flipped, so ``a`` is copied once.

        y = F.linalg.solve_triangular(F.linalg.cholesky(s), b)    # L y = b
        z = F.linalg.solve_triangular(F.linalg.cholesky(s), y, transpose=True)    # L^T z = y

    Args:
        a: square matrices, (..., n, n).
        b: a vector (n), or matrices (..., n, m); the stacks of ``a`` and ``b`` broadcast.
        upper: True to read the upper triangle, False to read the lower triangle.
        transpose: True to solve A^T X = B.
        unit_diagonal: True to take 1 for each element of the diagonal, which is not read.

    Raises:
        InvalidType: shapes do not fit together, or a matrix is not floating.
        ValueError: the diagonal has a zero (the array library's LinAlgError), as in ``solve``.
    """
    name = "solve_triangular"
    if unknown:
        raise unknown_keywords(name, unknown)
    upper = as_flag(name, "upper", upper)
    transpose = as_flag(name, "transpose", transpose)
    unit_diagonal = as_flag(name, "unit_diagonal", unit_diagonal)
    a, b = as_operands(name, a, b, ("a", "b"))
    a, b = promoted(as_matrices(name, "a", a), as_matrices(name, "b", b))
    if unit_diagonal and a.ndim >= 2:
        a = (triu(a, k=1) if upper else tril(a, k=-1)) + eye_beside(a)
    if transpose:
        a, upper = matrix_transpose(a), not upper
    if b.ndim == 1:
        return squeeze(SolveTriangular(upper).apply((a, expand_dims(b, 1)))[0], -1)
    return SolveTriangular(upper).apply((a, b))[0]


def cholesky_solve(b: Any, factor: Any, *, upper: bool = False, **unknown: Never) -> Variable:
    """The solution X of S X = B for S = L L^T, from the factor L of ``cholesky``.

    Two triangular systems: the cost is 2 n^2 m multiplications. The other triangle of the factor
    is not read. PyTorch has the same name and order of arguments.

        x = F.linalg.cholesky_solve(b, F.linalg.cholesky(s))    # s x = b

    Args:
        b: a vector (n), or matrices (..., n, m).
        factor: L, (..., n, n), or U with S = U^T U.
        upper: True if the factor is U: ``cholesky(s, upper=True)``.

    Raises:
        InvalidType: shapes do not fit together, or a matrix is not floating.
        ValueError: the diagonal of the factor has a zero (the array library's LinAlgError).
    """
    name = "cholesky_solve"
    if unknown:
        raise unknown_keywords(name, unknown)
    upper = as_flag(name, "upper", upper)
    factor, b = as_operands(name, factor, b, ("factor", "b"))
    factor, b = as_matrices(name, "factor", factor), as_matrices(name, "b", b)
    if factor.ndim < 2 or factor.shape[-1] != factor.shape[-2]:
        expected, found = "factor of shape (..., n, n)", f"factor of shape {factor.shape}"
        raise InvalidType(
            expected,
            found,
            f"cholesky_solve: expected a {expected}, got a {found}. Write cholesky_solve(b, "
            "factor), in this order.",
        )
    columns = expand_dims(b, 1) if b.ndim == 1 else b
    y = solve_triangular(factor, columns, upper=upper, transpose=upper)
    x = solve_triangular(factor, y, upper=upper, transpose=not upper)
    return squeeze(x, -1) if b.ndim == 1 else x

"""Linear solvers for implicit gradients: dense, conjugate gradients, GMRES.

Requirement: a user's own solver fits too, so all have one signature: ``solve(matvec, b,
tolerance)``. ``matvec`` computes A v for a Variable v with the shape of b. The caller switches the
graph off.

Source: Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems, 1952;
Saad and Schultz, GMRES: A Generalized Minimal Residual Algorithm, 1986.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy

from tinynode.configuration import no_backprop_mode
from tinynode.core.conversion import asarray, to_host
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import namespace_of, put
from tinynode.errors import ConvergenceError, InvalidType
from tinynode.functions import broadcast_to, linalg, permute_dims, reshape
from tinynode.transforms.jacobians import along_basis

MatVec: TypeAlias = Callable[[Variable], Variable]
"""The product of the matrix and a vector."""
Method = Literal["cg", "dense", "gmres"]
"""The name of a solver."""
Solve: TypeAlias = Callable[..., Variable]
"""``solve(matvec, b, tolerance=...)``: the v with A v = b."""

LARGEST_BASIS = 300
"""The largest number of vectors that GMRES keeps."""


def dense(matvec: MatVec, b: Variable, tolerance: float = 0.0, batch: int = 0) -> Variable:
    """The solution by the whole matrix: n products with unit vectors, by ``vmap``, then ``solve``.

    b: (s), n elements -> v: (s), A v = b.   The cost: n products, n^2 numbers, n^3 / 3 steps.

    Args:
        matvec: the product A v.
        b: the right side.
        tolerance: not used.
        batch: the number of leading axes with independent systems. Then n counts the elements of
            one system, and each system has a matrix of its own.

    Raises:
        ConvergenceError: A is singular.
    """
    if not b.size:
        return b
    return solve_blocks("dense", blocks(matvec, b, batch), b)


def blocks(matvec: MatVec, b: Variable, batch: int) -> Variable:
    """The matrix of each system: (systems, n, n), for b: (batch ..., s) with n elements in s."""
    one = b[(0,) * batch]

    def product(v: Variable) -> list[Variable]:
        return [matvec(broadcast_to(v, b.shape))]

    (columns,) = along_basis(product, one, [b])
    return permute_dims(reshape(columns, (one.size, b.size // one.size, one.size)), (1, 2, 0))


def solve_blocks(name: str, matrices: Variable, b: Variable) -> Variable:
    """The solution v of each system; matrices: (systems, n, n), b: (batch ..., s) -> (b's shape).

    Raises:
        ConvergenceError: a matrix is singular.
    """
    try:
        columns = reshape(b, (*matrices.shape[:2], 1))
        return reshape(linalg.solve(matrices, columns), b.shape)
    except InvalidType:
        raise
    except ValueError as error:  # the array library's LinAlgError
        raise ConvergenceError(
            f"{name}: the matrix of {matrices.shape[1]} rows is singular, so no unique solution "
            "exists."
        ) from error


def conjugate_gradients(matvec: MatVec, b: Variable, tolerance: float) -> Variable:
    """The solution for a symmetric positive definite A, by conjugate gradients.

    b: (s), n elements -> v: (s), |A v - b| <= tolerance |b|.   The cost: a product for each step.

    Raises:
        ConvergenceError: 10 n + 10 steps do not reach the tolerance, or A is not positive
            definite.
    """
    residual = direction = b.raw
    v = b.xp.zeros_like(residual)
    square = _dot(residual, residual)
    goal = tolerance**2 * square
    for _ in range(10 * b.size + 10):
        if square <= goal:
            return _like(b, v)
        product = matvec(_like(b, direction)).raw
        curvature = _dot(direction, product)
        if not curvature > 0:
            raise ConvergenceError(
                f"cg: d A d = {curvature:.3g} for a direction d, so the matrix is not positive "
                "definite. Use solve='gmres' or solve='dense'."
            )
        step = square / curvature
        v, residual = v + step * direction, residual - step * product
        before, square = square, _dot(residual, residual)
        direction = residual + (square / before) * direction
    raise _not_converged("cg", square**0.5, b, tolerance)


def gmres(matvec: MatVec, b: Variable, tolerance: float) -> Variable:
    """The solution for a general A, by the generalized minimal residual method.

    b: (s), n elements -> v: (s), |A v - b| <= tolerance |b|.   Step k keeps k vectors and costs a
    product with A and k scalar products. An orthonormal basis of b, A b, A^2 b ... grows by a
    vector in each step. The solution is the best combination of the basis.

    Raises:
        ConvergenceError: min(n, 300) steps do not reach the tolerance.
    """
    xp, length = b.xp, _dot(b.raw, b.raw) ** 0.5
    if length == 0:
        return b
    error, steps = length, min(b.size, LARGEST_BASIS)
    vectors = xp.reshape(b.raw / length, (1, b.size))  # with free places at the end
    columns = _Triangle(length, steps)
    for count in range(1, steps + 1):
        basis = vectors[:count, :]
        new = xp.reshape(matvec(_like(b, basis[-1, :])).raw, (b.size,))
        column = numpy.zeros(count + 1)  # A times the last vector, in the basis
        for _ in range(2):  # the second round removes rounding errors of the first
            overlaps = xp.matmul(basis, new)
            new = new - xp.matmul(overlaps, basis)
            column[:-1] += numpy.asarray(to_host(overlaps))
        column[-1] = rest = _dot(new, new) ** 0.5
        if not numpy.isfinite(column).all():
            break
        size = columns.append(column)
        error = columns.error()
        if error <= tolerance * length:
            v = asarray(columns.weights(), dtype=b.dtype, device=b.device, requires_grad=False)
            return _like(b, xp.matmul(v.raw, basis))
        if rest <= 1e-14 * size:
            break  # the basis is complete, and A is singular
        if count == vectors.shape[0]:
            vectors = xp.concat([vectors, xp.zeros_like(vectors)])
        vectors = put(vectors, (count, slice(None)), new / rest)
    raise _not_converged("gmres", error, b, tolerance)


class _Triangle:
    """The least squares problem of GMRES: the matrix H of A in the basis, made a triangle.

    Q H = R. A new column costs k rotations in step k; solving anew would cost k^3 operations.
    Rotation j mixes rows j and j + 1, for a zero of R below the diagonal.

    Attributes:
        R: (steps, steps), the triangle.
        target: (steps + 1), Q times the right side; the entry after the last column is the error.
        largest: the largest entry of H.
    """

    def __init__(self, length: float, steps: int) -> None:
        self.R = numpy.zeros((steps, steps))
        self.target = numpy.zeros(steps + 1)
        self.target[0] = length
        self.rotations: list[tuple[float, float]] = []
        self.largest = 0.0

    def append(self, column: Any) -> float:
        """Add the next column of H, of k + 2 entries in step k; the largest entry of H."""
        self.largest = max(self.largest, float(numpy.abs(column).max()))
        entries, k = column.tolist(), len(self.rotations)
        for j, (c, s) in enumerate(self.rotations):
            upper, lower = entries[j], entries[j + 1]
            entries[j] = c * upper + s * lower
            entries[j + 1] = c * lower - s * upper
        radius = math.hypot(entries[k], entries[k + 1])
        c, s = (entries[k] / radius, entries[k + 1] / radius) if radius else (0.0, 1.0)
        self.rotations.append((c, s))
        self.R[:k, k] = entries[:k]
        self.R[k, k] = radius
        self.target[k + 1] = -s * self.target[k]
        self.target[k] = c * self.target[k]
        return self.largest

    def error(self) -> float:
        """The length of the residual of the best combination of the basis."""
        return abs(float(self.target[len(self.rotations)]))

    def weights(self) -> Any:
        """The best combination of the basis: R weights = target."""
        k = len(self.rotations)
        return numpy.linalg.solve(self.R[:k, :k], self.target[:k])


SOLVERS: dict[str, Solve] = {"cg": conjugate_gradients, "dense": dense, "gmres": gmres}
"""The solvers by name."""


_SINGULAR = (
    " At a singular Jacobian, such as at a double root, the solution has no gradient: move away "
    "from this point, or change the equation."
)


def solved(name: str, solve: Solve, matvec: MatVec, b: Variable, tolerance: float) -> Variable:
    """The solution u of A^T u = b, checked, without a graph; ``matvec`` computes A^T u.

    Raises:
        ConvergenceError: A is singular, or the solver did not converge.
    """
    with no_backprop_mode():
        try:
            u = solve(matvec, b, tolerance)
        except ConvergenceError as error:
            raise ConvergenceError(f"{name}, backward: {error}{_SINGULAR}") from error
        rest, size = largest(matvec(u) - b), largest(b)
    if not rest <= max(1e3 * tolerance, eps(b) ** 0.5) * size:
        raise ConvergenceError(
            f"{name}, backward: A^T u = g is not solved, for A the Jacobian of the "
            f"equation: |A^T u - g| = {rest:.3g}, |g| = {size:.3g}.{_SINGULAR}"
        )
    return u


def default_tolerance(b: Variable) -> float:
    """The relative residual of a linear system, by the precision of the dtype."""
    return float(eps(b) ** (2 / 3))


def eps(x: Variable) -> float:
    """The distance of 1 and the next number of x's dtype."""
    return float(x.xp.finfo(x.dtype).eps)


def largest(x: Any) -> float:
    """The largest absolute value; NaN if an element is NaN, 0 without elements."""
    host = numpy.abs(numpy.asarray(to_host(x)))
    return float(host.max()) if host.size else 0.0


def _like(b: Variable, array: Any) -> Variable:
    """The elements of an array, in the shape of b."""
    return wrap_array(b.xp.reshape(array, b.shape), b.device, False)


def _dot(a: Any, b: Any) -> float:
    """The scalar product of all elements of two arrays, as a number."""
    return float(namespace_of(a).sum(a * b))


def _not_converged(name: str, error: float, b: Variable, tolerance: float) -> ConvergenceError:
    size = _dot(b.raw, b.raw) ** 0.5
    return ConvergenceError(
        f"{name}: the linear system of {b.size} unknowns did not converge: the residual is "
        f"{error:.3g}, the goal {tolerance:.3g} times {size:.3g}. The matrix may be "
        "singular. Try solve='dense', or a larger solve_tolerance."
    )

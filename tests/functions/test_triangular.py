"""Triangular systems: blocks of rows, the triangle that is not read, and exact substitution."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import tinynode as tn
from tinynode import functions as fn
from tinynode.functions import triangular


def matrix(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)) / n + np.eye(n) * rng.uniform(1, 2, n)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("n", [triangular.BLOCK, triangular.BLOCK + 1, 3 * triangular.BLOCK - 5])
def test_systems_of_several_blocks_are_those_of_scipy(
    n: int, transpose: bool, upper: bool
) -> None:
    a, b = matrix(n), np.random.default_rng(1).normal(size=(n, 3))
    x = fn.linalg.solve_triangular(a, b, upper=upper, transpose=transpose)
    expected = scipy.linalg.solve_triangular(a, b, trans=int(transpose), lower=not upper)
    np.testing.assert_allclose(x.array, expected, rtol=1e-12, atol=1e-14)


def test_the_gradient_through_several_blocks_is_that_of_solve() -> None:
    n = triangular.BLOCK + 9
    a, b = tn.Variable(matrix(n)), tn.Variable(np.ones((n, 2)))
    fn.sum(fn.linalg.solve_triangular(a, b) ** 2).backward()
    found = a.grad.copy(), b.grad.copy()
    a.cleargrad()
    b.cleargrad()
    fn.sum(fn.linalg.solve(fn.tril(a), b) ** 2).backward()
    np.testing.assert_allclose(found[0], a.grad, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], b.grad, rtol=1e-9, atol=1e-12)


def test_the_other_triangle_is_not_read() -> None:
    a = np.asarray([[2.0, np.nan], [1.0, 4.0]])
    x = fn.linalg.solve_triangular(a, np.asarray([2.0, 9.0]))
    np.testing.assert_array_equal(x.array, [1.0, 2.0])
    y = fn.linalg.solve_triangular(a.T, np.asarray([2.0, 9.0]), upper=True, transpose=True)
    np.testing.assert_array_equal(y.array, [1.0, 2.0])
    a[0, 0] = np.inf
    z = fn.linalg.solve_triangular(a, np.asarray([2.0, 9.0]), unit_diagonal=True)
    np.testing.assert_array_equal(z.array, [2.0, 7.0])


@pytest.mark.parametrize("upper", [False, True])
def test_a_graded_matrix_is_solved_by_exact_substitution(upper: bool) -> None:
    """An exchange of rows would lose the small first unknown."""
    a, b = np.asarray([[1e-20, 0.0], [1.0, 1.0]]), np.asarray([1e-20, 3.0])
    if upper:
        a, b = a[::-1, ::-1], b[::-1]
    x = fn.linalg.solve_triangular(a, b, upper=upper).array
    np.testing.assert_array_equal(x[::-1] if upper else x, [1.0, 2.0])


def test_cholesky_solve_is_solve_of_the_symmetric_matrix() -> None:
    m = matrix(5)
    s, b = m @ m.T, np.arange(5.0)
    for upper in (False, True):
        x = fn.linalg.cholesky_solve(b, fn.linalg.cholesky(s, upper=upper), upper=upper)
        np.testing.assert_allclose(x.array, np.linalg.solve(s, b), rtol=1e-10)


def test_a_compiled_function_and_its_gradient() -> None:
    def f(s: tn.Variable, b: tn.Variable) -> tn.Variable:
        return fn.sum(fn.linalg.cholesky_solve(b, fn.linalg.cholesky(s)) * b)

    m, b = matrix(4), np.arange(4.0)
    s = m @ m.T
    for device in ("numpy", "fast"):
        given = tn.asarray(s, device=device), tn.asarray(b, device=device)
        value, (gs, gb) = tn.compile(tn.value_and_grad(f, argnums=(0, 1)))(*given)
        x = np.linalg.solve(s, b)
        np.testing.assert_allclose(tn.to_host(value), b @ x, rtol=1e-10)
        np.testing.assert_allclose(tn.to_host(gb), 2 * x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tn.to_host(gs), -np.outer(x, x), rtol=1e-8, atol=1e-10)


def test_the_shapes_of_solve() -> None:
    """Stacks broadcast, a vector stands beside a stack, and columns may be missing."""
    rng = np.random.default_rng(2)
    for s, t in (((3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 2), (2, 0))):
        a, b = np.eye(s[-1]) * 2 + np.tril(rng.normal(size=s)), rng.normal(size=t)
        expected = fn.linalg.solve(np.tril(a), b).array
        np.testing.assert_allclose(fn.linalg.solve_triangular(a, b).array, expected, rtol=1e-12)
        symmetric = np.tril(a) @ np.matrix_transpose(np.tril(a))
        expected = fn.linalg.solve(symmetric, b).array
        np.testing.assert_allclose(fn.linalg.cholesky_solve(b, a).array, expected, rtol=1e-9)


@pytest.mark.parametrize("device", ["numpy", "torch"])
def test_a_matrix_that_is_refused_is_an_error_of_values(device: str) -> None:
    """PyTorch's error is no ValueError, and has no name of the function."""
    if device == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    a = tn.asarray(np.zeros((2, 2)), device=device)
    calls = {
        "solve_triangular": lambda: fn.linalg.solve_triangular(a, a),
        "solve": lambda: fn.linalg.solve(a, a),
        "inv": lambda: fn.linalg.inv(a),
        "cholesky": lambda: fn.linalg.cholesky(a),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"{name}: .* shape \(2, 2\)"):
            call()

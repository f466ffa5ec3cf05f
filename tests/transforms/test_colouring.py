"""Sparse Jacobians: the colours, the number of passes, values, and wrong patterns."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.errors import OperandError
from tinynode.gradient_check import numerical_grad
from tinynode.transforms.colouring import colour_columns


def tridiagonal(n: int) -> Any:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1


def diffusion(x: Any) -> tn.Variable:
    """y[i] = x[i-1] x[i] + x[i]^3 - 2 x[i+1]: tridiagonal."""
    zero = 0.0 * x[:1]
    left, right = functions.concat([zero, x[:-1]]), functions.concat([x[1:], zero])
    return left * x + x**3 - 2 * right


class Passes(tn.FunctionHook):
    """Counts the backward passes."""

    name = "passes"

    def __init__(self) -> None:
        self.count = 0

    def sweep_began(self, sweep: Any) -> None:
        self.count += 1


def test_columns_of_a_colour_have_no_common_row() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        pattern = rng.random((7, 9)) < 0.3
        colours = np.array(colour_columns(pattern))
        for colour in range(colours.max() + 1):
            assert pattern[:, colours == colour].sum(axis=1).max() <= 1
        assert colours.max() + 1 >= pattern.sum(axis=1).max()


@pytest.mark.parametrize("n", [1, 2, 3, 10, 50])
def test_a_band_has_as_many_colours_as_diagonals(n: int) -> None:
    assert len(set(colour_columns(tridiagonal(n)))) == min(n, 3)
    assert colour_columns(np.eye(n, dtype=bool)) == [0] * n
    assert colour_columns(np.ones((2, n), dtype=bool)) == list(range(n))
    assert colour_columns(np.zeros((0, n), dtype=bool)) == [0] * n


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
def test_a_tridiagonal_jacobian_takes_three_passes(device: str) -> None:
    x = tn.asarray(np.random.default_rng(0).normal(size=40), device=device)
    with Passes() as sparse:
        J = tn.jacobian(diffusion, sparsity=tridiagonal(40))(x)
    with Passes() as full:
        expected = tn.jacobian(diffusion)(x)
    assert sparse.count == 3 and full.count == 1  # vmap runs all 40 passes at once
    assert J.device is x.device and J.dtype == x.dtype and J.shape == (40, 40)
    np.testing.assert_allclose(tn.to_host(J), tn.to_host(expected), rtol=1e-13)


def sums(x: tn.Variable) -> tn.Variable:
    """Each of 12 columns has one row of 3, and each row has four columns: rows are cheaper."""
    return functions.sum(functions.reshape(x, (3, 4)) ** 2, axis=1)


def copies(x: tn.Variable) -> tn.Variable:
    """Each of 12 rows has one column of 3: columns are cheaper."""
    return functions.reshape(
        functions.sin(functions.expand_dims(x, axis=1)) * np.arange(1.0, 5.0), (12,)
    )


@pytest.mark.parametrize(("f", "size", "passes"), [(sums, 12, 1), (copies, 3, 2)])
def test_the_cheaper_of_rows_and_columns(f: Any, size: int, passes: int) -> None:
    x = np.random.default_rng(0).normal(size=size)
    expected = tn.jacobian(f)(x).array
    with Passes() as hook:
        J = tn.jacobian(f, sparsity=expected != 0)(x)
    assert hook.count == passes
    np.testing.assert_allclose(J.array, expected)


@pytest.mark.parametrize(("f", "size"), [(sums, 12), (copies, 3)])
def test_the_second_order(f: Any, size: int) -> None:
    x = tn.asarray(np.random.default_rng(0).normal(size=size), requires_grad=True)
    pattern = tn.jacobian(f)(x).array != 0
    weights = np.random.default_rng(1).normal(size=pattern.shape)

    def of_jacobian(**how: Any) -> Any:
        J = tn.jacobian(f, enable_double_backprop=True, **how)(x)
        return tn.grad([functions.sum(J**2 * weights)], [x])[0]

    found = of_jacobian(sparsity=pattern)
    np.testing.assert_allclose(found.array, of_jacobian().array)

    def value() -> tuple[Any]:
        return ((tn.jacobian(f, sparsity=pattern)(x).array ** 2 * weights).sum(),)

    (numeric,) = numerical_grad(value, (x.array,), (np.array(1.0),), eps=1e-5)
    np.testing.assert_allclose(found.array, numeric, rtol=1e-6, atol=1e-8)


def test_shapes_of_several_axes_and_other_arguments() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3))

    def f(a: Any, x: Any, *, scale: float) -> tn.Variable:
        return functions.matrix_transpose(x * x) * scale * a

    expected = tn.jacobian(f, argnums=1)(2.0, x, scale=3.0)
    pattern = expected.array.reshape(6, 6) != 0
    assert pattern.sum() == 6
    J = tn.jacobian(f, argnums=1, sparsity=pattern)(2.0, x, scale=3.0)
    assert J.shape == (3, 2, 2, 3)
    np.testing.assert_allclose(J.array, expected.array)


@pytest.mark.parametrize("size", [0, 1])
def test_small_sizes(size: int) -> None:
    J = tn.jacobian(functions.exp, sparsity=np.ones((size, size), dtype=bool))(np.zeros(size))
    assert J.array.tolist() == np.ones((size, size)).tolist()


def test_a_pattern_without_entries_takes_zeros() -> None:
    J = tn.jacobian(functions.floor, sparsity=np.zeros((2, 2), dtype=bool))(np.ones(2))
    assert J.array.tolist() == [[0, 0], [0, 0]]
    J = tn.jacobian(lambda x: tn.asarray(np.ones(2)), sparsity=np.eye(2, dtype=bool))(np.ones(2))
    assert J.array.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    "pattern", [np.ones((3, 2), bool), np.ones((2, 2)), [1, 0], np.ones(4, bool), "band"]
)
def test_a_pattern_of_another_shape_or_dtype_is_an_error(pattern: Any) -> None:
    with pytest.raises(OperandError, match=r"booleans of shape \(2, 2\)"):
        tn.jacobian(functions.exp, sparsity=pattern)(np.ones(2))


def test_several_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="one argument"):
        tn.jacobian(functions.exp, argnums=(0,), sparsity=np.eye(2, dtype=bool))


@pytest.mark.parametrize("f", [sums, copies])
def test_debug_mode_finds_a_wrong_pattern(f: Any) -> None:
    x = np.random.default_rng(0).normal(size=12 if f is sums else 3)
    pattern = tn.jacobian(f)(x).array != 0
    with debug_mode():
        tn.jacobian(f, sparsity=pattern)(x)  # the right pattern
    pattern[tuple(np.argwhere(pattern)[1])] = False
    assert tn.jacobian(f, sparsity=pattern)(x).shape == pattern.shape
    with debug_mode(), pytest.raises(ValueError, match="outside of the pattern"):
        tn.jacobian(f, sparsity=pattern)(x)


def test_a_compiled_sparse_jacobian() -> None:
    compiled = tn.compile(tn.jacobian(diffusion, sparsity=tridiagonal(6)))
    for seed in range(2):
        x = tn.asarray(np.random.default_rng(seed).normal(size=6))
        expected = tn.jacobian(diffusion)(x).array
        np.testing.assert_allclose(compiled(x).array, expected, atol=1e-14)


@contextlib.contextmanager
def debug_mode() -> Any:
    with tn.using_config("debug", True):
        yield

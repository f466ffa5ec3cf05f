"""value_and_grad, jacobian and hvp: against formulas, against differences, and nested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.gradient_check import check_backward, numerical_grad
from tinynode.transforms import hvp, jacobian, value_and_grad


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def cubes(x: tn.Variable) -> tn.Variable:
    """f = sum(x^3): gradient 3 x^2, Hessian diag(6 x)."""
    return functions.sum(x * x * x)


def quadratic(x: tn.Variable, A: Any) -> tn.Variable:
    """f = x A x: gradient (A + A^T) x, Hessian A + A^T."""
    return functions.sum(x * functions.matmul(A, x))


# --- value_and_grad ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tn.Variable, np.asarray])
def test_value_and_gradient(make: Any) -> None:
    x = draw(2, 3)
    value, gx = value_and_grad(cubes)(make(x))
    assert type(value) is tn.Variable and type(gx) is tn.Variable
    np.testing.assert_allclose(value.array, (x**3).sum())
    np.testing.assert_allclose(gx.array, 3 * x**2)


def test_argnums_and_other_arguments() -> None:
    x, y, n = draw(3), draw(3, seed=1), np.array([1, 2, 3])

    def f(x: Any, y: Any, n: Any, *, scale: float) -> tn.Variable:
        assert n is numbers
        return functions.sum(x * x * y) * scale

    numbers = n
    _, gx = value_and_grad(f)(x, tn.Variable(y), n, scale=2.0)
    np.testing.assert_allclose(gx.array, 4 * x * y)
    _, gy = value_and_grad(f, argnums=1)(tn.Variable(x), y, n, scale=2.0)
    np.testing.assert_allclose(gy.array, 2 * x**2)
    _, both = value_and_grad(f, argnums=(1, 0))(x, y, n, scale=2.0)
    assert type(both) is tuple
    np.testing.assert_allclose(both[0].array, 2 * x**2)
    np.testing.assert_allclose(both[1].array, 4 * x * y)
    _, alone = value_and_grad(f, argnums=(0,))(x, tn.Variable(y), n, scale=1.0)
    assert type(alone) is tuple and len(alone) == 1


def test_grads_of_the_arguments_stay_untouched() -> None:
    x, w = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    x.grad = w.grad = grad = np.full(3, 7.0)

    def f(x: tn.Variable) -> tn.Variable:
        return functions.sum(x * x * w)

    for enable_double_backprop in (False, True):
        value_and_grad(f, enable_double_backprop=enable_double_backprop)(x)
        jacobian(f, enable_double_backprop=enable_double_backprop)(x)
        hvp(f, x, x, enable_double_backprop=enable_double_backprop)
        assert x.grad is grad and w.grad is grad
    assert x.creator is None


def test_the_value_keeps_its_graph() -> None:
    x, w = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    value, gx = value_and_grad(lambda x: functions.sum(x * w))(x.array)
    value.backward()
    np.testing.assert_allclose(w.grad, x.array)
    np.testing.assert_allclose(gx.array, w.array)


def test_a_gradient_that_is_not_reached_is_zeros() -> None:
    x, y = draw(2, 3), draw(2)
    _, (gx, gy) = value_and_grad(lambda x, y: functions.sum(y * y), argnums=(0, 1))(x, y)
    assert gx.array.tolist() == np.zeros((2, 3)).tolist() and gx.dtype == np.float64
    np.testing.assert_allclose(gy.array, 2 * y)
    _, gx = value_and_grad(lambda x: tn.Variable(np.array(1.0)))(x)
    assert not gx.array.any()


def test_a_function_that_returns_its_argument() -> None:
    value, gx = value_and_grad(lambda x: x)(np.array(3.0))
    assert float(value) == 3.0 and float(gx) == 1.0


def test_dtype_and_device_stay() -> None:
    for device in ("numpy", "strict:device1"):
        x = tn.asarray([1.0, 2.0], device=device)
        value, gx = value_and_grad(cubes)(x)
        J = jacobian(lambda x: x * x)(x)
        Hv = hvp(cubes, x, tn.asarray([1.0, -1.0], device=device))
        for result in (value, gx, J, Hv):
            assert result.dtype == x.dtype and result.device is x.device
        assert tn.to_host(gx.array).tolist() == [3.0, 12.0]
        assert tn.to_host(J.array).tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert tn.to_host(Hv.array).tolist() == [6.0, -12.0]


def test_it_works_where_no_graph_is_recorded() -> None:
    x = draw(3)
    with tn.no_backprop_mode():
        _, gx = value_and_grad(cubes)(x)
        np.testing.assert_allclose(gx.array, 3 * x**2)
        np.testing.assert_allclose(jacobian(lambda x: x * x)(x).array, np.diag(2 * x))
        np.testing.assert_allclose(hvp(cubes, x, x).array, 6 * x * x)


def test_gradients_of_gradients() -> None:
    x = tn.Variable(np.array(0.7))

    def first(x: tn.Variable) -> tn.Variable:
        return value_and_grad(functions.sin, enable_double_backprop=True)(x)[1]

    def second(x: tn.Variable) -> tn.Variable:
        return value_and_grad(first, enable_double_backprop=True)(x)[1]

    third = value_and_grad(second)(x)[1]
    assert float(first(x)) == pytest.approx(np.cos(0.7))
    assert float(second(x)) == pytest.approx(-np.sin(0.7))
    assert float(third) == pytest.approx(-np.cos(0.7))
    first(x).backward()
    assert x.grad == pytest.approx(-np.sin(0.7))


def test_the_gradient_leads_back_to_every_argument() -> None:
    x, y = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    _, gx = value_and_grad(lambda x, y: functions.sum(x * x * y), enable_double_backprop=True)(
        x, y
    )
    functions.sum(gx).backward()
    np.testing.assert_allclose(x.grad, 2 * y.array)
    np.testing.assert_allclose(y.grad, 2 * x.array)


def test_it_is_what_differences_say() -> None:
    x, w = draw(4), draw(4, 4, seed=1)

    def f(x: tn.Variable) -> tn.Variable:
        return functions.sum(functions.tanh(functions.matmul(w, x)) * functions.exp(x))

    _, gx = value_and_grad(f)(x)
    (expected,) = numerical_grad(lambda: f(tn.Variable(x)), (x,), (np.array(1.0),), eps=1e-5)
    np.testing.assert_allclose(gx.array, expected, rtol=1e-7)


def test_what_f_has_to_return() -> None:
    x = draw(3)
    with pytest.raises(ValueError, match=r"value_and_grad: f must give a single .*\(3,\)"):
        value_and_grad(functions.sin)(x)
    with pytest.raises(ValueError, match=r"hvp: f must give a single number.*\(3,\)"):
        hvp(functions.sin, x, x)
    for make in (value_and_grad, jacobian):
        with pytest.raises(TypeError, match=f"{make.__name__}: f must give a Variable, got float"):
            make(lambda x: 1.0)(x)
        with pytest.raises(TypeError, match=f"{make.__name__}: f gives int64"):
            make(lambda x: functions.astype(functions.sum(x), "int64"))(x)
    value, _ = value_and_grad(lambda x: functions.sum(x, keepdims=True))(x)
    assert value.shape == (1,)


def test_what_the_arguments_have_to_be() -> None:
    with pytest.raises(TypeError, match=r"argument 0 is ndarray of shape \(3,\), int64: only"):
        value_and_grad(cubes)(np.arange(3))
    with pytest.raises(ValueError, match="argnums=1, but f was called with 1 positional"):
        jacobian(cubes, argnums=1)(draw(3))
    with pytest.raises(ValueError, match=r"argnums=\(0, -1\)"):
        value_and_grad(cubes, argnums=(0, -1))(draw(3))
    with pytest.raises(
        TypeError, match=r"argument 0\[0\] must be a Variable or an array, got float 1.0"
    ):
        value_and_grad(cubes)([1.0])


def test_an_error_of_f_leaves_the_config_alone() -> None:
    def failing(x: tn.Variable) -> tn.Variable:
        raise ZeroDivisionError

    with tn.no_backprop_mode():
        for call in (value_and_grad(failing), jacobian(failing), lambda x: hvp(failing, x, x)):
            with pytest.raises(ZeroDivisionError):
                call(draw(2))
        assert not tn.config.enable_backprop


# --- jacobian ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "inside"),
    [((3,), (4,)), ((2, 3), (4, 5)), ((), (4,)), ((3,), ()), ((), ()), ((0,), (2,)), ((2,), (0,))],
)
def test_jacobian_of_a_linear_map(out: tuple[int, ...], inside: tuple[int, ...]) -> None:
    A = draw(*out, *inside)
    rows, columns = int(np.prod(out)), int(np.prod(inside))
    flat = A.reshape(rows, columns)

    def linear(x: tn.Variable) -> tn.Variable:
        y = functions.matmul(flat, functions.reshape(x, (columns, 1)))
        return functions.reshape(y, out)

    J = jacobian(linear)(draw(*inside, seed=1))
    assert J.shape == out + inside and J.dtype == np.float64
    np.testing.assert_allclose(J.array, A)
    assert J.creator is None


def test_jacobian_of_several_arguments() -> None:
    x, y = draw(3), draw(3, seed=1)
    Jx, Jy = jacobian(functions.multiply, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(Jx.array, np.diag(y))
    np.testing.assert_allclose(Jy.array, np.diag(x))
    np.testing.assert_allclose(jacobian(functions.multiply, argnums=1)(x, y).array, np.diag(x))


def test_rows_that_do_not_depend_on_x_are_zeros() -> None:
    J = jacobian(lambda x: tn.Variable(np.ones(2)))(draw(3))
    assert J.array.tolist() == np.zeros((2, 3)).tolist()


def test_hessian_is_the_jacobian_of_the_gradient() -> None:
    A = draw(3, 3)

    def gradient(x: tn.Variable) -> tn.Variable:
        return value_and_grad(quadratic, enable_double_backprop=True)(x, A)[1]

    x = tn.Variable(draw(3, seed=1))
    np.testing.assert_allclose(jacobian(gradient)(x).array, A + A.T, rtol=1e-12)


def test_jacobian_can_be_differentiated() -> None:
    def trace(x: tn.Variable) -> tn.Variable:
        J = jacobian(lambda x: x * x * x, enable_double_backprop=True)(x)
        return functions.sum(J)

    check_backward(trace, draw(3), None, eps=1e-5)
    x = tn.Variable(draw(3))
    with tn.no_backprop_mode():
        y = jacobian(lambda x: x * x, enable_double_backprop=True)(x)
    functions.sum(y).backward()
    np.testing.assert_allclose(x.grad, [2.0, 2.0, 2.0])


def test_jacobian_is_what_differences_say() -> None:
    x = draw(3)

    def f(x: tn.Variable) -> tn.Variable:
        return functions.softmax_cross_entropy(
            functions.reshape(x, (1, 3)), np.array([1])
        ) * functions.sin(x)

    J = jacobian(f)(x).array
    for row, gy in zip(J, np.eye(3), strict=True):
        (expected,) = numerical_grad(lambda: f(tn.Variable(x)), (x,), (gy,), eps=1e-5)
        np.testing.assert_allclose(row, expected, rtol=1e-7, atol=1e-9)


# --- hvp -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tn.Variable, np.asarray])
def test_hessian_times_vector(make: Any) -> None:
    x, v = draw(2, 3), draw(2, 3, seed=1)
    Hv = hvp(cubes, make(x), make(v))
    assert type(Hv) is tn.Variable and Hv.requires_grad == (make is tn.Variable)
    np.testing.assert_allclose(Hv.array, 6 * x * v)


def test_hessian_that_is_not_diagonal() -> None:
    A, x, v = draw(4, 4), draw(4, seed=1), draw(4, seed=2)
    Hv = hvp(lambda x: quadratic(x, A), x, v)
    np.testing.assert_allclose(Hv.array, (A + A.T) @ v, rtol=1e-12)


def test_hessian_of_several_arguments() -> None:
    """f = sum(x^2 y): H = [[diag(2 y), diag(2 x)], [diag(2 x), 0]]."""
    x, y, u, v = (draw(3, seed=seed) for seed in range(4))

    def f(x: tn.Variable, y: tn.Variable) -> tn.Variable:
        return functions.sum(x * x * y)

    Hx, Hy = hvp(f, (x, y), (u, v))
    np.testing.assert_allclose(Hx.array, 2 * y * u + 2 * x * v)
    np.testing.assert_allclose(Hy.array, 2 * x * u)


def test_none_counts_as_zero() -> None:
    x, v = draw(3), draw(3, seed=1)
    assert not hvp(lambda x: functions.sum(x * 2.0), x, v).array.any()
    assert not hvp(lambda x: tn.Variable(np.array(1.0)), x, v).array.any()
    assert not hvp(functions.sum, x, v).array.any()
    Hx, Hy = hvp(lambda x, y: functions.sum(x * x), (x, x), (v, v))
    np.testing.assert_allclose(Hx.array, 2 * v)
    assert not Hy.array.any()


def test_hvp_can_be_differentiated() -> None:
    """H v = 6 x v, so the derivatives of sum(H v) are 6 v and 6 x."""
    x, v = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    functions.sum(hvp(cubes, x, v, enable_double_backprop=True)).backward()
    np.testing.assert_allclose(x.grad, 6 * v.array)
    np.testing.assert_allclose(v.grad, 6 * x.array)

    def product(x: tn.Variable, v: tn.Variable) -> tn.Variable:
        return hvp(lambda x: functions.sum(functions.sin(x)), x, v, enable_double_backprop=True)

    check_backward(product, (draw(3), draw(3, seed=1)), draw(3, seed=2), eps=1e-5)


def test_the_vector_has_to_fit() -> None:
    x = draw(3)
    for v, problem in (
        (draw(2), r"of shape \(3,\), float64 on numpy, got of shape \(2,\), float64"),
        (draw(3).astype(np.complex64), r"got of shape \(3,\), complex64"),
    ):
        with pytest.raises(ValueError, match=problem):
            hvp(cubes, x, v)
    strict = tn.get_device("strict").from_host(draw(3))
    with pytest.raises(ValueError, match="strict:CPU_DEVICE"):
        hvp(cubes, x, strict)
    with pytest.raises(ValueError, match="the vector v must be a tuple of length 2, got tuple"):
        hvp(lambda x, y: cubes(x), (x, x), (x,))
    with pytest.raises(ValueError, match="must be a tuple of length 2, got ndarray"):
        hvp(lambda x, y: cubes(x), (x, x), x)

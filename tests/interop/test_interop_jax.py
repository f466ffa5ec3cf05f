"""Functions of Variables in JAX: values, gradients of every order, jit, vmap, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import OperandError

pytestmark = pytest.mark.slow

jax: Any = None
jnp: Any = None
F = tn.functions
REASON = "JAX is not installed: pip install '.[backends]'"


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Import JAX when a test of this file runs, and allow float64 for the test."""
    global jax, jnp
    jax = pytest.importorskip("jax", reason=REASON)
    jnp = jax.numpy
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


class Power(tn.FunctionNode):
    """x^n, as a student writes the function."""

    def __init__(self, n: int = 2) -> None:
        self.n = n

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] ** self.n,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * self.n * x ** (self.n - 1),)


def two(x: Any, y: Any) -> Any:
    return F.exp(x) * y, F.tanh(x + y)


def cube(x: Any) -> Any:
    return x * x * x


def array(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape))


ROWS: list[tuple[Any, list[tuple[int, ...]]]] = [
    (two, [(3,), (3,)]),
    (two, [(2, 3), (3,)]),
    (Power, [(2, 3)]),
    (cube, [()]),
    (F.matmul, [(2, 3), (3, 2)]),
    (F.linalg.inv, [(2, 2)]),
    (F.logsumexp, [(4,)]),
]


@pytest.mark.parametrize(("f", "shapes"), ROWS)
def test_check_grads(f: Any, shapes: Any) -> None:
    from jax.test_util import check_grads

    inputs = tuple(array(*shape, seed=i) for i, shape in enumerate(shapes))
    function = tn.interop.jax_function(f)
    check_grads(function, inputs, order=2, modes=["rev"])
    check_grads(jax.jit(function), inputs, order=2, modes=["rev"])


def test_grad_of_grad_of_grad() -> None:
    f = tn.interop.jax_function(cube)
    assert jax.grad(f)(2.0) == 12 and jax.grad(jax.grad(f))(2.0) == 12
    third = jax.grad(jax.grad(jax.grad(f)))
    assert third(2.0) == 6 and jax.jit(third)(5.0) == 6


def test_inside_a_program_of_jax() -> None:
    f = tn.interop.jax_function(Power, n=3)
    x = array(3)

    def ours(x: Any) -> Any:
        return jnp.sum(jnp.sin(f(jnp.cos(x))) * x)

    def theirs(x: Any) -> Any:
        return jnp.sum(jnp.sin(jnp.cos(x) ** 3) * x)

    for change in (jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.jacrev(jax.grad(f))):
        np.testing.assert_allclose(change(ours)(x), change(theirs)(x), rtol=1e-12)


def test_vmap() -> None:
    f, x = tn.interop.jax_function(cube), array(4)
    np.testing.assert_allclose(jax.vmap(f)(x), x**3)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x), 3 * x**2)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(jax.grad(f))))(x), 6 * x)


def test_several_outputs_and_an_unused_one() -> None:
    x, y = array(3), array(3, seed=1)
    f = tn.interop.jax_function(two)
    first, second = f(x, y)
    np.testing.assert_allclose(first, jnp.exp(x) * y)
    np.testing.assert_allclose(second, jnp.tanh(x + y))
    gradient = jax.grad(lambda x: f(x, y)[0].sum())(x)
    np.testing.assert_allclose(gradient, jnp.exp(x) * y)


def test_integers() -> None:
    x, places = array(3), jnp.asarray([0, 0, 2])
    take = tn.interop.jax_function(F.take, axis=0)
    assert jax.grad(lambda x: take(x, places).sum())(x).tolist() == [2, 0, 1]
    both = tn.interop.jax_function(lambda x: (F.max(x), F.argmax(x)))
    assert both(x)[1].dtype == jnp.int64 and jax.grad(lambda x: both(x)[0])(x).sum() == 1
    assert tn.interop.jax_function(F.argmax)(x) == jnp.argmax(x)


def test_a_gradient_that_is_none_is_zero() -> None:
    x = array(3)
    f = tn.interop.jax_function(lambda x, y: F.floor(x) + y)
    gx, gy = jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(x, x)
    assert gx.tolist() == [0, 0, 0] and gy.tolist() == [1, 1, 1]


def test_float32() -> None:
    jax.config.update("jax_enable_x64", False)
    x = jnp.asarray([1.0, 2.0])
    f = tn.interop.jax_function(lambda x: (cube(x), F.argmax(x), F.astype(x, "float64")))
    assert [str(y.dtype) for y in f(x)] == ["float32", "int32", "float32"]
    gradient = jax.grad(lambda x: sum(y.sum() for y in f(x)[::2]))(x)
    assert gradient.dtype == jnp.float32 and gradient.tolist() == [4, 13]


def test_the_mode_of_the_caller_does_not_count() -> None:
    with tn.no_grad():
        assert jax.grad(jax.grad(tn.interop.jax_function(cube)))(2.0) == 12


def test_training_with_jit() -> None:
    act = tn.interop.jax_function(Power)
    x, target = array(8, 2), array(8, 1, seed=1)

    def loss(weights: Any) -> Any:
        return ((act(x @ weights[0]) @ weights[1] - target) ** 2).mean()

    weights, step = (array(2, 4) * 0.5, array(4, 1) * 0.5), jax.jit(jax.value_and_grad(loss))
    losses = []
    for _ in range(20):
        value, gradients = step(weights)
        weights = jax.tree.map(lambda w, g: w - 0.02 * g, weights, gradients)
        losses.append(float(value))
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("device", ["fast", "strict:device1", "torch"])
def test_the_function_runs_on_the_device_of_the_caller(device: str) -> None:
    if device == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    seen = set()

    def scaled(x: Any) -> Any:
        y = cube(x) * weight
        seen.add(str(y.device))
        return y

    x = array(3)
    with tn.using_device(device):
        weight = tn.asarray([2.0], dtype="float64")
        f = tn.interop.jax_function(scaled)
        value, slopes = f(x), jax.jit(jax.vmap(jax.grad(lambda v: f(v[None])[0])))(x)
    assert seen == {device}
    np.testing.assert_allclose(value, 2 * x**3, rtol=1e-12)
    np.testing.assert_allclose(slopes, 6 * x**2, rtol=1e-12)


def test_errors_name_the_cure() -> None:
    f = tn.interop.jax_function(F.exp)
    for wrong, cure in (
        ("text", r"argument 0 is str 'text'; expected an array"),
        (jnp.ones(2, jnp.bfloat16), r"x.astype\(jnp.float32\)"),
        (jnp.ones(2, jnp.complex64), r"has dtype complex64"),
    ):
        with pytest.raises(OperandError, match=cure):
            f(wrong)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(f, (1.0,), (1.0,))

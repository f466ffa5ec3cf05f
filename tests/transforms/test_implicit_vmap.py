"""custom_root and newton under vmap: values, derivatives, compiled, nested, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.errors import ConvergenceError, OperandError, VmapError
from tinynode.net import Scope, dumps, loads

EXAMPLES, SIZE = 3, 2


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def root_of_cubes(device: str, solve: str, reads_values: bool) -> Callable[..., tn.Variable]:
    """x with x^3 + 2 x + 0.1 sum(x) = a b: the Jacobian is positive definite."""
    start = tn.asarray(np.ones(SIZE), device=device, requires_grad=False)

    def equation(x: Any, a: Any, b: Any) -> Any:
        return x**3 + 2.0 * x + 0.1 * functions.sum(x) - a * b

    def solver(a: Any, b: Any) -> Any:
        return tn.newton(equation, start, a, b)

    def solver_of_arrays(a: Any, b: Any) -> Any:
        values = [tn.asarray(tn.to_host(v), device=device) for v in (a, b)]
        return tn.asarray(tn.to_host(solver(*values)), device=device)

    chosen = solver_of_arrays if reads_values else solver
    return tn.custom_root(equation, chosen, solve=solve)


def ways(root: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    def loss(a: Any, b: Any) -> Any:
        return functions.sum(root(a, b) ** 3)

    def along(a: Any, b: Any) -> Any:
        return tn.jvp(lambda a: tn.gradient(loss)(a, b), (a,), (functions.cos(a),))[1]

    return {
        "value": root,
        "gradient": tn.gradient(loss),
        "gradient of the shared": tn.gradient(loss, 1),
        "hvp": along,
    }


@pytest.mark.parametrize(
    ("device", "solve", "reads_values"),
    [
        ("numpy", "dense", False),
        pytest.param("fast", "dense", True, marks=pytest.mark.slow),
        pytest.param("fast", "gmres", False, marks=pytest.mark.slow),
        pytest.param("numpy", "cg", True, marks=pytest.mark.slow),
        pytest.param("strict", "cg", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("way", ["value", "gradient", "gradient of the shared", "hvp"])
def test_each_example_has_its_own_root(
    device: str, solve: str, reads_values: bool, way: str
) -> None:
    """Eager and compiled, for other values in each call, at last without a gradient."""
    f = ways(root_of_cubes(device, solve, reads_values))[way]
    mapped = tn.vmap(f, in_axes=(0, None))
    compiled = tn.compile(mapped)
    b = tn.asarray(1.3, dtype="float64", device=device, requires_grad=True)
    for seed in range(3):
        host = draw(EXAMPLES, SIZE, seed=seed)
        a = tn.asarray(host, device=device, requires_grad=seed < 2)
        rows = [tn.asarray(row, device=device, requires_grad=True) for row in host]
        expected = np.stack([tn.to_host(f(row, b)) for row in rows])
        for one in (mapped, compiled):
            np.testing.assert_allclose(tn.to_host(one(a, b)), expected, rtol=1e-6, atol=1e-9)
    assert len(compiled.recordings) == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_from_outside_to_second_order(compiled: bool) -> None:
    root = root_of_cubes("numpy", "dense", False)

    def every(a: Any, b: Any) -> Any:
        return functions.sum(tn.vmap(root, in_axes=(0, None))(a, b) ** 2)

    def in_turn(a: Any, b: Any) -> Any:
        return sum([functions.sum(root(a[i], b) ** 2) for i in range(EXAMPLES)], 0.0)

    f = tn.compile(every) if compiled else every
    for seed in range(3):
        a, b = tn.Variable(draw(EXAMPLES, SIZE, seed=seed)), tn.Variable(np.array(1.3))
        found = []
        for one in (in_turn, f):
            ga, gb = tn.grad([one(a, b)], [a, b], enable_double_backprop=True)
            (second,) = tn.grad([functions.sum(ga**2) + gb**2], [a])
            found.append([ga.array, gb.array, second.array])
        for expected, value in zip(*found, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("compiled", [False, True])
def test_vmap_in_vmap_and_other_axes(compiled: bool) -> None:
    root = root_of_cubes("numpy", "dense", False)
    slope = ways(root)["gradient"]
    mapped = tn.vmap(tn.vmap(slope, in_axes=(0, None)), in_axes=(2, 0))
    f = tn.compile(mapped) if compiled else mapped
    a, b = tn.Variable(draw(EXAMPLES, SIZE, 2)), tn.Variable(np.array([0.7, 1.3]))
    for _ in range(3):
        found = f(a, b)
        for i in range(2):
            for k in range(EXAMPLES):
                expected = slope(a[k, :, i], b[i]).array
                np.testing.assert_allclose(found.array[i, k], expected, rtol=1e-7)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("transform", [tn.jacobian, tn.jacfwd, tn.hessian])
def test_jacobians_and_hessians_of_each_example(transform: Any, compiled: bool) -> None:
    """Several directions at once, in several examples: other numbers of both."""
    root = tn.custom_root(lambda x, t: x * x - t, functions.sqrt)

    def loss(t: Any) -> Any:
        return functions.sum(root(t) ** 3)

    f = transform(loss if transform is tn.hessian else root)
    mapped = tn.compile(tn.vmap(f)) if compiled else tn.vmap(f)
    rows = draw(4, 3) ** 2 + 1.0
    expected = np.stack([f(row).array for row in rows])
    for given in (rows, tn.Variable(rows)):  # without a gradient, and with one
        np.testing.assert_allclose(mapped(given).array, expected, rtol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
def test_captured_variables_are_shared(compiled: bool) -> None:
    w = tn.Variable(np.array([0.5, 0.2]))

    def step(z: Any, x: Any) -> Any:
        return functions.sin(w * z) + x

    def loop(x: Any) -> Any:
        z = x
        for _ in range(60):
            z = step(z, x)
        return z

    fixed = tn.custom_fixed_point(step, loop)

    def total(x: Any) -> Any:
        return functions.sum(tn.vmap(fixed)(x) ** 2)

    f = tn.compile(total) if compiled else total
    x = tn.Variable(draw(5, 2))
    for _ in range(2):
        found = tn.grad([f(x)], [x, w])
        expected = tn.grad([functions.sum(loop(x) ** 2)], [x, w])
        for one, other in zip(found, expected, strict=True):
            assert one is not None and other is not None
            np.testing.assert_allclose(one.array, other.array, rtol=1e-8)
        w.array = w.array * 0.9


@pytest.mark.parametrize("compiled", [False, True])
def test_newton_alone(compiled: bool) -> None:
    mapped = tn.vmap(lambda start, a: tn.newton(lambda x, a: x * x - a, start, a))
    f = tn.compile(mapped) if compiled else mapped
    start, a = np.array([1.0, -1.0, 5.0]), np.array([[4.0, 1.0], [9.0, 4.0], [25.0, 1.0]])
    for _ in range(3):
        found = f(start, a)
        np.testing.assert_allclose(found.array, [[2, 1], [-3, -2], [5, 1]])
        assert not found.requires_grad


def test_a_net_with_a_vmapped_root_is_saved() -> None:
    root = root_of_cubes("numpy", "dense", False)
    slope = tn.vmap(ways(root)["gradient"], in_axes=(0, None))
    a, b = tn.Variable(draw(EXAMPLES, SIZE)), tn.Variable(np.array(1.3))
    found = tn.trace(slope, a, b)
    assert "solver_call" not in {operator.type for operator in found.net.flattened()}
    net, scope = loads(dumps(found.net)), Scope(dict(zip(found.inputs, (a, b), strict=True)))
    for name, x in found.captured.items():
        scope.set(name, x)
    net.run(scope)
    np.testing.assert_allclose(scope.find(found.outputs[0]).array, slope(a, b).array)


def test_no_examples_and_one_example() -> None:
    slope = tn.vmap(ways(root_of_cubes("numpy", "dense", False))["gradient"], in_axes=(0, None))
    for count in (0, 1):
        assert slope(draw(count, SIZE), np.array(1.3)).shape == (count, SIZE)


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("has_arguments", [False, True])
def test_an_example_in_the_closure_is_refused(has_arguments: bool, compiled: bool) -> None:
    def f(a: Any) -> Any:
        root = tn.custom_root(lambda x, t: x * x - t * a, functions.sqrt)
        return root(a if has_arguments else tn.asarray(np.ones(2), requires_grad=False))

    mapped = tn.compile(tn.vmap(f)) if compiled else tn.vmap(f)
    with pytest.raises(VmapError, match=r"Give the Variables of an example as arguments"):
        mapped(np.array([1.0, 4.0]))


def test_a_singular_jacobian_in_one_example() -> None:
    root = tn.custom_root(lambda x, t: x * x - t, functions.sqrt)
    slope = tn.vmap(tn.gradient(lambda t: functions.sum(root(t))))
    np.testing.assert_allclose(slope(np.ones((2, 1))).array, 0.5)
    with pytest.raises(ConvergenceError, match="singular Jacobian"):
        slope(np.array([[1.0], [0.0]]))


def test_a_guess_of_another_shape() -> None:
    with pytest.raises(OperandError, match="One equation for each unknown"):
        tn.newton(lambda x, t: functions.sum(x) - t, np.ones(2), 1.0)

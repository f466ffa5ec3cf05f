"""Transforms: vjp, jvp, linearize, Jacobians and Hessians: against formulas, nested, compiled."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.core.hooks import thread_state
from tinynode.errors import GraphError, RequiresGradError
from tinynode.gradient_check import check_backward

Pair = collections.namedtuple("Pair", ["left", "right"])


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


W = draw(3, 4, seed=9)


def layer(x: Any) -> Any:
    """tanh(x W): J = diag(1 - y^2) W^T."""
    return functions.tanh(functions.matmul(x, W))


def jacobian_of_layer(x: Any) -> Any:
    return (1 - np.tanh(x @ W) ** 2)[:, None] * W.T


def cubes(x: Any) -> Any:
    """sum(x^3): gradient 3 x^2, Hessian diag(6 x)."""
    return functions.sum(x * x * x)


def close(found: Any, expected: Any) -> None:
    assert type(found) is tn.Variable
    np.testing.assert_allclose(tn.to_host(found.array), expected, rtol=1e-11, atol=1e-13)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tn.Variable, np.asarray])
def test_gradient(make: Any) -> None:
    x = draw(2, 3)
    gx = tn.gradient(cubes)(make(x))
    close(gx, 3 * x**2)
    assert gx.requires_grad == (make is tn.Variable)
    gy, gx = tn.gradient(lambda x, y: functions.sum(x * y * y), argnums=(1, 0))(x, make(x))
    close(gy, 2 * x * x)
    close(gx, x * x)


@pytest.mark.parametrize("make", [tn.Variable, np.asarray])
def test_vjp_and_jvp_of_a_layer(make: Any) -> None:
    x, v, u = draw(3), draw(3, seed=1), draw(4, seed=2)
    J = jacobian_of_layer(x)
    value, pullback = tn.vjp(layer, make(x))
    close(value, np.tanh(x @ W))
    for scale in (1.0, 2.0):  # as often as needed
        (gx,) = pullback(make(scale * u))
        close(gx, scale * (u @ J))
        assert gx.requires_grad == (make is tn.Variable)
    value, tangent = tn.jvp(layer, (make(x),), (make(v),))
    close(value, np.tanh(x @ W))
    close(tangent, J @ v)
    assert tangent.requires_grad == (make is tn.Variable)


def test_several_arguments() -> None:
    x, y, v, w = (draw(3, seed=seed) for seed in range(4))
    _, pullback = tn.vjp(functions.multiply, x, y)
    gx, gy = pullback(v)
    close(gx, v * y)
    close(gy, v * x)
    _, tangent = tn.jvp(functions.multiply, (x, y), [v, w])
    close(tangent, v * y + x * w)
    _, linear = tn.linearize(functions.multiply, x, y)
    close(linear(v, w), v * y + x * w)


def test_nested_arguments_and_results() -> None:
    x, y, z = draw(2), draw(2, seed=1), draw(2, seed=2)
    a, b, c = draw(2, seed=3), draw(2, seed=4), draw(2, seed=5)

    def f(p: Any, z: Any) -> Any:
        return {"first": [p["x"] * p["y"][0]], "second": Pair(z * z, (p["x"],))}

    point, tangents = {"x": x, "y": [y]}, {"y": [b], "x": a}  # another order of the keys
    value, found = tn.jvp(f, (point, z), (tangents, c))
    assert type(value["second"]) is type(found["second"]) is Pair
    close(found["first"][0], a * y + x * b)
    close(found["second"].left, 2 * z * c)
    close(found["second"].right[0], a)
    linear = tn.linearize(f, point, z)[1]
    close(linear(tangents, c)["first"][0], a * y + x * b)
    close(linear(tangents, c)["second"].left, 2 * z * c)
    _, pullback = tn.vjp(f, point, z)
    gp, gz = pullback({"first": [a], "second": Pair(b, (c,))})
    close(gp["x"], a * y + c)
    close(gp["y"][0], a * x)
    close(gz, 2 * b * z)
    for jacobian in (tn.jacrev, tn.jacfwd):
        J = jacobian(f, argnums=(0, 1))(point, z)
        close(J["first"][0][0]["x"], np.diag(y))
        close(J["first"][0][0]["y"][0], np.diag(x))
        close(J["first"][0][1], np.zeros((2, 2)))
        close(J["second"].left[1], np.diag(2 * z))


def test_what_does_not_depend_is_zero() -> None:
    x, v = draw(3), draw(3, seed=1)
    constant = tn.Variable(np.ones(2))

    def f(x: Any, y: Any) -> Any:
        return constant, x * 1.0, y

    _, tangents = tn.jvp(f, (x, x), (v, 0 * v))
    close(tangents[0], np.zeros(2))
    close(tangents[1], v)
    close(tangents[2], 0 * v)
    gx, gy = tn.vjp(f, x, x)[1]((np.ones(2), np.zeros(3), v))
    close(gx, np.zeros(3))
    close(gy, v)
    close(tn.jacfwd(lambda x: constant)(x), np.zeros((2, 3)))
    close(tn.jacfwd(lambda x: tn.asarray([1.0, 2.0], dtype="float64"))(x), np.zeros((2, 3)))
    close(tn.linearize(lambda x: constant, x)[1](v), np.zeros(2))
    close(tn.linearize(lambda x: x, x)[1](v), v)
    close(tn.jvp(lambda x: (x, x), (x,), (v,))[1][1], v)
    close(tn.hessian(functions.sum)(x), np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("out", "inside"),
    [((3,), (4,)), ((2, 3), (4, 5)), ((), (4,)), ((3,), ()), ((), ()), ((0,), (2,)), ((2,), (0,))],
)
def test_jacobians_of_a_linear_map(out: tuple[int, ...], inside: tuple[int, ...]) -> None:
    A = draw(*out, *inside)
    flat = A.reshape(int(np.prod(out)), int(np.prod(inside)))

    def f(x: Any) -> Any:
        column = functions.reshape(x, (flat.shape[1], 1))
        return functions.reshape(functions.matmul(flat, column), out)

    for jacobian in (tn.jacrev, tn.jacfwd, tn.jacobian):
        J = jacobian(f)(draw(*inside, seed=1))
        assert J.shape == out + inside
        close(J, A)
        assert J.creator is None


def test_jacobians_are_the_formula() -> None:
    x = draw(3)
    for jacobian in (tn.jacrev, tn.jacfwd):
        close(jacobian(layer)(x), jacobian_of_layer(x))
        both = jacobian(functions.multiply, argnums=(1, 0))(x, x + 1)
        close(both[0], np.diag(x))
        close(both[1], np.diag(x + 1))


def test_hessian() -> None:
    x, y, A = draw(3), draw(3, seed=1), draw(3, 3, seed=2)
    close(tn.hessian(cubes)(x), np.diag(6 * x))
    H = tn.hessian(lambda x: functions.sum(x * functions.matmul(A, x)))(x)
    close(H, A + A.T)

    def f(p: Any) -> Any:  # sum(x^2 y)
        return functions.sum(p["x"] * p["x"] * p["y"])

    H = tn.hessian(f)({"x": x, "y": y})
    close(H["x"]["x"], np.diag(2 * y))
    close(H["x"]["y"], np.diag(2 * x))
    close(H["y"]["y"], np.zeros((3, 3)))
    (Hxx, Hxy), (Hyx, _) = tn.hessian(lambda x, y: f({"x": x, "y": y}), argnums=(0, 1))(x, y)
    close(Hxx, np.diag(2 * y))
    close(Hxy, np.diag(2 * x))
    close(Hyx, np.diag(2 * x))
    v = draw(3, seed=3)
    Hv = tn.hvp(f, {"x": x, "y": y}, {"x": v, "y": 0 * v})
    close(Hv["x"], 2 * y * v)
    close(Hv["y"], 2 * x * v)


def test_arrays_without_elements() -> None:
    x = np.zeros((0, 3))
    value, tangent = tn.jvp(functions.exp, (x,), (x,))
    assert value.shape == tangent.shape == (0, 3)
    close(tn.jvp(functions.sum, (x,), (x,))[1], 0.0)


@pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])
def test_dtype_and_device_stay(device: str) -> None:
    x = tn.asarray([1.0, 2.0], device=device)
    results = [*tn.jvp(cubes, (x,), (x,)), tn.gradient(cubes)(x), tn.hessian(cubes)(x)]
    results += [tn.jacfwd(functions.exp)(x), tn.linearize(cubes, x)[1](x)]
    results += tn.vjp(functions.exp, x)[1](x)
    for result in results:
        assert result.dtype == x.dtype and result.device is x.device
    assert float(results[1]) == pytest.approx(27.0)


# --- composition ---------------------------------------------------------------------------------


def tangent_of(f: Any, v: Any) -> Any:
    """x -> the jvp of f at x along v."""

    def tangent(x: Any) -> Any:
        return tn.jvp(f, (x,), (v,))[1]

    return tangent


def test_second_order_in_every_way() -> None:
    x, v = draw(3), draw(3, seed=1)
    close(tn.gradient(tangent_of(cubes, v))(x), 6 * x * v)
    close(tn.jvp(tn.gradient(cubes), (x,), (v,))[1], 6 * x * v)
    close(tn.jvp(tangent_of(cubes, v), (x,), (v,))[1], np.sum(6 * x * v * v))
    close(tn.linearize(tn.gradient(cubes), x)[1](v), 6 * x * v)
    for outer in (tn.jacfwd, tn.jacrev):
        for inner in (tn.gradient, tn.jacfwd, tn.jacrev):
            close(outer(inner(cubes))(x), np.diag(6 * x))
    close(tn.gradient(lambda x: functions.sum(tn.hvp(cubes, x, v)))(x), 6 * v)
    close(tn.gradient(lambda x: tn.linearize(cubes, x)[1](v))(x), 6 * x * v)
    close(
        tn.gradient(lambda x: functions.sum(tn.vjp(functions.exp, x)[1](v)[0]))(x), np.exp(x) * v
    )
    close(
        tn.gradient(lambda x: tn.value_and_grad(functions.exp)(x)[1])(np.array(0.3)), np.exp(0.3)
    )


def test_third_order() -> None:
    x, v = draw(3), draw(3, seed=1)
    third = np.zeros((3, 3, 3))
    third[range(3), range(3), range(3)] = 6
    for way in (tn.jacfwd(tn.hessian(cubes)), tn.jacrev(tn.jacfwd(tn.jacrev(cubes)))):
        close(way(x), third)
    close(tn.hessian(tangent_of(cubes, v))(x), np.diag(6 * v))
    f = functions.sin
    for make in (tn.gradient, tn.jacfwd, tn.jacrev):
        close(make(make(make(f)))(np.array(0.7)), -np.cos(0.7))
    close(make(make(make(make(f))))(np.array(0.7)), np.sin(0.7))


def test_directions_are_not_confused() -> None:
    """d/dx (x * d/dy (x + y)) = 1: the inner derivative knows only y."""

    def outer(x: Any) -> Any:
        inner = tn.jvp(lambda y: x + y, (tn.Variable(np.array(1.0)),), (np.array(1.0),))[1]
        return x * inner

    close(tn.jvp(outer, (np.array(3.0),), (np.array(1.0),))[1], 1.0)
    close(tn.gradient(outer)(np.array(3.0)), 1.0)


def test_the_flag_is_obeyed() -> None:
    x, v = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    tangent = tn.jvp(cubes, (x,), (v,), enable_double_backprop=True)[1]
    tangent.backward()
    np.testing.assert_allclose(x.grad, 6 * x.array * v.array)
    np.testing.assert_allclose(v.grad, 3 * x.array**2)
    x.cleargrad()
    cut = tn.gradient(lambda x: tn.jvp(cubes, (x,), (v,), enable_double_backprop=False)[1])(x)
    close(cut, np.zeros(3))
    kept = tn.linearize(cubes, x, enable_double_backprop=True)[1]
    kept(v).backward()
    np.testing.assert_allclose(x.grad, 6 * x.array * v.array)
    assert kept.net is None and "kept" in str(kept)


def test_variables_of_the_closure() -> None:
    w = tn.Variable(draw(3, seed=2))
    x, v = draw(3), draw(3, seed=1)

    def f(x: Any) -> Any:
        return functions.sum(w * x * x)

    tangent = tn.jvp(f, (x,), (v,), enable_double_backprop=True)[1]
    tangent.backward()
    np.testing.assert_allclose(w.grad, 2 * x * v)
    w.cleargrad()
    tn.jvp(f, (x,), (v,))[0].backward()  # the value keeps its graph
    np.testing.assert_allclose(w.grad, x * x)


def test_the_gradient_of_a_pullback_reaches_u() -> None:
    x, u = draw(3), tn.Variable(draw(3, seed=1))
    _, pullback = tn.vjp(functions.exp, x)

    def f(u: Any) -> Any:
        return functions.sum(pullback(u)[0])

    close(tn.gradient(f)(u), np.exp(x))


def test_gradients_are_what_differences_say() -> None:
    def tangent(x: Any, v: Any) -> Any:
        return tn.jvp(layer, (x,), (v,), enable_double_backprop=True)[1]

    check_backward(tangent, (draw(3), draw(3, seed=1)), draw(4, seed=2), eps=1e-5)


# --- compiled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_compiled_is_eager(device: str) -> None:
    x, v = tn.asarray(draw(3), device=device), tn.asarray(draw(3, seed=1), device=device)
    w = tn.asarray(W, device=device)

    def inner(x: Any) -> Any:
        return functions.sum(functions.tanh(functions.matmul(x, w)) ** 3.0)

    ways = {
        "gradient": lambda x, v: tn.gradient(inner)(x),
        "vjp": lambda x, v: tn.vjp(functions.exp, x)[1](v)[0],
        "jvp": lambda x, v: tn.jvp(inner, (x,), (v,)),
        "linearize": lambda x, v: tn.linearize(inner, x)[1](v),
        "jacfwd": lambda x, v: tn.jacfwd(functions.exp)(x),
        "jacrev": lambda x, v: tn.jacrev(functions.exp)(x),
        "hessian": lambda x, v: tn.hessian(inner)(x),
        "gradient of jvp": lambda x, v: tn.gradient(tangent_of(inner, v))(x),
        "hvp": lambda x, v: tn.hvp(inner, x, v),
    }
    for name, way in ways.items():
        compiled = tn.compile(way)
        for _ in range(3):
            found, expected = compiled(x, v), way(x, v)
            if not isinstance(found, tuple):
                found, expected = (found,), (expected,)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(
                    tn.to_host(ours.array), tn.to_host(theirs.array), rtol=1e-10, err_msg=name
                )


def test_a_compiled_transform_inside_another_one() -> None:
    compiled = tn.compile(tn.gradient(cubes))
    x = tn.Variable(draw(3))
    for _ in range(2):  # recorded outside, then inside, where a graph is needed
        close(compiled(x), 3 * x.array**2)
        close(tn.gradient(lambda x: functions.sum(compiled(x)))(x), 6 * x.array)
    linear = tn.linearize(tn.compile(layer), x)[1]
    close(linear(x), jacobian_of_layer(x.array) @ x.array)


def operators_of_plan(compiled: Any, *args: Any) -> collections.Counter[str]:
    """How often each operator runs in a compiled call."""
    lines = compiled.explain(*args).partition("run:")[2].splitlines()
    calls: collections.Counter[str] = collections.Counter()
    for line in lines:
        _, is_call, call = line.partition(" = ")
        if not is_call and "_grad(" in line:
            break  # the gradient net
        calls[call.partition("(")[0]] += bool(is_call)
    return calls


def test_the_dummy_gradient_costs_nothing() -> None:
    """Attention with a mask: each product of the forward run has two products in the jvp."""
    x = tn.asarray(draw(2, 5, 4), requires_grad=False)
    w = [tn.asarray(draw(4, 4, seed=i), requires_grad=False) for i in range(3)]

    def attention(x: Any) -> Any:
        q, k, v = (functions.linear(x, one) for one in w)
        return functions.scaled_dot_product_attention(q, k, v, causal=True) * x

    def forward_mode(x: Any, v: Any) -> Any:
        return tn.jvp(attention, (x,), (v,))

    compiled = tn.compile(forward_mode)
    found = operators_of_plan(compiled, x, x)
    assert found["linear"] == 2 * 3
    assert found["matmul"] == 3 * 2  # both factors of a product have a tangent
    assert not {"dummy_gradient", "is_dead", "stop_gradient"} & set(found)
    expected = tn.jvp(attention, (x,), (x,))
    for ours, theirs in zip(compiled(x, x), expected, strict=True):
        close(ours, theirs.array)


# --- linearize -----------------------------------------------------------------------------------


def test_the_net_of_a_linear_map() -> None:
    x, v = draw(3), draw(3, seed=1)
    value, linear = tn.linearize(layer, x)
    text = str(linear)
    assert text.startswith("jvp_of_layer(vs_0):") and "matmul" in text
    assert "tanh(" not in text and "subtract" not in text  # the point is a constant
    assert repr(linear).startswith("<LinearMap <NetOp jvp_of_layer")
    expected = jacobian_of_layer(x) @ v
    value.array[...] = 7.0
    x[...] = 0.0
    for scale in (1.0, -2.0, 0.0):
        close(linear(scale * v), scale * expected)
    value, linear = tn.linearize(functions.exp, v)  # the value is its own derivative
    expected = value.array.copy() * v
    value.array[...] = 7.0
    close(linear(tn.asarray(v)), expected)


def test_what_the_point_gives_is_computed_once() -> None:
    """Large values are not folded by the passes, but by ``linearize``."""
    x, v = np.abs(draw(40, 50)), draw(40, 50, seed=1)

    def f(x: Any) -> Any:
        return functions.matmul(functions.log(x), x.T)

    linear = tn.linearize(f, x)[1]
    found = [one.type for one in linear.net.operators]
    assert set(found) == {"constant", "divide", "matmul", "matmul_of_transposed", "add"}
    assert found.count("divide") == 1
    np.testing.assert_allclose(linear(v).array, (v / x) @ x.T + np.log(x) @ v.T, rtol=1e-10)


def test_guards_at_a_finite_point_are_dropped() -> None:
    x = np.array([1.0, 2.0])
    linear = tn.linearize(lambda x: functions.exp(functions.log(x)), x)[1]
    found = [one.type for one in linear.net.operators]
    assert found == ["constant", "divide", "multiply"]
    close(linear(x), x)
    with np.errstate(divide="ignore"):
        linear = tn.linearize(functions.log, np.array([0.0, 2.0]))[1]
    close(linear(np.array([0.0, 1.0])), [0.0, 0.5])


def test_a_linear_map_stays_when_parameters_change() -> None:
    w = tn.Variable(W.copy())
    x, v = draw(3), draw(3, seed=1)
    linear = tn.linearize(lambda x: functions.tanh(functions.matmul(x, w)), x)[1]
    w.array = np.zeros_like(W)
    close(linear(v), jacobian_of_layer(x) @ v)


def test_a_linear_map_can_be_differentiated() -> None:
    x, v, u = draw(3), draw(3, seed=1), draw(4, seed=2)
    linear = tn.linearize(layer, x)[1]
    close(tn.gradient(lambda v: functions.sum(linear(v) * u))(v), u @ jacobian_of_layer(x))
    tangent = tn.Variable(v)
    functions.sum(linear(tangent) * u).backward()
    np.testing.assert_allclose(tangent.grad, u @ jacobian_of_layer(x))
    compiled = tn.compile(lambda v: linear(v) * 2.0)
    close(compiled(tn.Variable(v)), 2 * jacobian_of_layer(x) @ v)


def test_a_linear_map_of_dropout_has_one_mask() -> None:
    x = np.ones(50)
    value, linear = tn.linearize(lambda x: functions.dropout(x, 0.5), x)
    close(linear(x), value.array)
    close(linear(x), value.array)


# --- errors --------------------------------------------------------------------------------------


def test_arguments_that_are_not_floating() -> None:
    x = draw(3)
    tree = {"w": [x, np.arange(3)]}
    with pytest.raises(RequiresGradError, match=r"jvp: argument 0\['w'\]\[1\] is ndarray of sha"):
        tn.jvp(lambda p: p["w"][0], (tree,), (tree,))
    with pytest.raises(RequiresGradError, match=r"vjp: argument 1 is ndarray .* int64: only"):
        tn.vjp(functions.multiply, x, np.arange(3))
    with pytest.raises(RequiresGradError, match="jacfwd: argument 0"):
        tn.jacfwd(functions.exp)(np.arange(3))
    with pytest.raises(TypeError, match=r"gradient: argument 0\['a'\] must be a Variable or an a"):
        tn.gradient(cubes)({"a": "text"})


def test_results_that_are_no_variables() -> None:
    x = draw(3)
    for call in (
        lambda f: tn.jvp(f, (x,), (x,)),
        lambda f: tn.vjp(f, x),
        lambda f: tn.linearize(f, x),
        lambda f: tn.jacfwd(f)(x),
    ):
        with pytest.raises(
            TypeError, match=r"f must give a Variable, got float 1.0 \(the part \["
        ):
            call(lambda x: {"y": (x, 1.0)})
        with pytest.raises(RequiresGradError, match=r"f gives int64, which has no derivative"):
            call(lambda x: functions.astype(x, "int64"))
    for make in (tn.gradient, tn.value_and_grad, tn.hessian):
        with pytest.raises(TypeError, match=rf"{make.__name__}: f must"):
            make(lambda x: (functions.sum(x),))(x)
        with pytest.raises(ValueError, match=rf"{make.__name__}: f must give a single .*\(3,\)"):
            make(functions.exp)(x)


def test_tangents_that_do_not_fit() -> None:
    x = draw(3)
    for v, problem in (
        (draw(2), r"tangent of vs\[0\] must be of shape \(3,\), float64 .* got of shape \(2,\)"),
        (draw(3).astype(np.complex64), "got of shape .*complex64"),
        (tn.get_device("strict").from_host(draw(3)), "strict:CPU_DEVICE"),
        ([x], r"tangent of vs\[0\] must be one array, like .*got list"),
    ):
        with pytest.raises(ValueError, match=f"jvp: the {problem}|{problem}"):
            tn.jvp(functions.exp, (x,), (v,))
        with pytest.raises(ValueError, match=f"linearize: the {problem}|{problem}"):
            tn.linearize(functions.exp, x)[1](v)
    with pytest.raises(TypeError, match=r"jvp: xs must be a tuple .* jvp\(f, \(x,\), \(v,\)\)"):
        tn.jvp(functions.exp, x, x)
    with pytest.raises(ValueError, match="tangent of vs must be a tuple of length 1"):
        tn.jvp(functions.exp, (x,), (x, x))
    with pytest.raises(
        ValueError, match=r"vs\[0\] must be a dict with the keys \['a'\], got dict"
    ):
        tn.jvp(lambda p: p["a"], ({"a": x},), ({"b": x},))
    with pytest.raises(TypeError, match=r"the tangent of vs\[0\] must be a Variable or an array"):
        tn.jvp(functions.exp, (x,), (1.0,))
    _, pullback = tn.vjp(lambda x: {"y": x}, x)
    with pytest.raises(ValueError, match=r"vjp: the gradient u of \['y'\] must be of shape"):
        pullback({"y": draw(2)})
    with pytest.raises(ValueError, match=r"vjp: the gradient u must be a dict with the keys"):
        pullback(x)


class Cut(tn.FunctionNode):
    """y = x^2, with a backward that makes a Variable from arrays: no graph leads through."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (tn.as_variable(2 * x.array * grad_outputs[0].array),)


class CutLeaf(Cut):
    """The same, and the Variable requires a gradient: a leaf."""

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (tn.Variable(super().backward(target_input_indexes, grad_outputs)[0].array),)


def test_a_backward_that_makes_a_leaf_is_no_silent_zero() -> None:
    x = draw(3)
    with pytest.raises(GraphError, match="does not depend"):
        tn.jvp(lambda x: CutLeaf().apply((x,))[0], (x,), (x,))
    close(tn.jvp(functions.identity, (x,), (2 * x,))[1], 2 * x)  # here the gradient is u itself


def test_a_backward_without_a_graph_is_no_silent_zero() -> None:
    x = draw(3)

    def f(p: Any) -> Any:
        return Cut().apply((p["x"],))[0]

    close(tn.vjp(f, {"x": x})[1](x)[0]["x"], 2 * x * x)
    with pytest.raises(GraphError, match=r"xs\[0\]\['x'\] does not depend .* tinynode.functions"):
        tn.jvp(f, ({"x": x},), ({"x": x},))
    with pytest.raises(GraphError, match="jacfwd: the gradient with respect to xs"):
        tn.jacfwd(f)({"x": x})


def test_a_checkpoint_in_forward_mode() -> None:
    x, v = draw(3), draw(3, seed=1)
    close(tn.jvp(lambda x: tn.checkpoint(functions.exp, x), (x,), (v,))[1], np.exp(x) * v)


def test_writes_and_modules() -> None:
    x, v = draw(3), draw(3, seed=1)

    def written(x: Any) -> Any:
        y = x * 1.0
        y[0] = y[1] * 3.0
        return y * y

    expected = [18 * x[1] * v[1], *(2 * x[1:] * v[1:])]
    close(tn.jvp(written, (x,), (v,))[1], expected)
    close(tn.compile(tangent_of(written, v))(tn.Variable(x)), expected)
    module = tn.nn.Sequential(tn.nn.Linear(3, 2), tn.nn.BatchNorm(2), functions.relu)
    batch = tn.asarray(draw(5, 3), dtype="float32")
    J = tn.jacrev(module)(batch).array
    tangent = tn.jvp(module, (batch,), (batch,))[1].array
    np.testing.assert_allclose(tangent, np.tensordot(J, batch.array, axes=2), rtol=1e-4, atol=1e-5)


def test_complex_numbers_inside() -> None:
    x, v, step = draw(4), draw(4, seed=1), 1e-6
    tangent = tn.jvp(lambda x: functions.abs(functions.fft.fft(x)), (x,), (v,))[1]
    ahead, behind = (np.abs(np.fft.fft(x + s * v)) for s in (step, -step))
    np.testing.assert_allclose(tangent.array, (ahead - behind) / (2 * step), rtol=1e-6)
    with pytest.raises(RequiresGradError, match="complex128: only floating"):
        tn.jvp(functions.exp, (x * 1j,), (x * 1j,))


def test_masked_points_have_tangents_of_zero() -> None:
    """The eager jvp, the compiled one and the gradient agree where a mask hides an infinity."""
    x, v = np.array([0.0, 2.0]), np.array([1.0, 4.0])

    def f(x: Any) -> Any:
        return functions.where(x > 0.0, functions.log(x), 0.0)

    with np.errstate(divide="ignore"):
        close(tn.jvp(f, (x,), (v,))[1], [0.0, 2.0])
        close(tn.compile(tangent_of(f, v))(tn.Variable(x)), [0.0, 2.0])
        close(tn.jvp(functions.log, (x,), (v,))[1], [np.inf, 2.0])
        close(tn.compile(tangent_of(functions.log, v))(tn.Variable(x)), [np.inf, 2.0])


def test_calls_in_another_form() -> None:
    for name in ("gradient", "hessian", "jacfwd"):
        with pytest.raises(
            TypeError, match=f"{name}: argnums must be .*write {name}\\(f\\)\\(x\\)"
        ):
            getattr(tn, name)(cubes, draw(3))
        with pytest.raises(TypeError, match=f"{name}: f must be a function, got ndarray"):
            getattr(tn, name)(draw(3))
        with pytest.raises(ValueError, match="argnums=1, but f was called with 1 positional"):
            getattr(tn, name)(cubes, argnums=1)(draw(3))
    for call in (tn.vjp, tn.linearize):
        with pytest.raises(TypeError, match="f must be a function"):
            call(draw(3), cubes)


# --- state ---------------------------------------------------------------------------------------


class OddError(Exception):
    """Raised by a function half-way."""


def test_an_exception_leaves_no_state() -> None:
    x = draw(3)

    def failing(x: Any) -> Any:
        assert thread_state.differentiating == depth and tn.config.enable_backprop
        raise OddError

    with tn.no_backprop_mode():
        for call in (
            lambda f: tn.jvp(f, (x,), (x,)),
            lambda f: tn.vjp(f, x),
            lambda f: tn.linearize(f, x),
            lambda f: tn.jacfwd(f)(x),
            lambda f: tn.gradient(f)(x),
            lambda f: tn.hvp(f, x, x),
        ):
            depth = 1
            with pytest.raises(OddError):
                call(failing)
            depth = 2
            with pytest.raises(OddError):
                tn.gradient(lambda x, call=call: call(failing))(x)
            assert thread_state.differentiating == 0
            assert not tn.config.enable_backprop
    assert tn.gradient(cubes)(x).creator is None


def test_inside_no_backprop_mode() -> None:
    x, v = draw(3), draw(3, seed=1)
    with tn.no_backprop_mode():
        close(tn.jvp(cubes, (x,), (v,))[1], np.sum(3 * x * x * v))
        close(tn.hessian(cubes)(x), np.diag(6 * x))
        close(tn.linearize(cubes, x)[1](v), np.sum(3 * x * x * v))
        close(tn.gradient(tangent_of(cubes, v))(x), 6 * x * v)


def test_debug_mode_and_hooks() -> None:
    x, v = draw(3), draw(3, seed=1)
    with tn.using_config("debug", True):
        close(tn.jvp(layer, (x,), (v,))[1], jacobian_of_layer(x) @ v)
        close(tn.hessian(cubes)(x), np.diag(6 * x))
        close(tn.linearize(layer, x)[1](v), jacobian_of_layer(x) @ v)
    with tn.hooks.TimerHook() as timer:
        close(tn.jvp(layer, (x,), (v,))[1], jacobian_of_layer(x) @ v)
        close(tn.linearize(layer, x)[1](v), jacobian_of_layer(x) @ v)
    assert timer.call_history


def test_threads_have_their_own_depth() -> None:
    x = tn.Variable(draw(3))
    found: list[int] = []

    def inner(x: Any) -> Any:
        worker = threading.Thread(target=lambda: found.append(thread_state.differentiating))
        worker.start()
        worker.join()
        found.append(thread_state.differentiating)
        return functions.sum(x)

    tn.gradient(inner)(x)
    assert found == [0, 1]


def test_grads_of_the_arguments_stay_untouched() -> None:
    x, v = tn.Variable(draw(3)), tn.Variable(draw(3, seed=1))
    x.grad = v.grad = grad = np.full(3, 7.0)
    for flag in (None, False, True):
        tn.jvp(layer, (x,), (v,), enable_double_backprop=flag)
        tn.vjp(layer, x, enable_double_backprop=flag)[1](np.ones(4))
        tn.jacfwd(layer, enable_double_backprop=flag)(x)
        tn.hessian(cubes, enable_double_backprop=flag)(x)
        tn.linearize(layer, x, enable_double_backprop=flag)[1](v)
    assert x.grad is grad and v.grad is grad and x.creator is None


# --- where the graph of a derivative begins and ends ---------------------------------------------


def sum_of_cubes(w: Any) -> Any:
    return functions.sum(w**3)


def test_a_step_along_the_gradient_is_differentiated_as_a_whole() -> None:
    """A gradient step inside of a recorded function: d/dw f(w - s f'(w)) has the second order."""

    def meta(w: Any) -> Any:
        return sum_of_cubes(w - 0.1 * tn.gradient(sum_of_cubes)(w))

    w = tn.Variable(np.array([2.0, 1.0]))
    step = w.array - 0.3 * w.array**2
    expected = 3 * step**2 * (1 - 0.6 * w.array)
    for program in (meta, tn.compile(meta), lambda w: tn.checkpoint(meta, w)):
        w.cleargrad()
        program(w).backward()
        close(w.grad_var, expected)
        close(tn.gradient(program)(w.array), expected)


def test_the_gradient_for_an_input_reaches_the_weights() -> None:
    """A penalty on the gradient for the input: the weights stand in a closure, x is an array."""
    weights = tn.Variable(np.array([1.0, 2.0]))
    slope = tn.gradient(lambda x: functions.sum(weights**2 * x**2))(np.array([3.0, -1.0]))
    functions.sum(slope).backward()  # the sum of 2 w^2 x
    np.testing.assert_allclose(weights.grad, 4 * weights.array * np.array([3.0, -1.0]))


DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "gradient": lambda x: tn.gradient(sum_of_cubes)(x),
    "value_and_grad": lambda x: tn.value_and_grad(sum_of_cubes)(x)[1],
    "vjp": lambda x: tn.vjp(sum_of_cubes, x)[1](np.array(1.0))[0],
    "jvp": lambda x: tn.jvp(sum_of_cubes, (x,), (np.ones(2),))[1],
    "hvp": lambda x: tn.hvp(sum_of_cubes, x, np.ones(2)),
    "jacobian": lambda x: tn.jacobian(sum_of_cubes)(x),
    "jacfwd": lambda x: tn.jacfwd(sum_of_cubes)(x),
    "hessian": lambda x: tn.hessian(sum_of_cubes)(x),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_recorded_as_any_result(name: str) -> None:
    """Arrays and no_grad give no graph, and then no gradient is required."""
    derivative, x = DERIVATIVES[name], np.array([2.0, 1.0])
    assert isinstance(derivative(x).numpy(), np.ndarray)
    with tn.no_grad():
        assert isinstance(derivative(tn.Variable(x)).numpy(), np.ndarray)
    leaf = tn.Variable(x)
    functions.sum(derivative(leaf)).backward()
    order = 2 if name not in ("hvp", "hessian") else 3
    np.testing.assert_allclose(leaf.grad, 6 * x if order == 2 else [6.0, 6.0])

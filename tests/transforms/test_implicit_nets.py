"""custom_root and newton compiled: operators with a body, saved, checked, to second order."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.errors import ConvergenceError, NetError, TraceError
from tinynode.functions import linalg
from tinynode.net import NetOp, Scope, dumps, load_net, loads, save_net
from tinynode.net.body import body_of


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def constant(array: Any, device: str = "numpy") -> tn.Variable:
    return tn.asarray(array, device=device, requires_grad=False)


# --- programs: each gives a function of one Variable, made of Variables alone --------------------


def system(device: str, solve: Any = "dense") -> Callable[[Any], Any]:
    """Six equations by Newton's method, with a matrix in the closure."""
    A, start = constant(np.eye(6) + 0.1 * draw(6, 6), device), constant(np.ones(6), device)

    def equation(x: Any, a: Any) -> Any:
        return x**3 + 0.1 * x * functions.sum(x * x) + functions.matmul(A, x) - a

    root = tn.custom_root(equation, lambda a: tn.newton(equation, start, a), solve=solve)
    return lambda a: functions.sum(root(a) ** 3)


def ridge(device: str, solve: Any = "cg") -> Callable[[Any], Any]:
    """A minimum: the equation is a gradient, and its Jacobian is positive definite."""
    X, t = constant(draw(12, 6), device), constant(draw(12, seed=1), device)
    unit = constant(np.eye(6), device)

    def loss(w: Any, penalty: Any) -> Any:
        return functions.sum((functions.matmul(X, w) - t) ** 2) + functions.sum(
            functions.exp(penalty) * w * w
        )

    def minimum(penalty: Any) -> Any:
        damped = functions.matmul(X.T, X) + functions.exp(penalty) * unit
        return linalg.solve(damped, functions.matmul(X.T, t))

    root = tn.custom_root(tn.gradient(loss, enable_double_backprop=True), minimum, solve=solve)
    return lambda penalty: functions.sum(root(penalty) ** 2)


def layer(device: str, solve: Any = "gmres") -> Callable[[Any], Any]:
    """A fixed point by ``tn.fixed_point``."""
    W = constant(0.4 * np.linalg.qr(draw(6, 6))[0], device)

    def step(z: Any, x: Any) -> Any:
        return functions.tanh(functions.matmul(W, z) + x)

    fixed = tn.custom_fixed_point(step, lambda x: tn.fixed_point(step, x, x), solve=solve)
    return lambda x: functions.sum(fixed(x) ** 2)


def loop_of_a_fixed_length(device: str, solve: Any = "gmres") -> Callable[[Any], Any]:
    """Sixty operators in the place of a loop."""

    def step(z: Any, x: Any) -> Any:
        return 0.3 * functions.sin(z) + x

    def loop(x: Any) -> Any:
        z = x
        for _ in range(20):
            z = step(z, x)
        return z

    fixed = tn.custom_fixed_point(step, loop, solve=solve)
    return lambda x: functions.sum(fixed(x) ** 2)


PROGRAMS = [system, ridge, layer, loop_of_a_fixed_length]


def ways(f: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    """The function, its gradient, and a Hessian-vector product."""
    gradient = tn.gradient(f)

    def along(x: Any) -> Any:
        return tn.jvp(gradient, (x,), (functions.cos(x),))[1]

    return {"value": f, "gradient": gradient, "hvp": along}


def types_of(net: NetOp) -> set[str]:
    return {operator.type for operator in net.flattened()}


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", ["value", "gradient", "hvp"])
def test_compiled_derivatives_agree_with_eager_ones(program: Any, device: str, way: str) -> None:
    f = ways(program(device))[way]
    compiled = tn.compile(f)
    for seed in range(4):
        x = tn.asarray(0.5 * draw(6, seed=seed), device=device, requires_grad=seed < 3)
        expected = tn.to_host(f(x))
        np.testing.assert_allclose(tn.to_host(compiled(x)), expected, rtol=1e-7, atol=1e-9)
    recording, _ = compiled.recordings
    types = types_of(recording.trace.net)
    assert "root" in types and "solver_call" not in types
    assert ("linear_solve" in types) is (way != "value")


@pytest.mark.parametrize("solve", ["cg", "dense", "gmres"])
def test_backward_of_a_compiled_function(solve: str) -> None:
    """The gradient net, and its gradient net."""
    f = ridge("numpy", solve)
    compiled = tn.compile(f)
    for seed in range(3):
        x = tn.Variable(draw(6, seed=seed))
        found = []
        for one in (f, compiled):
            (first,) = tn.grad([one(x)], [x], enable_double_backprop=True)
            (second,) = tn.grad([functions.sum(first**2)], [x])
            found.append([first.array, second.array])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-9)


def test_a_solver_of_functions_is_recorded_once() -> None:
    calls = []

    def solver(theta: Any) -> Any:
        calls.append(theta)
        return functions.sqrt(theta)

    compiled = tn.compile(tn.custom_root(lambda x, theta: x * x - theta, solver))
    for value in (4.0, 9.0):
        assert compiled(tn.Variable(np.array([value]))).tolist() == [value**0.5]
    assert len(calls) == 1


def test_a_solver_that_draws_random_numbers_runs_as_it_is() -> None:
    def equation(x: Any, theta: Any) -> Any:
        return x * x - theta

    def solver(theta: Any) -> Any:
        guess = functions.dropout(theta, 0.5) + 1.0
        return tn.newton(equation, guess, theta)

    compiled = tn.compile(
        tn.gradient(lambda t: functions.sum(tn.custom_root(equation, solver)(t)))
    )
    for _ in range(3):
        found = compiled(tn.Variable(np.array([4.0, 16.0])))
        np.testing.assert_allclose(found.array, [0.25, 0.125])


def test_a_solver_of_ones_own_for_the_linear_system_runs_as_it_is() -> None:
    def solve(matvec: Any, b: Any, tolerance: float) -> Any:
        return b / matvec(tn.asarray(np.ones(b.shape)))  # exact for a diagonal matrix

    root = tn.custom_root(lambda x, t: x * x - t, functions.sqrt, solve=solve)
    compiled = tn.compile(tn.gradient(lambda t: functions.sum(root(t))))
    for _ in range(3):
        found = compiled(tn.Variable(np.array([4.0, 16.0])))
        np.testing.assert_allclose(found.array, [0.25, 0.125])


def test_a_root_in_the_equation_of_a_root() -> None:
    """x with x^2 = theta, then y with y^3 = x + y."""
    inner = tn.custom_root(lambda x, t: x * x - t, functions.sqrt)

    def equation(y: Any, theta: Any) -> Any:
        return y**3 - inner(theta) - y

    start = constant(np.full(2, 1.5))
    outer = tn.custom_root(equation, lambda theta: tn.newton(equation, start, theta))
    theta = tn.Variable(np.array([2.0, 3.0]))
    for f in ways(lambda theta: functions.sum(outer(theta) ** 2)).values():
        compiled = tn.compile(f)
        for _ in range(3):
            np.testing.assert_allclose(compiled(theta).array, f(theta).array, rtol=1e-7)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_large_arrays(device: str) -> None:
    """A recording has stand-ins for large arrays, and a solver needs values."""
    root = tn.custom_root(lambda x, t: x * x - t, functions.sqrt, solve="cg")
    compiled = tn.compile(tn.gradient(lambda t: functions.sum(root(t * 2.0) ** 3)))
    t = tn.asarray(np.linspace(1, 2, 40_000), device=device, requires_grad=True)
    for _ in range(3):
        np.testing.assert_allclose(tn.to_host(compiled(t)), 3 * 2**0.5 * tn.to_host(t) ** 0.5)


# --- Newton's method alone -----------------------------------------------------------------------


def test_newton_in_a_compiled_function() -> None:
    @tn.compile
    def root(theta: Any) -> Any:
        return tn.newton(lambda x, theta: x * x - theta, 1.0, theta) * theta

    for value in ("float32", "float64"):
        theta = tn.asarray([4.0], dtype=value, requires_grad=True)
        for _ in range(3):
            x = root(theta)
            np.testing.assert_allclose(x.array, [8.0], rtol=1e-6)
            assert x.dtype == theta.dtype
        (g,) = tn.grad([root(theta)], [theta])
        assert g is not None
        np.testing.assert_allclose(g.array, [2.0], rtol=1e-6)  # none through the solver


@pytest.mark.parametrize(
    ("start", "message"),
    [(0.0, "newton: a step of 1 unknowns failed: .*singular"), (1e9, "5 steps did not converge")],
)
def test_errors_of_newton_in_a_compiled_function(start: float, message: str) -> None:
    def find(start: Any, theta: Any) -> Any:
        return tn.newton(lambda x, theta: x * x - theta, start, theta, steps=5)

    compiled = tn.compile(find)
    theta = np.array(4.0)
    assert float(compiled(np.array(2.5), theta)) == pytest.approx(2.0)
    for _ in range(3):
        with pytest.raises(ConvergenceError, match=message):
            compiled(np.array(start), theta)


# --- what the user is told -----------------------------------------------------------------------


def test_each_run_checks_the_residual() -> None:
    compiled = tn.compile(tn.custom_root(lambda x, t: x * x - t, lambda t: t / 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(tn.Variable(np.array([4.0])))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"custom_root\(<lambda>\).*residual is 8"):
            compiled(tn.Variable(np.array([8.0])) * 1.0)
    with pytest.raises(ConvergenceError, match="diverged"):
        compiled(tn.Variable(np.array([np.nan])))


@pytest.mark.parametrize("solve", ["cg", "dense", "gmres"])
def test_a_singular_jacobian(solve: str) -> None:
    root = tn.custom_root(lambda x, t: x * x - t, functions.sqrt, solve=solve)
    compiled = tn.compile(lambda t: functions.sum(root(t)))
    for _ in range(3):
        with pytest.raises(ConvergenceError, match="singular Jacobian"):
            compiled(tn.Variable(np.zeros(2))).backward()


def test_functions_that_no_loop_can_repeat() -> None:
    state = tn.Variable(np.ones(2))

    def writes(x: Any, t: Any) -> Any:
        with tn.no_backprop_mode():
            state.array = (state * 2.0).array
        return x * x - t

    def draws(x: Any, t: Any) -> Any:
        return functions.dropout(x * x - t, 0.5)

    for equation, message in ((writes, "asks for the value"), (draws, "dropout|random")):
        compiled = tn.compile(tn.custom_root(equation, functions.sqrt))
        with pytest.raises((TraceError, NetError), match=message):
            compiled(tn.Variable(np.full(2, 4.0)))


def test_the_printed_net_shows_the_body() -> None:
    text = str(tn.trace(system("numpy"), draw(6)).net)
    assert "newton(" in text and "body=<Body equation: " in text
    assert "        equation(" in text and "            t0 = pow_constant(x, exponent=3)" in text


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_saved_and_loaded(program: Any, device: str, tmp_path: Any) -> None:
    x = tn.asarray(0.5 * draw(6), device=device, requires_grad=True)
    for name, f in ways(program(device)).items():
        found = tn.trace(f, x)
        save_net(tmp_path / name, found.net)
        net = load_net(tmp_path / name)
        assert dumps(net) == dumps(found.net) and str(net) == str(found.net)
        scope = Scope({found.inputs[0]: x, **found.captured})
        net.run(scope)
        result = scope.find(found.outputs[0])
        np.testing.assert_allclose(tn.to_host(result), tn.to_host(f(x)), rtol=1e-7, atol=1e-9)


def test_a_loaded_net_has_a_gradient() -> None:
    f, x = system("numpy"), tn.Variable(draw(6))
    found = tn.trace(f, x)
    net = loads(dumps(found.net))
    scope = Scope({found.inputs[0]: x, **found.captured})
    net.run(scope)
    y = scope.find(found.outputs[0])
    scope.set(f"{found.outputs[0]}@GRAD", tn.asarray(np.ones(y.shape)))
    backward = tn.net.backward(net, scope, inputs=found.inputs)
    loads(dumps(backward)).run(scope)
    gradient = scope.find(f"{found.inputs[0]}@GRAD").array
    np.testing.assert_allclose(gradient, tn.gradient(f)(x).array)


def test_a_solver_that_reads_values_cannot_be_saved() -> None:
    root = tn.custom_root(lambda x, t: x * x - t, lambda t: np.sqrt(t.array))
    found = tn.trace(root, tn.Variable(np.array([4.0])))
    assert "solver_call" in types_of(found.net)
    with pytest.raises(NetError, match=r"(?s)solver_call.*x\.array asks for .*such as tn\.newton"):
        dumps(found.net)


def newton_text(**changes: Any) -> str:
    """The text of a net with Newton's method for x^2 = t, with changes to the operator."""

    def square(x: Any, t: Any) -> Any:
        return x * x - t

    body, _ = body_of(square, [constant(np.ones(2)), constant(np.ones(2))])
    net = json.loads(dumps(body.net))["content"]
    data = {"body": net, "inputs": body.inputs, "outputs": body.outputs}
    attrs = {
        "body": data,
        "batch": 0,
        "steps": 9,
        "tolerance": 1e-9,
        "output_device": {"device": "numpy"},
    }
    attrs["body"] = data | changes.pop("body", {})
    inputs = changes.pop("inputs", ["x", "t"])
    operator = {"type": "newton", "inputs": inputs, "outputs": ["y"], "attrs": attrs | changes}
    content = {"net": "f", "operators": [operator]}
    return json.dumps({"format": "tinynode net 1", "content": content})


def run_text(text: str, x: Any) -> Any:
    scope = Scope({"x": tn.asarray(x), "t": tn.asarray([4.0, 9.0])})
    loads(text).run(scope)
    return scope.find("y").array


def test_the_text_of_a_loop() -> None:
    np.testing.assert_allclose(run_text(newton_text(), [1.0, 1.0]), [2.0, 3.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "attribute steps must be int from 1 to 1000000"),
        ({"steps": 10**7}, "attribute steps must be int from 1 to 1000000"),
        ({"tolerance": -1.0}, "attribute tolerance must be float"),
        ({"body": {"inputs": ["x", "x"]}}, "an input comes twice"),
        ({"body": {"inputs": ["x"]}}, "'t' is neither an input nor written"),
        ({"body": {"inputs": ["x", 3]}}, "body: inputs must be a list of names"),
        ({"body": {"inputs": {"x": ["x"]}}}, "must be lists of names"),
        ({"body": {"outputs": ["z"]}}, "'z' is neither an input nor written"),
        ({"body": {"inputs": ["x", "t", "t0"]}}, "the net writes an input"),
        ({"body": {"body": {"net": 3}}}, "a net must be"),
        ({"body": {"body": {"net": "g", "operators": [3]}}}, "an operator must be"),
        ({"inputs": ["x"]}, "Newton: the body takes 2 inputs"),
        ({"body": {"outputs": ["t0", "t0"]}}, "gives 2 outputs"),
        ({"output_device": {"device": "strict"}}, "Newton: input 0 must be an array of strict"),
    ],
)
def test_a_wrong_text_of_a_loop_is_refused(changes: Any, message: str) -> None:
    with pytest.raises((NetError, ValueError, TypeError), match=message):
        run_text(newton_text(**changes), [1.0, 1.0])


@pytest.mark.parametrize(
    ("x", "message"),
    [([1, 1], "Newton: input 0 must be floating"), ([1.0, 1.0, 1.0], "(3,) and (2,)")],
)
def test_other_inputs_of_a_loop_are_refused(x: Any, message: str) -> None:
    with pytest.raises((NetError, ValueError, TypeError), match=re.escape(message)):
        run_text(newton_text(), np.array(x))

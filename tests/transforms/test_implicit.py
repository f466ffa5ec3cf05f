"""custom_root, custom_fixed_point, newton: formulas, differences, closures, nets and errors."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.core.hooks import thread_state
from tinynode.errors import ConvergenceError, OperandError, TraceError
from tinynode.gradient_check import check_backward, check_double_backward
from tinynode.transforms.linear_solvers import gmres

SOLVES = ["dense", "cg", "gmres"]


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def variable(*shape: int, seed: int = 0, device: str = "numpy") -> tn.Variable:
    return tn.asarray(draw(*shape, seed=seed), device=device, requires_grad=True)


def square(x: tn.Variable, theta: Any) -> tn.Variable:
    return x * x - theta


def square_root(theta: tn.Variable) -> Any:
    return np.sqrt(tn.to_host(theta))


# --- values and gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
@pytest.mark.parametrize("solve", SOLVES)
def test_the_square_root_to_third_order(solve: str, device: str) -> None:
    theta = tn.asarray([[1.0, 4.0], [2.0, 9.0]], dtype="float64", device=device)
    root, t = tn.custom_root(square, square_root, solve=solve), tn.to_host(theta)
    x = root(theta)
    assert x.device is theta.device and x.dtype == theta.dtype
    functions.sum(x).backward()
    np.testing.assert_allclose(tn.to_host(x), np.sqrt(t))
    np.testing.assert_allclose(tn.to_host(theta.grad), 0.5 / np.sqrt(t))
    (first,) = tn.grad([functions.sum(root(theta))], [theta], enable_double_backprop=True)
    (second,) = tn.grad([functions.sum(first)], [theta], enable_double_backprop=True)
    (third,) = tn.grad([functions.sum(second)], [theta])
    np.testing.assert_allclose(tn.to_host(second), -0.25 * t**-1.5)
    np.testing.assert_allclose(tn.to_host(third), 0.375 * t**-2.5)


def pair(x: tn.Variable, a: Any, options: Any) -> tn.Variable:
    """Two equations: x0^2 + a0 x1 = b, x1 + sin(a1 x0) = 0.3; the Jacobian is not symmetric."""
    first = x[0] ** 2 + a[0] * x[1] - options["b"][0]
    return functions.stack([first, x[1] + functions.sin(a[1] * x[0]) - 0.3])


def solve_pair(a: tn.Variable, options: Any) -> tn.Variable:
    return tn.newton(pair, np.array([1.5, -0.5]), a, options)


@pytest.mark.parametrize("solve", ["dense", "gmres"])
def test_a_system_with_nested_arguments_against_differences(solve: str) -> None:
    root = tn.custom_root(pair, solve_pair, solve=solve)

    def f(a: tn.Variable, b: tn.Variable) -> tn.Variable:
        return root(a, {"b": (b, "a label")})

    inputs, gy = (np.array([0.7, 0.4]), np.array(2.0)), draw(2)
    assert np.abs(pair(f(*inputs), inputs[0], {"b": (inputs[1],)}).array).max() < 1e-12
    check_backward(f, inputs, gy, eps=1e-5)
    check_double_backward(f, inputs, gy, (draw(2), draw(seed=2)), eps=1e-5)


def test_one_argument_of_two_and_no_gradient_at_all() -> None:
    root = tn.custom_root(pair, solve_pair)
    a, b = np.array([0.7, 0.4]), tn.Variable(np.array(2.0))
    functions.sum(root(a, {"b": [b]})).backward()
    assert b.grad is not None
    x = root(a, {"b": [2.0]})
    assert x.creator is None and not x.requires_grad
    with tn.no_backprop_mode():
        assert root(a, {"b": [b]}).creator is None


@pytest.mark.parametrize("solve", ["cg", "gmres"])
def test_float32(solve: str) -> None:
    theta = tn.asarray(np.linspace(1, 2, 30, dtype="float32"), requires_grad=True)
    x = tn.custom_root(square, square_root, solve=solve)(theta)
    functions.sum(x).backward()
    assert x.dtype == np.float32 and theta.grad.dtype == np.float32
    np.testing.assert_allclose(theta.grad, 0.5 / x.array, rtol=1e-4)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("solve", SOLVES)
def test_small_sizes(solve: str, size: int) -> None:
    theta = tn.asarray(np.ones(size), requires_grad=True)
    functions.sum(tn.custom_root(square, square_root, solve=solve)(theta)).backward()
    assert theta.grad.tolist() == [0.5] * size


def test_the_gradient_of_a_loss_that_is_zero() -> None:
    theta = tn.asarray([1.0, 2.0], requires_grad=True)
    x = tn.custom_root(square, square_root, solve="gmres")(theta)
    functions.sum(x * 0.0).backward()
    assert theta.grad.tolist() == [0, 0]


def test_a_solver_of_python_numbers() -> None:
    theta = tn.Variable(np.array(4.0))
    x = tn.custom_root(square, lambda theta: float(theta) ** 0.5)(theta)
    x.backward()
    assert x.dtype == np.float64 and theta.grad == 0.25


def test_keyword_arguments_go_to_the_solver_alone() -> None:
    @tn.custom_root(square)  # type: ignore[arg-type]
    def root(theta: tn.Variable, *, start: Any) -> tn.Variable:
        """Newton's method."""
        return tn.newton(square, start, theta)

    assert root.__name__ == "root" and root.__doc__ == "Newton's method."
    theta, start = tn.Variable(np.array([4.0])), tn.Variable(np.array([-1.0]))
    x = root(theta, start=start)
    x.backward()
    np.testing.assert_allclose(x.array, [-2.0])
    np.testing.assert_allclose(theta.grad, [-0.25])
    assert start.grad is None


def test_a_solver_of_ones_own_for_the_linear_system() -> None:
    asked = []

    def jacobi(matvec: Any, b: tn.Variable, tolerance: float) -> tn.Variable:
        asked.append(tolerance)
        return b / matvec(tn.asarray(np.ones(b.shape)))  # exact for a diagonal matrix

    theta = variable(3) * 0.1 + 2.0
    root = tn.custom_root(square, square_root, solve=jacobi, solve_tolerance=1e-3)
    (g,) = tn.grad([functions.sum(root(theta))], [theta])
    np.testing.assert_allclose(g.array, 0.5 / np.sqrt(theta.array))
    assert asked == [1e-3]


@pytest.mark.parametrize("kind", ["random", "shift", "antisymmetric"])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_gmres_of_matrices(kind: str, size: int) -> None:
    """A shift of the coordinates makes no progress before the last step."""
    A, b = draw(size, size), draw(size, seed=1)
    if kind == "shift":
        A, b = np.roll(np.eye(size), 1, axis=0), np.eye(size)[0]
    elif kind == "antisymmetric":
        A = A - A.T + 1e-2 * np.eye(size)
    v = gmres(lambda v: tn.asarray(A @ v.array), tn.asarray(b), 1e-10)
    np.testing.assert_allclose(A @ v.array, b, atol=1e-9 * np.abs(b).max())


# --- parameters by closure -----------------------------------------------------------------------


class Layer(nn.Module):
    """z = tanh(W z + U x + b), a deep-equilibrium layer."""

    def __init__(self, size: int, solve: str = "gmres") -> None:
        self.w, self.u = nn.Linear(size, size, bias=False), nn.Linear(size, size)
        self.w.weight.array = self.w.weight.array * 0.4
        self.solution = tn.custom_fixed_point(self.step, self.iterate, solve=solve)

    def step(self, z: Any, x: Any) -> tn.Variable:
        return functions.tanh(self.w(z) + self.u(x))

    def iterate(self, x: tn.Variable) -> tn.Variable:
        z = x * 0
        for _ in range(200):
            z, before = self.step(z, x), z
            if np.abs(z.array - before.array).max() < 1e-13:
                break
        return z

    def forward(self, x: Any) -> tn.Variable:
        return self.solution(x)


def derivatives(layer: Any, x: tn.Variable, weights: list[tn.Variable]) -> list[Any]:
    """The value, the gradients, and the gradients of a number made of the gradients."""
    y = layer(x)
    first = tn.grad([functions.sum(y**3)], [x, *weights], enable_double_backprop=True)
    number = functions.sum(first[0] ** 2) + functions.sum(first[1] ** 2)
    second = tn.grad([number], [x, *weights])
    return [v.array for v in (y, *first, *second)]


@pytest.fixture
def layer() -> Layer:
    tn.seed(0)
    with tn.using_config("dtype", "float64"):
        return Layer(3)


@pytest.mark.parametrize("solve", ["dense", "gmres"])
@pytest.mark.parametrize("compiled", [False, True])
def test_weights_of_a_module_to_second_order(layer: Layer, solve: str, compiled: bool) -> None:
    layer.solution = tn.custom_fixed_point(layer.step, layer.iterate, solve=solve)
    x, weights = variable(2, 3), layer.parameters()
    f = tn.compile(layer.solution) if compiled else layer.solution
    for _ in range(2):
        expected = derivatives(layer.iterate, x, weights)
        for a, b in zip(derivatives(f, x, weights), expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        for weight in weights:  # a net reads them anew
            weight.array = weight.array * 0.9


def test_backward_uses_the_values_of_forward(layer: Layer) -> None:
    x = variable(2, 3)
    y = layer(x)
    (expected,) = tn.grad([functions.sum(layer(x))], [layer.w.weight])
    layer.w.weight.array = layer.w.weight.array * 0.5
    (found,) = tn.grad([functions.sum(y)], [layer.w.weight])
    np.testing.assert_allclose(found.array, expected.array)


def test_a_captured_variable_that_was_computed() -> None:
    w, x = variable(2), variable(2, seed=1)

    def layer(unrolled: bool) -> tn.Variable:
        scale = functions.sigmoid(w) * 0.5

        def step(z: Any, x: Any) -> tn.Variable:
            return functions.sin(scale * z) + x

        def iterate(x: tn.Variable) -> tn.Variable:
            z = x
            for _ in range(80):
                z = step(z, x)
            return z

        return iterate(x) if unrolled else tn.custom_fixed_point(step, iterate)(x)

    for f in (lambda _: layer(False), tn.compile(lambda _: layer(False))):
        expected = derivatives(lambda _: layer(True), x, [w])
        for a, b in zip(derivatives(f, x, [w]), expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
    assert w.creator is None and w.grad is None


def test_a_deep_equilibrium_layer_is_trained(layer: Layer) -> None:
    x, target = draw(8, 3), 0.5 * np.tanh(draw(8, 3, seed=1))
    optimizer, losses = nn.Adam(layer, lr=0.02), []
    for _ in range(20):
        loss = functions.mean_squared_error(layer(x), target)
        layer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    assert losses[-1] < 0.4 * losses[0]


# --- an equation that is a gradient --------------------------------------------------------------


@pytest.mark.parametrize("solve", ["dense", "cg"])
def test_the_gradient_of_the_ridge_penalty(solve: str) -> None:
    X, t = draw(12, 4), draw(12, seed=1)

    def loss(w: Any, log_penalty: Any) -> tn.Variable:
        return functions.sum((functions.matmul(X, w) - t) ** 2) + functions.exp(
            log_penalty
        ) * functions.sum(w * w)

    def optimality(w: Any, log_penalty: Any) -> tn.Variable:
        return tn.value_and_grad(loss, enable_double_backprop=True)(w, log_penalty)[1]

    def solver(log_penalty: tn.Variable) -> Any:
        return np.linalg.solve(X.T @ X + np.exp(log_penalty.array) * np.eye(4), X.T @ t)

    weights = tn.custom_root(optimality, solver, solve=solve)
    check_backward(weights, (np.array(0.3),), draw(4), eps=1e-5)
    check_double_backward(weights, (np.array(0.3),), draw(4), (draw(),), eps=1e-5)


def test_a_gradient_without_a_graph_is_an_error() -> None:
    def optimality(x: Any, theta: Any) -> tn.Variable:
        loss = tn.value_and_grad(lambda x: functions.sum(x**3 / 3 - theta * x), 0, choice)
        return loss(x)[1]

    theta = variable(2) ** 2 + 1.0
    choice: bool | None = None
    (gx,) = tn.grad([functions.sum(tn.custom_root(optimality, square_root)(theta))], [theta])
    assert gx is not None
    np.testing.assert_allclose(gx.array, 0.5 / np.sqrt(theta.array))
    choice = False
    with pytest.raises(ConvergenceError, match="enable_double_backprop=True"):
        functions.sum(tn.custom_root(optimality, square_root)(theta)).backward()


# --- errors --------------------------------------------------------------------------------------


def test_a_result_that_is_no_root_warns() -> None:
    theta = variable(2) ** 2 + 1.0

    def rough(theta: tn.Variable) -> Any:
        return np.sqrt(theta.array) + 0.1

    with pytest.warns(RuntimeWarning, match=r"custom_root\(rough\).*residual is 0\.\d+"):
        tn.custom_root(square, rough)(theta)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tn.custom_root(square, rough, tolerance=0.5)(theta)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_residual_of_nan_is_an_error(value: float) -> None:
    root = tn.custom_root(square, lambda theta: np.array([value]))
    with pytest.raises(ConvergenceError, match="diverged"):
        root(tn.Variable(np.array([2.0])))


@pytest.mark.parametrize("solve", SOLVES)
def test_a_singular_jacobian_is_an_error(solve: str) -> None:
    theta = tn.asarray([0.0, 0.0], requires_grad=True)
    x = tn.custom_root(square, square_root, solve=solve)(theta)
    with pytest.raises(ConvergenceError, match="singular Jacobian"):
        functions.sum(x).backward()
    assert theta.grad is None
    with pytest.raises(ConvergenceError, match="singular Jacobian"):
        tn.grad([functions.sum(x)], [theta], enable_double_backprop=True)


def test_a_linear_solver_that_gives_nonsense_is_an_error() -> None:
    theta = variable(2) ** 2 + 1.0
    x = tn.custom_root(square, square_root, solve=lambda matvec, b, tolerance: b)(theta)
    with pytest.raises(ConvergenceError, match=r"\|A\^T u - g\|"):
        functions.sum(x).backward()


def test_conjugate_gradients_refuse_a_negative_matrix() -> None:
    theta = variable(2) ** 2 + 1.0
    x = tn.custom_root(square, lambda theta: -np.sqrt(theta.array), solve="cg")(theta)
    with pytest.raises(ConvergenceError, match="not positive definite"):
        functions.sum(x).backward()


def test_cg_that_does_not_converge_is_an_error() -> None:
    A = np.array([[1.0, 2.0], [-2.0, 1.0]])  # not symmetric

    def f(x: Any, theta: Any) -> tn.Variable:
        return functions.matmul(A, x) - theta

    root = tn.custom_root(f, lambda theta: np.linalg.solve(A, theta.array), solve="cg")
    with pytest.raises(ConvergenceError, match=r"cg: .*did not converge"):
        functions.sum(root(tn.Variable(np.ones(2)))[0]).backward()


@pytest.mark.parametrize(
    ("arguments", "how", "message"),
    [
        ((square, 3), {}, "solver must be a function, got int 3"),
        ((None, square_root), {}, "the equation must be a function"),
        ((square, square_root), {"solve": "lu"}, r"\['cg', 'dense', 'gmres'\]"),
    ],
)
@pytest.mark.parametrize("make", [tn.custom_root, tn.custom_fixed_point])
def test_wrong_arguments(make: Any, arguments: Any, how: Any, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        make(*arguments, **how)


def test_wrong_values_of_the_functions() -> None:
    theta = tn.Variable(np.ones(2))
    with pytest.raises(OperandError, match="must give a floating array"):
        tn.custom_root(square, lambda theta: np.array([1, 1]))(theta)
    with pytest.raises(OperandError, match="must give a Variable"):
        tn.custom_root(lambda x, theta: functions.sum(x), square_root)(theta)
    with pytest.raises(OperandError, match="must give a Variable"):
        tn.custom_fixed_point(lambda x, theta: None, square_root)(theta)


def test_an_exception_leaves_no_state(layer: Layer) -> None:
    class StopError(Exception):
        pass

    def stop(*args: Any) -> Any:
        raise StopError

    weight, calls = layer.w.weight, []

    def stop_later(z: Any, x: Any) -> tn.Variable:
        calls.append(weight.node)
        return layer.step(z, x) if len(calls) == 1 else stop()

    node, array = weight.node, weight.array
    with tn.hooks.TimerHook() as hook:
        with pytest.raises(StopError):
            tn.custom_root(square, stop)(variable(2))
        y = tn.custom_fixed_point(stop_later, layer.iterate)(variable(2, 3))
        with pytest.raises(StopError):
            tn.grad([functions.sum(y)], [weight], enable_double_backprop=True)
        assert list(thread_state.hooks.values()) == [hook]
    assert not thread_state.hooks and tn.config.enable_backprop
    assert calls[1] is not node and weight.node is node and weight.array is array


# --- hooks, debug mode, nets, threads ------------------------------------------------------------


def test_hooks_see_one_function() -> None:
    seen = []

    class Names(tn.FunctionHook):
        name = "names"

        def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
            seen.append(function.label)

    with Names():
        tn.custom_root(square, lambda theta: tn.newton(square, theta, theta))(variable(2) ** 2)
    assert seen == ["PowConstant(2)", "ImplicitRoot"]


def test_debug_mode(layer: Layer) -> None:
    x = variable(2, 3)
    expected = derivatives(layer.iterate, x, layer.parameters())
    with tn.using_config("debug", True):
        for a, b in zip(derivatives(layer, x, layer.parameters()), expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("solve", SOLVES)
def test_a_net_runs_the_solver_anew(solve: str, device: str) -> None:
    root = tn.custom_root(square, square_root, solve=solve)
    compiled = tn.compile(lambda theta: functions.sum(root(theta) * 2.0))
    for seed in range(3):
        t = draw(2, 3, seed=seed) ** 2 + 1
        theta = tn.asarray(t, device=device, requires_grad=True)
        y = compiled(theta)
        (first,) = tn.grad([y], [theta], enable_double_backprop=True)
        (second,) = tn.grad([functions.sum(first)], [theta])
        np.testing.assert_allclose(float(y), 2 * np.sqrt(t).sum())
        np.testing.assert_allclose(first.array, t**-0.5)
        np.testing.assert_allclose(second.array, -0.5 * t**-1.5)
    assert len(compiled.recordings) == 1


@pytest.mark.parametrize("solve", SOLVES)
def test_derivatives_inside_of_a_compiled_function(solve: str) -> None:
    """The linear system of backward is solved in each run, too."""
    root = tn.custom_root(square, square_root, solve=solve)

    def loss(theta: Any) -> Any:
        return functions.sum(root(theta) ** 3)

    def step(theta: Any) -> Any:
        y = loss(theta)
        return tn.grad([y], [theta])[0]

    ways = [tn.compile(f) for f in (tn.gradient(loss), step, tn.jacfwd(root), tn.hessian(loss))]
    for seed in range(2):
        t = draw(3, seed=seed) ** 2 + 1
        wanted = [1.5 * t**0.5, 1.5 * t**0.5, np.diag(0.5 * t**-0.5), np.diag(0.75 * t**-0.5)]
        for f, expected in zip(ways, wanted, strict=True):
            np.testing.assert_allclose(f(tn.Variable(t)).array, expected, atol=1e-9)


def test_a_net_of_an_equation_that_reads_values_is_refused() -> None:
    def optimality(x: Any, theta: Any) -> tn.Variable:
        return x * x - theta if float(functions.sum(theta)) > 0 else x

    theta = tn.Variable(np.ones(2))
    tn.custom_root(optimality, square_root)(theta)
    with pytest.raises(TraceError, match="float"):
        tn.compile(tn.custom_root(optimality, square_root))(theta)


def test_threads(layer: Layer) -> None:
    x, weights = variable(2, 3), layer.parameters()
    expected = derivatives(layer, x, weights)
    found: list[Any] = []

    def work() -> None:
        own = Layer(3)
        own.load_state_dict(layer.state_dict())
        for _ in range(3):
            found.append(derivatives(own, tn.Variable(x.array), own.parameters()))

    with tn.using_config("dtype", "float64"):
        tn.global_config.dtype = "float64"
        try:
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            del tn.global_config.dtype
    assert len(found) == 12
    for one in found:
        for a, b in zip(one, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


# --- Newton's method -----------------------------------------------------------------------------


def test_newton() -> None:
    x = tn.newton(square, [1.0, -1.0], np.array([4.0, 9.0], dtype="float32"))
    np.testing.assert_allclose(x.array, [2.0, -3.0])
    assert x.creator is None and not x.requires_grad
    with pytest.raises(ConvergenceError, match="newton: the matrix of 1 rows is singular"):
        tn.newton(square, 0.0, 4.0)
    with pytest.raises(ConvergenceError, match="2 steps did not converge"):
        tn.newton(square, 100.0, 4.0, steps=2)


def cosine(x: Any, theta: Any) -> tn.Variable:
    return functions.cos(x) * theta


def test_fixed_point() -> None:
    theta = tn.Variable(np.array([1.0, 0.5]))
    x = tn.fixed_point(cosine, 0.0, theta)
    np.testing.assert_allclose(x.array, np.cos(x.array) * theta.array, rtol=1e-11)
    assert x.creator is None and not x.requires_grad
    assert tn.fixed_point(cosine, 0.0, np.ones(2, dtype="float32")).dtype == np.float32
    assert tn.fixed_point(cosine, np.ones((0, 2)), 1.0).shape == (0, 2)
    with pytest.raises(ConvergenceError, match=r"fixed_point: 5 steps did not .*tn\.newton"):
        tn.fixed_point(cosine, 0.0, theta, steps=5)
    with pytest.raises(OperandError, match="fixed_point: the first guess is"):
        tn.fixed_point(lambda x: functions.sum(x), np.ones(2))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_layer_with_fixed_point_compiled(device: str, mapped: bool) -> None:
    """To second order, beside the formula x' = cos(x) / (1 + theta sin(x))."""

    def solver(theta: tn.Variable) -> tn.Variable:
        return tn.fixed_point(cosine, 0.5, theta)

    root = tn.custom_fixed_point(cosine, solver)
    slope = tn.gradient(lambda theta: functions.sum(root(theta)))
    curve = tn.gradient(lambda theta: functions.sum(slope(theta)))
    ways = [tn.compile(tn.vmap(f) if mapped else f) for f in (root, slope, curve)]
    for seed in range(3):
        t = np.random.default_rng(seed).uniform(0.2, 0.8, size=(2, 3))
        theta = tn.asarray(t, device=device, requires_grad=True)
        x, dx, ddx = [tn.to_host(f(theta)) for f in ways]
        scale = 1 + t * np.sin(x)
        first = np.cos(x) / scale
        second = -(2 * np.sin(x) * first + t * np.cos(x) * first**2) / scale
        np.testing.assert_allclose(x, t * np.cos(x), rtol=1e-10)
        np.testing.assert_allclose(dx, first, rtol=1e-9)
        np.testing.assert_allclose(ddx, second, rtol=1e-8)
    (recording,) = ways[0].recordings
    types = {operator.type for operator in recording.trace.net.flattened()}
    assert "fixed_point" in types and "solver_call" not in types


@pytest.mark.parametrize("double", [False, True])
def test_captured_variables_that_depend_on_each_other_count_once(double: bool) -> None:
    w = tn.Variable(np.array([2.0, 3.0]))
    b = w * 2.0
    a = tn.functions.tanh(b * 0.1)
    root = tn.custom_root(lambda x: x - a * b * w, lambda: (a * b * w).array)
    sums = [tn.functions.sum(y) for y in (root(), a * b * w)]
    found, right = (tn.grad([y], [w], enable_double_backprop=double)[0].array for y in sums)
    np.testing.assert_allclose(found, right)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("loop", [tn.newton, tn.fixed_point])
@pytest.mark.parametrize(
    ("steps", "tolerance", "t", "message"),
    [
        (9, float("nan"), 0.5, "tolerance is NaN"),
        (9, None, 0.5, "tolerance must be a number, got NoneType None"),
        (0, 0.1, 0.5, "steps must be from 1 to 1000000, got 0"),
        (2.5, 0.1, 0.5, "steps must be an integer, got float 2.5"),
        (10**7, 0.1, 0.5, "steps must be from 1 to 1000000, got 10000000"),
        (9, 0.1, 0.5j, "the equation must give floating numbers"),
    ],
)
def test_settings_of_loops_are_checked_in_eager_code_too(
    loop: Any, compiled: bool, steps: Any, tolerance: Any, t: Any, message: str
) -> None:
    def find(t: Any) -> Any:
        return loop(lambda x, t: 0.5 * x * x + t, 1.0, t, steps=steps, tolerance=tolerance)

    f = tn.compile(find) if compiled else find
    with pytest.raises(OperandError, match=message):
        f(tn.asarray(np.array([t])))

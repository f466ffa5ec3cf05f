"""The gradient checks: what is right passes, what is wrong does not, nothing is left changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.errors import GraphError, InvalidType, NondifferentiableError
from tinynode.gradient_check import check_backward, check_double_backward, numerical_grad
from tinynode.type_check import expect

Arrays = tuple[Any, ...]
F64 = np.float64


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


# --- numerical_grad ------------------------------------------------------------------------------


def test_numerical_grad_of_several_inputs_and_outputs() -> None:
    x, y = draw(2, 3), draw(3, seed=1)
    gz, gw = draw(2, 3, seed=2), np.array(2.0)
    gx, gy = numerical_grad(lambda: (x * y, (y**3).sum()), (x, y), (gz, gw), eps=1e-5)
    np.testing.assert_allclose(gx, gz * y, rtol=1e-8)
    np.testing.assert_allclose(gy, (gz * x).sum(0) + 2.0 * 3 * y**2, rtol=1e-8)


def test_numerical_grad_is_a_central_difference() -> None:
    x = np.array([2.0])
    (gx,) = numerical_grad(lambda: (x**3,), (x,), (np.ones(1),), eps=0.5)
    assert gx == pytest.approx(3 * 2.0**2 + 0.5**2)  # the error term of x^3 is eps^2 exactly


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numerical_grad_has_the_inputs_dtype_and_shape(dtype: str) -> None:
    x = np.array(0.5, dtype)
    (gx,) = numerical_grad(lambda: np.exp(x), (x,), (np.ones((), dtype),), eps=1e-2)
    assert type(gx) is np.ndarray and gx.dtype == dtype and gx.shape == ()
    assert gx == pytest.approx(np.exp(0.5), rel=1e-4)


def test_numerical_grad_divides_by_the_step_that_the_dtype_makes() -> None:
    """1000 + 1e-3 is rounded in float32: the step is 6e-5 off, in relative terms 3 %."""
    x = np.array([1000.0], np.float32)
    (gx,) = numerical_grad(lambda: (x.astype(F64),), (x,), (np.ones(1),), eps=1e-3)
    assert gx == 1.0


def test_numerical_grad_works_in_place_and_puts_back() -> None:
    x = draw(2, 2)
    before, seen = x.copy(), []

    def f() -> Any:
        seen.append(x.copy())
        return x

    numerical_grad(f, (x,), (np.ones((2, 2)),), eps=0.25)
    assert len(seen) == 8
    for number, moved in enumerate(seen):
        change = np.zeros(4)
        change[number // 2] = 0.25 if number % 2 else -0.25
        np.testing.assert_allclose((moved - before).ravel(), change)
    np.testing.assert_array_equal(x, before)


def test_numerical_grad_puts_back_after_an_error() -> None:
    x = draw(3)
    before = x.copy()

    def f() -> Any:
        if x[1] != before[1]:
            raise ZeroDivisionError
        return x

    with pytest.raises(ZeroDivisionError):
        numerical_grad(f, (x,), (np.ones(3),))
    np.testing.assert_array_equal(x, before)
    assert tn.config.type_check and tn.config.enable_backprop


def test_numerical_grad_of_non_contiguous_and_empty_arrays() -> None:
    base = draw(4, 4)
    x, empty = base[::2, 1::2].T, np.zeros((0, 2))
    gx, g_empty = numerical_grad(lambda: (x * x, empty), (x, empty), (np.ones((2, 2)), empty))
    np.testing.assert_allclose(gx, 2 * x, rtol=1e-8)
    assert g_empty.shape == (0, 2)


def test_numerical_grad_skips_none() -> None:
    x = draw(2)
    (gx,) = numerical_grad(lambda: (x * 2, None, x * 3), (x,), (None, None, np.ones(2)))
    np.testing.assert_allclose(gx, [3.0, 3.0])
    (gx,) = numerical_grad(lambda: (x * 2, np.array([1, 2])), (x,), (np.ones(2), None))
    np.testing.assert_allclose(gx, [2.0, 2.0])


def test_numerical_grad_of_variables() -> None:
    x = tn.Variable(draw(3))
    (gx,) = numerical_grad(lambda: functions.sin(x), (x,), (np.ones(3),), eps=1e-5)
    np.testing.assert_allclose(gx, np.cos(x.array), rtol=1e-8)


def test_numerical_grad_on_another_backend() -> None:
    host = tn.get_device("strict:device1").from_host
    x, gy = host(draw(2, 2)), host(np.ones((2, 2)))
    before = tn.to_host(x).copy()
    (gx,) = numerical_grad(lambda: (array_api_strict.exp(x),), (x,), (gy,), eps=1e-5)
    assert type(gx) is type(x) and gx.device == x.device
    np.testing.assert_allclose(tn.to_host(gx), np.exp(before), rtol=1e-8)
    np.testing.assert_array_equal(tn.to_host(x), before)


def test_numerical_grad_runs_without_type_checks_and_graph() -> None:
    class Picky(tn.FunctionNode):
        def check_type_forward(self, in_types: Any) -> None:
            expect(in_types[0].ndim == 7)

        def forward(self, inputs: Arrays) -> Arrays:
            return inputs

    x, creators = draw(2), []

    def f() -> Any:
        (y,) = Picky().apply((tn.Variable(x),))
        creators.append(y.creator_node)
        return y

    with pytest.raises(InvalidType):
        f()
    (gx,) = numerical_grad(f, (x,), (np.ones(2),))
    np.testing.assert_allclose(gx, [1.0, 1.0])
    assert creators == [None] * 4


@pytest.mark.parametrize("array", [np.arange(3), np.ones(2, bool), np.ones(2, complex)])
def test_numerical_grad_wants_floating_inputs(array: Any) -> None:
    good = draw(2)
    with pytest.raises(RuntimeError, match=r"inputs\[1\] is ndarray .*only floating"):
        numerical_grad(lambda: good, (good, array), (np.ones(2),))


def test_numerical_grad_wants_arrays_that_it_can_write_to() -> None:
    x, calls = draw(2), []
    x.flags.writeable = False
    with pytest.raises(ValueError, match=r"inputs\[0\] .*cannot be written to.*check_backward"):
        numerical_grad(lambda: calls.append(1), (x,), (np.ones(2),))
    assert not calls


@pytest.mark.parametrize("eps", [0.0, -1e-3, float("nan"), float("inf")])
def test_numerical_grad_wants_a_positive_eps(eps: float) -> None:
    x = draw(2)
    with pytest.raises(ValueError, match="eps must be a positive number"):
        numerical_grad(lambda: x, (x,), (np.ones(2),), eps=eps)


def test_numerical_grad_says_when_eps_vanishes() -> None:
    x = np.array([1.0, 1e6], np.float32)
    with pytest.raises(ValueError, match=r"eps=0.001 vanishes beside inputs\[0\]\[1\] = 1000000"):
        numerical_grad(lambda: x, (x,), (np.ones(2),), eps=1e-3)
    assert x.tolist() == [1.0, 1e6]


def test_numerical_grad_compares_outputs_with_their_gradients() -> None:
    x = draw(2)
    with pytest.raises(ValueError, match="f gives 2 outputs, grad_outputs has 1"):
        numerical_grad(lambda: (x, x), (x,), (np.ones(2),))
    with pytest.raises(ValueError, match=r"grad_outputs\[0\] has shape \(3,\), the output has"):
        numerical_grad(lambda: x, (x,), (np.ones(3),))


def test_numerical_grad_of_infinite_values_is_nan() -> None:
    x = np.array([np.inf, 1.0])
    (gx,) = numerical_grad(lambda: x, (x,), (np.ones(2),))
    assert np.isnan(gx[0]) and x[0] == np.inf


KINKS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "abs at 0": (np.abs, 0.0),
    "abs beside 0": (np.abs, 3e-4),
    "relu": (lambda x: np.maximum(x, 0.0), -2e-4),
    "a small kink on a slope": (lambda x: 5 * x + 0.5 * np.abs(x), 0.0),
    "a jump": (np.sign, 0.0),
    "floor": (np.floor, 2.0001),
    "nan on one side": (lambda x: np.where(x < 0, np.nan, x), 0.0),
    "infinite at one point": (lambda x: np.where(x == 0, np.inf, x), 0.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_point_without_derivative_is_found(name: str) -> None:
    function, value = KINKS[name]
    x = np.array([1.5, value])

    def f() -> Any:
        return np.ones(2), function(x)

    gys = (None, np.ones(2))
    with pytest.raises(NondifferentiableError, match=r"output 1 .*in inputs\[0\]\[1\]"):
        numerical_grad(f, (x,), gys, detect_nondifferentiable=True)
    assert x.tolist() == [1.5, value]
    numerical_grad(f, (x,), gys)  # without detection, a number of some kind


SMOOTH: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "constant": (lambda x: np.ones_like(x), [0.0, 1.0]),
    "linear": (lambda x: 3.0 * x + 1e6, [0.0, 1.0, -1e3]),
    "square": (lambda x: x * x, [0.0, 1.0]),
    "exp": (np.exp, [-3.0, 0.0, 3.0]),
    "tanh": (np.tanh, [-1.0, 0.0, 20.0]),
    "abs": (np.abs, [0.01, -0.01]),
    "always nan": (lambda x: x * np.nan, [1.0]),
    "always infinite": (lambda x: x + np.inf, [1.0]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_function_is_not_blamed(name: str, dtype: str) -> None:
    function, values = SMOOTH[name]
    x = np.array(values, dtype)
    gy = np.ones(len(values), dtype)
    detected = numerical_grad(lambda: function(x), (x,), (gy,), detect_nondifferentiable=True)
    plain = numerical_grad(lambda: function(x), (x,), (gy,))
    np.testing.assert_array_equal(detected, plain)


def test_what_counts_as_a_kink_can_be_set() -> None:
    x = np.array([0.0])

    def cube() -> Any:
        return x**3

    with pytest.raises(NondifferentiableError):
        numerical_grad(cube, (x,), (np.ones(1),), detect_nondifferentiable=True)
    for tolerance in ({"diff_rtol": 0.2}, {"diff_atol": 1e-9}):
        numerical_grad(cube, (x,), (np.ones(1),), detect_nondifferentiable=True, **tolerance)


def test_center_outputs_save_a_call() -> None:
    x, calls = np.array([0.5]), []

    def f() -> Any:
        calls.append(x[0])
        return x * x

    gy = (np.ones(1),)
    numerical_grad(f, (x,), gy, 0.1, detect_nondifferentiable=True)
    assert sorted(calls) == pytest.approx([0.4, 0.45, 0.5, 0.55, 0.6])
    calls.clear()
    numerical_grad(f, (x,), gy, 0.1, detect_nondifferentiable=True, center_outputs=(x * x,))
    assert sorted(calls) == pytest.approx([0.4, 0.45, 0.55, 0.6])
    with pytest.raises(NondifferentiableError):  # it is used
        numerical_grad(f, (x,), gy, 0.1, detect_nondifferentiable=True, center_outputs=(x * 9,))


# --- functions that are right, and wrong in one way each -----------------------------------------


class Cube(tn.FunctionNode):
    """y = x^3; the factor of its gradient can be chosen."""

    def __init__(self, factor: float = 3.0) -> None:
        self.factor = factor

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (self.factor * x * x * grad_outputs[0],)


class OneElementWrong(Cube):
    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (gx,) = super().backward(target_input_indexes, grad_outputs)
        wrong = np.ones(gx.shape)
        wrong.flat[0] = 1.1
        return (gx * wrong,)


class NoBackward(Cube):
    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (None,)


class Detached(Cube):
    """The right gradient, made of an array."""

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (3.0 * tn.Variable(x.array * x.array) * grad_outputs[0],)


class DetachedFromGy(Cube):
    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (3.0 * x * x * grad_outputs[0].detach(),)


class WithGrad(Cube):
    """With a node of its own for the gradient, whose gradients can be scaled."""

    def __init__(self, x_factor: float = 1.0, gy_factor: float = 1.0) -> None:
        self.x_factor = x_factor
        self.gy_factor = gy_factor

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return CubeGrad(self.x_factor, self.gy_factor).apply((x, grad_outputs[0]))


class CubeGrad(tn.FunctionNode):
    def __init__(self, x_factor: float, gy_factor: float) -> None:
        self.x_factor = x_factor
        self.gy_factor = gy_factor

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        return (3 * inputs[0] ** 2 * inputs[1],)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        x, gy = self.get_retained_inputs()
        (ggx,) = grad_outputs
        return self.x_factor * 6.0 * x * gy * ggx, self.gy_factor * 3.0 * x * x * ggx


def applying(node: type[tn.FunctionNode], *args: Any) -> Callable[..., Any]:
    def apply(*xs: tn.Variable) -> tn.Variable:
        return node(*args).apply(xs)[0]

    return apply


# --- check_backward ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (0,), (2, 0), (1000,)])
def test_a_right_gradient_passes(shape: tuple[int, ...]) -> None:
    x, gy = draw(*shape), draw(*shape, seed=1)
    check_backward(applying(Cube), x, gy, eps=1e-5, atol=1e-8, rtol=1e-6)
    check_backward(applying(Cube), x, gy)


def test_the_docstring_is_right() -> None:
    class Square(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            return (inputs[0] * inputs[0],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (x,) = self.get_retained_inputs()
            return (2.0 * x * grad_outputs[0],)

    def square(x: Any) -> Any:
        return Square().apply((x,))[0]

    x, gy, ggx = np.random.default_rng(0).normal(size=(3, 4))
    check_backward(square, x, gy, eps=1e-5)
    check_double_backward(square, x, gy, ggx, eps=1e-5)


@pytest.mark.parametrize("factor", [-3.0, 0.0, 2.9, 3.01])
def test_a_wrong_factor_fails(factor: float) -> None:
    with pytest.raises(AssertionError):
        check_backward(applying(Cube, factor), draw(3, 4), draw(3, 4, seed=1))


def test_one_wrong_element_of_a_thousand_fails() -> None:
    """No component of the direction is close to zero, so none hides."""
    with pytest.raises(AssertionError):
        check_backward(applying(OneElementWrong), np.ones(1000), np.ones(1000))


class FixedDirection:
    """Stands in for a random generator: every direction is (0, 1, 1, ...)."""

    def normal(self, size: Any) -> Any:
        direction = np.ones(size)
        direction.flat[0] = 0.0
        return direction


def test_no_component_of_the_direction_is_close_to_zero() -> None:
    rng: Any = FixedDirection()
    check_backward(applying(Cube), np.ones(10), np.ones(10), rng=rng)
    with pytest.raises(AssertionError):
        check_backward(applying(OneElementWrong), np.ones(10), np.ones(10), rng=rng)


def test_the_inputs_are_moved_by_eps_together() -> None:
    seen = []

    def f(x: tn.Variable) -> tn.Variable:
        seen.append(x.array.copy())
        return functions.sin(x)

    check_backward(f, draw(1000), draw(1000), eps=1e-2)
    start, low, high = seen
    assert 1e-2 <= np.linalg.norm(high - start) <= 1.01e-2
    np.testing.assert_allclose(high - start, start - low, atol=1e-12)


def test_a_backward_that_was_not_written_fails() -> None:
    with pytest.raises(
        AssertionError, match=r"x_data\[0\], .* backward 0 \(None, counted as zero"
    ):
        check_backward(applying(NoBackward), draw(3), draw(3, seed=1))
    check_backward(lambda x: functions.sign(x), np.array([1.0, -2.0]), np.ones(2))  # constant
    check_backward(lambda x: tn.Variable(np.ones(2)), np.array([1.0, -2.0]), np.ones(2))


def test_a_missing_sum_to_fails() -> None:
    class Scale(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs((0, 1))
            return (inputs[0] * inputs[1],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            x, y = self.get_retained_inputs()
            return grad_outputs[0] * y, (grad_outputs[0] * x)[:1]

    check_backward(applying(Scale), (draw(1, 3), draw(1, 3, seed=1)), draw(1, 3, seed=2))
    with pytest.raises(AssertionError) as info:
        check_backward(applying(Scale), (draw(2, 3), draw(1, 3, seed=1)), draw(2, 3, seed=2))
    by_input = re.findall(r"(x_data\[\d\]).*: backward (\S+), difference (\S+)", str(info.value))
    (name0, backward0, numerical0), (name1, backward1, numerical1) = by_input
    assert (name0, name1) == ("x_data[0]", "x_data[1]")
    assert float(backward0) == pytest.approx(float(numerical0), rel=1e-4)
    assert float(backward1) != pytest.approx(float(numerical1), rel=0.01)


def test_the_message_says_what_and_what_next() -> None:
    def my_cube(x: tn.Variable) -> tn.Variable:
        return Cube(6.0).apply((x,))[0]

    x, gy = np.array([2.0], np.float32), np.array([1.0], np.float32)
    with pytest.raises(AssertionError) as info:
        check_backward(my_cube, x, gy, eps=1e-2)
    message = str(info.value)
    assert message.startswith("check_backward: my_cube (output of Cube) has a wrong gradient")
    slopes = re.search(r"slope is (\S+) by backward, and (\S+) by a central", message)
    assert slopes is not None
    assert float(slopes[1]) == pytest.approx(2 * float(slopes[2]), rel=1e-3)
    for part in ("eps=0.01", "atol=1e-05", "rtol=0.0001", "x_data[0], (1,) float32"):
        assert part in message
    assert "Try dtype=numpy.float64" in message and "detect_nondifferentiable=True" in message
    with pytest.raises(AssertionError) as info:
        check_backward(my_cube, x.astype(F64), gy.astype(F64))
    assert "Try dtype" not in str(info.value) and "None" not in str(info.value)


def test_the_direction_is_the_same_each_time_unless_given() -> None:
    def message(**options: Any) -> str:
        with pytest.raises(AssertionError) as info:
            check_backward(applying(Cube, 1.0), draw(4), np.ones(4), **options)
        return str(info.value)

    state = np.random.get_state()[1].tolist()
    assert message() == message()
    assert message(rng=np.random.default_rng(7)) == message(rng=np.random.default_rng(7))
    assert message(rng=np.random.default_rng(7)) != message()
    assert np.random.get_state()[1].tolist() == state


def test_y_grad_may_be_none_for_one_scalar_output() -> None:
    def total(x: tn.Variable) -> tn.Variable:
        return functions.sum(functions.sin(x))

    check_backward(total, draw(3), None)
    with pytest.raises(AssertionError):
        check_backward(lambda x: functions.sum(Cube(1.0).apply((x,))[0]), draw(3), None)
    for function in (functions.sin, lambda x: (total(x), total(x))):
        with pytest.raises(ValueError, match=r"y_grad=None is for one output of shape \(\)"):
            check_backward(function, draw(1), None)


def test_y_grad_has_to_fit() -> None:
    x = draw(2, 3)
    for y_grad, problem in (
        (np.ones((3, 2)), r"y_grad\[0\] has shape \(3, 2\), the output has \(2, 3\)"),
        (np.ones(()), r"has shape \(\)"),
        (np.ones((2, 3), np.float32), "is float32 on numpy, the output is float64"),
        (np.ones((2, 3), np.int64), "is int64"),
        (tn.get_device("strict").from_host(np.ones((2, 3))), "on strict:CPU_DEVICE"),
        ((np.ones((2, 3)),) * 2, "y_grad has 2 entries, func gives 1 outputs"),
        ((None,), "every entry of y_grad is None"),
    ):
        with pytest.raises(ValueError, match=problem):
            check_backward(functions.sin, x, y_grad)
    with pytest.raises(TypeError, match=r"y_grad\[0\] must be an array"):
        check_backward(functions.sin, x, (1.0,))


def test_several_outputs_and_none_among_their_gradients() -> None:
    class Both(tn.FunctionNode):
        """y = (x, x^3), with a gradient that is wrong for x^3 only."""

        def forward(self, inputs: Arrays) -> Arrays:
            return (inputs[0].copy(), inputs[0] ** 3)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return (sum((gy for gy in grad_outputs if gy is not None), start=0.0),)

    def both(x: tn.Variable) -> tuple[tn.Variable, ...]:
        return Both().apply((x,))

    x, gy = draw(3), draw(3, seed=1)
    check_backward(both, x, (gy, None))
    for y_grad in ((None, gy), (gy, gy), [gy, gy]):
        with pytest.raises(AssertionError):
            check_backward(both, x, y_grad)


def test_an_output_may_be_an_input_or_stand_twice() -> None:
    x, y, g = draw(3), draw(3, seed=1), draw(3, seed=2)
    check_backward(lambda x: x, x, g)
    check_backward(lambda x, y: (x, x * y, x), (x, y), (g, g, 2 * g))
    h = tn.Variable(draw(3))
    check_backward(lambda x: (h, x * x), x, (g, g))
    assert h.grad is None


def test_integer_outputs_take_no_gradient() -> None:
    def f(x: tn.Variable) -> Any:
        return functions.sin(x), functions.astype(x, "int64")

    check_backward(f, draw(3), (np.ones(3), None))
    with pytest.raises(ValueError, match=r"y_grad\[1\] must be None: the output is int64"):
        check_backward(f, draw(3), (np.ones(3), np.ones(3, np.int64)))


def test_integer_inputs_get_no_gradient() -> None:
    x, n = draw(3), np.array([1, 2, 3])
    check_backward(lambda x, n: x * functions.astype(n, "float64"), (x, n), np.ones(3))
    check_backward(lambda n, x: x * n, (n, x), np.ones(3), no_grads=[True, False], dtype=F64)
    with pytest.raises(RuntimeError, match=r"x_data\[1\] is ndarray .* no_grads must be True"):
        check_backward(lambda x, n: x * n, (x, n), np.ones(3), no_grads=[False, False])
    with pytest.raises(ValueError, match="there is nothing to check"):
        check_backward(lambda n: functions.astype(n, "float64"), n, np.ones(3))

    def meddling(x: tn.Variable, n: tn.Variable) -> tn.Variable:
        n.grad = np.ones(3, np.int64)
        return x * n

    with pytest.raises(RuntimeError, match="gradient of int variable must be None"):
        check_backward(meddling, (x, n), np.ones(3))


def test_no_grads() -> None:
    class First(tn.FunctionNode):
        """x * y, with a gradient for x only."""

        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs((1,))
            return (inputs[0] * inputs[1],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (y,) = self.get_retained_inputs()
            return grad_outputs[0] * y, None

    xs, gy = (draw(3), draw(3, seed=1)), draw(3, seed=2)
    check_backward(applying(First), xs, gy, no_grads=(False, True))
    with pytest.raises(AssertionError):
        check_backward(applying(First), xs, gy)
    with pytest.raises(RuntimeError, match=r"no_grads variable must be None, x_data\[0\]"):
        check_backward(applying(First), xs, gy, no_grads=(True, True))
    with pytest.raises(ValueError, match="no_grads has 1 entries, x_data has 2"):
        check_backward(applying(First), xs, gy, no_grads=(True,))


def test_params_are_checked_and_left_as_they_were() -> None:
    w, b = tn.Variable(draw(3, 4)), tn.Variable(draw(4, seed=1))
    other = tn.Variable(draw(4, seed=5))
    loss = functions.sum(w * w)
    grad, w_array, node = np.ones((3, 4)), w.array, w.node
    w.grad, other.grad = grad, np.ones(4)
    before = w_array.copy()

    def affine(x: tn.Variable) -> tn.Variable:
        return (functions.matmul(x, w) + b) * other

    x, gy = draw(2, 3, seed=2), draw(2, 4, seed=3)
    check_backward(affine, x, gy, (w, b))
    check_backward(affine, x, gy, (w, b), dtype=np.float32, eps=1e-2, atol=1e-2)
    check_backward(affine, x, gy, w)
    check_double_backward(affine, x, gy, draw(2, 3, seed=4), (w, b), (grad, None))
    with pytest.raises(AssertionError, match=r"params\[0\], \(3, 4\) float64: backward"):
        check_backward(lambda x: Cube(1.0).apply((w,))[0] * 2.0, x, draw(3, 4), (w, b))
    assert w.array is w_array and w.grad is grad and w.node is node and b.grad is None
    assert (w_array == before).all()
    assert other.grad is not None and other.grad.tolist() == [1.0] * 4
    w.cleargrad()
    loss.backward()
    np.testing.assert_allclose(w.grad, 2 * before)


def test_an_old_gradient_of_a_param_does_not_count() -> None:
    w = tn.Variable(draw(3))
    w.grad = np.full(3, 100.0)
    check_backward(functions.sin, draw(3), np.ones(3), w)


def test_params_are_put_back_after_an_error() -> None:
    w = tn.Variable(draw(3))
    array, calls = w.array, []

    def failing(x: tn.Variable) -> tn.Variable:
        calls.append(w.array)
        if len(calls) > 1:
            raise ZeroDivisionError
        return x * w

    w.grad = grad = np.ones(3)
    with pytest.raises(ZeroDivisionError):
        check_backward(failing, draw(3), np.ones(3), (w,))
    assert calls[1] is not array and w.array is array and w.grad is grad
    assert tn.config.type_check and tn.config.enable_backprop


def test_params_have_to_be_variables_that_require_a_gradient() -> None:
    with pytest.raises(TypeError, match=r"params\[1\] must be a Variable, got ndarray"):
        check_backward(functions.sin, draw(3), np.ones(3), (tn.Variable(draw(2)), draw(2)))
    fixed = tn.Variable(draw(2), requires_grad=False)
    with pytest.raises(ValueError, match=r"params\[0\] \(\(2,\), float64\) requires no gradient"):
        check_backward(functions.sin, draw(3), np.ones(3), fixed)


def test_params_alone_can_be_checked() -> None:
    w, n = tn.Variable(draw(3)), np.array([1, 2, 3])
    check_backward(lambda n: functions.sin(w) * n, n, np.ones(3), w)
    with pytest.raises(AssertionError):
        check_backward(lambda n: Cube(1.0).apply((w,))[0] * n, n, np.ones(3), w)


def test_forget_gives_its_parameters_gradients_too() -> None:
    w = tn.Variable(draw(3))
    check_backward(lambda x: tn.forget(lambda x: functions.sin(x) * w, x), draw(3), draw(3), w)


def test_dtype_of_the_differences() -> None:
    seen = []

    def f(x: tn.Variable, n: tn.Variable) -> tn.Variable:
        seen.append((str(x.dtype), str(n.dtype), str(w.dtype)))
        return functions.sin(x) * functions.astype(n, x.dtype) * w

    w = tn.Variable(np.ones(5, np.float32))
    x, n, gy = draw(5).astype(np.float32), np.arange(5), np.ones(5, np.float32)
    strict: Any = array_api_strict.float64
    for dtype in (np.float64, "float64", np.dtype("f8"), strict):
        seen.clear()
        check_backward(f, (x, n), gy, (w,), eps=1e-5, atol=1e-6, rtol=1e-5, dtype=dtype)
        assert set(seen[1:]) == {("float64", "int64", "float64")}
        assert seen[0] == ("float32", "int64", "float32")
    assert w.dtype == np.float32
    with pytest.raises(AssertionError, match="Try dtype"):
        check_backward(f, (x, n), gy, (w,), eps=1e-5, atol=1e-6, rtol=1e-5)
    for wrong in (np.int64, "bool", complex):
        with pytest.raises(ValueError, match="dtype must be a floating dtype"):
            check_backward(f, (x, n), gy, dtype=wrong)


def test_a_kink_is_found() -> None:
    x, gy = np.array([1.0, 0.0]), np.ones(2)
    with pytest.raises(NondifferentiableError, match=r"check_backward: relu .* not diff"):
        check_backward(functions.relu, x, gy, detect_nondifferentiable=True)
    with pytest.raises(NondifferentiableError, match="check_double_backward: the second-order"):
        check_double_backward(
            lambda x: functions.abs(x) * x, x, gy, gy, detect_nondifferentiable=True
        )
    for detect in (False, True):
        check_backward(functions.relu, x + 0.5, gy, detect_nondifferentiable=detect)


def test_the_checks_work_on_another_backend() -> None:
    for device in ("strict", "strict:device1"):
        host = tn.get_device(device).from_host
        x, y, gy = host(draw(3)), host(draw(2, 3)), host(draw(2, 3))
        check_backward(functions.multiply, (x, y), gy)
        check_backward(functions.multiply, (x, y), gy, dtype=F64)
        check_double_backward(functions.multiply, (x, y), gy, (x, y))
        with pytest.raises(AssertionError):
            check_backward(applying(Cube, 1.0), x, host(draw(3)))


@pytest.mark.parametrize("device", ["strict", "strict:device1"])
def test_arrays_of_numpy_go_to_the_current_device(device: str) -> None:
    seen: set[str] = set()

    def product(x: tn.Variable, y: tn.Variable) -> Any:
        seen.update((str(x.device), str(y.device)))
        return x * y

    x, y, gy = draw(3), draw(2, 3), draw(2, 3)
    with tn.using_device(device):
        check_backward(product, (x, y), gy)
        check_backward(functions.sin, F64(0.5), F64(2.0))
        check_double_backward(product, (x, y), gy, (x, y))
        with pytest.raises(AssertionError):
            check_backward(applying(Cube, 1.0), x, draw(3))
        with pytest.raises(ValueError, match=r"y_grad\[0\] is float32 on strict"):
            check_backward(product, (x, y), gy.astype(np.float32))
        assert seen == {str(tn.get_device())}


def test_arrays_of_numpy_go_to_the_params_and_the_inputs_beside() -> None:
    x, gy = draw(2, 3), draw(2, 3, seed=1)
    away = tn.asarray(draw(3), device="strict:device1")
    check_backward(lambda x: x * away, x, gy, [away])
    check_double_backward(lambda x: x * away, x, gy, x, [away], [draw(3, seed=2)])
    check_backward(functions.multiply, (x, away), gy)
    check_double_backward(functions.multiply, (x, away), gy, (x, draw(3, seed=2)))


def test_a_variable_stays_on_its_device() -> None:
    x, y = tn.asarray(draw(3)), tn.asarray(draw(3, seed=1))
    with tn.using_device("strict"):
        check_backward(lambda x: x * y, x, draw(3, seed=2))
        check_double_backward(lambda x: x * y, x, draw(3, seed=2), draw(3, seed=3))


def test_a_read_only_array_can_be_checked() -> None:
    x, gy = draw(3), draw(3, seed=1)
    x.flags.writeable = gy.flags.writeable = False
    check_backward(functions.sin, x, gy)
    check_double_backward(functions.sin, x, gy, x)


def test_the_checks_work_without_backprop_and_leave_the_config_alone() -> None:
    with tn.no_backprop_mode():
        check_backward(applying(Cube), draw(3), draw(3))
        check_double_backward(applying(Cube), draw(3), draw(3), draw(3))
        with pytest.raises(AssertionError, match=r"\(output of Cube\)"):
            check_backward(applying(Cube, 1.0), draw(3), draw(3))
        with pytest.raises(AssertionError, match=r"\(output of Detached\)"):
            check_double_backward(applying(Detached), draw(3), draw(3), draw(3))
        assert not tn.config.enable_backprop


def test_the_differences_run_without_type_checks_and_graph() -> None:
    seen = []

    def f(x: tn.Variable) -> tn.Variable:
        y = functions.sin(x)
        seen.append((tn.config.type_check, y.creator_node is None))
        return y

    check_backward(f, draw(3), draw(3))
    assert seen == [(True, False), (False, True), (False, True)]


def test_a_function_that_differentiates_inside() -> None:
    from tinynode.transforms import value_and_grad  # what the inner function is

    def penalty(x: tn.Variable) -> tn.Variable:
        def inner(x: tn.Variable) -> tn.Variable:
            return functions.sum(functions.sin(x) * x)

        return value_and_grad(inner, enable_double_backprop=True)(x)[1]

    check_backward(penalty, draw(3), draw(3, seed=1))


def test_func_has_to_return_variables() -> None:
    with pytest.raises(TypeError, match="check_backward: func must return Variables, output 0"):
        check_backward(lambda x: x.array, draw(3), np.ones(3))
    with pytest.raises(TypeError, match=r"check_backward: x_data\[1\] must be an array"):
        check_backward(lambda x, y: x, (draw(3), [1.0]), np.ones(3))


def test_a_nan_does_not_pass() -> None:
    with pytest.raises(AssertionError):
        check_backward(lambda x: x * float("nan"), draw(3), np.ones(3))


def test_an_error_of_the_function_comes_through() -> None:
    class Broken(Cube):
        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        check_backward(applying(Broken), draw(3), np.ones(3))


# --- check_double_backward -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0,)])
def test_right_second_order_gradients_pass(shape: tuple[int, ...]) -> None:
    x, gy, ggx = draw(*shape), draw(*shape, seed=1), draw(*shape, seed=2)
    for function in (applying(Cube), applying(WithGrad), functions.sin, functions.exp):
        check_double_backward(function, x, gy, ggx, eps=1e-5, atol=1e-6, rtol=1e-4)
        check_double_backward(function, x, gy, ggx)


def test_linear_functions_pass_as_they_are() -> None:
    x, w = draw(3), tn.Variable(draw(3, seed=1))
    gy, ggx = draw(3, seed=2), draw(3, seed=3)
    check_double_backward(functions.identity, x, gy, ggx)
    check_double_backward(lambda x: x * w + 1.0, x, gy, ggx)
    check_double_backward(lambda x: x * w, x, gy, ggx, (w,), (ggx,))
    check_double_backward(functions.matmul, (draw(2, 3), draw(3, 2)), draw(2, 2), (
        draw(2, 3, seed=1), draw(3, 2, seed=2)))  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        applying(Detached),
        applying(DetachedFromGy),
        applying(WithGrad, -1.0),
        applying(WithGrad, 1.0, -1.0),
        applying(WithGrad, 0.98),
        applying(WithGrad, 1.0, 0.0),
    ],
)
def test_wrong_second_order_gradients_fail(function: Callable[..., Any]) -> None:
    x, gy, ggx = draw(4), draw(4, seed=1), draw(4, seed=2)
    check_backward(function, x, gy)
    with pytest.raises(AssertionError, match=r"check_double_backward: the second-order .*apply"):
        check_double_backward(function, x, gy, ggx)


def test_the_second_order_message_names_x_and_gy() -> None:
    with pytest.raises(AssertionError) as info:
        check_double_backward(applying(WithGrad, -1.0), draw(4), draw(4, seed=1), draw(4, seed=2))
    message = str(info.value)
    assert "the second-order gradient of apply (output of WithGrad)" in message
    x_line, gy_line = [line for line in message.splitlines() if line.startswith("  ")]
    assert x_line.startswith("  x_data[0], (4,)") and gy_line.startswith("  y_grad[0], (4,)")
    slopes = [[float(n) for n in re.findall(r"(?:backward|difference) ([-\d.e]+)", line)]
              for line in (x_line, gy_line)]  # fmt: skip
    assert slopes[0][0] == pytest.approx(-slopes[0][1], rel=1e-4)
    assert slopes[1][0] == pytest.approx(slopes[1][1], rel=1e-4)


def test_second_order_of_several_inputs_and_outputs() -> None:
    def f(x: tn.Variable, n: tn.Variable, y: tn.Variable) -> Any:
        return x * x * y * functions.astype(n, "float64"), functions.sum(y * y * x), x

    x, n, y = draw(3), np.array([1, 2, 3]), draw(3, seed=1)
    gys = (draw(3, seed=2), np.array(0.5), None)
    ggs = (draw(3, seed=3), None, draw(3, seed=4))
    check_double_backward(f, (x, n, y), gys, ggs)
    check_double_backward(f, (x, n, y), gys, (None, None, ggs[2]))
    check_double_backward(f, (x, n, y), gys, ggs, dtype=F64)
    with pytest.raises(ValueError, match=r"x_grad_grad\[1\] must be None"):
        check_double_backward(f, (x, n, y), gys, (ggs[0], ggs[0], ggs[2]))
    with pytest.raises(ValueError, match="x_grad_grad has 1 entries, expected 3"):
        check_double_backward(f, (x, n, y), gys, ggs[0])
    with pytest.raises(ValueError, match=r"x_grad_grad\[0\] has shape \(2,\)"):
        check_double_backward(f, (x, n, y), gys, (draw(2), None, ggs[2]))
    with pytest.raises(ValueError, match="every entry of x_grad_grad is None"):
        check_double_backward(f, (x, n, y), gys, (None, None, None))


def test_second_order_of_params() -> None:
    w = tn.Variable(draw(3))
    x, gy, ggx, ggw = (draw(3, seed=seed) for seed in range(1, 5))

    def right(x: tn.Variable) -> tn.Variable:
        return functions.sin(x * w) * w

    def wrong(x: tn.Variable) -> tn.Variable:
        return WithGrad(-1.0).apply((w,))[0] * x

    check_double_backward(right, x, gy, ggx, w, ggw)
    check_double_backward(right, x, gy, None, w, ggw)
    check_double_backward(right, x, gy, ggx, (w,), (None,))
    check_backward(wrong, x, gy, w)
    with pytest.raises(AssertionError, match=r"params\[0\]"):
        check_double_backward(wrong, x, gy, ggx, w, ggw)
    with pytest.raises(ValueError, match="params_grad_grad has 0 entries, expected 1"):
        check_double_backward(right, x, gy, ggx, w)
    assert w.grad is None


def test_second_order_in_float32_against_float64() -> None:
    x, gy, ggx = (draw(5, seed=seed).astype(np.float32) for seed in range(3))
    check_double_backward(functions.tanh, x, gy, ggx, eps=1e-5, dtype=F64)
    check_double_backward(
        lambda x: functions.astype(functions.astype(x, "float64") ** 3, "float32"),
        x, gy, ggx, eps=1e-2, atol=1e-2, rtol=1e-2, dtype=F64,
    )  # fmt: skip


def test_second_order_of_params_in_float32_against_float64() -> None:
    w = tn.Variable(draw(5).astype(np.float32))
    node, (x, gy, ggx, ggw) = w.node, (draw(5, seed=i).astype(np.float32) for i in range(4))
    check_double_backward(lambda x: functions.sin(x * w), x, gy, ggx, w, ggw, eps=1e-5, dtype=F64)
    assert w.node is node and w.dtype == np.float32


def test_second_order_differences_record_no_graph() -> None:
    seen = []

    class Watching(Cube):
        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            seen.append(tn.config.enable_backprop)
            return super().backward(target_input_indexes, grad_outputs)

    check_double_backward(applying(Watching), draw(3), draw(3), draw(3))
    assert seen == [True, False, False]


def test_second_order_with_y_grad_none() -> None:
    check_double_backward(lambda x: functions.sum(x**3), draw(3), None, draw(3, seed=1))


def test_second_order_with_no_grads() -> None:
    fixed = (False, True)

    def f(x: tn.Variable, y: tn.Variable) -> tn.Variable:
        return functions.sin(x) * y.detach()

    xs = (draw(3), draw(3, seed=1))
    gy, ggx = draw(3, seed=2), draw(3, seed=3)
    check_double_backward(f, xs, gy, (ggx, None), no_grads=fixed)
    with pytest.raises(RuntimeError, match="no_grads variable must be None"):
        check_double_backward(lambda x, y: x * y, xs, gy, (ggx, None), no_grads=fixed)
    with pytest.raises(ValueError, match=r"x_grad_grad\[1\] must be None: the input gets no"):
        check_double_backward(f, xs, gy, (ggx, ggx), no_grads=fixed)


def test_second_order_of_an_old_style_function_is_an_error() -> None:
    class Old(tn.Function):
        def forward(self, inputs: Arrays) -> Arrays:
            return (inputs[0] ** 2,)

        def backward(self, inputs: Any, grad_outputs: Any) -> Any:
            return (2 * inputs[0] * grad_outputs[0],)

    def old(x: tn.Variable) -> Any:
        return Old()(x)

    check_backward(old, draw(3), draw(3, seed=1))
    with pytest.raises(GraphError, match="twice-differentiate"):
        check_double_backward(old, draw(3), draw(3, seed=1), draw(3, seed=2))

"""trace and compile behave as the eager function does, and say so where they cannot."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import threading
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.core.hooks import thread_state
from tinynode.errors import GraphError, TraceError
from tinynode.net import NetOp, Scope, Trace
from tinynode.net.program import NetFunction

X = np.asarray([[1.0, 2.0], [3.0, 4.0]])
W = np.asarray([[0.5, -1.0], [0.25, 2.0]])


@pytest.fixture(autouse=True, params=["numpy", "fast"])
def device(request: pytest.FixtureRequest) -> Any:
    """Every test runs with the default plan, and with that of the fast path."""
    with tn.using_device(request.param):
        yield tn.get_device(request.param)


def variable(array: Any = X, **arguments: Any) -> tn.Variable:
    return tn.Variable(np.array(array), **arguments)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-12, atol=1e-13)


class Counted:
    """A function that counts how often it is called: a recording is a call, a run is not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0
        self.__name__ = "counted"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        self.calls += 1
        return self.function(*args, **keywords)


def compiled(function: Callable[..., Any]) -> tuple[Any, Counted]:
    counted = Counted(function)
    return tn.compile(counted), counted


# --- arguments and results -----------------------------------------------------------------------


def test_a_compiled_function_is_one_function_in_the_graph() -> None:
    def f(x: tn.Variable, w: tn.Variable) -> tn.Variable:
        """tanh(x w)."""
        return fn.sum(fn.tanh(x @ w))

    fast = tn.compile(f)
    assert fast.function is f and fast.__name__ == "f" and fast.__doc__ == "tanh(x w)."
    for scale in (1.0, 2.0, 3.0):
        x, w = variable(X * scale), variable(W)
        y = fast(x, w)
        assert isinstance(y.creator_node, NetFunction) and y.creator_node.label == "f"
        assert y.rank == 1
        y.backward()
        a, b = variable(X * scale), variable(W)
        z = f(a, b)
        z.backward()
        close(y.array, z.array)
        close(x.grad, a.grad)
        close(w.grad, b.grad)


class Pair(NamedTuple):
    left: Any
    right: Any


def test_variables_in_containers_go_in_and_come_out() -> None:
    def f(pair: Any, table: Any, *rest: Any, scale: Any) -> Any:
        return {
            "pair": Pair(pair.right * scale, [pair.left]),
            "sum": (table["a"] + table["b"][0] + rest[0],),
            "plain": ["text", 3, None, 2.5, (True, ...)],
        }

    fast, counted = compiled(f)
    for number in (1.0, 2.0, 3.0):
        xs = [variable(X * number * k) for k in range(1, 7)]
        call = Pair(xs[0], xs[1]), {"a": xs[2], "b": [xs[3]]}, xs[4]
        ours, theirs = fast(*call, scale=xs[5]), f(*call, scale=xs[5])
        assert list(ours) == ["pair", "sum", "plain"] and type(ours["pair"]) is Pair
        close(ours["pair"].left.array, theirs["pair"].left.array)
        assert type(ours["pair"].right) is list and ours["pair"].right[0] is xs[0]
        assert type(ours["sum"]) is tuple
        close(ours["sum"][0].array, theirs["sum"][0].array)
        assert ours["plain"] == theirs["plain"]
    assert counted.calls == 1


def test_keyword_arguments_and_defaults() -> None:
    fast, counted = compiled(lambda x, factor=2.0, *, shift=None: x * factor + (shift or 0.0))
    x = variable()
    close(fast(x).array, 2 * X)
    close(fast(x, factor=3.0).array, 3 * X)
    close(fast(x, shift=1.0).array, 2 * X + 1)
    close(fast(factor=3.0, x=x).array, 3 * X)
    calls = counted.calls
    close(fast(variable(5 * X), factor=3.0).array, 15 * X)
    assert counted.calls == calls
    with pytest.raises(TypeError, match="unexpected keyword"):
        fast(x, wrong=1)


def test_python_arguments_count_by_value_and_type() -> None:
    seen = []

    def f(x: tn.Variable, value: Any) -> tn.Variable:
        seen.append(value)
        return x * value if type(value) is not bool else x

    fast = tn.compile(f)
    x = variable(np.asarray([1, 2]))
    assert fast(x, 1).dtype == np.int64
    assert fast(x, 1.0).dtype == np.float64
    assert fast(x, True).dtype == np.int64
    assert [type(value) for value in seen] == [int, float, bool]
    for value in (1, 1.0, True):
        fast(x, value)
    assert len(seen) == 3
    fast(x, 2), fast(x, np.float32(2)), fast(x, 2)
    assert len(seen) == 5


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_zero_and_minus_zero_are_two_numbers(kind: Any) -> None:
    fast = tn.compile(lambda x, zero: x + fn.copysign(x, x * zero))
    x = variable(np.asarray([1.0]))
    close(fast(x, kind(0.0)).array, [2.0])
    close(fast(x, kind(-0.0)).array, [0.0])


def test_minus_zero_in_a_complex_number() -> None:
    fast, counted = compiled(lambda x, zero: fn.copysign(x, x * zero.imag))
    x = variable(np.asarray([1.0]))
    for kind in (complex, np.complex128):
        close(fast(x, kind(complex(0.0, 0.0))).array, [1.0])
        close(fast(x, kind(complex(0.0, -0.0))).array, [-1.0])
    assert counted.calls == 4


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, complex])
def test_not_a_number_is_recorded_once(kind: Any) -> None:
    fast, counted = compiled(lambda x, value: x * value.real)
    for _ in range(3):
        assert np.isnan(fast(variable(), kind("nan")).array).all()
    assert counted.calls == 1


@dataclass(frozen=True)
class Factor:
    name: str
    value: Any = field(compare=False, default=1.0)

    @tn.compile
    def times(self, x: tn.Variable) -> tn.Variable:
        return x * self.value

    def eager_times(self, x: tn.Variable) -> tn.Variable:
        return x * self.value


def test_equal_objects_are_two_arguments() -> None:
    fast, counted = compiled(lambda x, factor: x * factor.value)
    call, calls = compiled(lambda x, function: function(x))
    two, three = Factor("a", 2.0), Factor("a", 3.0)
    assert two == three and hash(two) == hash(three)
    x = variable()
    for _ in range(2):
        for factor in (two, three):
            expected = factor.value * X
            close(fast(x, factor).array, expected)
            close(fast(x, factor=factor).array, expected)
            close(factor.times(x).array, expected)
            close(call(x, factor.eager_times).array, expected)
    assert (counted.calls, calls.calls) == (4, 2)


def test_equal_keys_are_two_arguments() -> None:
    fast, counted = compiled(lambda x, table: x * next(iter(table)))
    x = variable(np.asarray([1, 2]))
    for _ in range(2):
        assert fast(x, {1: x}).dtype == np.int64
        assert fast(x, {1.0: x}).dtype == np.float64
    by_object, calls = compiled(lambda x, table: x * next(iter(table)).value)
    for factor in (Factor("a", 2.0), Factor("a", 3.0)):
        close(by_object(x, {factor: 0}).array, [factor.value, 2 * factor.value])
    assert (counted.calls, calls.calls) == (2, 2)


def test_ranges_and_numbers_of_numpy_are_compared_by_value() -> None:
    fast, counted = compiled(lambda x, numbers: x * sum(numbers))
    for _ in range(3):
        close(fast(variable(), range(3)).array, 3 * X)
        close(fast(variable(), (np.float64(2.0), np.int32(3))).array, 5 * X)
    assert counted.calls == 2
    table, calls = compiled(lambda x, table: x * table[1, "a"] * table[None])
    for _ in range(3):
        close(table(variable(), {(1, "a"): 4.0, None: 2.0}).array, 8 * X)
    assert calls.calls == 1


@pytest.mark.parametrize("give", [lambda: iter([1.0]), lambda: (k for k in [1.0]), lambda: zip()])
def test_an_iterator_is_no_argument(give: Callable[[], Any]) -> None:
    fast, counted = compiled(lambda x, numbers: x * next(numbers))
    for bad in (give(), [give()]):
        with pytest.raises(TraceError, match=r"counted: .* Call next\(\) outside"):
            fast(variable(), bad)
    assert counted.calls == 0


def test_arrays_are_arguments_too() -> None:
    fast, counted = compiled(lambda x, mask: fn.where(mask, x, 0.0))
    x = variable()
    close(fast(x, X > 2).array, X * (X > 2))
    close(fast(x, X > 3).array, X * (X > 3))
    assert counted.calls == 1
    with pytest.raises(TraceError, match="a shape that depends on values"):
        tn.compile(lambda x, mask: x[mask])(x, X > 2)
    assert isinstance(tn.compile(lambda a: fn.exp(a))(X), tn.Variable)


NUMBERS: dict[str, Any] = {
    "int": 2,
    "float": 2.5,
    "scalar": np.float64(2.5),
    "small scalar": np.float32(2.0),
    "array": np.full(3, 2.5),
    "small array": np.full(3, 2.0, np.float32),
}
OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow),
    *(operator.floordiv, operator.mod, operator.lt, operator.eq),
)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
@pytest.mark.parametrize("number", NUMBERS)
def test_an_array_takes_numbers_and_arrays_on_either_side(number: str, dtype: str) -> None:
    """The dtype is NumPy's, as of the eager function: there is no Variable."""
    a, b = np.array([1, 2, 3]).astype(dtype), NUMBERS[number]
    for f in OPERATORS:
        # NumPy 2.1 takes the square of integers in float64 if the operator is **
        rule = np.power if f is operator.pow else f
        pairs = [((lambda a, f=f: f(a, b)), rule(a, b)), ((lambda a, f=f: f(b, a)), rule(b, a))]
        for g, expected in pairs:
            y = tn.compile(g)(a)
            assert y.dtype == expected.dtype
            np.testing.assert_allclose(y.array, expected, rtol=1e-6)
    np.testing.assert_array_equal(tn.compile(lambda a: len(a) * a)(a).array, 3 * a)


class WithVariables(tn.FunctionNode):
    """y = 2 exp(x), computed with Variables inside of forward."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        inside = tn.Variable(inputs[0])
        fn.sum(fn.exp(inside)).backward()
        return (inside.grad + fn.exp(inside.detach()).array,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (2 * fn.exp(x) * grad_outputs[0],)


def test_a_forward_may_use_variables_and_their_arrays() -> None:
    """Each run calls the forward, so the values are those of the run."""

    def f(x: Any) -> Any:
        return WithVariables().apply((x,))[0]

    for way in (f, tn.vmap(f), tn.gradient(lambda x: fn.sum(f(x)))):
        g = tn.compile(way)
        for x in (variable(), variable(W)):
            close(g(x).array, 2 * np.exp(x.array))


@pytest.mark.parametrize(
    "index",
    [
        X > 2,
        [True, False],
        (X[0] > 1).tolist(),
        (slice(None), np.array([False, True])),
        (0, [True, False]),
    ],
    ids=str,
)
def test_a_mask_that_is_no_argument_selects(index: Any) -> None:
    """The mask is a constant of the net, so the shape is fixed."""
    f = tn.compile(lambda x: x[index] * 2.0)
    for array in (X, W):
        x = variable(array)
        close(f(x).array, np.asarray(array)[index] * 2)
        fn.sum(f(x)).backward()
        wanted = np.zeros((2, 2))
        wanted[index] = 2.0
        close(x.grad, wanted)
    with pytest.raises(IndexError, match="bool array"):
        tn.compile(lambda x: x[[True, False, False]])(variable())


def test_one_element_of_a_bool_array() -> None:
    """Only a mask in the index makes a shape that depends on values."""
    y = tn.compile(lambda x: (x > 2.0)[1])(variable())
    np.testing.assert_array_equal(y.array, [True, True])


WITH_A_RAW_ARRAY: dict[str, Callable[[Any, Any], Any]] = {
    "x * t": lambda x, t: x * t,
    "t - x": lambda x, t: t - x,
    "t @ x": lambda x, t: t @ x,
    "loss": lambda x, t: fn.mean_squared_error(x, t),
    "where": lambda x, t: fn.where(x > 0, x, t),
    "maximum": lambda x, t: fn.maximum(t, x),
    "in a list": lambda x, t: x + [t][0],
    "both": lambda x, t: (x * t, x.astype("float64") * t),
}


@pytest.mark.parametrize("what", WITH_A_RAW_ARRAY)
def test_an_array_among_the_arguments_takes_the_dtype_of_the_variable_beside_it(what: str) -> None:
    for dtype in ("bool", "int64", "float32", "float64", "complex64"):
        for own in ("int64", "float32", "float64"):
            check_an_array_beside_a_variable(what, dtype, own)


def check_an_array_beside_a_variable(what: str, dtype: str, own: str) -> None:
    f = WITH_A_RAW_ARRAY[what]
    fast, counted = compiled(f)
    t = W.astype(dtype)
    try:
        expected = flat(f(variable(X.astype(own)), t))
    except (TypeError, tn.TinynodeError) as error:
        with pytest.raises(type(error)):
            fast(variable(X.astype(own)), t)
        return
    for _ in range(2):
        actual = flat(fast(variable(X.astype(own)), t))
        assert [y.dtype for y in actual] == [y.dtype for y in expected]
        for y, z in zip(actual, expected, strict=True):
            np.testing.assert_allclose(y.array, z.array, rtol=1e-6)
    assert counted.calls == 1


def test_a_variable_among_the_arguments_keeps_its_dtype() -> None:
    fast, counted = compiled(lambda x, t: x * t)
    x = variable(X.astype(np.float32))
    for _ in range(2):
        assert fast(x, W).dtype == np.float32
        assert fast(x, variable(W, requires_grad=False)).dtype == np.float64
    assert counted.calls == 2


def test_slices_and_none_as_arguments() -> None:
    fast, counted = compiled(lambda x, index: x[index])
    x = variable()
    for index in (slice(0, 1), (slice(None), 0), None, 1, ...):
        close(fast(x, index).array, X[index])
        close(fast(x, index).array, X[index])
    assert counted.calls == 5


@pytest.mark.parametrize("bad", [{1, 2}, bytearray(b"x"), {"inner": {1}}])
def test_what_has_no_value_of_its_own_is_no_argument(bad: Any) -> None:
    fast, counted = compiled(lambda x, bad: x)
    with pytest.raises(TraceError, match=r"counted: .* cannot be told apart by its value"):
        fast(variable(), bad)
    assert counted.calls == 0


def test_an_empty_variable_is_an_error() -> None:
    with pytest.raises(TraceError, match=r"empty \(no array\)"):
        tn.compile(lambda x: x)(tn.Variable())


def test_what_is_no_function_is_an_error() -> None:
    with pytest.raises(TypeError, match="compile: function must be callable, got int 3"):
        tn.compile(3)  # type: ignore[arg-type]


def test_a_result_may_be_an_input_or_a_constant() -> None:
    constant = np.asarray([7.0, 8.0])
    fast, counted = compiled(lambda x, y: (x, tn.asarray(constant), y * 1, x, 5))
    for _ in range(3):
        x, y = variable(), variable(2 * X)
        a, b, c, d, e = fast(x, y)
        assert a is x and d is x and e == 5
        close(b.array, constant)
        assert tn.grad([b], [x, y], [b.detach()]) == [None, None]
        close(c.array, y.array)
    assert counted.calls == 1


def test_a_function_of_nothing() -> None:
    fast, counted = compiled(lambda: fn.exp(tn.asarray([0.0, 1.0], dtype="float64")))
    for _ in range(2):
        close(fast().array, np.exp([0.0, 1.0]))
    assert counted.calls == 1
    assert tn.compile(lambda: None)() is None
    assert tn.compile(lambda x: None)(variable()) is None


class Result:
    def __init__(self, y: tn.Variable) -> None:
        self.y = y


def test_an_object_is_no_result() -> None:
    with pytest.raises(TraceError, match=r"what <lambda> returned: Result .* same object at each"):
        tn.compile(lambda x: Result(x * 2))(variable())
    with pytest.raises(TraceError, match=r"what <lambda> returned: .* told apart"):
        tn.compile(lambda x: {1, 2})(variable())
    assert not thread_state.hooks


# --- gradients -----------------------------------------------------------------------------------


def many(x: tn.Variable, w: tn.Variable) -> tuple[tn.Variable, ...]:
    h = fn.tanh(x @ w)
    return h, fn.sum(h * x), h > 0, h.detach(), fn.argmax(h, axis=0)


def test_several_outputs_of_which_some_have_no_gradient() -> None:
    fast = tn.compile(many)
    fast(variable(), variable(W))
    x, w = variable(2 * X), variable(W)
    ours, theirs = fast(x, w), many(x, w)
    assert [y.requires_grad for y in ours] == [True, True, False, False, False]
    for y, z in zip(ours, theirs, strict=True):
        close(y.array, z.array)
        assert y.dtype == z.dtype
    for chosen in ([0], [1], [0, 1]):
        gys = [variable(np.full(ours[i].shape, 0.5 + i)) for i in chosen]
        for enable in (False, True):
            gxs = tn.grad([ours[i] for i in chosen], [x, w], gys, enable_double_backprop=enable)
            expected = tn.grad([theirs[i] for i in chosen], [x, w], gys)
            for gx, other in zip(gxs, expected, strict=True):
                close(gx.array, other.array)


def test_an_output_that_does_not_depend_on_an_input() -> None:
    fast = tn.compile(lambda x, w: (x * 2, w * 3))
    x, w = variable(), variable(W)
    a, _ = fast(x, w)
    for enable in (False, True):
        gx, gw = tn.grad([a], [x, w], [variable(W)], enable_double_backprop=enable)
        close(gx.array, 2 * W)
        assert gw is None or not np.any(gw.array)


def test_inputs_that_require_no_gradient() -> None:
    fast, counted = compiled(lambda x, w: fn.sum(x * w))
    for flags in ((True, False), (False, True), (False, False), (True, True)):
        x, w = variable(requires_grad=flags[0]), variable(W, requires_grad=flags[1])
        y = fast(x, w)
        assert y.requires_grad == any(flags)
        if any(flags):
            y.backward()
            assert [x.grad is not None, w.grad is not None] == list(flags)
    assert counted.calls == 4


def test_one_variable_as_two_arguments() -> None:
    fast = tn.compile(lambda x, y: fn.sum(x * y))
    x = variable()
    fast(x, x).backward()
    close(x.grad, 2 * X)


def test_gradients_accumulate_over_calls() -> None:
    w = variable(W)
    fast = tn.compile(lambda x: fn.sum(x * w))
    for k in (1.0, 2.0):
        fast(variable(k * X)).backward()
    close(w.grad, 3 * X)


def power(x: tn.Variable) -> tn.Variable:
    return fn.sum(fn.exp(x) * x**3)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_high_order(order: int) -> None:
    host = np.asarray([0.5, -0.25])
    results = []
    for function in (power, tn.compile(power)):
        for _ in range(2):
            x = variable(host)
            y = function(x)
            for _ in range(order):
                (gx,) = tn.grad([y], [x], enable_double_backprop=True)
                y = fn.sum(gx)
        results.append(gx.array)
    close(results[1], results[0])


def test_derivatives_of_a_compiled_function() -> None:
    fast = tn.compile(power)
    x, v = variable(np.asarray([0.5, -0.25])), variable(np.asarray([1.0, 2.0]))
    for f in (power, fast):
        y, gx = tn.value_and_grad(f)(x)
        close(y.array, power(x).array)
        close(gx.array, np.exp(x.array) * (x.array**3 + 3 * x.array**2))

    def gradient(x: tn.Variable) -> Any:
        return tn.value_and_grad(fast, enable_double_backprop=True)(x)[1]

    close(tn.hvp(fast, x, v).array, tn.hvp(power, x, v).array)
    close(tn.jacobian(fast)(x).array, tn.value_and_grad(power)(x)[1].array)
    close(tn.jacobian(gradient)(x).array @ v.array, tn.hvp(power, x, v).array)


def test_derivatives_inside_a_compiled_function() -> None:
    calls = {
        "value_and_grad": lambda x, v: tn.value_and_grad(power)(x),
        "jacobian": lambda x, v: tn.jacobian(lambda x: fn.exp(x) * x)(x),
        "hvp": lambda x, v: tn.hvp(power, x, v),
        "grad": lambda x, v: tn.grad([power(x)], [x]),
    }
    for name, f in calls.items():
        fast, counted = compiled(f)
        for scale in (1.0, 2.0, 3.0):
            x, v = variable(np.asarray([0.5, -0.25]) * scale), variable(np.asarray([1.0, 2.0]))
            ours, theirs = fast(x, v), f(x, v)
            for y, z in zip(flat(ours), flat(theirs), strict=True):
                close(y.array, z.array)
            assert x.grad is None
        assert counted.calls == 1, name


def flat(value: Any) -> list[Any]:
    return [value] if isinstance(value, tn.Variable) else list(value)


def test_a_gradient_inside_can_be_differentiated_outside() -> None:
    def slope(x: tn.Variable) -> Any:
        return tn.value_and_grad(power, enable_double_backprop=True)(x)[1]

    fast = tn.compile(slope)
    for host in (np.asarray([0.5, -0.25]), np.asarray([0.1, 0.2])):
        x = variable(host)
        (ours,) = tn.grad([fn.sum(fast(x))], [x])
        (theirs,) = tn.grad([fn.sum(slope(x))], [x])
        close(ours.array, theirs.array)


def test_a_gradient_without_a_graph_cuts_inside() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        y, gx = tn.value_and_grad(power)(x)
        return fn.sum(gx * x) + y

    results = []
    for function in (f, tn.compile(f)):
        x = variable(np.asarray([0.5, -0.25]))
        function(x).backward()
        results.append(x.grad)
    close(results[1], results[0])


def test_names_of_arguments_may_be_those_of_gradients() -> None:
    fast = tn.compile(lambda x, **unused: fn.exp(x))
    x = variable()
    for enable in (False, True):
        (gx,) = tn.grad(
            [fast(x, **{"t0@GRAD": variable(5 * W), "x@GRAD": variable(7 * W)})],
            [x],
            [variable(W)],
            enable_double_backprop=enable,
        )
        close(gx.array, W * np.exp(X))


def test_detach_cuts_inside() -> None:
    fast = tn.compile(lambda x: fn.sum(x * x.detach() * fn.exp(x).detach()))
    x = variable()
    fast(x).backward()
    close(x.grad, X * np.exp(X))


# --- what the function brings along --------------------------------------------------------------


def test_parameters_are_read_anew_at_each_call() -> None:
    w = tn.Variable(W, name="w")
    fast, counted = compiled(lambda x: fn.sum(x @ w))
    found = tn.trace(lambda x: fn.sum(x @ w), variable())
    assert found.inputs == ["x"] and found.captured == {"w": w}
    optimizer = tn.nn.SGD([w], lr=0.1)
    for _ in range(3):
        optimizer.cleargrads()
        y = fast(variable())
        close(y.array, (X @ w.array).sum())
        y.backward()
        optimizer.update()
    assert counted.calls == 1
    assert not np.allclose(w.array, W)


def test_a_parameter_of_another_form_is_recorded_anew() -> None:
    w = tn.Variable(W)
    fast, counted = compiled(lambda x: fn.sum(x @ w, axis=0))
    fast(variable())
    w.array = np.ones((2, 3))
    close(fast(variable()).array, (X @ np.ones((2, 3))).sum(0))
    w.array = np.ones((2, 3), dtype=np.float32)
    assert fast(variable(X.astype(np.float32))).dtype == np.float32
    assert counted.calls == 3
    w.array = np.full((2, 3), 2.0)
    for _ in range(2):
        close(fast(variable()).array, (X @ np.full((2, 3), 2.0)).sum(0))
    assert counted.calls == 3  # the net of the second call fits again


def test_two_parameters_may_share_an_array() -> None:
    a, b = tn.Variable(X), tn.Variable(X)
    c = tn.Variable(X, requires_grad=False)
    fast = tn.compile(lambda: fn.sum(a * b * c))
    y = fast()
    y.backward()
    close(a.grad, X * X)
    close(b.grad, X * X)
    a.array, c.array = 2 * X, 3 * X
    close(fast().array, np.sum(6 * X**3))


def test_an_argument_may_be_a_parameter_too() -> None:
    w = variable(W)
    fast = tn.compile(lambda x: fn.sum(x * w))
    fast(w).backward()
    close(w.grad, 2 * W)
    other = variable()
    fast(other).backward()
    close(other.grad, W)


def test_a_variable_of_a_graph_that_is_brought_along() -> None:
    x = variable()
    h = fn.exp(x)
    fast = tn.compile(lambda y: fn.sum(h * y))
    fast(variable(W)).backward()
    close(x.grad, np.exp(X) * W)


def test_modules_in_lists() -> None:
    tn.seed(0)
    layers = [tn.nn.Linear(2, 3), tn.nn.Linear(3, 1)]

    def f(layers: Any, x: tn.Variable) -> tn.Variable:
        for layer in layers:
            x = fn.tanh(layer(x))
        return fn.sum(x)

    fast, counted = compiled(f)
    x = X.astype(np.float32)
    for _ in range(2):
        fast(layers, tn.Variable(x)).backward()
        ours = [p.grad for layer in layers for p in layer.parameters()]
        [layer.cleargrads() for layer in layers]
        f(layers, tn.Variable(x)).backward()
        theirs = [p.grad for layer in layers for p in layer.parameters()]
        [layer.cleargrads() for layer in layers]
        for gx, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(gx, other, rtol=1e-6)
    assert counted.calls == 1
    fast(layers[:1], tn.Variable(x))
    assert counted.calls == 2


def test_a_module_is_a_function() -> None:
    tn.seed(0)
    model = tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.Linear(3, 2))
    fast = tn.compile(model)
    x = tn.Variable(X.astype(np.float32))
    np.testing.assert_allclose(fast(x).array, model(x).array, rtol=1e-6)


class Scaled:
    def __init__(self, factor: float) -> None:
        self.w = tn.Variable(W * factor)
        self.recorded = 0

    @tn.compile
    def product(self, x: tn.Variable, *, shift: float = 0.0) -> tn.Variable:
        """x w + shift."""
        self.recorded += 1
        return x @ self.w + shift


def test_a_method() -> None:
    first, second = Scaled(1.0), Scaled(2.0)
    x = variable()
    for _ in range(2):
        close(first.product(x).array, X @ W)
        close(second.product(x, shift=1.0).array, X @ W * 2 + 1)
        close(Scaled.product(first, x).array, X @ W)
    assert first.recorded == second.recorded == 1
    assert Scaled.product.__doc__ == "x w + shift."
    assert first.product(x).creator_node.label == "product"


def test_a_method_does_not_keep_its_instance_alive() -> None:
    class Model(tn.nn.Module):
        def __init__(self) -> None:
            self.w = tn.nn.Parameter(W)

        def forward(self, x: tn.Variable) -> tn.Variable:
            return x @ self.w

        @tn.compile
        def loss(self, x: tn.Variable) -> tn.Variable:
            return fn.sum(self(x))

    plain = tn.compile(lambda model, x: model.loss(x))
    gc.disable()
    try:
        for calls in range(3):
            model = Model()
            for _ in range(2):
                model.loss(variable())
                plain(model, variable())
                assert len(Model.loss.recordings) == 1
            assert calls == 0 or len(plain.recordings) == 1
            watched = [weakref.ref(model), weakref.ref(model.w)]
            model.eval()
            del model
            assert [reference() for reference in watched] == [None, None]
            assert not Model.loss.recordings and not plain.recordings
    finally:
        gc.enable()


def test_a_module_that_the_function_makes_is_recorded_once() -> None:
    generator = np.random.default_rng(0)
    fast, counted = compiled(lambda x: tn.nn.Dropout(0.5, generator)(x))
    for _ in range(3):
        fast(variable())
    assert counted.calls == 1


class WithRun(tn.nn.Module):
    def __init__(self) -> None:
        self.w = tn.nn.Parameter(W)
        self.run = tn.compile(self.forward)

    def forward(self, x: tn.Variable) -> tn.Variable:
        return x @ self.w


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_model_that_holds_its_compiled_method_can_be_copied(copied: Any) -> None:
    model = WithRun()
    for _ in range(2):
        model.run(variable())
    other = copied(model)
    other.w.array = 2 * W
    for _ in range(2):
        close(other.run(variable()).array, 2 * X @ W)
        close(model.run(variable()).array, X @ W)
    assert other.run.function.__self__ is other and other.run.__name__ == "forward"
    run = copied(other.run)
    assert run.function.__self__.run is run
    close(run(variable()).array, 2 * X @ W)


def test_a_compiled_module_is_a_part_of_its_model() -> None:
    class Model(tn.nn.Module):
        def __init__(self, wrap: Any) -> None:
            self.body = wrap(tn.nn.Linear(2, 2))
            self.rest = [wrap(wrap(tn.nn.Dropout(0.5)))]

        def forward(self, x: tn.Variable) -> tn.Variable:
            return self.rest[0](self.body(x))

    model, eager = Model(tn.compile), Model(lambda module: module)
    names = [name for name, _ in model.named_parameters()]
    assert names == [name for name, _ in eager.named_parameters()] and len(names) == 2
    model.load_state_dict(eager.state_dict())
    x = tn.Variable(np.ones((4, 2), np.float32))
    for mode in (model, eager):
        mode.eval()
    for _ in range(2):
        np.testing.assert_allclose(model(x).array, eager(x).array, rtol=1e-6)
    assert [type(m).__name__ for m in model.modules()] == ["Model", "Linear", "Dropout"]


def test_as_a_decorator() -> None:
    @tn.compile
    def f(x: tn.Variable) -> tn.Variable:
        return x * 2

    @tn.compile(inside_hooks=True)
    def g(x: tn.Variable) -> tn.Variable:
        return x * 3

    close(f(variable()).array, 2 * X)
    close(g(variable()).array, 3 * X)
    assert "calls" not in vars(compiled(power)[0])  # an object's attributes stay its own
    assert (f.__name__, g.__name__) == ("f", "g") and g.inside_hooks and not f.inside_hooks


def test_an_array_that_the_function_closes_over_is_a_constant() -> None:
    numbers = np.asarray([1.0, 2.0])
    for make in (
        lambda x: x * numbers,
        lambda x: x.astype("float32") * numbers,
        lambda x: x * tn.Variable(numbers, requires_grad=False),
        lambda x: (x * 2.0, tn.asarray(numbers))[1] * x,
        lambda x: fn.exp(tn.Variable(numbers, requires_grad=False)) * x,
    ):
        fast = tn.compile(make)
        numbers[...] = [1.0, 2.0]
        expected = fast(variable()).array
        for _ in range(2):
            numbers[...] = 7.0
            assert fast(variable()).array.tolist() == expected.tolist()


# --- signatures ----------------------------------------------------------------------------------


def test_one_net_for_each_signature() -> None:
    fast, counted = compiled(lambda x: fn.exp(x))
    forms = [
        variable(),
        variable(np.ones(3)),
        variable(X.astype(np.float32)),
        variable(requires_grad=False),
        tn.Variable(tn.get_device("strict:device1").from_host(X)),
    ]
    for _ in range(3):
        for x in forms:
            y = fast(x)
            assert y.device is x.device and y.dtype == x.dtype
            close(tn.to_host(y.array), np.exp(tn.to_host(x.array)))
    assert counted.calls == len(forms)


def test_settings_are_part_of_the_signature() -> None:
    fast, counted = compiled(lambda x: x * 2 if tn.config.train else x * 3)
    x = variable()
    for _ in range(2):
        close(fast(x).array, 2 * X)
        with tn.using_config(train=False):
            close(fast(x).array, 3 * X)
    assert counted.calls == 2


def test_no_backprop_mode() -> None:
    fast = tn.compile(power)
    x = variable()
    with tn.no_backprop_mode():
        y = fast(x)
    assert y.creator_node is None
    y = fast(x)
    y.backward()
    ours = x.grad
    x.cleargrad()
    power(x).backward()
    close(ours, x.grad)


def test_writes_in_no_backprop_mode() -> None:
    """A result without a graph keeps its node in a write; the net reads the written array."""

    def f(x: tn.Variable) -> Any:
        y, z = fn.exp(x), fn.sin(x)
        before = y * 2.0
        y += x
        z[0] = y[1]
        return before, y, z * 3.0

    fast = tn.compile(f)
    for scale in (1.0, 2.0, 3.0):
        with tn.no_backprop_mode():
            for ours, theirs in zip(
                fast(variable(X * scale)), f(variable(X * scale)), strict=True
            ):
                close(ours.array, theirs.array)


def test_no_backprop_mode_inside() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        with tn.no_backprop_mode():
            h = fn.exp(fn.sin(x) * x)
        return fn.sum(x * h)

    results = []
    for function in (f, tn.compile(f)):
        x = variable()
        function(x).backward()
        results.append(x.grad)
    close(results[1], results[0])
    kinds = [operator.type for operator in tn.trace(f, x).net.operators]
    assert kinds == ["stop_gradient", "sin", "multiply", "exp", "multiply", "sum"]


def test_compiled_functions_in_compiled_functions() -> None:
    inner, counted = compiled(lambda x: fn.tanh(x) * 2)
    outer, calls = compiled(lambda x: fn.sum(inner(x) + inner(x * 2)))
    for _ in range(3):
        x = variable()
        y = outer(x)
        y.backward()
    close(y.array, np.sum(2 * np.tanh(X) + 2 * np.tanh(2 * X)))
    close(x.grad, 2 / np.cosh(X) ** 2 + 4 / np.cosh(2 * X) ** 2)
    assert (calls.calls, counted.calls) == (1, 2)
    assert all(op.type != "net_function" for op in tn.trace(outer, x).net.flattened())
    twice = tn.compile(tn.compile(power))
    close(twice(variable()).array, power(variable()).array)


def test_a_compiled_function_may_call_itself() -> None:
    @tn.compile
    def f(x: tn.Variable, times: int) -> tn.Variable:
        return x if times == 0 else f(x * 2, times - 1)

    close(f(variable(), 3).array, 8 * X)
    close(f(variable(), 0).array, X)


def test_threads_share_a_compiled_function(device: tn.Device) -> None:
    w = variable(W)
    fast = tn.compile(lambda x, k: fn.sum(fn.tanh(x @ w) * k))
    start, results = threading.Barrier(8), [None] * 8

    def work(i: int) -> None:
        start.wait()
        for _ in range(5):
            with tn.using_device(device):  # each thread has a configuration of its own
                x = variable(X * (i + 1))
            y = fast(x, i % 3)
            (gx,) = tn.grad([y], [x])
            results[i] = (y.array, gx.array)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for i, found in enumerate(results):
        x = variable(X * (i + 1))
        y = fn.sum(fn.tanh(x @ w) * (i % 3))
        assert found is not None
        close(found[0], y.array)
        close(found[1], tn.grad([y], [x])[0].array)


def test_a_recording_of_one_thread_does_not_disturb_another() -> None:
    other = []

    def look() -> None:
        other.append(float(fn.sum(variable())))

    def f(x: tn.Variable) -> tn.Variable:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return x * 2

    found = tn.trace(f, variable())
    assert other == [10.0] and len(found.net.operators) == 2


def test_nothing_is_kept_after_the_graph_is_gone() -> None:
    fast = tn.compile(lambda x: fn.sum(fn.exp(x) * x))
    gc.disable()
    try:
        for _ in range(3):
            x = variable()
            y = fast(x)
            y.backward()
            watched = [weakref.ref(x.node), weakref.ref(x.array), weakref.ref(y.creator_node)]
            del x, y
            assert [reference() for reference in watched] == [None, None, None]
    finally:
        gc.enable()


def test_results_are_not_overwritten_by_the_next_call() -> None:
    fast = tn.compile(lambda x: (fn.exp(x), x * 2))
    kept = []
    for k in range(4):
        x = variable(X * k)
        ys = fast(x)
        gx = tn.grad(list(ys), [x], [variable(W), variable(W)])[0]
        kept.append((*(y.array for y in ys), gx.array))
    for k, (first, second, gx) in enumerate(kept):
        close(first, np.exp(X * k))
        close(second, 2 * X * k)
        close(gx, W * np.exp(X * k) + 2 * W)


def test_forward_twice_then_backward_of_both() -> None:
    fast = tn.compile(power)
    xs = [variable(X * k) for k in (0.1, 0.2, 0.3)]
    ys = [fast(x) for x in xs]
    for x, y in reversed(list(zip(xs, ys, strict=True))):
        y.backward()
        close(x.grad, np.exp(x.array) * (x.array**3 + 3 * x.array**2))


# --- hooks and debug mode ------------------------------------------------------------------------


class Names(tn.FunctionHook):
    name = "names"

    def __init__(self) -> None:
        self.forward: list[str] = []
        self.backward: list[str] = []

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self.forward.append(function.label)

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.backward.append(function.label)


def test_hooks_see_one_function() -> None:
    fast = tn.compile(power)
    for _ in range(2):  # when it is recorded, and afterwards
        with Names() as hook:
            y = fast(variable())
        assert hook.forward == ["power"]
        with Names() as hook:
            y.backward()
        assert hook.backward == ["power"] and hook.forward == []
        assert not thread_state.hooks


def test_hooks_see_the_functions_inside_when_asked() -> None:
    fast = tn.compile(power, inside_hooks=True)
    for _ in range(2):
        with Names() as hook:
            y = fast(variable())
        with Names() as eager:
            power(variable())
        assert hook.forward == eager.forward and len(hook.forward) > 2
        close(y.array, power(variable()).array)
        assert isinstance(fast(variable()).creator_node, NetFunction)


def test_debug_mode_runs_eagerly_and_says_so_once() -> None:
    fast, counted = compiled(power)
    fast(variable())
    with tn.using_config(debug=True):
        with pytest.warns(RuntimeWarning, match="counted: debug mode is on") as caught:
            y = fast(variable())
        assert len(caught) == 1 and caught[0].filename == __file__
        z = fast(variable())  # silent now: a warning is an error in these tests
    assert not isinstance(y.creator_node, NetFunction)
    close(y.array, z.array)
    assert counted.calls == 3
    assert isinstance(fast(variable()).creator_node, NetFunction)


# --- what cannot be recorded ---------------------------------------------------------------------

w = variable(W, grad=np.array(W))

REFUSED: dict[str, Callable[[tn.Variable], Any]] = {
    "bool": lambda x: x if fn.sum(x) > 0 else -x,
    "float": lambda x: x * float(fn.sum(x)),
    "int": lambda x: x * int(fn.sum(x)),
    "item": lambda x: x * fn.sum(x).item(),
    "array": lambda x: x * np.sum(x.array),
    "data": lambda x: x * np.sum(x.data),
    "array of a parameter": lambda x: x * np.sum(w.array),
    "grad": lambda x: x * w.grad,
    "asarray": lambda x: x * np.asarray(x.detach()),
    "deepcopy": lambda x: x * copy.deepcopy(x),
    "pickle": lambda x: x * pickle.loads(pickle.dumps(x)),
    "index": lambda x: [x, x * 2][fn.argmax(x[0])],
    "max": lambda x: max(fn.sum(x), fn.sum(x * 2)),
    "in": lambda x: x if fn.sum(x) in [fn.sum(x * 2)] else -x,
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_look_at_a_value_is_an_error_that_names_line_and_way_out(what: str) -> None:
    function = REFUSED[what]
    for call in (tn.compile(function), lambda x: tn.trace(function, x)):
        with pytest.raises(TraceError, match=r"<lambda>: .* asks for the value") as caught:
            call(variable())
        assert "Keep to functions of Variables (where(...) for a choice)" in str(caught.value)
        frames = traceback.extract_tb(caught.value.__traceback__)
        line = function.__code__.co_firstlineno
        assert any(f.filename == __file__ and f.lineno == line for f in frames)
    assert not thread_state.hooks
    function(variable())  # eagerly it works


def test_shapes_and_dtypes_may_be_looked_at(device: tn.Device) -> None:
    def f(x: tn.Variable) -> tn.Variable:
        assert len(x) == 2 and x.requires_grad and x.device is device
        rows = list(x)
        return rows[0] * x.shape[1] if x.ndim == 2 and x.dtype == np.float64 else x

    close(tn.compile(f)(variable()).array, 2 * X[0])


def test_writing_to_a_captured_variable_is_repeated() -> None:
    state = variable(np.zeros((2, 2)), requires_grad=False)
    eager = variable(np.zeros((2, 2)), requires_grad=False)

    def f(state: tn.Variable, x: tn.Variable) -> tn.Variable:
        state[0] = x[0].detach()
        state[1] = state[1] + 1
        return state * 2

    fast, counted = compiled(lambda x: f(state, x))
    for k in (1.0, 2.0, 3.0):
        ours, theirs = fast(variable(k * X)), f(eager, variable(k * X))
        close(ours.array, theirs.array)
        close(state.array, eager.array)
        assert state.requires_grad is eager.requires_grad is False
    assert counted.calls == 1


def test_writing_a_result_with_a_gradient_to_a_captured_variable() -> None:
    state, eager = (variable(np.zeros((2, 2)), requires_grad=False) for _ in range(2))

    def f(state: tn.Variable, x: tn.Variable) -> None:
        state[0] = x[0]

    fast = tn.compile(lambda x: f(state, x))
    gradients = []
    for function, target in ((fast, state), (lambda x: f(eager, x), eager)):
        x = variable()
        function(x)
        assert target.requires_grad and target.creator_node is not None
        fn.sum(target * W).backward()
        gradients.append(x.grad)
    close(gradients[0], gradients[1])


def test_updating_a_leaf_without_backprop_is_repeated() -> None:
    leaf = variable()

    def f(x: tn.Variable) -> None:
        nonlocal leaf
        with tn.no_backprop_mode():
            leaf += x

    fast, counted = compiled(f)
    for k in range(1, 4):
        fast(variable())
        close(leaf.array, (1 + k) * X)
        assert leaf.requires_grad and leaf.creator_node is None
    assert counted.calls == 1


def test_writing_to_an_argument_is_an_error() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        x[0] = 5.0
        return x

    x = variable(requires_grad=False)
    with pytest.raises(TraceError, match=r"f: the argument x was written to.*identity\(x\)"):
        tn.compile(f)(x)
    close(x.array, X)
    with pytest.raises(GraphError, match="a leaf that requires a gradient"):
        tn.compile(f)(variable())

    def g(x: tn.Variable) -> tn.Variable:
        x = fn.identity(x)
        x[0] = 5.0
        return x

    close(tn.compile(g)(x).array, [[5.0, 5.0], [3.0, 4.0]])


def test_a_write_to_an_argument_by_another_name_is_refused() -> None:
    """The function knows the Variable twice, as an argument and by a closure."""
    held, x = (tn.Variable(np.array(v, "f4"), requires_grad=False) for v in ([1, 2], [3, 4]))
    weight = tn.nn.Parameter(np.array([5, 6], "f4"))
    optimizer = tn.nn.SGD([weight], lr=0.5)

    def adding(a: tn.Variable) -> tn.Variable:
        nonlocal held
        held += 1
        return a * 2

    def storing(a: tn.Variable, b: tn.Variable) -> tn.Variable:
        held[...] = b * 2 + held
        return a * b

    def replacing(a: tn.Variable) -> tn.Variable:
        held.array = tn.as_array(held * 2)
        return a * 2

    def training(a: tn.Variable) -> tn.Variable:
        weight.cleargrad()
        fn.sum(weight * weight).backward()
        optimizer.update()
        return a.detach() * 2

    cases = [(adding, held, ()), (storing, held, (x,)), (replacing, held, ())]
    for function, argument, others in [*cases, (training, weight, ())]:
        for is_first in (True, False):
            compiled = tn.compile(function)
            if not is_first:  # another Variable of the same signature is welcome
                other = tn.Variable(np.ones(2, "f4"), requires_grad=argument.requires_grad)
                compiled(other, *others)
            before = argument.array.copy()
            for _ in range(2):
                with pytest.raises(TraceError, match=r": the argument a was written to"):
                    compiled(argument, *others)
            np.testing.assert_array_equal(argument.array, before)


def test_giving_a_captured_variable_an_array_is_an_error() -> None:
    state = variable()

    def f(x: tn.Variable) -> tn.Variable:
        y = x * state
        state.array = np.zeros((2, 2))
        return y

    def g(x: tn.Variable) -> tn.Variable:
        y = x * state
        state.array = np.zeros(5)
        return y

    for function in (f, g):
        fast = tn.compile(function)
        for _ in range(2):
            with pytest.raises(TraceError, match="was given an array that no recorded function"):
                fast(variable())
            close(state.array, X)
    assert not thread_state.hooks
    close(tn.compile(lambda x: x * state)(variable()).array, X * X)


def test_backward_inside_is_an_error() -> None:
    parameter = variable(W)

    def f(x: tn.Variable) -> tn.Variable:
        y = fn.sum(x * parameter)
        y.backward()
        return y

    for x, who in (
        (variable(requires_grad=False), "the gradient of c0 .shape .* was changed"),
        (variable(), "the gradient of the argument x was changed"),
    ):
        for _ in range(2):
            with pytest.raises(TraceError, match=f"f: {who}.*tinynode.grad") as caught:
                tn.compile(f)(x)
            assert ("or pass x.detach()" in str(caught.value)) == ("argument" in who)
            assert parameter.grad is None and x.grad is None


def test_unchaining_is_an_error() -> None:
    def one(x: tn.Variable) -> tn.Variable:
        h = fn.exp(x)
        h.unchain()
        return fn.sum(h * x)

    def behind(x: tn.Variable) -> tn.Variable:
        h = fn.exp(x)
        y = fn.sum(h * x)
        h.unchain_backward()
        return y

    for function in (one, behind):
        with pytest.raises(TraceError, match=r"t0 \(\(2, 2\), float64\) was unchained.*detach"):
            tn.compile(function)(variable())


class Square(tn.Function):
    def forward(self, inputs: Any) -> Any:
        return (inputs[0] ** 2,)

    def backward(self, inputs: Any, grad_outputs: Any) -> Any:
        return (2 * inputs[0] * grad_outputs[0],)


def test_an_old_style_function_is_an_error() -> None:
    with pytest.raises(TraceError, match="Square is an old-style Function"):
        tn.compile(lambda x: Square()(x))(variable())
    assert not thread_state.hooks


class KeepsAnArray(tn.FunctionNode):
    """As people write a first function: forward leaves something on self for backward."""

    def __init__(self, what: str) -> None:
        self.what = what

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        if self.what == "array":
            self.kept = x
        elif self.what == "private":
            self._kept = x
        elif self.what == "list":
            self.kept = [x]
        elif self.what == "dictionary":
            self.kept = {"x": x}
        elif self.what == "scalar":
            self.kept = x.argmax()
        else:
            self.kept = x.shape
        return (x**2,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (fn.broadcast_to(grad_outputs[0], (2, 2)),)


@pytest.mark.parametrize("what", ["array", "private", "list", "dictionary", "scalar"])
def test_an_array_that_forward_leaves_on_self_is_an_error(what: str) -> None:
    """A net would keep the array of the recording for ever."""
    name = r"_kept" if what == "private" else "kept"
    message = rf"forward of KeepsAnArray leaves \w+.* in self\.{name}, .*retain_inputs"
    with pytest.raises(TraceError, match=message):
        tn.compile(lambda x: KeepsAnArray(what).apply((x,))[0])(variable())
    assert not thread_state.hooks
    close(KeepsAnArray(what).apply((variable(),))[0].array, X**2)


def test_a_shape_that_forward_leaves_on_self_is_a_constant() -> None:
    f = tn.compile(lambda x: fn.sum(KeepsAnArray("shape").apply((x,))[0]))
    for _ in range(3):
        x = variable()
        f(x).backward()
        close(x.grad, np.ones((2, 2)))


def test_an_array_that_a_function_in_backward_leaves_on_self_is_an_error() -> None:
    class Outer(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return KeepsAnArray("array").apply(grad_outputs)

    y = tn.compile(lambda x: fn.sum(Outer().apply((x,))[0]))(variable())
    with pytest.raises(TraceError, match=r"KeepsAnArray leaves .* in self\.kept"):
        y.backward()


def test_an_error_of_ones_own_leaves_everything_usable() -> None:
    state = variable(requires_grad=False)

    class StopError(Exception):
        pass

    def f(x: tn.Variable, stop: bool) -> tn.Variable:
        state[0] = x[0].detach() * 2
        if stop:
            raise StopError
        return state + x

    fast = tn.compile(f)
    for _ in range(2):
        with pytest.raises(StopError):
            fast(variable(), True)
        assert not thread_state.hooks
        close(state.array, X)
    close(fast(variable(), False).array, [[3.0, 6.0], [6.0, 8.0]])
    with pytest.raises(StopError):
        fast(variable(), True)
    close(state.array, [[2.0, 4.0], [3.0, 4.0]])


def test_an_error_at_run_time_names_the_operator() -> None:
    fast = tn.compile(lambda x, i: x[i] * 2)
    indices = np.asarray([0, 1])
    close(fast(variable(), indices).array, 2 * X)
    with pytest.raises(IndexError) as caught:
        fast(variable(), np.asarray([0, 7]))
    assert "raised by this operator of a net" in "".join(caught.value.__notes__)
    close(fast(variable(), indices).array, 2 * X)


def test_several_devices_are_an_error(device: tn.Device) -> None:
    fast = tn.compile(lambda x: fn.exp(x).to_device("strict:device1"))
    with pytest.raises(TraceError, match=f"one device, this one has those of {device}, strict"):
        fast(variable())


def test_dropout_draws_at_each_call() -> None:
    generator = np.random.default_rng(0)
    fast = tn.compile(lambda x: fn.dropout(x, 0.5, generator))
    x = variable(np.ones(1000))
    assert not np.array_equal(fast(x).array, fast(x).array)
    fast(x.detach())
    assert [one.requires_grad for one in fast.recordings] == [True, False]


def test_a_program_saves_and_computes_only_what_gradients_need(device: tn.Device) -> None:
    fast = tn.compile(lambda x, w: fn.exp(fn.split(x, 2)[0] * w))
    x, w = variable(), variable(W[:1])
    fast(x.detach(), w.detach())
    fast(x, w)
    without, program = (recording.program for recording in fast.recordings)
    assert without.gradients == program.gradients == {}
    arrays = (x.raw, w.raw)
    assert [title for _, title, _ in program.described_plans(arrays, "")].count("run:") == 1
    gx, _ = tn.grad([fast(x, w)], [x, w])
    assert gx is not None and not gx.requires_grad
    runs = list(program.described_plans(arrays, "the net"))
    lines = [line for net, _, plan in runs for line in (net, *plan.describe())]
    assert "fill_like" not in "".join(lines)  # no zeros for the output that is not used
    # the plan of the calls before the first gradient is gone, and only the gradient's is left
    assert [title for _, title, _ in runs] == ["run, keeping what a backward reads:", "run:"]
    assert list(program.gradients) == [program.full_key]
    tn.grad([fast(x, w)], [w])
    assert [one.combined for one in program.gradients.values()] == [None, None]
    gy = variable(np.ones((1, 2)))
    tn.grad([fast(x, w)], [x], [gy], enable_double_backprop=True)
    made = [one.combined for one in program.gradients.values() if one.combined is not None]
    assert [one.requires for one in made] == [(True, True, True)]


class LooksAtGradients(tn.FunctionNode):
    """y = x; backward reads the values of the gradient."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 1,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        assert grad_outputs[0].array.shape == (2, 2)
        return (grad_outputs[0] * 1.0,)


def test_a_backward_may_look_at_values() -> None:
    fast = tn.compile(lambda x: LooksAtGradients().apply((x,))[0])
    x = variable()
    (gx,) = tn.grad([fast(x)], [x])
    assert gx is not None and gx.array.tolist() == np.ones((2, 2)).tolist()


def test_a_function_without_inputs_runs_on_the_device_of_its_results(device: tn.Device) -> None:
    fast = tn.compile(lambda: tn.asarray([1.0, 2.0], device=device) * 2.0)
    with Names(), tn.using_device("strict:device1"):
        for _ in range(2):
            assert fast().device is device


# --- trace ---------------------------------------------------------------------------------------


def test_a_trace_names_inputs_parameters_and_outputs(device: tn.Device) -> None:
    weight = tn.Variable(W, name="weight")

    def f(x: tn.Variable, rest: Any, *, bias: tn.Variable) -> Any:
        h = x @ weight + bias
        return {"h": h, "same": h, "x": x, "rest": rest[0]["a"] * 2}

    found = tn.trace(f, variable(), [{"a": variable()}], bias=variable(W[0]))
    assert isinstance(found, Trace) and isinstance(found.net, NetOp)
    assert found.inputs == ["x", "rest_0_a", "bias"]
    assert found.captured == {"weight": weight}
    assert found.outputs == ["t1", "x", "t2"] and found.flags == [True, True, True]
    assert str(found.net).split("\n")[:3] == [
        "f(x, weight, bias, rest_0_a):",
        f"    c0 = constant(output_device={device}, value=array(2.))",
        "    t0 = matmul(x, weight)",
    ]
    scope = Scope({"x": X, "weight": W, "bias": W[0], "rest_0_a": X})
    found.net.run(scope)
    close(scope.find("t1").array, X @ W + W[0])


def test_a_trace_leaves_out_what_no_result_needs() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        fn.exp(x)
        return fn.sin(x)

    assert [op.type for op in tn.trace(f, variable()).net.operators] == ["sin"]


def test_names_do_not_clash() -> None:
    other = tn.Variable(W, name="x")
    another = tn.Variable(W, name="t0")

    found = tn.trace(lambda x: x * other + another, variable())
    names = [*found.inputs, *found.captured, *found.outputs]
    assert len(set(names)) == len(names)
    scope = Scope({"x": X, **found.captured})
    found.net.run(scope)
    close(scope.find(found.outputs[0]).array, X * W + W)


def test_trace_of_raw_arrays_and_numbers() -> None:
    found = tn.trace(lambda x, k, flag: x * k if flag else x, X, 3.0, True)
    assert found.inputs == ["x"] and found.flags == [False]
    scope = Scope({"x": 2 * X})
    found.net.run(scope)
    close(scope.find(found.outputs[0]).array, 6 * X)


LABELS: dict[str, Callable[[tn.Variable, tn.Variable], tn.Variable]] = {
    "sigmoid_cross_entropy": lambda x, t: fn.sigmoid_cross_entropy(x[:, 0], t),
    "softmax_cross_entropy": fn.softmax_cross_entropy,
    "nll": fn.nll,
    "hinge": fn.hinge,
    "embedding": lambda x, t: fn.embedding(t, x[:2]),
    "take": lambda x, t: fn.take(x[:2], t, axis=0),
    "take_along_axis": lambda x, t: fn.take_along_axis(x, t[:, None], axis=1),
    "an index": lambda x, t: x[:2][t],
}


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("name", LABELS)
def test_labels_are_checked_at_each_run(name: str, device: str) -> None:
    with tn.using_device(device):
        x = tn.asarray(np.arange(6.0).reshape((3, 2)))
        good, bad = (tn.asarray(np.array([0, last, 1])) for last in (1, 2))
        fast, function = tn.compile(LABELS[name]), LABELS[name]
        for _ in range(3):
            close(fast(x, good).array, function(x, good).array)
        with pytest.raises((ValueError, IndexError)) as eager:
            function(x, bad)
        with pytest.raises(eager.type):
            fast(x, bad)
        fn.sum(fast(x, good)).backward()


@tn.compile
def at_the_top(x: tn.Variable) -> tn.Variable:
    return x * 2.0


class HasMethod:
    @tn.compile
    def method(self, x: tn.Variable) -> tn.Variable:
        return x * 3.0


def plain(x: tn.Variable) -> tn.Variable:
    return x * 5.0


renamed = tn.compile(plain)
of_a_module = tn.compile(tn.nn.Linear(2, 2))


def test_a_compiled_function_of_a_module_is_pickled_by_its_name() -> None:
    """As every function: pickle needs the name to give the same object."""
    for one in (at_the_top, HasMethod.method):
        assert pickle.loads(pickle.dumps(one)) is one
        assert copy.copy(one) is one
    other = pickle.loads(pickle.dumps(renamed))
    assert other is not renamed and other.function is plain
    close(other(variable()).array, 5 * X)
    layer = pickle.loads(pickle.dumps(of_a_module))
    close(layer.function.weight.array, of_a_module.function.weight.array)
    assert copy.deepcopy(at_the_top) is not at_the_top


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize(
    "name", ["@packed", "w@GRAD", "@0", "@all 9", "@EMPTY@", "\x1b[31mred", "a\nb", "t0", "x"]
)
def test_names_of_variables_disturb_no_net(name: str, device: str) -> None:
    with tn.using_device(device):
        x = tn.asarray(np.ones((3, 2)))
        w, b = (tn.Variable(np.full((2, 2), 0.5), name=n) for n in (name, "w"))
        fast = tn.compile(lambda x: fn.sum(fn.tanh(x @ w + fn.sum(b)) * 2.0))
        for _ in range(3):
            w.cleargrad()
            fast(x).backward()
        expected = w.grad
        w.cleargrad()
        fn.sum(fn.tanh(x @ w + fn.sum(b)) * 2.0).backward()
        close(w.grad, expected)
        text = fast.explain(x)
        assert all(line.isprintable() for line in text.split("\n"))

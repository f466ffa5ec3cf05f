"""A compiled function follows Variables, and copies arrays: also where both are one array.

Each case makes its state anew, once for the eager function and once for the compiled function. The
calls change the arguments, the parameters and the buffers. The results are those of eager code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.errors import TraceError


def variable(*values: float) -> tn.Variable:
    return tn.Variable(np.array(values))


def arguments() -> list[tuple[tn.Variable, tn.Variable]]:
    """Three calls: the first has one Variable twice."""
    v = variable(1.0, 2.0)
    return [(v, v), (variable(1.0, 2.0), variable(10.0, 20.0)), (variable(5.0, 7.0), v)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x.detach() * 2.0 + y,
        lambda x, y: x * 2.0 + y.detach(),
        lambda x, y: tn.asarray(x, requires_grad=False) * 2.0 + y,
        lambda x, y: copy.copy(x) * 2.0 + y,
        lambda x, y: fn.identity(x).detach() * 2.0 + y,
        lambda x, y: fn.identity(x) * y + x.detach() * y.detach(),
    ],
)
def test_one_variable_as_two_arguments(function: Callable[..., tn.Variable]) -> None:
    fast = tn.compile(function)
    for x, y in arguments():
        assert fast(x, y).array.tolist() == function(x, y).array.tolist()


@pytest.mark.parametrize("wrap", [tn.Variable, tn.as_variable, lambda array: array])
def test_a_constant_that_was_the_first_argument(wrap: Callable[[Any], Any]) -> None:
    """An autoencoder: the target is a constant, and the first input as well."""
    target = np.array([1.0, 2.0])
    fast = tn.compile(lambda x: (fn.identity(x) * 3.0 - target) ** 2)
    for array in (target, np.array([5.0, 7.0]), target):
        assert fast(wrap(array)).array.tolist() == ((array * 3.0 - target) ** 2).tolist()


class State:
    """A parameter, a buffer, and what a program may keep of both."""

    def __init__(self) -> None:
        self.w = nn.Parameter(np.array([1.0, 2.0]))
        self.b = nn.Buffer(np.array([3.0, 4.0]))
        self.w0, self.b0 = self.w.array, self.b.array
        self.twin = nn.Parameter(self.w0)
        self.kept = self.w.detach()

    def change(self, k: int) -> None:
        """New arrays, as an optimizer and a running mean assign them."""
        self.w.array, self.b.array = self.w.array * k, self.b.array + k
        self.twin.array = self.twin.array - k


def cut(w: tn.Variable) -> tn.Variable:
    with tn.no_backprop_mode():
        return w * 1.0


OF_STATE: dict[str, Callable[[State, Any], tn.Variable]] = {
    "first weights": lambda s, x: x * s.w + s.w0,
    "first weights first": lambda s, x: x * s.w0 + s.w,
    "first weights wrapped": lambda s, x: x * s.w + tn.as_variable(s.w0),
    "first weights alone": lambda s, x: x * s.w0,
    "first weights after identity": lambda s, x: fn.identity(s.w) * x + s.w0,
    "first weights after a copy": lambda s, x: s.w.detach() * x + s.w0 + s.w,
    "first weights after a cut": lambda s, x: cut(s.w) * x + s.w0,
    "first buffer": lambda s, x: x * s.b + s.b0,
    "detached inside": lambda s, x: x * s.w.detach(),
    "detached inside, then used": lambda s, x: x * s.w.detach() + s.w,
    "used, then detached inside": lambda s, x: x * s.w + s.w.detach(),
    "detached twice": lambda s, x: x * s.w.detach().detach(),
    "buffer detached": lambda s, x: x * s.b.detach(),
    "detached outside": lambda s, x: x * s.w + s.kept,
    "detached outside alone": lambda s, x: x * s.kept,
    "without requires_grad": lambda s, x: x * tn.asarray(s.w, requires_grad=False),
    "copied": lambda s, x: x * copy.copy(s.w),
    "a target network": lambda s, x: x * s.w - s.twin,
    "a target network detached": lambda s, x: x * s.w - s.twin.detach(),
    "a target network and first weights": lambda s, x: x * s.w - s.twin + s.w0,
    "differentiated": lambda s, x: x * tn.value_and_grad(lambda w: fn.sum(w**3))(s.w)[1] + s.w0,
    "returned": lambda s, x: s.w.detach(),
}


@pytest.mark.parametrize("first_is_state", [False, True], ids=["other", "the weights"])
@pytest.mark.parametrize("function", OF_STATE.values(), ids=OF_STATE)
def test_arrays_of_parameters(
    function: Callable[[State, Any], tn.Variable], first_is_state: bool
) -> None:
    """The second form gives the array of the parameter as the first argument too."""
    ours, theirs = State(), State()
    fast = tn.compile(lambda x: function(ours, x))
    for k in (1, 2, 3):
        pair = []
        for state, call in ((ours, fast), (theirs, lambda x: function(theirs, x))):
            is_same = first_is_state and k == 1
            x = tn.Variable(state.w0 if is_same else np.array([5.0 * k, 7.0]))
            y = call(x)
            fn.sum(y * 1.0 if y.requires_grad else y * x).backward()
            found = [y.array, x.grad, state.w.grad, state.twin.grad]
            pair.append([None if g is None else g.tolist() for g in found])
            state.w.cleargrad()
            state.twin.cleargrad()
            state.change(k)
        assert pair[0] == pair[1]


@pytest.mark.parametrize(
    ("function", "second"),
    [
        (lambda s, x: x * s.w + s.w0, [6.0, 10.0]),
        (lambda s, x: x * s.w + s.w.detach(), [10.0, 16.0]),
    ],
)
def test_a_saved_net_has_the_constant(function: Any, second: list[float]) -> None:
    state = State()
    found = tn.trace(lambda x: function(state, x), variable(1.0, 1.0))
    ((w, _),) = found.captured.items()
    net = tn.net.loads(tn.net.dumps(found.net))
    for values, expected in (([1.0, 2.0], [2.0, 4.0]), ([5.0, 8.0], second)):
        scope = tn.net.Scope({"x": np.ones(2), w: np.array(values)})
        net.run(scope)
        assert scope.find(found.outputs[0]).array.tolist() == expected


@pytest.mark.parametrize("write", ["item", "sum"])
def test_a_copy_of_a_parameter_is_written_to(write: str) -> None:
    p = tn.Variable(np.asarray([1.0, 2.0]))

    def f(x: tn.Variable) -> tn.Variable:
        with tn.no_backprop_mode():
            y = fn.identity(p)
            if write == "item":
                y[0] = 7.0
            else:
                y += 10.0
        return y * x

    compiled, x = tn.compile(f), tn.Variable(np.ones(2))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x).array, f(x).array)


def test_an_array_from_before_is_not_written_as_a_computed_value() -> None:
    """Buffer ``b`` gets the first weights in eager code: a net cannot repeat the assignment."""
    state = State()

    def f(x: tn.Variable) -> tn.Variable:
        state.b.array = state.w0
        return x * state.w

    with pytest.raises(TraceError, match="given an array that no recorded function computed"):
        tn.compile(f)(variable(1.0, 1.0))
    assert state.b.array is state.b0


def test_a_new_array_of_a_computed_variable_is_refused() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        y = tn.functions.exp(x) * 2.0
        y.array = np.array([9.0, 9.0])
        return y + x

    with pytest.raises(TraceError, match="was computed in the function and is given a new array"):
        tn.compile(f)(variable(1.0, 1.0))


def test_a_constant_is_a_copy() -> None:
    """Later writes to a captured array are not seen, as the documentation says."""
    w0 = np.array([1.0, 2.0])
    w = nn.Parameter(w0)
    fast = tn.compile(lambda x: x * w + w0)
    x = variable(1.0, 1.0)
    assert fast(x).array.tolist() == [2.0, 4.0]
    w.array = np.array([0.0, 0.0])
    w0[:] = 100.0
    assert fast(x).array.tolist() == [1.0, 2.0]

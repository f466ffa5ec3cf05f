"""The gradient of each leaf has memory of its own: an in-place change reaches no other array.

Functions such as a sum hand one gradient to several inputs, or a read-only view. So a backward
pass copies a gradient that shares memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn


def leaf(*values: float) -> tn.Variable:
    return tn.Variable(np.array(values))


CASES: dict[str, Callable[..., tn.Variable]] = {
    "sum of two": lambda a, b: a + b,
    "sum of two, twice": lambda a, b: (a + b) + (a + b),
    "one leaf": lambda a, b: fn.identity(a) + b * 2.0,
    "views": lambda a, b: fn.concat([a, b]).reshape((2, 2)),
    "two views of one": lambda a, b: a.reshape((1, 2)) + b.reshape((2, 1)).T,
    "broadcast": lambda a, b: a + fn.sum(b),
    "stacked": lambda a, b: fn.stack([a, b]),
    "transposed": lambda a, b: (a.reshape((2, 1)) @ b.reshape((1, 2))).T,
    "where": lambda a, b: fn.where(np.array([True, False]), a, b),
}


def arrays_of(*variables: Any) -> list[Any]:
    return [x.grad for x in variables if x.grad is not None]


def check_memory(*arrays: Any) -> None:
    for array in arrays:
        assert array.flags.writeable and (0 not in array.strides or array.size < 2)
    for one, other in itertools.combinations(arrays, 2):
        assert not np.may_share_memory(one, other)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("retain_grad", [False, True], ids=["", "retain_grad"])
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_gradients_share_no_memory(
    function: Callable[..., tn.Variable], device: str, retain_grad: bool, compiled: bool
) -> None:
    call = tn.compile(function) if compiled else function
    with tn.using_device(device):
        for _ in range(3):
            a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
            y = call(a, b)
            seed = np.ones(y.shape)
            y.grad = seed
            y.backward(retain_grad=retain_grad)
            check_memory(*arrays_of(a, b, y), *(() if retain_grad else (seed,)))
            expected = b.grad.copy()
            a.grad *= 0.1
            np.testing.assert_array_equal(b.grad, expected)
            b.grad *= 0.1
            assert (seed == 1.0).all()


@pytest.mark.parametrize("pass_of", ["backward", "joint"])
def test_a_given_gradient_stays_the_callers(pass_of: str) -> None:
    a, seed = leaf(1.0, 2.0), np.ones(2)
    y = fn.identity(a)
    if pass_of == "backward":
        y.grad = seed
        y.backward()
    else:
        tn.core.backprop.backward([y], [tn.Variable(seed)])
    a.grad *= 5.0
    assert seed.tolist() == [1.0, 1.0] and a.grad.tolist() == [5.0, 5.0]


def test_the_gradient_of_a_sum_can_be_scaled() -> None:
    w = leaf(1.0, 2.0)
    fn.sum(w).backward()
    w.grad *= 0.5
    assert w.grad.tolist() == [0.5, 0.5]


def test_a_function_may_return_an_input_as_its_gradient() -> None:
    class HalfSquare(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] ** 2 / 2,)

        def backward(self, indexes, grad_outputs):
            return self.get_retained_inputs()

    x = leaf(1.0, 2.0)
    fn.sum(HalfSquare().apply((x,))[0]).backward()
    x.grad *= 0.1
    assert x.array.tolist() == [1.0, 2.0] and x.grad.tolist() == [0.1, 0.2]
    assert x.grad_var is not x


def test_a_function_may_return_a_view_of_an_input_as_its_gradient() -> None:
    class HalfSquare(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] ** 2 / 2,)

        def backward(self, indexes, grad_outputs):
            (x,) = self.get_retained_inputs()
            return (tn.Variable(x.array[:], requires_grad=False),)

    x = leaf(1.0, 2.0)
    fn.sum(HalfSquare().apply((x,))[0]).backward()
    x.grad *= 0.1
    assert x.array.tolist() == [1.0, 2.0]


def test_an_old_style_function_may_return_an_input_as_its_gradient() -> None:
    class HalfSquare(tn.Function):
        def forward(self, inputs):
            return (inputs[0] ** 2 / 2,)

        def backward(self, inputs, grad_outputs):
            return (inputs[0],)

    x = leaf(1.0, 2.0)
    fn.sum(HalfSquare()(x)).backward()
    x.grad *= 0.1
    assert x.array.tolist() == [1.0, 2.0]


def test_addgrad_copies() -> None:
    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    b.grad = np.ones(2)
    a.addgrad(b)
    a.grad *= 0.0
    assert b.grad.tolist() == [1.0, 1.0]
    a.addgrad(b)
    assert a.grad.tolist() == [1.0, 1.0]


def test_gradients_that_a_net_computes() -> None:
    """``backward`` inside of a compiled function writes gradients at each run."""
    a, b, x = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(1.0, 1.0).detach()

    @tn.compile
    def step(x: tn.Variable) -> tn.Variable:
        a.cleargrad()
        b.cleargrad()
        loss = fn.sum((a + b) * x)
        loss.backward()
        return loss

    for _ in range(3):
        step(x)
        check_memory(a.grad, b.grad, x.array)
        a.grad *= 0.1
        assert b.grad.tolist() == [1.0, 1.0]


def test_a_gradient_with_its_own_memory_is_not_copied() -> None:
    """A copy would cost time and memory."""
    given: list[Any] = []

    class Product(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] @ inputs[1],)

        def backward(self, indexes, grad_outputs):
            given[:] = [tn.Variable(np.ones((2, 3)).T), tn.Variable(np.ones((2, 1)))]
            return tuple(given)

    a, b = tn.Variable(np.ones((3, 2))), tn.Variable(np.ones((2, 1)))
    fn.sum(Product().apply((a, b))[0]).backward()
    assert a.grad_var is given[0] and b.grad_var is given[1]

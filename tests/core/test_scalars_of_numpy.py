"""A scalar of NumPy, such as ``np.float64(1)``, counts as an array without axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn

F = tn.functions


def cube(x: Any) -> Any:
    return x * x * x


def pullback(seed: Any) -> Any:
    return tn.vjp(cube, tn.asarray(np.array(2.0)))[1](seed)


def gradient_by_seed(seed: Any) -> Any:
    x = tn.Variable(np.array(2.0))
    y = cube(x)
    y.grad = seed
    y.backward()
    return x.grad


class Doubled(tn.FunctionNode):
    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2,)


CALLS: dict[str, Callable[[Any], Any]] = {
    "Variable": tn.Variable,
    "Parameter": tn.nn.Parameter,
    "asarray": tn.asarray,
    "as_variable": tn.as_variable,
    "as_array": tn.as_array,
    "exp": F.exp,
    "sum": F.sum,
    "add two": lambda x: F.add(x, x),
    "maximum": lambda x: F.maximum(x, x),
    "stack": lambda x: F.stack([x, x]),
    "where": lambda x: F.where(x > 1, x, x),
    "where beside": lambda x: F.where(x > 1, tn.asarray(np.array(1.0)), x),
    "apply": lambda x: Doubled().apply((x,))[0],
    "checkpoint": lambda x: tn.checkpoint(cube, x),
    "gradient": lambda x: tn.gradient(cube)(x),
    "hessian": lambda x: tn.hessian(cube)(x),
    "value_and_grad": lambda x: tn.value_and_grad(cube)(x)[1],
    "vjp": lambda x: tn.vjp(cube, x)[1](x)[0],
    "jvp": lambda x: tn.jvp(cube, (x,), (x,))[1],
    "hvp": lambda x: tn.hvp(cube, x, x),
    "linearize": lambda x: tn.linearize(cube, x)[1](x),
    "pullback": lambda x: pullback(x)[0],
    "seed": gradient_by_seed,
    "compiled": lambda x: tn.compile(F.exp)(x),
    "compiled gradient": lambda x: tn.compile(tn.gradient(cube))(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_scalar_of_numpy_is_an_array(name: str) -> None:
    scalar, array = CALLS[name](np.float64(2.0)), CALLS[name](np.array(2.0))
    np.testing.assert_array_equal(tn.to_host(scalar), tn.to_host(array))
    assert tn.to_host(scalar).dtype == tn.to_host(array).dtype
    assert type(scalar) is type(array)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_step_without_an_optimizer_keeps_an_array(device: str) -> None:
    w = tn.asarray(np.array(1.0), device=device, requires_grad=True)
    (w * 3.0).backward()
    w.array = w.array - 0.5 * w.grad
    assert isinstance(w.array, np.ndarray) and w.array.shape == () and w.device.name == device
    np.testing.assert_array_equal(w.array, -0.5)
    w.grad = np.float64(4.0)
    assert isinstance(w.grad, np.ndarray) and w.grad == 4.0


def test_a_scalar_goes_to_the_device_of_the_variable_beside() -> None:
    x = tn.asarray(np.array(1.0), device="fast")
    assert F.where(np.bool_(False), x, np.float64(2.0)).device is x.device
    assert F.stack([np.float64(2.0), x]).device is x.device
    assert Doubled().apply((np.float64(2.0),))[0].device is tn.get_device()


@pytest.mark.parametrize("wrong", [np.str_("a"), np.datetime64("2020-01-01"), np.void(b"a")])
def test_scalars_that_are_no_numbers_stay_refused(wrong: Any) -> None:
    for take in (tn.Variable, tn.nn.Parameter, F.exp, tn.as_variable):
        with pytest.raises((TypeError, ValueError)):
            take(wrong)

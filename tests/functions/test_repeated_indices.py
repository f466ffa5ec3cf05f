"""Writes with a repeated index: the gradient belongs to the value that stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn

F = tn.functions
FACTORS = np.array([1.0, 10.0, 100.0])


def a_number(x: Any, s: Any) -> Any:
    y = x * 1.0
    y[[0, 0]] = s[0]
    return y


def several(x: Any, s: Any) -> Any:
    y = x * 1.0
    y[[0, 2, 0, 2, 0]] = s
    return y


def added(x: Any, s: Any) -> Any:
    y = x * 1.0
    y[[0, 0]] += s[:2]
    return y


def index_added(x: Any, s: Any) -> Any:
    return F.index_add(x, [0, 2, 0, 2, 0], s)


def scatter_added(x: Any, s: Any) -> Any:
    return F.scatter_add(x, tn.asarray(np.array([0, 2, 0, 2, 0])), s)


# the function, its value, and the gradients of its sum by FACTORS, for x = 0, 1, 2 and s = 3 .. 7
WRITES = [
    (a_number, [3, 1, 2], [0, 10, 100], [1, 0, 0, 0, 0]),
    (several, [7, 1, 6], [0, 10, 0], [0, 0, 0, 100, 1]),
    (added, [4, 1, 2], [1, 10, 100], [0, 1, 0, 0, 0]),
    (index_added, [15, 1, 12], FACTORS, [1, 100, 1, 100, 1]),
    (scatter_added, [15, 1, 12], FACTORS, [1, 100, 1, 100, 1]),
]


def vmapped(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, s: tn.vmap(f)(x[None], s[None])[0]


RUNS: list[Callable[..., Any]] = [
    lambda f: f,
    lambda f: tn.compile(f),
    vmapped,
    lambda f: tn.compile(vmapped(f)),
    lambda f: lambda x, s: tn.checkpoint(f, x, s),
]


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("write", "value", "gx", "gs"), WRITES)
def test_the_value_that_stands_has_the_gradient(
    write: Any, value: Any, gx: Any, gs: Any, run: Any, device: str
) -> None:
    with tn.using_device(device):
        x, s = tn.asarray([0.0, 1.0, 2.0], "float64"), tn.asarray([3.0, 4.0, 5.0, 6.0, 7.0])
        s = s.astype("float64")
        y = run(write)(x, s)
        factors = tn.asarray(FACTORS)
        gradients = tn.grad([F.sum(y * factors)], [x, s])
        squares = tn.grad([F.sum(run(write)(x, s) ** 2 / 2)], [x, s], enable_double_backprop=True)
        second = tn.grad([F.sum(squares[1])], [s])[0]
    np.testing.assert_allclose(y.array, value)
    np.testing.assert_allclose(gradients[0].array, gx)
    np.testing.assert_allclose(gradients[1].array, gs)
    at = {"several": [0, 0, 0, 1, 1], "a_number": [1, 0, 0, 0, 0], "added": [0, 1, 0, 0, 0]}
    if write.__name__ in at:
        np.testing.assert_allclose(second.array, at[write.__name__])


def test_tangents_follow_the_value_that_stands() -> None:
    x, s = tn.asarray(np.zeros(3)), tn.asarray(np.arange(5.0))
    dx, ds = tn.asarray(np.array([1.0, 2.0, 3.0])), tn.asarray(np.array([4.0, 5.0, 6.0, 7.0, 8.0]))
    _, tangent = tn.jvp(several, (x, s), (dx, ds))
    np.testing.assert_allclose(tangent.array, [8.0, 2.0, 7.0])

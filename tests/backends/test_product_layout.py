"""Products in plans of the fast path: the longer side of a matrix comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode_fast.lowering import free_matrices
from tinynode_fast.native import build


def draw(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    """Two layers; the hidden values may lie in columns, the result may not."""
    return fn.relu(fn.linear(x, w, b)) @ v


def rows(x: Any, w: Any, b: Any, v: Any) -> Any:
    """The softmax reads whole rows."""
    return fn.softmax(fn.linear(x, w, b)) @ v


def values_of(function: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    """The result and the gradients; the third call runs finished plans."""
    variables = [tn.asarray(array, device="fast") for array in arrays]
    for _ in range(3):
        for variable in variables:
            variable.cleargrad()
        y = function(*variables)
        fn.sum(y * y).backward()
        build.wait()
    return [y.array, *[variable.grad for variable in variables]]


def free_of(function: Callable[..., Any], arrays: list[Any]) -> set[str]:
    """The types of the operators with a free result."""
    net = tn.trace(function, *[tn.asarray(array, device="fast") for array in arrays]).net
    operators = net.flattened()
    free = free_matrices(operators, operators[-1].output_names)
    return {one.type for one in operators if one.output_names[0] in free}


@pytest.mark.parametrize("compiler", ["none", "auto"])
@pytest.mark.parametrize("batch", [1, 2, 5, 40])
@pytest.mark.parametrize("function", [layers, rows])
def test_compiled_layers_equal_eager_ones(
    function: Callable[..., Any], batch: int, compiler: str
) -> None:
    arrays = [draw(batch, 6), draw(9, 6), draw(9), draw(9, 12)]
    with tn.using_config(compiler=compiler):
        found = values_of(tn.compile(function), arrays)
    for actual, expected in zip(found, values_of(function, arrays), strict=True):
        assert actual.shape == expected.shape and actual.flags.c_contiguous
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_readers_of_rows_keep_the_rows_together() -> None:
    arrays = [draw(2, 6), draw(9, 6), draw(9), draw(9, 12)]
    assert free_of(layers, arrays) == {"linear", "relu"}
    assert free_of(rows, arrays) == {"softmax"}  # the product alone reads the softmax


def test_the_longer_side_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []
    real = np.matmul

    def noted(x: Any, y: Any, *out: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return real(x, y, *out)

    monkeypatch.setattr(np, "matmul", noted)
    compiled = tn.compile(layers)
    with tn.using_config(compiler="none"), tn.no_backprop_mode():
        for batch in (3, 40):
            arrays = [draw(batch, 6), draw(9, 6), draw(9), draw(9, 12)]
            for _ in range(2):  # the second call runs the plan
                compiled(*[tn.asarray(array, device="fast") for array in arrays])
    assert ((9, 6), (6, 3)) in shapes, "w x'"
    assert ((40, 6), (6, 9)) in shapes, "x w'"

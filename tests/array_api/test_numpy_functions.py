"""NumPy's functions called with Variables: reductions that skip NaN, and the cures of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.array_api.numpy_functions import FUNCTIONS as FUNCTIONS_OF_NUMPY
from tinynode.array_api.numpy_functions import _refused

FUNCTIONS = [np.nansum, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nancumsum]
VALUES = np.array([[1.0, np.nan, 3.5, -0.5], [2.0, 5.0, -1.0, np.nan], [0.3, 4.0, 1.0, 2.2]])


def weighted(y: Any) -> Any:
    return y * np.cos(np.arange(y.size) + 1.0).reshape(y.shape)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_value_and_gradient(function: Any, axis: Any) -> None:
    x = tn.asarray(VALUES, requires_grad=True)
    y = function(x, axis=axis)
    np.testing.assert_allclose(y.array, function(VALUES, axis=axis))
    tn.functions.sum(weighted(y)).backward()
    expected = np.zeros_like(VALUES)
    for place in zip(*np.nonzero(np.isfinite(VALUES)), strict=True):
        high, low = VALUES.copy(), VALUES.copy()
        high[place] += 1e-6
        low[place] -= 1e-6
        pair = [weighted(function(one, axis=axis)).sum() for one in (high, low)]
        expected[place] = (pair[0] - pair[1]) / 2e-6
    np.testing.assert_allclose(x.grad, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("function", [np.nanvar, np.nanstd])
def test_options_of_the_variance(function: Any) -> None:
    x = tn.asarray(VALUES)
    y = function(x, axis=1, ddof=1, keepdims=True)
    np.testing.assert_allclose(y.array, function(VALUES, axis=1, ddof=1, keepdims=True))


def test_columns_are_stacked() -> None:
    x = tn.asarray([1.0, 2.0], dtype="float64", requires_grad=True)
    y = np.column_stack([x, x * x, tn.asarray(np.eye(2))])
    np.testing.assert_array_equal(y.array, np.column_stack([[1.0, 2.0], [1.0, 4.0], np.eye(2)]))
    tn.functions.sum(y).backward()
    np.testing.assert_array_equal(x.grad, [3.0, 5.0])


@pytest.mark.parametrize("function", FUNCTIONS_OF_NUMPY, ids=lambda one: one.__name__)
def test_the_cure_of_a_refused_argument_can_be_written(function: Any) -> None:
    error = _refused(f"np.{function.__name__}", FUNCTIONS_OF_NUMPY[function], "out")
    cure = str(error).partition("; write ")[2].partition(" with ")[0]
    module, _, name = cure.rpartition(".")
    known = {"tn.functions": tn.functions, "tn.functions.linalg": tn.functions.linalg, "np": np}
    assert hasattr(known[module], name), cure

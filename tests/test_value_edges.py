"""Values at edges: NaN in maxima, infinite scores, masks without an axis, byte order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn

INF, NAN = math.inf, math.nan
on_each_device = pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])


def variable(values: Any, device: str = "numpy") -> tn.Variable:
    return tn.asarray(np.asarray(values, np.float64), device=device)


def host(x: Any) -> np.ndarray:
    return tn.to_host(x.array)


# --- NaN in maxima, as in PyTorch (amax) and JAX -------------------------------------------------


@on_each_device
@pytest.mark.parametrize("f", [fn.max, fn.min])
@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_the_gradient_of_an_extremum_that_is_nan_is_nan(f: Any, way: str, device: str) -> None:
    x = variable([[1.0, NAN, 3.0], [2.0, 2.0, 2.0]], device)

    def along_rows(x: tn.Variable) -> tn.Variable:
        return f(x, axis=1)

    y = (tn.compile(along_rows) if way == "compiled" else along_rows)(x)
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    np.testing.assert_allclose(host(gx), [[NAN] * 3, [1 / 3] * 3], rtol=1e-15)
    (ggx,) = tn.grad([gx], [x])
    assert ggx is None or not np.any(host(ggx)[1])


@on_each_device
def test_the_gradient_of_a_global_maximum_that_is_nan_is_nan(device: str) -> None:
    x = variable([[[[1.0, NAN]], [[2.0, 3.0]]]], device)
    (gx,) = tn.grad([fn.global_max_pool2d(x)], [x])
    np.testing.assert_array_equal(host(gx), [[[[NAN, NAN]], [[0, 1]]]])


@on_each_device
@pytest.mark.parametrize("copies", [1, 600])  # the kernel of ``fast`` begins at 4,096 elements
def test_the_gradient_of_max_pooling_goes_to_nan(copies: int, device: str) -> None:
    x = variable([[[[1.0, NAN, 3.0, 2.0, 4.0, 4.0, NAN, NAN]]] * copies], device)
    y = fn.max_pool2d(x, (1, 4), (1, 2), (0, 2))
    np.testing.assert_array_equal(host(y)[0, -1, 0], [NAN, NAN, 4, NAN, NAN][: y.shape[3]])
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx)[0, -1, 0], [0, 2, 0, 0, 1, 0, 0, 2])


# --- infinite scores -----------------------------------------------------------------------------


@on_each_device
def test_sigmoid_cross_entropy_of_infinite_scores(device: str) -> None:
    x = variable([INF, INF, -INF, -INF, NAN], device)
    labels = [0.0, 1.0, 0.0, 1.0, 0.0]
    with np.errstate(invalid="raise"):
        y = fn.sigmoid_cross_entropy(x, variable(labels, device), "none")
    np.testing.assert_array_equal(host(y), [INF, 0, 0, INF, NAN])
    (gx,) = tn.grad([y], [x])
    np.testing.assert_array_equal(host(gx), [1, 0, 0, -1, NAN])


# --- a mask without an axis ----------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize("chosen", [True, False])
def test_a_mask_without_an_axis_gives_one_element_or_none(chosen: bool, device: str) -> None:
    x, mask = variable(3.0, device), tn.asarray(np.array(chosen), device=device)
    for given in (mask, mask.array):
        y = x[given]
        np.testing.assert_array_equal(host(y), [3.0] if chosen else [])
        (gx,) = tn.grad([fn.sum(y * y)], [x], enable_double_backprop=True)
        assert host(gx) == 6.0 * chosen
        (ggx,) = tn.grad([gx], [x])
        assert host(ggx) == 2.0 * chosen
        if not device.startswith("strict"):  # array_api_strict writes by masks on its CPU only
            y = variable(3.0, device) * 1.0
            y[given] = 7.0
            assert host(y) == (7.0 if chosen else 3.0)


@on_each_device
def test_a_mask_without_an_axis_adds_an_axis(device: str) -> None:
    x = variable([1.0, 2.0], device)
    y = x[tn.asarray(np.array(True), device=device)]
    np.testing.assert_array_equal(host(y), [[1.0, 2.0]])
    assert x[tn.asarray(np.array(False), device=device)].shape == (0, 2)
    (gx,) = tn.grad([fn.sum(y * y)], [x])
    np.testing.assert_array_equal(host(gx), [2.0, 4.0])


# --- byte order ----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_big_endian_arrays_are_trained_in_the_order_of_the_machine(device: str) -> None:
    other = np.dtype(np.float32).newbyteorder()
    with tn.using_device(device):
        for x in (
            tn.Variable(np.ones(3, other)),
            tn.asarray(np.ones(3, other)),
            nn.Parameter(np.ones(3, other)),
        ):
            fn.sum(x * x).backward()
            assert x.dtype == np.float32 and x.dtype.isnative
            np.testing.assert_array_equal(x.grad, [2, 2, 2])
            x.array = np.full(3, 2, other)
            x.cleargrad()
            fn.sum(x * np.ones(3, other)).backward()
            assert x.dtype.isnative and x.grad.dtype.isnative

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
def test_the_first_factor_of_a_scan_has_no_gradient(device: str) -> None:
    """Also beside an infinite gradient: s_0 = b_0."""
    a, gs = variable([2.0, 3.0], device), variable([INF, 1.0], device)
    states = fn.LinearScan(0).apply((a, variable([2.0, 3.0], device)))[0]
    (ga,) = tn.grad([states], [a], [gs])
    np.testing.assert_array_equal(host(ga), [0.0, 2.0])


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
    with pytest.raises(ValueError, match=r"copy=False, but the byte order of ndarray"):
        tn.asarray(np.ones(3, other), copy=False)


# --- the page of departures ----------------------------------------------------------------------


def test_defaults_on_the_page_of_departures() -> None:
    x = variable([[-1.0, 2.0], [3.0, 1.0]])
    np.testing.assert_allclose(host(fn.sum(fn.softmax(x), axis=-1)), [1, 1], rtol=1e-12)
    np.testing.assert_allclose(host(fn.sum(fn.exp(fn.log_softmax(x)), axis=-1)), [1, 1])
    assert fn.concat([x, x]).shape == (4, 2)
    np.testing.assert_allclose(host(fn.leaky_relu(x))[0, 0], -0.01)
    np.testing.assert_allclose(host(fn.hard_sigmoid(x))[0, 0], 0.5 - 1 / 6)
    np.testing.assert_allclose(
        host(fn.batch_norm(x, None, None))[0, 0], -2 / math.sqrt(4 + 1e-5), rtol=1e-12
    )
    weights, labels = variable([1.0, 3.0]), np.array([0, 1])
    by_row = host(fn.softmax_cross_entropy(x, labels, "none", class_weight=weights))
    mean = fn.softmax_cross_entropy(x, labels, class_weight=weights)
    np.testing.assert_allclose(host(mean), by_row.sum() / 4, rtol=1e-12)
    assert fn.max_pool2d(variable(np.ones((1, 1, 5, 5))), 2).shape == (1, 1, 2, 2)
    huber = fn.huber(x, variable([[0.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(host(huber), np.mean([0.5, 1.5, 2.5, 0.5]))
    with tn.using_config(train=True):
        tn.seed(0)
        first = host(fn.dropout(x))
        tn.seed(0)
        np.testing.assert_array_equal(host(fn.dropout(x)), first)


def test_adam_adds_eps_after_the_correction() -> None:
    p = nn.Parameter(np.zeros(1))
    p.grad = np.full(1, 1e-3)
    nn.Adam([p], lr=1.0, eps=1e-3).update()
    np.testing.assert_allclose(p.array, [-0.5], rtol=1e-12)


def test_dtypes_promote_in_arithmetic_and_in_joins() -> None:
    x, y = variable(np.eye(2)), tn.asarray(np.eye(2, dtype=np.float32))
    for f in (fn.add, fn.matmul, fn.mean_squared_error, fn.where):
        z = f(x > 0, x, y) if f is fn.where else f(x, y)
        gx, gy = tn.grad([z], [x, y])
        assert (z.dtype, gx.dtype, gy.dtype) == (np.float64, np.float64, np.float32)
    attention = fn.scaled_dot_product_attention(y, x, y)
    assert attention.dtype == np.float64
    for z in (fn.concat([y, x]), fn.stack([y, x]), fn.add_all(y, x)):
        gx, gy = tn.grad([z], [x, y])
        assert (z.dtype, gx.dtype, gy.dtype) == (np.float64, np.float64, np.float32)
    assert host(fn.sum(x, axis=[0, 1])) == 2
    np.testing.assert_array_equal(host(x[np.array([0, 1]), np.array([-1, 0])]), [0, 0])


class Forgotten(tn.FunctionNode):
    """y = x, without a backward."""

    def forward(self, inputs: Any) -> Any:
        return inputs


def test_explain_grad_names_a_function_without_backward() -> None:
    x = variable([1.0])
    y = Forgotten().apply((x,))[0]
    y.backward()
    assert x.grad is None and "Forgotten" in x.explain_grad(y)


@pytest.mark.parametrize("axis", [(), 1, (1, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_standard_deviation_of_one_element_has_no_slope(axis: Any, dtype: str) -> None:
    x = tn.Variable(np.array([[[3.0]], [[-1.0]]], dtype=dtype))
    gradient = tn.gradient(lambda x: fn.sum(fn.std(x, axis=axis) * 2.0))
    second = tn.gradient(lambda x: fn.sum(gradient(x)))
    zeros = np.zeros_like(x.array)
    for f in (gradient, tn.compile(gradient), tn.jacfwd(lambda x: fn.sum(fn.std(x, axis=axis)))):
        np.testing.assert_array_equal(f(x).array, zeros)
    np.testing.assert_array_equal(tn.vmap(gradient)(x[None]).array, zeros[None])
    np.testing.assert_array_equal(second(x).array, zeros)
    with np.errstate(invalid="ignore"):
        of_equal = tn.gradient(lambda x: fn.sum(fn.std(x * 0.0)))(x)
    assert np.isnan(of_equal.array).all()


SATURATING = [
    fn.tanh,
    fn.sigmoid,
    fn.softplus,
    fn.relu,
    fn.gelu,
    fn.silu,
    fn.elu,
    fn.erf,
    fn.atan,
    fn.asinh,
]


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", SATURATING, ids=lambda function: function.__name__)
def test_a_saturated_function_has_finite_derivatives_without_a_warning(
    function: Any, dtype: str, device: str
) -> None:
    largest = float(np.finfo(dtype).max)
    sizes = [size for size in (20.0, 100.0, 800.0, 1e4, 1e300) if size < largest]
    x = tn.asarray([*sizes, *[-size for size in sizes]], dtype=dtype, device=device)
    (slope,) = tn.grad([function(x)], [x], [x * 0.0 + 1.0], enable_double_backprop=True)
    (curvature,) = tn.grad([slope], [x], [x * 0.0 + 1.0])
    assert np.isfinite(host(slope)).all()
    assert curvature is None or np.isfinite(host(curvature)).all()

"""What the functions of arrays do at the edges, against values worked out by hand.

The table compares with NumPy away from kinks, poles and ties. Here is what happens there, what
does not leak through a mask, which order equal elements keep, and the words of every refusal.
"""

from __future__ import annotations

import math
from math import inf, nan

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import DeviceMixError, InvalidType, OperandError, dtype_name
from tinynode.functions import linalg

on_each_device = pytest.mark.parametrize("device", ["numpy", "strict:device1"])


def variable(values, device="numpy", dtype="float64", **more):
    return tn.asarray(np.asarray(values, dtype), device=device, **more)


def host(x):
    return tn.to_host(x.array)


def gradients(y, xs, gy=None, order=1):
    """The gradients of y as arrays; with order 2 those of the sum of the first ones."""
    gys = None if gy is None else [gy]
    found = tn.grad([y], xs, gys, enable_double_backprop=order == 2)
    if order == 2:
        found = tn.grad([g for g in found if g is not None], xs)
    return [np.zeros(x.shape) if g is None else host(g) for g, x in zip(found, xs, strict=True)]


def assert_gradients(y, xs, *expected, gy=None, order=1):
    for found, values in zip(gradients(y, xs, gy, order), expected, strict=True):
        np.testing.assert_allclose(found, values, rtol=1e-14)


# --- ties, bounds and signs ----------------------------------------------------------------------


@on_each_device
def test_equal_elements_of_maximum_and_minimum_share_evenly(device):
    x = variable([1.0, 2.0, 3.0, 0.0], device)
    y = variable([1.0, 3.0, 2.0, -0.0], device)
    gy = variable([4.0, 6.0, 8.0, 2.0], device)
    assert_gradients(fn.maximum(x, y), [x, y], [2, 0, 8, 1], [2, 6, 0, 1], gy=gy)
    assert_gradients(fn.minimum(x, y), [x, y], [2, 6, 0, 1], [2, 0, 8, 1], gy=gy)
    assert_gradients(fn.maximum(x, y), [x, y], [0] * 4, [0] * 4, order=2)
    assert_gradients(fn.maximum(x, x), [x], [1, 1, 1, 1])


@on_each_device
def test_maximum_of_infinities_and_nan(device):
    x = variable([inf, -inf, nan, 1.0], device)
    y = variable([inf, 2.0, 1.0, nan], device)
    z = fn.maximum(x, y)
    np.testing.assert_array_equal(host(z), [inf, 2, nan, nan])
    found_x, found_y = gradients(z, [x, y])
    np.testing.assert_array_equal(found_x[:2], [0.5, 0])
    np.testing.assert_array_equal(found_y[:2], [0.5, 1])


@on_each_device
def test_an_infinite_gradient_does_not_leak_to_what_was_not_chosen(device):
    x, y = variable([1.0, 2.0], device), variable([2.0, 1.0], device)
    gy = variable([inf, nan], device)
    assert_gradients(fn.maximum(x, y), [x, y], [0, nan], [inf, 0], gy=gy)
    assert_gradients(fn.minimum(x, y), [x, y], [inf, 0], [0, nan], gy=gy)
    assert_gradients(fn.clip(x, 3.0, 4.0), [x], [0, 0], gy=gy)


@on_each_device
def test_clip_has_gradient_one_at_bounds_that_are_numbers(device):
    x = variable([-2.0, -1.0, 0.0, 1.0, 2.0], device)
    for low, high in [(-1.0, 1.0), (-1, 1), (np.float64(-1), np.float32(1)), (np.int64(-1), 1)]:
        y = fn.clip(x, low, high)
        np.testing.assert_array_equal(host(y), [-1, -1, 0, 1, 1])
        assert_gradients(y, [x], [0, 1, 1, 1, 0])
        assert_gradients(fn.clip(x, low, high), [x], [0] * 5, order=2)
    assert_gradients(fn.clip(x, min=-1.0), [x], [0, 1, 1, 1, 1])
    assert_gradients(fn.clip(x, max=1.0), [x], [1, 1, 1, 1, 0])
    assert_gradients(fn.clip(x), [x], [1, 1, 1, 1, 1])


@on_each_device
def test_clip_shares_with_bounds_that_are_variables(device):
    x = variable([-2.0, -1.0, 0.0], device)
    low = variable(-1.0, device)
    assert_gradients(fn.clip(x, low), [x, low], [0, 0.5, 1], 1.5)


@on_each_device
def test_the_upper_bound_of_clip_wins(device):
    x = variable([0.0, 5.0], device)
    np.testing.assert_array_equal(host(fn.clip(x, 3.0, 1.0)), [1, 1])
    low, high = variable(3.0, device), variable(1.0, device)
    np.testing.assert_array_equal(host(fn.clip(x, low, high)), [1, 1])
    assert_gradients(fn.clip(x, 3.0, 1.0), [x], [0, 0])


@on_each_device
def test_clip_passes_nan_on_without_a_gradient(device):
    x = variable([nan, 0.5], device)
    y = fn.clip(x, 0.0, 1.0)
    np.testing.assert_array_equal(host(y), [nan, 0.5])
    assert_gradients(y, [x], [0, 1])


@on_each_device
def test_copysign_looks_at_the_sign_of_zero(device):
    x = variable([3.0, -3.0, 3.0, -3.0, 0.0], device)
    y = variable([0.0, 0.0, -0.0, -2.0, -1.0], device)
    z = fn.copysign(x, y)
    np.testing.assert_array_equal(host(z), [3, 3, -3, -3, 0])
    assert np.signbit(host(z)).tolist() == [False, False, True, True, True]
    assert_gradients(z, [x, y], [1, -1, -1, 1, 0], [0] * 5)
    assert_gradients(fn.copysign(x, y), [x, y], [0] * 5, [0] * 5, order=2)
    assert tn.grad([fn.copysign(x, y)], [y]) == [None]  # a sign has no slope, as in floor


@on_each_device
def test_remainder_has_the_sign_of_the_divisor(device):
    x = variable([5.0, -5.0, 5.0, -5.0], device)
    y = variable([3.0, 3.0, -3.0, -3.0], device)
    z = fn.remainder(x, y)
    np.testing.assert_array_equal(host(z), [2, 1, -1, -2])
    assert_gradients(z, [x, y], [1] * 4, [-1, 2, 2, -1])


def test_rounding_goes_to_the_even_integer_and_towards_zero():
    x = variable([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(host(fn.round(x)), [-2, -2, 0, 0, 2, 2])
    np.testing.assert_array_equal(host(fn.trunc(x)), [-2, -1, 0, 0, 1, 2])
    np.testing.assert_array_equal(host(fn.floor(x)), [-3, -2, -1, 0, 1, 2])
    np.testing.assert_array_equal(host(fn.ceil(x)), [-2, -1, 0, 1, 2, 3])
    for f in (fn.round, fn.trunc, fn.floor, fn.ceil):
        assert tn.grad([f(x)], [x]) == [None]


# --- poles and infinities ------------------------------------------------------------------------


@on_each_device
def test_logaddexp_of_infinities_has_no_nan(device):
    x = variable([-inf, -inf, inf, inf, 0.0, -inf], device)
    y = variable([-inf, 1.0, inf, 1.0, -inf, inf], device)
    z = fn.logaddexp(x, y)
    np.testing.assert_array_equal(host(z), [-inf, 1, inf, inf, 0, inf])
    assert_gradients(z, [x, y], [0.5, 0, 0.5, 1, 1, 0], [0.5, 1, 0.5, 0, 0, 1])
    assert_gradients(fn.logaddexp(x, y), [x, y], [0] * 6, [0] * 6, order=2)


@on_each_device
def test_a_remainder_by_an_infinity_has_slopes(device):
    """x % inf is x for x from 0 on, and x + inf for x below 0."""
    x = variable([2.0, -2.0, 2.0, -2.0, 0.0], device)
    y = variable([inf, inf, -inf, -inf, inf], device)
    z = fn.remainder(x, y)
    np.testing.assert_array_equal(host(z), [2, inf, -inf, -2, 0])
    assert_gradients(z, [x, y], [1] * 5, [0, 1, 1, 0, 0])


@on_each_device
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_no_pixel_stands_at_nan(mode, padding, device):
    x = variable(np.arange(9.0).reshape(1, 1, 3, 3), device)
    grid = variable([[[[nan, 0.0], [0.0, nan], [0.0, 0.0]]]], device)

    def sampled(x, grid):
        return fn.grid_sample(x, grid, mode, padding)

    for f in (sampled, tn.compile(sampled)):
        for _ in range(2):
            np.testing.assert_array_equal(host(f(x, grid)), [[[[nan, nan, 4.0]]]])


@on_each_device
def test_logaddexp_does_not_overflow(device):
    x, y = variable([1000.0, -1000.0], device), variable([1000.0, -999.0], device)
    z = fn.logaddexp(x, y)
    np.testing.assert_allclose(host(z), [1000 + math.log(2), -999 + math.log1p(math.exp(-1))])
    p = 1 / (1 + math.e)
    assert_gradients(z, [x, y], [0.5, p], [0.5, 1 - p])


@on_each_device
def test_lengths_of_zero_have_gradient_zero(device):
    x, y = variable([0.0, 3.0, 0.0], device), variable([0.0, 4.0, -2.0], device)
    z = fn.hypot(x, y)
    np.testing.assert_array_equal(host(z), [0, 5, 2])
    assert_gradients(z, [x, y], [0, 0.6, 0], [0, 0.8, -1])
    zero = variable([0.0, 0.0], device)
    for p in (2, 1, 3, 1.5, 0.5):
        norm = linalg.vector_norm(zero, ord=p)
        assert float(norm) == 0
        assert_gradients(norm, [zero], [0, 0])
    some = variable([[0.0, 0.0], [3.0, -4.0]], device)
    assert_gradients(linalg.vector_norm(some, axis=1), [some], [[0, 0], [0.6, -0.8]])
    assert_gradients(linalg.matrix_norm(zero * some), [zero], [0, 0])


@on_each_device
def test_a_zero_among_others_has_gradient_zero_in_every_norm(device):
    x = variable([0.0, 2.0], device)
    for p in (1, 2, 3, 1.5, 0.5, inf):
        assert_gradients(linalg.vector_norm(x, ord=p), [x], [0, 1])


@on_each_device
def test_a_zero_makes_norms_of_negative_order_zero(device):
    x = variable([0.0, 2.0], device)
    with np.errstate(divide="ignore"):
        assert float(linalg.vector_norm(x, ord=-1)) == 0
        assert float(linalg.vector_norm(x, ord=-2)) == 0


def test_orders_may_be_numbers_of_numpy():
    x = variable([2.0, 0.0])
    for p in (3, np.int64(3), np.float32(3), np.float64(3)):
        assert float(linalg.vector_norm(x, ord=p)) == pytest.approx(2)


@on_each_device
def test_number_of_elements_that_are_not_zero(device):
    x = variable([[0.0, 2.0, -1.0], [0.0, 0.0, 5.0]], device)
    norm = linalg.vector_norm(x, axis=1, ord=0)
    np.testing.assert_array_equal(host(norm), [2, 1])
    assert dtype_name(norm.dtype) == "float64" and not norm.requires_grad


@on_each_device
def test_largest_and_smallest_of_norms_share_at_ties(device):
    x = variable([3.0, -3.0, 1.0], device)
    assert_gradients(linalg.vector_norm(x, ord=inf), [x], [0.5, -0.5, 0])
    assert_gradients(linalg.vector_norm(x, ord=-inf), [x], [0, 0, 1])


@on_each_device
def test_angles_on_the_axes(device):
    y = variable([0.0, 1.0, 0.0, -1.0, -0.0], device)
    x = variable([1.0, 0.0, -1.0, 0.0, -1.0], device)
    z = fn.atan2(y, x)
    half = math.pi / 2
    np.testing.assert_allclose(host(z), [0, half, math.pi, -half, -math.pi], rtol=1e-15)
    assert_gradients(z, [y, x], [1, 0, -1, 0, -1], [0, -1, 0, 1, 0])


@on_each_device
def test_the_angle_of_the_origin_is_masked(device):
    y, x = variable([0.0, 1.0], device), variable([0.0, 1.0], device)
    kept = tn.asarray(np.array([False, True]), device=device)
    with np.errstate(all="ignore"):
        z = fn.where(kept, fn.atan2(y, x), 0)
        assert_gradients(z, [y, x], [0, 0.5], [0, -0.5])
        assert_gradients(fn.where(kept, fn.atan2(y, x), 0), [y, x], [0, -0.5], [0, 0.5], order=2)


# f, its pole, a point inside, its first and second derivative there
POLES = [
    (fn.log1p, -1.0, 1.0, 0.5, -0.25),
    (fn.log2, 0.0, 2.0, 0.5 / math.log(2), -0.25 / math.log(2)),
    (fn.log10, 0.0, 2.0, 0.5 / math.log(10), -0.25 / math.log(10)),
    (fn.reciprocal, 0.0, 2.0, -0.25, 0.25),
    (fn.asin, 1.0, 0.0, 1.0, 0.0),
    (fn.asin, -1.0, 0.0, 1.0, 0.0),
    (fn.acos, 1.0, 0.0, -1.0, 0.0),
    (fn.acos, -1.0, 0.0, -1.0, 0.0),
    (fn.acosh, 1.0, math.sqrt(2), 1.0, -math.sqrt(2)),
    (fn.atanh, 1.0, 0.0, 1.0, 0.0),
    (fn.atanh, -1.0, 0.0, 1.0, 0.0),
]


@on_each_device
@pytest.mark.parametrize(("f", "pole", "at", "first", "second"), POLES)
def test_no_nan_comes_from_a_masked_pole(f, pole, at, first, second, device):
    x = variable([pole, at], device)
    kept = tn.asarray(np.array([False, True]), device=device)
    with np.errstate(all="ignore"):
        (found,) = gradients(fn.where(kept, f(x), 0), [x])
        np.testing.assert_allclose(found, [0, first], rtol=1e-14)
        (found,) = gradients(fn.where(kept, f(x), 0), [x], order=2)
        np.testing.assert_allclose(found, [0, second], rtol=1e-14, atol=1e-15)


@on_each_device
def test_the_slope_of_the_standard_deviation_of_equal_elements_is_masked(device):
    x = variable([[2.0, 2.0], [1.0, 3.0]], device)
    kept = tn.asarray(np.array([False, True]), device=device)
    with np.errstate(all="ignore"):
        y = fn.where(kept, fn.std(x, axis=1), 0)
        assert_gradients(y, [x], [[0, 0], [-0.5, 0.5]])
        assert_gradients(y, [x], np.zeros((2, 2)), order=2)


@on_each_device
@pytest.mark.parametrize(
    ("f", "pole", "value", "slope"),
    [
        (fn.log1p, -1.0, -inf, inf),
        (fn.log2, 0.0, -inf, inf),
        (fn.log10, 0.0, -inf, inf),
        (fn.reciprocal, 0.0, inf, -inf),
        (fn.asin, 1.0, math.pi / 2, inf),
        (fn.acos, 1.0, 0, -inf),
        (fn.acosh, 1.0, 0, inf),
        (fn.atanh, 1.0, inf, inf),
    ],
)
def test_poles_that_are_not_masked_stay_infinite(f, pole, value, slope, device):
    x = variable([pole], device)
    with np.errstate(all="ignore"):
        y = f(x)
        np.testing.assert_array_equal(host(y), [value])
        assert_gradients(y, [x], [slope])


@on_each_device
def test_outside_the_domain_is_nan(device):
    x = variable([-2.0, 2.0], device)
    with np.errstate(all="ignore"):
        for f in (fn.asin, fn.acos, fn.atanh):
            assert np.isnan(host(f(x))).all()
        for f in (fn.acosh, fn.log1p, fn.log2, fn.log10):
            assert np.isnan(host(f(x))).tolist() == [True, False]


def test_far_from_zero_nothing_overflows():
    x = variable([-800.0, -1e200, 1e200])
    np.testing.assert_array_equal(host(fn.expm1(x[:2])), [-1, -1])
    np.testing.assert_allclose(host(fn.asinh(x)), np.arcsinh([-800, -1e200, 1e200]), rtol=1e-15)
    y = fn.hypot(x, variable([0.0, 1e200, 1e200]))
    np.testing.assert_allclose(host(y), [800, math.sqrt(2) * 1e200, math.sqrt(2) * 1e200])
    assert_gradients(y, [x], [-1, -math.sqrt(0.5), math.sqrt(0.5)])
    (slopes,) = gradients(fn.asinh(x), [x])
    np.testing.assert_allclose(slopes, [1 / math.hypot(800, 1), 1e-200, 1e-200], rtol=1e-12)


def test_precise_near_zero():
    x = variable([1e-18, -1e-18])
    for f in (fn.expm1, fn.log1p, fn.sinh, fn.asinh, fn.atanh, fn.tan):
        np.testing.assert_allclose(host(f(x)), [1e-18, -1e-18], rtol=1e-15)


# --- products, variances and running products ----------------------------------------------------


@on_each_device
def test_products_of_zeros_have_the_products_of_the_others_as_gradient(device):
    x = variable([[2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]], device)
    y = fn.prod(x, axis=1)
    np.testing.assert_array_equal(host(y), [30, 0, 0, 0])
    assert_gradients(y, [x], [[15, 10, 6], [15, 0, 0], [0, 0, 0], [0, 0, 0]])
    # d/dx_i of the sum of the pairs x1 x2 + x0 x2 + x0 x1 is the sum of the two others
    second = [[8, 7, 5], [8, 5, 3], [5, 5, 0], [0, 0, 0]]
    assert_gradients(fn.prod(x, axis=1), [x], second, order=2)


@on_each_device
def test_running_products_of_zeros(device):
    x = variable([2.0, 0.0, 3.0, 0.0, 5.0], device)
    y = fn.cumulative_prod(x)
    np.testing.assert_array_equal(host(y), [2, 0, 0, 0, 0])
    # by x1, which is the only factor 0 of y1 and y2: 2 + 2 * 3; later ones hold both zeros
    assert_gradients(y, [x], [1, 8, 0, 0, 0])


def test_products_and_sums_of_nothing():
    x = variable(np.ones((0, 3)))
    assert float(fn.prod(x)) == 1
    np.testing.assert_array_equal(host(fn.prod(x, axis=0)), [1, 1, 1])
    np.testing.assert_array_equal(
        host(fn.cumulative_sum(x, axis=0, include_initial=True)), [[0] * 3]
    )
    np.testing.assert_array_equal(
        host(fn.cumulative_prod(x, axis=0, include_initial=True)), [[1] * 3]
    )
    assert_gradients(fn.prod(x, axis=0), [x], np.ones((0, 3)))
    assert float(linalg.vector_norm(x)) == 0


@on_each_device
def test_variances_by_hand(device):
    x = variable([1.0, 2.0, 6.0], device)  # mean 3, deviations -2, -1, 3
    assert float(fn.var(x)) == pytest.approx(14 / 3)
    assert float(fn.var(x, correction=1)) == 7
    assert float(fn.std(x, correction=1)) == pytest.approx(math.sqrt(7))
    assert_gradients(fn.var(x, correction=1), [x], [-2, -1, 3])
    assert_gradients(fn.std(x, correction=1), [x], np.array([-1, -0.5, 1.5]) / math.sqrt(7))
    one = variable([[5.0]], device)
    assert float(fn.var(one)) == 0
    assert_gradients(fn.var(one), [one], [[0]])


def test_running_sums_of_integers_are_as_wide_as_sums():
    for dtype in ("int32", "int64"):
        x = tn.asarray(np.array([1, 2, 3], dtype))
        for f in (fn.cumulative_sum, fn.cumulative_prod):
            assert dtype_name(f(x).dtype) == dtype_name(fn.sum(x).dtype) == "int64"
    x = variable([1.0, 2.0], dtype="float32")
    assert dtype_name(fn.cumulative_sum(x, include_initial=True).dtype) == "float32"


# --- another order -------------------------------------------------------------------------------


@on_each_device
def test_equal_elements_keep_their_order_in_sorts(device):
    x = variable([2.0, 1.0, 2.0, 1.0, 3.0], device)
    rising, falling = fn.argsort(x), fn.argsort(x, descending=True)
    np.testing.assert_array_equal(host(rising), [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(host(falling), [4, 0, 2, 1, 3])
    gy = variable([1.0, 2.0, 3.0, 4.0, 5.0], device)
    assert_gradients(fn.sort(x), [x], [3, 1, 4, 2, 5], gy=gy)
    assert_gradients(fn.sort(x, descending=True), [x], [2, 4, 3, 5, 1], gy=gy)
    for stable in (True, False):
        np.testing.assert_array_equal(host(fn.sort(x, stable=stable)), [1, 1, 2, 2, 3])
        np.testing.assert_array_equal(host(fn.argsort(x, stable=stable)), host(rising))
    many = np.random.default_rng(0).integers(0, 3, 1000)  # more than a quick sort keeps in order
    expected = np.concat([np.flatnonzero(many == value) for value in (2, 1, 0)])
    found = fn.argsort(variable(many, device), descending=True)
    np.testing.assert_array_equal(host(found), expected)
    found = fn.argsort(variable(many, device))
    np.testing.assert_array_equal(host(found), np.argsort(many, stable=True))


@on_each_device
def test_the_first_of_equal_elements_is_the_largest(device):
    x = variable([[1.0, 3.0, 3.0], [3.0, 0.0, 0.0]], device)
    assert int(fn.argmax(x)) == 1
    assert int(fn.argmin(x)) == 4
    np.testing.assert_array_equal(host(fn.argmax(x, axis=1)), [1, 0])
    np.testing.assert_array_equal(host(fn.argmin(x, axis=1, keepdims=True)), [[0], [1]])
    assert fn.argmax(x, keepdims=True).shape == (1, 1)
    assert not fn.argmax(x).requires_grad


@on_each_device
def test_gradients_of_repeated_indices_add(device):
    x = variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device)
    i = tn.asarray(np.array([0, 2, 0, -3]), device=device)
    assert_gradients(fn.take(x, i, axis=0), [x], [[3, 3], [0, 0], [1, 1]])
    assert_gradients(x[i], [x], [[3, 3], [0, 0], [1, 1]])
    j = tn.asarray(np.array([1, 1, 1, 0]), device=device)
    gy = variable([1.0, 2.0, 4.0, 8.0], device)
    assert_gradients(x[i, j], [x], [[8, 5], [0, 0], [0, 2]], gy=gy)
    along = tn.asarray(np.array([[0, 0, 0], [1, -1, 0], [0, 1, 0]]), device=device)
    assert_gradients(fn.take_along_axis(x, along), [x], [[3, 0], [1, 2], [2, 1]])
    tenfold = fn.repeat(fn.tile(x, (1, 2)), 5, axis=0)
    assert_gradients(tenfold, [x], np.full((3, 2), 10))


def test_a_mask_selects_in_order_and_gradients_go_back_there():
    x = variable([[1.0, -2.0], [-3.0, 4.0]])
    y = x[x > 0]
    np.testing.assert_array_equal(host(y), [1, 4])
    assert_gradients(y * y, [x], [[2, 0], [0, 8]])
    assert_gradients(x[[False, True]], [x], [[0, 0], [1, 1]])


@pytest.mark.parametrize("device", ["numpy", "strict:CPU_DEVICE"])
def test_writing_by_a_mask(device):
    """On the one device of array_api_strict on which it writes by bool arrays at all."""
    x, v = variable([[1.0, 2.0], [3.0, 4.0]], device), variable([10.0, 20.0], device)
    chosen = tn.asarray(np.array([[True, False], [False, True]]), device=device)
    y = fn.set_item(x, chosen, v)
    np.testing.assert_array_equal(host(y), [[10, 2], [3, 20]])
    gy = variable([[1.0, 2.0], [3.0, 4.0]], device)
    assert_gradients(y, [x, v], [[0, 2], [3, 0]], [1, 4], gy=gy)
    y[chosen] = 0.0
    np.testing.assert_array_equal(host(y), [[0, 2], [3, 0]])


def test_writing_by_integers_is_functional():
    x = variable([1.0, 2.0, 3.0])
    y = x * x
    y[[2, 0]] = variable([5.0, 7.0])
    np.testing.assert_array_equal(host(y), [7, 4, 5])
    assert_gradients(y, [x], [0, 4, 0])


def test_unsigned_indices():
    x = variable([1.0, 2.0, 3.0])
    i = tn.asarray(np.array([2, 0, 2], "uint8"))
    assert_gradients(x[i], [x], [1, 0, 2])
    assert_gradients(fn.take(x, i), [x], [1, 0, 2])
    assert_gradients(fn.take_along_axis(x, i), [x], [1, 0, 2])


def test_moving_axes_and_shapes_by_hand():
    x = variable(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(host(fn.roll(x, 1, axis=1)), [[2, 0, 1], [5, 3, 4]])
    np.testing.assert_array_equal(host(fn.roll(x, 1)), [[5, 0, 1], [2, 3, 4]])
    np.testing.assert_array_equal(host(fn.flip(x, axis=0)), [[3, 4, 5], [0, 1, 2]])
    np.testing.assert_array_equal(host(fn.repeat(x, 2, axis=0))[1], [0, 1, 2])
    np.testing.assert_array_equal(host(fn.tile(x[0], 2)), [0, 1, 2, 0, 1, 2])
    assert fn.moveaxis(variable(np.ones((2, 3, 4))), 0, -1).shape == (3, 4, 2)
    assert fn.roll(x, np.int64(1), axis=np.int64(1)).shape == (2, 3)
    assert fn.repeat(x, np.int64(2)).shape == (12,)
    assert fn.expand_dims(x, np.int64(1)).shape == (2, 1, 3)
    assert fn.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1)
    assert fn.unstack(variable(np.ones((0, 3)))) == ()
    assert fn.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert fn.broadcast_shapes((0,), (1,)) == (0,)
    assert fn.broadcast_shapes() == () and fn.broadcast_arrays() == ()


# --- linear algebra ------------------------------------------------------------------------------


@on_each_device
def test_gradients_of_symmetric_matrices_are_symmetric(device):
    """The lower triangle is read; the gradient counts each pair of mirrored elements once."""
    x = variable([[4.0, 2.0], [2.0, 5.0]], device)
    lower = linalg.cholesky(x)
    np.testing.assert_allclose(host(lower), [[2, 0], [1, 2]], rtol=1e-15)
    (gx,) = gradients(lower, [x])
    np.testing.assert_allclose(gx, gx.T, rtol=0, atol=0)
    (gx,) = gradients(linalg.eigvalsh(x), [x])
    np.testing.assert_allclose(gx, np.eye(2), atol=1e-14)  # their sum is the trace
    w, v = linalg.eigh(x)
    (gx,) = gradients(v[..., 0] * v[..., 1] + w, [x])
    np.testing.assert_allclose(gx, gx.T, rtol=1e-14)


@on_each_device
def test_equal_eigenvalues_have_a_gradient_as_long_as_no_vector_counts(device):
    x = variable(2 * np.eye(2), device)
    (gx,) = gradients(linalg.eigvalsh(x), [x])
    np.testing.assert_allclose(gx, np.eye(2), atol=1e-14)
    (gx,) = gradients(linalg.svdvals(x), [x])
    np.testing.assert_allclose(gx, np.eye(2), atol=1e-14)


@on_each_device
def test_determinants_by_hand(device):
    x = variable([[1.0, 2.0], [3.0, 4.0]], device)
    assert float(linalg.det(x)) == pytest.approx(-2)
    np.testing.assert_allclose(gradients(linalg.det(x), [x])[0], [[4, -3], [-2, 1]], rtol=1e-14)
    sign, logabsdet = linalg.slogdet(x)
    assert float(sign) == -1 and float(logabsdet) == pytest.approx(math.log(2))
    assert_gradients(sign, [x], np.zeros((2, 2)))
    (gx,) = gradients(logabsdet, [x])
    np.testing.assert_allclose(gx, [[-2, 1.5], [1, -0.5]], rtol=1e-14)


@on_each_device
def test_a_determinant_of_zero_has_the_cofactors_as_its_gradient(device):
    x = variable([[1.0, 2.0], [2.0, 4.0]], device)
    y = linalg.det(x)
    assert float(y) == 0
    assert_gradients(y, [x], [[4, -2], [-2, 1]])
    assert_gradients(y, [x], [[1, -1], [-1, 1]], order=2)
    x = variable(np.ones((4, 4)), device)  # of rank 1: all its minors are singular too
    assert_gradients(linalg.det(x), [x], np.zeros((4, 4)))
    x = variable(np.diag([0.0] + [1.0] * 31), device)
    assert_gradients(linalg.det(x), [x], np.diag([1.0] + [0.0] * 31))


def test_a_large_singular_matrix_has_no_gradient_of_its_determinant():
    x = variable(np.ones((33, 33)))
    with pytest.raises(ValueError, match=r"inv: Singular matrix .*\(33, 33\), float64.*identity"):
        tn.grad([linalg.det(x)], [x])


@on_each_device
def test_logsumexp_neither_overflows_nor_stumbles_over_infinities(device):
    x = variable([[1000, 1000], [-inf, -inf], [-1000, -inf], [-inf, -0.25]], device)
    y = fn.logsumexp(x, axis=1)
    np.testing.assert_allclose(host(y), [1000 + math.log(2), -inf, -1000, -0.25], rtol=1e-15)
    (gx,) = gradients(y, [x])
    np.testing.assert_allclose(gx, [[0.5, 0.5], [0, 0], [1, 0], [0, 1]], rtol=1e-12)
    np.testing.assert_allclose(gradients(y, [x], order=2)[0], np.zeros((4, 2)), atol=1e-12)
    assert host(fn.logsumexp(variable([inf, 1, -inf], device))) == inf


@on_each_device
@pytest.mark.parametrize("axis", [1, (0, 1), None])
@pytest.mark.parametrize("dtype, number", [("float32", 1e7), ("float32", 1e30), ("float64", 1e16)])
def test_the_gradient_of_logsumexp_has_the_sum_1_at_large_numbers(device, dtype, number, axis):
    for sign in (1, -1):
        x = variable(np.full((1, 2), sign * number), device, dtype=dtype)
        (gx,) = gradients(fn.logsumexp(x, axis=axis), [x])
        np.testing.assert_array_equal(gx, [[0.5, 0.5]])
        second = gradients(fn.logsumexp(x, axis=axis) * 3.0, [x], order=2)[0]
        np.testing.assert_allclose(second, 0, atol=1e-6)


def test_the_gradient_of_logsumexp_in_float16():
    x = tn.Variable(np.asarray([20, 20, 21, -300], "float16"))
    fn.logsumexp(x).backward()
    expected = np.exp([0.0, 0, 1, -np.inf]) / (2 + math.e)
    np.testing.assert_allclose(x.grad, expected, rtol=2e-3)


def test_the_hessian_of_logsumexp_at_large_numbers():
    x = np.asarray([1e7, 1e7 + 1, 1e7 - 2], "float32")
    p = np.exp([0.0, 1, -2]) / np.exp([0.0, 1, -2]).sum()
    expected = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(host(tn.hessian(fn.logsumexp)(x)), expected, atol=3e-7)


BAD_MATRICES = {
    "inv": lambda: linalg.inv(variable(np.ones((2, 2)))),
    "solve": lambda: linalg.solve(variable(np.ones((2, 2))), variable(np.ones(2))),
    "cholesky": lambda: linalg.cholesky(variable(-np.eye(2))),
    "svd": lambda: linalg.svd(variable(np.full((2, 2), nan))),
}


@pytest.mark.parametrize("name", BAD_MATRICES)
def test_what_the_array_library_refuses_is_named(name):
    with pytest.raises(np.linalg.LinAlgError, match=rf"^{name}: .* shape \(2, 2\).*float64\. "):
        BAD_MATRICES[name]()


def test_power_zero_is_the_identity_whatever_it_is_of():
    x = variable([[inf, nan], [1.0, 2.0]])
    y = linalg.matrix_power(x, 0)
    np.testing.assert_array_equal(host(y), np.eye(2))
    assert_gradients(y, [x], np.zeros((2, 2)))
    y = linalg.matrix_power(variable(np.ones((2, 2))), np.int64(0))
    np.testing.assert_array_equal(host(y), np.eye(2))


def test_singular_values_of_no_rows():
    x = variable(np.ones((0, 3)))
    u, s, vh = linalg.svd(x, full_matrices=False)
    assert (u.shape, s.shape, vh.shape) == ((0, 0), (0,), (0, 3))
    assert_gradients(linalg.svdvals(x), [x], np.ones((0, 3)))


def test_results_have_names():
    x = variable([[2.0, 0.0], [0.0, 3.0]])
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.qr(x, mode="complete").Q.shape == (2, 2)


@pytest.mark.parametrize(
    "f", [fn.sum, fn.mean, fn.prod, fn.max, fn.min, fn.var, fn.std, fn.argmax, fn.argmin]
)
def test_reduced_axes_go_by_default(f):
    assert f(variable(np.ones((2, 3))), axis=0).shape == (3,)


def test_arrays_and_numbers_get_no_gradient():
    x, array = variable(np.ones(3)).detach(), np.ones(3)
    for y in (fn.exp(array), fn.where(array > 0, 1.0, 2.0), x + array, fn.where(array > 0, x, x)):
        assert not y.requires_grad


def test_einsum_casts_its_operands_to_one_dtype(monkeypatch):
    """Not every library's einsum promotes."""
    dtypes, einsum = [], np.einsum

    def noting(text, *operands, **options):
        dtypes.extend(str(x.dtype) for x in operands)
        return einsum(text, *operands, **options)

    monkeypatch.setattr(np, "einsum", noting)
    fn.einsum("i,i", variable([1.0, 2.0]), variable([1.0, 2.0], dtype="float32"))
    assert dtypes == ["float64", "float64"]


def test_einsum_says_what_it_does_in_its_label():
    x, y = variable(np.ones((2, 3))), variable(np.ones((3, 2)))
    assert fn.einsum("ij,jk", x, y).creator_node.label == "Einsum(ij,jk->ik)"


# --- what is refused -----------------------------------------------------------------------------


def ones(*shape, dtype="float32", **more):
    return tn.asarray(np.ones(shape), dtype=dtype, **more)


INTS = np.array([0, 1, 0])
SINGULAR = np.ones((2, 2))

OF_ONE_ARRAY = [
    *("acos", "acosh", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atanh", "ceil"),
    *("cosh", "cumulative_prod", "cumulative_sum", "expand_dims", "expm1", "flip", "floor"),
    *("log10", "log1p", "log2", "positive", "prod", "reciprocal", "round", "sinh", "sort"),
    *("square", "std", "tan", "trunc", "unstack", "var"),
]
OF_TWO_ARRAYS = {
    "atan2": "Atan2",
    "copysign": "CopySign",
    "hypot": "Hypot",
    "logaddexp": "LogAddExp",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "remainder": "Remainder",
}
OF_MATRICES = ["cholesky", "det", "eigh", "eigvalsh", "inv", "slogdet", "svd", "svdvals"]

# what is called, the exception, and the words of its message
REFUSED = {
    **{
        f"{name} list": (
            lambda name=name: getattr(fn, name)([1.0]),
            OperandError,
            rf"{name}: x .*list \[1.0\].*asarray",
        )
        for name in OF_ONE_ARRAY
    },
    **{
        f"{name} text": (
            lambda name=name: getattr(fn, name)(ones(2), "a"),
            OperandError,
            f"{name}: x2 .*str 'a'",
        )
        for name in OF_TWO_ARRAYS
    },
    **{
        f"{name} text left": (
            lambda name=name: getattr(fn, name)(None, ones(2)),
            OperandError,
            f"{name}: x1 .*NoneType None",
        )
        for name in OF_TWO_ARRAYS
    },
    **{
        f"{label} shapes": (
            lambda name=name: getattr(fn, name)(ones(2, 2), ones(3)),
            InvalidType,
            rf"{label} .*\(2, 2\) and \(3,\).*line up",
        )
        for name, label in OF_TWO_ARRAYS.items()
    },
    "reciprocal ints": (
        lambda: fn.reciprocal(INTS),
        OperandError,
        "reciprocal: x .*int64.*astype",
    ),
    "clip text": (lambda: fn.clip(ones(2), "a"), OperandError, "clip: min .*str 'a'"),
    "clip list": (lambda: fn.clip(ones(2), None, [1]), OperandError, r"clip: max .*list \[1\]"),
    "clip number": (lambda: fn.clip(1.0, 0.0), OperandError, "clip: x .*float 1.0"),
    "clip shapes": (lambda: fn.clip(ones(2), ones(3)), InvalidType, r"\(2,\) and \(3,\)"),
    "prod axis": (lambda: fn.prod(ones(2), 1), ValueError, "prod: axis 1 .*1 axes"),
    "var axis": (lambda: fn.var(ones(2), 1), ValueError, "var: axis 1 .*1 axes"),
    "std axis": (lambda: fn.std(ones(2), -2), ValueError, "std: axis -2 .*1 axes"),
    "var ints": (lambda: fn.var(INTS), OperandError, "var: x must be floating.*int64"),
    "std ints": (lambda: fn.std(INTS), OperandError, "std: x must be floating.*int64"),
    "var correction": (
        lambda: fn.var(ones(2, 3), 1, 3),
        ValueError,
        r"var: 3 elements of x \(shape \(2, 3\)\).*correction is 3",
    ),
    "std correction": (lambda: fn.std(ones(1), 0, 1), ValueError, "std: 1 elements"),
    "var of nothing": (lambda: fn.var(ones(0)), ValueError, "var: 0 elements"),
    "var of nothing, corrected": (lambda: fn.var(ones(0), 0, -1), ValueError, "var: 0 elements"),
    "running sum axis left out": (
        lambda: fn.cumulative_sum(ones(2, 2)),
        ValueError,
        r"cumulative_sum: x has shape \(2, 2\), so the axis",
    ),
    "running sum axis": (
        lambda: fn.cumulative_sum(ones(2), axis=1),
        ValueError,
        "cumulative_sum: axis 1 .*1 axes",
    ),
    "running product axis left out": (
        lambda: fn.cumulative_prod(ones()),
        ValueError,
        r"cumulative_prod: x has shape \(\), so the axis",
    ),
    "running product axis": (
        lambda: fn.cumulative_prod(ones(2), axis=-2),
        ValueError,
        "cumulative_prod: axis -2",
    ),
    "flip axis": (lambda: fn.flip(ones(2), axis=1), ValueError, "flip: axis 1 .*1 axes"),
    "flip axis twice": (lambda: fn.flip(ones(2), axis=(0, -1)), ValueError, "flip: axis .*twice"),
    "roll axis": (lambda: fn.roll(ones(2), 1, axis=1), ValueError, "roll: axis 1"),
    "roll float": (lambda: fn.roll(ones(2), 1.5), OperandError, r"roll: shift .*\(1.5,\)"),
    "roll floats": (
        lambda: fn.roll(ones(2), (1.5,), axis=0),
        OperandError,
        r"roll: shift .*\(1.5,\)",
    ),
    "roll several flat": (lambda: fn.roll(ones(2), (1, 2)), ValueError, r"roll: .*\(1, 2\)"),
    "roll numbers": (
        lambda: fn.roll(ones(2, 2), (1, 2, 3), axis=(0, 1)),
        ValueError,
        "roll: 3 shifts .*2 axes",
    ),
    "moveaxis axis": (lambda: fn.moveaxis(ones(2, 3), 2, 0), ValueError, "moveaxis: source 2"),
    "moveaxis place": (
        lambda: fn.moveaxis(ones(2, 3), 0, 2),
        ValueError,
        "moveaxis: dest.* 2 does",
    ),
    "moveaxis twice": (lambda: fn.moveaxis(ones(2, 3), (0, 0), (0, 1)), ValueError, "twice"),
    "moveaxis numbers": (
        lambda: fn.moveaxis(ones(2, 3), (0, 1), 0),
        ValueError,
        "moveaxis: 2 axes .*1 places",
    ),
    "expand_dims place": (lambda: fn.expand_dims(ones(2), 2), ValueError, "expand_dims: axis 2"),
    "expand_dims twice": (lambda: fn.expand_dims(ones(2), (0, 0)), ValueError, "axis .*twice"),
    "expand_dims None": (lambda: fn.expand_dims(ones(2), None), OperandError, "expand_dims: axis"),
    "squeeze": (
        lambda: fn.squeeze(ones(1, 2), 1),
        ValueError,
        r"squeeze: axis 1 of x \(shape \(1, 2\)\) is not of length 1",
    ),
    "squeeze axis": (lambda: fn.squeeze(ones(1), 1), ValueError, "squeeze: axis 1 .*1 axes"),
    "stack nothing": (lambda: fn.stack([]), ValueError, "stack: xs is empty"),
    "stack shapes": (
        lambda: fn.stack([ones(2), ones(3)]),
        ValueError,
        r"stack: xs\[1\] has shape \(3,\), xs\[0\] has \(2,\).*concat",
    ),
    "stack dtypes": (
        lambda: fn.stack([ones(2), tn.asarray([1, 2])]),
        InvalidType,
        "int64 != float32",
    ),
    "stack axis": (lambda: fn.stack([ones(2)], axis=2), ValueError, "stack: axis 2 .*2 axes"),
    "stack number": (lambda: fn.stack([ones(2), 1.0]), OperandError, r"stack: xs\[1\] .*float"),
    "unstack axis": (lambda: fn.unstack(ones(2), axis=1), ValueError, "unstack: axis 1"),
    "tile negative": (lambda: fn.tile(ones(2), (-1,)), ValueError, r"tile: repetitions \(-1,\)"),
    "tile float": (lambda: fn.tile(ones(2), (1.5,)), OperandError, "tile: repetitions"),
    "repeat negative": (lambda: fn.repeat(ones(2), -1), ValueError, "repeat: repeats .*-1"),
    "repeat array": (lambda: fn.repeat(ones(2), INTS), ValueError, r"repeat: .*\(3,\).* be 2 int"),
    "repeat negative one": (lambda: fn.repeat(ones(2), [1, -1]), ValueError, "repeat: .*negative"),
    "repeat floats": (lambda: fn.repeat(ones(2), [1.0, 2.0]), OperandError, "repeat: .*integers"),
    "diff n": (lambda: fn.diff(ones(2), n=-1), ValueError, "diff: n must not be negative, got -1"),
    "diff n float": (lambda: fn.diff(ones(2), n=1.0), OperandError, "diff: n must be an integer"),
    "logsumexp empty": (
        lambda: fn.logsumexp(ones(2, 0)),
        ValueError,
        r"logsumexp: x has shape \(2, 0\): axis 1 is empty",
    ),
    "logsumexp integers": (
        lambda: fn.logsumexp(INTS),
        OperandError,
        "logsumexp: x must be floating",
    ),
    "tril vector": (lambda: fn.tril(ones(2)), ValueError, r"tril: x needs two axes.*\(2,\)"),
    "triu k": (lambda: fn.triu(ones(2, 2), k=0.5), OperandError, "triu: k must be an integer"),
    "meshgrid matrix": (
        lambda: fn.meshgrid(ones(2), ones(2, 2)),
        ValueError,
        r"meshgrid: arrays\[1\] must have one axis.*\(2, 2\)",
    ),
    "meshgrid indexing": (
        lambda: fn.meshgrid(ones(2), indexing="x"),
        ValueError,
        'meshgrid: indexing must be "xy" or "ij", got \'x\'',
    ),
    "pad widths": (
        lambda: fn.pad(ones(2, 2), (1, 2, 3)),
        ValueError,
        r"pad: pad_width .*\(2, 2\).*got \(1, 2, 3\)",
    ),
    "pad negative": (lambda: fn.pad(ones(2), -1), ValueError, "pad: pad_width .*got -1"),
    "pad mode": (
        lambda: fn.pad(ones(2), 1, "reflect"),
        OperandError,
        "pad: value must be a number, got str 'reflect'",
    ),
    "pad integers": (lambda: fn.pad(INTS, 1, 0.5), OperandError, "pad: value must be an integer"),
    "pinv vector": (lambda: linalg.pinv(ones(2)), InvalidType, r"Pinv.*\(2,\)"),
    "pinv rtol": (lambda: linalg.pinv(ones(2, 2), rtol="a"), OperandError, "pinv: rtol must be"),
    "Concat axis": (
        lambda: fn.Concat(1).apply((ones(2), ones(2))),
        InvalidType,
        "Concat.*ndim > 1",
    ),
    "pad widths mixed": (
        lambda: fn.pad(ones(2, 2), ((1, 1), 2)),
        ValueError,
        "pad: pad_width must be an integer, a pair, or a pair for each axis",
    ),
    "qr vector": (lambda: linalg.qr(ones(2)), InvalidType, r"Qr.*\(2,\)"),
    "qr mode": (lambda: linalg.qr(ones(2, 2), mode="r"), ValueError, "qr: mode must be .*'r'"),
    "qr complete": (
        lambda: linalg.qr(ones(3, 2), mode="complete"),
        ValueError,
        r"qr: the complete Q of x \(shape \(3, 2\)\)",
    ),
    "argmax axes": (
        lambda: fn.argmax(ones(2, 3), axis=(0, 1)),
        OperandError,
        r"argmax: axis must be an integer, got tuple \(0, 1\)",
    ),
    "argmin no axes": (
        lambda: fn.argmin(ones(2, 3), axis=()),
        OperandError,
        r"argmin: axis must be an integer, got tuple \(\)",
    ),
    "index arrays": (
        lambda: ones(3, 3)[[0, 1], [0, 1, 2]],
        IndexError,
        r"get_item: .*\(2,\) and \(3,\).*x\[rows\]\[:, columns\]",
    ),
    "index arrays written": (
        lambda: fn.set_item(ones(3, 3), ([0, 1], [True, True, True]), 0),
        IndexError,
        r"set_item: .*\(2,\) and \(3,\)",
    ),
    "integer power": (
        lambda: tn.asarray([1, 2]) ** -1,
        OperandError,
        "pow: x is int64, and has no power -1.*astype",
    ),
    "repeat axis": (lambda: fn.repeat(ones(2), 2, axis=1), ValueError, "repeat: axis 1"),
    "broadcast_arrays": (
        lambda: fn.broadcast_arrays(ones(2), ones(3)),
        ValueError,
        r"broadcast_arrays: \(\(2,\), \(3,\)\)",
    ),
    "broadcast_arrays number": (
        lambda: fn.broadcast_arrays(ones(2), 1.0),
        OperandError,
        r"broadcast_arrays: xs\[1\]",
    ),
    "broadcast_shapes": (
        lambda: fn.broadcast_shapes((2,), (0,)),
        ValueError,
        r"broadcast_shapes: \(\(2,\), \(0,\)\)",
    ),
    "take axis left out": (
        lambda: fn.take(ones(2, 2), [0]),
        ValueError,
        r"take: x has shape \(2, 2\), so the axis",
    ),
    "take axis": (lambda: fn.take(ones(2), [0], axis=1), ValueError, "take: axis 1 .*1 axes"),
    "take floats": (lambda: fn.take(ones(2), ones(1)), OperandError, "take: indices .*float32"),
    "take bools": (lambda: fn.take(ones(2), INTS > 0), OperandError, "take: indices .*bool"),
    "take float list": (lambda: fn.take(ones(2), [0.5]), OperandError, r"take: .*\[0.5\]"),
    "take text": (lambda: fn.take(ones(2), "a"), OperandError, "take: indices .*str 'a'"),
    "take outside": (
        lambda: fn.take(ones(2, 3), [0, -3], axis=0),
        IndexError,
        r"take: indices run from -3 to 0, but axis 0 of x \(shape \(2, 3\)\) has 2",
    ),
    "take other device": (
        lambda: fn.take(ones(2), tn.get_device("strict:device2").from_host(INTS)),
        DeviceMixError,
        r"take: indices is an array on strict:device2, beside .* numpy.*asarray\(indices, device",
    ),
    "take_along_axis shape": (
        lambda: fn.take_along_axis(ones(3, 2), np.zeros((2, 2), int)),
        ValueError,
        r"take_along_axis: indices have shape \(2, 2\), x has \(3, 2\).*axis 1",
    ),
    "take_along_axis axes": (
        lambda: fn.take_along_axis(ones(3, 2), INTS),
        ValueError,
        r"take_along_axis: indices have shape \(3,\), x has \(3, 2\)",
    ),
    "take_along_axis axis": (
        lambda: fn.take_along_axis(ones(), INTS),
        ValueError,
        "take_along_axis: axis -1 .*0 axes",
    ),
    "take_along_axis outside": (
        lambda: fn.take_along_axis(ones(1), INTS),
        IndexError,
        "take_along_axis: indices run from 0 to 1, but axis 0",
    ),
    "take_along_axis floats": (
        lambda: fn.take_along_axis(ones(1), ones(1)),
        OperandError,
        "take_along_axis: indices",
    ),
    "index array outside": (
        lambda: ones(2, 1)[:, INTS],
        IndexError,
        r"get_item: indices run from 0 to 1, but axis 1 of x \(shape \(2, 1\)\) has 1",
    ),
    "index array below": (lambda: ones(2)[INTS - 3], IndexError, "get_item: indices run from -3"),
    "index mask length": (
        lambda: ones(2, 3)[:, np.array([True, False])],
        IndexError,
        r"get_item: a bool array of shape \(2,\) stands for axis 1 .*\(2, 3\)",
    ),
    "index mask axes": (
        lambda: ones(2)[np.ones((2, 1), bool)],
        IndexError,
        r"get_item: index \(array,\) has too many entries for x of shape \(2,\)",
    ),
    "index too many": (
        lambda: ones(2, 2)[INTS, 1:, ::2],
        IndexError,
        r"get_item: index \(array, 1::, ::2\) has too many",
    ),
    "index floats": (lambda: ones(2)[ones(1)], OperandError, "get_item: .*float32"),
    "index float list": (lambda: ones(2)[[0.5]], OperandError, r"get_item: .*list \[0.5\]"),
    "index ragged": (lambda: ones(2)[[[0], [0, 1]]], OperandError, "get_item: .*equally long"),
    "index text": (lambda: ones(2)["a"], OperandError, "get_item: .*str 'a'"),
    "index texts": (lambda: ones(2)[["a"]], OperandError, r"get_item: .*list \['a'\]"),
    "index on another device": (
        lambda: ones(2)[tn.get_device("strict:device2").from_host(INTS)],
        DeviceMixError,
        r"get_item: index is an array on strict:device2, beside .* numpy.*asarray\(index, device",
    ),
    "index Variable on another device": (
        lambda: ones(2, device="strict:device1")[tn.asarray(INTS)],
        DeviceMixError,
        r"get_item: .*on numpy, x is on strict:device1.*to_device",
    ),
    "write on another device": (
        lambda: fn.set_item(ones(3), tn.get_device("strict:device2").from_host(INTS) > 0, 1.0),
        DeviceMixError,
        "set_item: index is an array on strict:device2, beside a Variable on numpy",
    ),
    "write outside": (lambda: fn.set_item(ones(1), INTS, 1.0), IndexError, "set_item: indices"),
    "write mask length": (lambda: fn.set_item(ones(2), INTS > 0, 1.0), IndexError, "set_item"),
    "write mask value": (
        lambda: fn.set_item(ones(3), INTS < 1, ones(3)),
        ValueError,
        r"set_item: value has shape \(3,\).*selection, of shape \(2,\)",
    ),
    "sort axis": (lambda: fn.sort(ones(2), axis=1), ValueError, "sort: axis 1 .*1 axes"),
    "sort 0-d": (lambda: fn.sort(ones()), ValueError, "sort: axis -1 .*0 axes"),
    "argsort axis": (lambda: fn.argsort(ones(2), axis=1), ValueError, "argsort: axis 1"),
    "argmax axis": (lambda: fn.argmax(ones(2), axis=1), ValueError, "argmax: axis 1"),
    "argmin axis": (lambda: fn.argmin(ones(2), axis=-2), ValueError, "argmin: axis -2"),
    "argmax of nothing": (lambda: fn.argmax(ones(0, 2)), ValueError, r"argmax: .*\(0, 2\)"),
    "argmin of nothing": (lambda: fn.argmin(ones(0, 2), axis=0), ValueError, r"argmin: .*\(0, 2"),
    "tensordot": (
        lambda: fn.tensordot(ones(2, 3), ones(3, 2)),
        ValueError,
        r"tensordot: axes \(0, 1\) of x \(shape \(2, 3\)\) .*y \(shape \(3, 2\)\)",
    ),
    "tensordot too many": (
        lambda: fn.tensordot(ones(2, 2), ones(2), axes=2),
        ValueError,
        "tensordot: axes=2, but x has 2 axes and y has 1",
    ),
    "tensordot negative": (lambda: fn.tensordot(ones(2), ones(2), axes=-1), ValueError, "axes=-1"),
    "tensordot float": (
        lambda: fn.tensordot(ones(2), ones(2), axes=1.5),
        OperandError,
        "tensordot: axes .*pair.*float 1.5",
    ),
    "tensordot pair": (
        lambda: fn.tensordot(ones(2), ones(2), axes=(0, "a")),
        OperandError,
        r"tensordot: axes\[1\] .*str 'a'",
    ),
    "tensordot axis": (
        lambda: fn.tensordot(ones(2), ones(2), axes=((1,), (0,))),
        ValueError,
        "tensordot: axis 1",
    ),
    "tensordot numbers": (
        lambda: fn.tensordot(ones(2, 2), ones(2), axes=((0, 1), (0,))),
        ValueError,
        "tensordot: axes",
    ),
    "vecdot": (
        lambda: fn.vecdot(ones(2), ones(3)),
        ValueError,
        r"vecdot: axis -1 .*\(2,\).*\(3,\)",
    ),
    "vecdot axis": (lambda: fn.vecdot(ones(2), ones(2), axis=0), ValueError, "vecdot: axis 0"),
    "vecdot axes": (lambda: fn.vecdot(ones(2), ones(2), axis=-2), ValueError, "vecdot: axis -2"),
    "vecdot axis of one": (
        lambda: fn.vecdot(ones(2), ones(2, 2), axis=-2),
        ValueError,
        r"vecdot: axis -2 .*\(2,\)",
    ),
    "vecdot 0-d": (lambda: fn.vecdot(ones(2), ones()), ValueError, "vecdot: axis -1"),
    "einsum numbers": (
        lambda: fn.einsum("ij,jk", ones(2, 3)),
        ValueError,
        "einsum: 'ij,jk' describes 2 operands, 1 were given",
    ),
    "einsum axes": (
        lambda: fn.einsum("ijk", ones(2, 3)),
        ValueError,
        r"einsum: 'ijk' does not fit an operand of shape \(2, 3\)",
    ),
    "einsum few": (lambda: fn.einsum("i", ones(2, 3)), ValueError, r"'i' does not fit .*\(2, 3\)"),
    "einsum dots": (lambda: fn.einsum("i...", ones()), ValueError, r"'i...' does not fit .*\(\)"),
    "einsum lengths": (
        lambda: fn.einsum("ij,jk", ones(2, 3), ones(2, 3)),
        ValueError,
        "einsum: label 'j' of operand 1 has length 2, but 3 elsewhere",
    ),
    "einsum of nothing": (
        lambda: fn.einsum("i,i", ones(2), ones(0)),
        ValueError,
        "einsum: label 'i' of operand 1 has length 0, but 2 elsewhere",
    ),
    "einsum diagonal": (
        lambda: fn.einsum("ii", ones(2, 3)),
        ValueError,
        "einsum: label 'i' has lengths 2 and 3",
    ),
    "einsum output": (lambda: fn.einsum("ij->ik", ones(2, 3)), ValueError, "output of 'ij->ik'"),
    "einsum output twice": (lambda: fn.einsum("i->ii", ones(2)), ValueError, "output of 'i->ii'"),
    "einsum digits": (lambda: fn.einsum("i1", ones(2, 3)), ValueError, "'i1' .*letters"),
    "einsum dots twice": (lambda: fn.einsum("......", ones(2)), ValueError, "one '...'"),
    "einsum arrows": (lambda: fn.einsum("i->i->i", ones(2)), ValueError, "'i->i' .*letters"),
    "einsum nothing": (lambda: fn.einsum("i"), OperandError, "einsum: give the subscripts"),
    "einsum no text": (
        lambda: fn.einsum(ones(2), "i"),
        OperandError,
        "einsum: give the subscripts",
    ),
    "einsum list": (
        lambda: fn.einsum("i,i", ones(2), [1.0]),
        OperandError,
        r"einsum: operands\[1\] .*list \[1.0\]",
    ),
    **{
        f"{name} oblong": (
            lambda name=name: getattr(linalg, name)(ones(2, 3)),
            InvalidType,
            r"shape\[-1\].*3 != 2.*\(2, 3\)",
        )
        for name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "slogdet")
    },
    **{
        f"{name} vector": (
            lambda name=name: getattr(linalg, name)(ones(2)),
            InvalidType,
            r"ndim >= 2.*1 < 2.*\(2,\)",
        )
        for name in OF_MATRICES
    },
    **{
        f"{name} ints": (
            lambda name=name: getattr(linalg, name)(np.eye(2, dtype=int)),
            InvalidType,
            "floating.*int64",
        )
        for name in OF_MATRICES
    },
    **{
        f"{name} list": (
            lambda name=name: getattr(linalg, name)([[1.0]]),
            OperandError,
            rf"{name}: x .*list \[\[1.0\]\]",
        )
        for name in (*OF_MATRICES, "diagonal", "matrix_norm", "trace", "vector_norm")
    },
    "inv singular": (lambda: linalg.inv(SINGULAR), ValueError, "(?i)singular"),
    "solve singular": (lambda: linalg.solve(SINGULAR, np.ones(2)), ValueError, "(?i)singular"),
    "cholesky negative": (lambda: linalg.cholesky(-np.eye(2)), ValueError, "positive definite"),
    "solve oblong": (lambda: linalg.solve(ones(2, 3), ones(2)), InvalidType, "Solve.*3 != 2"),
    "solve length": (lambda: linalg.solve(ones(2, 2), ones(3)), InvalidType, "Solve.*2 != 3"),
    "solve number": (lambda: linalg.solve(ones(2, 2), 1.0), InvalidType, "Solve.*0 < 2"),
    "solve vector": (lambda: linalg.solve(ones(2), ones(2)), InvalidType, "Solve.*1 < 2"),
    "solve ints": (lambda: linalg.solve(np.eye(2, dtype=int), INTS[:2]), InvalidType, "floating"),
    "solve dtypes": (
        lambda: linalg.solve(ones(2, 2), tn.asarray([1, 2])),
        InvalidType,
        "Solve.*float32 != int64",
    ),
    "solve stacks": (
        lambda: linalg.solve(ones(2, 3, 3), ones(4, 3, 1)),
        InvalidType,
        r"Solve.*\(2,\) and \(4,\).*\(x1\): shape \(2, 3, 3\)",
    ),
    "solve text": (lambda: linalg.solve(ones(2, 2), "a"), OperandError, "solve: x2 .*str 'a'"),
    "solve_triangular singular": (
        lambda: linalg.solve_triangular(np.diag([1.0, 0.0]), np.ones(2)),
        ValueError,
        r"(?i)solve_triangular: singular.*\(2, 2\).*diagonal .* no zero",
    ),
    "solve_triangular oblong": (
        lambda: linalg.solve_triangular(ones(2, 3), ones(2)),
        InvalidType,
        "SolveTriangular.*3 != 2",
    ),
    "solve_triangular text": (
        lambda: linalg.solve_triangular(ones(2, 2), "a"),
        OperandError,
        "solve_triangular: b .*str 'a'",
    ),
    "solve_triangular flag": (
        lambda: linalg.solve_triangular(ones(2, 2), ones(2), upper="no"),
        OperandError,
        "solve_triangular: upper must be True or False",
    ),
    "cholesky_solve text": (
        lambda: linalg.cholesky_solve("a", ones(2, 2)),
        OperandError,
        "cholesky_solve: b .*str 'a'",
    ),
    "svd full": (
        lambda: linalg.svd(ones(2, 3)),
        ValueError,
        r"svd: .*\(2, 3\).*full_matrices=False",
    ),
    "diagonal": (lambda: linalg.diagonal(ones(2)), ValueError, r"diagonal: x needs two.*\(2,\)"),
    "trace": (lambda: linalg.trace(ones(2)), ValueError, r"trace: x needs two axes.*\(2,\)"),
    "outer": (
        lambda: linalg.outer(ones(2), ones(2, 1)),
        ValueError,
        r"outer: .*\(2,\) and \(2, 1\)",
    ),
    "outer text": (lambda: linalg.outer("a", ones(2)), OperandError, "outer: x1 .*str 'a'"),
    "cross": (lambda: linalg.cross(ones(2), ones(2)), ValueError, r"cross: axis -1 .*\(2,\)"),
    "cross second": (lambda: linalg.cross(ones(3), ones(2)), ValueError, r"cross: .*\(2,\)"),
    "cross axis": (lambda: linalg.cross(ones(3), ones(3), axis=0), ValueError, "cross: axis 0"),
    "cross axes": (lambda: linalg.cross(ones(3), ones(3), axis=-2), ValueError, "cross: axis -2"),
    "cross axis of one": (
        lambda: linalg.cross(ones(3, 2), ones(3), axis=-2),
        ValueError,
        r"cross: axis -2 .*\(3,\)",
    ),
    "cross text": (lambda: linalg.cross(ones(3), "a"), OperandError, "cross: x2 .*str 'a'"),
    "vector_norm axis": (lambda: linalg.vector_norm(ones(2), axis=1), ValueError, "axis 1 .*1 ax"),
    "vector_norm ints": (lambda: linalg.vector_norm(INTS), OperandError, "vector_norm: x .*int64"),
    "vector_norm ord": (
        lambda: linalg.vector_norm(ones(2), ord="fro"),
        OperandError,
        "vector_norm: ord .*str 'fro'",
    ),
    "matrix_norm": (lambda: linalg.matrix_norm(ones(2)), ValueError, r"matrix_norm: x .*\(2,\)"),
    "matrix_norm ints": (lambda: linalg.matrix_norm(INTS), OperandError, "matrix_norm: x .*int64"),
    "matrix_norm ord": (
        lambda: linalg.matrix_norm(ones(2, 2), ord=3),
        ValueError,
        "matrix_norm: ord .*got 3",
    ),
    "matrix_power": (
        lambda: linalg.matrix_power(ones(2, 3), 2),
        ValueError,
        r"matrix_power: x must be square.*\(2, 3\)",
    ),
    "matrix_power stack": (
        lambda: linalg.matrix_power(ones(2, 3, 4), 2),
        ValueError,
        r"matrix_power: x must be square.*\(2, 3, 4\)",
    ),
    "matrix_power vector": (
        lambda: linalg.matrix_power(ones(2), 2),
        ValueError,
        "matrix_power: x",
    ),
    "matrix_power ints": (
        lambda: linalg.matrix_power(np.eye(2, dtype=int), 2),
        OperandError,
        "matrix_power: x must be floating.*int64",
    ),
    "matrix_power float": (
        lambda: linalg.matrix_power(ones(2, 2), 0.5),
        OperandError,
        "matrix_power: n .*float 0.5",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_refused_with_names_and_shapes(name):
    call, exception, words = REFUSED[name]
    with pytest.raises(exception, match=f"(?s){words}"):
        call()


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e40])
def test_the_gradient_of_the_determinant_of_a_singular_matrix(n: int, scale: float) -> None:
    """LAPACK gives such a determinant as 1e-17 as often as not; the inverse is no help there."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        x = rng.normal(size=(n, n))
        x[-1] = x[0]
        minors = [
            [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
        cofactors = np.array(minors) * (-1.0) ** np.add.outer(np.arange(n), np.arange(n))
        v = tn.Variable(x * scale)
        with np.errstate(all="raise"):
            (g,) = tn.grad([linalg.det(v)], [v])
        error = np.abs(g.array / scale ** (n - 1) - cofactors).max()
        assert error < 1e-13 * np.abs(cofactors).max()

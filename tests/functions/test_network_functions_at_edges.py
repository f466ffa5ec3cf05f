"""The functions of networks at their edges, by hand: kinks, ties, infinities, nothing, bad input.

What the op table cannot say: it compares with formulas, which are undefined just there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import InvalidType, OperandError
from tinynode.functions import activation, exponential, image_columns
from tinynode.functions.image_columns import COLUMNS_IN_CACHE
from tinynode.functions.logistic import sigmoid_array
from tinynode.functions.normalization import batch_norm_with_statistics

INF, NAN = math.inf, math.nan
on_each_device = pytest.mark.parametrize("device", ["numpy", "strict:device1"])


def variable(values: Any, device: str = "numpy", dtype: str = "float64") -> tn.Variable:
    return tn.asarray(np.array(values), device=device, dtype=dtype)


def whole(values: Any, device: str = "numpy", dtype: str = "int64") -> Any:
    """Labels or indices, as an array on the device."""
    return tn.get_device(device).from_host(np.array(values, dtype=dtype))


def host(x: Any) -> Any:
    return tn.to_host(x.array if isinstance(x, tn.Variable) else x)


def gradient(y: tn.Variable, x: tn.Variable) -> Any:
    """dy/dx for y summed, on the host; zeros where there is none."""
    (gx,) = tn.grad([y], [x])
    return np.zeros(x.shape) if gx is None else host(gx)


def ones(*shape: int, dtype: str = "float32") -> tn.Variable:
    return tn.asarray(np.ones(shape), dtype=dtype)


# --- activations ---------------------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize(
    ("f", "at_zero"),
    [
        (fn.relu, 0),
        (fn.leaky_relu, 0.01),
        (lambda x: fn.leaky_relu(x, 3.0), 3),
        (fn.elu, 1),
        (lambda x: fn.elu(x, 0.25), 0.25),
        (fn.selu, 1.6732632423543772 * 1.0507009873554805),
        (fn.gelu, 0.5),
        (lambda x: fn.gelu(x, approximate=True), 0.5),
        (fn.silu, 0.5),
        (fn.softplus, 0.5),
        (fn.log_sigmoid, 0.5),
        (fn.hard_tanh, 1),
        (fn.hard_sigmoid, 1 / 6),
        (fn.hard_silu, 0.5),
        (fn.erf, 2 / math.sqrt(math.pi)),
    ],
)
def test_gradient_at_zero(f, at_zero, device):
    for zero in (0.0, -0.0):
        x = variable([zero], device)
        np.testing.assert_allclose(gradient(f(x), x), [at_zero], rtol=1e-14)


@on_each_device
@pytest.mark.parametrize(
    ("f", "bounds", "at_bounds"),
    [
        (fn.hard_tanh, [-1, 1], [1, 1]),
        (fn.hard_sigmoid, [-3, 3], [1 / 6, 1 / 6]),
        (fn.hard_silu, [-3, 3], [0, 1]),
    ],
)
def test_gradient_at_the_bounds_of_the_hard_ones(f, bounds, at_bounds, device):
    x = variable(bounds, device)
    np.testing.assert_allclose(gradient(f(x), x), at_bounds, rtol=1e-14)


# f, its limits at minus and plus infinity; None where it is NaN (0 * inf), as in PyTorch
LIMITS = [
    (fn.sigmoid, 0, 1),
    (fn.relu, 0, INF),
    (fn.leaky_relu, -INF, INF),
    (lambda x: fn.leaky_relu(x, 0.0), 0, INF),
    (fn.elu, -1, INF),
    (fn.selu, -1.7580993408473766, INF),
    (fn.gelu, 0, INF),
    (fn.silu, 0, INF),
    (fn.softplus, 0, INF),
    (fn.log_sigmoid, -INF, 0),
    (fn.hard_tanh, -1, 1),
    (fn.hard_sigmoid, 0, 1),
    (fn.erf, -1, 1),
]


@on_each_device
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("f", "low", "high"), LIMITS)
def test_infinite_input(f, low, high, dtype, device):
    x = variable([-INF, INF], device, dtype)
    with np.errstate(invalid="ignore"):
        y = host(f(x))
    np.testing.assert_allclose(y, [NAN if low is None else low, high], rtol=1e-6)


@on_each_device
@pytest.mark.parametrize("shape", [(4200,), (5000, 1), (3, 1400), (1, 70, 60), (50, 2, 6, 7)])
def test_relu_of_many_elements(shape, device):
    x = np.random.default_rng(0).standard_normal(shape)
    x[-1, ...] = np.inf
    x.flat[1] = np.nan
    y = fn.relu(variable(x, device))
    assert math.prod(shape) >= activation.MANY and y.shape == shape
    np.testing.assert_array_equal(host(y), np.where(x < 0, 0, x))


def test_relu_keeps_the_order_of_axes_in_memory():
    images = np.zeros((4, 20, 10, 8), np.float32).transpose(0, 3, 1, 2)
    assert fn.relu(tn.asarray(images)).array.strides == images.strides


@on_each_device
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("f", [f for f, *_ in LIMITS])
def test_nan_stays_where_it_is(f, dtype, device):
    x = variable([1.0, NAN, -1.0], device, dtype)
    y = f(x)
    np.testing.assert_array_equal(np.isnan(host(y)), [False, True, False])
    assert np.isfinite(gradient(y, x)[[0, 2]]).all()


@on_each_device
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_far_from_zero(approximate, dtype, device):
    x = variable([-30.0, -10.0, 10.0, 30.0], device, dtype)
    y = fn.gelu(x, approximate=approximate)
    tail = -1.2040923e-37 if approximate else -7.619853e-23
    np.testing.assert_allclose(host(y), [0, tail, 10, 30], rtol=1e-5, atol=1e-45)
    np.testing.assert_allclose(gradient(y, x), [0, 0, 1, 1], atol=1e-20)


@on_each_device
def test_silu_and_softplus_far_from_zero(device):
    x = variable([-1000.0, -40.0, 40.0, 1000.0], device)
    tiny = math.exp(-40)
    np.testing.assert_allclose(host(fn.softplus(x)), [0, tiny, 40, 1000], rtol=1e-14)
    np.testing.assert_allclose(host(fn.log_sigmoid(x)), [-1000, -40, -tiny, 0], rtol=1e-14)
    np.testing.assert_allclose(host(fn.silu(x)), [0, -40 * tiny, 40, 1000], rtol=1e-14)
    np.testing.assert_allclose(gradient(fn.silu(x), x), [0, -39 * tiny, 1, 1], rtol=1e-12)


@on_each_device
@pytest.mark.parametrize(("f", "scale"), [(fn.elu, 1), (fn.selu, 1.0507009873554805)])
def test_elu_far_from_zero(f, scale, device):
    """The exponential that is not taken overflows in no derivative."""
    x = variable([-1000.0, 1000.0], device)
    (gx,) = tn.grad([f(x)], [x], enable_double_backprop=True)
    np.testing.assert_allclose(host(gx), [0, scale], rtol=1e-14)
    np.testing.assert_array_equal(gradient(gx, x), [0, 0])


@on_each_device
def test_slopes_beside_the_kink_are_exact(device):
    x = variable([-2.0, 2.0], device, "float32")
    for slope in (0.1, 0.3, 7.0, 1e6):
        y = fn.leaky_relu(x, slope)
        np.testing.assert_array_equal(gradient(y, x), np.array([slope, 1], np.float32))
        np.testing.assert_array_equal(host(y), np.array([-2 * np.float32(slope), 2], np.float32))


@on_each_device
@pytest.mark.parametrize(("dtype", "precision"), [("float64", 2e-15), ("float32", 3e-7)])
def test_erf_is_as_precise_as_its_dtype(dtype, precision, device):
    points = np.concatenate([np.linspace(-7, 7, 5001), np.logspace(-30, 0, 301)])
    points = points.astype(dtype)
    exact = [math.erf(point) for point in points.tolist()]
    y = host(fn.erf(variable(points, device, dtype)))
    np.testing.assert_allclose(y, exact, rtol=precision)
    assert np.abs(y).max() == 1
    assert not np.signbit(y[points > 0]).any() and np.signbit(y[points < 0]).all()


@on_each_device
@pytest.mark.parametrize("shape", [(exponential.BLOCK + 3,), (2, exponential.BLOCK)])
def test_blocks_make_no_difference(shape, device):
    """Long arrays are computed block by block; in which layout they are is no matter."""
    values = np.linspace(-4, 4, math.prod(shape)).reshape(shape)
    place = tn.get_device(device).from_host
    for array, reference in (
        (place(values), values),
        (place(np.ascontiguousarray(values[..., ::-1]))[..., ::-1], values),
    ):
        y = exponential.in_blocks(sigmoid_array, array)
        assert tuple(y.shape) == shape
        np.testing.assert_allclose(host(y), 1 / (1 + np.exp(-reference)), rtol=1e-14)
    x, gy = tn.Variable(place(values)), tn.Variable(place(values[..., ::-1].copy()))
    (gx,) = tn.grad([fn.gelu(x)], [x], [gy])
    density = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    erf = np.vectorize(math.erf)(values / math.sqrt(2))
    expected = host(gy) * ((1 + erf) / 2 + values * density)
    np.testing.assert_allclose(host(gx), expected, atol=1e-14)


class OnGpu:
    """What stands for a backend of a GPU."""

    capabilities: frozenset[str] = frozenset()


@on_each_device
def test_long_arrays_come_in_blocks_and_short_ones_as_they_are(monkeypatch, device):
    shapes = []

    def spy(x):
        shapes.append(tuple(x.shape))
        return x

    block = exponential.BLOCK
    for shape, expected in (
        ((2, 3), [(2, 3)]),
        ((1, block), [(1, block)]),
        ((2, block // 2 + 1), [(block,), (2,)]),
    ):
        x = variable(np.ones(shape), device).array
        exponential.in_blocks(spy, x)
        assert shapes == expected
        shapes.clear()
    monkeypatch.setattr(exponential, "backend_of", lambda x: OnGpu)
    exponential.in_blocks(spy, x)
    assert shapes == [shape]


@on_each_device
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_erf_of_huge_numbers_overflows_nowhere(dtype, device):
    x = variable([-1e30, 1e30], device, dtype)
    np.testing.assert_array_equal(host(fn.erf(x)), [-1, 1])


# --- softmax -------------------------------------------------------------------------------------


@on_each_device
def test_softmax_of_a_row_of_minus_infinity_is_zero_and_so_is_its_gradient(device):
    x = variable([[-INF, -INF], [0.0, -INF], [0.0, 0.0]], device)
    y = fn.softmax(x)
    np.testing.assert_array_equal(host(y), [[0, 0], [1, 0], [0.5, 0.5]])
    (gx,) = tn.grad([y[:, 0]], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [[0, 0], [0, 0], [0.25, -0.25]])
    (ggx,) = tn.grad([gx[:, 0]], [x])
    np.testing.assert_array_equal(host(ggx), np.zeros((3, 2)))


@on_each_device
def test_softmax_of_huge_scores(device):
    x = variable([[1e30, 0.0], [-1e30, -1e30], [700.0, 710.0]], device)
    y = fn.softmax(x)
    p = 1 / (1 + math.exp(-10))
    np.testing.assert_allclose(host(y), [[1, 0], [0.5, 0.5], [1 - p, p]], rtol=1e-10)
    np.testing.assert_allclose(gradient(y[:, 1], x)[2], [-p * (1 - p), p * (1 - p)], rtol=1e-10)


@on_each_device
def test_log_softmax_of_a_class_that_is_out(device):
    x = variable([[0.0, -INF, 0.0]], device)
    y = fn.log_softmax(x)
    np.testing.assert_allclose(host(y), [[-math.log(2), -INF, -math.log(2)]], rtol=1e-15)
    np.testing.assert_allclose(gradient(y[:, 0], x), [[0.5, 0, -0.5]], rtol=1e-15)


def test_softmax_of_nothing():
    y = fn.softmax(variable(np.ones((2, 0))))
    assert y.shape == (2, 0)
    with pytest.raises(ValueError, match=r"log_softmax.*\(2, 0\)"):
        fn.log_softmax(variable(np.ones((2, 0))))


# --- losses --------------------------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 2.0]])
def test_cross_entropy_where_a_class_is_out(weights, smoothing, device):
    """A score of -inf, of a class that is not the label: no NaN in value or gradient."""
    x = variable([[0.0, -INF, 0.0], [0.0, -INF, 0.0]], device)
    given = None if weights is None else tn.get_device(device).from_host(np.array(weights))
    loss = fn.softmax_cross_entropy(
        x, whole([0, -1], device), class_weight=given, label_smoothing=smoothing
    )
    assert float(loss) == (INF if smoothing else pytest.approx(math.log(2)))
    w, spread = weights or [1, 1, 1], smoothing / 3
    q = np.array([(1 - smoothing) * w[0] + spread * w[0], spread * w[1], spread * w[2]]) / w[0]
    expected = np.array([0.5, 0, 0.5]) * q.sum() - q
    np.testing.assert_allclose(gradient(loss, x), [expected, [0, 0, 0]], atol=1e-15)


@on_each_device
def test_class_weights_that_add_up_to_zero(device):
    x = variable([[1.0, 2.0]], device)
    weights = tn.get_device(device).from_host(np.array([0.0, 1.0]))
    loss = fn.softmax_cross_entropy(x, whole([0], device), class_weight=weights)
    assert float(loss) == 0
    np.testing.assert_array_equal(gradient(loss, x), [[0, 0]])


def test_class_weights_get_no_gradient():
    x, w = variable([[1.0, 2.0]]), variable([1.0, 2.0])
    loss = fn.softmax_cross_entropy(x, whole([1]), class_weight=w)
    assert tn.grad([loss], [w]) == [None]


def test_cross_entropy_with_everything_by_hand():
    """Two rows count; p = (1/4, 3/4) in both. Weights 1 and 3, smoothing 0.2, labels 0 and 1."""
    x = variable([[0.0, math.log(3)], [0.0, math.log(3)], [9.0, 9.0]])
    how = {"class_weight": np.array([1.0, 3.0]), "label_smoothing": 0.2, "ignore_label": 7}
    low, high = math.log(4), math.log(4 / 3)
    first = 0.9 * 1 * low + 0.1 * 3 * high
    second = 0.1 * 1 * low + 0.9 * 3 * high
    labels = whole([0, 1, 7])
    none = fn.softmax_cross_entropy(x, labels, "none", **how)
    np.testing.assert_allclose(host(none), [first, second, 0], rtol=1e-14)
    loss = fn.softmax_cross_entropy(x, labels, **how)
    np.testing.assert_allclose(float(loss), (first + second) / 4, rtol=1e-14)
    expected = np.array([[1.2 / 4 - 0.9, 1.2 * 3 / 4 - 0.3], [2.8 / 4 - 0.1, 2.8 * 3 / 4 - 2.7]])
    np.testing.assert_allclose(gradient(loss, x)[:2], expected / 4, rtol=1e-14)


LABEL_LOSSES = {
    "softmax_cross_entropy": fn.softmax_cross_entropy,
    "nll": fn.nll,
    "hinge": fn.hinge,
}


@pytest.mark.parametrize("labels", [[0, 1], [0, -1]])
def test_only_the_check_of_labels_waits_for_a_device(labels, monkeypatch):
    """``bool(array)`` waits until a GPU has the value. NumPy's arrays have quicker branches."""
    asked = []

    def note(array):
        asked.append(array)
        return bool(np.asarray(array._array))

    x, targets = (
        variable([[0.5, 1.0], [5.0, 1.0]], "strict:device1"),
        whole(labels, "strict:device1"),
    )
    monkeypatch.setattr(type(x.array), "__bool__", note)
    loss = fn.softmax_cross_entropy(x, targets)
    assert len(asked) == 1
    (gx,) = tn.grad([loss], [x], enable_double_backprop=True)
    tn.grad([fn.sum(gx * gx)], [x])
    assert len(asked) == 1


@on_each_device
@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize("labels", [[0, 3], [0, -2], [7, 0]])
def test_labels_out_of_range_are_refused(labels, name, device):
    wrong = next(label for label in labels if label != 0)
    x = variable(np.zeros((2, 3)), device)
    message = f"{name}: labels must lie in 0 to 2 .*3 classes.*ignore_label=-1, got {wrong}"
    with pytest.raises(ValueError, match=message):
        LABEL_LOSSES[name](x, whole(labels, device))


@on_each_device
@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_an_ignored_label_may_be_anything(name, device):
    """In the range it takes a class out; out of it, and of unsigned labels, it is as good."""
    x = variable([[0.0, 1.0], [5.0, 1.0], [0.0, 1.0]], device)
    expected = LABEL_LOSSES[name](x[::2], whole([0, 0], device))
    for ignore in (1, -1, 200):
        labels = whole([0, ignore, 0], device)
        loss = LABEL_LOSSES[name](x, labels, ignore_label=ignore)
        np.testing.assert_allclose(float(loss), float(expected), rtol=1e-14)
        np.testing.assert_array_equal(gradient(loss, x)[1], [0, 0])
    loss = LABEL_LOSSES[name](x, whole([0, 200, 0], device, "uint8"), ignore_label=200)
    np.testing.assert_allclose(float(loss), float(expected), rtol=1e-14)


@on_each_device
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_ignored_rows_hide_infinite_and_undefined_scores(name, reduction, device):
    x = variable([[1.0, 2.0], [INF, -INF], [-INF, NAN]], device)
    if name == "softmax_cross_entropy":  # as in PyTorch, only the value is safe there
        x = variable([[1.0, 2.0], [3.0, -INF], [-INF, 4.0]], device)
    loss = LABEL_LOSSES[name](x, whole([0, -1, -1], device), reduction=reduction)
    assert np.isfinite(host(loss)).all()
    gx = gradient(loss, x)
    assert np.isfinite(gx).all() and gx[0].any() and not gx[1:].any()


@on_each_device
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["nll", "hinge", "sigmoid_cross_entropy"])
def test_all_ignored_gives_zero(name, reduction, device):
    x = variable([[1.0, 2.0], [3.0, 4.0]], device)
    labels = [[-1, -1], [-1, -1]] if name == "sigmoid_cross_entropy" else [-1, -1]
    loss = getattr(fn, name)(x, whole(labels, device), reduction=reduction)
    np.testing.assert_array_equal(host(loss), np.zeros(loss.shape))
    np.testing.assert_array_equal(gradient(loss, x), np.zeros((2, 2)))


@on_each_device
def test_hinge_at_its_kink(device):
    x = variable([[1.0, -1.0, 0.0]], device)
    loss = fn.hinge(x, whole([0], device), "none")
    np.testing.assert_array_equal(host(loss), [[0, 0, 1]])
    np.testing.assert_array_equal(gradient(loss, x), [[0, 0, 1]])


@on_each_device
def test_sigmoid_cross_entropy_far_from_zero(device):
    x = variable([1000.0, 40.0, -40.0, -1000.0], device)
    tiny = math.exp(-40)
    for labels in (whole([1, 1, 0, 0], device), variable([1.0, 1, 0, 0], device)):
        loss = fn.sigmoid_cross_entropy(x, labels, "none")
        np.testing.assert_allclose(host(loss), [0, tiny, tiny, 0], rtol=1e-14)
        np.testing.assert_allclose(gradient(loss, x), [0, -tiny, tiny, 0], atol=1e-16)
    other = fn.sigmoid_cross_entropy(x, whole([0, 0, 1, 1], device), "none")
    np.testing.assert_array_equal(host(other), [1000, 40, 40, 1000])


@on_each_device
@pytest.mark.parametrize("labels", [[0, 2], [-2, 1], [[0, 1], [0, 2]]])
def test_binary_labels_out_of_range_are_refused(labels, device):
    x = variable(np.zeros(np.shape(labels)), device)
    wrong = next(label for label in np.ravel(labels).tolist() if label not in (0, 1))
    with pytest.raises(ValueError, match=f"sigmoid_cross_entropy: labels .*0 to 1.*got {wrong}"):
        fn.sigmoid_cross_entropy(x, whole(labels, device))


@on_each_device
def test_huber_and_absolute_error_at_kinks_and_at_infinity(device):
    x = variable([-INF, -1.0, 0.0, 1.0, INF], device)
    zeros = variable(np.zeros(5), device)
    loss = fn.huber(x, zeros, reduction="none")
    np.testing.assert_array_equal(host(loss), [INF, 0.5, 0, 0.5, INF])
    np.testing.assert_array_equal(gradient(loss, x), [-1, -1, 0, 1, 1])
    loss = fn.mean_absolute_error(x, zeros, "none")
    np.testing.assert_array_equal(gradient(loss, x), [-1, -1, 0, 1, 1])


@on_each_device
def test_kl_divergence_of_impossible_events(device):
    """p = 0 counts as 0, whatever the model says; nothing undefined comes back."""
    log_q = variable([math.log(0.5), -INF, 0.0], device)
    p = variable([1.0, 0.0, 0.0], device)
    loss = fn.kl_divergence(log_q, p, "sum")
    np.testing.assert_allclose(float(loss), math.log(2), rtol=1e-15)
    np.testing.assert_array_equal(gradient(loss, log_q), [-1, 0, 0])
    np.testing.assert_allclose(gradient(loss, p), [math.log(2) + 1, 0, 0], rtol=1e-15)
    certain = fn.kl_divergence(log_q, variable([1.0, 0.0, 0.0], device), "none")
    np.testing.assert_allclose(host(certain), [math.log(2), 0, 0], rtol=1e-15)


@pytest.mark.parametrize("name", ["mean_absolute_error", "huber", "kl_divergence"])
def test_mean_over_the_first_axis_or_over_everything(name):
    x, y = variable([[0.0, 0.0], [0.0, 0.0]]), variable([[0.5, 0.5], [0.5, 0.5]])
    total = float(getattr(fn, name)(x, y, reduction="sum"))
    mean = float(getattr(fn, name)(x, y))
    assert mean == pytest.approx(total / (2 if name == "kl_divergence" else 4))


# --- convolution and pooling ---------------------------------------------------------------------


@on_each_device
def test_convolution_by_hand(device):
    """The kernel is not flipped; the border counts as zeros."""
    x = variable([[[[1.0, 2.0], [3.0, 4.0]]]], device)
    w = variable([[[[1.0, 10.0], [100.0, 1000.0]]]], device)
    np.testing.assert_array_equal(host(fn.conv2d(x, w)), [[[[4321]]]])
    y = fn.conv2d(x, w, padding=1)
    expected = [[1000, 2100, 200], [3010, 4321, 402], [30, 43, 4]]
    np.testing.assert_array_equal(host(y), [[expected]])
    line = fn.conv1d(x[:, :, 0], w[:, :, 0], padding=1)
    np.testing.assert_array_equal(host(line), [[[10, 21, 2]]])


@on_each_device
def test_transposed_convolution_by_hand(device):
    x = variable([[[[1.0, 2.0]]]], device)
    w = variable([[[[1.0, 10.0]]]], device)
    np.testing.assert_array_equal(host(fn.conv_transpose2d(x, w))[0, 0], [[1, 12, 20]])
    y = fn.conv_transpose2d(x, w, stride=(1, 3))
    np.testing.assert_array_equal(host(y)[0, 0], [[1, 10, 0, 2, 20]])
    y = fn.conv_transpose2d(x, w, stride=(1, 3), padding=(0, 1), output_padding=(0, 2))
    np.testing.assert_array_equal(host(y)[0, 0], [[10, 0, 2, 20, 0]])


def retained_size(y: tn.Variable) -> int:
    """The number of elements of all arrays that the graph keeps."""
    arrays, waiting, seen = {}, [y.creator_node], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for array in (*node.retained_input_data, *node.retained_output_data):
            if array is not None:
                arrays[id(array)] = array.size
        waiting += [x.creator_node for x in node.inputs]
    return sum(arrays.values())


def test_convolution_keeps_no_columns():
    x, w, b = ones(2, 3, 16, 16), ones(4, 3, 5, 5), ones(4)
    assert retained_size(fn.conv2d(x, w, b, padding=2)) == x.size + w.size


def test_many_images_are_convolved_in_batches():
    n = COLUMNS_IN_CACHE // (9 * 64) * 2 + 1  # three batches, the last of one image
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, 1, 8, 8)), rng.standard_normal((1, 1, 3, 3))
    images, kernels = variable(x), variable(w)
    y = fn.conv2d(images, kernels, padding=1)
    gy = variable(rng.standard_normal(y.shape))
    gx, gw = tn.grad([y], [images, kernels], [gy])
    columns = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
    )
    np.testing.assert_allclose(host(y), (columns * w[0, 0]).sum((-1, -2)), atol=1e-12)
    expected = (columns * host(gy)[..., None, None]).sum((0, 1, 2, 3))
    np.testing.assert_allclose(host(gw)[0, 0], expected, rtol=1e-10)
    back = fn.conv2d(gy, kernels[:, :, ::-1, ::-1], padding=1)
    np.testing.assert_allclose(host(gx), host(back), atol=1e-12)


@on_each_device
def test_batches_are_as_large_as_the_cache_allows(monkeypatch, device):
    """Images of 5 channels, 6 places of a window, 2 x 4 windows: 240 columns for each image."""
    sizes = {"unfold": [], "fold": []}
    unfold_stacks, fold_stacks = image_columns.unfold_stacks, image_columns.fold_stacks

    def unfold(*arguments):
        columns = unfold_stacks(*arguments)
        sizes["unfold"].append(math.prod(columns.shape))
        return columns

    def fold(columns, *others):
        sizes["fold"].append(math.prod(columns.shape))
        return fold_stacks(columns, *others)

    monkeypatch.setattr(image_columns, "unfold_stacks", unfold)
    monkeypatch.setattr(image_columns, "fold_stacks", fold)
    for limit, expected in ((480, [480, 480, 240]), (479, [240] * 5), (1, [240] * 5)):
        monkeypatch.setattr(image_columns, "COLUMNS_IN_CACHE", limit)
        x = variable(np.ones((5, 5, 3, 6)), device)
        w = variable(np.ones((5, 5, 2, 3)), device)
        y = fn.conv2d(x, w)
        tn.grad([y], [x, w])
        assert sizes == {"unfold": expected * 2, "fold": expected}
        sizes["unfold"].clear()
        sizes["fold"].clear()
    monkeypatch.setattr(image_columns, "COLUMNS_IN_CACHE", 6)
    fn.conv2d(variable(np.ones((5, 1, 1, 2)), device), variable([[[[1.0, 1.0]]]], device))
    assert sizes.pop("unfold") == [6, 4]
    sizes["unfold"] = []
    monkeypatch.setattr(image_columns, "backend_of", lambda x: OnGpu)
    for limit, expected in ((1 << 27, [1200]), (480, [480, 480, 240])):
        monkeypatch.setattr(image_columns, "COLUMNS_ON_GPU", limit)
        tn.grad([fn.conv2d(x, w)], [x, w])
        assert sizes == {"unfold": expected * 2, "fold": expected}
        sizes["unfold"].clear()
        sizes["fold"].clear()


@on_each_device
def test_first_place_of_the_window_wins_a_tie(device):
    x = variable(np.ones((1, 1, 3, 3)), device)
    y = fn.max_pool2d(x, 2, 1)
    np.testing.assert_array_equal(gradient(y, x)[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    padded = fn.max_pool2d(x, 2, 2, 1)
    np.testing.assert_array_equal(gradient(padded, x)[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])


@on_each_device
def test_border_of_max_pooling_never_wins_against_a_number(device):
    x = variable(np.full((1, 1, 2, 2), -1e30), device)
    y = fn.max_pool2d(x, 2, 1, 1)
    np.testing.assert_array_equal(host(y), np.full((1, 1, 3, 3), -1e30))
    np.testing.assert_array_equal(gradient(y, x)[0, 0], [[4, 2], [2, 1]])


@on_each_device
def test_max_pooling_of_nan(device):
    y = fn.max_pool2d(variable([[[[1.0, NAN, 3.0, 4.0]]]], device), (1, 2))
    np.testing.assert_array_equal(host(y), [[[[NAN, 4]]]])


@on_each_device
def test_zeros_of_the_border_count_in_average_pooling(device):
    x = variable(np.ones((1, 1, 2, 2)), device)
    y = fn.avg_pool2d(x, 2, 2, 1)
    np.testing.assert_array_equal(host(y)[0, 0], np.full((2, 2), 0.25))


@on_each_device
def test_global_max_shares_ties_evenly(device):
    x = variable([[[[2.0, 2.0], [1.0, 2.0]]]], device)
    gx = gradient(fn.global_max_pool2d(x), x)
    np.testing.assert_allclose(gx[0, 0], [[1 / 3, 1 / 3], [0, 1 / 3]], rtol=1e-15)


@on_each_device
def test_upsampling_copies_and_its_gradient_adds(device):
    x = variable([[[[0.1, 0.7]]]], device)
    y = fn.upsample_nearest2d(x, (2, 3))
    np.testing.assert_array_equal(host(y)[0, 0], [[0.1] * 3 + [0.7] * 3] * 2)
    np.testing.assert_array_equal(gradient(y, x)[0, 0], [[6, 6]])


def test_numpy_integers_are_as_good_as_integers():
    x, two = ones(1, 2, 4, 4), np.int64(2)
    assert fn.max_pool2d(x, two, (two, np.int32(1))).shape == (1, 2, 2, 3)
    assert fn.conv2d(x, ones(1, 2, 2, 2), stride=two, padding=[1, 0]).shape == (1, 1, 3, 2)
    assert fn.upsample_nearest2d(x, two).shape == (1, 2, 8, 8)


# --- normalisation -------------------------------------------------------------------------------


@on_each_device
def test_normalisation_of_equal_elements(device):
    """No variance: the result is beta, and the gradient is finite."""
    gamma, beta = variable([2.0, 3.0], device), variable([5.0, 7.0], device)
    for f, x in (
        (fn.batch_norm, variable([[1.0, 4.0], [1.0, 4.0]], device)),
        (fn.layer_norm, variable([[4.0, 4.0]], device)),
        (fn.instance_norm, variable([[[1.0, 1.0], [4.0, 4.0]]], device)),
    ):
        y = f(x, gamma, beta)
        shape = (2, 1) if x.ndim == 3 else (2,)
        expected = np.broadcast_to(np.reshape([5.0, 7.0], shape), x.shape)
        np.testing.assert_array_equal(host(y), expected)
        assert np.isfinite(gradient(y * y, x)).all()


@on_each_device
def test_rms_norm_of_zeros_is_zero(device):
    x = variable([[0.0, 0.0]], device)
    y = fn.rms_norm(x, variable([1.0, 2.0], device), eps=1e-4)
    np.testing.assert_array_equal(host(y), [[0, 0]])
    np.testing.assert_allclose(gradient(y, x), [[100, 200]], rtol=1e-12)


@on_each_device
def test_statistics_of_the_batch(device):
    x = variable([[1.0, 10.0], [3.0, 10.0]], device)
    _, mean, variance = batch_norm_with_statistics(x, None, None)
    np.testing.assert_allclose(host(mean), [2, 10], rtol=1e-14)
    np.testing.assert_allclose(host(variance), [1, 0], atol=1e-12)
    np.testing.assert_allclose(gradient(variance, x), [[-1, 0], [1, 0]], atol=1e-12)


# --- embedding, dropout, attention ---------------------------------------------------------------


@on_each_device
def test_gradients_of_repeated_indices_add(device):
    w = variable(np.arange(6.0).reshape(3, 2), device)
    y = fn.embedding(whole([[0, 2], [2, 2]], device), w)
    np.testing.assert_array_equal(host(y), [[[0, 1], [4, 5]], [[4, 5], [4, 5]]])
    np.testing.assert_array_equal(gradient(y, w), [[1, 1], [0, 0], [3, 3]])


@on_each_device
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dropout_keeps_what_it_scales(dtype, device):
    x = variable(np.ones(1000), device, dtype)
    y = fn.dropout(x, 0.25, np.random.default_rng(0))
    values = host(y)
    assert set(values.tolist()) == {0.0, float(np.asarray(1 / 0.75, dtype))}
    assert 700 < np.count_nonzero(values) < 800
    np.testing.assert_array_equal(gradient(y, x), values)


class Fixed(np.random.Generator):
    """Draws given numbers."""

    def random(self, size: Any = None) -> Any:
        return np.array([0.0, 0.25, 0.5])


def test_dropout_keeps_an_element_from_the_ratio_on():
    y = fn.dropout(variable(np.ones(3)), 0.25, Fixed(np.random.PCG64()))
    np.testing.assert_allclose(host(y), [0, 4 / 3, 4 / 3], rtol=1e-15)


def test_dropout_draws_the_same_on_every_device_and_at_every_dtype():
    masks = [
        host(fn.dropout(variable(np.ones(50), device, dtype), 0.5, np.random.default_rng(1))) > 0
        for device in ("numpy", "strict:device1")
        for dtype in ("float32", "float64")
    ]
    assert all((mask == masks[0]).all() for mask in masks)


def test_dropout_leaves_x_alone_where_nothing_drops():
    x = ones(3)
    assert fn.dropout(x, 0.0) is x
    with tn.using_config(train=False):
        assert fn.dropout(x, 0.5) is x


@on_each_device
@pytest.mark.parametrize("causal", [False, True])
def test_a_query_that_may_see_no_key_gets_zeros_and_gives_zero_gradients(causal, device):
    rng = np.random.default_rng(0)
    query, key, value = (variable(rng.standard_normal((2, 3)), device) for _ in range(3))
    mask = tn.get_device(device).from_host(np.array([[False, False], [True, True]]))
    y = fn.scaled_dot_product_attention(query, key, value, mask, causal)
    np.testing.assert_array_equal(host(y)[0], [0, 0, 0])
    default = fn.scaled_dot_product_attention(query, key, value)
    assert (
        host(fn.scaled_dot_product_attention(query, key, value, None, causal)) == host(default)
    ).all() == (not causal)
    gradients = tn.grad([y * y], [query, key, value], enable_double_backprop=True)
    assert all(np.isfinite(host(g)).all() for g in gradients)
    np.testing.assert_array_equal(host(gradients[0])[0], [0, 0, 0])
    assert host(gradients[0])[1].any()
    second = tn.grad([fn.sum(g * g) for g in gradients], [query, key, value])
    assert all(np.isfinite(host(g)).all() for g in second)
    np.testing.assert_array_equal(host(second[0])[0], [0, 0, 0])


@on_each_device
def test_a_key_that_nobody_may_see_gets_no_gradient(device):
    rng = np.random.default_rng(0)
    query, key, value = (variable(rng.standard_normal((2, 3)), device) for _ in range(3))
    y = fn.scaled_dot_product_attention(query, key, value, causal=True)
    np.testing.assert_allclose(host(y)[0], host(value)[0], rtol=1e-15)
    gkey, gvalue = tn.grad([y[0] * y[0]], [key, value])
    np.testing.assert_array_equal(host(gkey), np.zeros((2, 3)))
    np.testing.assert_array_equal(host(gvalue)[1], [0, 0, 0])


@on_each_device
def test_attention_of_huge_scores(device):
    query, key = variable([[1e6, 0.0]], device), variable([[1e6, 0.0], [-1e6, 0.0]], device)
    value = variable([[1.0], [2.0]], device)
    y = fn.scaled_dot_product_attention(query, key, value)
    np.testing.assert_array_equal(host(y), [[1]])
    np.testing.assert_array_equal(gradient(y, query), [[0, 0]])


# --- dtypes --------------------------------------------------------------------------------------

WIDE = np.ones(2)
BESIDE = {
    "mean_absolute_error": lambda x: fn.mean_absolute_error(x[0], WIDE),
    "huber": lambda x: fn.huber(x[0], WIDE, delta=0.3),
    "kl_divergence": lambda x: fn.kl_divergence(x[0], WIDE),
    "sigmoid_cross_entropy": lambda x: fn.sigmoid_cross_entropy(x[0], WIDE),
    "sigmoid_cross_entropy labels": lambda x: fn.sigmoid_cross_entropy(x[0], whole([0, 1])),
    "softmax_cross_entropy": lambda x: fn.softmax_cross_entropy(
        x, whole([0, 1]), class_weight=WIDE, label_smoothing=0.1
    ),
    "nll": lambda x: fn.nll(x, whole([0, 1])),
    "hinge": lambda x: fn.hinge(x, whole([0, 1])),
    "conv2d": lambda x: fn.conv2d(x[None, None], np.ones((1, 1, 1, 1)), np.ones(1)),
    "conv1d": lambda x: fn.conv1d(x[None], np.ones((1, 2, 1)), np.ones(1)),
    "conv_transpose2d": lambda x: fn.conv_transpose2d(x[None, None], np.ones((1, 2, 1, 1)), WIDE),
    "bilinear": lambda x: fn.bilinear(x, np.ones((2, 3)), np.ones((2, 2, 3)), WIDE),
    "batch_norm": lambda x: fn.batch_norm(x, WIDE, WIDE),
    "fixed_batch_norm": lambda x: fn.fixed_batch_norm(x, WIDE, WIDE, WIDE, WIDE),
    "layer_norm": lambda x: fn.layer_norm(x, WIDE, WIDE),
    "rms_norm": lambda x: fn.rms_norm(x, WIDE),
    "group_norm": lambda x: fn.group_norm(x, 1, WIDE, WIDE),
    "max_pool2d": lambda x: fn.max_pool2d(x[None, None], 2, padding=1),
    "avg_pool2d": lambda x: fn.avg_pool2d(x[None, None], 2, padding=1),
    "dropout": lambda x: fn.dropout(x, 0.3, np.random.default_rng(0)),
    "attention": lambda x: fn.scaled_dot_product_attention(x, np.ones((3, 2)), np.ones((3, 2))),
    "elu": lambda x: fn.elu(x, 0.3),
    "leaky_relu": lambda x: fn.leaky_relu(x, 0.3),
    "gelu": fn.gelu,
    "selu": fn.selu,
    "hard_silu": fn.hard_silu,
}


@pytest.mark.parametrize("name", BESIDE)
def test_float32_does_not_creep_to_float64(name):
    x = variable([[0.1, 0.2], [0.3, 0.4]], dtype="float32")
    y = BESIDE[name](x)
    assert y.dtype == np.float32
    (gx,) = tn.grad([y], [x])
    assert gx.dtype == np.float32


@on_each_device
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32")])
@pytest.mark.parametrize("name", ["sigmoid_cross_entropy", "kl_divergence"])
def test_a_gradient_has_the_dtype_of_its_input(name, dtypes, device):
    x, t = variable([0.5, -1.0], device, dtypes[0]), variable([0.25, 0.5], device, dtypes[1])
    y = getattr(fn, name)(x, t, reduction="sum")
    gx, gt = tn.grad([y], [x, t])
    assert (gx.dtype, gt.dtype) == (x.dtype, t.dtype)
    assert y.dtype == variable([0.0], device).dtype


# --- what is refused -----------------------------------------------------------------------------

IMAGE, LABELS = ones(1, 2, 4, 4), np.array([0, 1, 0])
INTEGERS = np.ones((3, 2), np.int64)
WIDE_X = variable(np.ones((3, 2)))
TWOS = tn.asarray(whole([2, 2]))
FLOATING = [
    fn.dropout, fn.elu, fn.erf, fn.gelu, fn.glu, fn.hard_sigmoid, fn.hard_silu, fn.hard_tanh,
    fn.leaky_relu, fn.log_sigmoid, fn.log_softmax, fn.selu, fn.sigmoid, fn.silu, fn.softmax,
    fn.softplus,
]  # fmt: skip


@on_each_device
@pytest.mark.parametrize("f", FLOATING)
def test_integers_are_refused_alike_on_every_backend(f, device):
    x, name = tn.get_device(device).from_host(INTEGERS), f.__name__
    with pytest.raises(
        OperandError, match=rf"{name}: x must be floating.*\(3, 2\), int64.*astype"
    ):
        f(x)
    with pytest.raises(OperandError, match=f"{name}: x must be .*str 'a'"):
        f("a")


REFUSED = {
    "glu odd": (lambda: fn.glu(ones(2, 3)), ValueError, r"glu: x has shape \(2, 3\).*even"),
    "glu axis": (lambda: fn.glu(ones(2, 4), 2), ValueError, "glu: axis 2"),
    "softmax axis": (lambda: fn.softmax(ones(3), 1), ValueError, "softmax: axis 1"),
    "smoothing": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), LABELS, label_smoothing=1.5),
        ValueError,
        "softmax_cross_entropy: label_smoothing must lie in 0 to 1, got 1.5",
    ),
    "class weights": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), LABELS, class_weight=np.ones(3)),
        ValueError,
        r"softmax_cross_entropy: class_weight has shape \(3,\).*\(3, 2\) it must have \(2,\)",
    ),
    "class weights list": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), LABELS, class_weight=[1, 2]),
        OperandError,
        r"softmax_cross_entropy: class_weight must be .*list \[1, 2\]",
    ),
    "class weights dtype": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), LABELS, class_weight=TWOS),
        OperandError,
        "softmax_cross_entropy: class_weight must be floating, got .*int64",
    ),
    "class weights dtype of the function": (
        lambda: fn.SoftmaxCrossEntropy("mean", -1).apply((ones(3, 2), whole([0, 1, 0]), WIDE)),
        InvalidType,
        r"SoftmaxCrossEntropy.*float64 != float32",
    ),
    "gradient without labels": (
        lambda: fn.SoftmaxCrossEntropyGrad("mean", -1).apply((ones(3, 2), ones())),
        InvalidType,
        "SoftmaxCrossEntropyGrad.*size.* >= 3",
    ),
    "scores of sequences": (
        lambda: fn.softmax_cross_entropy(ones(2, 3, 4), whole([[0, 1, 2], [0, 1, 2]])),
        InvalidType,
        r"SoftmaxCrossEntropy.*Try: .*reshape x to \(-1, classes\)",
    ),
    "nll text": (lambda: fn.nll("a", LABELS), OperandError, "nll: log_p must be a Variable or an"),
    "nll of sequences": (
        lambda: fn.nll(ones(2, 3, 4), whole([[0, 1, 2], [0, 1, 2]])),
        ValueError,
        r"nll: .*\(2, 3, 4\) and \(2, 3\).*reshape to \(-1, classes\)",
    ),
    **{
        f"{f.__name__} of small integers": (
            lambda f=f: f(tn.asarray(whole([20], dtype="uint8")), whole([0], dtype="uint8")),
            OperandError,
            rf"{f.__name__}: (x|log_q) must be floating, got Variable of shape \(1,\), uint8",
        )
        for f in (fn.mean_squared_error, fn.mean_absolute_error, fn.huber, fn.kl_divergence)
    },
    "integer targets": (
        lambda: fn.mean_squared_error(ones(2), tn.asarray(whole([1, 2]))),
        OperandError,
        "mean_squared_error: y must be floating, got Variable .*int64.*astype",
    ),
    "huber reduction as delta": (
        lambda: fn.huber(ones(2), ones(2), "sum"),
        OperandError,
        "huber: delta must be a number, got str 'sum'",
    ),
    "leaky_relu slope": (
        lambda: fn.leaky_relu(ones(2), "a"),
        OperandError,
        "leaky_relu: slope must be a number, got str 'a'",
    ),
    "elu alpha": (
        lambda: fn.elu(ones(2), None),
        OperandError,
        "elu: alpha must be a number, got NoneType None",
    ),
    "conv2d groups float": (
        lambda: fn.conv2d(ones(1, 2, 4, 4), ones(2, 2, 1, 1), groups=1.0),
        OperandError,
        "conv2d: groups must be an integer, got float 1.0",
    ),
    "group_norm groups float": (
        lambda: fn.group_norm(ones(1, 2, 4), 1.0, None, None),
        OperandError,
        "group_norm: groups must be an integer, got float 1.0",
    ),
    "conv1d padding": (
        lambda: fn.conv1d(ones(1, 2, 4), ones(1, 2, 1), padding=(1, 1)),
        ValueError,
        r"conv1d: padding must be an integer, not below 0, got \(1, 1\)",
    ),
    **{
        f"{f.__name__} of nothing": (
            lambda f=f: f(ones(1, 2, 0, 3)),
            ValueError,
            rf"{f.__name__}: x has shape \(1, 2, 0, 3\): axis 2 is empty",
        )
        for f in (fn.global_max_pool2d, fn.global_avg_pool2d)
    },
    **{
        f"{name} {what} of integers": (
            call,
            OperandError,
            rf"{name}: {what} must be floating, got .*int64",
        )
        for name, what, call in (
            ("batch_norm", "gamma", lambda: fn.batch_norm(WIDE_X, TWOS, None)),
            ("batch_norm", "beta", lambda: fn.batch_norm(WIDE_X, None, TWOS)),
            ("layer_norm", "gamma", lambda: fn.layer_norm(WIDE_X, TWOS, None)),
            ("rms_norm", "gamma", lambda: fn.rms_norm(WIDE_X, TWOS)),
            ("group_norm", "beta", lambda: fn.group_norm(WIDE_X, 1, None, TWOS)),
            (
                "fixed_batch_norm",
                "mean",
                lambda: fn.fixed_batch_norm(WIDE_X, None, None, TWOS, TWOS),
            ),
        )
    },
    "embedding ragged": (
        lambda: fn.embedding([[1], [1, 2]], ones(3, 2)),
        OperandError,
        "embedding: a list as indices must .*equally long",
    ),
    "nll shapes": (
        lambda: fn.nll(ones(3, 2), np.array([0, 1])),
        ValueError,
        r"nll: log_p must be \(n, classes\) and labels \(n\).*\(3, 2\) and \(2,\)",
    ),
    "nll labels": (lambda: fn.nll(ones(3, 2), ones(3)), OperandError, "nll: labels must be int"),
    "nll integers": (lambda: fn.nll(INTEGERS, LABELS), OperandError, "nll: log_p must be float"),
    "nll reduction": (
        lambda: fn.nll(ones(3, 2), LABELS, "average"),
        ValueError,
        "nll: reduction .*got 'average'",
    ),
    "hinge shapes": (
        lambda: fn.hinge(ones(3), LABELS),
        ValueError,
        r"hinge: x must be \(n, classes\) and labels \(n\).*\(3,\) and \(3,\)",
    ),
    "hinge labels": (lambda: fn.hinge(ones(3, 2), ones(3)), OperandError, "hinge: labels must be"),
    "hinge reduction": (
        lambda: fn.hinge(ones(3, 2), LABELS, "average"),
        ValueError,
        "hinge: reduction .*got 'average'",
    ),
    "bce shapes": (
        lambda: fn.sigmoid_cross_entropy(ones(3, 1), ones(3)),
        ValueError,
        r"sigmoid_cross_entropy: x has shape \(3, 1\), t has \(3,\)",
    ),
    "bce integers": (
        lambda: fn.sigmoid_cross_entropy(INTEGERS, INTEGERS),
        OperandError,
        "sigmoid_cross_entropy: x must be floating",
    ),
    "bce reduction": (
        lambda: fn.sigmoid_cross_entropy(ones(3), ones(3), "average"),
        ValueError,
        "sigmoid_cross_entropy: reduction .*got 'average'",
    ),
    "mae shapes": (
        lambda: fn.mean_absolute_error(ones(3, 1), ones(3)),
        ValueError,
        r"mean_absolute_error: x has shape \(3, 1\), y has \(3,\)",
    ),
    "huber shapes": (
        lambda: fn.huber(ones(3, 1), ones(3)),
        ValueError,
        r"huber: x has shape \(3, 1\), y has \(3,\)",
    ),
    "huber delta": (
        lambda: fn.huber(ones(3), ones(3), delta=0),
        ValueError,
        "huber: delta must be positive, got 0",
    ),
    "kl shapes": (
        lambda: fn.kl_divergence(ones(3, 1), ones(3)),
        ValueError,
        r"kl_divergence: x has shape \(3, 1\), p has \(3,\)",
    ),
    "kl reduction": (
        lambda: fn.kl_divergence(ones(3), ones(3), "batchmean"),
        ValueError,
        "kl_divergence: reduction .*got 'batchmean'",
    ),
    "conv2d axes": (
        lambda: fn.conv2d(ones(2, 4, 4), ones(1, 2, 2, 2)),
        OperandError,
        r"conv2d: x must have the axes \(n, channels, height, width\), got shape \(2, 4, 4\)",
    ),
    "conv2d w axes": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2)),
        OperandError,
        r"conv2d: w must have four axes.*\(1, 2, 2\)",
    ),
    "conv2d channels": (
        lambda: fn.conv2d(IMAGE, ones(1, 3, 2, 2)),
        ValueError,
        r"conv2d: x has 2 channels \(shape \(1, 2, 4, 4\)\).*\(1, 3, 2, 2\).*needs 3",
    ),
    "conv2d groups": (
        lambda: fn.conv2d(IMAGE, ones(4, 1, 2, 2), groups=3),
        ValueError,
        r"conv2d: groups=3 does not divide.*\(1, 2, 4, 4\).*\(4, 1, 2, 2\)",
    ),
    **{
        f"conv2d groups of {what}": (
            lambda x=x, w=w: fn.conv2d(ones(1, x, 4, 4), ones(w, 2, 2, 2), groups=2),
            ValueError,
            "conv2d: groups=2 does not divide",
        )
        for what, x, w in (("x", 3, 2), ("w", 4, 3))
    },
    "conv2d no groups": (
        lambda: fn.conv2d(IMAGE, ones(4, 1, 2, 2), groups=0),
        ValueError,
        "conv2d: groups=0",
    ),
    "conv2d low image": (
        lambda: fn.conv2d(ones(1, 2, 2, 9), ones(1, 2, 3, 1)),
        ValueError,
        r"conv2d: windows of kernel_size \(3, 1\).* do not fit on images of \(2, 9\)",
    ),
    "conv2d window": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 3, 3), dilation=2),
        ValueError,
        r"conv2d: windows of kernel_size \(3, 3\) with dilation \(2, 2\) do not fit.*\(4, 4\)",
    ),
    "conv2d empty kernel": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 0, 3)),
        ValueError,
        r"conv2d: kernel_size must be .*not below 1, got \(0, 3\)",
    ),
    "conv2d stride": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2, 2), stride=0),
        ValueError,
        "conv2d: stride must be an integer or two, not below 1, got 0",
    ),
    "conv2d three strides": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2, 2), stride=(1, 1, 1)),
        ValueError,
        r"conv2d: stride .*got \(1, 1, 1\)",
    ),
    "conv2d padding": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2, 2), padding="Same"),
        ValueError,
        "conv2d: padding must be integers, .*; got padding='Same' and stride=1",
    ),
    "conv2d half padding": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2, 2), padding=0.5),
        ValueError,
        "conv2d: padding .*got 0.5",
    ),
    "conv2d bias": (
        lambda: fn.conv2d(IMAGE, ones(3, 2, 2, 2), ones(2)),
        ValueError,
        r"conv2d: b must have shape \(3,\).*got \(2,\)",
    ),
    "conv2d dtypes": (
        lambda: fn.conv2d(IMAGE, ones(1, 2, 2, 2, dtype="int64")),
        InvalidType,
        "conv2d: x is float32, w is int64.*astype",
    ),
    "conv2d integers": (
        lambda: fn.conv2d(np.ones((1, 2, 4, 4), np.int64), np.ones((1, 2, 2, 2), np.int64)),
        OperandError,
        "conv2d: x must be floating",
    ),
    "conv2d w text": (
        lambda: fn.conv2d(IMAGE, "a"),
        OperandError,
        "conv2d: w must be a Variable, an array or a number, got str 'a'",
    ),
    "where condition text": (
        lambda: fn.where("a", IMAGE, IMAGE),
        OperandError,
        "where: condition must be a Variable or an array, got str 'a'",
    ),
    "conv1d axes": (
        lambda: fn.conv1d(IMAGE, ones(1, 2, 2)),
        ValueError,
        r"conv1d: x must be \(n, channels, length\).*\(1, 2, 4, 4\) and \(1, 2, 2\)",
    ),
    "conv1d channels": (
        lambda: fn.conv1d(ones(1, 2, 4), ones(1, 3, 2)),
        ValueError,
        "conv1d: x has 2 channels.*needs 3",
    ),
    "conv1d window": (
        lambda: fn.conv1d(ones(1, 2, 4), ones(1, 2, 5)),
        ValueError,
        "conv1d: a window of size 5 .*does not fit on signals of length 4",
    ),
    "conv1d bias": (
        lambda: fn.conv1d(ones(1, 2, 4), ones(3, 2, 2), ones(1)),
        ValueError,
        r"conv1d: b must have shape \(3,\).*got \(1,\)",
    ),
    "conv1d stride": (
        lambda: fn.conv1d(ones(1, 2, 4), ones(3, 2, 2), stride=0),
        ValueError,
        "conv1d: stride .*not below 1",
    ),
    "transposed axes": (
        lambda: fn.conv_transpose2d(ones(2, 4, 4), ones(2, 1, 2, 2)),
        OperandError,
        r"conv_transpose2d: x must have four axes.*\(2, 4, 4\)",
    ),
    "transposed channels": (
        lambda: fn.conv_transpose2d(IMAGE, ones(3, 1, 2, 2)),
        ValueError,
        r"conv_transpose2d: x has 2 channels.*w has 3 \(shape \(3, 1, 2, 2\)\)",
    ),
    "transposed groups": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 2, 2), groups=3),
        ValueError,
        "conv_transpose2d: groups=3",
    ),
    "transposed bias": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 2, 2, 2), ones(2), groups=2),
        ValueError,
        r"conv_transpose2d: b must have shape \(4,\).*got \(2,\)",
    ),
    "transposed output padding of 1": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 2, 2), output_padding=1),
        ValueError,
        r"conv_transpose2d: output_padding \(1, 1\)",
    ),
    "transposed output padding": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 2, 2), stride=2, output_padding=2),
        ValueError,
        r"conv_transpose2d: output_padding \(2, 2\) must be below the stride \(2, 2\) or the dil",
    ),
    "transposed padding": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 2, 2), padding=3),
        ValueError,
        r"conv_transpose2d: the output would have size \(-1, -1\)",
    ),
    "transposed empty kernel": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 0, 2)),
        ValueError,
        "conv_transpose2d: kernel_size",
    ),
    "transposed dtypes": (
        lambda: fn.conv_transpose2d(IMAGE, ones(2, 1, 2, 2, dtype="int64")),
        InvalidType,
        "conv_transpose2d: x is float32, w is int64",
    ),
    "bilinear shapes": (
        lambda: fn.bilinear(ones(4, 3), ones(4, 2), ones(5, 2, 3)),
        ValueError,
        r"bilinear: x1 must be .*\(4, 3\), \(4, 2\) and \(5, 2, 3\)",
    ),
    **{
        f"bilinear {what}": (
            lambda shapes=shapes: fn.bilinear(*(ones(*shape) for shape in shapes)),
            ValueError,
            r"bilinear: x1 must be \(n, in1\)",
        )
        for what, *shapes in (
            ("axes of x1", (4, 3, 1), (4, 2), (5, 3, 2)),
            ("axes of x2", (4, 3), (4, 2, 1), (5, 3, 2)),
            ("axes of w", (4, 3), (4, 2), (5, 3, 2, 1)),
        )
    },
    **{
        f"Linear of {number}": (
            lambda number=number: fn.Linear().apply([ones(2, 2)] * number),
            InvalidType,
            rf"Linear.*size.*{number} [<>] ",
        )
        for number in (1, 4)
    },
    "bilinear rows": (
        lambda: fn.bilinear(ones(4, 3), ones(5, 2), ones(5, 3, 2)),
        ValueError,
        r"bilinear: .*\(4, 3\), \(5, 2\)",
    ),
    "bilinear w axes": (
        lambda: fn.bilinear(ones(4, 3), ones(4, 2), ones(3, 2)),
        ValueError,
        r"bilinear: .*\(3, 2\)",
    ),
    "bilinear bias": (
        lambda: fn.bilinear(ones(4, 3), ones(4, 2), ones(5, 3, 2), ones(4, 5)),
        ValueError,
        r"bilinear: b must have shape \(5,\), got \(4, 5\)",
    ),
    "max_pool2d axes": (
        lambda: fn.max_pool2d(ones(2, 4, 4), 2),
        OperandError,
        r"max_pool2d: x must have the axes.*\(2, 4, 4\)",
    ),
    "max_pool2d integers": (
        lambda: fn.max_pool2d(np.ones((1, 1, 4, 4), np.int64), 2),
        OperandError,
        "max_pool2d: x must be floating",
    ),
    "max_pool2d padding": (
        lambda: fn.max_pool2d(IMAGE, 2, padding=2),
        ValueError,
        r"max_pool2d: padding \(2, 2\) must be at most half of the kernel_size \(2, 2\)",
    ),
    "max_pool2d window": (
        lambda: fn.max_pool2d(IMAGE, 5),
        ValueError,
        r"max_pool2d: windows of kernel_size \(5, 5\).*do not fit.*\(4, 4\)",
    ),
    "max_pool2d kernel": (
        lambda: fn.max_pool2d(IMAGE, 0),
        ValueError,
        "max_pool2d: kernel_size must be .*got 0",
    ),
    "avg_pool2d window": (
        lambda: fn.avg_pool2d(IMAGE, (5, 1)),
        ValueError,
        r"avg_pool2d: windows of kernel_size \(5, 1\)",
    ),
    "avg_pool2d integers": (
        lambda: fn.avg_pool2d(np.ones((1, 1, 4, 4), np.int64), 2),
        OperandError,
        "avg_pool2d: x must be floating",
    ),
    "global_max_pool2d": (
        lambda: fn.global_max_pool2d(ones(2, 3)),
        OperandError,
        r"global_max_pool2d: x must have four axes.*\(2, 3\)",
    ),
    "global_avg_pool2d": (
        lambda: fn.global_avg_pool2d(ones(2, 3)),
        OperandError,
        r"global_avg_pool2d: x must have four axes.*\(2, 3\)",
    ),
    "upsample axes": (
        lambda: fn.upsample_nearest2d(ones(2, 3), 2),
        OperandError,
        r"upsample_nearest2d: x must have four axes.*\(2, 3\)",
    ),
    "upsample scale": (
        lambda: fn.upsample_nearest2d(IMAGE, 0),
        ValueError,
        "upsample_nearest2d: scale must be .*not below 1, got 0",
    ),
    "batch_norm axes": (
        lambda: fn.batch_norm(ones(3), None, None),
        ValueError,
        r"batch_norm: x must be \(n, channels, ...\), its shape is \(3,\)",
    ),
    "batch_norm gamma": (
        lambda: fn.batch_norm(ones(5, 3), ones(5), None),
        ValueError,
        r"batch_norm: gamma has shape \(5,\); beside x of shape \(5, 3\) it must have \(3,\)",
    ),
    "batch_norm gamma axes": (
        lambda: fn.batch_norm(ones(5, 3), ones(3, 1), None),
        ValueError,
        r"batch_norm: gamma has shape \(3, 1\)",
    ),
    "batch_norm beta": (
        lambda: fn.batch_norm(ones(5, 3), ones(3), ones(4)),
        ValueError,
        r"batch_norm: beta has shape \(4,\)",
    ),
    "batch_norm gamma text": (
        lambda: fn.batch_norm(ones(5, 3), "a", None),
        OperandError,
        "batch_norm: gamma must be .*str 'a'",
    ),
    "batch_norm of nothing": (
        lambda: fn.batch_norm(ones(0, 3), None, None),
        ValueError,
        r"batch_norm: x has shape \(0, 3\): no elements to take the mean of over axes \(0,\)",
    ),
    "batch_norm integers": (
        lambda: fn.batch_norm(INTEGERS, None, None),
        OperandError,
        "batch_norm: x must be floating",
    ),
    "fixed_batch_norm mean": (
        lambda: fn.fixed_batch_norm(ones(5, 3), None, None, ones(5), ones(3)),
        ValueError,
        r"fixed_batch_norm: mean has shape \(5,\); beside x of shape \(5, 3\)",
    ),
    "fixed_batch_norm variance": (
        lambda: fn.fixed_batch_norm(ones(5, 3), None, None, ones(3), ones(1, 3)),
        ValueError,
        r"fixed_batch_norm: variance has shape \(1, 3\)",
    ),
    "layer_norm gamma": (
        lambda: fn.layer_norm(ones(2, 3), ones(2), None),
        ValueError,
        r"layer_norm: the trailing axes of x \(shape \(2, 3\)\).*\(2,\)",
    ),
    "layer_norm gamma longer": (
        lambda: fn.layer_norm(ones(3), ones(2, 3), None),
        ValueError,
        r"layer_norm: the trailing axes of x \(shape \(3,\)\).*\(2, 3\)",
    ),
    "layer_norm without gamma": (
        lambda: fn.layer_norm(ones(2, 3), None, None),
        OperandError,
        "layer_norm: gamma must be .*None",
    ),
    "layer_norm number": (
        lambda: fn.layer_norm(ones(2, 3), 1.0, None),
        ValueError,
        r"layer_norm: .*gamma, \(\)",
    ),
    "layer_norm beta": (
        lambda: fn.layer_norm(ones(2, 3, 4), ones(3, 4), ones(4, 3)),
        ValueError,
        r"layer_norm: beta has shape \(4, 3\).*must have \(3, 4\)",
    ),
    "layer_norm of nothing": (
        lambda: fn.layer_norm(ones(2, 0), ones(0), None),
        ValueError,
        r"layer_norm: x has shape \(2, 0\): no elements",
    ),
    "rms_norm gamma": (
        lambda: fn.rms_norm(ones(2, 3), ones(4)),
        ValueError,
        r"rms_norm: the trailing axes of x \(shape \(2, 3\)\).*\(4,\)",
    ),
    "group_norm groups": (
        lambda: fn.group_norm(ones(2, 3), 2, None, None),
        ValueError,
        r"group_norm: groups=2 does not divide the 3 channels of x \(shape \(2, 3\)\)",
    ),
    "group_norm gamma": (
        lambda: fn.group_norm(ones(2, 4), 2, ones(2), None),
        ValueError,
        r"group_norm: gamma has shape \(2,\).*must have \(4,\)",
    ),
    "instance_norm axes": (
        lambda: fn.instance_norm(ones(2, 3), None, None),
        ValueError,
        r"instance_norm: x must be \(n, channels, places\), got shape \(2, 3\)",
    ),
    "instance_norm gamma": (
        lambda: fn.instance_norm(ones(2, 3, 4), ones(4), None),
        ValueError,
        r"instance_norm: gamma has shape \(4,\)",
    ),
    "embedding floats": (
        lambda: fn.embedding(ones(3), ones(4, 2)),
        OperandError,
        r"embedding: indices must be integers.*\(3,\), float32",
    ),
    "embedding bool": (
        lambda: fn.embedding(np.array([True]), ones(4, 2)),
        OperandError,
        "embedding: indices must be integers",
    ),
    "embedding beyond": (
        lambda: fn.embedding(np.array([0, 4]), ones(4, 2)),
        IndexError,
        r"embedding: indices run from 0 to 4; w \(shape \(4, 2\)\) has the rows 0 to 3",
    ),
    "embedding negative": (
        lambda: fn.embedding(np.array([-1, 2]), ones(4, 2)),
        IndexError,
        "embedding: indices run from -1 to 2",
    ),
    "embedding w": (
        lambda: fn.embedding(np.array([0]), ones(4)),
        ValueError,
        r"embedding: w must be \(rows, size\), its shape is \(4,\)",
    ),
    "dropout ratio": (
        lambda: fn.dropout(ones(3), 1.0),
        ValueError,
        "dropout: ratio must lie in 0 to below 1, got 1.0",
    ),
    "dropout generator": (
        lambda: fn.dropout(ones(3), 0.5, 7),
        OperandError,
        "dropout: generator must be a numpy.random.Generator.*7.*default_rng",
    ),
    "dropout module": (
        lambda: fn.dropout(ones(3), 0.5, np.random),
        OperandError,
        "dropout: generator .*module",
    ),
    "attention features": (
        lambda: fn.scaled_dot_product_attention(ones(3, 2), ones(4, 3), ones(4, 2)),
        ValueError,
        r"scaled_dot_product_attention: query must be .*\(3, 2\), \(4, 3\) and \(4, 2\)",
    ),
    "attention keys": (
        lambda: fn.scaled_dot_product_attention(ones(3, 2), ones(4, 2), ones(3, 2)),
        ValueError,
        r"scaled_dot_product_attention: .*\(4, 2\) and \(3, 2\)",
    ),
    "attention vector": (
        lambda: fn.scaled_dot_product_attention(ones(2), ones(4, 2), ones(4, 2)),
        ValueError,
        r"scaled_dot_product_attention: .*\(2,\)",
    ),
    "attention batch": (
        lambda: fn.scaled_dot_product_attention(ones(2, 3, 2), ones(5, 4, 2), ones(4, 2)),
        ValueError,
        r"scaled_dot_product_attention: the leading axes.*\(2, 3, 2\).*\(5, 4, 2\)",
    ),
    "attention mask floats": (
        lambda: fn.scaled_dot_product_attention(ones(3, 2), ones(4, 2), ones(4, 2), ones(3, 4)),
        OperandError,
        r"scaled_dot_product_attention: mask must be bool.*\(3, 4\), float32",
    ),
    "attention mask shape": (
        lambda: fn.scaled_dot_product_attention(
            ones(3, 2), ones(4, 2), ones(4, 2), np.ones((4, 3), bool)
        ),
        ValueError,
        r"scaled_dot_product_attention: mask has shape \(4, 3\).*scores, \(3, 4\)",
    ),
    "attention integers": (
        lambda: fn.scaled_dot_product_attention(INTEGERS, INTEGERS, INTEGERS),
        OperandError,
        "scaled_dot_product_attention: query must be floating",
    ),
}


@pytest.mark.parametrize(
    ("approximate", "dtype", "large"),
    [
        (how, dtype, large)
        for how in (True, False)
        for dtype, large in (
            ("float16", 6e4),
            ("float16", 300),
            ("float32", 1e25),
            ("float64", 1e300),
        )
    ],
)
def test_gelu_of_large_numbers_has_finite_derivatives(approximate, dtype, large):
    x = variable([large, -large], dtype=dtype)
    y = fn.gelu(x, approximate)
    np.testing.assert_array_equal(host(y), host(x) * [1, 0])
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [1, 0])
    np.testing.assert_array_equal(gradient(gx, x), [0, 0])


@on_each_device
def test_where_gelus_derivatives_are_held_they_have_ended(device):
    for approximate, ends in ((True, 25.0), (False, 40.0)):
        x = variable([ends, -ends, ends * 0.999, ends * 1.001], device)
        (gx,) = tn.grad([fn.gelu(x, approximate)], [x], enable_double_backprop=True)
        np.testing.assert_array_equal(host(gx), [1, 0, 1, 1])
        np.testing.assert_array_equal(gradient(gx, x), np.zeros(4))


@on_each_device
def test_a_vanishing_softplus_is_positive(device):
    x = variable([-1000.0, 1000.0], device)
    np.testing.assert_array_equal(np.signbit(host(fn.softplus(x))), [False, False])
    np.testing.assert_array_equal(np.signbit(host(fn.log_sigmoid(x))), [True, True])


FAR = np.array([[1000.0, -1000.0, 0.0, 4.0]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fn.layer_norm(x, np.ones(4), None),
        lambda x: fn.rms_norm(x, np.ones(4)),
        lambda x: fn.group_norm(fn.reshape(x, (1, 2, 2)), 1, None, None),
        lambda x: fn.batch_norm(fn.reshape(x, (4, 1)), None, None),
        lambda x: fn.instance_norm(fn.reshape(x, (1, 1, 4)), None, None),
        lambda x: fn.std(x),
        lambda x: fn.linalg.vector_norm(x),
        lambda x: fn.linalg.vector_norm(x, ord=3),
        lambda x: fn.var(x * 0.25),
    ],
)
def test_squares_of_float16_do_not_overflow(f):
    half, exact = variable(FAR, dtype="float16"), variable(FAR)
    y = f(half)
    assert y.dtype == np.float16
    np.testing.assert_allclose(host(y), host(f(exact)), rtol=2e-3, atol=2e-3)
    weights = np.arange(1.0, y.size + 1).reshape(y.shape)
    found = gradient(f(half) * weights, half)
    assert found.dtype == np.float16
    expected = gradient(f(exact) * weights, exact)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=3e-3 * abs(expected).max())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_variance_of_equal_numbers_is_not_negative(dtype):
    for value in (0.0, 0.1, 3.0):
        x = variable(np.full((5, 2), value), dtype=dtype)
        _, _, variance = batch_norm_with_statistics(x, None, None)
        assert (host(variance) >= 0).all()
        np.testing.assert_allclose(host(variance), [0, 0], atol=1e-5)


@on_each_device
@pytest.mark.parametrize(
    ("indices", "shape"), [([], (0, 2)), ((0, 2), (2, 2)), ([[0], [1]], (2, 1, 2))]
)
def test_embedding_takes_lists_and_tuples(indices, shape, device):
    assert fn.embedding(indices, variable(np.ones((3, 2)), device)).shape == shape


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_refused_with_names_and_shapes(name):
    call, exception, words = REFUSED[name]
    with pytest.raises(exception, match=f"(?s){words}"):
        call()


@pytest.mark.parametrize("leading", [(2, 3), (2, 1, 3), (0, 3), (3,), ()])
def test_a_stack_times_a_matrix_is_one_product(
    monkeypatch: pytest.MonkeyPatch, leading: tuple[int, ...]
) -> None:
    rng, matmul = np.random.default_rng(0), np.matmul
    shapes: list[tuple[int, ...]] = []

    def spy(x: Any, y: Any, out: Any = None) -> Any:
        shapes.append(x.shape)
        return matmul(x, y, out)

    x, w, b = (rng.standard_normal(shape) for shape in ((*leading, 4), (5, 4), (5,)))
    expected = x @ w.T
    monkeypatch.setattr(np, "matmul", spy)
    y = fn.linear(tn.Variable(x), w, b)
    one = leading if len(leading) < 2 else (int(np.prod(leading)),)
    assert shapes == [(*one, 4)]
    np.testing.assert_allclose(y.array, expected + b, rtol=1e-12)
    if len(leading) > 0:
        np.testing.assert_allclose(fn.matmul(x, w.T).array, expected, rtol=1e-12)
        assert shapes == [(*one, 4)] * 2


@pytest.mark.parametrize("rows", [1, 3, 128, 129])
@pytest.mark.parametrize("out", [2, 140])
def test_linear_of_few_and_of_many_rows(rows: int, out: int) -> None:
    generator = np.random.default_rng(0)
    x, w, b = (tn.Variable(generator.standard_normal(s)) for s in ((rows, 70), (out, 70), (out,)))
    y = tn.functions.linear(x, w, b)
    np.testing.assert_allclose(y.array, x.array @ w.array.T + b.array, rtol=1e-12, atol=1e-12)
    g = generator.standard_normal(y.shape)
    y.grad = g
    y.backward()
    np.testing.assert_allclose(x.grad, g @ w.array, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(w.grad, g.T @ x.array, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(b.grad, g.sum(axis=0), rtol=1e-12, atol=1e-11)

"""Options and errors of functions that the table of rows does not show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import errors, nn
from tinynode import functions as fn


def ones(*shape: int) -> tn.Variable:
    return tn.Variable(np.ones(shape, np.float32))


def data(*shape: int) -> tn.Variable:
    return tn.Variable(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def test_the_row_of_the_padding_index_gets_no_gradient() -> None:
    w = ones(3, 2)
    y = fn.embedding(np.array([0, 1, 1, 2]), w, padding_index=1)
    assert y.shape == (4, 2)
    fn.sum(y).backward()
    assert w.grad.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_an_impossible_sequence_has_an_infinite_loss_and_no_gradient() -> None:
    log_p = fn.log_softmax(ones(2, 1, 3))
    loss = fn.ctc_loss(log_p, np.array([[1, 1]]))
    assert loss.array == np.inf
    (gradient,) = tn.grad([loss], [log_p])
    assert gradient is None or not gradient.array.any()


def test_special_functions_at_their_poles() -> None:
    x = tn.asarray([0.0, -1.0, -2.0, np.inf], dtype="float64")
    assert fn.lgamma(x).array.tolist() == [np.inf] * 4
    assert np.isnan(fn.digamma(x).array[:3]).all()
    y = fn.erfinv(tn.asarray([-1.0, 0.0, 1.0, 1.5], dtype="float64")).array
    assert y[:3].tolist() == [-np.inf, 0.0, np.inf] and np.isnan(y[3])


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: fn.one_hot(np.array([0, 3]), 3), IndexError, "one_hot: indices run from 0 to 3"),
    (lambda: fn.one_hot(np.array([0.5]), 3), TypeError, "one_hot: indices must be integers"),
    (lambda: fn.one_hot(np.array([0]), 0), ValueError, "one_hot: classes must be 1 at least"),
    (lambda: fn.topk(ones(3), 4), ValueError, "topk: k must lie in 0 to 3"),
    (lambda: fn.index_add(ones(3), np.array([0]), ones(2)), ValueError, "index_add: indices must"),
    (lambda: fn.index_add(ones(3), np.array([3]), ones(1)), IndexError, "index_add: indices run"),
    (lambda: fn.scatter_add(ones(3), np.array([0]), ones(2)), ValueError, "scatter_add: indices"),
    (lambda: fn.prelu(ones(2, 3), ones(2)), ValueError, "prelu: w must have one element"),
    (lambda: fn.clipped_relu(ones(2), 0), ValueError, "clipped_relu: limit must be positive"),
    (lambda: fn.maxout(ones(2, 3), 2), ValueError, "maxout: size=2 does not divide axis 1"),
    (lambda: fn.softplus(ones(2), 0), ValueError, "softplus: beta must be positive"),
    (lambda: fn.contrastive(ones(2), ones(2), ones(2)), ValueError, "contrastive: x1 must be"),
    (lambda: fn.gaussian_nll(ones(2), ones(3), ones(2)), ValueError, "gaussian_nll: mean has"),
    (lambda: fn.ctc_loss(ones(2, 3), np.array([[1]])), ValueError, "ctc_loss: log_p must be"),
    (lambda: fn.ctc_loss(ones(2, 1, 3), np.array([[3]])), ValueError, "ctc_loss: a label is not"),
    (lambda: fn.ctc_loss(ones(2, 1, 3), np.array([[1]]), np.array([3])), ValueError,
     "ctc_loss: an input length"),
    (lambda: fn.gumbel_softmax(ones(2), generator=1), TypeError, "gumbel_softmax: generator"),
    (lambda: fn.polygamma(-1, ones(2)), ValueError, "polygamma: n must not be negative"),
    (lambda: fn.pad(ones(2), 2, mode="reflect"), ValueError, "pad: axis 0 .* too short"),
    (lambda: fn.pad(ones(2), 1, mode="wrap"), ValueError, 'pad: mode must be "constant"'),
    (lambda: fn.conv2d(ones(1, 1, 3, 3), ones(1, 1, 2, 2), stride=2, padding="same"), ValueError,
     "conv2d: padding must be integers"),
    (lambda: fn.conv3d(ones(1, 1, 3, 3), ones(1, 1, 2, 2, 2)), TypeError, "conv3d: x must have"),
    (lambda: fn.conv3d(ones(1, 1, 1, 3, 3), ones(1, 1, 2, 2, 2)), ValueError, "conv3d: windows"),
    (lambda: fn.conv_transpose1d(ones(1, 2, 3), ones(1, 1, 2)), ValueError,
     "conv_transpose1d: x has 2 channels"),
    (lambda: fn.max_pool1d(ones(1, 2), 2), TypeError, "max_pool1d: x must have the axes"),
    (lambda: fn.adaptive_avg_pool2d(ones(1, 1, 2, 2), 0), ValueError, "adaptive_avg_pool2d: size"),
    (lambda: fn.interpolate(ones(1, 1, 2)), ValueError, "interpolate: give either size or scale"),
    (lambda: fn.interpolate(ones(1, 1, 2), 3, mode="cubic"), ValueError, "interpolate: mode must"),
    (lambda: fn.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 3)), ValueError, "grid_sample: grid"),
    (lambda: fn.pixel_shuffle(ones(1, 3, 2, 2), 2), ValueError, "pixel_shuffle: factor=2 needs"),
    (lambda: fn.pixel_unshuffle(ones(1, 3, 3, 2), 2), ValueError, "pixel_unshuffle: factor=2"),
    (lambda: fn.max_pool2d(data(1, 1, 4, 4), 2, dilation=0), ValueError, "dilation must be"),
    (lambda: fn.max_pool2d(data(1, 1, 2, 2), 3, ceil_mode=True), ValueError, "do not fit"),
    (lambda: fn.max_unpool2d(data(1, 1, 2, 2), np.zeros((1, 1, 2, 3), int), 2), ValueError,
     r"indices must have the shape of x, \(1, 1, 2, 2\), got \(1, 1, 2, 3\)"),
    (lambda: fn.max_unpool2d(data(1, 1, 1, 1), np.full((1, 1, 1, 1), 4), 2), IndexError,
     r"max_unpool2d: an index does not lie in the image of \(2, 2\)"),
    (lambda: fn.max_unpool2d(data(1, 1, 1, 1), data(1, 1, 1, 1), 2), TypeError,
     "max_unpool2d: indices must be integers"),
    (lambda: fn.max_unpool2d(data(2, 2), np.zeros((2, 2), int), 2), TypeError, "four axes"),
    (lambda: fn.pad(data(2, 2), 1, (1, 2, 3)), ValueError, r"a pair for each axis .*\(2, 2\)"),
    (lambda: fn.pad(data(2, 2), 1, ((1, 2), 3)), ValueError, "a pair for each axis"),
    (lambda: fn.pad(data(2), 1, (1, "a")), TypeError, "value must be a number"),
    (lambda: fn.hinge(data(2, 2), np.array([0, 1]), p=3), ValueError, "p must be 1 or 2, got 3"),
    (lambda: fn.dropout(data(2), generator=7), TypeError, "generator must be"),
    (lambda: fn.dropout(data(2), mask=np.ones(3, np.float32)), ValueError,
     r"mask must have the shape of x, \(2,\), got \(3,\)"),
    (lambda: fn.einsum(data(2), data(2)), TypeError, "list of labels behind each operand"),
    (lambda: fn.einsum(data(2), [26]), TypeError, "from 0 to 25"),
    (lambda: fn.einsum(data(2), ["i"]), TypeError, "from 0 to 25"),
    (lambda: fn.einsum(data(2), [0, 1]), ValueError, "does not fit"),
    (lambda: fn.conv_transpose2d(data(1, 1, 3, 3), data(1, 1, 2, 2), stride=2, output_size=(8, 6)),
     ValueError, r"between \(6, 6\) and \(7, 7\) .*got \(8, 6\)"),
    (lambda: fn.conv_transpose2d(data(1, 1, 3, 3), data(1, 1, 2, 2), stride=2, output_padding=1,
                                output_size=(6, 6)), ValueError, "not both"),
    (lambda: fn.batch_norm(data(1, 3), None, None), ValueError, r"one value .*\(1, 3\)"),
    (lambda: fn.batch_norm(data(4, 3), None, None, running_mean=np.zeros(3)), TypeError,
     "running_mean must be a Variable"),
    (lambda: fn.batch_norm(data(4, 3), None, None, running_variance=data(3)), errors.StateError,
     "running_variance requires a gradient"),
    (lambda: fn.batch_norm(data(4, 3), None, None, running_mean=data(2).detach()), ValueError,
     r"running_mean \(\d,\), expected \(3,\): axis 1 of x has the channels"),
    (lambda: fn.batch_norm(data(4, 3), None, None, momentum=1.5), ValueError, "0 to 1, got 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_a_wrong_call_is_refused(call: Callable[[], Any], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_running_statistics_follow_in_place() -> None:
    x = data(6, 3, 2)
    mean = tn.Variable(np.ones(3, np.float32), requires_grad=False)
    variance = tn.Variable(np.full(3, 2, np.float32), requires_grad=False)
    y = fn.batch_norm(x, None, None, running_mean=mean, running_variance=variance, momentum=0.25)
    np.testing.assert_array_equal(y.array, fn.batch_norm(x, None, None).array)
    np.testing.assert_allclose(mean.array, 0.75 + 0.25 * x.array.mean((0, 2)), rtol=1e-6)
    expected = 0.75 * 2 + 0.25 * x.array.var((0, 2), ddof=1)
    np.testing.assert_allclose(variance.array, expected, rtol=1e-5)
    before = mean.array.copy()
    fn.batch_norm(x, None, None, running_variance=variance)
    np.testing.assert_array_equal(mean.array, before)


@pytest.mark.parametrize("function", [fn.dropout, fn.gumbel_softmax])
def test_the_default_generator_is_that_of_seed(function: Any) -> None:
    x = data(5, 4)
    tn.seed(3)
    first = function(x).array
    assert not np.array_equal(function(x).array, first)
    tn.seed(3)
    np.testing.assert_array_equal(function(x).array, first)


def test_the_mask_outside_of_training_is_of_ones() -> None:
    with tn.using_config("train", False):
        values, mask = fn.dropout(data(3), return_mask=True)
    np.testing.assert_array_equal(mask.array, np.ones(3, np.float32))
    np.testing.assert_array_equal(values.array, data(3).array)


def test_indices_of_a_window_of_minus_infinity_lie_in_the_image() -> None:
    x = np.full((1, 1, 3, 3), -np.inf, np.float32)
    values, indices = fn.max_pool2d(x, 2, padding=1, return_indices=True)
    assert values.shape == (1, 1, 2, 2) and indices.array.min() >= 0 and indices.array.max() < 9


def test_unpooling_puts_the_largest_back() -> None:
    x = data(2, 3, 6, 4)
    values, indices = fn.max_pool2d(x, 2, return_indices=True)
    back = fn.max_unpool2d(values, indices, 2)
    assert back.shape == x.shape
    largest = np.isin(x.array, values.array)
    np.testing.assert_array_equal(back.array, np.where(largest, x.array, 0))


@pytest.mark.parametrize("given", [np.float64, np.dtype("float64"), "float64"])
def test_config_dtype_is_kept_as_text(given: Any) -> None:
    with tn.using_config(dtype=given):
        assert tn.config.dtype == "float64"
        assert nn.Linear(2, 2).weight.dtype == np.float64
    assert tn.config.dtype == "float32"
    with pytest.raises(errors.ConfigError, match=re.escape("int32")):
        tn.config.dtype = np.int32
    assert tn.config.dtype == "float32"


def test_layers_take_the_options() -> None:
    x = data(1, 2, 5, 5)
    pooled = nn.MaxPool2d(2, dilation=2, ceil_mode=True)
    expected = fn.max_pool2d(x, 2, dilation=2, ceil_mode=True).array
    np.testing.assert_array_equal(pooled(x).array, expected)
    assert repr(pooled).endswith("dilation=(2, 2), ceil_mode=True)")
    mean = nn.AvgPool2d(2, padding=1, ceil_mode=True, count_include_pad=False)
    expected = fn.avg_pool2d(x, 2, padding=1, ceil_mode=True, count_include_pad=False).array
    np.testing.assert_array_equal(mean(x).array, expected)
    assert repr(mean).endswith("ceil_mode=True, count_include_pad=False)")
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2)
    assert layer(x).shape == (1, 3, 11, 11)
    assert layer(x, output_size=(12, 11)).shape == (1, 3, 12, 11)


@pytest.mark.parametrize("device", ["numpy", "strict:device1"])
def test_bools_count_as_0_and_1_on_every_device(device: str) -> None:
    """The standard has no sum of bools, and ``F.sum(found == labels)`` is what programs write."""
    x = tn.asarray([[True, False], [True, True]], device=device)
    found = {
        "sum": fn.sum(x),
        "sum of columns": fn.sum(x, axis=0, keepdims=True),
        "prod": fn.prod(x, axis=1),
        "running sum": fn.cumulative_sum(x, axis=0),
        "running product": fn.cumulative_prod(x, axis=1),
    }
    assert {name: y.tolist() for name, y in found.items()} == {
        "sum": 3,
        "sum of columns": [[2, 1]],
        "prod": [0, 1],
        "running sum": [[1, 0], [2, 1]],
        "running product": [[1, 0], [1, 1]],
    }
    assert {str(y.dtype).rpartition(".")[2] for y in found.values()} == {"int64"}

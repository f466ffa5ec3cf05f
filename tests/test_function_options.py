"""Options and errors of functions that the table of rows does not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn


def ones(*shape: int) -> tn.Variable:
    return tn.Variable(np.ones(shape, np.float32))


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
    (lambda: fn.gumbel_softmax(ones(2)), TypeError, "gumbel_softmax: generator must be"),
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
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_a_wrong_call_is_refused(call: Callable[[], Any], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()

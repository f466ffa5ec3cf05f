"""Layers of signals and volumes, of pooling to a size and of other sizes call their functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn

SIGNAL, IMAGE, VOLUME = (
    np.random.default_rng(0).normal(size=(2, 4, *sizes)).astype(np.float32)
    for sizes in ((7,), (5, 6), (4, 5, 6))
)
CASES: list[tuple[Any, np.ndarray, Any]] = [
    (lambda: nn.MaxPool1d(3, 2, 1), SIGNAL, lambda x, m: fn.max_pool1d(x, 3, 2, 1)),
    (lambda: nn.AvgPool1d(2), SIGNAL, lambda x, m: fn.avg_pool1d(x, 2)),
    (lambda: nn.MaxPool3d(2), VOLUME, lambda x, m: fn.max_pool3d(x, 2)),
    (lambda: nn.AvgPool3d(3, 2, 1), VOLUME, lambda x, m: fn.avg_pool3d(x, 3, 2, 1)),
    (lambda: nn.AdaptiveAvgPool1d(3), SIGNAL, lambda x, m: fn.adaptive_avg_pool1d(x, 3)),
    (lambda: nn.AdaptiveAvgPool2d((3, 2)), IMAGE, lambda x, m: fn.adaptive_avg_pool2d(x, (3, 2))),
    (lambda: nn.AdaptiveAvgPool3d(2), VOLUME, lambda x, m: fn.adaptive_avg_pool3d(x, 2)),
    (lambda: nn.AdaptiveMaxPool1d(3), SIGNAL, lambda x, m: fn.adaptive_max_pool1d(x, 3)),
    (lambda: nn.AdaptiveMaxPool2d(1), IMAGE, lambda x, m: fn.adaptive_max_pool2d(x, 1)),
    (lambda: nn.AdaptiveMaxPool3d(2), VOLUME, lambda x, m: fn.adaptive_max_pool3d(x, 2)),
    (lambda: nn.Upsample(scale=2, mode="linear"), IMAGE,
     lambda x, m: fn.interpolate(x, scale=2, mode="linear")),
    (lambda: nn.PReLU(4), IMAGE, lambda x, m: fn.prelu(x, np.full(4, 0.25, np.float32))),
    (lambda: nn.Conv3d(4, 6, (2, 3, 3), 2, 1, groups=2), VOLUME,
     lambda x, m: fn.conv3d(x, m.weight, m.bias, 2, 1, groups=2)),
    (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, groups=2), SIGNAL,
     lambda x, m: fn.conv_transpose1d(x, m.weight, m.bias, 2, 1, groups=2)),
    (lambda: nn.ConvTranspose3d(4, 2, 3, initializer=nn.initializers.he_normal), VOLUME,
     lambda x, m: fn.conv_transpose3d(x, m.weight, m.bias)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "x", "expected"), CASES)
def test_a_layer_calls_its_function(make: Any, x: np.ndarray, expected: Any) -> None:
    layer = make()
    y = layer(tn.Variable(x))
    np.testing.assert_array_equal(y.array, expected(tn.Variable(x), layer).array)
    assert repr(layer).startswith(f"{type(layer).__name__}(")
    assert set(layer.state_dict()) <= {"weight", "bias"}


def test_the_weights_have_the_layouts_of_pytorch() -> None:
    assert nn.Conv3d(4, 6, (1, 2, 3), groups=2).weight.shape == (6, 2, 1, 2, 3)
    assert nn.ConvTranspose1d(4, 6, 3, groups=2).weight.shape == (4, 3, 3)
    assert nn.ConvTranspose3d(4, 6, 2, groups=2).weight.shape == (4, 3, 2, 2, 2)
    assert nn.PReLU(3).weight.array.tolist() == [0.25, 0.25, 0.25]


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="MaxPool3d: stride must be an integer or three"):
        nn.MaxPool3d(2, (1, 2))
    with pytest.raises(ValueError, match=r"AvgPool1d: kernel_size must be at least 1"):
        nn.AvgPool1d(0)


CONVOLUTIONS = [
    (nn.Conv1d, SIGNAL),
    (nn.Conv2d, IMAGE),
    (nn.Conv3d, VOLUME),
    (nn.ConvTranspose1d, SIGNAL),
    (nn.ConvTranspose2d, IMAGE),
    (nn.ConvTranspose3d, VOLUME),
]


@pytest.mark.parametrize(("kind", "x"), CONVOLUTIONS)
def test_an_input_takes_the_dtype_of_the_parameters(kind: Any, x: np.ndarray) -> None:
    layer = kind(4, 2, 3)
    wide = tn.Variable(x.astype(np.float64))
    np.testing.assert_array_equal(layer(wide).array, layer(tn.Variable(x)).array)
    assert layer(x.tolist()).dtype == np.float32


def test_an_unknown_keyword_names_the_layer_and_the_arguments() -> None:
    with pytest.raises(TypeError, match=r"AdaptiveAvgPool1d.*'length': the arguments are size\."):
        nn.AdaptiveAvgPool1d(length=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"LSTM.*'nonlinearity': the arguments are input_size"):
        nn.LSTM(2, 3, nonlinearity="relu")  # type: ignore[call-arg]

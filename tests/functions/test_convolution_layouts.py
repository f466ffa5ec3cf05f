"""Every layout of the columns of a convolution: the same numbers, to second order.

The rows of the op table are small, so their images are joined. Here small images lie apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases.networks import np_conv2d

import tinynode as tn
from tinynode import functions as fn
from tinynode.functions import image_columns
from tinynode.functions.image_columns import choose_layout, turned_windows
from tinynode.functions.image_windows import windows_of
from tinynode.gradient_check import check_backward, check_double_backward

on_each_device = pytest.mark.parametrize("device", ["numpy", "strict:device1"])
TURNED, FOLDED = True, False
CASES = {  # title: (x, w, options, products of forward, the gradient of x)
    "rows": ((2, 3, 5, 6), (2, 3, 3, 2), {}, 3, TURNED),
    "rows, folded": ((1, 3, 5, 5), (3, 3, 3, 3), {}, 3, FOLDED),
    "rows, padded": ((2, 3, 5, 6), (3, 3, 2, 3), {"padding": (1, 2)}, 2, TURNED),
    "rows, dilated": ((2, 4, 6, 5), (2, 4, 2, 3), {"dilation": (3, 2), "padding": 1}, 2, TURNED),
    "rows, folded, dilated": ((8, 3, 5, 4), (3, 3, 2, 2), {"dilation": 3}, 2, FOLDED),
    "rows, in groups": ((2, 4, 5, 4), (4, 2, 3, 2), {"groups": 2, "padding": 1}, 3, TURNED),
    "rows, folded, in groups": ((4, 4, 5, 5), (6, 2, 3, 3), {"groups": 2}, 3, FOLDED),
    "rows of an element": ((2, 3, 5, 4), (2, 3, 3, 1), {}, 3, TURNED),
    "few channels": ((2, 1, 5, 6), (4, 1, 2, 3), {"padding": 1}, 1, FOLDED),
    "one row": ((2, 2, 4, 6), (2, 2, 1, 3), {"padding": (0, 1)}, 1, TURNED),
    "single elements": ((2, 3, 4, 5), (2, 3, 1, 1), {}, 1, TURNED),
    "elements with a border": ((1, 2, 2, 2), (2, 2, 1, 1), {"padding": 1, "stride": 3}, 1, FOLDED),
    "stride of rows": ((2, 3, 6, 5), (2, 3, 3, 2), {"stride": (2, 1)}, 1, FOLDED),
    "stride of columns": ((2, 3, 5, 7), (2, 3, 3, 2), {"stride": (1, 2)}, 3, FOLDED),
    "windows apart": ((2, 3, 4, 6), (2, 3, 2, 3), {"stride": (2, 3)}, 1, FOLDED),
    "wide border": ((1, 4, 3, 3), (2, 4, 2, 2), {"padding": 2}, 2, FOLDED),
}


def host(x: tn.Variable) -> Any:
    return tn.to_host(x.array)


def made(shape: tuple[int, ...], seed: int, device: str = "numpy") -> tn.Variable:
    array = np.random.default_rng(seed).standard_normal(shape)
    return tn.asarray(array, device=device)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_columns, "FEW_WINDOWS", 0)


@on_each_device
@pytest.mark.parametrize("title", CASES)
def test_images_apart(apart: None, title: str, device: str) -> None:
    x_shape, w_shape, how, _, _ = CASES[title]
    x, w = made(x_shape, 0, device), made(w_shape, 1, device)
    y = fn.conv2d(x, w, **how)
    expected = np_conv2d(host(x), host(w), **how)
    np.testing.assert_allclose(host(y), expected, atol=1e-12)

    def f(x: Any, w: Any) -> Any:
        return fn.conv2d(x, w, **how)

    gy, ggx, ggw = (
        made(shape, seed, device) for seed, shape in ((2, y.shape), (3, x_shape), (4, w_shape))
    )
    check_backward(f, (x, w), gy, rtol=1e-8)
    check_double_backward(f, (x, w), gy, (ggx, ggw), rtol=1e-8)


@pytest.mark.parametrize("title", CASES)
def test_products_of_the_layout(apart: None, title: str) -> None:
    """Forward: a number of products. The gradient of x: a convolution of gy, or products."""
    x_shape, w_shape, how, products, is_turned = CASES[title]
    windows = windows_of(
        "conv2d", w_shape[2:], how.get("stride", 1), how.get("padding", 0), how.get("dilation", 1)
    )
    image = x_shape[2:]
    counts = windows.counts(image)
    layout = choose_layout(x_shape, w_shape[0], windows, counts)
    assert len(layout.terms) == products and not layout.is_joined
    turned = turned_windows(windows, counts, w_shape[0], image, x_shape[1])
    assert (turned is not None) is is_turned
    assert turned is None or turned.counts(counts) == image


def test_few_windows_are_joined() -> None:
    windows = windows_of("conv2d", (2, 2), 1, 0, 1)
    assert choose_layout((2, 8, 7, 8), 2, windows, (6, 7)).is_joined
    assert not choose_layout((2, 8, 7, 9), 2, windows, (6, 8)).is_joined


@on_each_device
def test_a_transposed_convolution_with_rows_that_no_window_reaches(
    apart: None, device: str
) -> None:
    """With dilation the output may have rows at the end that stay 0; no convolution gives them."""
    x, w = made((1, 2, 3, 3), 0, device), made((2, 2, 2, 2), 1, device)
    y = fn.conv_transpose2d(x, w, output_padding=(1, 0), dilation=2)
    plain = fn.conv_transpose2d(x, w, dilation=2)
    np.testing.assert_allclose(host(y)[:, :, :-1], host(plain), atol=1e-14)
    assert not host(y)[:, :, -1].any()

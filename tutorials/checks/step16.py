"""Checks of exercise 16: convolution against slow loops, gradients, and a moved digit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.nn.datasets import load_digits
from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_gradients,
    expect_raises,
    expect_true,
)
from tinynode_course.mynode import reference

HINTS = {
    "check_values": Hint(
        "One output is a sum over a window. Which axes does this sum run over?",
        "Y = W X for the windows of each image: W is (out, channels kh kw), X is (channels kh"
        " kw, places). The bias has one number per output channel.",
    ),
    "check_gradients": Hint(
        "The convolution is a product of matrices. What are the two gradients of a product?",
        "gX = W^T gY, folded back into the image; gW = gY X^T, summed over the images; gb = "
        "the sum over images and places.",
    ),
    "check_refuses": Hint(
        "How many axes have an image and a filter, and which of their lengths must agree?",
        "Four axes each, and x.shape[1] == w.shape[1].",
    ),
    "check_pooling": Hint(
        "One number of a window wins. Who gets the gradient, and what if windows overlap?",
        "forward: max and argmax over the places of a window. backward: gy at the winner, "
        "zeros elsewhere, then fold.",
    ),
    "check_layers": Hint(
        "Which arguments does a layer get, and which of them does the function inside see?",
        "Conv2d: weight (out, in, k, k), bias (out), then conv2d with stride and padding. "
        "Flatten: (n, -1).",
    ),
    "check_moved_digits": Hint(
        "The image moves by a pixel. What must the filter do at the edge so that the scores stay?",
        "The layer passes its stride and its padding on to the function.",
    ),
    "check_care": CARE,
}

_RNG = np.random.default_rng(14)
CONVOLUTION = "Conv2d.forward, unfold() and count(): Y = W X, for the windows of each image"
CASES = (  # shapes of x and w, stride, padding
    ((1, 1, 4, 4), (1, 1, 3, 3), 1, 0),
    ((2, 3, 5, 4), (4, 3, 2, 3), 1, 0),
    ((2, 2, 5, 6), (3, 2, 3, 3), 1, 2),
    ((2, 1, 7, 6), (2, 1, 3, 2), 2, 1),
)


def _slow(x: Any, w: Any, stride: int, padding: int) -> Any:
    """The convolution by loops, as its formula says."""
    p = padding
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    kh, kw = w.shape[2:]
    height = (padded.shape[2] - kh) // stride + 1
    width = (padded.shape[3] - kw) // stride + 1
    y = np.zeros((len(x), len(w), height, width))
    for n, o, r, q in np.ndindex(*y.shape):
        window = padded[n, :, r * stride : r * stride + kh, q * stride : q * stride + kw]
        y[n, o, r, q] = (window * w[o]).sum()
    return y


def _draw(case: Any) -> tuple[Any, Any]:
    return _RNG.normal(size=case[0]), _RNG.normal(size=case[1])


def check_values(work: Any) -> None:
    """conv2d gives what slow loops give"""
    for case in CASES:
        (x, w), (stride, padding) = _draw(case), case[2:]
        b = _RNG.normal(size=len(w))
        what = f"conv2d of x {case[0]} and w {case[1]}, stride {stride}, padding {padding}"
        expected = _slow(x, w, stride, padding)
        got = work.conv2d(x, work.Variable(w), None, stride, padding).array
        expect_close(what, got, expected, CONVOLUTION)
        got = work.conv2d(x, work.Variable(w), work.Variable(b), stride, padding).array
        look = "b has a number for each output channel: reshape it to (out, 1, 1)"
        expect_close(f"{what}, with a bias", got, expected + b[:, None, None], look)


def check_gradients(work: Any) -> None:
    """the gradients of conv2d"""
    for case in CASES:
        (x, w), (stride, padding) = _draw(case), case[2:]
        b = _RNG.normal(size=len(w))

        def convolution(x: Any, w: Any, b: Any, s: int = stride, p: int = padding) -> Any:
            return work.conv2d(x, w, b, s, p)

        what = f"conv2d, stride {stride}, padding {padding}"
        look = (
            "Conv2d.backward and fold(): input 0: W^T gY, folded. Input 1: gY X^T, summed over "
            "the images. Input 2: the bias"
        )
        expect_gradients(what, convolution, [x, w, b], work.Variable, look)


def check_refuses(work: Any) -> None:
    """conv2d takes right shapes, and refuses wrong ones"""
    look = "Conv2d.check_type_forward: four axes each, and equal channels"
    right = work.conv2d(np.zeros((1, 2, 4, 4)), work.Variable(np.zeros((1, 2, 2, 2))))
    expect_equal("the shape for right ones", right.array.shape, (1, 1, 3, 3), "Conv2d.forward")
    for x, w in (((1, 2, 4, 4), (1, 3, 2, 2)), ((2, 4, 4), (1, 2, 2, 2))):
        call = np.zeros(x), work.Variable(np.zeros(w))

        def convolve(call: Any = call) -> Any:
            return work.conv2d(*call)

        expect_raises(f"x {x} with w {w}", work.InvalidType, convolve, look)


def check_pooling(work: Any) -> None:
    """max_pool2d, and its gradient"""
    x = _RNG.permutation(2 * 2 * 4 * 6).reshape(2, 2, 4, 6) / 10.0
    for size, stride in ((2, None), (2, 1), (3, 2), (4, None)):
        step = stride or size
        height, width = (4 - size) // step + 1, (6 - size) // step + 1
        expected = np.zeros((2, 2, height, width))
        for r, q in np.ndindex(height, width):
            window = x[:, :, r * step : r * step + size, q * step : q * step + size]
            expected[:, :, r, q] = window.max(axis=(2, 3))
        got = work.max_pool2d(work.Variable(x), size, stride).array
        what = f"max_pool2d, size {size}, stride {stride}"
        look = "MaxPool2d.forward: the maximum over the places of a window, as unfold() gives them"
        expect_close(what, got, expected, look)

        def pool(v: Any, size: int = size, stride: Any = stride) -> Any:
            return work.max_pool2d(v, size, stride)

        look = (
            "MaxPool2d.backward: gy at the winner of each window; fold() adds where they overlap"
        )
        expect_gradients(what, pool, [x], work.Variable, look)


def check_layers(work: Any) -> None:
    """the layers Conv2d, MaxPool2d and Flatten"""
    from mynode import nn

    work.seed(0)
    layer = nn.Conv2d(2, 3, 3, stride=2, padding=1)
    shapes = [p.array.shape for p in layer.parameters()]
    look = "weight: (out, in, k, k); bias: (out)"
    expect_equal("the parameters of nn.Conv2d(2, 3, 3)", shapes, [(3, 2, 3, 3), (3,)], look)
    x = _RNG.normal(size=(4, 2, 7, 7))
    layer.bias.array = np.array([1.0, 2.0, 3.0])
    expected = _slow(x, layer.weight.array, 2, 1) + layer.bias.array[:, None, None]
    expect_close("the output of the layer", layer(x).array, expected, "Conv2d.forward: conv2d")
    model = nn.Sequential(layer, nn.MaxPool2d(2), nn.Flatten())
    look = "Flatten: (n, channels, h, w) -> (n, channels * h * w)"
    expect_equal("the shape after pooling and Flatten", model(x).array.shape, (4, 12), look)


def _fields(pixels: Any, down: int, right: int) -> Any:
    fields = np.zeros((len(pixels), 1, 10, 10))
    fields[:, 0, 1 + down : 9 + down, 1 + right : 9 + right] = pixels.reshape(-1, 8, 8)
    return fields


def check_moved_digits(work: Any) -> None:
    """your network reads digits, also moved ones"""
    from mynode import nn

    digits = load_digits()
    work.seed(0)
    pooling = nn.MaxPool2d(14), nn.Flatten(), nn.Linear(24, 10)
    model = nn.Sequential(nn.Conv2d(1, 24, 5, padding=4), work.relu, *pooling)
    optimizer, order = nn.Adam(model, lr=0.02), np.random.default_rng(0)
    x, labels = _fields(digits.train_images[:800], 0, 0), digits.train_labels[:800]
    for _ in range(4):
        for batch in np.array_split(order.permutation(800), 25):
            loss = work.softmax_cross_entropy(model(x[batch]), labels[batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    with work.no_backprop_mode():
        middle = model(_fields(digits.held_out_images, 0, 0)).array
        moved = model(_fields(digits.held_out_images, 1, -1)).array
    right = float((middle.argmax(axis=1) == digits.held_out_labels).mean())
    look = "Each part passed by itself. Does the layer hand stride and padding on?"
    expect_true(f"of new digits {right:.0%} are right, at least 75 %", right >= 0.75, look)
    look = "the same filter at every place, also at the edge: that is the padding"
    expect_close("the scores of moved digits", moved, middle, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    x, w = _RNG.normal(size=(2, 3, 5, 5)), _RNG.normal(size=(4, 3, 3, 3))
    expect_careful(work, "conv2d", lambda x, w: work.conv2d(x, w, None, 1, 1), x, w)
    expect_careful(work, "max_pool2d", lambda x: work.max_pool2d(x, 2, 2), x)


def _wrong(path: str, right: str, wrong: str) -> dict[str, str]:
    text = reference("16")[path]
    assert right in text, right
    return {path: text.replace(right, wrong)}


_CONVOLUTION = "functions/convolution.py"

MISTAKES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "fold overwrites where windows overlap",
        _wrong(_CONVOLUTION, "padded[place] += windows", "padded[place] = windows"),
    ),
    (
        "fold leaves the padding on",
        _wrong(
            _CONVOLUTION,
            "padded[:, :, padding : padding + height, padding : padding + width]",
            "padded[:, :, :height, :width]",
        ),
    ),
    (
        "the filter is turned round",
        _wrong(_CONVOLUTION, "y = w.reshape", "w = w[:, :, ::-1, ::-1]\n        y = w.reshape"),
    ),
    (
        "the gradient of the filters is the mean over the images",
        _wrong(_CONVOLUTION, ".sum(axis=0).reshape(w.shape)", ".mean(axis=0).reshape(w.shape)"),
    ),
    (
        "the stride counts windows, and does not move them",
        _wrong(
            _CONVOLUTION,
            "for i, j, place in places(kernel, counts, stride):",
            "for i, j, place in places(kernel, counts, 1):",
        ),
    ),
    (
        "pooling gives the gradient to every pixel of the window",
        _wrong(
            "functions/pooling.py",
            "np.put_along_axis(windows, winners[:, :, None], gy[:, :, None], axis=2)",
            "windows += gy[:, :, None]",
        ),
    ),
    (
        "the layer forgets its padding",
        _wrong("nn/image_layers.py", "self.stride, self.padding)", "self.stride)"),
    ),
)

"""Checks of the elective splats: pictures pixel by pixel, gradients, and the bytes kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_weights": Hint(
        "How far is a pixel from the middle of a splat, in two directions?",
        "w = e^(-(down^2 + right^2) / (2 size^2)).",
    ),
    "check_picture": Hint(
        "What does each splat add to a pixel?",
        "y = the sum over the splats of w c: np.einsum('nhw,nc->hwc', w, colours).",
    ),
    "check_gradients": Hint(
        "A splat moves a little. How does its weight at a pixel move?",
        "s = (gy . c) w; row: s down / size^2; column: s right / size^2; size: s (down^2 + "
        "right^2) / size^3; colours: the sum of w gy.",
    ),
    "check_dtype": Hint(
        "Which array of yours begins with 64 bits?",
        "np.arange(..., dtype=...) and np.zeros(..., dtype=...).",
    ),
    "check_kept": Hint(
        "Which large array could backward compute again?",
        "retain_inputs((0, 1, 2)) only; the weights are computed again.",
    ),
}


def _draw(seed: int, n: int, height: int, width: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    places = rng.uniform([0, 0], [height, width], size=(n, 2))
    return [places, rng.uniform(0.5, 2.5, n), rng.normal(size=(n, 3))]


def check_weights(work: Any) -> None:
    """the weight of each splat at each pixel"""
    from mynode.functions.splats import weights_of

    for n, height, width in ((2, 3, 5), (3, 4, 2)):
        places, sizes, _ = _draw(n, n, height, width)
        right = np.zeros((n, height, width))
        for k, i, j in np.ndindex(*right.shape):
            square = (i + 0.5 - places[k, 0]) ** 2 + (j + 0.5 - places[k, 1]) ** 2
            right[k, i, j] = math.exp(-square / (2 * sizes[k] ** 2))
        look = "e^(-(down^2 + right^2) / (2 size^2)): the first number of a place counts down"
        expect_close("weights_of", weights_of(places, sizes, height, width), right, look)


def check_picture(work: Any) -> None:
    """the sum over the splats"""
    from mynode.functions.splats import splats

    for n, height, width in ((4, 3, 5), (1, 4, 2)):
        places, sizes, colours = arrays = _draw(5 + n, n, height, width)
        kept = [one.copy() for one in arrays]
        right = np.zeros((height, width, 3))
        for k, i, j in np.ndindex(n, height, width):
            square = (i + 0.5 - places[k, 0]) ** 2 + (j + 0.5 - places[k, 1]) ** 2
            right[i, j] += math.exp(-square / (2 * sizes[k] ** 2)) * colours[k]
        got = splats(*map(work.Variable, arrays), height, width).array
        look = "y = the sum over the splats of w c, of the shape (height, width, 3)"
        expect_close(f"a picture of {n} splats", got, right, look)
        for name, one, old in zip(("places", "sizes", "colours"), arrays, kept, strict=True):
            expect_equal(f"the {name} afterwards", one, old, "make new arrays")


def check_gradients(work: Any) -> None:
    """the gradients of places, sizes and colours"""
    from mynode.functions.splats import splats

    for n, height, width in ((3, 4, 5), (1, 3, 2)):

        def run(p: Any, s: Any, c: Any, height: int = height, width: int = width) -> Any:
            return splats(p, s, c, height, width)

        look = "Splats.backward: s = gy c^T w, and the three sums over the pixels"
        arrays = _draw(20 + n, n, height, width)
        expect_gradients("splats", run, arrays, work.Variable, look)


def check_dtype(work: Any) -> None:
    """float32 stays float32, and gy does not change"""
    from mynode.functions.splats import splats

    xs = [work.Variable(one.astype("float32")) for one in _draw(9, 3, 4, 4)]
    y = splats(*xs, 4, 4)
    look = "no array of float64 may come in: np.zeros and np.arange need a dtype"
    expect_equal("the dtype of the picture", str(y.array.dtype), "float32", look)
    y.grad = gy = np.ones((4, 4, 3), "float32")
    y.backward()
    for name, x in zip(("places", "sizes", "colours"), xs, strict=True):
        expect_equal(f"the dtype of the gradient of {name}", str(x.grad.dtype), "float32", look)
    expect_equal("gy afterwards", gy, np.ones((4, 4, 3), "float32"), "make new arrays")


def check_kept(work: Any) -> None:
    """backward keeps the inputs, and no weights"""
    from mynode.functions.splats import splats

    y = splats(*map(work.Variable, _draw(3, 4, 16, 16)), 16, 16)
    node = y.creator_node
    held = [*node.get_retained_inputs(), *node.get_retained_outputs()]
    held += [one for one in vars(node).values() if isinstance(one, np.ndarray)]
    look = "retain_inputs((0, 1, 2)), and compute the weights again in backward"
    numbers = sum(one.size for one in held)
    expect_true(f"{numbers} numbers kept, 24 of the inputs", numbers <= 4 * 6, look)


def _wrong(old: str, new: str) -> dict[str, str]:
    return mistake("splats", "functions/splats.py", old, new)


MISTAKES = (
    (
        "the size is not squared",
        _wrong("sizes[:, None, None] ** 2)", "sizes[:, None, None])"),
    ),
    (
        "the half is forgotten",
        _wrong("np.exp(-0.5 * square", "np.exp(-square"),
    ),
    (
        "rows and columns are exchanged",
        _wrong(
            "down[:, :, None] ** 2 + right[:, None, :] ** 2",
            "(rows := offsets(places[:, ::-1], height, width))[0][:, :, None] ** 2 "
            "+ rows[1][:, None, :] ** 2",
        ),
    ),
    (
        "the distance along the row alone",
        _wrong(
            "down[:, :, None] ** 2 + right[:, None, :] ** 2",
            "0 * down[:, :, None] + right[:, None, :] ** 2",
        ),
    ),
    (
        "the mean over the splats",
        _wrong(
            'np.einsum("nhw,nc->hwc", w, colours),)',
            'np.einsum("nhw,nc->hwc", w / len(w), colours),)',
        ),
    ),
    (
        "the weights of a pixel are made to add up to 1",
        _wrong(
            'np.einsum("nhw,nc->hwc", w, colours),)',
            'np.einsum("nhw,nc->hwc", w / w.sum(axis=0), colours),)',
        ),
    ),
    (
        "the place moves away",
        _wrong("np.stack(moved, axis=1) / sizes", "-np.stack(moved, axis=1) / sizes"),
    ),
    (
        "the gradient of the place forgets the size",
        _wrong("np.stack(moved, axis=1) / sizes[:, None] ** 2", "np.stack(moved, axis=1)"),
    ),
    (
        "the gradient of the place is that of a row and a column exchanged",
        _wrong("np.stack(moved, axis=1)", "np.stack(moved[::-1], axis=1)"),
    ),
    (
        "the gradient of the size has the square of the size",
        _wrong("square / sizes**3", "square / sizes**2"),
    ),
    (
        "the gradient of the size is negative",
        _wrong("square / sizes**3", "-square / sizes**3"),
    ),
    (
        "the gradients of places and sizes forget the weights",
        _wrong(", gy, colours) * w", ", gy, colours)"),
    ),
    (
        "the gradients of places and sizes forget the colours",
        _wrong('np.einsum("hwc,nc->nhw", gy, colours) * w', "gy.sum(axis=2) * w"),
    ),
    (
        "the gradient of the colours forgets the weights",
        _wrong('np.einsum("nhw,hwc->nc", w, gy)', 'np.einsum("nhw,hwc->nc", np.ones_like(w), gy)'),
    ),
    (
        "the weights are kept for backward",
        _wrong(
            "(0, 1, 2))\n        w = weights_of(",
            "(0, 1, 2))\n        w = self.w = weights_of(",
        ),
    ),
    (
        "the gradient is float64",
        _wrong("square / sizes**3", "square / sizes.astype(float) ** 3"),
    ),
)

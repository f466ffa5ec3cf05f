"""Inputs for each kernel of the fast backend, and the comparison with the portable forward."""

from __future__ import annotations

import numpy as np

import tinynode as tn
import tinynode_fast
from tinynode.devices import Fallback
from tinynode.functions import convolution, pooling
from tinynode.functions.image_windows import Windows

F = tn.functions
RNG = np.random.default_rng(0)


def draw(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def channels_last(x):
    """The same images, with channels last in memory."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


WINDOWS = Windows((3, 2), (2, 1), (1, 1), (1, 2))
PAIRS = Windows((2, 2), (2, 2), (0, 0), (1, 1))
IMAGES = draw(5, 9, 8, 7)
COUNTS = WINDOWS.counts((8, 7))

# a name, what makes the node, and its inputs: large enough for the kernel to run by itself
KERNEL_CASES = {
    "conv2d": (lambda: convolution.Conv2d(WINDOWS, 1, COUNTS), [IMAGES, draw(4, 9, 3, 2)]),
    "conv2d_gradient_w": (
        lambda: convolution.Conv2dGradW(WINDOWS, 1),
        [IMAGES, draw(5, 4, *COUNTS)],
    ),
    "conv2d_gradient_x": (
        lambda: convolution.Conv2dGradX(WINDOWS, 1, (8, 7)),
        [draw(5, 4, *COUNTS), draw(4, 9, 3, 2)],
    ),
    "max_pool_gradient": (
        lambda: pooling.MaxPool2dGrad(PAIRS, (16, 15)),
        [draw(10, 9, 8, 7), RNG.integers(0, 4, (10, 9, 8, 7)).astype(np.int8)],
    ),
}


def run_kernel(name, inputs=None):
    """A fresh node and the outputs that the backend gives for it."""
    make, arrays = KERNEL_CASES[name]
    node = make()
    return node, tinynode_fast.forward(node, tuple(arrays if inputs is None else inputs))


def check_kernel(name, inputs=None, falls_back=False):
    """The kernel ran, computed what the portable forward does, and retained the same.

    ``falls_back``: the kernel may hand over to the portable forward, and then retains nothing.
    """
    node, outputs = run_kernel(name, inputs)
    if falls_back and isinstance(outputs, Fallback):
        assert not (node.retained_input_indexes or node.retained_output_indexes)
        return None
    assert type(outputs) is tuple, outputs
    make, arrays = KERNEL_CASES[name]
    portable = make()
    expected = portable.forward(tuple(arrays if inputs is None else inputs))
    assert len(outputs) == len(expected)
    for y, wanted in zip(outputs, expected, strict=True):
        wanted = np.asarray(wanted)
        assert type(y) is np.ndarray and (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        tolerance = 2e-5 if y.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(y, wanted, rtol=tolerance, atol=tolerance * 10)
    for which in ("retained_input_indexes", "retained_output_indexes"):
        assert tuple(getattr(node, which)) == tuple(getattr(portable, which))
    return outputs


HALF = np.float16
REASONS = [
    ("conv2d", [IMAGES.astype(HALF), draw(4, 9, 3, 2, dtype=HALF)], "float16 has no kernel"),
    (
        "conv2d_gradient_w",
        [IMAGES, draw(5, 4, *COUNTS, dtype=float)],
        "the inputs differ in dtype",
    ),
    ("conv2d_gradient_x", [draw(0, 4, *COUNTS), draw(4, 9, 3, 2)], "no elements"),
]

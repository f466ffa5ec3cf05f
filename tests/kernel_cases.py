"""Inputs for each kernel of the fast backend, and the comparison with the portable forward."""

from __future__ import annotations

import numpy as np

import tinynode as tn
import tinynode_fast
from tinynode.devices import Fallback
from tinynode.functions import convolution, pooling
from tinynode.functions.convolution import Windows
from tinynode.nn.updates import AdamUpdate

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
LABELS = RNG.integers(0, 7, 40)
G0 = np.asarray(0.5, np.float32)

# a name, what makes the node, and its inputs: large enough for the kernel to run by itself
KERNEL_CASES = {
    "sigmoid": (F.Sigmoid, [draw(200, 300)]),
    "silu": (F.activation.SiLU, [draw(200, 300)]),
    "silu_gradient": (F.activation.SiLUGrad, [draw(200, 300), draw(200, 300)]),
    "gelu": (F.GELU, [draw(200, 300) * 3]),
    "gelu_gradient": (F.GELUGrad, [draw(200, 300) * 3, draw(200, 300)]),
    "tanh_gelu": (F.TanhGELU, [draw(200, 300)]),
    "tanh_gelu_gradient": (F.TanhGELUGrad, [draw(200, 300), draw(200, 300)]),
    "softmax": (lambda: F.Softmax(1), [draw(300, 20)]),
    "log_softmax": (lambda: F.LogSoftmax(2), [draw(30, 10, 20)]),
    "cross_entropy": (lambda: F.SoftmaxCrossEntropy("mean", -1), [draw(40, 7), LABELS]),
    "cross_entropy_gradient": (
        lambda: F.SoftmaxCrossEntropyGrad("mean", -1),
        [draw(40, 7), G0, LABELS],
    ),
    "standardize": (lambda: F.Standardize((1,), 1e-5, True), [draw(300, 70)]),
    "standardize_gradient": (
        lambda: F.StandardizeGrad((1,), False),
        [draw(300, 70), draw(300, 70), draw(300, 1)],
    ),
    "sum_axes": (lambda: F.Sum((0,), True), [draw(400, 50)]),
    "sum_to": (lambda: F.SumTo((300, 1)), [draw(300, 100)]),
    "matmul": (F.MatMul, [draw(20, 30, 10), draw(10, 8)]),
    "linear": (F.Linear, [draw(20, 30, 10), draw(8, 10), draw(8)]),
    "conv2d": (lambda: convolution.Conv2d(WINDOWS, 1, COUNTS), [IMAGES, draw(4, 9, 3, 2)]),
    "conv2d_gradient_w": (
        lambda: convolution.Conv2dGradW(WINDOWS, 1),
        [IMAGES, draw(5, 4, *COUNTS)],
    ),
    "conv2d_gradient_x": (
        lambda: convolution.Conv2dGradX(WINDOWS, 1, (8, 7)),
        [draw(5, 4, *COUNTS), draw(4, 9, 3, 2)],
    ),
    "max_pool": (lambda: pooling.MaxPool2d(WINDOWS), [draw(10, 9, 8, 7)]),
    "max_pool_gradient": (
        lambda: pooling.MaxPool2dGrad(PAIRS, (16, 15)),
        [draw(10, 9, 8, 7), RNG.integers(0, 4, (10, 9, 8, 7)).astype(np.int8)],
    ),
    "adam_update": (
        lambda: AdamUpdate((0.8, 0.95), 1e-3, 0.1),
        [*(draw(300, 300) for _ in range(3)), draw(300, 300) ** 2, np.array(0.1), np.array(3.0)],
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
        assert not (node._retained_input_indexes or node._retained_output_indexes)
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
    for which in ("_retained_input_indexes", "_retained_output_indexes"):
        assert tuple(getattr(node, which)) == tuple(getattr(portable, which))
    return outputs


BAD_LABELS = np.where(LABELS == 3, -1, LABELS)
HALF = np.float16
REASONS = [
    ("sigmoid", [draw(200, 300, dtype=HALF)], "float16 has no kernel"),
    ("gelu", [draw(200, 300, dtype=np.float64)], "float64 has no kernel"),
    (
        "silu_gradient",
        [draw(200, 300), draw(200, 300, dtype=np.float64)],
        "the inputs differ in shape or dtype",
    ),
    ("silu_gradient", [draw(200, 300), draw(300)], "the inputs differ in shape or dtype"),
    ("softmax", [draw(300, 20, dtype=HALF)], "float16 has no kernel"),
    ("softmax", [draw(20, 300).T], "the axes are not the last ones in memory"),
    ("standardize", [draw(70, 300).T], "the axes are not the last ones in memory"),
    (
        "standardize_gradient",
        [draw(300, 70), draw(70, 300).T, draw(300, 1)],
        "the axes are not the last ones in memory",
    ),
    (
        "standardize_gradient",
        [draw(300, 70)] * 2 + [draw(300, 1, dtype=float)],
        "the inputs differ in shape or dtype",
    ),
    ("cross_entropy", [draw(40, 7), LABELS, draw(7)], "class weights or smoothing"),
    ("cross_entropy", [draw(7, 40).T, LABELS], "the matrix is not in one piece of memory"),
    ("cross_entropy", [draw(40, 7), BAD_LABELS], "some labels may be ignored or wrong"),
    (
        "cross_entropy_gradient",
        [draw(40, 7), G0, BAD_LABELS],
        "some labels may be ignored or wrong",
    ),
    ("sum_axes", [RNG.integers(0, 9, (400, 50))], "int64 has no kernel"),
    (
        "sum_axes",
        [draw(400, 100)[:, ::2]],
        "the axes are neither the first nor the last ones in memory",
    ),
    (
        "sum_to",
        [draw(300, 200)[:, ::2]],
        "the axes are neither the first nor the last ones in memory",
    ),
    (
        "matmul",
        [draw(20, 10, 30).transpose(0, 2, 1), draw(10, 8)],
        "not a stack of matrices times one matrix",
    ),
    (
        "linear",
        [draw(20, 10, 30).transpose(0, 2, 1), draw(8, 10)],
        "not in one piece of memory, or of several dtypes",
    ),
    ("conv2d", [IMAGES.astype(HALF), draw(4, 9, 3, 2, dtype=HALF)], "float16 has no kernel"),
    (
        "conv2d_gradient_w",
        [IMAGES, draw(5, 4, *COUNTS, dtype=float)],
        "the inputs differ in dtype",
    ),
    ("conv2d_gradient_x", [draw(0, 4, *COUNTS), draw(4, 9, 3, 2)], "no elements"),
    ("max_pool", [draw(10, 9, 8, 7, dtype=HALF)], "float16 has no kernel"),
    (
        "max_pool_gradient",
        [draw(10, 9, 8, 7, dtype=HALF), np.zeros((10, 9, 8, 7), np.int8)],
        "float16 has no kernel",
    ),
]

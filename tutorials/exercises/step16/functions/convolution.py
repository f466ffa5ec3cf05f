"""Convolution: windows become columns, and one product of matrices does the rest.

Images are (n, channels, height, width), kernels (out, channels, kh, kw). Step 16: write
the end of fold, and of forward and backward of Conv2d.
"""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands
from mynode.functions.shapes import reshape
from mynode.type_check import expect, is_floating


def count(length, kernel, stride, padding):
    """How many windows fit along an axis."""
    return (length + 2 * padding - kernel) // stride + 1


def places(kernel, counts, stride):
    """For each place (i, j) in a window: the index of its pixels in the image, for all windows."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(i, i + stride * (counts[0] - 1) + 1, stride)
            columns = slice(j, j + stride * (counts[1] - 1) + 1, stride)
            yield i, j, (..., rows, columns)


def unfold(x, kernel, stride, padding):
    """All windows of the images: (n, channels, h, w) -> (n, channels, kh, kw, oh, ow)."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    counts = [count(*sizes, stride, padding) for sizes in zip(x.shape[2:], kernel, strict=True)]
    windows = np.empty((*x.shape[:2], *kernel, *counts), x.dtype)
    for i, j, place in places(kernel, counts, stride):
        windows[:, :, i, j] = padded[place]
    return windows


def fold(windows, image, stride, padding):
    """The gradient of unfold: each window is added to the image, where it came from.

    windows: (n, channels, kh, kw, oh, ow), image: (height, width) -> (n, channels, height, width)
    """
    n, channels, kh, kw, *counts = windows.shape
    height, width = image
    padded = np.zeros((n, channels, height + 2 * padding, width + 2 * padding), windows.dtype)
    raise NotImplementedError(f"step 16: the loop of unfold, the other way, into {padded.shape}")


class Conv2d(FunctionNode):
    """y[n, o, r, q] = the sum over c, i, j of w[o, c, i, j] x[n, c, r s + i - p, q s + j - p].

    x: (n, channels, h, w), w: (out, channels, kh, kw) -> y: (n, out, oh, ow). For an image, with
    a column of X for each window, and a row of W for each kernel:
    Y = W X   gX = W^T gY, folded   gW = gY X^T, summed over the images
    """

    def __init__(self, stride, padding):
        self.stride = stride
        self.padding = padding

    def check_type_forward(self, in_types):
        x, w = in_types
        expect(is_floating(x), is_floating(w))
        expect(x.ndim == 4, w.ndim == 4)
        expect(x.shape[1] == w.shape[1])

    def forward(self, inputs):
        x, w = inputs
        self.retain_inputs((0, 1))  # not the windows: they take kh * kw times the memory
        windows = unfold(x, w.shape[2:], self.stride, self.padding)
        raise NotImplementedError(f"step 16: Conv2d.forward: Y = W X, of windows {windows.shape}")

    def backward(self, target_input_indexes, grad_outputs):
        x, w = self.get_retained_inputs()
        gy = grad_outputs[0].reshape(len(x), len(w), -1)
        windows = unfold(x, w.shape[2:], self.stride, self.padding)
        raise NotImplementedError(f"step 16: gX = W^T gY, gW = gY X^T, for gY {gy.shape}")


def conv2d(x, w, b=None, stride=1, padding=0):
    """Each kernel of w, laid on every window of the images; b is added to each output channel."""
    y = Conv2d(stride, padding).apply(as_operands(x, w))[0]
    return y if b is None else y + reshape(b, (-1, 1, 1))

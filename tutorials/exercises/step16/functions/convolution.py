"""Convolution: windows become columns, and one product of matrices does the rest.

Images are (n, channels, height, width), kernels (out, channels, kh, kw). Step 16: the page shows
count, places and unfold. The rest is yours.
"""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands
from mynode.functions.shapes import reshape
from mynode.type_check import expect, is_floating


def count(length, kernel, stride, padding):
    """How many windows fit along an axis."""
    raise NotImplementedError("step 16: count")


def places(kernel, counts, stride):
    """For each place (i, j) in a window: the index of its pixels in the image, for all windows."""
    raise NotImplementedError("step 16: places")


def unfold(x, kernel, stride, padding):
    """All windows of the images: (n, channels, h, w) -> (n, channels, kh, kw, oh, ow)."""
    raise NotImplementedError("step 16: unfold")


def fold(windows, image, stride, padding):
    """The gradient of unfold: each window is added to the image, where it came from.

    windows: (n, channels, kh, kw, oh, ow), image: (height, width) -> (n, channels, height, width)
    """
    raise NotImplementedError("step 16: fold")


class Conv2d(FunctionNode):
    """y[n, o, r, q] = the sum over c, i, j of w[o, c, i, j] x[n, c, r s + i - p, q s + j - p].

    x: (n, channels, h, w), w: (out, channels, kh, kw) -> y: (n, out, oh, ow). For an image, with
    a column of X for each window, and a row of W for each kernel:
    Y = W X   gX = W^T gY, folded   gW = gY X^T, summed over the images
    """

    def __init__(self, stride, padding):
        raise NotImplementedError("step 16: Conv2d.__init__")

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 16: Conv2d.check_type_forward")

    def forward(self, inputs):
        raise NotImplementedError("step 16: Conv2d.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 16: Conv2d.backward")


def conv2d(x, w, b=None, stride=1, padding=0):
    """Each kernel of w, laid on every window of the images; b is added to each output channel."""
    raise NotImplementedError("step 16: conv2d")

"""Pooling: an image of fewer pixels. Step 16: the backward is yours; fold helps."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.convolution import fold, unfold
from mynode.type_check import expect, is_floating


class MaxPool2d(FunctionNode):
    """y = the largest pixel of each window.   gx = gy at the place of the largest, else 0

    x: (n, channels, h, w) -> y: (n, channels, oh, ow), and the place of each in the window
    """

    def __init__(self, kernel_size, stride):
        self.kernel_size = kernel_size
        self.stride = stride

    def check_type_forward(self, in_types):
        (x,) = in_types
        expect(is_floating(x), x.ndim == 4)

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((1,))
        k = self.kernel_size
        windows = unfold(x, (k, k), self.stride, 0)
        windows = windows.reshape(*x.shape[:2], k * k, *windows.shape[4:])
        return windows.max(axis=2), windows.argmax(axis=2)

    def backward(self, target_input_indexes, grad_outputs):
        gy = grad_outputs[0]
        (winners,) = self.get_retained_outputs()
        raise NotImplementedError(f"step 16: {gy.shape} numbers go to the places {winners.shape}")


def max_pool2d(x, kernel_size, stride=None):
    """The largest pixel of each window; windows lie side by side without a stride."""
    return MaxPool2d(kernel_size, stride or kernel_size).apply((x,))[0]

"""Pooling: an image of fewer pixels. Step 16: the code is yours; unfold and fold help."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.convolution import fold, unfold
from mynode.type_check import expect, is_floating


class MaxPool2d(FunctionNode):
    """y = the largest pixel of each window.   gx = gy at the place of the largest, else 0

    x: (n, channels, h, w) -> y: (n, channels, oh, ow), and the place of each in the window
    """

    def __init__(self, kernel_size, stride):
        raise NotImplementedError("step 16: MaxPool2d.__init__")

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 16: MaxPool2d.check_type_forward")

    def forward(self, inputs):
        raise NotImplementedError("step 16: MaxPool2d.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 16: MaxPool2d.backward")


def max_pool2d(x, kernel_size, stride=None):
    """The largest pixel of each window; windows lie side by side without a stride."""
    raise NotImplementedError("step 16: max_pool2d")

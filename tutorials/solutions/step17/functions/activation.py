"""Bends between layers."""

import numpy as np
from mynode.core.function_node import FunctionNode


class ReLU(FunctionNode):
    """y = max(x, 0).   gx = gy where x > 0, else 0"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        return (np.maximum(x, 0),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * (y > 0),)


def relu(x):
    """max(x, 0), for each element."""
    return ReLU().apply((x,))[0]


class Softmax(FunctionNode):
    """y = e^x / the sum of e^x over the last axis.   gx = y * (gy - the sum of gy * y)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        y = np.exp(x - x.max(axis=-1, keepdims=True))
        return (y / y.sum(axis=-1, keepdims=True),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (y * (gy - (gy * y).sum(axis=-1, keepdims=True)),)


def softmax(x):
    """Positive numbers with the sum 1, along the last axis."""
    return Softmax().apply((x,))[0]

"""Bends between layers."""

import numpy as np
from mynode.core.function_node import FunctionNode


class ReLU(FunctionNode):
    """y = max(x, 0).   gx = gy where x > 0, else 0"""

    def forward(self, inputs):
        (x,) = inputs
        return (np.maximum(x, 0),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.input_arrays
        return (gy * (x > 0),)


def relu(x):
    """max(x, 0), for each element."""
    return ReLU().apply((x,))[0]

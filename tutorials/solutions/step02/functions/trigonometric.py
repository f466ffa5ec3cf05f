"""Sines and their relatives."""

import numpy as np
from mynode.core.function_node import FunctionNode


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        (x,) = inputs
        return (np.sin(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.input_arrays
        return (gy * np.cos(x),)


def sin(x):
    """The sine of x, in radians."""
    return Sin().apply((x,))[0]

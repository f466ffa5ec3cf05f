"""Sines and their relatives."""

import numpy as np
from mynode.core.function_node import FunctionNode


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (np.sin(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * (cos(x) if self.gives_variables else np.cos(x)),)


def sin(x):
    """The sine of x, in radians."""
    return Sin().apply((x,))[0]


class Cos(FunctionNode):
    """y = cos(x).   gx = -gy * sin(x)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (np.cos(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (-gy * (sin(x) if self.gives_variables else np.sin(x)),)


def cos(x):
    """The cosine of x, in radians."""
    return Cos().apply((x,))[0]


class Tanh(FunctionNode):
    """y = tanh(x).   gx = gy * (1 - y * y)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        return (np.tanh(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * (1.0 - y * y),)


def tanh(x):
    """The hyperbolic tangent of x."""
    return Tanh().apply((x,))[0]

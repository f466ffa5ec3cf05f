"""Powers and exponentials."""

import numpy as np
from mynode.core.function_node import FunctionNode


class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (x * x,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * 2.0 * x,)


def square(x):
    """x * x."""
    return Square().apply((x,))[0]


class Exp(FunctionNode):
    """y = e^x.   gx = gy * y"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        return (np.exp(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * y,)


def exp(x):
    """e^x."""
    return Exp().apply((x,))[0]

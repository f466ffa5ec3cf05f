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


class Sqrt(FunctionNode):
    """y = the square root of x.   gx = gy / (2 y)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        return (np.sqrt(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * 0.5 / y,)


def sqrt(x):
    """The square root of x; the gradient at 0 is infinite."""
    return Sqrt().apply((x,))[0]


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


class Sigmoid(FunctionNode):
    """y = 1 / (1 + e^-x), from 0 to 1.   gx = gy * y * (1 - y)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        return (0.5 * np.tanh(0.5 * x) + 0.5,)  # the same number, without an overflow of exp

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (gy * y * (1.0 - y),)


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return Sigmoid().apply((x,))[0]

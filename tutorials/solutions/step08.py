"""Exercise 8: keep what you need, and nothing else."""

import numpy as np
from engine08 import FunctionNode


class Exp(FunctionNode):
    """y = e^x.   gx = gy * y"""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (np.exp(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (y,) = self.get_retained_outputs()
        return (grad_outputs[0] * y,)


def exp(x):
    return Exp().apply((x,))[0]


class Sin(FunctionNode):
    """y = sin x.   gx = gy * cos x"""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * np.cos(x),)


def sin(x):
    return Sin().apply((x,))[0]

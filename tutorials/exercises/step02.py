"""Exercise 2: an operation with its derivative.

Write the class Sin, with y = sin(x), and the function sin(x).
backward gets the gradient of the output, and returns the gradient of the input:
gx = gy * (the derivative of the sine at x).
Square in engine02.py is a pattern to follow.
"""

import numpy as np  # noqa: F401 - you will need it
from engine02 import FunctionNode


class Sin(FunctionNode):
    """y = sin(x)"""

    def forward(self, inputs):
        raise NotImplementedError("compute sin(x), and return a tuple")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("return a tuple with the gradient of x")


def sin(x):
    return Sin().apply((x,))[0]

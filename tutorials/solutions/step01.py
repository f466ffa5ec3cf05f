"""Exercise 1: add an operation."""

import numpy as np
from engine01 import FunctionNode


class Exp(FunctionNode):
    """y = e^x"""

    def forward(self, inputs):
        (x,) = inputs
        return (np.exp(x),)


def exp(x):
    return Exp().apply((x,))[0]

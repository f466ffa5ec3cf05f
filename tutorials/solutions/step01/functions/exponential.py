"""Powers and exponentials."""

import numpy as np
from mynode.core.function_node import FunctionNode


class Square(FunctionNode):
    """y = x * x"""

    def forward(self, inputs):
        (x,) = inputs
        return (x * x,)


def square(x):
    """x * x."""
    return Square().apply((x,))[0]


class Exp(FunctionNode):
    """y = e^x"""

    def forward(self, inputs):
        (x,) = inputs
        return (np.exp(x),)


def exp(x):
    """e^x."""
    return Exp().apply((x,))[0]

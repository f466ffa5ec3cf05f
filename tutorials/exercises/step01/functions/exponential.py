"""Powers and exponentials.

Step 1: Square, square and exp are given; write Exp.forward.
"""

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
        raise NotImplementedError("step 1: Exp.forward returns a tuple with e^x")


def exp(x):
    """e^x."""
    return Exp().apply((x,))[0]

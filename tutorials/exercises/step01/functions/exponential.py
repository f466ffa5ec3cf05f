"""Powers and exponentials.

Step 1: write Square, square, Exp and exp. The page of step 1 shows the first two.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Square(FunctionNode):
    """y = x * x"""

    def forward(self, inputs):
        raise NotImplementedError("step 1: Square.forward returns a tuple with x * x")


def square(x):
    """x * x."""
    raise NotImplementedError("step 1: apply a new Square to x, and return its one output")


class Exp(FunctionNode):
    """y = e^x"""

    def forward(self, inputs):
        raise NotImplementedError("step 1: Exp.forward returns a tuple with e^x")


def exp(x):
    """e^x."""
    raise NotImplementedError("step 1: apply a new Exp to x, and return its one output")

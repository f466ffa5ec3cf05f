"""Powers and exponentials.

Step 18: Sqrt and sqrt are yours. The docstring has the formula.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Sqrt(FunctionNode):
    """y = the square root of x.   gx = gy / (2 y)"""

    def forward(self, inputs):
        raise NotImplementedError("step 18: Sqrt.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 18: Sqrt.backward")


def sqrt(x):
    """The square root of x; the gradient at 0 is infinite."""
    raise NotImplementedError("step 18: sqrt")

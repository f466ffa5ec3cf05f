"""Powers and exponentials.

Step 17: Sigmoid is yours. The sigmoid of -1000 is 0, without an overflow.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Sigmoid(FunctionNode):
    """y = 1 / (1 + e^-x), from 0 to 1.   gx = gy * y * (1 - y)"""

    def forward(self, inputs):
        raise NotImplementedError("step 17: Sigmoid.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 17: Sigmoid.backward")


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return Sigmoid().apply((x,))[0]

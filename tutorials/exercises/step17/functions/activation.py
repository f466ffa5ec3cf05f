"""Bends between layers.

Step 17: Softmax and softmax are yours. The docstring has the formulas.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Softmax(FunctionNode):
    """y = e^x / the sum of e^x over the last axis.   gx = y * (gy - the sum of gy * y)"""

    def forward(self, inputs):
        raise NotImplementedError("step 17: Softmax.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 17: Softmax.backward")


def softmax(x):
    """Positive numbers with the sum 1, along the last axis."""
    raise NotImplementedError("step 17: softmax")

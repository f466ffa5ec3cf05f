"""Bends between layers.

Step 17: the backward of Softmax is yours. The docstring has the formula.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Softmax(FunctionNode):
    """y = e^x / the sum of e^x over the last axis.   gx = y * (gy - the sum of gy * y)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_outputs((0,))
        y = np.exp(x - x.max(axis=-1, keepdims=True))
        return (y / y.sum(axis=-1, keepdims=True),)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 17: Softmax.backward")


def softmax(x):
    """Positive numbers with the sum 1, along the last axis."""
    return Softmax().apply((x,))[0]

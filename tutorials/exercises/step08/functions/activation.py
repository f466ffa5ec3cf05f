"""Bends between layers.

Step 8: write ReLU. In backward, self.input_arrays has the array of x.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class ReLU(FunctionNode):
    """y = max(x, 0).   gx = gy where x > 0, else 0"""

    def forward(self, inputs):
        raise NotImplementedError("step 8: a tuple with max(x, 0), for each element")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 8: gy passes where x is above 0")


def relu(x):
    """max(x, 0), for each element."""
    return ReLU().apply((x,))[0]

"""Sines and their relatives.

Step 22: write Cos and cos. Sin.backward calls cos(x) for a Variable, np.cos(x) for an array.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Cos(FunctionNode):
    """y = cos(x).   gx = -gy * sin(x)"""

    def forward(self, inputs):
        raise NotImplementedError("step 22: Cos.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 22: self.gives_variables tells which sine to call")


def cos(x):
    """The cosine of x, in radians."""
    return Cos().apply((x,))[0]

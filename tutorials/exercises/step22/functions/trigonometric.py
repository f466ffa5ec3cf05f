"""Sines and their relatives.

Step 22: Cos is given. Sin.backward calls cos(x) for a Variable, np.cos(x) for an array.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Cos(FunctionNode):
    """y = cos(x).   gx = -gy * sin(x)"""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (np.cos(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (-gy * (sin(x) if self.gives_variables else np.sin(x)),)


def cos(x):
    """The cosine of x, in radians."""
    return Cos().apply((x,))[0]

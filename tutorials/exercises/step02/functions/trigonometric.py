"""Sines and their relatives.

Step 2: write Sin and sin. In the other files, add Variable.grad, FunctionNode.backward and the
method backward of Square, Negative and Exp.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        raise NotImplementedError("step 2: Sin.forward returns a tuple with sin(x)")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 2: Sin.backward returns a tuple with the gradient of x")


def sin(x):
    """The sine of x, in radians."""
    raise NotImplementedError("step 2: apply a new Sin to x, and return its one output")

"""Bends between layers. Step 12: the page has the formula; the code is yours.

Keep what backward needs by retain_inputs or retain_outputs.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


class ReLU(FunctionNode):
    """y = max(x, 0).   gx = gy where x > 0, else 0"""

    def forward(self, inputs):
        raise NotImplementedError("step 12: ReLU.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 12: ReLU.backward")


def relu(x):
    """max(x, 0), for each element."""
    raise NotImplementedError("step 12: relu")

"""Rows of a table, by their numbers. Step 17: the page shows this file."""

import numpy as np
from mynode.core.function_node import FunctionNode


class TakeRows(FunctionNode):
    """y[i] = x[indices[i]].   gx = zeros, with gy[i] added to row indices[i]

    x: (rows, size), indices: (n), integers -> y: (n, size)
    """

    def forward(self, inputs):
        raise NotImplementedError("step 17: TakeRows.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 17: TakeRows.backward")

"""Rows of a table, by their numbers."""

import numpy as np
from mynode.core.function_node import FunctionNode


class TakeRows(FunctionNode):
    """y[i] = x[indices[i]].   gx = zeros, with gy[i] added to row indices[i]

    x: (rows, size), indices: (n), integers -> y: (n, size)
    """

    def forward(self, inputs):
        x, indices = inputs
        self.retain_inputs((1,))
        return (x[indices],)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        gx = np.zeros(self.inputs[0].shape, gy.dtype)
        np.add.at(gx, indices, gy)  # an index may come twice
        return gx, None

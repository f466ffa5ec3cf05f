"""Sines and their relatives.

Step 23: write TanhGrad. Tanh.backward returns gradient_by(TanhGrad(), y, gy).
"""

from mynode.core.function_node import FunctionNode, gradient_by


class TanhGrad(FunctionNode):
    """gx = gy * (1 - y * y).   With h = dL/dgx:   dL/dy = ...   dL/dgy = ..."""

    def forward(self, inputs):
        raise NotImplementedError("step 23: inputs is a tuple of two arrays, y and gy")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 23: wanted gradients only, for y and for gy")

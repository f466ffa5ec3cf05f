"""Products of matrices.

Step 15: write the check and the backward of MatMul.
"""

from mynode.core.function_node import FunctionNode
from mynode.type_check import expect, is_floating


class MatMul(FunctionNode):
    """z = x y, for matrices.   gx = gz y^T, gy = x^T gz

    x: (n, k), y: (k, m) -> z: (n, m)
    """

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 15: say with expect(...) what must hold")

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x @ y,)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 15: the transpose of an array y is y.T")


def matmul(x, y):
    """The product of two matrices."""
    return MatMul().apply((x, y))[0]

"""Products of matrices.

Step 15: write MatMul.
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
        raise NotImplementedError("step 15: NumPy's product of matrices is x @ y")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 15: the transpose of an array y is y.T")


def matmul(x, y):
    """The product of two matrices."""
    return MatMul().apply((x, y))[0]

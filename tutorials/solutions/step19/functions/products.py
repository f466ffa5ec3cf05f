"""Products of matrices, and of stacks of matrices."""

from mynode.core.function_node import FunctionNode
from mynode.functions.shapes import permute_dims, unbroadcast
from mynode.type_check import expect, is_floating


class MatMul(FunctionNode):
    """z = x y, for matrices and stacks of matrices.   gx = gz y^T, gy = x^T gz

    x: (..., n, k), y: (..., k, m) -> z: (..., n, m). The axes in front are broadcast.
    """

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        x, y = in_types
        expect(x.ndim >= 2, y.ndim >= 2)
        expect(is_floating(x), x.dtype == y.dtype)
        expect(x.shape[-1] == y.shape[-2])

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x @ y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = unbroadcast(gz @ y.mT, x.shape) if 0 in target_input_indexes else None
        gy = unbroadcast(x.mT @ gz, y.shape) if 1 in target_input_indexes else None
        return gx, gy


def matmul(x, y):
    """The product of two matrices, or of each pair in two stacks of matrices."""
    return MatMul().apply((x, y))[0]


def matrix_transpose(x):
    """Each matrix of a stack with its axes exchanged: the last two axes of x."""
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))

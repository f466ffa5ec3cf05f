"""Products of matrices."""

from mynode.core.function_node import FunctionNode
from mynode.type_check import expect, is_floating


class MatMul(FunctionNode):
    """z = x y, for matrices.   gx = gz y^T, gy = x^T gz

    x: (n, k), y: (k, m) -> z: (n, m)
    """

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        x, y = in_types
        expect(x.ndim == 2, y.ndim == 2)
        expect(is_floating(x), x.dtype == y.dtype)
        expect(x.shape[1] == y.shape[0])

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x @ y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz @ y.T if 0 in target_input_indexes else None
        gy = x.T @ gz if 1 in target_input_indexes else None
        return gx, gy


def matmul(x, y):
    """The product of two matrices."""
    return MatMul().apply((x, y))[0]


class MatrixTranspose(FunctionNode):
    """y = x^T.   gx = gy^T"""

    def forward(self, inputs):
        (x,) = inputs
        return (x.T,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (gy.T,)


def matrix_transpose(x):
    """The matrix with its axes exchanged."""
    return MatrixTranspose().apply((x,))[0]

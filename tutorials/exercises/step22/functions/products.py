"""Products of matrices.

Step 22: MatrixTranspose is given.
"""

from mynode.core.function_node import FunctionNode


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

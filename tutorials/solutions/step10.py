"""Solution 10: the check for MatMul."""

import tinynode as tn
from tinynode import functions as F
from tinynode.type_check import expect, is_floating


class MatMul(tn.FunctionNode):
    """z = x y, for matrices.

    x: (n, k), y: (k, m) -> z: (n, m).   With g = dL/dz:   dL/dx = g y^T   dL/dy = x^T g
    """

    input_names = ("x", "y")
    type_hint = "a row of x must be as long as a column of y."

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        x, y = in_types
        expect(x.ndim == 2, y.ndim == 2)
        expect(is_floating(x), x.dtype == y.dtype)
        expect(x.shape[1] == y.shape[0])

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (tn.namespace_of(x).matmul(x, y),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        x, y = self.get_retained_inputs()
        return F.matmul(g, y.T), F.matmul(x.T, g)

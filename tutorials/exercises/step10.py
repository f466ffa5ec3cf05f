"""Exercise 10: the check for MatMul, the product of two matrices.

``forward`` and ``backward`` are there. Write ``check_type_forward``, so that ``apply`` refuses

- another number of inputs than two,
- an input that is no matrix: a matrix has two axes,
- an input whose dtype is not floating, and two inputs of different dtypes,
- lengths that do not fit: a row of x must be as long as a column of y.

The message must show what was compared: ``in_types[0].ndim == 2``, say. Then set ``input_names``
and ``type_hint``, so that it names the inputs x and y, and says what to try.
"""

import tinynode as tn
from tinynode import functions as F
from tinynode.type_check import expect, is_floating  # noqa: F401 - for you to use


class MatMul(tn.FunctionNode):
    """z = x y, for matrices.

    x: (n, k), y: (k, m) -> z: (n, m).   With g = dL/dz:   dL/dx = g y^T   dL/dy = x^T g
    """

    input_names = ()
    type_hint = ""

    def check_type_forward(self, in_types):
        raise NotImplementedError("say with expect(...) what must hold")

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (tn.namespace_of(x).matmul(x, y),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        x, y = self.get_retained_inputs()
        return F.matmul(g, y.T), F.matmul(x.T, g)

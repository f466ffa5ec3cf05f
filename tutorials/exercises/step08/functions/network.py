"""What the layers of a network compute.

Step 8: forward of Linear is given; write backward. The docstring has the formulas.
"""

from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands


class Linear(FunctionNode):
    """y = x W^T + b.   With the rows of gy:   gx = gy W, gW = gy^T x, gb = the sum of the rows

    x: (..., in), W: (out, in), b: (out) -> y: (..., out)
    """

    def forward(self, inputs):
        x, w = inputs[:2]
        y = x @ w.T
        return (y if len(inputs) == 2 else y + inputs[2],)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 8: two gradients without a bias, three with a bias")


def linear(x, w, b=None):
    """x W^T + b."""
    x, w = as_operands(x, w)
    return Linear().apply((x, w) if b is None else (x, w, b))[0]

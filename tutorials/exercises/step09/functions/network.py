"""What the layers of a network compute. Step 9: the page shows this file."""

from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands


class Linear(FunctionNode):
    """y = x W^T + b.   With the rows of gy:   gx = gy W, gW = gy^T x, gb = the sum of the rows

    x: (..., in), W: (out, in), b: (out) -> y: (..., out)
    """

    def forward(self, inputs):
        raise NotImplementedError("step 9: Linear.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 9: Linear.backward")


def linear(x, w, b=None):
    """x W^T + b."""
    raise NotImplementedError("step 9: linear")

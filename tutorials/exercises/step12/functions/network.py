"""What the layers of a network compute. Step 12: the page shows this file."""

from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands
from mynode.type_check import expect, is_floating


class Linear(FunctionNode):
    """y = x W^T + b.   With the rows of gy:   gx = gy W, gW = gy^T x, gb = the sum of the rows

    x: (..., in), W: (out, in), b: (out) -> y: (..., out)
    """

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 12: Linear.check_type_forward")

    def forward(self, inputs):
        raise NotImplementedError("step 12: Linear.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 12: Linear.backward")


def linear(x, w, b=None):
    """x W^T + b."""
    raise NotImplementedError("step 12: linear")

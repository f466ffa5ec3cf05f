"""Negation, sums and products."""

from mynode.core.function_node import FunctionNode


class Negative(FunctionNode):
    """y = -x.   gx = -gy"""

    def forward(self, inputs):
        (x,) = inputs
        return (-x,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (-gy,)


def negative(x):
    """-x."""
    return Negative().apply((x,))[0]

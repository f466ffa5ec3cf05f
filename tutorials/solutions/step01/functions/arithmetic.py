"""Negation, sums and products."""

from mynode.core.function_node import FunctionNode


class Negative(FunctionNode):
    """y = -x"""

    def forward(self, inputs):
        (x,) = inputs
        return (-x,)


def negative(x):
    """-x."""
    return Negative().apply((x,))[0]

"""Negation, sums and products.

Step 1: write Negative and negative. The page of step 1 shows Square, which is a pattern.
"""

from mynode.core.function_node import FunctionNode


class Negative(FunctionNode):
    """y = -x"""

    def forward(self, inputs):
        raise NotImplementedError("step 1: Negative.forward returns a tuple with -x")


def negative(x):
    """-x."""
    raise NotImplementedError("step 1: apply a new Negative to x, and return its one output")

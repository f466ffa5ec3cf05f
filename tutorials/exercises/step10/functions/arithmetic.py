"""Negation, sums and products.

Step 10: write BroadcastingNode, the new base class of Add, Subtract and Multiply.
"""

from mynode.core.function_node import FunctionNode
from mynode.type_check import expect


class BroadcastingNode(FunctionNode):
    """Base of operations on two arrays, element by element: both have the same shape."""

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 10: two inputs, and one shape")

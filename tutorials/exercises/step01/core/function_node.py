"""One use of an operation.

Step 1: write the method apply of FunctionNode. The page of step 1 shows the class.
"""

import numpy as np
from mynode.core.variable import Variable


class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    inputs = None
    outputs = None

    def apply(self, inputs):
        """Compute the outputs, and connect them with the inputs."""
        raise NotImplementedError("step 1: call forward, make the boxes, tie them together")

    def forward(self, inputs):
        """The output arrays, as a tuple, from a tuple of input arrays."""
        raise NotImplementedError

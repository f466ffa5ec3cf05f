"""One use of an operation.

Step 1: the beginning of apply is given. Tie the operation and the boxes together.
"""

import numpy as np
from mynode.core.variable import Variable


class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    inputs = None
    outputs = None

    def apply(self, inputs):
        """Compute the outputs, and connect them with the inputs."""
        results = self.forward(tuple(x.array for x in inputs))
        if not isinstance(results, tuple):
            raise TypeError(
                f"{type(self).__name__}.forward: expected a tuple of arrays, "
                f"got {type(results).__name__}"
            )
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        for y in outputs:
            raise NotImplementedError(
                f"step 1: the creator of the output {y.array}; then self.inputs, self.outputs"
            )
        return outputs

    def forward(self, inputs):
        """The output arrays, as a tuple, from a tuple of input arrays."""
        raise NotImplementedError

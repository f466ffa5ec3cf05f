"""One use of an operation."""

import numpy as np
from mynode.core.variable import Variable


class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    inputs = None
    outputs = None

    def apply(self, inputs):
        """Compute the outputs, and connect them with the inputs."""
        arrays = tuple(x.array for x in inputs)
        results = self.forward(arrays)
        if not isinstance(results, tuple):
            raise TypeError(
                f"{type(self).__name__}.forward: expected a tuple of arrays, "
                f"got {type(results).__name__}"
            )
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        for y in outputs:
            y.creator_node = self
        self.inputs = tuple(inputs)
        self.outputs = outputs
        self.input_arrays = arrays  # for backward
        return outputs

    def forward(self, inputs):
        """The output arrays, as a tuple, from a tuple of input arrays."""
        raise NotImplementedError

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients of the inputs, as a tuple, from those of the outputs."""
        raise NotImplementedError

"""One use of an operation."""

import weakref

import numpy as np
from mynode.core.variable import Variable


class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    inputs = None
    outputs = None
    rank = 0

    def apply(self, inputs):
        """Compute the outputs, and connect their nodes with the nodes of the inputs."""
        arrays = tuple(x.array for x in inputs)
        results = self.forward(arrays)
        if not isinstance(results, tuple):
            raise TypeError(
                f"{type(self).__name__}.forward: expected a tuple of arrays, "
                f"got {type(results).__name__}"
            )
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        self.rank = max(x.rank for x in inputs)
        for y in outputs:
            y.node.creator_node = self
            y.node.rank = self.rank + 1
        self.inputs = tuple(x.node for x in inputs)
        self.outputs = tuple(weakref.ref(y.node) for y in outputs)
        self.input_arrays = arrays  # for backward
        return outputs

    def forward(self, inputs):
        """The output arrays, as a tuple, from a tuple of input arrays."""
        raise NotImplementedError

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients of the inputs, as a tuple, from those of the outputs."""
        raise NotImplementedError

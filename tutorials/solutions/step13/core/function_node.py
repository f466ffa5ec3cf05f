"""One use of an operation."""

import weakref

import numpy as np
from mynode.configuration import config
from mynode.core.variable import Variable


class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    inputs = None
    outputs = None
    rank = 0
    _retained_input_indexes = ()
    _retained_output_indexes = ()

    def apply(self, inputs):
        """Compute the outputs, and connect their nodes with the nodes of the inputs."""
        arrays = tuple(x.array for x in inputs)
        results = self.forward(arrays)
        if not isinstance(results, tuple):
            raise TypeError(
                f"{type(self).__name__}.forward: expected a tuple of arrays, "
                f"got {type(results).__name__}"
            )
        results = tuple(np.asarray(result) for result in results)
        wanted = config.enable_backprop and any(x.requires_grad for x in inputs)
        outputs = tuple(Variable(y, requires_grad=wanted and y.dtype.kind == "f") for y in results)
        if wanted:
            self.connect(inputs, outputs)
            self._input_arrays = pick(arrays, self._retained_input_indexes)
            self._output_arrays = pick(results, self._retained_output_indexes)
        return outputs

    def connect(self, inputs, outputs):
        """Tie this operation to the nodes of its inputs and outputs."""
        self.rank = max(x.rank for x in inputs)
        for y in outputs:
            y.node.creator_node = self
            y.node.rank = self.rank + 1
        self.inputs = tuple(x.node for x in inputs)
        self.outputs = tuple(weakref.ref(y.node) for y in outputs)

    def forward(self, inputs):
        """The output arrays, as a tuple, from a tuple of input arrays."""
        raise NotImplementedError

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients of the inputs, as a tuple, from those of the outputs."""
        raise NotImplementedError

    def retain_inputs(self, indexes):
        """Keep these inputs for backward. To be called in forward."""
        self._retained_input_indexes = indexes

    def retain_outputs(self, indexes):
        """Keep these outputs for backward. To be called in forward."""
        self._retained_output_indexes = indexes

    def get_retained_inputs(self):
        """The kept input arrays, in the order of the indexes."""
        return tuple(self._input_arrays[i] for i in self._retained_input_indexes)

    def get_retained_outputs(self):
        """The kept output arrays, in the order of the indexes."""
        return tuple(self._output_arrays[i] for i in self._retained_output_indexes)


def pick(arrays, indexes):
    """The arrays, with None in place of those whose positions are not in indexes."""
    return tuple(array if i in indexes else None for i, array in enumerate(arrays))

"""One use of an operation."""

import weakref

import numpy as np
from mynode.configuration import config
from mynode.core.variable import Variable
from mynode.type_check import run_check


class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    inputs = None
    outputs = None
    rank = 0
    gives_variables = False  # True while backward is to be differentiated again
    _retained_input_indexes = ()
    _retained_output_indexes = ()

    def apply(self, inputs):
        """Compute the outputs, and connect their nodes with the nodes of the inputs."""
        arrays = tuple(x.array for x in inputs)
        run_check(self, arrays)
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

    def check_type_forward(self, in_types):
        """Say with expect what must hold for the inputs. By default, nothing."""

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
        """The kept inputs, in the order of the indexes; see kept."""
        indexes = self._retained_input_indexes
        return tuple(self.kept(self.inputs[i], self._input_arrays[i]) for i in indexes)

    def get_retained_outputs(self):
        """The kept outputs, in the order of the indexes; see kept."""
        indexes = self._retained_output_indexes
        return tuple(self.kept(self.outputs[i](), self._output_arrays[i]) for i in indexes)

    def kept(self, node, array):
        """The array; or its Variable in the graph, if backward is to be differentiated again."""
        if not self.gives_variables:
            return array
        x = node.get_variable_or_none()
        if x is None or x.array is not array:  # the Variable is gone, or was updated
            x = Variable(array, requires_grad=node.requires_grad)
            x.node = node
        return x


def pick(arrays, indexes):
    """The arrays, with None in place of those whose positions are not in indexes."""
    return tuple(array if i in indexes else None for i, array in enumerate(arrays))


def gradient_by(function, *inputs):
    """The outputs of a gradient function: recorded for Variables, plain arrays for arrays."""
    if any(isinstance(x, Variable) for x in inputs):
        return function.apply(inputs)
    return function.forward(inputs)

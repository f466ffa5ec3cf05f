"""Solution 11: the gradient of a broadcast addition."""

import tinynode as tn
from tinynode import functions as F


def unbroadcast(g, shape):
    """g summed over the axes along which an array of this shape was repeated."""
    new = g.ndim - len(shape)  # shapes line up at their ends, so new axes stand in front
    g = F.sum(g, axis=tuple(range(new)))
    repeated = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return F.sum(g, axis=repeated, keepdims=True)


class Add(tn.FunctionNode):
    """z = a + b, with broadcasting.   With g = dL/dz:   dL/da = g summed to the shape of a."""

    def forward(self, inputs):
        a, b = inputs
        return (a + b,)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return tuple(unbroadcast(g, node.shape) for node in self.inputs)

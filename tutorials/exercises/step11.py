"""Exercise 11: the gradient of a broadcast addition.

1. ``unbroadcast(g, shape)``: the gradient ``g`` of an array that was repeated from ``shape``,
   summed back to ``shape``. Use ``F.sum`` and ``F.reshape``, but not ``F.sum_to``: you are
   writing it. g is a Variable, and so is the result.
2. ``Add.backward``: the gradients of both inputs, by ``unbroadcast``.
"""

import tinynode as tn
from tinynode import functions as F  # noqa: F401 - for you to use


def unbroadcast(g, shape):
    """g summed over the axes along which an array of this shape was repeated."""
    raise NotImplementedError("which axes were repeated? F.sum(g, axis=(0, 2)) sums over two")


class Add(tn.FunctionNode):
    """z = a + b, with broadcasting."""

    def forward(self, inputs):
        a, b = inputs
        return (a + b,)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("self.inputs[0].shape is the shape of a")

"""The same numbers in another shape.

Step 7: write unbroadcast, and SumTo. Reshape and BroadcastTo are given.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


def unbroadcast(g, shape):
    """An array summed over the axes along which an array of this shape was repeated."""
    raise NotImplementedError("step 7: which axes were repeated? g.sum(axis=(0, 2)) sums over two")


class Reshape(FunctionNode):
    """y = the elements of x, in the same order, in another shape.   gx = gy, reshaped back"""

    def __init__(self, shape):
        self.shape = shape

    def forward(self, inputs):
        (x,) = inputs
        return (x.reshape(self.shape),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (gy.reshape(self.inputs[0].shape),)


def reshape(x, shape):
    """x in another shape. An entry of -1 is computed."""
    return Reshape(shape).apply((x,))[0]


class BroadcastTo(FunctionNode):
    """y = x, repeated to a larger shape.   gx = gy, summed to the shape of x"""

    def __init__(self, shape):
        self.shape = shape

    def forward(self, inputs):
        (x,) = inputs
        return (np.broadcast_to(x, self.shape).copy(),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (unbroadcast(gy, self.inputs[0].shape),)


def broadcast_to(x, shape):
    """x, repeated along axes of length 1 and along new axes in front."""
    return BroadcastTo(shape).apply((x,))[0]


class SumTo(FunctionNode):
    """y = x, summed to a smaller shape.   gx = gy, repeated to the shape of x"""

    def __init__(self, shape):
        self.shape = shape

    def forward(self, inputs):
        raise NotImplementedError("step 7: the backward of BroadcastTo")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 7: the forward of BroadcastTo")


def sum_to(x, shape):
    """x, summed over the axes along which an array of this shape would be repeated."""
    return SumTo(shape).apply((x,))[0]

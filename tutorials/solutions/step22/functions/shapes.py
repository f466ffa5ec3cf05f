"""The same numbers in another shape."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable


def unbroadcast(g, shape):
    """A gradient summed over the axes along which an array of this shape was repeated."""
    new = g.ndim - len(shape)  # shapes line up at their ends, so new axes stand in front
    g = g.sum(axis=tuple(range(new)))
    repeated = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return g.sum(axis=repeated, keepdims=True)


def repeat(g, shape):
    """A gradient repeated to a larger shape: an array, or a Variable in the graph."""
    return broadcast_to(g, shape) if isinstance(g, Variable) else np.broadcast_to(g, shape).copy()


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


class PermuteDims(FunctionNode):
    """y = x with its axes in another order: axis i of y is axis axes[i] of x.

    gx = gy, with the axes back in their order.
    """

    def __init__(self, axes):
        self.axes = axes

    def forward(self, inputs):
        (x,) = inputs
        return (x.transpose(self.axes),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        back = tuple(self.axes.index(i) for i in range(len(self.axes)))
        return (gy.transpose(back),)


def permute_dims(x, axes):
    """x with its axes in another order: the shape (2, 3, 4) and (0, 2, 1) give (2, 4, 3)."""
    axes = tuple(i + x.ndim if i < 0 else i for i in axes)
    return PermuteDims(axes).apply((x,))[0]


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
        (x,) = inputs
        return (unbroadcast(x, self.shape),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (repeat(gy, self.inputs[0].shape),)


def sum_to(x, shape):
    """x, summed over the axes along which an array of this shape would be repeated."""
    return SumTo(shape).apply((x,))[0]

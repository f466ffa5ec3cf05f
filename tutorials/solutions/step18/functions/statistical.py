"""Sums and means over axes."""

import math

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.exponential import square


class Sum(FunctionNode):
    """y = the sum of x over axes.   gx = gy, repeated along these axes"""

    def __init__(self, axes, keepdims):
        self.axes = axes
        self.keepdims = keepdims

    def forward(self, inputs):
        (x,) = inputs
        return (x.sum(axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        shape = self.inputs[0].shape
        kept = tuple(1 if i in self.axes else n for i, n in enumerate(shape))
        return (np.broadcast_to(gy.reshape(kept), shape).copy(),)


def sum(x, axis=None, keepdims=False):
    """The sum over an axis, several, or all."""
    return Sum(normalize_axes(axis, x.ndim), keepdims).apply((x,))[0]


def mean(x, axis=None, *, keepdims=False):
    """The mean over an axis, several, or all."""
    n = math.prod(x.shape[i] for i in normalize_axes(axis, x.ndim))
    return sum(x, axis, keepdims) / n


def var(x, axis=None, *, keepdims=False):
    """The variance over an axis, several, or all: the mean of (x - mean)^2."""
    return mean(square(x - mean(x, axis, keepdims=True)), axis, keepdims=keepdims)


def normalize_axes(axis, ndim):
    """An axis, several or (None) all, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(i + ndim if i < 0 else i for i in axes)

"""Sums and means over axes.

Step 7: write the backward of Sum, and mean.
"""

import math

import numpy as np
from mynode.core.function_node import FunctionNode


class Sum(FunctionNode):
    """y = the sum of x over axes.   gx = gy, repeated along these axes"""

    def __init__(self, axes, keepdims):
        self.axes = axes
        self.keepdims = keepdims

    def forward(self, inputs):
        (x,) = inputs
        return (x.sum(axis=self.axes, keepdims=self.keepdims),)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 7: reshape gy, then repeat to self.inputs[0].shape")


def sum(x, axis=None, keepdims=False):
    """The sum over an axis, several, or all."""
    return Sum(normalize_axes(axis, x.ndim), keepdims).apply((x,))[0]


def mean(x, axis=None, *, keepdims=False):
    """The mean over an axis, several, or all."""
    raise NotImplementedError("step 7: a sum, divided by the number of elements in it")


def normalize_axes(axis, ndim):
    """An axis, several or (None) all, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(i + ndim if i < 0 else i for i in axes)

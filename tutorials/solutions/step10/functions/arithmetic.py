"""Negation, sums and products."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.type_check import expect


def as_operands(x, y):
    """Both as Variables: a number takes the shape of the other, and wants no gradient."""
    if not isinstance(y, Variable):
        y = np.full(x.array.shape, y, np.result_type(x.array, y))
        y = Variable(y, requires_grad=False)
    if not isinstance(x, Variable):
        x = np.full(y.array.shape, x, np.result_type(y.array, x))
        x = Variable(x, requires_grad=False)
    return x, y


class Negative(FunctionNode):
    """y = -x.   gx = -gy"""

    def forward(self, inputs):
        (x,) = inputs
        return (-x,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (-gy,)


def negative(x):
    """-x."""
    return Negative().apply((x,))[0]


class BroadcastingNode(FunctionNode):
    """Base of operations on two arrays, element by element: both have the same shape."""

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        x, y = in_types
        expect(x.shape == y.shape)


class Add(BroadcastingNode):
    """z = x + y.   gx = gz, gy = gz"""

    def forward(self, inputs):
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return gz, gz


def add(x, y):
    """x + y."""
    return Add().apply(as_operands(x, y))[0]


class Subtract(BroadcastingNode):
    """z = x - y.   gx = gz, gy = -gz"""

    def forward(self, inputs):
        x, y = inputs
        return (x - y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return gz, -gz


def subtract(x, y):
    """x - y."""
    return Subtract().apply(as_operands(x, y))[0]


class Multiply(BroadcastingNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x * y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz * y if 0 in target_input_indexes else None
        gy = gz * x if 1 in target_input_indexes else None
        return gx, gy


def multiply(x, y):
    """x * y."""
    return Multiply().apply(as_operands(x, y))[0]

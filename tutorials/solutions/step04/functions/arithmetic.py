"""Negation, sums and products."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable


def as_operands(x, y):
    """Both as Variables: a number takes the shape of the other."""
    if not isinstance(y, Variable):
        y = Variable(np.full(x.array.shape, y, np.result_type(x.array, y)))
    if not isinstance(x, Variable):
        x = Variable(np.full(y.array.shape, x, np.result_type(y.array, x)))
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


class Add(FunctionNode):
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


class Subtract(FunctionNode):
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


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        x, y = inputs
        return (x * y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.input_arrays
        return gz * y, gz * x


def multiply(x, y):
    """x * y."""
    return Multiply().apply(as_operands(x, y))[0]

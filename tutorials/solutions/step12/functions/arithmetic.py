"""Negation, sums and products."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.functions.shapes import unbroadcast


def as_operands(x, y):
    """Both as Variables: a number takes the dtype of the other."""
    if not isinstance(y, Variable):
        y = Variable(np.asarray(y, np.result_type(x.array, y)))
    if not isinstance(x, Variable):
        x = Variable(np.asarray(x, np.result_type(y.array, x)))
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
    """Base of operations on two arrays, element by element, with broadcasting."""

    def unbroadcast(self, gx, gy):
        """Both gradients, summed to the shapes of their inputs."""
        x, y = self.inputs
        return unbroadcast(gx, x.shape), unbroadcast(gy, y.shape)


class Add(BroadcastingNode):
    """z = x + y.   gx = gz, gy = gz, each summed to the shape of its input"""

    def forward(self, inputs):
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return self.unbroadcast(gz, gz)


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
        return self.unbroadcast(gz, -gz)


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
        return self.unbroadcast(gz * y, gz * x)


def multiply(x, y):
    """x * y."""
    return Multiply().apply(as_operands(x, y))[0]


class Divide(BroadcastingNode):
    """z = x / y.   gx = gz / y, gy = -gz * x / y^2"""

    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x / y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz / y
        return self.unbroadcast(gx, -gx * x / y)


def divide(x, y):
    """x / y."""
    return Divide().apply(as_operands(x, y))[0]

"""Negation, sums and products."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.functions.shapes import unbroadcast
from mynode.type_check import broadcasts, expect


def as_operands(x, y):
    """Both as Variables: numbers and arrays want no gradient, a number takes the other's dtype."""
    if not isinstance(y, Variable):
        y = Variable(np.asarray(y, np.result_type(x.array, y)), requires_grad=False)
    if not isinstance(x, Variable):
        x = Variable(np.asarray(x, np.result_type(y.array, x)), requires_grad=False)
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

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        x, y = in_types
        expect(broadcasts(x, y))

    def unbroadcast(self, gx, gy):
        """Both gradients, summed to the shapes of their inputs; None stays None."""
        x, y = self.inputs
        gx = None if gx is None else unbroadcast(gx, x.shape)
        gy = None if gy is None else unbroadcast(gy, y.shape)
        return gx, gy


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

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        (gz,) = grad_outputs
        results = []
        for i, old in zip(target_input_indexes, grad_inputs, strict=True):
            g = unbroadcast(gz, self.inputs[i].shape)
            if i == 0:
                results.append(g if old is None else old + g)
            else:
                results.append(-g if old is None else old - g)
        return tuple(results)


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
        return self.unbroadcast(gx, gy)


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

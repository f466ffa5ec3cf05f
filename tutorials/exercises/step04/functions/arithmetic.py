"""Negation, sums and products."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable


def as_operands(x, y):
    """Both as Variables: a number takes the shape of the other."""
    raise NotImplementedError("step 4: put a number into a box of the other's shape")


class Add(FunctionNode):
    """z = x + y.   gx = gz, gy = gz"""

    def forward(self, inputs):
        raise NotImplementedError("step 4: Add.forward returns a tuple with x + y")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 4: Add.backward returns gx and gy")


def add(x, y):
    """x + y."""
    raise NotImplementedError("step 4: apply a new Add to as_operands(x, y)")


class Subtract(FunctionNode):
    """z = x - y.   gx = gz, gy = -gz"""

    def forward(self, inputs):
        raise NotImplementedError("step 4: Subtract.forward returns a tuple with x - y")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 4: Subtract.backward returns gx and gy")


def subtract(x, y):
    """x - y."""
    raise NotImplementedError("step 4: apply a new Subtract to as_operands(x, y)")


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        raise NotImplementedError("step 4: Multiply.forward returns a tuple with x * y")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 4: Multiply.backward returns gx and gy")


def multiply(x, y):
    """x * y."""
    raise NotImplementedError("step 4: apply a new Multiply to as_operands(x, y)")

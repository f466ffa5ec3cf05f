"""Recomputation in place of kept arrays.

Elective bytes: write forward and backward of Checkpoint.
"""

from mynode.configuration import no_backprop_mode
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.random import get_generator


class Checkpoint(FunctionNode):
    """y = function(x, w, ...). Kept: the inputs, and the state of the random generator.

    forward runs the function without a graph. backward runs the function again, with a graph,
    and differentiates. gx, gw, ... are those of the function.

    Source: Griewank and Walther, Algorithm 799: Revolve, 2000; Chen et al., Training Deep Nets
    with Sublinear Memory Cost, 2016.
    """

    def __init__(self, function):
        self.function = function

    def forward(self, inputs):
        raise NotImplementedError("elective bytes: Checkpoint.forward")

    def backward(self, target_input_indexes, grad_outputs):
        if isinstance(grad_outputs[0], Variable):
            raise TypeError(
                "Checkpoint.backward: expected arrays, got Variables; for gradients of gradients, "
                "call the function without a checkpoint"
            )
        raise NotImplementedError("elective bytes: Checkpoint.backward")


def checkpoint(function, *inputs):
    """function(*inputs), with the inputs alone kept for backward.

    The function takes Variables, and gives a Variable. Each Variable that needs a gradient is an
    input.
    """
    return Checkpoint(function).apply(inputs)[0]

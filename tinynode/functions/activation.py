"""Activation functions of neural networks."""

from __future__ import annotations

from typing import Any

from tinynode.backend import Arrays, namespace_of
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.elementwise import exp
from tinynode.functions.operands import as_operand
from tinynode.functions.reduction import require_elements, sum
from tinynode.functions.shaping import normalize_axis
from tinynode.functions.zero_safe import masked
from tinynode.variable import Variable


class Sigmoid(FunctionNode):
    """y = 1 / (1 + e^-x).   x: (s) -> y: (s).   dL/dx = dL/dy * y * (1 - y)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_outputs((0,))
        small = xp.exp(-xp.abs(x))  # never overflows, and keeps the relative precision of tiny y
        return (xp.where(x >= 0, xp.ones_like(x), small) / (1.0 + small),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (gy * y * (1.0 - y),)


def sigmoid(x: Any) -> Variable:
    """1 / (1 + e^-x), elementwise."""
    return Sigmoid().apply((as_operand("sigmoid", "x", x),))[0]


class ReLU(FunctionNode):
    """y = max(x, 0).   x: (s) -> y: (s).   dL/dx = dL/dy where x > 0, else 0 (so 0 at the kink)"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        xp = namespace_of(x)
        return (xp.maximum(x, xp.zeros((), dtype=x.dtype, device=x.device)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return ReLUGrad().apply((y, gy))


class ReLUGrad(FunctionNode):
    """gx = gy where y > 0, else 0: the gradient of ``ReLU``.

    y: (s), gy: (s) -> gx: (s).   dL/dy = 0   dL/dgy = dL/dgx where y > 0, else 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        y, gy = inputs
        self.retain_inputs((0,))
        return (masked(gy, y > 0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (ggx,) = grad_outputs
        (y,) = self.get_retained_inputs()
        return None, ReLUGrad().apply((y, ggx))[0]


def relu(x: Any) -> Variable:
    """max(x, 0), elementwise; the gradient at 0 is 0.

    Source: Nair and Hinton, Rectified Linear Units Improve Restricted Boltzmann Machines, 2010.
    """
    return ReLU().apply((as_operand("relu", "x", x),))[0]


class LogSoftmax(FunctionNode):
    """y = x - ln(sum of e^x over an axis).

    x: (s) -> y: (s).   With g = dL/dy:   dL/dx = g - e^y * (sum of g over the axis)
    """

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (log_softmax_array(x, self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        assert gy is not None
        return (log_softmax_gradient(y, gy, self.axis),)


def log_softmax_array(x: Any, axis: int) -> Any:
    """log_softmax of an array: the largest x is subtracted, so nothing overflows."""
    xp = namespace_of(x)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def log_softmax_gradient(y: Variable, gy: Variable, axis: int) -> Variable:
    """dL/dx of y = log_softmax(x), from y and dL/dy."""
    return gy - exp(y) * sum(gy, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int = -1) -> Variable:
    """x - ln(sum of e^x over ``axis``): the logarithms of probabilities that add up to 1.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    x = as_operand("log_softmax", "x", x)
    axis = normalize_axis("log_softmax", axis, x.ndim)
    require_elements("log_softmax", x, (axis,))
    return LogSoftmax(axis).apply((x,))[0]

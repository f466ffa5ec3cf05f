"""Sigmoid, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.functions.arithmetic import BroadcastingNode
from tinynode.functions.exponential import in_blocks
from tinynode.functions.operands import as_floating, as_operands
from tinynode.functions.searching import where
from tinynode.functions.shapes import unbroadcast
from tinynode.functions.trigonometric import tanh

__all__ = ["LogAddExp", "SameInfinity", "Sigmoid", "logaddexp", "sigmoid"]
__dir__ = __all__.copy  # for completion


class Sigmoid(FunctionNode):
    """y = 1 / (1 + e^-x).   x: (s) -> y: (s).   dL/dx = dL/dy * sigmoid(x) * sigmoid(-x)"""

    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (in_blocks(sigmoid_array, inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return SigmoidGrad().apply((x, gy))


class SigmoidGrad(FunctionNode):
    """gx = gy * sigmoid(x) * sigmoid(-x): the gradient of ``Sigmoid``; y (1 - y) cancels near 1.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = -tanh(x / 2) * (the same function of h * gy)
    """

    input_counts = (2,)
    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        return (in_blocks(_sigmoid_gradient, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = ggy = None
        if 0 in target_input_indexes:
            gx = -tanh(x * 0.5) * sigmoid_gradient(x, h * gy)
        if 1 in target_input_indexes:
            ggy = sigmoid_gradient(x, h)
        return gx, ggy


def _sigmoid_gradient(x: Array, gy: Array) -> Array:
    """e / (1 + e)^2 with e = e^-|x|."""
    xp = namespace_of(x)
    small = xp.exp(-xp.abs(x))
    whole = small + 1.0
    small /= whole
    small /= whole
    return small * gy


def sigmoid_gradient(x: Variable, gy: Variable) -> Variable:
    """gy * sigmoid(x) * sigmoid(-x)."""
    return SigmoidGrad().apply((x, gy))[0]


def sigmoid_array(x: Array) -> Array:
    """sigmoid of an array."""
    return sigmoid_of(namespace_of(x), x)


def sigmoid_of(xp: Any, x: Array) -> Array:
    """sigmoid of an array, or of a NumPy scalar: e^x / (e^x + 1) below 0, 1 / (1 + e^-x) above.

    No value overflows, and tiny values keep the relative precision.
    """
    small = xp.exp(-xp.abs(x))
    y = xp.maximum(small, xp.astype(x > 0, x.dtype))
    small += 1.0
    y /= small
    return y


def sigmoid(x: Any) -> Variable:
    """1 / (1 + e^-x), elementwise.

    y = 1 / (1 + e^-x).   x: (s) -> y: (s).   dL/dx = dL/dy * y * (1 - y)

        >>> F.sigmoid(tn.asarray([0.0, 100.0])).tolist()
        [0.5, 1.0]
    """
    return Sigmoid().apply((as_floating("sigmoid", "x", x),))[0]


def sigmoid_of_negative(xp: Any, size: Array) -> Array:
    """sigmoid(-size) of sizes from 0 on: at most 1/2, so 1 minus it is precise."""
    small = xp.exp(-size)
    small /= small + 1.0
    return small


class LogAddExp(BroadcastingNode):
    """z = ln(e^x + e^y), without overflow.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz, p = 1 / (1 + e^(y-x)):   dL/dx = sum_to(g p, s)   dL/dy = sum_to(g (1 - p), t)
    Where x and y are the same infinity, p = 1/2.
    """

    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        xp = namespace_of(x)
        larger = xp.maximum(x, y)
        limit = xp.asarray(xp.finfo(larger.dtype).max, dtype=larger.dtype, device=larger.device)
        # held within the finite numbers, because inf - inf is NaN
        difference = xp.minimum(x, y) - xp.maximum(xp.minimum(larger, limit), -limit)
        return (larger + xp.log1p(xp.exp(difference)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        same = SameInfinity().apply((x, y))[0]
        difference = where(same, 0, x) - where(same, 0, y)
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(gz * sigmoid(difference), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(gz * sigmoid(-difference), self, 1)
        return gx, gy


class SameInfinity(BroadcastingNode):
    """z = True where x and y are the same infinity, so x - y is NaN.

    x: (s), y: (t) -> z: (broadcast of s and t), bool. No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return ((x == y) & namespace_of(x).isinf(x),)


def logaddexp(x1: Any, x2: Any) -> Variable:
    """ln(e^x1 + e^x2), elementwise, without overflow.

    Raises:
        OperandError: x1 or x2 is not floating.
    """
    x1, x2 = as_operands("logaddexp", x1, x2, ("x1", "x2"))
    return LogAddExp().apply(
        (as_floating("logaddexp", "x1", x1), as_floating("logaddexp", "x2", x2))
    )[0]

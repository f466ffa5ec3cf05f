"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any, Never

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, is_known_true, namespace_of, put, sum_array
from tinynode.errors import unknown_keywords
from tinynode.functions.arithmetic import abs, masked, multiply
from tinynode.functions.checked import checked_float
from tinynode.functions.comparison import clip, greater, less
from tinynode.functions.data_types import narrowed, widened
from tinynode.functions.exponential import Exp, Expm1, exp, in_blocks
from tinynode.functions.gaussian import (
    GAUSS_ENDS,
    ROOT_2PI,
    Gauss,
    gauss_array,
    normal_array,
    normal_tail,
)
from tinynode.functions.logistic import sigmoid, sigmoid_gradient, sigmoid_of, sigmoid_of_negative
from tinynode.functions.manipulation import split
from tinynode.functions.operands import (
    as_floating,
    as_number,
    as_operand,
    normalize_axis,
    require_elements,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import AxisNode
from tinynode.functions.statistical import Softmax, SoftmaxGrad, Sum, with_limits
from tinynode.functions.trigonometric import tanh

__all__ = [
    "ELU",
    "GELU",
    "GELUGrad",
    "HardSiLU",
    "HardSiLUGrad",
    "LeakyReLU",
    "LeakyReLUGrad",
    "LogSigmoid",
    "LogSoftmax",
    "ReLU",
    "ReLUGrad",
    "Softmax",
    "SoftmaxGrad",
    "TanhGELU",
    "TanhGELUGrad",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "selu",
    "silu",
    "softmax",
    "softplus",
]
__dir__ = __all__.copy  # for completion


class ReLU(FunctionNode):
    """y = max(x, 0).   x: (s) -> y: (s).   dL/dx = dL/dy where x > 0, else 0 (so 0 at the kink)"""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (namespace_of(x).maximum(x, zeros_beside(x)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return ReLUGrad().apply((y, gy))


MANY = 1 << 12
"""The elements from which ``zeros_beside`` makes more than a single zero."""


def zeros_beside(x: Array) -> Array:
    """Zeros that broadcast to the shape of x: for a large x, those of its first row.

    NumPy's ``maximum`` of an array and a single number takes three times as long.
    """
    xp = namespace_of(x)
    if math.prod(x.shape) < MANY:
        return xp.zeros((), dtype=x.dtype, device=x.device)
    return xp.zeros_like(x[:1, ...])


class ReLUGrad(FunctionNode):
    """gx = gy where y > 0, else 0: the gradient of ``ReLU``.

    y: (s), gy: (s) -> gx: (s).   dL/dy = 0   dL/dgy = dL/dgx where y > 0, else 0
    """

    input_counts = (2,)
    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        y, gy = inputs
        self.retain_inputs((0,))
        return (masked(gy, y > 0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        (y,) = self.get_retained_inputs()
        return None, ReLUGrad().apply((y, ggx))[0]


def relu(x: Any) -> Variable:
    """max(x, 0), elementwise; the gradient at 0 is 0.

    x: (s) -> y: (s).   dL/dx = dL/dy where x > 0, else 0

        >>> F.relu(tn.asarray([-1.0, 2.0])).tolist()
        [0.0, 2.0]

    Source: Nair and Hinton, Rectified Linear Units Improve Restricted Boltzmann Machines, 2010.
    """
    return ReLU().apply((as_operand("relu", "x", x),))[0]


class LogSoftmax(AxisNode):
    """y = x - ln(sum of e^x over an axis).

    x: (s) -> y: (s).   With g = dL/dy:   dL/dx = g - e^y * (sum of g over the axis)
    """

    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0,))
        return (log_softmax_array(x, self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (log_softmax_gradient(y, gy, self.axis),)


def log_softmax_array(x: Array, axis: int) -> Array:
    """log_softmax of an array: the largest x is subtracted, against overflow.

    Its e^0 = 1 would hide a small rest of the sum, so it is left out, and added by ``log1p``.
    """
    xp = namespace_of(x)
    if axis == x.ndim - 1:
        y = _log_softmax_of_rows(xp, x if axis == 1 else xp.reshape(x, (-1, x.shape[axis])))
        if y is not None:
            return y if axis == 1 else xp.reshape(y, x.shape)
    largest_x = xp.max(x, axis=axis, keepdims=True)
    if not is_known_true(xp.isfinite(largest_x)):
        x, largest_x = with_limits(x, largest_x, axis)
    shifted = x - largest_x
    rest = xp.exp(shifted)
    largest = xp.floor(rest)  # 1 for the largest, else 0
    rest -= largest
    count = sum_array(largest, axis, keepdims=True)
    shifted -= xp.log1p(sum_array(rest, axis, keepdims=True) + (count - 1.0))
    return shifted


def _log_softmax_of_rows(xp: Any, x: Array) -> Array | None:
    """log_softmax along axis 1 of two; None if a row's largest x is not known to be finite."""
    places = (xp.arange(x.shape[0], device=x.device), xp.argmax(x, axis=1))
    largest_x = x[places]
    if not is_known_true(xp.isfinite(largest_x)):
        return None
    shifted = x - largest_x[:, None]
    rest = put(xp.exp(shifted), places, 0.0)
    shifted -= xp.log1p(sum_array(rest, 1, keepdims=True))
    return shifted


def log_softmax_gradient(y: Variable, gy: Variable, axis: int) -> Variable:
    """dL/dx of y = log_softmax(x), from y and dL/dy: g - e^y * (sum of g).

    The terms with g itself have the factor 1 - e^y, which cancels near y = 0.
    """
    others = Sum((axis,), keepdims=True).apply((gy,))[0] - gy
    return -(Expm1().apply((y,))[0] * gy) - Exp().apply((y,))[0] * others


def log_softmax(x: Any, axis: int = -1, **unknown: Never) -> Variable:
    """x - ln(sum of e^x over ``axis``): the logarithms of probabilities with sum 1.

    A single +inf gives the limit: 0 there, -inf elsewhere. Several +inf, or -inf alone, give NaN.

    Raises:
        ValueError: the axis does not exist, or has no elements.
    """
    if unknown:
        raise unknown_keywords("log_softmax", unknown)
    x = as_floating("log_softmax", "x", x)
    axis = normalize_axis("log_softmax", axis, x.ndim)
    require_elements("log_softmax", x, (axis,))
    return LogSoftmax(axis).apply((x,))[0]


def softmax(x: Any, axis: int = -1, **unknown: Never) -> Variable:
    """e^x / (sum of e^x over ``axis``): probabilities with sum 1.

    A single +inf gives the limit: 1 there, 0 elsewhere. Several +inf give NaN. Where every x is
    -inf, as under a mask, all probabilities are 0.

    x: (s) -> y: (s).   dL/dx = y * (g - the sum of g * y over axis), g = dL/dy

        >>> F.softmax(tn.asarray([[1.0, 1.0], [0.0, 1000.0]])).tolist()
        [[0.5, 0.5], [0.0, 1.0]]

    Raises:
        ValueError: the axis does not exist.
    """
    if unknown:
        raise unknown_keywords("softmax", unknown)
    x = as_floating("softmax", "x", x)
    return Softmax(normalize_axis("softmax", axis, x.ndim)).apply((x,))[0]


class LogSigmoid(FunctionNode):
    """y = -ln(1 + e^-x).   x: (s) -> y: (s).   dL/dx = dL/dy * sigmoid(-x)"""

    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (in_blocks(_log_sigmoid, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * sigmoid(-x),)


def _log_sigmoid(x: Array) -> Array:
    xp = namespace_of(x)
    # y is negative; with -0.0 it is so where it underflows, and softplus is positive there
    zero = xp.asarray(-0.0, dtype=x.dtype, device=x.device)
    return xp.minimum(x, zero) - xp.log1p(xp.exp(-xp.abs(x)))


def log_sigmoid(x: Any) -> Variable:
    """ln(sigmoid(x)) = -ln(1 + e^-x), elementwise, without overflow."""
    return LogSigmoid().apply((as_floating("log_sigmoid", "x", x),))[0]


def softplus(x: Any, beta: float = 1.0) -> Variable:
    """ln(1 + e^(beta x)) / beta, elementwise, without overflow; dL/dx = dL/dy * sigmoid(beta x).

    Source: Dugas et al., Incorporating Second-Order Functional Knowledge for Better Option
    Pricing, 2001.
    """
    x = as_floating("softplus", "x", x)
    if beta == 1:
        return -log_sigmoid(-x)
    if not as_number("softplus", "beta", beta) > 0:
        raise ValueError(f"softplus: beta must be positive, got {beta}.")
    return log_sigmoid(x * -float(beta)) * (-1.0 / float(beta))


class SiLU(FunctionNode):
    """y = x s, with s = sigmoid(x).   x: (s) -> y: (s).   dL/dx = dL/dy * s (1 + x sigmoid(-x))"""

    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (in_blocks(_silu, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return SiLUGrad().apply((x, gy))


class SiLUGrad(FunctionNode):
    """gx = gy s (1 + x t), with s = sigmoid(x), t = sigmoid(-x): the gradient of ``SiLU``.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = h gy s t (2 - x tanh(x / 2))
    """

    input_counts = (2,)
    is_elementwise = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        return (in_blocks(_silu_gradient, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = None
        if 0 in target_input_indexes:
            held = clip(x, -_SIGMOID_ENDS, _SIGMOID_ENDS)
            gx = sigmoid_gradient(held, h * gy) * (2.0 - held * tanh(held * 0.5))
        return gx, SiLUGrad().apply((x, h))[0] if 1 in target_input_indexes else None


_SIGMOID_ENDS = 1000.0
"""e^-x is 0 from there on, in float64. Beyond it x may be infinite, and 0 * inf is NaN."""


def _silu(x: Array) -> Array:
    xp = namespace_of(x)
    size = xp.clip(xp.abs(x), max=_SIGMOID_ENDS)
    size *= sigmoid_of_negative(xp, size)
    return _rectified(xp, x) - size


def _rectified(xp: Any, x: Array) -> Array:
    """max(x, 0), with -0 for 0: x P(x) is max(x, 0) - |x| P(-|x|), so -0 at -inf, if P(-inf) = 0.

    The result is negative below 0, also where it underflows.
    """
    return xp.maximum(x, xp.asarray(-0.0, dtype=x.dtype, device=x.device))


def _silu_gradient(x: Array, gy: Array) -> Array:
    xp = namespace_of(x)
    x = xp.clip(x, min=-_SIGMOID_ENDS, max=_SIGMOID_ENDS)
    small = xp.exp(-xp.abs(x))
    whole = small + 1.0
    positive = xp.astype(x > 0, x.dtype)
    slopes = xp.maximum(small, 1.0 - positive)
    slopes /= whole  # sigmoid(-x)
    slopes *= x
    slopes += 1.0
    slopes *= xp.maximum(small, positive)
    slopes /= whole
    return slopes * gy


def silu(x: Any, beta: float = 1.0) -> Variable:
    """x * s, elementwise, with s = sigmoid(beta x); dL/dx = dL/dy * s * (1 + beta x (1 - s)).

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016; Ramachandran et al., Searching
    for Activation Functions, 2017 (there called swish).
    """
    x = as_floating("silu", "x", x)
    if beta == 1:
        return SiLU().apply((x,))[0]
    return multiply(x, sigmoid(x * as_number("silu", "beta", beta)))


class LeakyReLU(FunctionNode):
    """y = x where x > 0, else slope * x.

    x: (s) -> y: (s).   dL/dx = dL/dy where x > 0, else slope * dL/dy (so also at 0)
    """

    is_elementwise = True

    def __init__(self, slope: float) -> None:
        self.slope = checked_float(self, "slope", slope)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        xp = namespace_of(x)
        if self.slope == 0.0:  # 0 * inf is NaN
            return (xp.maximum(x, xp.zeros((), dtype=x.dtype, device=x.device)),)
        choose = xp.maximum if self.slope <= 1.0 else xp.minimum
        return (choose(x, x * self.slope),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return LeakyReLUGrad(self.slope).apply((x, gy))


class LeakyReLUGrad(FunctionNode):
    """gx = gy where x > 0, else slope * gy: the gradient of ``LeakyReLU``.

    x: (s), gy: (s) -> gx: (s).   dL/dx = 0   dL/dgy = the same function of dL/dgx
    """

    input_counts = (2,)
    is_elementwise = True

    def __init__(self, slope: float) -> None:
        self.slope = checked_float(self, "slope", slope)

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        self.retain_inputs((0,))
        positive = namespace_of(x).astype(x > 0, gy.dtype)
        slopes = 1.0 - positive
        slopes *= self.slope
        slopes += positive
        slopes *= gy
        return (slopes,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return None, LeakyReLUGrad(self.slope).apply((x, ggx))[0]


def leaky_relu(x: Any, slope: float = 0.01, **unknown: Never) -> Variable:
    """x where x > 0, else slope * x, elementwise; the gradient at 0 is the slope.

    Source: Maas, Hannun and Ng, Rectifier Nonlinearities Improve Neural Network Acoustic Models,
    2013.
    """
    if unknown:
        raise unknown_keywords("leaky_relu", unknown)
    node = LeakyReLU(as_number("leaky_relu", "slope", slope))
    return node.apply((as_floating("leaky_relu", "x", x),))[0]


class ELU(FunctionNode):
    """y = scale * x where x > 0, else scale * alpha * (e^x - 1).

    x: (s) -> y: (s).   dL/dx = dL/dy * scale where x > 0, else dL/dy * scale * alpha * e^x
    """

    is_elementwise = True

    def __init__(self, alpha: float, scale: float) -> None:
        self.alpha = checked_float(self, "alpha", alpha)
        self.scale = checked_float(self, "scale", scale)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_inputs((0,))
        zero = xp.zeros((), dtype=x.dtype, device=x.device)
        negative = xp.expm1(xp.minimum(x, zero))
        return (xp.maximum(x, zero) * self.scale + negative * (self.scale * self.alpha),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return ELUGrad(self.alpha, self.scale).apply((x, gy))


class ELUGrad(FunctionNode):
    """gx = gy * scale where x > 0, else gy * scale * alpha * e^x: the gradient of ``ELU``.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = 0 where x > 0, else h * gy * scale * alpha * e^x
    """

    input_counts = (2,)
    is_elementwise = True

    def __init__(self, alpha: float, scale: float) -> None:
        self.alpha = checked_float(self, "alpha", alpha)
        self.scale = checked_float(self, "scale", scale)

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        positive = xp.astype(x > 0, gy.dtype)  # products with 0 and 1 are quicker than where
        slopes = xp.exp(xp.minimum(x, xp.zeros((), dtype=x.dtype, device=x.device)))
        slopes *= 1.0 - positive
        slopes *= self.scale * self.alpha
        slopes += positive * self.scale
        slopes *= gy
        return (slopes,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = ggy = None
        if 0 in target_input_indexes:
            bend = exp(clip(x, max=0.0)) * (self.scale * self.alpha)
            gx = where(greater(x, 0), 0.0, h * gy * bend)
        if 1 in target_input_indexes:
            ggy = ELUGrad(self.alpha, self.scale).apply((x, h))[0]
        return gx, ggy


def elu(x: Any, alpha: float = 1.0) -> Variable:
    """x where x > 0, else alpha * (e^x - 1), elementwise; the gradient at 0 is alpha.

    Source: Clevert, Unterthiner and Hochreiter, Fast and Accurate Deep Network Learning by
    Exponential Linear Units, 2016.
    """
    node = ELU(as_number("elu", "alpha", alpha), 1.0)
    return node.apply((as_floating("elu", "x", x),))[0]


def selu(x: Any, alpha: float = 1.6732632423543772, scale: float = 1.0507009873554805) -> Variable:
    """scale * elu(x, alpha), elementwise; by default 1.0507 * elu(x, 1.6733) in full precision.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    node = ELU(as_number("selu", "alpha", alpha), as_number("selu", "scale", scale))
    return node.apply((as_floating("selu", "x", x),))[0]


class GELU(FunctionNode):
    """y = x * P(x), with P(x) = (1 + erf(x / sqrt 2)) / 2, the normal distribution.

    x: (s) -> y: (s).   dL/dx = dL/dy * (P(x) + x p(x)), with p(x) = e^(-x^2/2) / sqrt(2 pi)
    """

    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (in_blocks(_gelu, x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return GELUGrad().apply((x, gy))


def _gelu(x: Array) -> Array:
    xp = namespace_of(x)
    size = xp.clip(xp.abs(x), max=GAUSS_ENDS)
    size *= normal_tail(xp, size, gauss_array(xp, 0.5, size))
    return _rectified(xp, x) - size


def _gelu_gradient(x: Array, gy: Array) -> Array:
    xp = namespace_of(x)
    x = xp.clip(x, min=-GAUSS_ENDS, max=GAUSS_ENDS)
    bell = gauss_array(xp, 0.5, x)
    slopes = normal_array(xp, x, bell)
    bell *= x
    bell *= 1.0 / ROOT_2PI
    slopes += bell
    return slopes * gy


class GELUGrad(FunctionNode):
    """gx = gy * (P(x) + x p(x)): the gradient of ``GELU``.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dx = h * gy * p(x) * (2 - x^2)
    dL/dgy = h * (P(x) + x p(x))
    """

    input_counts = (2,)
    is_elementwise = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        self.retain_inputs((0, 1))
        return (in_blocks(_gelu_gradient, x, gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = None
        if 0 in target_input_indexes:
            held = clip(x, -GAUSS_ENDS, GAUSS_ENDS)
            density = Gauss(0.5).apply((held,))[0] * (1.0 / ROOT_2PI)
            gx = h * gy * density * (2.0 - held * held)
        return gx, GELUGrad().apply((x, h))[0] if 1 in target_input_indexes else None


class TanhGELU(FunctionNode):
    """y = x s, with s = sigmoid(v) = (1 + tanh(v / 2)) / 2, v = 2 c (x + a x^3).

    c = sqrt(2 / pi), a = 0.044715; x: (s) -> y: (s).
    dL/dx = dL/dy * s * (1 + x sigmoid(-v) w), with w = dv / dx = 2 c (1 + 3 a x^2)
    """

    is_elementwise = True
    wide = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (in_blocks(_tanh_gelu, x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return TanhGELUGrad().apply((x, gy))


_GELU_CUBIC = 0.044715


_GELU_SCALE = 2.0 * math.sqrt(2.0 / math.pi)


_TANH_ENDS = 25.0  # s is 1 or 0 from there on, in float64: beyond it x^3 may overflow


def _tanh_gelu(x: Array) -> Array:
    xp = namespace_of(x)
    size = xp.clip(xp.abs(x), max=_TANH_ENDS)
    size *= sigmoid_of_negative(xp, _tanh_gelu_inner(size * size, size))
    return _rectified(xp, x) - size


def _tanh_gelu_inner(square: Array, x: Array) -> Array:
    """v = 2 c (x + a x^3), from x^2 and x."""
    inner = square * (_GELU_CUBIC * _GELU_SCALE)
    inner += _GELU_SCALE
    inner *= x
    return inner


def _tanh_gelu_gradient(x: Array, gy: Array) -> Array:
    xp = namespace_of(x)
    x = xp.clip(x, min=-_TANH_ENDS, max=_TANH_ENDS)
    square = x * x
    v = _tanh_gelu_inner(square, x)
    w = square
    w *= 3.0 * _GELU_CUBIC * _GELU_SCALE
    w += _GELU_SCALE
    slope = sigmoid_of(xp, -v)
    slope *= x
    slope *= w
    slope += 1.0
    slope *= sigmoid_of(xp, v)
    return slope * gy


class TanhGELUGrad(FunctionNode):
    """gx = gy * s * (1 + x t w), the gradient of ``TanhGELU``: t = sigmoid(-v).

    x: (s), gy: (s) -> gx: (s); s = sigmoid(v), v = 2 c (x + a x^3), w = 2 c (1 + 3 a x^2).
    With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = h * gy * s * t * (2 w + 12 a c x^2 - x w^2 tanh(v / 2))
    """

    input_counts = (2,)
    is_elementwise = True
    wide = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        self.retain_inputs((0, 1))
        return (in_blocks(_tanh_gelu_gradient, x, gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = None
        if 0 in target_input_indexes:
            held = clip(widened(x), -_TANH_ENDS, _TANH_ENDS)
            square = held * held
            v = (square * _GELU_CUBIC + 1.0) * held * _GELU_SCALE
            w = (square * (3.0 * _GELU_CUBIC) + 1.0) * _GELU_SCALE
            bend = w * 2.0 + square * (6.0 * _GELU_CUBIC * _GELU_SCALE)
            bell = sigmoid_gradient(v, h * gy)
            gx = narrowed(bell * bend - bell * w * w * held * tanh(v * 0.5), x)
        return gx, TanhGELUGrad().apply((x, h))[0] if 1 in target_input_indexes else None


def gelu(x: Any, approximate: bool = False) -> Variable:
    """x times the normal distribution at x, elementwise; by tanh if ``approximate``.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """
    x = as_floating("gelu", "x", x)
    approximate = as_flag("gelu", "approximate", approximate)
    return (TanhGELU() if approximate else GELU()).apply((x,))[0]


def hard_tanh(x: Any) -> Variable:
    """x held between -1 and 1, elementwise; the gradient at the bounds is 1, as in ``clip``."""
    return clip(as_floating("hard_tanh", "x", x), -1.0, 1.0)


def hard_sigmoid(x: Any) -> Variable:
    """x / 6 + 1/2 held between 0 and 1, elementwise; the gradient at -3 and 3 is 1/6.

    Source: Howard et al., Searching for MobileNetV3, 2019.
    """
    # x + 3 is exact near -3, where x / 6 + 1/2 cancels
    return clip((as_floating("hard_sigmoid", "x", x) + 3.0) * (1.0 / 6.0), 0.0, 1.0)


class HardSiLU(FunctionNode):
    """y = x s, with s = x / 6 + 1/2 held between 0 and 1.

    x: (s) -> y: (s).   dL/dx = dL/dy * (s + x / 6) where |x| < 3, else dL/dy * s
    """

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (in_blocks(_hard_silu, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return HardSiLUGrad().apply((x, gy))


def _hard_sigmoid(x: Array) -> Array:
    """x / 6 + 1/2 held between 0 and 1, of an array."""
    s = x + 3.0
    s *= 1.0 / 6.0
    return namespace_of(x).clip(s, min=0.0, max=1.0)


def _hard_silu(x: Array) -> Array:
    y = namespace_of(x).clip(x, min=-3.0)  # finite, so 0 times y is 0
    y *= _hard_sigmoid(x)
    return y


def _hard_silu_gradient(x: Array, gy: Array) -> Array:
    xp = namespace_of(x)
    slopes = xp.clip(x, min=-3.0, max=3.0)  # finite, so 0 times slopes is 0
    slopes *= 1.0 / 6.0
    slopes *= xp.astype(xp.abs(x) < 3, x.dtype)
    slopes += _hard_sigmoid(x)
    return slopes * gy


class HardSiLUGrad(FunctionNode):
    """gx = gy * (s + x / 6) where |x| < 3, else gy * s: the gradient of ``HardSiLU``.

    x: (s), gy: (s) -> gx: (s).   With h = dL/dgx:   dL/dgy = the same function of h
    dL/dx = h * gy / 3 where |x| < 3, else 0
    """

    input_counts = (2,)
    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        return (in_blocks(_hard_silu_gradient, *inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = None
        if 0 in target_input_indexes:
            gx = where(less(abs(x), 3), h * gy * (1.0 / 3.0), 0)
        return gx, HardSiLUGrad().apply((x, h))[0] if 1 in target_input_indexes else None


def hard_silu(x: Any) -> Variable:
    """x * hard_sigmoid(x), elementwise; the gradient is 0 at -3 and 1 at 3.

    Source: Howard et al., Searching for MobileNetV3, 2019 (there called h-swish).
    """
    return HardSiLU().apply((as_floating("hard_silu", "x", x),))[0]


def glu(x: Any, axis: int = -1) -> Variable:
    """a * sigmoid(b), where a and b are the two halves of x along ``axis``.

    Source: Dauphin et al., Language Modeling with Gated Convolutional Networks, 2017.

    Raises:
        ValueError: the axis does not exist, or the length is odd.
    """
    x = as_floating("glu", "x", x)
    axis = normalize_axis("glu", axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(
            f"glu: x has shape {x.shape}: axis {axis} must have an even length, to be halved."
        )
    a, b = split(x, 2, axis)
    return a * sigmoid(b)

"""Normalisation: batch, layer, group, instance and RMS, all from ``Standardize``."""

from __future__ import annotations

import math
from typing import Any, Never

import numpy

from tinynode.configuration import config, no_backprop_mode
from tinynode.core.conversion import assign
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, mean_array, namespace_of
from tinynode.errors import OperandError, StateError, describe, unknown_keywords
from tinynode.functions.attributes import Axes
from tinynode.functions.checked import checked_axes, checked_flag, checked_float
from tinynode.functions.comparison import clip, maximum
from tinynode.functions.data_types import narrowed, promoted, widened
from tinynode.functions.exponential import sqrt
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_number,
    as_operands,
    first_variable,
)
from tinynode.functions.scaling import are_usual, scale_of, square_range
from tinynode.functions.shapes import broadcast_to, reshape
from tinynode.functions.statistical import mean, sum
from tinynode.type_check import TypeInfoTuple, expect, is_floating

__all__ = [
    "Standardize",
    "StandardizeGrad",
    "batch_norm",
    "fixed_batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
]
__dir__ = __all__.copy  # for completion


class Standardize(FunctionNode):
    """y = (x - m) r over axes, with m = mean x, r = 1 / sqrt(mean (x - m)^2 + eps); and m and r.

    x: (s) -> y: (s), m and r: (s with 1 at the axes). Without ``center`` m is 0.
    With g = dL/dy, means over the axes:   dL/dx = r (g - mean g - y mean(g y)); mean g falls away
    without ``center``
    """

    output_counts = (3,)
    type_hint = "cast x to a floating dtype first."
    wide = True

    def __init__(self, axes: Axes, eps: float, center: bool) -> None:
        self.axes = checked_axes(self, axes)
        self.eps = checked_float(self, "eps", eps)
        self.center = checked_flag(self, "center", center)

    def row_axes(self) -> tuple[int, ...]:
        return self.axes

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(is_floating(in_types[0]))

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_outputs((0, 2))
        may_be_small = self.eps > square_range(x).least  # small squares count beside a small eps
        with numpy.errstate(over="ignore", invalid="ignore"):
            centred, m, square = self._centred(x)
        if 0 in x.shape or are_usual(square, may_be_small):
            r = 1.0 / namespace_of(x).sqrt(square + self.eps)
            centred *= r
            return centred, m, r
        scale = scale_of(x, self.axes, may_be_small)
        centred, m, square = self._centred(x * scale)
        r = 1.0 / namespace_of(x).sqrt(square + self.eps * scale * scale)
        return centred * r, m / scale, r * scale

    def _centred(self, x: Array) -> tuple[Array, Array, Array]:
        """A new array x - m, m and the mean of (x - m)^2; the axes have length 1 in both means."""
        if self.center:
            m = mean_array(x, self.axes, keepdims=True)
            centred = x - m
        else:
            xp = namespace_of(x)
            shape = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape))
            m = xp.zeros(shape, dtype=x.dtype, device=x.device)
            centred = xp.asarray(x, copy=True)
        return centred, m, mean_array(centred * centred, self.axes, keepdims=True)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gy, gm, gr = grad_outputs
        y, r = self.get_retained_outputs()
        n = math.prod(y.shape[axis] for axis in self.axes)
        gx = None
        if gy is not None:
            gx = StandardizeGrad(self.axes, self.center).apply((gy, y, r))[0]
        if gr is not None:  # dr/dx = -r^2 y / n
            share = y * (gr * r * r * (-1.0 / n))
            gx = share if gx is None else gx + share
        if gm is not None and self.center:
            spread = broadcast_to(gm * (1.0 / n), y.shape)
            gx = spread if gx is None else gx + spread
        return (gx,)


class StandardizeGrad(FunctionNode):
    """gx = r (g - mean g - y mean(g y)): the gradient of ``Standardize``.

    g: (s), y: (s), r: (s with 1 at the axes) -> gx: (s). With h = dL/dgx:
    dL/dg = r (h - mean h - y mean(h y))   dL/dy = -r (h mean(g y) + g mean(h y))
    dL/dr = sum of h gx / r; the terms mean g and mean h fall away without ``center``
    """

    input_counts = (3,)
    wide = True

    def __init__(self, axes: Axes, center: bool) -> None:
        self.axes = checked_axes(self, axes)
        self.center = checked_flag(self, "center", center)

    def row_axes(self) -> tuple[int, ...]:
        return self.axes

    def forward(self, inputs: Arrays) -> Arrays:
        g, y, r = inputs
        self.retain_inputs((0, 1, 2))
        gx = y * -mean_array(g * y, self.axes, keepdims=True)
        gx += g
        if self.center:
            gx -= mean_array(g, self.axes, keepdims=True)
        gx *= r
        return (gx,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        g, y, r = self.get_retained_inputs()
        gg = StandardizeGrad(self.axes, self.center).apply((h, y, r))[0]
        with_g = mean(g * y, self.axes, keepdims=True)
        with_h = mean(h * y, self.axes, keepdims=True)
        gy = -(h * with_g + g * with_h) * r
        rest = g - y * with_g
        if self.center:
            rest = rest - mean(g, self.axes, keepdims=True)
        return gg, gy, sum(h * rest, self.axes, keepdims=True)


def _parameter(
    function: str, name: str, value: Any, x: Variable, shape: tuple[int, ...]
) -> Variable:
    """A parameter beside x, floating, with the given shape.

    Raises:
        OperandError: the parameter is not floating.
        ValueError: the parameter has another shape.
    """
    parameter = as_operands(function, value, x, names=(name, "x"))[0]
    as_floating(function, name, parameter)
    if parameter.shape != shape:
        raise ValueError(
            f"{function}: {name} has shape {parameter.shape}; beside x of shape {x.shape} it must "
            f"have {shape}."
        )
    return parameter


def _affine(function: str, y: Variable, gamma: Any, beta: Any, axes: tuple[int, ...]) -> Variable:
    """gamma * y + beta, with parameters for the named axes of y; None leaves a parameter out."""
    lengths = tuple(y.shape[axis] for axis in axes)
    fitted = lengths + (1,) * (y.ndim - 1 - axes[-1])
    if gamma is not None:
        y = y * reshape(_parameter(function, "gamma", gamma, y, lengths), fitted)
    if beta is not None:
        y = y + reshape(_parameter(function, "beta", beta, y, lengths), fitted)
    return y


def _standardize(
    function: str, x: Variable, axes: tuple[int, ...], eps: float, center: bool = True
) -> tuple[Variable, ...]:
    """The outputs of ``Standardize``.

    Raises:
        ValueError: there are no elements to take the mean of.
    """
    if 0 in (x.shape[axis] for axis in axes):
        raise ValueError(
            f"{function}: x has shape {x.shape}: no elements to take the mean of over axes {axes}."
        )
    return Standardize(axes, float(eps), center).apply((x,))


def batch_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    eps: float = 1e-5,
    *,
    running_mean: Variable | None = None,
    running_variance: Variable | None = None,
    momentum: float = 0.1,
    **unknown: Never,
) -> Variable:
    """(x - m) / sqrt(v + eps) * gamma + beta, with mean and variance of the batch.

    Mean m and variance v of each channel are over the batch and all places. The running statistics
    follow, where given:   running <- (1 - momentum) * running + momentum * batch
    The running variance follows the sample variance, divided by (elements of a channel) - 1.

    Args:
        x: (n, channels) or (n, channels, ...), with two elements of each channel or more.
        gamma: the scale, (channels), or None.
        beta: the shift, (channels), or None.
        eps: keeps the root from 0.
        running_mean: a Variable without gradient, (channels), changed in place; or None.
        running_variance: as ``running_mean``, for the variance.
        momentum: the weight of the batch in the running statistics, from 0 to 1.

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    Raises:
        OperandError: x or a parameter is not floating.
        ValueError: x has fewer than two axes, or one element for each channel; a parameter or
            running statistic has the wrong shape, or the momentum is out of range.
        StateError: a running statistic requires a gradient.
    """
    if unknown:
        raise unknown_keywords("batch_norm", unknown)
    x = as_floating("batch_norm", "x", x, first_variable(gamma, beta))
    n = _elements_of_a_channel(x)
    running = running_mean, running_variance
    _check_running(x, running, momentum)
    if running_mean is None and running_variance is None:
        y = _standardize("batch_norm", x, _channel_axes("batch_norm", x), eps)[0]
        return _affine("batch_norm", y, gamma, beta, (1,))
    y, mean, variance = batch_norm_with_statistics(x, gamma, beta, eps)
    if config.recompute_phase != "again":  # the first run has updated both
        with no_backprop_mode():
            sample_variance = maximum(variance, 0.0) * (n / (n - 1))  # rounding may give below 0
            follow_statistic(running_mean, mean, momentum)
            follow_statistic(running_variance, sample_variance, momentum)
    return y


def follow_statistic(running: Variable | None, batch: Variable, momentum: float) -> None:
    """running <- (1 - momentum) * running + momentum * batch, in the dtype of ``running``.

    Computed with Variables, so that a net can record the update.
    """
    if running is not None:
        new = running * (1.0 - momentum) + batch * momentum
        assign(running, new.astype(running.dtype).raw, running.device)


def _elements_of_a_channel(x: Variable) -> int:
    """How many elements a mean is over; raises ValueError if there is one."""
    _channel_axes("batch_norm", x)
    if x.size and x.size == x.shape[1]:
        raise ValueError(
            "batch_norm: x has one value for each channel (shape "
            f"{x.shape}): there is no variance "
            "to divide by. Train on larger batches; to evaluate call eval() on the model first, "
            "or use fixed_batch_norm."
        )
    return x.size // (x.shape[1] or 1)


def _check_running(
    x: Variable, running: tuple[Variable | None, Variable | None], momentum: float
) -> None:
    """Raises unless the running statistics can follow the batch."""
    if not 0.0 <= as_number("batch_norm", "momentum", momentum) <= 1.0:
        raise ValueError(f"batch_norm: momentum must lie in 0 to 1, got {momentum}.")
    for name, statistic in zip(("running_mean", "running_variance"), running, strict=True):
        if statistic is None:
            continue
        if not isinstance(statistic, Variable):
            raise OperandError(
                f"batch_norm: {name} must be a Variable, since it is changed in place; got "
                f"{describe(statistic)}. Make one with tn.Variable(array, requires_grad=False)."
            )
        if statistic.requires_grad:
            raise StateError(
                f"batch_norm: {name} requires a gradient. Make it with requires_grad=False."
            )
        if statistic.shape != x.shape[1:2]:
            raise ValueError(
                f"batch_norm: x has shape {x.shape} and {name} {statistic.shape}, expected "
                f"{x.shape[1:2]}: axis 1 of x has the channels. Give x such channels, or make the "
                "layer for them."
            )


def batch_norm_with_statistics(
    x: Any, gamma: Any, beta: Any, eps: float = 1e-5
) -> tuple[Variable, Variable, Variable]:
    """As ``batch_norm``; also gives the batch's mean and (population) variance, (channels).

    Raises:
        OperandError: x or a parameter is not floating.
        ValueError: x has fewer than two axes, or a parameter has the wrong shape.
    """
    x = as_floating("batch_norm", "x", x, first_variable(gamma, beta))
    axes = _channel_axes("batch_norm", x)
    y, m, r = _standardize("batch_norm", x, axes, eps)
    deviation = 1.0 / reshape(r, -1)  # r * r may overflow in float16
    variance = clip(deviation * deviation - float(eps), 0.0)  # rounding may bring it below 0
    return _affine("batch_norm", y, gamma, beta, (1,)), reshape(m, -1), variance


def _channel_axes(function: str, x: Variable) -> tuple[int, ...]:
    if x.ndim < 2:
        raise ValueError(f"{function}: x must be (n, channels, ...), its shape is {x.shape}.")
    return tuple(i for i in range(x.ndim) if i != 1)


def fixed_batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, eps: float = 1e-5
) -> Variable:
    """(x - mean) / sqrt(variance + eps) * gamma + beta, with statistics from outside.

    Args:
        x: (n, channels) or (n, channels, ...).
        gamma: the scale, (channels), or None.
        beta: the shift, (channels), or None.
        mean: (channels).
        variance: (channels).
        eps: keeps the root from 0.

    Raises:
        OperandError: x or a parameter is not floating.
        ValueError: x has fewer than two axes, or a parameter has the wrong shape.
    """
    name = "fixed_batch_norm"
    x = as_floating(name, "x", x, first_variable(gamma, beta, mean, variance))
    axes = _channel_axes(name, x)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    m = reshape(_parameter(name, "mean", mean, x, x.shape[1:2]), shape)
    v = reshape(_parameter(name, "variance", variance, x, x.shape[1:2]), shape)
    x, m, v = promoted(x, m, v)
    y = (widened(x) - widened(m)) * (1.0 / sqrt(widened(v) + float(eps)))
    return _affine(name, narrowed(y, x), gamma, beta, (1,))


def layer_norm(
    x: Any, gamma: Any, beta: Any = None, eps: float = 1e-5, **unknown: Never
) -> Variable:
    """(x - m) / sqrt(v + eps) * gamma + beta over the trailing axes, the axes of gamma.

    Args:
        x: (..., t), where t is the shape of gamma.
        gamma: the scale; the shape of gamma names the axes.
        beta: the shift, of gamma's shape, or None.
        eps: keeps the root from 0.

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.

    Raises:
        OperandError: x is not floating, or gamma is None.
        ValueError: the trailing axes of x do not have gamma's shape.
    """
    if unknown:
        raise unknown_keywords("layer_norm", unknown)
    x = as_floating("layer_norm", "x", x, first_variable(gamma, beta))
    axes = _trailing_axes("layer_norm", x, gamma)
    y = _standardize("layer_norm", x, axes, eps)[0]
    return _affine("layer_norm", y, gamma, beta, axes)


def _trailing_axes(function: str, x: Variable, gamma: Any) -> tuple[int, ...]:
    shape = as_operands(function, gamma, x, names=("gamma", "x"))[0].shape
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{function}: the trailing axes of x (shape {x.shape}) must have the shape of gamma, "
            f"{shape}."
        )
    return tuple(range(x.ndim - len(shape), x.ndim))


def rms_norm(x: Any, gamma: Any, eps: float = 1e-5) -> Variable:
    """x / sqrt(mean x^2 + eps) * gamma over the trailing axes, the axes of gamma.

    Args:
        x: (..., t), where t is the shape of gamma.
        gamma: the scale; the shape of gamma names the axes.
        eps: keeps the root from 0.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.

    Raises:
        OperandError: x is not floating, or gamma is None.
        ValueError: the trailing axes of x do not have gamma's shape.
    """
    x = as_floating("rms_norm", "x", x, gamma)
    axes = _trailing_axes("rms_norm", x, gamma)
    y = _standardize("rms_norm", x, axes, eps, center=False)[0]
    return _affine("rms_norm", y, gamma, None, axes)


def group_norm(x: Any, groups: int, gamma: Any, beta: Any, eps: float = 1e-5) -> Variable:
    """(x - m) / sqrt(v + eps) * gamma + beta, over groups of channels of each example.

    Args:
        x: (n, channels, ...).
        groups: the number of groups, a divisor of the channels.
        gamma: the scale, (channels), or None.
        beta: the shift, (channels), or None.
        eps: keeps the root from 0.

    Source: Wu and He, Group Normalization, 2018.

    Raises:
        OperandError: x or a parameter is not floating.
        ValueError: x has fewer than two axes, the groups do not divide the channels, or a
            parameter has the wrong shape.
    """
    x = as_floating("group_norm", "x", x, first_variable(gamma, beta))
    _channel_axes("group_norm", x)
    channels = x.shape[1]
    if as_integer("group_norm", "groups", groups) < 1 or channels % groups:
        raise ValueError(
            f"group_norm: groups={groups} does not divide the {channels} channels of x (shape "
            f"{x.shape})."
        )
    return _group_norm("group_norm", x, groups, gamma, beta, eps)


def _group_norm(
    function: str, x: Variable, groups: int, gamma: Any, beta: Any, eps: float
) -> Variable:
    rows = reshape(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    y = reshape(_standardize(function, rows, (2,), eps)[0], x.shape)
    return _affine(function, y, gamma, beta, (1,))


def instance_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Variable:
    """(x - m) / sqrt(v + eps) * gamma + beta, over the places of each channel of each example.

    Args:
        x: (n, channels, ...), with at least an axis of places.
        gamma: the scale, (channels), or None.
        beta: the shift, (channels), or None.
        eps: keeps the root from 0.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.

    Raises:
        OperandError: x or a parameter is not floating.
        ValueError: x has fewer than three axes, or a parameter has the wrong shape.
    """
    x = as_floating("instance_norm", "x", x, first_variable(gamma, beta))
    if x.ndim < 3:
        raise ValueError(f"instance_norm: x must be (n, channels, places), got shape {x.shape}.")
    return _group_norm("instance_norm", x, x.shape[1], gamma, beta, eps)

"""Layers for normalisation. The running statistics of batch normalisation are buffers."""

from __future__ import annotations

import math
from typing import Any

from tinynode import functions
from tinynode.configuration import config
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.devices import Device
from tinynode.functions.operands import as_operand, as_operands
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.initializers import ones, zeros
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module
from tinynode.nn.parameter import Buffer, Parameter, new_parameter


class BatchNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta, with a mean and a variance for each channel.

    In training, m and v are the batch's mean and variance. The running statistics follow:
    running <- (1 - momentum) * running + momentum * batch. The running variance follows the
    sample variance, divided by n - 1. In evaluation, m and v are the running statistics.

    x: (n, channels) or (n, channels, ...) -> y: as x. Parameters ``gamma`` and ``beta``, buffers
    ``running_mean`` and ``running_variance``, all (channels).

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    Args:
        channels: the length of x's second axis, at least 1.
        eps: keeps the root away from 0; at least 0.
        momentum: the weight of the batch in the running statistics, from 0 to 1.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a setting is no integer, or no number.
        ValueError: a setting is out of range; in training, x has a single value per channel.
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        shape = (checked_size("BatchNorm: channels", channels),)
        self.eps = _checked_eps("BatchNorm", eps)
        self.momentum = checked_number("BatchNorm: momentum", momentum, 0.0, 1.0, with_high=True)
        self.gamma = new_parameter("gamma", ones, shape, dtype, device)
        self.beta = new_parameter("beta", zeros, shape, dtype, device)
        self.running_mean = Buffer(zeros(shape, dtype=dtype, device=device), device=device)
        self.running_variance = Buffer(ones(shape, dtype=dtype, device=device), device=device)

    def forward(self, x: Any) -> Variable:
        """x normalised by the batch's statistics in training, by the running statistics else.

        Raises:
            ValueError: in training, x has a single value per channel, so no variance.
        """
        x = _beside("BatchNorm", x, self.gamma)
        mean, variance = self.running_mean, self.running_variance
        if not (self.training and config.train):
            return functions.fixed_batch_norm(x, self.gamma, self.beta, mean, variance, self.eps)
        parameters = self.gamma, self.beta, self.eps
        return functions.batch_norm(
            x, *parameters, running_mean=mean, running_variance=variance, momentum=self.momentum
        )

    def extra_repr(self) -> str:
        """The channels, eps and the momentum."""
        return f"{self.gamma.size}, eps={self.eps}, momentum={self.momentum}"


class _TrailingNorm(Module):
    """Base of the layers that normalise over the trailing axes of x."""

    def __init__(
        self,
        shape: int | tuple[int, ...],
        eps: float = 1e-5,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        layer = type(self).__name__
        lengths = shape if isinstance(shape, tuple | list) else (shape,)
        if not lengths:
            raise ValueError(f"{layer}: shape must name one axis or more, got {shape!r}.")
        axes = tuple(checked_size(f"{layer}: shape", n) for n in lengths)
        self.eps = _checked_eps(layer, eps)
        self.gamma = new_parameter("gamma", ones, axes, dtype, device)

    def extra_repr(self) -> str:
        """The shape and eps."""
        return f"{self.gamma.shape}, eps={self.eps}"


class LayerNorm(_TrailingNorm):
    """y = (x - m) / sqrt(v + eps) * gamma + beta over the trailing axes of x.

    x: (..., shape) -> y: as x. Parameters ``gamma`` and ``beta``: (shape).

        >>> nn.LayerNorm(2)(np.array([[1.0, 3.0]])).detach().numpy().round(2).tolist()
        [[-1.0, 1.0]]

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.

    Args:
        shape: the lengths of the trailing axes; an integer for the last axis alone.
        eps: keeps the root away from 0; at least 0.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a length is no integer, or eps no number.
        ValueError: a length is less than 1, or eps less than 0.
    """

    def __init__(
        self,
        shape: int | tuple[int, ...],
        eps: float = 1e-5,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        super().__init__(shape, eps, dtype=dtype, device=device)
        self.beta = new_parameter("beta", zeros, self.gamma.shape, dtype, device)

    def forward(self, x: Any) -> Variable:
        """layer_norm(x, gamma, beta, eps)."""
        x = _beside("LayerNorm", x, self.gamma)
        return functions.layer_norm(x, self.gamma, self.beta, self.eps)


class RMSNorm(_TrailingNorm):
    """y = x / sqrt(mean x^2 + eps) * gamma over the trailing axes of x.

    x: (..., shape) -> y: as x. Parameter ``gamma``: (shape).

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.

    Args:
        shape: the lengths of the trailing axes; an integer for the last axis alone.
        eps: keeps the root away from 0; at least 0.
        dtype: the parameter's dtype; ``config.dtype`` by default.
        device: the device of the parameter; the current device by default.

    Raises:
        TypeError: a length is no integer, or eps no number.
        ValueError: a length is less than 1, or eps less than 0.
    """

    def forward(self, x: Any) -> Variable:
        """rms_norm(x, gamma, eps)."""
        x = _beside("RMSNorm", x, self.gamma)
        return functions.rms_norm(x, self.gamma, self.eps)


class GroupNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta over groups of channels of each example.

    x: (n, channels, ...) -> y: as x. Parameters ``gamma`` and ``beta``: (channels). A group per
    channel is instance normalisation.

    Source: Wu and He, Group Normalization, 2018.

    Args:
        groups: the number of groups, a divisor of the channels.
        channels: the length of x's second axis, at least 1.
        eps: keeps the root away from 0; at least 0.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a number is no integer, or eps no number.
        ValueError: a number is out of range, or the groups do not divide the channels.
    """

    def __init__(
        self,
        groups: int,
        channels: int,
        eps: float = 1e-5,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self.groups = checked_size("GroupNorm: groups", groups)
        channels = checked_size("GroupNorm: channels", channels)
        if channels % self.groups:
            raise ValueError(f"GroupNorm: groups={groups} must divide channels={channels}.")
        self.eps = _checked_eps("GroupNorm", eps)
        self.gamma = new_parameter("gamma", ones, (channels,), dtype, device)
        self.beta = new_parameter("beta", zeros, (channels,), dtype, device)

    def forward(self, x: Any) -> Variable:
        """group_norm(x, groups, gamma, beta, eps)."""
        x = _beside("GroupNorm", x, self.gamma)
        return functions.group_norm(x, self.groups, self.gamma, self.beta, self.eps)

    def extra_repr(self) -> str:
        """The groups, the channels and eps."""
        return f"{self.groups}, {self.gamma.size}, eps={self.eps}"


class InstanceNorm(Module):
    """y = (x - m) / sqrt(v + eps) over the places of each channel of each example.

    x: (n, channels, ...) -> y: as x. With ``affine=True``, y * gamma + beta, with the parameters
    ``gamma`` and ``beta``: (channels). By default both are None, as in PyTorch. There are no
    running statistics: training and evaluation are equal.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.

    Args:
        channels: the length of x's second axis, at least 1.
        eps: keeps the root away from 0; at least 0.
        affine: True for gamma and beta.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a number is no integer, or eps no number.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        affine: bool = False,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self.channels = checked_size("InstanceNorm: channels", channels)
        self.eps = _checked_eps("InstanceNorm", eps)
        self.gamma: Parameter | None = None
        self.beta: Parameter | None = None
        if as_flag("InstanceNorm", "affine", affine):
            shape = (self.channels,)
            self.gamma = new_parameter("gamma", ones, shape, dtype, device)
            self.beta = new_parameter("beta", zeros, shape, dtype, device)

    def forward(self, x: Any) -> Variable:
        """instance_norm(x, gamma, beta, eps).

        Raises:
            ValueError: x has another number of channels.
        """
        x = as_operand("InstanceNorm", "x", x, self.gamma)
        if self.gamma is not None:
            x = _beside("InstanceNorm", x, self.gamma)
        if x.ndim < 3 or x.shape[1] != self.channels:
            raise ValueError(
                f"InstanceNorm: x must be (n, channels, places) with channels={self.channels}, "
                f"got shape {x.shape}."
            )
        return functions.instance_norm(x, self.gamma, self.beta, self.eps)

    def extra_repr(self) -> str:
        """The channels and eps."""
        affine = ", affine=True" if self.gamma is not None else ""
        return f"{self.channels}, eps={self.eps}{affine}"


def _beside(layer: str, x: Any, gamma: Parameter) -> Variable:
    """x as a Variable of the parameters' dtype: see ``tinynode.nn.inputs``."""
    return as_operands(layer, as_input(x, gamma), gamma, names=("x", "gamma"))[0]


def _checked_eps(layer: str, eps: Any) -> float:
    return checked_number(f"{layer}: eps", eps, 0.0, math.inf)

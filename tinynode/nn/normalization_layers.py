"""Layers that normalise; the running statistics of batch normalisation live here, as buffers."""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.backend import Device
from tinynode.configuration import config
from tinynode.functions.normalization import batch_norm_with_statistics
from tinynode.nn.initializers import ones, zeros
from tinynode.nn.module import Module
from tinynode.nn.parameter import Buffer, Parameter, assign
from tinynode.variable import Variable


class BatchNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta, with a mean and a variance for each channel.

    In training m and v are those of the batch, and the running ones follow them:
    running <- (1 - momentum) * running + momentum * batch, the batch's variance being the sample's
    (divided by n - 1). In evaluation m and v are the running ones.

    x: (n, channels) or (n, channels, ...) -> y: as x. Parameters ``gamma`` and ``beta``, buffers
    ``running_mean`` and ``running_variance``, all (channels).

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    Args:
        channels: the length of x's second axis.
        eps: keeps the root from 0.
        momentum: how much of the batch enters the running statistics.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.
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
        shape = (channels,)
        self.eps = eps
        self.momentum = momentum
        self.gamma = Parameter(ones(shape, dtype=dtype, device=device), name="gamma")
        self.beta = Parameter(zeros(shape, dtype=dtype, device=device), name="beta")
        self.running_mean = Buffer(zeros(shape, dtype=dtype, device=device))
        self.running_variance = Buffer(ones(shape, dtype=dtype, device=device))

    def forward(self, x: Any) -> Variable:
        """x normalised, by the batch's statistics in training, else by the running ones."""
        if not (self.training and config.train):
            statistics = self.running_mean, self.running_variance
            return functions.fixed_batch_norm(x, self.gamma, self.beta, *statistics, self.eps)
        y, mean, variance = batch_norm_with_statistics(x, self.gamma, self.beta, self.eps)
        if not config.in_recomputing:  # the first run of a forgotten part has done it
            n = y.size // self.gamma.size
            self._follow(self.running_mean, mean, 1.0)
            self._follow(self.running_variance, variance, n / (n - 1) if n > 1 else 1.0)
        return y

    def _follow(self, running: Buffer, batch: Variable, factor: float) -> None:
        """running <- (1 - momentum) * running + momentum * factor * batch."""
        step = batch.array * (self.momentum * factor)
        array = running.array * (1.0 - self.momentum) + step
        assign(running, running.device.lift(array), running.device)

    def __repr__(self) -> str:
        return f"BatchNorm({self.gamma.size}, eps={self.eps}, momentum={self.momentum})"


class LayerNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta over the trailing axes of x.

    x: (..., shape) -> y: as x. Parameters ``gamma`` and ``beta``: (shape).

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.

    Args:
        shape: the trailing axes; an integer for the last alone.
        eps: keeps the root from 0.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.
    """

    def __init__(
        self,
        shape: int | tuple[int, ...],
        eps: float = 1e-5,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        axes = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps = eps
        self.gamma = Parameter(ones(axes, dtype=dtype, device=device), name="gamma")
        self.beta = Parameter(zeros(axes, dtype=dtype, device=device), name="beta")

    def forward(self, x: Any) -> Variable:
        """layer_norm(x, gamma, beta, eps)."""
        return functions.layer_norm(x, self.gamma, self.beta, self.eps)

    def __repr__(self) -> str:
        return f"LayerNorm({self.gamma.shape}, eps={self.eps})"


class RMSNorm(Module):
    """y = x / sqrt(mean x^2 + eps) * gamma over the trailing axes of x.

    x: (..., shape) -> y: as x. Parameter ``gamma``: (shape).

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.

    Args:
        shape: the trailing axes; an integer for the last alone.
        eps: keeps the root from 0.
        dtype: the parameter's dtype; ``config.dtype`` by default.
        device: where the parameter stands; the current device by default.
    """

    def __init__(
        self,
        shape: int | tuple[int, ...],
        eps: float = 1e-5,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        axes = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps = eps
        self.gamma = Parameter(ones(axes, dtype=dtype, device=device), name="gamma")

    def forward(self, x: Any) -> Variable:
        """rms_norm(x, gamma, eps)."""
        return functions.rms_norm(x, self.gamma, self.eps)

    def __repr__(self) -> str:
        return f"RMSNorm({self.gamma.shape}, eps={self.eps})"


class GroupNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta over groups of channels of each example.

    x: (n, channels, ...) -> y: as x. Parameters ``gamma`` and ``beta``: (channels). One group for
    each channel is instance normalisation.

    Source: Wu and He, Group Normalization, 2018.

    Args:
        groups: how many; it divides the channels.
        channels: the length of x's second axis.
        eps: keeps the root from 0.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.

    Raises:
        ValueError: the groups do not divide the channels.
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
        if groups < 1 or channels % groups:
            raise ValueError(f"GroupNorm: groups={groups} must divide channels={channels}.")
        self.groups = groups
        self.eps = eps
        self.gamma = Parameter(ones((channels,), dtype=dtype, device=device), name="gamma")
        self.beta = Parameter(zeros((channels,), dtype=dtype, device=device), name="beta")

    def forward(self, x: Any) -> Variable:
        """group_norm(x, groups, gamma, beta, eps)."""
        return functions.group_norm(x, self.groups, self.gamma, self.beta, self.eps)

    def __repr__(self) -> str:
        return f"GroupNorm({self.groups}, {self.gamma.size}, eps={self.eps})"

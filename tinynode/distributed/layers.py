"""SyncBatchNorm: batch normalisation with the statistics of the batches of all ranks.

Requirement: several ranks with parts of a batch give the numbers of a single rank with the whole
batch. The statistics of a part differ from the statistics of the batch. So the ranks add up their
sums, and each rank normalises with the common mean and variance.

    N = sum_r n_r          m = sum_r (sum of x_r) / N          v = sum_r (sum of (x_r - m)^2) / N

The sums are differentiable collectives, so the gradients of every order are right.

Source: Ioffe and Szegedy, Batch Normalization, 2015; C. Peng et al., MegDet, 2018, section 3.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode import functions
from tinynode.configuration import config, no_backprop_mode
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Device
from tinynode.distributed.communicator import Communicator, world
from tinynode.distributed.functions import allreduce
from tinynode.errors import StateError, describe, dtype_name
from tinynode.functions.normalization import follow_statistic
from tinynode.functions.operands import as_operands
from tinynode.net.compile import CompiledFunction
from tinynode.net.making import is_making_net
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module, Wrapper
from tinynode.nn.normalization_layers import BatchNorm


class SyncBatchNorm(BatchNorm):
    """Batch normalisation whose mean and variance are over the examples of all ranks.

    y = (x - m) / sqrt(v + eps) * gamma + beta. In training, m and v are the mean and the variance
    of the parts of all ranks together. The parts may have different numbers of examples, also 0.
    The running statistics follow as in BatchNorm, and are equal on all ranks. In evaluation,
    nothing is sent.

    x: (n, channels) or (n, channels, ...) on each rank -> y: as x.

    The loss of the program is the sum of the losses of the ranks. So divide the loss of a rank by
    the number of examples of all ranks, and use ``DistributedOptimizer(..., operation="sum")``.

    Source: Ioffe and Szegedy, Batch Normalization, 2015; C. Peng et al., MegDet, 2018.

    Args:
        channels: the length of x's second axis, at least 1.
        eps: keeps the root away from 0; at least 0.
        momentum: the weight of the batch in the running statistics, from 0 to 1.
        communicator: by default the communicator of all ranks, asked at the first use.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a setting is no integer, or no number.
        ValueError: a setting is out of range; in training, all ranks together have a single value
            per channel. A compiled function on several ranks gives NaN then.
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        communicator: Communicator | None = None,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        super().__init__(channels, eps, momentum, dtype=dtype, device=device)
        self.communicator = communicator

    def forward(self, x: Any) -> Variable:
        """x normalised by the statistics of all ranks in training, by the running ones else.

        Raises:
            ValueError: in training, x has fewer than two axes, other channels, or all ranks
                together have a single value per channel.
        """
        if not (self.training and config.train):
            return super().forward(x)
        names = "x", "gamma"
        x = as_operands("SyncBatchNorm", as_input(x, self.gamma), self.gamma, names=names)[0]
        if x.ndim < 2 or x.shape[1] != self.gamma.size:
            raise ValueError(
                f"SyncBatchNorm: x must be (n, channels, ...) with channels={self.gamma.size}, "
                f"got shape {x.shape}."
            )
        dtype = x.dtype
        x, gamma, beta = [_widened(one) for one in (x, self.gamma, self.beta)]
        mean, variance, count = self._statistics(x)
        y = functions.fixed_batch_norm(x, gamma, beta, mean, variance, self.eps)
        if config.recompute_phase != "again":  # the first run has updated both
            with no_backprop_mode():
                follow_statistic(self.running_mean, mean, self.momentum)
                sample = variance * (count / (count - 1.0))
                follow_statistic(self.running_variance, sample, self.momentum)
        return y if y.dtype == dtype else y.astype(dtype)

    def _statistics(self, x: Variable) -> tuple[Variable, Variable, Variable]:
        """Mean (channels), variance (channels) and count (1) of the examples of all ranks.

        The sums and the count share a message.
        """
        comm = self.communicator or world()
        axes = tuple(i for i in range(x.ndim) if i != 1)
        n = math.prod(x.shape[axis] for axis in axes)
        host = numpy.asarray([n], dtype_name(x.dtype))
        own = wrap_array(x.device.from_host(host), x.device, False)
        sums = allreduce(functions.concat([functions.sum(x, axes), own]), comm)
        count = sums[-1:].detach()
        if n < 2 and (comm.size == 1 or not is_making_net()):
            _check_count(n if comm.size == 1 else int(count), x.shape)
        count = functions.where(count < 2.0, math.nan, count)  # for nets, without a check
        mean = sums[:-1] / count
        centred = x - functions.reshape(mean, (1, -1) + (1,) * (x.ndim - 2))
        return mean, allreduce(functions.sum(centred * centred, axes), comm) / count, count


def convert_batch_norm(model: Any, communicator: Communicator | None = None) -> Any:
    """Replace each BatchNorm of a model by a SyncBatchNorm with the same parameters and buffers.

        model = distributed.convert_batch_norm(nn.Sequential(...))

    The layers inside the model are replaced in place, so an optimizer of the model stays right. A
    layer that stands at several places stays one layer. Names in a state do not change.

    Args:
        model: a Module, or a list or dict of Modules. Compile the model afterwards: a compiled
            function keeps the layers of its first call.
        communicator: the communicator of the new layers; by default that of all ranks.

    Returns:
        The model. If ``model`` itself is a BatchNorm, the new layer.

    Raises:
        TypeError: the model is no Module, or a subclass of BatchNorm has a ``forward`` of its own.
        StateError: a compiled layer of the model has run already.
    """
    if not isinstance(model, Module | Wrapper | list | dict):
        raise TypeError(
            f"convert_batch_norm: model must be a Module, or a list or dict of Modules, got "
            f"{describe(model)}."
        )
    return _Conversion(communicator).of(model)


class _Conversion:
    """Replaces layers in a tree.

    Attributes:
        done: each object with its replacement, by identity. The object is kept, so that no other
            object gets its identity.
    """

    def __init__(self, communicator: Communicator | None) -> None:
        self.communicator = communicator
        self.done: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """The replacement of a value, or the value."""
        if id(value) in self.done:
            return self.done[id(value)][1]
        self.done[id(value)] = value, value
        if isinstance(value, BatchNorm) and not isinstance(value, SyncBatchNorm):
            self.done[id(value)] = value, _converted(value, self.communicator)
        elif isinstance(value, tuple):
            self.done[id(value)] = value, self._of_tuple(value)
        elif isinstance(value, Module):
            self._inside(vars(value))
        elif isinstance(value, Wrapper):
            self._of_wrapper(value)
        elif isinstance(value, dict):
            self._inside(value)
        elif isinstance(value, list):
            value[:] = [self.of(one) for one in value]
        return self.done[id(value)][1]

    def _inside(self, members: dict[Any, Any]) -> None:
        for key, member in list(members.items()):
            new = self.of(member)
            if new is not member:
                members[key] = new

    def _of_tuple(self, value: tuple[Any, ...]) -> Any:
        new = [self.of(one) for one in value]
        if all(a is b for a, b in zip(new, value, strict=True)):
            return value
        return type(value)(*new) if hasattr(value, "_fields") else tuple(new)

    def _of_wrapper(self, wrapper: Wrapper) -> None:
        if isinstance(wrapper, CompiledFunction) and wrapper.recordings:
            raise StateError(
                f"convert_batch_norm: the compiled {wrapper.title} has run already, with the old "
                "layers. Convert the model before its first call."
            )
        wrapper.function = self.of(wrapper.function)


def _converted(layer: BatchNorm, communicator: Communicator | None) -> SyncBatchNorm:
    """A SyncBatchNorm with the attributes of a BatchNorm."""
    if type(layer).forward is not BatchNorm.forward:
        raise TypeError(
            f"convert_batch_norm: {type(layer).__name__} has a forward of its own, and a "
            "SyncBatchNorm would leave it out. Derive the class from SyncBatchNorm."
        )
    new = SyncBatchNorm.__new__(SyncBatchNorm)
    vars(new).update(vars(layer))
    new.communicator = communicator
    return new


def _widened(x: Variable) -> Variable:
    """x; float32 for float16, as the sum of the squares is infinite in float16."""
    is_half = dtype_name(x.dtype) == "float16"
    return functions.astype(x, x.xp.float32) if is_half else x


def _check_count(count: int, shape: tuple[int, ...]) -> None:
    """Raises on all ranks: each of them has fewer than two values, and knows the count."""
    if count < 2:
        raise ValueError(
            f"SyncBatchNorm: all ranks together have {count} values for each channel (shape "
            f"{shape} here): there is no variance to divide by. Train on larger batches; to "
            "evaluate call eval() on the model first."
        )

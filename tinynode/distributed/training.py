"""Data parallel training: each rank has a part of each batch, and all have the same parameters.

Requirement: a run on several ranks gives the numbers of a run on a single rank with the whole
batch. So gradients are averaged with the numbers of examples as weights. Then every rank does the
same update.

    model = nn.Sequential(...)
    broadcast_parameters(model)
    optimizer = DistributedOptimizer(nn.Adam(model))
    data = scatter_dataset(dataset, seed=0)
    ...
    loss.backward()
    optimizer.update(weight=len(batch))

Source: P. Goyal et al., Accurate, Large Minibatch SGD, 2017, section 3: the average over workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from tinynode.core.conversion import assign
from tinynode.core.variable import Variable
from tinynode.devices import to_host
from tinynode.distributed.communicator import Communicator, Pending, world
from tinynode.errors import OperandError, describe
from tinynode.nn.data import Subset
from tinynode.nn.optimizers import Optimizer

BUCKET_BYTES = 4 * 2**20
"""The bytes of gradients in a message."""


class DistributedOptimizer:
    """An optimizer that averages the gradients of all ranks before each update.

    Args:
        optimizer: the optimizer of the rank. All ranks have the same parameters in equal order.
        communicator: by default the communicator of all ranks.
        bucket_bytes: the bytes of gradients in a message.

    A gradient that is NaN or infinite on a rank is so on all ranks. A parameter without a
    gradient on this rank counts as zeros, if another rank has a gradient.

    Raises:
        OperandError: ``optimizer`` is no Optimizer.
        ValueError: ``bucket_bytes`` is not positive.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        communicator: Communicator | None = None,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise OperandError(
                f"DistributedOptimizer: optimizer must be an optimizer of tinynode.nn, got "
                f"{describe(optimizer)}."
            )
        if bucket_bytes < 1:
            raise ValueError(
                f"DistributedOptimizer: bucket_bytes must be positive, got {bucket_bytes}."
            )
        self.optimizer = optimizer
        self.communicator = communicator or world()
        self.bucket_bytes = bucket_bytes

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self.optimizer!r}, {self.communicator!r})"

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self.optimizer.lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self.optimizer.lr = lr

    def update(self, closure: Callable[[], Any] | None = None, *, weight: float = 1.0) -> Any:
        """Average the gradients, and change every parameter; the same on each rank.

        Args:
            closure: called first, if given: clears gradients, computes the loss, calls backward.
            weight: the number of examples of this rank, if the loss is a mean over the examples.

        Returns:
            The result of the closure, or None.

        Raises:
            ValueError: the weight is negative, or all weights are 0.
            GraphError: no rank has a gradient of a parameter.
        """
        result = None if closure is None else closure()
        self.average_gradients(weight)
        self.optimizer.update()
        return result

    def average_gradients(self, weight: float = 1.0) -> None:
        """grad = sum_r weight_r grad_r / sum_r weight_r, for each parameter, on every rank.

        Raises:
            ValueError: the weight is negative, or all weights are 0.
        """
        if not 0.0 <= weight < math.inf:
            raise ValueError(
                f"DistributedOptimizer: weight must be a number of examples, got {weight!r}."
            )
        parameters = [slot.parameter for slot in self.optimizer.slots]
        has_gradient = [p.grad is not None and weight > 0 for p in parameters]
        told = numpy.asarray([weight, *has_gradient], dtype=numpy.float64)
        total, *counts = self.communicator.start_allreduce(told).wait().tolist()
        if total == 0:
            raise ValueError("DistributedOptimizer: the weights of all ranks are 0.")
        used = [p for p, count in zip(parameters, counts, strict=True) if count > 0]
        self._exchange(used, weight / total)

    def _exchange(self, parameters: Sequence[Variable], share: float) -> None:
        """Send all buckets, then wait for each and write the gradients."""
        sent = [(bucket, self._start(bucket, share)) for bucket in self._buckets(parameters)]
        for bucket, pending in sent:
            flat, start = pending.wait(), 0
            for p in bucket:
                part = flat[start : start + p.size].reshape(p.shape)
                start += p.size
                host = numpy.asarray(part, dtype=to_host(p.raw).dtype)
                p.grad = p.device.from_host(host.copy())

    def _buckets(self, parameters: Sequence[Variable]) -> list[list[Variable]]:
        """The parameters in groups of a common dtype, each of at most ``bucket_bytes`` bytes."""
        buckets: list[list[Variable]] = []
        room, dtype = 0, None
        for p in parameters:
            host = to_host(p.raw)
            if host.dtype != dtype or host.nbytes > room:
                buckets.append([])
                room, dtype = self.bucket_bytes, host.dtype
            buckets[-1].append(p)
            room -= host.nbytes
        return buckets

    def _start(self, bucket: Sequence[Variable], share: float) -> Pending:
        """Send the weighted gradients of a bucket, as one array."""
        parts = []
        for p in bucket:
            gradient = numpy.zeros(p.shape) if p.grad is None or not share else to_host(p.grad)
            wide = to_host(p.raw).dtype
            parts.append(numpy.asarray(gradient, dtype=wide).reshape(-1) * wide.type(share))
        return self.communicator.start_allreduce(numpy.concatenate(parts))

    def cleargrads(self) -> None:
        """Set every parameter's gradient to None; needed before each backward."""
        self.optimizer.cleargrads()

    zero_grad = cleargrads

    def state_dict(self) -> Any:
        """The state of the optimizer, the same on each rank."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, also after a change of the number of ranks."""
        self.optimizer.load_state_dict(state)


def broadcast_parameters(
    model: Any, root: int = 0, communicator: Communicator | None = None
) -> None:
    """Give each rank the parameters and buffers of the rank ``root``.

    Raises:
        ValueError: there is no such rank.
    """
    comm = communicator or world()
    buffers = [buffer for _, buffer in model.named_buffers()]
    for x in (*model.parameters(), *buffers):
        assign(x, comm.broadcast(x.raw, root), x.device)


def scatter_dataset(
    dataset: Any, seed: int | None = None, communicator: Communicator | None = None
) -> Subset:
    """The part of a dataset for this rank: each example belongs to a single rank.

    Args:
        dataset: has ``len`` and an item for each index; the same on each rank.
        seed: shuffles the examples before; the same order on each rank. None keeps the order.
        communicator: by default the communicator of all ranks.

    Returns:
        A Subset. The lengths of the ranks differ by at most an example.
    """
    comm = communicator or world()
    order = numpy.arange(len(dataset))
    if seed is not None:
        order = numpy.random.default_rng(seed).permutation(order)
    return Subset(dataset, order[comm.rank :: comm.size])


def all_metrics(
    metrics: Mapping[str, float], weight: float = 1.0, communicator: Communicator | None = None
) -> dict[str, float]:
    """Means over all ranks: sum_r weight_r metric_r / sum_r weight_r, for each name.

    Args:
        metrics: numbers by name, the same names on each rank.
        weight: the number of examples of this rank.
        communicator: by default the communicator of all ranks.

    Raises:
        ValueError: the names of two ranks differ, or all weights are 0.
    """
    comm = communicator or world()
    every = comm.allgather_objects((dict(metrics), float(weight)))
    names = [sorted(given) for given, _ in every]
    if any(one != names[0] for one in names):
        raise ValueError(f"all_metrics: the names differ between the ranks: {names}.")
    total = math.fsum(w for _, w in every)
    if total == 0:
        raise ValueError("all_metrics: the weights of all ranks are 0.")
    return {name: math.fsum(w * given[name] for given, w in every) / total for name in metrics}

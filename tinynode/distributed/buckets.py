"""Buckets: the gradients of several parameters, as a single message.

Requirement: many small messages cost more than a large message. So parameters share messages. A
message also has the weight of the rank, and for each parameter whether the rank has a gradient. So
no further message is needed.

    message = w g_0, w g_1, ..., w, has_0, has_1, ...          summed over the ranks
    gradient of parameter i = sum_r w_r g_ir / sum_r w_r       for the operation "mean"
                            = sum_r g_ir                       for the operation "sum"
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.core.variable import Variable
from tinynode.devices import to_host
from tinynode.distributed.communicator import Communicator
from tinynode.distributed.transport import Pending


class Bucket:
    """Parameters of a common dtype, whose gradients travel together.

    Args:
        parameters: the parameters.
        dtype: the dtype of the message: that of the parameters, and float32 for float16.
    """

    def __init__(self, parameters: Sequence[Variable], dtype: Any) -> None:
        self.parameters = list(parameters)
        self.dtype = dtype
        self.forms = [(p.shape, p.dtype) for p in self.parameters]
        ends = list(itertools.accumulate(p.size for p in self.parameters))
        self.parts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        self.count = ends[-1]
        # memory for all messages: the next message leaves after the wait for this message
        self._message = numpy.empty(self.count + 1 + len(self.parameters), dtype)

    @property
    def bytes(self) -> int:
        """The bytes of the message."""
        return int((self.count + 1 + len(self.parameters)) * self.dtype.itemsize)

    def fits(self) -> bool:
        """True if the parameters have the shapes and dtypes of the constructor's call."""
        return self.forms == [(p.shape, p.dtype) for p in self.parameters]

    def start(
        self, communicator: Communicator, gradients: Sequence[Any], weight: float, is_mean: bool
    ) -> Pending:
        """Send the message.

        Args:
            communicator: the ranks.
            gradients: an array for each parameter, or None.
            weight: the weight of this rank; for the weight 0 all gradients count as zeros.
            is_mean: True for the operation ``mean``.
        """
        message = self._message
        message[self.count] = weight
        for i, (place, gradient) in enumerate(zip(self.parts, gradients, strict=True)):
            has = gradient is not None and weight > 0
            message[self.count + 1 + i] = has
            if not has:
                message[place] = 0
            elif is_mean and weight != 1:
                host = to_host(gradient).reshape(-1)
                part = message[place]
                numpy.multiply(host, weight, out=part, dtype=self.dtype, casting="same_kind")
            else:
                message[place] = to_host(gradient).reshape(-1)
        return communicator.start_allreduce(message)

    def finish(self, message: Any, is_mean: bool) -> list[Any]:
        """The gradient of each parameter from the summed message; None if no rank has a gradient.

        Raises:
            ValueError: the weights of all ranks are 0.
        """
        total = float(message[self.count].real)
        if total == 0:
            raise ValueError("DistributedOptimizer: the weights of all ranks are 0.")
        if is_mean and total != 1:
            message[: self.count] /= self.dtype.type(total)
        found: list[Any] = []
        has = message[self.count + 1 :].real > 0
        for i, p in enumerate(self.parameters):
            if not has[i]:
                found.append(None)
                continue
            part = message[self.parts[i]].reshape(self.forms[i][0])
            own = to_host(p.raw).dtype
            found.append(p.device.from_host(part if part.dtype == own else part.astype(own)))
        return found


def buckets_of(parameters: Sequence[Variable], most: int) -> list[Bucket]:
    """The parameters in buckets of at most ``most`` bytes, but of at least a parameter.

    The last parameters come first: a backward pass reaches the last layer first.
    """
    buckets: list[Bucket] = []
    group: list[Variable] = []
    room, dtype = 0, None
    for p in reversed(parameters):
        own = numpy.dtype(to_host(p.raw).dtype)
        wide = numpy.dtype(numpy.float32) if own == numpy.float16 else own
        size = p.size * wide.itemsize
        if group and (wide != dtype or size > room):
            buckets.append(Bucket(group, dtype))
            group = []
        if not group:
            room, dtype = most, wide
        group.append(p)
        room -= size
    if group:
        buckets.append(Bucket(group, dtype))
    return buckets

"""Differentiable collectives: the backward of each is the adjoint collective.

The loss is the sum of the losses of all ranks. Then the adjoint of "every rank gets the sum" is
"every rank gets the sum of the gradients".

| function | backward |
|---|---|
| ``allreduce`` | ``allreduce`` |
| ``allgather`` | the sum over all ranks of the part of this rank |
| ``broadcast`` | the sum over all ranks, on the root |
| ``send`` | ``receive`` |
| ``receive`` | ``send`` |

Each rank has to run the same collectives in the same order, also in backward. A backward pass runs
functions by rank in the graph, so equal graphs give equal orders.

Source: W. Gropp et al., Using MPI, 2014, for the collectives.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, Device, get_device, namespace_of
from tinynode.distributed.communicator import Communicator, checked_communicator
from tinynode.errors import TraceError
from tinynode.functions.data_types import astype
from tinynode.functions.operands import as_operand
from tinynode.net.making import is_making_net

__all__ = [
    "allgather",
    "allreduce",
    "broadcast",
    "receive",
    "send",
]
__dir__ = __all__.copy  # for completion


def stand_in(x: Array) -> Array:
    """A copy of x, in place of the result while a net is recorded.

    A recording is no run. The other ranks may not record at this time, and would not answer.
    """
    return namespace_of(x).asarray(x, copy=True)


def refuse_in_net(name: str) -> None:
    """Refuse a message between two ranks in a compiled function.

    Raises:
        TraceError: a net is recorded.
    """
    if is_making_net():
        raise TraceError(
            f"{name}: a net has fixed shapes, and a message has not. Compile the functions before "
            f"and after {name}, and call {name} between them."
        )


class Collective(FunctionNode):
    """Base of the functions between ranks."""

    is_collective = True

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def _sum(self, x: Array) -> Array:
        """The sum of x over all ranks; a copy of x while a net is recorded."""
        return stand_in(x) if is_making_net() else self.communicator.allreduce(x)


class AllReduce(Collective):
    """y = the sum of x over all ranks.   x: (s) -> y: (s).   dL/dx = the sum of dL/dy."""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (self._sum(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        return AllReduce(self.communicator).apply(grad_outputs)


class AllGather(Collective):
    """y_r = x of rank r.   x: (s) -> y: (size, s).

    dL/dx = the sum over all ranks of dL/dy_rank
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        is_run = not is_making_net()
        every = self.communicator.allgather(x) if is_run else [x] * self.communicator.size
        return (namespace_of(x).stack(list(every), axis=0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        return OwnPart(self.communicator).apply(grad_outputs)


class OwnPart(Collective):
    """y = the sum over all ranks of x_rank: the gradient of ``AllGather``.

    x: (size, s) -> y: (s).   dL/dx = AllGather(dL/dy)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        total = self._sum(x)
        return (total[self.communicator.rank, ...],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        return AllGather(self.communicator).apply(grad_outputs)


class Broadcast(Collective):
    """y = x of the root, on every rank.   x: (s) -> y: (s).   dL/dx = SumAtRoot(dL/dy)."""

    def __init__(self, communicator: Communicator, root: int) -> None:
        super().__init__(communicator)
        self.root = root

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (stand_in(x) if is_making_net() else self.communicator.broadcast(x, self.root),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        return SumAtRoot(self.communicator, self.root).apply(grad_outputs)


class SumAtRoot(Collective):
    """y = the sum of x over all ranks at the root, 0 elsewhere: the gradient of ``Broadcast``.

    x: (s) -> y: (s).   dL/dx = Broadcast(dL/dy)
    """

    def __init__(self, communicator: Communicator, root: int) -> None:
        super().__init__(communicator)
        self.root = root

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        total = self._sum(x)
        if self.communicator.rank == self.root:
            return (total,)
        return (namespace_of(total).zeros_like(total),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        return Broadcast(self.communicator, self.root).apply(grad_outputs)


class Send(Collective):
    """Give x to another rank.   x: (s) -> token: (), 0.   dL/dx = Receive(dL/dtoken)."""

    def __init__(self, communicator: Communicator, to: int, tag: Any) -> None:
        super().__init__(communicator)
        self.to = to
        self.tag = tag

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        refuse_in_net("send")
        self._number = self.communicator.send(x, self.to, self.tag)
        return (namespace_of(x).zeros((), dtype=x.dtype, device=x.device),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Any:
        (gtoken,) = grad_outputs
        tag = ("gradient", self.tag, self._number)  # so that no two gradients are mixed up
        return Receive(self.communicator, self.to, tag, gtoken.device).apply((gtoken,))


class Receive(Collective):
    """y = x of another rank.   token: () -> y: (s).   dL/dtoken = Send(dL/dy)."""

    output_device: Device

    def __init__(self, communicator: Communicator, source: int, tag: Any, device: Device) -> None:
        super().__init__(communicator)
        self.source = source
        self.tag = tag
        self.output_device = device

    def forward(self, inputs: Arrays) -> Arrays:
        refuse_in_net("receive")
        found, self._number = self.communicator.receive_numbered(self.source, self.tag)
        return (self.output_device.from_host(found),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (token,) = self.inputs or ()
        tag = ("gradient", self.tag, self._number)
        sent = Send(self.communicator, self.source, tag).apply(grad_outputs)[0]
        return (sent if sent.dtype == token.dtype else astype(sent, token.dtype),)


def allreduce(x: Any, communicator: Communicator | None = None) -> Variable:
    """The sum of x over all ranks, on every rank.

    x: (s) on each rank -> (s).

    Raises:
        OperandError: x is neither a Variable nor an array.
    """
    return AllReduce(checked_communicator("allreduce", communicator)).apply(
        (as_operand("allreduce", "x", x),)
    )[0]


def allgather(x: Any, communicator: Communicator | None = None) -> Variable:
    """The x of all ranks along a new first axis.

    x: (s), the same shape on each rank -> (size, s).

    Raises:
        OperandError: x is neither a Variable nor an array.
    """
    return AllGather(checked_communicator("allgather", communicator)).apply(
        (as_operand("allgather", "x", x),)
    )[0]


def broadcast(x: Any, root: int = 0, communicator: Communicator | None = None) -> Variable:
    """The x of rank ``root``, on every rank; the values on other ranks do not matter.

    x: (s) on each rank -> (s). The gradient of the x of other ranks is 0.

    Raises:
        OperandError: x is neither a Variable nor an array.
        ValueError: there is no such rank.
    """
    node = Broadcast(checked_communicator("broadcast", communicator), root)
    return node.apply((as_operand("broadcast", "x", x),))[0]


def send(x: Any, to: int, tag: Any = 0, communicator: Communicator | None = None) -> Variable:
    """Give x to the rank ``to``, for pipelines of layers. The other rank calls ``receive``.

    x: (s) -> token: (), the number 0. The k-th message with a tag meets the k-th ``receive``.

    Returns:
        A token. ``token.backward()`` waits for the gradient of x from the other rank, and goes on
        backward from x.

    Raises:
        OperandError: x is neither a Variable nor an array.
        ValueError: there is no such rank, or it is this rank.
    """
    node = Send(checked_communicator("send", communicator), to, tag)
    return node.apply((as_operand("send", "x", x),))[0]


def receive(
    source: int,
    tag: Any = 0,
    device: Any = None,
    token: Variable | None = None,
    communicator: Communicator | None = None,
) -> Variable:
    """The x of the rank ``source``, as a Variable.

    Args:
        source: the other rank.
        tag: the number of the message; the same as in ``send``.
        device: the device of the result; by default the current device.
        token: the token of an earlier ``send`` of this rank, to run first in forward, and last
            in backward.
        communicator: by default the communicator of all ranks.

    Returns:
        x: (s). A backward pass sends the gradient of x to the other rank.

    Raises:
        ValueError: there is no such rank, or it is this rank.
    """
    target = get_device(device)
    if token is None:
        token = wrap_array(target.from_host(numpy.zeros(())), target, True)
    return Receive(checked_communicator("receive", communicator), source, tag, target).apply(
        (token,)
    )[0]

"""DistributedOptimizer: averages the gradients of all ranks before each update.

Requirement: a run on several ranks gives the numbers of a run on a single rank with the whole
batch. So gradients are averaged with the numbers of examples as weights. Then every rank does the
same update.

    model = nn.Sequential(...)
    broadcast_parameters(model)
    optimizer = DistributedOptimizer(nn.Adam(model))
    data = scatter_dataset(dataset, seed=0)
    ...
    optimizer.cleargrads()
    optimizer.backward(loss, weight=len(batch))
    optimizer.update()

Source: P. Goyal et al., Accurate, Large Minibatch SGD, 2017, section 3: the average over workers;
S. Li et al., PyTorch Distributed, 2020, section 3.2: buckets, and messages during backward.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinynode.configuration import no_backprop_mode
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, namespace_of
from tinynode.distributed.buckets import Bucket, buckets_of
from tinynode.distributed.communicator import Communicator, checked_communicator
from tinynode.distributed.data import check_same_parameters
from tinynode.distributed.exchange import Departures, Exchange
from tinynode.errors import GraphError, OperandError, describe
from tinynode.net.making import is_making_net
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.clipping import clip_gradients
from tinynode.nn.lbfgs import LBFGS
from tinynode.nn.optimizers import Optimizer

BUCKET_BYTES = 4 * 2**20
"""The bytes of gradients in a message."""
OPERATIONS = "mean", "sum"


class DistributedOptimizer:
    """An optimizer that averages the gradients of all ranks before each update.

    Args:
        optimizer: the optimizer of the rank. All ranks have the same parameters in equal order.
        communicator: by default the communicator of all ranks.
        bucket_bytes: the bytes of gradients in a message.
        operation: ``mean``: the gradient is sum_r weight_r g_r / sum_r weight_r. ``sum``: the
            gradient is sum_r g_r, for a program whose loss is the sum of the losses of the ranks.
        overlap: True if ``backward`` sends gradients while the backward pass still runs.
        clip: the largest norm of the averaged gradients, as for ``clip_gradients``; None does not
            clip.

    A gradient that is NaN or infinite on a rank is so on all ranks. A parameter without a
    gradient on this rank counts as zeros, if another rank has a gradient. With a single rank,
    nothing is sent or changed.

    Attributes:
        optimizer: the optimizer of the rank.
        norm: the norm before the latest clipping; None without ``clip``.
        sent: the bytes of all messages so far.
        waited: the seconds spent waiting for messages so far.

    Raises:
        OperandError: ``optimizer`` is no Optimizer.
        ValueError: ``bucket_bytes`` or ``clip`` is not positive, or the operation is unknown.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        communicator: Communicator | None = None,
        bucket_bytes: int = BUCKET_BYTES,
        *,
        operation: str = "mean",
        overlap: bool = True,
        clip: float | None = None,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise OperandError(
                f"DistributedOptimizer: optimizer must be an optimizer of tinynode.nn, got "
                f"{describe(optimizer)}."
            )
        if isinstance(optimizer, LBFGS):
            raise OperandError(
                "DistributedOptimizer: LBFGS computes the loss several times in an update, and "
                "the ranks would take different steps. Use another optimizer."
            )
        if operation not in OPERATIONS:
            raise ValueError(
                f"DistributedOptimizer: operation must be mean or sum, got {operation!r}."
            )
        if clip is not None:
            clip = checked_number("DistributedOptimizer: clip", clip, 0.0, math.inf)
        if clip == 0:
            raise ValueError("DistributedOptimizer: clip must be above 0.")
        self.optimizer = optimizer
        self.communicator = checked_communicator("DistributedOptimizer", communicator)
        self.bucket_bytes = checked_size("DistributedOptimizer: bucket_bytes", bucket_bytes)
        self.operation = operation
        self.overlap = bool(overlap)
        self.clip = clip
        self.norm: Any = None
        self.sent = 0
        self.waited = 0.0
        self._weight: float | None = None  # of ``backward``, until ``update``
        self._exchange: Exchange | None = None
        self._buckets: list[Bucket] = []

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self.optimizer!r}, {self.communicator!r})"

    @property
    def saved_part(self) -> Optimizer:
        """The object whose state a checkpoint holds: a run may go on without several ranks."""
        return self.optimizer

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self.optimizer.lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self.optimizer.lr = lr

    @property
    def _parameters(self) -> list[Variable]:
        """The parameters that are not frozen."""
        return [slot.parameter for slot in self.optimizer.trained_slots]

    def backward(self, loss: Variable, weight: float = 1.0) -> None:
        """``loss.backward()``, and the gradients leave while the pass runs.

        For several backward passes before an update, call ``loss.backward()`` for all but the
        last. The gradients add up on the rank, and travel once.

        Args:
            loss: the loss of this rank.
            weight: the number of examples of this rank, if the loss is a mean over the examples.

        After an exception the messages are in step again, if all ranks got one. The gradients are
        as before.

        Raises:
            ValueError: the weight is negative or not finite.
            GraphError: ``backward`` was called before, and ``update`` was not.
        """
        self._check_weight(weight)
        if self._weight is not None:
            raise GraphError(
                "DistributedOptimizer.backward: the gradients of an earlier backward have left. "
                "Call update() first. To add up gradients, call loss.backward() for all losses "
                "but the last."
            )
        if self.communicator.size == 1 or not self.overlap or is_recording_net():
            loss.backward()
        else:
            self._exchange = self._backward_and_start(loss, weight)
        self._weight = weight

    def _backward_and_start(self, loss: Variable, weight: float) -> Exchange:
        """The backward pass; all messages have left after the pass."""
        exchange = self.new_exchange(weight)
        try:
            if len(exchange.buckets) > 1:
                with Departures(exchange, loss) as departures:
                    loss.backward()
                departures.check()
            else:  # a single bucket leaves at the end in any case
                loss.backward()
        except Exception:
            exchange.abandon()
            raise
        exchange.start_rest()
        return exchange

    def update(
        self, closure: Callable[[], Any] | None = None, *, weight: float | None = None
    ) -> Any:
        """Average the gradients, and change every parameter; the same on each rank.

        Args:
            closure: called first, if given: clears gradients, computes the loss, calls backward.
            weight: the number of examples of this rank, as for ``backward``, after a plain
                ``loss.backward()``; by default 1.

        Returns:
            The result of the closure, or None.

        Raises:
            ValueError: the weight is negative, all weights are 0, or a norm to clip is not finite.
            GraphError: no rank has a gradient of a parameter, or ``backward`` had another weight.
            RankError: at the first update, if names, shapes or dtypes of the parameters differ
                between the ranks.
        """
        result = None if closure is None else closure()
        self.average_gradients(weight)
        if self.clip is not None:
            self.norm = clip_gradients(self._parameters, self.clip)
        self.optimizer.update()
        return result

    def average_gradients(self, weight: float | None = None) -> None:
        """The gradients of ``operation`` in each parameter, on every rank; waits for messages.

        Raises:
            ValueError: the weight is negative, or all weights are 0.
            GraphError: ``backward`` had another weight.
        """
        given, self._weight = self._weight, None
        exchange, self._exchange = self._exchange, None
        if given is not None and weight is not None and weight != given:
            raise GraphError(
                f"DistributedOptimizer: backward had the weight {given}, and update has {weight}. "
                "Give the weight once."
            )
        own = weight if weight is not None else 1.0 if given is None else given
        self._check_weight(own)
        if is_recording_net():
            self._record(own)
            return
        if self.communicator.size == 1:
            if own == 0:
                raise ValueError("DistributedOptimizer: the weights of all ranks are 0.")
            return
        exchange = exchange or self.new_exchange(own)
        exchange.start_rest()
        gradients = self.finish(exchange)
        for bucket, found in zip(exchange.buckets, gradients, strict=True):
            for p, gradient in zip(bucket.parameters, found, strict=True):
                p.grad = gradient

    def new_exchange(self, weight: float) -> Exchange:
        """The messages of a step, none of which has left.

        Raises:
            RankError: at the first step, if the parameters of the ranks differ.
        """
        communicator = self.communicator.for_exchange()
        if not self._buckets:  # once, on every rank
            named = [(slot.name, slot.parameter) for slot in self.optimizer.slots]
            check_same_parameters("DistributedOptimizer", communicator, named)
        trained = self._parameters
        known = [id(p) for bucket in self._buckets for p in bucket.parameters]
        has_others = known[::-1] != [id(p) for p in trained]  # the last parameters come first
        if has_others or any(not bucket.fits() for bucket in self._buckets):
            self._buckets = buckets_of(trained, self.bucket_bytes)
        is_mean = self.operation == "mean"
        return Exchange(communicator, self._buckets, weight, is_mean)

    def _check_weight(self, weight: Any) -> None:
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
            raise OperandError(
                f"DistributedOptimizer: weight must be a number of examples, got "
                f"{describe(weight)}. Write len(batch)."
            )
        if not 0.0 <= float(weight) < math.inf:
            raise ValueError(
                f"DistributedOptimizer: weight must be a number of examples, got {weight!r}."
            )

    def _record(self, weight: float) -> None:
        """The exchange as an operator of a net, for ``tn.compile``.

        A net has the same operators in each run. So a missing gradient is zeros here.
        """
        if self.communicator.size == 1:
            return
        parameters = self._parameters
        with no_backprop_mode():
            gradients = [_zeros(p) if p.grad_var is None else p.grad_var for p in parameters]
            averaged = AverageGradients(self, weight).apply(tuple(gradients))
        for p, gradient in zip(parameters, averaged, strict=True):
            p.grad_var = gradient

    def finish(self, exchange: Exchange) -> list[Any]:
        """The gradients of an exchange, by bucket and parameter; counts time and bytes."""
        found = exchange.finish()
        self.waited += exchange.waited
        self.sent += sum(bucket.bytes for bucket in exchange.buckets)
        return found

    step = update
    """``update``, by PyTorch's name."""

    @property
    def groups(self) -> Sequence[Optimizer]:
        """The groups of parameters of the optimizer of the rank."""
        return self.optimizer.groups

    def cleargrads(self) -> None:
        """Set every parameter's gradient to None; needed before each backward.

        After a ``backward`` without ``update``, waits for the messages, and drops the results.
        """
        if self._exchange is not None:
            self._exchange.abandon()
        self._exchange = self._weight = None
        self.optimizer.cleargrads()

    zero_grad = cleargrads

    def state_dict(self) -> Any:
        """The state of the optimizer, the same on each rank."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, also after a change of the number of ranks."""
        self.optimizer.load_state_dict(state)


def _zeros(p: Variable) -> Variable:
    return wrap_array(p.xp.zeros_like(p.raw), p.device, False)


class AverageGradients(FunctionNode):
    """The averages of the gradients of all ranks.   g0: (s0), g1: (s1) ... -> as g. No gradient.

    Args:
        optimizer: the DistributedOptimizer with the parameters in the order of the inputs.
        weight: the weight of this rank.
    """

    is_collective = True

    def __init__(self, optimizer: DistributedOptimizer, weight: float) -> None:
        self.optimizer = optimizer
        self.weight = weight

    def forward(self, inputs: Arrays) -> Arrays:
        if is_making_net():  # a recording is no run, and the other ranks may not record now
            return tuple([namespace_of(g).asarray(g, copy=True) for g in inputs])
        exchange = self.optimizer.new_exchange(self.weight)
        parameters = [slot.parameter for slot in self.optimizer.optimizer.trained_slots]
        given = {id(p): g for p, g in zip(parameters, inputs, strict=True)}
        for bucket in exchange.buckets:
            exchange.start_next([given[id(p)] for p in bucket.parameters])
        averages = {}
        gradients = self.optimizer.finish(exchange)
        for bucket, found in zip(exchange.buckets, gradients, strict=True):
            for p, gradient in zip(bucket.parameters, found, strict=True):
                averages[id(p)] = gradient
        return tuple([averages[id(p)] for p in parameters])

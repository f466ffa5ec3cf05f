"""Exchange: the gradients of all ranks are added, also while the backward pass still runs.

Requirement: the messages travel while the processor computes. A parameter's gradient is complete
when the backward of the parameter's last user has run. So ``Departures`` observes the sweep, and a
bucket leaves as soon as all gradients are complete.

A function may run a backward pass of its own, as ``tn.checkpoint`` does. Before the last of these
functions, no gradient counts as complete.

Every rank sends the buckets in the same order, since MPI joins the messages by order. The other
buckets leave at the end of the pass.
"""

from __future__ import annotations

import time
from typing import Any

from tinynode.core.hooks import FunctionHook
from tinynode.core.variable_node import VariableNode
from tinynode.distributed.buckets import Bucket
from tinynode.distributed.communicator import Communicator
from tinynode.distributed.transport import Pending
from tinynode.errors import GraphError


class Exchange:
    """The messages of a step.

    Args:
        communicator: the ranks.
        buckets: the buckets, in the order of the messages.
        weight: the weight of this rank.
        is_mean: True for the operation ``mean``.

    Attributes:
        pending: the messages on the way.
        waited: the seconds spent waiting.
    """

    def __init__(
        self, communicator: Communicator, buckets: list[Bucket], weight: float, is_mean: bool
    ) -> None:
        self.communicator = communicator
        self.buckets = buckets
        self.weight = weight
        self.is_mean = is_mean
        self.pending: list[Pending] = []
        self.waited = 0.0

    def start_next(self, gradients: list[Any]) -> None:
        """Send the next bucket."""
        bucket = self.buckets[len(self.pending)]
        started = bucket.start(self.communicator, gradients, self.weight, self.is_mean)
        self.pending.append(started)

    def start_rest(self) -> None:
        """Send the other buckets, with the present gradients of the parameters."""
        for bucket in self.buckets[len(self.pending) :]:
            self.start_next([p.grad for p in bucket.parameters])

    def abandon(self) -> None:
        """After an exception: send zeros in the other buckets, and drop all results.

        So the messages of the ranks stay in step.
        """
        self.weight = 0.0
        for bucket in self.buckets[len(self.pending) :]:
            self.start_next([None] * len(bucket.parameters))
        for pending in self.pending:
            pending.wait()

    def help(self) -> None:
        """Let MPI go on with the messages on the way."""
        for pending in self.pending:
            if not pending.is_done():
                return  # the later messages wait for this message

    def finish(self) -> list[list[Any]]:
        """Wait for all messages; the gradients of each bucket, by parameter.

        Raises:
            ValueError: the weights of all ranks are 0.
        """
        found = []
        for bucket, pending in zip(self.buckets, self.pending, strict=True):
            start = time.perf_counter()
            message = pending.wait()
            self.waited += time.perf_counter() - start
            found.append(bucket.finish(message, self.is_mean))
        return found


class Departures(FunctionHook):
    """Starts each bucket of an exchange as soon as the gradients are complete.

    Attributes:
        uses: for each parameter's node, the number of uses whose backward has not run.
        inner: the number of functions with an own backward pass that have not run.
    """

    name = "tinynode.distributed.Departures"

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.nodes = {p.node: p for bucket in exchange.buckets for p in bucket.parameters}
        self.uses: dict[VariableNode, int] = {}
        self.inner = 0
        self._sweep: Any = None

    def sweep_began(self, sweep: Any) -> None:
        """Count the uses of each parameter in the graph of the first sweep."""
        if self._sweep is not None:
            return
        self._sweep = sweep
        waiting = [function for _, _, function in sweep.heap]
        seen = set(waiting)
        while waiting:
            function = waiting.pop()
            self.inner += runs_backward(function)
            for node in function.inputs or ():
                if node in self.nodes:
                    self.uses[node] = self.uses.get(node, 0) + 1
                creator = node.creator_node
                if creator is not None and creator not in seen:
                    seen.add(creator)
                    waiting.append(creator)

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        """Count a use, and send the complete buckets."""
        if sweep is not self._sweep:
            return
        exchange, is_new = self.exchange, runs_backward(function)
        self.inner -= is_new
        for node in function.inputs or ():
            if node in self.uses:
                self.uses[node] -= 1
                is_new = is_new or self.uses[node] == 0
        while is_new and not self.inner and len(exchange.pending) < len(exchange.buckets):
            bucket = exchange.buckets[len(exchange.pending)]
            if any(self._is_open(p.node, sweep.table) for p in bucket.parameters):
                break
            exchange.start_next([self._complete(p, sweep.table) for p in bucket.parameters])
        exchange.help()

    def sweep_ended(self, sweep: Any, error: BaseException | None) -> None:
        """Refuse a gradient of an inner pass that comes after the parameter's bucket has left.

        Raises:
            GraphError: a bucket has left too early.
        """
        if sweep is self._sweep or error is not None:
            return
        for bucket in self.exchange.buckets[: len(self.exchange.pending)]:
            for p in bucket.parameters:
                if p.node in sweep.results:
                    raise GraphError(
                        f"DistributedOptimizer.backward: a function ran a backward pass of its "
                        f"own, which changed the gradient of {p.label} after it had left. Set the "
                        "attribute runs_backward = True in the class of the function, or give "
                        "the optimizer overlap=False."
                    )

    def _is_open(self, node: VariableNode, table: Any) -> bool:
        """True if the sweep may still add to the gradient."""
        return self.uses.get(node, 0) > 0 or node in table.waiting

    def _complete(self, p: Any, table: Any) -> Any:
        """The gradient of the parameter after the pass."""
        gradient = table.gradients.get(p.node)
        if gradient is None:
            return p.grad
        return gradient.raw if p.grad is None else p.grad + gradient.raw


def runs_backward(function: Any) -> bool:
    """True if the backward of a function runs a backward pass that writes gradients."""
    return bool(getattr(function, "runs_backward", False))

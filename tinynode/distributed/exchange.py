"""Exchange: the gradients of all ranks are added, also while the backward pass still runs.

Requirement: the messages travel while the processor computes. A parameter's gradient is complete
when the backward of the parameter's last user has run. So ``Departures`` observes the users, and a
bucket leaves as soon as all gradients are complete.

A function with ``runs_backward = True`` runs a backward pass of its own. Before the last of these
functions, no gradient counts as complete.

Every rank sends the buckets in the same order, since MPI joins the messages by order. The other
buckets leave at the end of the pass.
"""

from __future__ import annotations

import time
from typing import Any, Self

import numpy

from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import to_host
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

        with Departures(exchange, loss) as departures:
            loss.backward()
        departures.check()

    The hook is registered for the users of parameters alone, so other functions cost nothing.

    Attributes:
        uses: for each parameter's node, the number of uses whose backward has not run.
        inner: the number of functions with an own backward pass that have not run.
        sent: the parameters that have left, with the gradients of the messages.
    """

    name = "tinynode.distributed.Departures"

    def __init__(self, exchange: Exchange, loss: Variable) -> None:
        self.exchange = exchange
        self.loss = loss
        self.nodes = {p.node: p for bucket in exchange.buckets for p in bucket.parameters}
        self.uses: dict[VariableNode, int] = {}
        self.inner = 0
        self.sent: list[tuple[Variable, Any]] = []
        self._watched: list[Any] = []

    def __enter__(self) -> Self:
        """Count the uses of each parameter in the graph of the loss, and watch the users."""
        creator = self.loss.creator_node
        waiting = [] if creator is None else [creator]
        seen = set(waiting)
        while waiting:
            function = waiting.pop()
            is_watched = function.runs_backward
            self.inner += is_watched
            for node in function.inputs or ():
                if node in self.nodes:
                    self.uses[node] = self.uses.get(node, 0) + 1
                    is_watched = True
                creator = node.creator_node
                if creator is not None and creator not in seen:
                    seen.add(creator)
                    waiting.append(creator)
            if is_watched:
                function.add_hook(self)
                self._watched.append(function)
        return self

    def __exit__(self, *error: Any) -> None:
        for function in self._watched:
            function.delete_hook(self.name)

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        """Count the uses, and send the complete buckets."""
        self.inner -= function.runs_backward
        for node in function.inputs or ():
            if node in self.uses:
                self.uses[node] -= 1
        exchange = self.exchange
        while not self.inner and len(exchange.pending) < len(exchange.buckets):
            bucket = exchange.buckets[len(exchange.pending)]
            if any(self._is_open(p.node, sweep.table) for p in bucket.parameters):
                break
            exchange.start_next([self._complete(p, sweep.table) for p in bucket.parameters])
        exchange.help()

    def _is_open(self, node: VariableNode, table: Any) -> bool:
        """True if the sweep may still add to the gradient."""
        return self.uses.get(node, 0) > 0 or node in table.waiting

    def _complete(self, p: Variable, table: Any) -> Any:
        """The gradient of the parameter after the pass."""
        gradient, own = table.gradients.get(p.node), p.grad
        array = gradient.raw if isinstance(gradient, Variable) else gradient  # in a pass on arrays
        total = array if own is None else own if array is None else own + array
        self.sent.append((p, total))
        return total

    def check(self) -> None:
        """Compare the gradients after the pass with the sent gradients.

        Raises:
            GraphError: a gradient has changed after the message had left.
        """
        for p, total in self.sent:
            if p.grad is total:
                continue  # the usual case: nothing was added
            same = p.grad is not None and total is not None
            if not same or not numpy.array_equal(to_host(p.grad), to_host(total), equal_nan=True):
                raise GraphError(
                    f"DistributedOptimizer.backward: a function ran a backward pass of its own, "
                    f"which changed the gradient of {p.label} after the gradient had left. Set "
                    "the attribute runs_backward = True in the class of the function, or give "
                    "the optimizer overlap=False."
                )

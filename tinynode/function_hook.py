"""Hooks and observers: how others watch functions run.

Requirement: a profiler, a printer or a debugger sees every function application without the
functions knowing, and costs nothing when there is none.

A **hook** is for users. Registered by ``with hook:`` it sees all functions of this thread;
registered by ``function.add_hook(hook)`` it sees one. An **observer** is the internal counterpart:
it sees a function application after its graph is connected, and each step of a backward sweep.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tinynode.backend import Array, Arrays
from tinynode.errors import HookError

if TYPE_CHECKING:
    from typing import Self

    from tinynode.backprop import Sweep
    from tinynode.function_node import FunctionNode
    from tinynode.variable import Variable


class _ThreadState(threading.local):
    """What watches the functions of this thread."""

    def __init__(self) -> None:
        self.hooks: dict[str, FunctionHook] = {}
        self.observers: list[Observer] = []
        self.watched = False
        """Whether there is any hook or observer: all that a function reads when there is none."""

    def update(self) -> None:
        self.watched = bool(self.hooks or self.observers)


thread_state = _ThreadState()


class FunctionHook:
    """Base class of hooks: override the callbacks that you need.

    The callbacks get the FunctionNode. ``in_data`` is a tuple of arrays; in the backward callbacks
    it has None for each input that the function did not retain. ``out_grad`` is a tuple of arrays,
    None for an output without a gradient. Functions that run inside a function's backward are
    function applications too: their forward callbacks come between that function's
    ``backward_preprocess`` and ``backward_postprocess``.

    Hooks run in the order in which they were registered, those of the thread first. A hook of one
    function replaces the thread's hook of the same name.
    """

    name = "FunctionHook"

    def __enter__(self) -> Self:
        if self.name in thread_state.hooks:
            raise HookError(
                f"hook {self.name} already exists: give this one another name, "
                "or leave the other `with` block first."
            )
        thread_state.hooks[self.name] = self
        thread_state.update()
        try:
            self.added(None)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.deleted(None)
        finally:
            self._remove()

    def _remove(self) -> None:
        thread_state.hooks.pop(self.name, None)
        thread_state.update()

    def added(self, function: FunctionNode | None) -> None:
        """Called after the hook was registered: to one function, or to the thread (None)."""

    def deleted(self, function: FunctionNode | None) -> None:
        """Called before the hook is unregistered: from one function, or from the thread (None)."""

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Called before a function's forward."""

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Called after a function's forward; not if it raised."""

    def backward_preprocess(
        self,
        function: FunctionNode,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        """Called before a function's backward."""

    def backward_postprocess(
        self,
        function: FunctionNode,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        """Called after a function's backward; not if it raised."""


class Observer:
    """Base class of observers: tracing and recording use it; hooks are for users."""

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """A function was applied, and its graph connected if one is recorded."""

    def stepped_back(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        """A sweep ran a function's backward; ``grad_inputs`` belong to the target indexes."""

    def sweep_began(self, sweep: Sweep) -> None:
        """A sweep is about to run: its table has the seeds, its heap their creators."""

    def stepping_back(self, sweep: Sweep, function: FunctionNode) -> None:
        """A sweep took a function from its heap, and nothing of that function's step is done."""

    def handed_on(self, sweep: Sweep, function: FunctionNode) -> None:
        """A step is done: its gradients are in the sweep's table, and new functions in its heap.

        ``stepped_back`` comes between ``stepping_back`` and this.
        """

    def sweep_ended(self, sweep: Sweep, error: BaseException | None) -> None:
        """A sweep has come to its end, and Variables have their gradients; or an error ended it.

        The gradients that it came to are ``sweep.results``.
        """


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let an observer watch this thread for the length of a ``with`` block."""
    thread_state.observers.append(observer)
    thread_state.update()
    try:
        yield
    finally:
        thread_state.observers.remove(observer)
        thread_state.update()


def hooks_for(local_hooks: dict[str, Any] | None) -> list[FunctionHook]:
    """The hooks that see a function: the thread's, then its own, which replace same names."""
    if not local_hooks:
        return list(thread_state.hooks.values())
    return list({**thread_state.hooks, **local_hooks}.values())

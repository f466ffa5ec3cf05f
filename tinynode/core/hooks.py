"""Hooks: objects that hear events while functions run.

Requirement: a profiler, a debugger or a recorder of nets sees every function application, and the
functions do not know the hooks. Without a hook, the cost is a look at an empty dictionary.

``FunctionHook`` is the class of all events. ``with hook:`` registers a hook for all functions of
this thread. ``function.add_hook(hook)`` registers a hook for a single function. The events, in
order:

    one application     before_forward, forward_preprocess, forward, forward_postprocess,
                        applied
    one backward pass   sweep_began, the steps, sweep_ended
    one step of it      before_backward, backward_preprocess, backward, backward_postprocess,
                        after_backward, after_accumulate
    an exception        failed, in the check of types, from forward_preprocess to
                        forward_postprocess, and from backward_preprocess to after_backward
    outside functions   value_read, detached, array_assigned, gradient_cleared, numbers_drawn,
                        module_called, training_read, setting_assigned, update_requested,
                        updated, diagnosed, copied_from_host

``forward`` and ``backward`` in the table are the methods of the function.

This module lies below FunctionNode and Variable, so the types of both are ``Any`` here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tinynode.configuration import Block, config
from tinynode.devices import Array, Arrays, HostCopy, copy_listeners
from tinynode.errors import HookError, describe


class _ThreadState(threading.local):
    """The state of this thread.

    Attributes:
        hooks: the hooks, by name, in the order of registration.
        differentiating: the number of differentiating transforms with a function that runs now.
        array_device: the device of the backward pass on arrays that runs now, else None.
    """

    def __init__(self) -> None:
        self.hooks: dict[str, FunctionHook] = {}
        self.differentiating = 0
        self.array_device: Any = None


thread_state = _ThreadState()


class FunctionHook:
    """Base class of hooks: override the events of interest.

    ``function`` is a FunctionNode. ``in_data`` is a tuple of arrays; in the backward events with
    None for each input that the function did not retain. ``out_grad`` is a tuple of arrays, with
    None for an output without a gradient. A function's backward applies further functions. The
    events of these functions come between ``backward_preprocess`` and ``backward_postprocess``.

    Hooks are called in the order of registration, the thread's hooks first. A hook of a function
    replaces the thread's hook of the same name.
    """

    name = "FunctionHook"
    records_nets = False
    """True for a recorder of nets. The recorder has to see all functions. So sums of gradients run
    as functions, and ``checkpoint`` keeps the graph of the checkpointed function."""

    _block: Block | None = None

    def __enter__(self) -> Self:
        if self.name in thread_state.hooks:
            raise HookError(
                f"hook {self.name} already exists: give this one another name, "
                "or leave the other `with` block first."
            )
        block = Block({self.name: self}, thread_state.hooks)
        block.__enter__()
        try:
            self.added(None)
        except BaseException:
            block.__exit__()
            raise
        self._block = block
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        block, self._block = self._block, None
        try:
            self.deleted(None)
        finally:
            if block is not None:
                block.__exit__()

    forward_runner: Any = None
    """A recorder that needs no values replaces ``dispatch.run_forward`` by this function."""

    # --- registration --------------------------------------------------------------------------

    def added(self, function: Any) -> None:
        """The hook was registered: for a function, or with None for this thread."""

    def deleted(self, function: Any) -> None:
        """The hook is about to be unregistered."""

    # --- one application -----------------------------------------------------------------------

    def before_forward(self, function: Any, inputs: tuple[Any, ...]) -> None:
        """A function is about to be applied to Variables.

        A hook may replace the array of an input by another one of the same shape and dtype.
        """

    def forward_preprocess(self, function: Any, in_data: Arrays) -> None:
        """A function's forward is about to run."""

    def forward_postprocess(self, function: Any, in_data: Arrays) -> None:
        """A function's forward has run; the results are not in the graph yet."""

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """A function was applied to Variables, and connected if a graph is recorded.

        A backward applies functions, too: ``CallHook.is_inside_backward`` tells them apart.
        """

    # --- one step of a backward pass -------------------------------------------------------------

    def before_backward(self, sweep: Any, function: Any) -> None:
        """A sweep took a function from the heap; the gradients are still in the table."""

    def backward_preprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        """A function's backward is about to run."""

    def backward_postprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        """A function's backward has run."""

    def after_backward(
        self,
        function: Any,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> None:
        """A function's backward gave ``grad_inputs``, a gradient for each target index."""

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        """The gradients of a step are in the table, and new functions in the heap."""

    # --- a backward pass -------------------------------------------------------------------------

    def sweep_began(self, sweep: Any) -> None:
        """A backward pass begins: the table has the seeds, the heap has the creators."""

    def sweep_ended(self, sweep: Any, error: BaseException | None) -> None:
        """A backward pass has ended: with ``sweep.results``, or by an exception."""

    # --- exceptions ------------------------------------------------------------------------------

    def failed(self, function: Any, direction: str, error: BaseException) -> None:
        """A function's ``"forward"`` or ``"backward"`` ended with an exception.

        Every hook of the function hears the event. A hook may have heard the postprocess event
        before, if a later hook raised. After a failed check of types, no event came before. No
        further event of this application or step follows.
        """

    # --- outside of functions: for the thread's hooks only ---------------------------------------

    def value_read(self, what: str) -> None:
        """The program reads values off a Variable: ``x.array``, ``bool(x)``, ``float(x)`` ..."""

    def detached(self, source: Any, copy: Any) -> None:
        """A new Variable was made on the array of another: ``copy = source.detach()``."""

    def array_assigned(self, variable: Any) -> None:
        """``variable.array`` is about to be replaced."""

    def gradient_cleared(self, variable: Any) -> None:
        """``variable.cleargrad()`` was called."""

    def numbers_drawn(self) -> None:
        """``tinynode.random`` is about to draw numbers outside of a function."""

    def module_called(self, module: Any) -> None:
        """A Module is about to be called."""

    def training_read(self, module: Any) -> None:
        """``module.training`` is about to be read."""

    def setting_assigned(self, what: str) -> None:
        """A number of an optimizer, such as the learning rate, is about to be assigned."""

    def update_requested(self, optimizer: Any, parameters: Any) -> bool:
        """An optimizer is about to update parameters. True if the hook updates them instead."""
        return False

    def updated(self, optimizer: Any, parameters: Any) -> None:
        """An optimizer has updated the parameters."""

    def diagnosed(self, diagnosis: Any) -> None:
        """``tinynode.diagnose`` is done; ``diagnosis.marks()`` has words for some nodes."""

    def copied_from_host(self, host_copy: HostCopy) -> None:
        """An array of NumPy was copied to a device, for a function that is about to run."""


debug_hooks: list[FunctionHook] = []
"""The hook of debug mode, added by ``tinynode.hooks.debug``."""


def thread_hooks() -> list[FunctionHook]:
    """A copy of the thread's list of hooks: an event of a hook may register another hook."""
    return list(thread_state.hooks.values())


def active_hooks(function: HookOwner) -> list[FunctionHook]:
    """The hooks of a function: of debug mode, of the thread, then of the function."""
    hooks = {**thread_state.hooks, **(function.local_hooks_or_none or {})}
    return [*(debug_hooks if config.debug else ()), *hooks.values()]


def tell_failed(
    hooks: Sequence[FunctionHook], function: Any, direction: str, error: BaseException
) -> None:
    """Tell hooks that a function's forward or backward raised."""
    for hook in hooks:
        hook.failed(function, direction, error)


def retained_and_gradients(
    function: Any, grad_outputs: tuple[Any, ...]
) -> tuple[tuple[Array | None, ...], tuple[Array | None, ...]]:
    """``in_data`` and ``out_grad`` of the events of a backward."""
    out_grad = tuple([None if gy is None else gy.raw for gy in grad_outputs])
    return retained_arrays(function)[0], out_grad


def retained_indexes(function: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The indexes of the inputs and of the outputs that a function retains."""
    return function.retained_input_indexes, function.retained_output_indexes


def retained_arrays(
    function: Any,
) -> tuple[tuple[Array | None, ...], tuple[Array | None, ...]]:
    """An array or None for each input of a function, and for each output.

    None stands for each input or output that the function does not retain.
    """
    in_data: list[Array | None] = [None] * len(function.inputs or ())
    for i, array in zip(
        function.retained_input_indexes, function.retained_input_data, strict=False
    ):
        in_data[i] = array
    out_data: list[Array | None] = [None] * len(function.outputs or ())
    for i, array in zip(
        function.retained_output_indexes, function.retained_output_data, strict=False
    ):
        out_data[i] = array
    return tuple(in_data), tuple(out_data)


def tell_value_read(what: str) -> None:
    """The gate where values leave Variables. A hook may refuse the reading by an exception."""
    if thread_state.hooks:
        for hook in thread_hooks():
            hook.value_read(what)


def tell_detached(source: Any, copy: Any) -> None:
    """Tell hooks that a Variable was made on the array of another, outside the graph."""
    for hook in thread_hooks():
        hook.detached(source, copy)


def tell_copied_from_host(host_copy: HostCopy) -> None:
    """Tell hooks that an array of NumPy was copied to a device."""
    for hook in thread_hooks():
        hook.copied_from_host(host_copy)


copy_listeners.append(tell_copied_from_host)


def is_recording_net() -> bool:
    """True while a hook of this thread records functions as a net."""
    hooks = thread_state.hooks
    return bool(hooks) and any(hook.records_nets for hook in hooks.values())


class HookOwner:
    """Base class of FunctionNode: the registration of hooks for a single function."""

    local_hooks_or_none: dict[str, FunctionHook] | None = None

    @property
    def label(self) -> str:
        """A short text for messages and pictures: the class name, unless overridden."""
        return type(self).__name__

    @property
    def _impl_name(self) -> str:
        """The name that profilers show."""
        return type(self).__name__

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks of this function, by name, in the order of registration."""
        if self.local_hooks_or_none is None:
            self.local_hooks_or_none = {}
        return self.local_hooks_or_none

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Register a hook for this function only; ``name`` defaults to the hook's.

        Raises:
            TypeError: the object is no FunctionHook.
            HookError: the function has a hook of that name.
        """
        if not isinstance(hook, FunctionHook):
            raise TypeError(f"add_hook: expected a FunctionHook, got {describe(hook)}.")
        key = hook.name if name is None else name
        if key in self.local_function_hooks:
            raise HookError(f"Hook {key} already exists in {self.label}: give it another name.")
        self.local_function_hooks[key] = hook
        try:
            hook.added(self)
        except BaseException:
            del self.local_function_hooks[key]
            raise

    def delete_hook(self, name: str) -> None:
        """Unregister a hook of this function.

        Raises:
            HookError: the function has no hook of that name.
        """
        if name not in self.local_function_hooks:
            raise HookError(
                f"Hook {name} does not exist in {self.label}: it has "
                f"{sorted(self.local_function_hooks)}."
            )
        try:
            self.local_function_hooks[name].deleted(self)
        finally:
            del self.local_function_hooks[name]

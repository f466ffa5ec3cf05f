"""CallHook: base of the hooks that measure a call from beginning to end.

Requirement: functions run inside other functions, so each thread has a stack of running calls. A
call that raises leaves the stack without an end.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.devices import Array, Arrays

OptionalArrays = tuple[Array | None, ...]


class Running(NamedTuple):
    """A running call of a function, with the subclass's record of the call."""

    function: FunctionNode
    direction: str
    record: Any


class CallHook(FunctionHook):
    """A subclass overrides ``begin``, ``end`` and ``lose``.

    ``direction`` is ``"forward"`` or ``"backward"``. ``record`` is the value that ``begin``
    returned for the call. ``outer`` is the record of the call around it, or None.
    """

    def __init__(self) -> None:
        self._running: dict[int, list[Running]] = {}
        """The stack of running calls of each thread, outermost first."""

    def begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> Any:
        """A call begins: returns the record of the call."""

    def end(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        record: Any,
        outer: Any,
    ) -> None:
        """A call has ended normally."""

    def lose(self, record: Any, outer: Any) -> None:
        """A call has raised, or the hook is removed before the end of the call."""

    def is_inside_backward(self) -> bool:
        """True while the backward of a function is running in this thread."""
        return any(call.direction == "backward" for call in self._stack())

    # --- events ----------------------------------------------------------------------------------

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._push(function, "forward", in_data)

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._pop(function, "forward", in_data)

    def backward_preprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._push(function, "backward", out_grad + in_data)

    def backward_postprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._pop(function, "backward", out_grad + in_data)

    def failed(self, function: FunctionNode, direction: str, error: BaseException) -> None:
        if self._is_innermost(function, direction):
            self._lose_innermost()

    def deleted(self, function: FunctionNode | None) -> None:
        if function is None:
            while self._stack():
                self._lose_innermost()
            self._running.pop(threading.get_ident(), None)

    # --- the stack of this thread ----------------------------------------------------------------

    def _stack(self) -> list[Running]:
        return self._running.get(threading.get_ident(), [])

    def _outer(self) -> Any:
        """The record of the innermost running call, or None."""
        stack = self._stack()
        return stack[-1].record if stack else None

    def _is_innermost(self, function: FunctionNode, direction: str) -> bool:
        """False for a call whose beginning the hook missed."""
        stack = self._stack()
        return bool(stack) and stack[-1].function is function and stack[-1].direction == direction

    def _push(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        record = self.begin(function, direction, arrays)
        stack = self._running.setdefault(threading.get_ident(), [])
        stack.append(Running(function, direction, record))

    def _pop(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        if self._is_innermost(function, direction):
            record = self._stack().pop().record
            self.end(function, direction, arrays, record, self._outer())

    def _lose_innermost(self) -> None:
        record = self._stack().pop().record
        self.lose(record, self._outer())

"""CallHook: the base of hooks that compare the end of a call with its beginning.

Requirement: functions run inside others, so a hook keeps the calls that are under way, outermost
first. A call of a function that raised is *lost*: it has a beginning and no end.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.devices import Array, Arrays

OptionalArrays = tuple[Array | None, ...]


class Running(NamedTuple):
    """A call under way.

    Attributes:
        key: the function's id and the direction, which beginning and end have in common.
        call: what the hook remembers of it.
    """

    key: tuple[int, str]
    call: Any


class CallHook(FunctionHook):
    """A subclass says what happens when a call begins and ends.

    ``direction`` is ``"forward"`` or ``"backward"``. ``around`` is what the hook remembers of the
    call that this one is inside of, or None.
    """

    def __init__(self) -> None:
        self._running: dict[int, list[Running]] = {}
        """The calls under way, outermost first, by thread."""

    def call_begins(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Any
    ) -> Any:
        """A call begins: returns what is to be remembered of it."""

    def call_ends(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        call: Any,
        around: Any,
    ) -> None:
        """A call ends; ``call`` is what was remembered."""

    def call_is_lost(self, call: Any) -> None:
        """A call has raised, or the hook goes before it ends."""

    def deleted(self, function: FunctionNode | None) -> None:
        if function is None:
            running = self._running.pop(threading.get_ident(), [])
            while running:
                self.call_is_lost(running.pop().call)

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._begin(function, "forward", in_data)

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._end(function, "forward", in_data)

    def backward_preprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._begin(function, "backward", out_grad + in_data)

    def backward_postprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._end(function, "backward", out_grad + in_data)

    def failed(self, function: FunctionNode, direction: str, error: BaseException) -> None:
        running = self._running.get(threading.get_ident(), [])
        key = (id(function), direction)
        if any(item.key == key for item in running):  # its beginning was seen, and no end
            while running[-1].key != key:
                self.call_is_lost(running.pop().call)
            self.call_is_lost(running.pop().call)

    def is_inside_backward(self) -> bool:
        """True while the backward of a function is running in this thread."""
        running = self._running.get(threading.get_ident(), ())
        return any(direction == "backward" for (_, direction), _ in running)

    def _begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        running = self._running.setdefault(threading.get_ident(), [])
        around = running[-1].call if running else None
        call = self.call_begins(function, direction, arrays, around)
        running.append(Running((id(function), direction), call))

    def _end(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        running = self._running.get(threading.get_ident(), [])
        key = (id(function), direction)
        if not any(item.key == key for item in running):
            return  # the hook was registered after this function had begun
        while running[-1].key != key:
            self.call_is_lost(running.pop().call)
        call = running.pop().call
        around = running[-1].call if running else None
        self.call_ends(function, direction, arrays, call, around)

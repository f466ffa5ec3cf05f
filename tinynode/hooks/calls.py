"""CallHook: the base of hooks that compare the end of a call with its beginning.

Requirement: functions run inside others, so a hook keeps the calls that are under way, outermost
first. The callback after a function is not called if the function raised: such a call is *lost*.
It is noticed by its frame, which has left the stack, when the next call begins, or when one around
it ends. So it is never mistaken for a call around others.
"""

from __future__ import annotations

import inspect
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from tinynode.backend import Array, Arrays
from tinynode.function_hook import FunctionHook

if TYPE_CHECKING:
    from tinynode.function_node import FunctionNode

OptionalArrays = tuple[Array | None, ...]


class Running(NamedTuple):
    """A call under way.

    Attributes:
        key: what its beginning and its end have in common: the function's id, the direction.
        frame: the one that runs the function.
        call: what the hook remembers of it.
    """

    key: tuple[int, str]
    frame: FrameType | None
    call: Any


class CallHook(FunctionHook):
    """A subclass says what happens when a call begins and ends; ``direction`` is ``"forward"`` or
    ``"backward"``, ``around`` what it remembers of the call that this one is inside of, or None.
    """

    def __init__(self) -> None:
        self._running: dict[int, list[Running]] = {}
        """The calls under way, outermost first, by thread."""

    def call_begins(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Any
    ) -> Any:
        """A call begins: what is to be remembered of it."""

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

    def _begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        running = self._running.setdefault(threading.get_ident(), [])
        while running and not is_running(running[-1].frame):
            self.call_is_lost(running.pop().call)
        around = running[-1].call if running else None
        frame = frame_of_caller()
        call = self.call_begins(function, direction, arrays, around)
        running.append(Running((id(function), direction), frame, call))

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


def frame_of_caller() -> FrameType | None:
    """The frame that runs a function, from inside a hook's callback: the one that called it.

    Hooks are not told when a function raises, but its frame has left the stack then.
    """
    frame = inspect.currentframe()
    while frame is not None and not frame.f_code.co_name.endswith("_preprocess"):
        frame = frame.f_back
    while frame is not None and frame.f_code.co_name.endswith("_preprocess"):  # of a subclass, too
        frame = frame.f_back
    return frame


def is_running(frame: FrameType | None) -> bool:
    """Whether a frame is one of those that led here."""
    here = inspect.currentframe()
    while here is not None and here is not frame:
        here = here.f_back
    return here is not None

"""NVTXHook: names for what a GPU profiler shows.

Requirement: NVIDIA's profilers draw a time line of kernels, whose names say nothing about the
program. Ranges with the names of functions say which function each kernel belongs to. Hooks know
no array library, so it is the device's backend that has such ranges.

Not yet run on a GPU: the tests run it on a backend that writes down what it is told.
"""

from __future__ import annotations

import inspect
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tinynode.backend import Array, Arrays, Device, get_device
from tinynode.errors import DeviceError
from tinynode.function_hook import FunctionHook

if TYPE_CHECKING:
    from tinynode.function_node import FunctionNode

OptionalArrays = tuple[Array | None, ...]


class _Range(NamedTuple):
    """A range that is open: the function's id, the direction, and what runs the function."""

    key: tuple[int, str]
    frame: FrameType | None


class NVTXHook(FunctionHook):
    """Opens a range in the profiler's time line around every forward and backward.

    The ranges are called ``MatMul.forward``, ``MatMul.backward``, and so on, and nest as the
    functions do. They cost little where no profiler runs. To see them, run the program under
    ``nsys profile``.

        with NVTXHook():
            loss = model(x)
            loss.backward()

    Args:
        device: a device whose backend has ranges; the current device by default.

    Raises:
        DeviceError: the device's backend has no profiler ranges.
    """

    name = "NVTXHook"

    def __init__(self, device: str | Device | None = None) -> None:
        self._backend = cast(Any, backend_with("NVTXHook", "ranges", device).backend)
        self._open: dict[int, list[_Range]] = {}
        """The ranges that are open, outermost first, by thread."""

    def deleted(self, function: FunctionNode | None) -> None:
        if function is None:
            for _ in self._open.pop(threading.get_ident(), []):
                self._backend.range_pop()

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._push(function, "forward")

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._pop(function, "forward")

    def backward_preprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._push(function, "backward")

    def backward_postprocess(
        self, function: FunctionNode, in_data: OptionalArrays, out_grad: OptionalArrays
    ) -> None:
        self._pop(function, "backward")

    def _push(self, function: FunctionNode, direction: str) -> None:
        running = self._open.setdefault(threading.get_ident(), [])
        while running and not is_running(running[-1].frame):  # its function raised
            running.pop()
            self._backend.range_pop()
        self._backend.range_push(f"{function._impl_name}.{direction}")
        running.append(_Range((id(function), direction), frame_of_caller()))

    def _pop(self, function: FunctionNode, direction: str) -> None:
        """Close a range, and those inside it whose function raised: these saw no end."""
        running = self._open.get(threading.get_ident(), [])
        key = (id(function), direction)
        if not any(item.key == key for item in running):
            return  # the hook was registered after this function had begun
        while running.pop().key != key:
            self._backend.range_pop()
        self._backend.range_pop()


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


def backend_with(hook: str, capability: str, device: str | Device | None) -> Device:
    """The device, whose backend must have a capability that the hook needs.

    Raises:
        DeviceError: it has not.
    """
    found = get_device(device)
    if capability not in found.backend.capabilities:
        raise DeviceError(
            f"{hook}: device {found} has no {capability!r}, as GPUs do. Name one that has, as in "
            f'{hook}("cupy"), or make it the current device: with using_device("cupy"): ...'
        )
    return found

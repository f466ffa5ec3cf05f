"""NVTXHook: names for what a GPU profiler shows.

Requirement: NVIDIA's profilers draw a time line of kernels, whose names say nothing about the
program. Ranges with the names of functions say which function each kernel belongs to. Hooks know
no array library, so it is the device's backend that has such ranges.

Not yet run on a GPU: the tests run it on a backend that writes down what it is told.
"""

from __future__ import annotations

from typing import Any, cast

from tinynode.core.function_node import FunctionNode
from tinynode.devices import Device, Profiler, get_device, supports
from tinynode.errors import DeviceError
from tinynode.hooks.calls import CallHook, OptionalArrays


class NVTXHook(CallHook):
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
        super().__init__()
        found = device_with("NVTXHook", Profiler, "profiler ranges", device)
        self._backend = cast(Profiler, found.backend)

    def call_begins(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Any
    ) -> None:
        self._backend.range_push(f"{function._impl_name}.{direction}")

    def call_ends(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        call: Any,
        around: Any,
    ) -> None:
        self._backend.range_pop()

    def call_is_lost(self, call: Any) -> None:
        self._backend.range_pop()


def device_with(hook: str, part: type, title: str, device: str | Device | None) -> Device:
    """The device, whose backend must have the optional part that the hook needs.

    Raises:
        DeviceError: it has not.
    """
    found = get_device(device)
    if not supports(found.backend, part):
        raise DeviceError(
            f"{hook}: device {found} has no {title}, as GPUs do. Name one that has, as in "
            f'{hook}("cupy"), or make it the current device: with using_device("cupy"): ...'
        )
    return found

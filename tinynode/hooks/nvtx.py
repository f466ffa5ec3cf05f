"""NVTXHook: the names of functions in a GPU profiler.

Requirement: NVIDIA's profilers draw a time line of kernels, and a kernel's name says nothing about
the program. Ranges with the names of functions show the function of each kernel. Hooks know no
array library, so the ranges come from the device's backend.

Not yet run on a GPU: the tests use a backend that writes down the calls.
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
    functions do. Without a profiler, ranges cost little. Run the program under ``nsys profile``.

        with NVTXHook():
            loss = model(x)
            loss.backward()

    Args:
        device: a device with profiler ranges; the current device by default.

    Raises:
        DeviceError: the device's backend has no profiler ranges.
    """

    name = "NVTXHook"

    def __init__(self, device: str | Device | None = None) -> None:
        super().__init__()
        found = device_with("NVTXHook", Profiler, "profiler ranges", device)
        self._backend = cast(Profiler, found.backend)

    def begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        self._backend.range_push(f"{function._impl_name}.{direction}")

    def end(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        record: Any,
        outer: Any,
    ) -> None:
        self._backend.range_pop()

    def lose(self, record: Any, outer: Any) -> None:
        self._backend.range_pop()


def device_with(hook: str, part: type, title: str, device: str | Device | None) -> Device:
    """The device that a hook was given, by default the current device.

    Raises:
        DeviceError: the backend of the device lacks the optional part that the hook needs.
    """
    found = get_device(device)
    if not supports(found.backend, part):
        raise DeviceError(
            f"{hook}: device {found} has no {title}, as GPUs do. Name one that has, as in "
            f'{hook}("cupy"), or make it the current device: with using_device("cupy"): ...'
        )
    return found

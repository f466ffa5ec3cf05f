"""NVTXHook: names for what a GPU profiler shows.

Requirement: NVIDIA's profilers draw a time line of kernels, whose names say nothing about the
program. Ranges with the names of functions say which function each kernel belongs to. Hooks know
no array library, so it is the device's backend that has such ranges.

Not yet run on a GPU: the tests run it on a backend that writes down what it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tinynode.backend import Device, get_device
from tinynode.errors import DeviceError
from tinynode.hooks.calls import CallHook, OptionalArrays

if TYPE_CHECKING:
    from tinynode.function_node import FunctionNode


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
        self._backend = cast(Any, backend_with("NVTXHook", "ranges", device).backend)

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

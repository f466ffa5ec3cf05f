"""The hidden axes of the vmapped functions that run in this thread.

Requirement: a Variable from outside of a vmapped function may stand beside a Variable of one
example. So functions have to know the innermost hidden axis. Random draws need the length.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from tinynode.errors import VmapError


class HiddenAxis(NamedTuple):
    """The hidden axis of a running vmap.

    Attributes:
        device: the device of the batched arrays.
        below: the device of the wrapped arrays.
        size: the number of examples.
        moved: the Variables that moved from the device below to the batched device, by a write,
            with their state before.
    """

    device: Any
    below: Any
    size: int
    moved: list[tuple[Any, ...]]


class _HiddenAxes(threading.local):
    """The state of vmap in this thread.

    Attributes:
        stack: the hidden axes, from the outermost to the innermost.
        trials: the number of forwards, one inside of another, that a net tries to record.
        checks: the number of checks of arguments that run now, for which a net allows values.
    """

    def __init__(self) -> None:
        self.stack: list[HiddenAxis] = []
        self.trials = 0
        self.checks = 0


hidden_axes = _HiddenAxes()


def axis_of(backend: Any, function: str) -> HiddenAxis:
    """The hidden axis of a batched backend.

    Raises:
        VmapError: no vmapped function of the backend runs in this thread.
    """
    for axis in reversed(hidden_axes.stack):
        if axis.device.backend is backend:
            found: HiddenAxis = axis
            return found
    raise VmapError(
        f"{function}: random numbers were asked for on {backend.name} after the vmapped function "
        "returned. Draw the numbers inside of the function, or before vmap."
    )


def hides_variables(device: Any) -> bool:
    """True for the batched device of a net: Variables are inside of the arrays."""
    backend = device.backend
    return "batched" in backend.capabilities and bool(backend.library.is_recorded)


def is_inside(device: Any, other: Any) -> bool:
    """True if a device is batched over another device, by vmapped functions that run now."""
    for axis in hidden_axes.stack:
        if axis.below is other:
            other = axis.device
            if other is device:
                return True
    return False

"""The hidden axes of the vmapped functions that run in this thread.

Requirement: a Variable from outside of a vmapped function may stand beside a Variable of one
example. So functions have to know the innermost hidden axis. Random draws need the length.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinynode.errors import VmapError


class HiddenAxis:
    """The hidden axis of a call of a vmapped function.

    Each call has an axis of its own. Graphs that cross the border of the axis hold the object, so
    that no other call takes the same device while such a graph lives.

    Attributes:
        device: the device of the batched arrays.
        below: the device of the wrapped arrays.
        size: the number of examples.
        moved: the Variables that moved from the device below to the batched device, by a write,
            with their state before.
        shared: while a net is recorded, the Variables that stand for those from outside.
        counterparts: for the device of another, finished vmap: the axis of the device over this
            axis. A backward pass through the finished vmap runs there.
    """

    def __init__(self, device: Any, below: Any, size: int) -> None:
        self.device = device
        self.below = below
        self.size = size
        self.moved: list[tuple[Any, ...]] = []
        self.shared: list[Any] = []
        self.counterparts: dict[Any, HiddenAxis] = {}


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


@contextmanager
def running_inside(axes: Sequence[HiddenAxis]) -> Iterator[None]:
    """A context in which vmapped functions run again, for a backward pass after their end.

    Nothing is done inside of another vmapped function.
    """
    stack = hidden_axes.stack
    if any(axis not in axes for axis in stack):
        yield
        return
    hidden_axes.stack = list(axes)
    try:
        yield
    finally:
        hidden_axes.stack = stack


@contextmanager
def only_axes_of(device: Any) -> Iterator[None]:
    """A context with the hidden axes of a batched device alone; none for other devices.

    A function of whole batches runs there, in the middle of a vmapped function.
    """
    before = hidden_axes.stack
    hidden_axes.stack = [axis for axis in before if is_over(device, axis.device)]
    try:
        yield
    finally:
        hidden_axes.stack = before


def axis_of(backend: Any, function: str) -> HiddenAxis:
    """The hidden axis of a batched backend.

    Raises:
        VmapError: no vmapped function of the backend runs in this thread.
    """
    for axis in reversed(hidden_axes.stack):
        if axis.device.backend is backend:
            return axis
    raise VmapError(
        f"{function}: random numbers were asked for on {backend.name} after the vmapped function "
        "returned. Draw the numbers inside of the function, or before vmap."
    )


def hides_variables(device: Any) -> bool:
    """True for the batched device of a net: Variables are inside of the arrays."""
    backend = device.backend
    return "batched" in backend.capabilities and bool(backend.library.is_recorded)


def below(device: Any) -> Any:
    """The device of the wrapped arrays of a batched device; None for other devices."""
    backend = device.backend
    return backend.library.device if "batched" in backend.capabilities else None


def is_over(device: Any, other: Any) -> bool:
    """True if a device is another, or is batched over the other."""
    while device is not None and device is not other:
        device = below(device)
    return device is other

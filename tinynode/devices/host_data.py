"""Host data: arrays of NumPy on their way to a device with memory of its own.

Requirement: one setting moves a program. An array of NumPy is not committed to a device. So a
function copies the array to the device of the Variables beside it, else to the current device. On
``numpy`` and ``fast``, which compute in NumPy's memory, nothing is copied. An array of another
library never moves in silence.

A copy takes time, so copies are counted: ``tinynode.show.transfers()`` prints the counts.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.devices.arrays import array_of_scalar
from tinynode.devices.device import Device
from tinynode.devices.hidden_axes import below
from tinynode.devices.registry import current_device


class Transfer:
    """The number of copies by a function to a device, and the total of bytes."""

    __slots__ = ("copies", "nbytes")

    def __init__(self) -> None:
        self.copies = 0
        self.nbytes = 0


transfers: dict[tuple[str, str], Transfer] = {}
"""The copies from the host so far, by function and device."""


def from_host_data(value: Any, function: str, device: Device | None = None) -> Any:
    """An array or a scalar of NumPy as an array of a device; other objects unchanged.

    ``device`` is by default the current one. In a vmapped function all examples share the array,
    so it goes to the device below the hidden axes.
    """
    if not isinstance(value, numpy.ndarray | numpy.generic):
        return value
    target = device or current_device()
    if type(value) in target.array_types:  # quicker than the questions below
        return value
    while below(target) is not None:
        target = below(target)
    value = array_of_scalar(value, target)
    if not is_host_data(value) or target.owns(value):
        return value
    count_transfer(function, target, value.nbytes)
    return target.from_host(value)


def is_host_data(value: object) -> bool:
    """True for an array of NumPy with bools or numbers; a subclass may be of another backend."""
    is_numpys = type(value) in (numpy.ndarray, numpy.memmap)
    return is_numpys and value.dtype.kind in "biufc"  # type: ignore[attr-defined]


def count_transfer(function: str, device: Device, nbytes: int) -> None:
    """Count one copy from the host."""
    key = (function, device.name)
    transfer = transfers.get(key)
    if transfer is None:
        transfer = transfers.setdefault(key, Transfer())
    transfer.copies += 1
    transfer.nbytes += nbytes

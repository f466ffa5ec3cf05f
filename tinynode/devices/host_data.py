"""Host data: arrays of NumPy on their way to a device with memory of its own.

Requirement: one setting moves a program. An array of NumPy is not committed to a device. So a
function copies the array to the device of the Variables beside it, else to the current device. On
``numpy`` and ``fast``, which compute in NumPy's memory, nothing is copied. An array of another
library never moves in silence.

A copy takes time, so copies are counted: ``tinynode.show.transfers()`` prints the counts.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from tinynode.devices.arrays import array_of_scalar
from tinynode.devices.device import Device
from tinynode.devices.hidden_axes import below
from tinynode.devices.registry import current_device


class HostCopy(NamedTuple):
    """One copy from the host.

    Attributes:
        function: the name of the function that was given the array.
        device: the name of the device.
        nbytes: the size of the array.
        seconds: the time that the host spent.
        is_again: True if the same memory, of an array that still exists, was copied before.
    """

    function: str
    device: str
    nbytes: int
    seconds: float
    is_again: bool


class Transfer:
    """The copies by a function to a device.

    Attributes:
        copies: the number of copies.
        again: the number of copies of memory that was copied before.
        nbytes: the total of bytes.
    """

    __slots__ = ("again", "copies", "nbytes")

    def __init__(self) -> None:
        self.copies = 0
        self.again = 0
        self.nbytes = 0


transfers: dict[tuple[str, str], Transfer] = {}
"""The copies from the host so far, by function and device."""
MOST_KNOWN = 10_000
"""The most entries of ``_known``."""
_known: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
"""The memory that was copied, with its owner; an entry ends with the owner."""
copy_listeners: list[Callable[[HostCopy], None]] = []
"""Called after each copy; the core adds the function that tells hooks."""


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
    return copy_from_host(value, function, target)


def is_host_data(value: object) -> bool:
    """True for an array of NumPy with bools or numbers; a subclass may be of another backend."""
    is_numpys = type(value) in (numpy.ndarray, numpy.memmap)
    return is_numpys and value.dtype.kind in "biufc"  # type: ignore[attr-defined]


def copy_from_host(array: Any, function: str, device: Device) -> Any:
    """Copy an array of NumPy to a device, and count the copy."""
    start = time.perf_counter()
    copied = device.from_host(array)
    seconds = time.perf_counter() - start
    host_copy = HostCopy(function, device.name, array.nbytes, seconds, _is_known(array, device))
    _count(host_copy)
    for listener in copy_listeners:
        listener(host_copy)
    return copied


def clear_transfers() -> None:
    """Count from zero, and forget the memory that was copied."""
    transfers.clear()
    _known.clear()


def _count(host_copy: HostCopy) -> None:
    key = (host_copy.function, host_copy.device)
    transfer = transfers.get(key)
    if transfer is None:
        transfer = transfers.setdefault(key, Transfer())
    transfer.copies += 1
    transfer.again += host_copy.is_again
    transfer.nbytes += host_copy.nbytes


def _is_known(array: Any, device: Device) -> bool:
    """True if the memory of the array was copied to the device before; then it is known."""
    owner = array
    while isinstance(owner.base, numpy.ndarray):
        owner = owner.base
    address = array.__array_interface__["data"][0]
    key = (id(owner), address, array.shape, array.strides, array.dtype.str, device.name)
    is_known = key in _known
    if len(_known) > MOST_KNOWN:
        _known.clear()  # of a loop over parts of a large array
    _known[key] = owner
    return is_known

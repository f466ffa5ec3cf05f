"""Parameter: a Variable that is trained.

Requirement: a Module finds what it has to train, save and move by type alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tinynode.core.hooks import thread_hooks
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Device,
    find_device,
    get_device,
    is_array,
    to_host,
    using_device,
)
from tinynode.errors import DeviceMixError, OperandError, describe


class Parameter(Variable):
    """A leaf Variable that an optimizer changes.

    Args:
        array: its first value: an array of a floating dtype.
        name: shown in pictures of the graph and in messages.
        grad: an initial gradient.
        requires_grad: False freezes it.
        device: where it stands, if the array lies there; None means the current device, or where
            the array lies.

    Raises:
        TypeError: ``array`` is not an array of a floating dtype, or not on that device.
    """

    __slots__ = ()

    def __init__(
        self,
        array: Array,
        *,
        name: str | None = None,
        grad: Array | None = None,
        requires_grad: bool = True,
        device: str | Device | None = None,
    ) -> None:
        if isinstance(array, Variable) or not is_array(array):
            raise OperandError(
                f"Parameter: array must be an array of a floating dtype, got {describe(array)}. "
                "Give the array of a Variable (x.array), or tinynode.asarray(...).array."
            )
        with _standing_on("Parameter", array, device):
            super().__init__(array, name=name, grad=grad, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return self._text("parameter", ", ")

    def __str__(self) -> str:
        return self._text("parameter", " ")


class Buffer(Variable):
    """A Variable that belongs to a Module's state, and is not trained: a running mean.

    Args:
        array: its first value: an array.
        name: shown in messages.
        device: as for ``Parameter``.

    Raises:
        TypeError: ``array`` is not an array, or not on that device.
    """

    __slots__ = ()

    def __init__(
        self,
        array: Array,
        *,
        name: str | None = None,
        device: str | Device | None = None,
        **ignored: Any,
    ) -> None:
        with _standing_on("Buffer", array, device):
            super().__init__(array, name=name, requires_grad=False)

    def __repr__(self) -> str:
        return self._text("buffer", ", ")

    def __str__(self) -> str:
        return self._text("buffer", " ")


def _standing_on(
    what: str, array: Array, device: str | Device | None
) -> AbstractContextManager[Any]:
    """A block in which a Variable on an array gets the device that was asked for, if one was."""
    if device is None:
        return nullcontext()
    target = get_device(device)
    if is_array(array) and not target.holds(array):
        raise DeviceMixError(
            f"{what}: array is on {find_device(array, target)}, not on {target}. Make it there: "
            f"tinynode.asarray(array, device={str(target)!r}).array."
        )
    return using_device(target)


def assign(variable: Variable, array: Array, device: Device) -> None:
    """Give a Variable a new array that stands on ``device``.

    Two devices may share one kind of memory, so an array alone does not tell its device.
    """
    if not thread_hooks() and variable.is_like(array, device):  # the usual case, quickly
        variable.replace_array(array, device)
        return
    with using_device(device):
        variable.array = array


def assign_gradient(variable: Variable, grad: Array, device: Device) -> None:
    """Give a Variable a gradient that stands on ``device``."""
    with using_device(device):
        variable.grad = grad


def moved(array: Array, device: Device) -> Array:
    """An array of any device, on ``device``."""
    return device.from_host(to_host(array))


def fresh_copy(host: Any, device: Device) -> Array:
    """A host array on ``device``, in memory of its own."""
    return device.from_host(host.copy())

"""Parameter: a Variable that is trained.

Requirement: a Module finds what it has to train, save and move by type alone.
"""

from __future__ import annotations

from typing import Any

from tinynode.backend import Array, Device, find_device, to_host, using_device
from tinynode.errors import OperandError, describe
from tinynode.variable import Variable


class Parameter(Variable):
    """A leaf Variable that an optimizer changes.

    Args:
        array: its first value: an array of a floating dtype.
        name: shown in pictures of the graph and in messages.
        grad: an initial gradient.
        requires_grad: False freezes it.

    Raises:
        TypeError: ``array`` is not an array of a floating dtype.
    """

    __slots__ = ()

    def __init__(
        self,
        array: Array,
        *,
        name: str | None = None,
        grad: Array | None = None,
        requires_grad: bool = True,
    ) -> None:
        if isinstance(array, Variable) or find_device(array) is None:
            raise OperandError(
                f"Parameter: array must be an array of a floating dtype, got {describe(array)}. "
                "Give the array of a Variable (x.array), or tinynode.asarray(...).array."
            )
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

    Raises:
        TypeError: ``array`` is not an array.
    """

    __slots__ = ()

    def __init__(self, array: Array, *, name: str | None = None, **ignored: Any) -> None:
        super().__init__(array, name=name, requires_grad=False)

    def __repr__(self) -> str:
        return self._text("buffer", ", ")

    def __str__(self) -> str:
        return self._text("buffer", " ")


def assign(variable: Variable, array: Array, device: Device) -> None:
    """Give a Variable a new array that stands on ``device``.

    Two devices may share one kind of memory, so an array alone does not tell its device.
    """
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

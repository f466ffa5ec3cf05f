"""Parameter: a trained Variable. Buffer: a saved, untrained Variable.

Requirement: a Module finds the Variables to train, save and move by type alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Device,
    array_of_scalar,
    find_device,
    get_device,
    is_array,
    is_host_data,
    to_host,
    using_device,
)
from tinynode.errors import DeviceMixError, OperandError, SizeError, describe, short_text


class Parameter(Variable):
    """A leaf Variable, trained by an optimizer.

        >>> p = nn.Parameter(np.array([1.0, 2.0]), name="scale")
        >>> p.requires_grad, p.name
        (True, 'scale')

    Args:
        array: the first value: an array of a floating dtype.
        name: shown in pictures of the graph and in messages.
        grad: an initial gradient.
        requires_grad: False freezes the parameter.
        device: the device of the array; by default the current device if the array is there, else
            the array's own.

    Raises:
        TypeError: ``array`` is not an array of a floating dtype, or is not on ``device``.
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
        array = array_of_scalar(array, None if device is None else get_device(device))
        if isinstance(array, Variable) or not is_array(array):
            raise OperandError(
                f"Parameter: array must be an array of a floating dtype, got {describe(array)}. "
                "Give the array of a Variable (x.array), or tinynode.asarray(...).array."
            )
        with _with_device("Parameter", array, device):
            super().__init__(array, name=name, grad=grad, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return self._text("parameter", ", ")

    def __str__(self) -> str:
        return self._text("parameter", " ")


def new_parameter(
    name: str, initializer: Callable[..., Array], shape: tuple[int, ...], dtype: Any, device: Any
) -> Parameter:
    """A Parameter with a name, drawn by an initializer such as ``nn.initializers.zeros``.

    Raises:
        SizeError: the array would be too large.
    """
    try:
        array = initializer(shape, dtype=dtype, device=device)
    except SizeError as error:
        raise SizeError(
            f"Parameter: {name} of shape {short_text(shape)} is too large: {error}"
        ) from error
    return Parameter(array, name=name, device=device)


class Buffer(Variable):
    """A Variable of a Module's state without training, such as a running mean.

    Args:
        array: the first value: an array.
        name: shown in messages.
        device: as for ``Parameter``.

    Raises:
        TypeError: ``array`` is not an array, or is not on ``device``.
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
        with _with_device("Buffer", array, device):
            super().__init__(array, name=name, requires_grad=False)

    def __repr__(self) -> str:
        return self._text("buffer", ", ")

    def __str__(self) -> str:
        return self._text("buffer", " ")


def _with_device(
    owner: str, array: Array, device: str | Device | None
) -> AbstractContextManager[Any]:
    """A ``with`` block in which ``device``, if given, is the current device.

    Raises:
        DeviceMixError: the array is on another device.
    """
    if device is None:
        return nullcontext()
    target = get_device(device)
    if is_array(array) and not is_host_data(array) and not target.holds(array):
        raise DeviceMixError(
            f"{owner}: array is on {find_device(array, target)}, not on {target}. Make it there: "
            f"tinynode.asarray(array, device={str(target)!r}).array."
        )
    return using_device(target)


def assign_gradient(variable: Variable, grad: Array, device: Device) -> None:
    """Give a Variable a gradient on ``device``."""
    with using_device(device):
        variable.grad = grad


def moved(array: Array, device: Device) -> Array:
    """A copy on ``device`` of an array of any device."""
    return device.from_host(to_host(array))


def fresh_copy(host: Any, device: Device) -> Array:
    """A copy of a host array on ``device``, in separate memory."""
    return device.from_host(host.copy())

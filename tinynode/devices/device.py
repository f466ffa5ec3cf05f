"""Device: a backend plus an index, written ``numpy``, ``cupy:1``, ``strict:device1``.

Requirement: a Variable has the device in a slot, so no operation searches for the device. There is
a single Device object for each device, so devices are compared with ``is``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from tinynode.devices.dtypes import FLOATING, kind_of_dtype
from tinynode.devices.loader import backend_origin
from tinynode.devices.protocol import Array, Backend, CurrentDevice, supports
from tinynode.errors import DeviceError, OperandError, describe


class Device:
    """A backend plus an index. Each device has a single object: compare with ``is``."""

    __slots__ = (
        "active",
        "array_types",
        "backend",
        "floating_dtypes",
        "index",
        "name",
        "scalar_types",
        "xp",
    )

    def __init__(self, backend: Backend, index: str, name: str) -> None:
        self.backend = backend
        self.index = index
        self.name = name
        self.xp = namespace_from(backend)
        self.active: Callable[[], AbstractContextManager[Any]] = nullcontext
        """``with device.active():`` makes the device current in the library, if possible."""
        if supports(backend, CurrentDevice):
            self.active = partial(backend.on_device, index)
        self.array_types: set[type] = set()
        """The array types of the backend so far: the quick form of ``owns``."""
        self.scalar_types: set[type] = set()
        """The types of scalars lifted so far: ``xp.asarray`` makes 0-d arrays of them."""
        self.floating_dtypes: set[Any] = set()
        """The real floating dtypes met so far: the quick form of ``is_differentiable``."""

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def owns(self, array: object) -> bool:
        """True if an object is an array of this device's library."""
        if type(array) in self.array_types:
            return True
        if not self.backend.owns(array):
            return False
        if "batched" not in self.backend.capabilities:  # whose devices have one type of arrays
            self.array_types.add(type(array))
        return True

    def holds(self, array: object) -> bool:
        """True if an array lies on this device. Another backend may own the array as well."""
        return self.owns(array) and self.backend.index_of(array) == self.index

    def from_host(self, array: Array) -> Array:
        """A NumPy array, on this device.

        Raises:
            DeviceError: the device has gone since it was first used.
            OperandError: the device does not have the array's dtype.
        """
        try:
            return self.backend.from_host(array, self.index)
        except Exception as error:
            self._explain(error)
            if isinstance(error, TypeError):
                raise OperandError(
                    f"{self.name} cannot hold {describe(array)}. Cast the array first, such as by "
                    f"array.astype('float32'), or choose another device. The library: {error}"
                ) from error
            raise

    def is_differentiable(self, array: Array | None) -> bool:
        """True if an array of this device has a floating dtype, real or complex; False for None.

        A real dtype is remembered in ``floating_dtypes``.
        """
        if array is None:
            return False
        kind = kind_of_dtype(self.xp, array.dtype)
        if kind == FLOATING:
            self.floating_dtypes.add(array.dtype)
        return kind >= FLOATING

    def lift(self, value: Any) -> Array:
        """An array as it is, a scalar of the array library as a 0-d array, None for others."""
        if type(value) in self.scalar_types:
            return self.xp.asarray(value)
        if type(value) in self.array_types or self.owns(value):
            return value
        array = self.backend.lift(value)
        if array is not None:
            self.scalar_types.add(type(value))
        return array

    def synchronize(self) -> None:
        """Wait until the device has finished the work.

        Raises:
            DeviceError: the device has gone since it was first used.
        """
        try:
            self.backend.synchronize(self.index)
        except Exception as error:
            self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        """Raise a DeviceError if the reason for an error is that the device has gone."""
        if self.index not in indices_of(self.backend):
            raise DeviceError(
                f"{self.name}: this device has gone; {existing_devices(self.backend)}. Variables "
                "on it are lost: make new ones on another device."
            ) from error


def indices_of(backend: Backend) -> tuple[str, ...]:
    """The indices that a backend's ``devices()`` gives.

    Raises:
        DeviceError: ``devices()`` fails, or gives no tuple of texts.
    """
    try:
        indices: Any = backend.devices()
    except DeviceError:
        raise
    except Exception as error:
        raise _broken(backend, f"devices() raises {type(error).__name__}: {error}") from error
    if isinstance(indices, tuple | list) and all(isinstance(index, str) for index in indices):
        return tuple(indices)
    raise _broken(backend, f"devices() must give a tuple of texts, it gives {indices!r}")


def namespace_from(backend: Backend) -> Any:
    """A backend's ``namespace()``.

    Raises:
        DeviceError: it fails.
    """
    try:
        return backend.namespace()
    except DeviceError:
        raise
    except Exception as error:
        raise _broken(backend, f"namespace() raises {type(error).__name__}: {error}") from error


def _broken(backend: Backend, reason: str) -> DeviceError:
    origin = backend_origin(backend.name)
    return DeviceError(
        f"backend {backend.name!r} (from {origin}) cannot be used: {reason}. "
        "Mend or remove it, or use another: `python -m tinynode backends` lists them."
    )


def device_name(backend: Backend, index: str) -> str:
    """The name of a device: the backend's name alone if the backend has a single device."""
    return backend.name if len(indices_of(backend)) == 1 else f"{backend.name}:{index}"


def device_names(backend: Backend) -> list[str]:
    """The names of all devices of a backend."""
    return [device_name(backend, index) for index in indices_of(backend)]


def existing_devices(backend: Backend) -> str:
    """For messages: the devices that a backend has here."""
    return f"there are: {', '.join(device_names(backend)) or 'none'}"

"""Dtypes, constants, and the namespace's self-description."""

from __future__ import annotations

import math
from typing import Any

from tinynode.array_api.base import NamespaceBase
from tinynode.core.array_methods import ArrayMethods
from tinynode.devices import Device, get_device, is_array
from tinynode.devices.device import device_names


class Info:
    """The result of ``__array_namespace_info__()``: capabilities, dtypes and devices.

    The array library gives the answers. Devices are tinynode's Devices.
    """

    def __init__(self, home: Device, xp: Any) -> None:
        self._home = home
        self._info = xp.__array_namespace_info__()

    def capabilities(self) -> dict[str, Any]:
        """Whether boolean indices work, and shapes by values."""
        found: dict[str, Any] = self._info.capabilities()
        return found

    def default_device(self) -> Device:
        """The device of new arrays."""
        return self._home

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind."""
        found: dict[str, Any] = self._info.default_dtypes()
        return found

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by name; all, or of certain kinds."""
        found: dict[str, Any] = self._info.dtypes(kind=kind)
        return found

    def devices(self) -> tuple[Device, ...]:
        """All devices of the backend."""
        return tuple(get_device(name) for name in device_names(self._home.backend))


class DataTypes(NamespaceBase):
    """The dtypes of the array library, the constants, and questions about dtypes."""

    e = math.e
    inf = math.inf
    nan = math.nan
    newaxis = None
    pi = math.pi

    def __init__(self, home: Device) -> None:
        super().__init__(home)
        xp = self._xp
        self.bool = xp.bool
        self.int8, self.int16, self.int32, self.int64 = xp.int8, xp.int16, xp.int32, xp.int64
        self.uint8 = xp.uint8
        self.float32, self.float64 = xp.float32, xp.float64
        self.complex64, self.complex128 = xp.complex64, xp.complex128
        for name in ("uint16", "uint32", "uint64", "float16"):  # not in all libraries
            if hasattr(xp, name):
                setattr(self, name, getattr(xp, name))

    def __array_namespace_info__(self) -> Info:
        """Capabilities, dtypes and devices."""
        return Info(self._home, self._xp)

    def can_cast(self, from_: Any, to: Any, /) -> Any:
        """True if a dtype, or the dtype of an array, casts to another without loss of kind."""
        return self._xp.can_cast(raw_or_dtype(from_), to)

    def finfo(self, type: Any, /) -> Any:
        """The limits of a floating dtype, or of the dtype of an array."""
        return self._xp.finfo(dtype_of(type))

    def iinfo(self, type: Any, /) -> Any:
        """The limits of an integer dtype, or of the dtype of an array."""
        return self._xp.iinfo(dtype_of(type))

    def isdtype(self, dtype: Any, kind: Any) -> Any:
        """True if a dtype is of a kind: "bool", "integral", "real floating", "numeric" ..."""
        return self._xp.isdtype(dtype, kind)

    def result_type(self, *arrays_and_dtypes: Any) -> Any:
        """The dtype of an operation on arrays, dtypes and numbers."""
        return self._xp.result_type(*[raw_or_dtype(x) for x in arrays_and_dtypes])


def raw_or_dtype(x: Any) -> Any:
    """The array of a Variable; others unchanged."""
    return x.raw if isinstance(x, ArrayMethods) else x


def dtype_of(x: Any) -> Any:
    """The dtype of a Variable or of an array; a dtype unchanged."""
    if isinstance(x, ArrayMethods) or (not isinstance(x, type) and is_array(x)):
        return x.dtype
    return x

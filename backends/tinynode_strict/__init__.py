"""array_api_strict as a backend: what the Array API standard has, and nothing more.

Requirement: no NumPy-ism survives, in tinynode or in a program of a user. The library refuses
every function, argument and promotion that the standard does not name. It also plays several
devices: arrays of different ones do not mix, and those that are not on ``CPU_DEVICE`` refuse to
become NumPy arrays silently.
"""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy

from tinynode.errors import DeviceError

name = "strict"
capabilities = frozenset({"cpu", "float64"})

_DEVICES = {
    index: array_api_strict.Device(index) for index in ("CPU_DEVICE", "device1", "device2")
}
_INDICES = {device: index for index, device in _DEVICES.items()}
_ARRAY_TYPE = type(array_api_strict.zeros(()))
_PLAIN = _ARRAY_TYPE.__array__


def _array(x: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """``numpy.asarray(x)``: refused off the CPU, and the error names the cure, as CuPy's does."""
    if index_of(x) != "CPU_DEVICE":
        raise DeviceError(
            f"numpy.asarray: this array is on strict:{index_of(x)}, and functions of NumPy take "
            "arrays of the host. Write tinynode.to_host(x), or a function of tinynode."
        )
    return _PLAIN(x, dtype, copy)


_ARRAY_TYPE.__array__ = _array


def devices() -> tuple[str, ...]:
    return tuple(_DEVICES)


def namespace() -> Any:
    return array_api_strict


def owns(array: object) -> bool:
    return isinstance(array, _ARRAY_TYPE)


def index_of(array: Any) -> str:
    return _INDICES[array.device]


def from_host(array: Any, index: str) -> Any:
    return array_api_strict.asarray(array, device=_DEVICES[index], copy=True)


def to_host(array: Any) -> Any:
    return numpy.asarray(array.to_device(_DEVICES["CPU_DEVICE"]))


def synchronize(index: str) -> None:
    """array_api_strict computes with NumPy, which has always finished when a call returns."""


def lift(value: object) -> None:
    """There are no scalars: every result of array_api_strict is an array already."""


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    return node.forward(arrays)

"""The namespace of a device, and how to get one."""

from __future__ import annotations

from typing import Any

from tinynode.array_api.base import NamespaceBase
from tinynode.array_api.creation import CreationFunctions
from tinynode.array_api.dtypes import DataTypes
from tinynode.array_api.elementwise import ElementwiseFunctions
from tinynode.array_api.fourier import Fourier
from tinynode.array_api.linear_algebra import LinearAlgebra
from tinynode.array_api.manipulation import Manipulation
from tinynode.array_api.searching import Searching
from tinynode.array_api.special import Special
from tinynode.array_api.statistical import Statistical
from tinynode.core.array_methods import ArrayMethods
from tinynode.devices import Device, current_device, find_device, get_device
from tinynode.errors import DeviceMixError, OperandError, describe
from tinynode.functions.shared_memory import shared_memory

API_VERSION = "2025.12"
"""The release of the Array API standard for all namespaces."""
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", API_VERSION)
"""The releases that may be asked for."""

namespaces: dict[Device, ArrayNamespace] = {}
"""The only namespace of each device."""


class LinAlgNamespace(LinearAlgebra):
    """The extension ``linalg`` of a device."""

    def _beside(self, device: Device) -> NamespaceBase:
        return namespace_of_device(device).linalg


class FFTNamespace(Fourier):
    """The extension ``fft`` of a device."""

    def _beside(self, device: Device) -> NamespaceBase:
        return namespace_of_device(device).fft


class ArrayNamespace(
    ElementwiseFunctions, Statistical, Searching, Manipulation, CreationFunctions, DataTypes
):
    """The Array API standard 2025.12 for Variables of a device: ``xp`` in other people's code.

    The differentiable functions call ``tinynode.functions``. Other functions compute on arrays and
    give Variables without a gradient. Raw arrays among the arguments are wrapped.

    Attributes:
        linalg: the extension for linear algebra, if the array library has the extension.
        fft: the extension for Fourier transforms, if the array library has the extension.
        special: special functions, beyond the standard.
        device: the device of new Variables.
    """

    __name__ = "tinynode.array_api"
    __array_api_version__ = API_VERSION

    def __init__(self, home: Device) -> None:
        super().__init__(home)
        self.device = home
        self.special = Special(home)
        if hasattr(self._xp, "linalg"):
            self.linalg = LinAlgNamespace(home)
        if hasattr(self._xp, "fft"):
            self.fft = FFTNamespace(home)

    def _beside(self, device: Device) -> NamespaceBase:
        return namespace_of_device(device)

    def __repr__(self) -> str:
        return f"<namespace tinynode.array_api of {self._home}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _namespace_of_name, (str(self._home),)


def namespace_of_device(device: Device) -> ArrayNamespace:
    """The namespace of a device: the same object at each call."""
    found = namespaces.get(device)
    if found is None:
        found = namespaces.setdefault(device, ArrayNamespace(device))
    return found


def _namespace_of_name(name: str) -> ArrayNamespace:
    """The namespace of a device with a name: the way back from a pickle."""
    return namespace_of_device(get_device(name))


def checked_namespace(device: Device, api_version: str | None) -> ArrayNamespace:
    """The result of ``x.__array_namespace__(api_version=...)``.

    Raises:
        ValueError: the release of the standard is unknown.
    """
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(
            f"x.__array_namespace__: api_version must be one of {', '.join(API_VERSIONS)}, got "
            f"{api_version!r}."
        )
    shared_memory.is_watched = True  # by code for any arrays, as NumPy's are
    return namespace_of_device(device)


def array_namespace(*arrays: Any) -> Any:
    """The namespace for code written once, for arrays and for Variables.

    With a Variable among the arguments: the differentiable namespace of its device. With arrays
    alone: the namespace of their library. Without arguments: the differentiable namespace of the
    current device. Numbers and None are passed over.

    Raises:
        DeviceMixError: the arguments are on several devices.
        OperandError: an argument is neither a Variable nor an array nor a number.
    """
    given = [x for x in arrays if x is not None and not isinstance(x, int | float | complex)]
    if not given:
        return namespace_of_device(current_device())
    variables = [x for x in given if isinstance(x, ArrayMethods)]
    home = variables[0].device if variables else _device_of(given[0])
    for x in given:
        lies_there = x.device is home if isinstance(x, ArrayMethods) else home.holds(x)
        if not lies_there:
            other = x.device if isinstance(x, ArrayMethods) else _device_of(x)
            raise DeviceMixError(
                f"array_namespace: the arguments are on {home} and on {other}. Move one of them "
                f"with tinynode.asarray(x, device={str(home)!r})."
            )
    return namespace_of_device(home) if variables else home.xp


def _device_of(x: Any) -> Device:
    """The device of an array."""
    device = None if isinstance(x, type) else find_device(x)
    if device is None:
        raise OperandError(
            f"array_namespace: the arguments must be Variables or arrays, got {describe(x)}. Make "
            "a Variable of it with tinynode.asarray(...)."
        )
    return device

"""Base of the namespaces: Variables from the arguments, and Variables around results.

Requirement: consumers compare namespaces by identity. So each device has a single namespace, and
the methods of the namespace are plain methods with the standard's signatures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

import array_api_compat
import numpy

from tinynode.configuration import config
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.conversion import as_variable
from tinynode.core.hooks import tell_value_read
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Array,
    Device,
    device_beside,
    from_host_data,
    get_device,
    is_over,
    own_backend,
)
from tinynode.errors import DeviceMixError, OperandError, describe
from tinynode.functions.operands import as_operands

NUMBERS = bool, int, float, complex, numpy.generic
"""Python's numbers and NumPy's scalars: beside an array, numbers take the dtype of the array."""


class Home:
    """Where new arrays go: a device, and the library of its arrays.

    Attributes:
        device: the device.
        xp: the library's namespace, or the closer one of array_api_compat.
        library_device: the library's own device, for the keyword ``device`` of its functions.
    """

    def __init__(self, device: Device) -> None:
        example = device.from_host(numpy.zeros(()))
        self.device = device
        self.xp = compatible_namespace(device, example)
        self.library_device = example.device

    def new(self, array: Array) -> Variable:
        """A Variable around an array of the device, outside of any graph."""
        lifted = self.device.lift(array)
        return wrap_array(array if lifted is None else lifted, self.device, False)


class NamespaceBase:
    """The common base of all parts of a namespace.

    Args:
        home: the device of new arrays.
    """

    def __init__(self, home: Device) -> None:
        self._place = Home(home)
        self._home = home
        self._xp = self._place.xp
        self._library_device = self._place.library_device

    # --- arguments -------------------------------------------------------------------------

    def _lift(self, function: str, x: Any) -> Variable:
        """An argument as a Variable; an array requires no gradient."""
        if isinstance(x, ArrayMethods):
            return as_variable(x)
        if isinstance(x, NUMBERS):
            return self._new(self._xp.asarray(plain_number(x), device=self._library_device))
        x = from_host_data(x, f"xp.{function}", self._home)
        device = None if isinstance(x, type) else device_beside(x, self._home)
        if device is not None and is_over(self._home, device):
            return wrap_array(x, device, False)
        if device is not None:
            raise DeviceMixError(
                f"xp.{function}: the argument is an array on {device}, the namespace is that of "
                f"{self._home}. Move the array with "
                f"tinynode.asarray(x, device={str(self._home)!r})."
            )
        raise OperandError(
            f"xp.{function}: the argument must be a Variable or an array, got {describe(x)}. "
            "Make a Variable of it with xp.asarray(...)."
        )

    def _pair(self, function: str, x1: Any, x2: Any) -> tuple[Any, Any]:
        """Two arguments: Variables. A number beside an array stays a number."""
        first, second = isinstance(x1, NUMBERS), isinstance(x2, NUMBERS)
        if first and not second:
            return x1, self._lift(function, x2)
        if second and not first:
            return self._lift(function, x1), x2
        return self._lift(function, x1), self._lift(function, x2)

    def _cast(self, function: str, x: Any, dtype: Any) -> Variable:
        """An argument as a Variable, of the dtype ``dtype``, if given."""
        variable = self._lift(function, x)
        return variable if dtype is None or variable.dtype == dtype else variable.astype(dtype)

    # --- arrays, and Variables around arrays -----------------------------------------------

    def _new(self, array: Array) -> Variable:
        """A Variable around an array of the home device, outside of any graph."""
        return self._place.new(array)

    def _array(self, function: str, x: Any) -> Array:
        """The array of an argument, for a result without a gradient."""
        x = self._lift(function, x)
        tell_value_read(f"xp.{function}")
        return x.filled_array()

    def _two(self, function: str, x1: Any, x2: Any) -> tuple[Variable, Variable]:
        """Two arguments as Variables; a number takes the dtype of the other."""
        return as_operands(function, *self._pair(function, x1, x2), names=("x1", "x2"))

    def _arrays(self, function: str, x1: Any, x2: Any) -> tuple[Array, Array]:
        """The arrays of two arguments, for a result without a gradient."""
        x1, x2 = self._two(function, x1, x2)
        return self._array(function, x1), self._array(function, x2)

    def _array_without_rule(self, function: str, x: Any) -> Array:
        """The array of an argument of a function without a derivative rule.

        Raises:
            NotImplementedError: the argument requires a gradient.
        """
        x = self._lift(function, x)
        if x.requires_grad and config.enable_backprop:
            raise NotImplementedError(
                f"xp.{function}: there is no gradient rule for it with {describe(x)}, which "
                "requires a gradient. Pass x.detach() where no gradient is needed."
            )
        return self._array(function, x)

    def _at(self, device: Any) -> Home:
        """The place of new arrays on a device. None stands for the home."""
        if device is None or device is self._home or device is self._library_device:
            return self._place
        if isinstance(device, str | Device):
            return self._beside(get_device(device))._place
        if device == self._library_device:
            return self._place
        raise OperandError(
            f"xp: device must be a tinynode.Device or a name, got {describe(device)}. "
            "x.device is the device of a Variable x."
        )

    def _beside(self, device: Device) -> NamespaceBase:
        """The same part of the namespace of another device."""
        raise NotImplementedError


class Forwarder:
    """A row of the table: a method of the namespace that calls a function of tinynode.

    ``exp = OneArray(functions.exp)`` stands for a method ``exp``. Python binds the row to the
    namespace, as it binds a function in a class. ``__call__`` of a subclass has the signature.

    Args:
        function: the function or the FunctionNode class. The row has its docstring.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = f"{owner.__qualname__}.{name}"

    def __get__(self, namespace: NamespaceBase | None, owner: type) -> Callable[..., Variable]:
        return self if namespace is None else MethodType(self, namespace)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the method, for ``help``; the namespace stands for ``self``."""
        return inspect.signature(self.__call__)

    def __call__(self, namespace: NamespaceBase, /, *arrays: Any, **options: Any) -> Variable:
        """The result of the function for the arguments of the method."""
        raise NotImplementedError


def compatible_namespace(home: Device, example: Array) -> Any:
    """The array library's namespace, or the closer one of array_api_compat."""
    if own_backend(example) is not None or not array_api_compat.is_array_api_obj(example):
        return home.xp
    try:
        return array_api_compat.array_namespace(example)
    except ImportError:  # NumPy in a browser has no f2py, and array_api_compat asks for all parts
        return home.xp


def plain_number(x: Any) -> Any:
    """A NumPy scalar as a NumPy array of the same dtype; a Python number unchanged."""
    return numpy.asarray(x) if isinstance(x, numpy.generic) else x

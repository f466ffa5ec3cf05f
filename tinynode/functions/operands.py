"""What may stand beside a Variable.

Requirement: ``2 * x``, ``x + array`` and ``x * y`` all work, and anything else is an error that
says what was expected.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy

from tinynode.backend import COMPLEX, find_device, is_floating, is_integer, kind_of
from tinynode.errors import DeviceMixError, InvalidType, OperandError, describe, dtype_name
from tinynode.variable import Variable, wrap_array


def as_operands(
    function: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y")
) -> tuple[Variable, Variable]:
    """Two operands as Variables: a number or an array takes the other's device and dtype.

    ``names`` are those of the arguments, for messages.

    Raises:
        OperandError: neither a Variable, nor an array, nor a number.
        DeviceMixError: an array on another device than the Variable beside it.
    """
    if isinstance(x, Variable):
        return x, y if isinstance(y, Variable) else _beside(y, x, function, names[1])
    if isinstance(y, Variable):
        return _beside(x, y, function, names[0]), y
    x = as_operand(function, names[0], x)
    return x, _beside(y, x, function, names[1])


def as_operand(function: str, argument: str, value: Any) -> Variable:
    """A Variable as it is; an array wrapped, without requiring a gradient.

    Raises:
        OperandError: it is neither.
    """
    if isinstance(value, Variable):
        return value
    device = find_device(value)
    if device is None:
        raise OperandError(
            f"{function}: {argument} must be a Variable or an array, got {describe(value)}. "
            "Make a Variable of it with tinynode.asarray(...)."
        )
    return wrap_array(value, device, False)


def as_floating(function: str, argument: str, value: Any) -> Variable:
    """A Variable as it is; an array wrapped, without requiring a gradient.

    Raises:
        OperandError: it is neither, or not floating.
    """
    x = as_operand(function, argument, value)
    if not is_floating(x._array):
        raise OperandError(
            f"{function}: {argument} must be floating, got {describe(value)}. Cast it first with "
            "astype."
        )
    return x


def require_one_dtype(function: str, names: tuple[str, str], x: Variable, y: Variable) -> None:
    """Raises InvalidType if two Variables have different dtypes."""
    if x.dtype != y.dtype:
        first, second = dtype_name(x.dtype), dtype_name(y.dtype)
        raise InvalidType(
            f"{names[0]}.dtype == {names[1]}.dtype",
            f"{first} != {second}",
            f"{function}: {names[0]} is {first}, {names[1]} is {second}: cast one with astype.",
        )


def as_number(function: str, argument: str, value: Any) -> float:
    """A setting of a function as a float.

    Raises:
        OperandError: it is no real number.
    """
    if isinstance(value, int | float | numpy.integer | numpy.floating):
        return float(value)
    raise OperandError(f"{function}: {argument} must be a number, got {describe(value)}.")


def as_integer(function: str, argument: str, value: Any) -> int:
    """A setting of a function as an integer.

    Raises:
        OperandError: it is none.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise OperandError(f"{function}: {argument} must be an integer, got {describe(value)}.")
    return operator.index(value)


def _beside(value: Any, other: Variable, function: str, argument: str) -> Variable:
    """A number or an array as a Variable that fits beside ``other``."""
    if isinstance(value, bool | int | float | complex | numpy.generic):
        return _scalar_beside(value, other)
    found = find_device(value)
    if found is None:
        raise OperandError(
            f"{function}: {argument} must be a Variable, an array or a number, got "
            f"{describe(value)}. Make a Variable of it with tinynode.asarray(...)."
        )
    device = other._device
    if found is not device and not device.holds(value):
        raise DeviceMixError(
            f"{function}: {argument} is an array on {found}, beside a Variable on {device}. "
            f"Move it with tinynode.asarray({argument}, device={str(device)!r})."
        )
    if value.dtype != other.dtype and is_floating(other._filled()) and kind_of(value) < COMPLEX:
        value = device.xp.astype(value, other.dtype)
    return wrap_array(value, device, False)


def _scalar_beside(value: Any, other: Variable) -> Variable:
    """A number as a 0-d array. It is weak: it takes the other's dtype, if that can hold its kind.

    A 0-d array costs less in NumPy's arithmetic than a Python number.
    """
    reference = other._filled()
    number = value.item() if isinstance(value, numpy.generic) else value
    xp = other._device.xp
    if _fits(number, reference):
        array = xp.asarray(number, dtype=reference.dtype, device=reference.device)
    else:
        array = xp.asarray(number, device=reference.device)
    return wrap_array(array, other._device, False)


def _fits(number: Any, reference: Any) -> bool:
    if is_floating(reference):
        return not isinstance(number, complex)
    if isinstance(number, bool):
        return True
    return isinstance(number, int) and is_integer(reference)

"""Operands: the arguments of functions as Variables, checked.

Requirement: ``2 * x``, ``x + array`` and ``x * y`` all work; any other operand is an error that
names the expected types.

While a net is recorded, a ``RawArgument`` stands for each array among the arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from tinynode.core import messages
from tinynode.core.array_arguments import Operand, RawArgument, array_operand
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    COMPLEX,
    Device,
    device_beside,
    find_device,
    from_host_data,
    is_differentiable,
    is_floating,
    is_integer,
    is_over,
    kind_of,
    without_hidden_axes,
)
from tinynode.errors import (
    DeviceMixError,
    GraphError,
    InvalidType,
    OperandError,
    describe,
    dtype_name,
    short_text,
)
from tinynode.functions.attributes import INT64, Shape

PYTHON_NUMBERS = (float, int)
"""The types of most numbers beside a Variable: as floats, they fit into each floating dtype."""


def as_operands(
    function: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y"), beside: Any = None
) -> tuple[Variable, Variable]:
    """Two operands as Variables: a number or an array takes the other's device and dtype.

    ``names`` are the names of the arguments, for messages; ``beside`` is as for ``as_operand``.

    Raises:
        OperandError: neither a Variable, nor an array, nor a number.
        DeviceMixError: an array on another device than the Variable beside.
    """
    if isinstance(x, Variable):
        return (x, y) if isinstance(y, Variable) else (x, _beside(y, x, function, names[1]))
    if isinstance(y, Variable):
        return _beside(x, y, function, names[0]), y
    if isinstance(x, RawArgument):
        return x.variable, _beside_array(y, x.variable, function, names[1])
    if isinstance(y, RawArgument):
        return _beside_array(x, y.variable, function, names[0]), y.variable
    if (operand := array_operand(y)) is not None:
        return _beside(x, operand, function, names[0]), operand
    if _is_number(x) and not _is_number(y):
        y = as_operand(function, names[1], y, beside)
        return _beside(x, y, function, names[0]), y
    x = as_operand(function, names[0], x, beside)
    return x, _beside(y, x, function, names[1])


def as_operand(function: str, argument: str, value: Any, beside: Any = None) -> Variable:
    """A Variable unchanged; an array wrapped, without requiring a gradient.

    ``beside`` is another argument. The array goes to the device of a Variable there, and takes its
    dtype if both are floating.

    Raises:
        OperandError: the value is neither.
        DeviceMixError: an array on another device than the Variable beside.
    """
    if isinstance(value, Variable):
        return value
    x = _as_variable(function, argument, value, beside)
    return _in_dtype_beside(x, beside) if isinstance(beside, Variable) else x


def _as_variable(function: str, argument: str, value: Any, beside: Any) -> Variable:
    """``as_operand`` without a change of the dtype."""
    if isinstance(value, RawArgument):
        return value.variable
    if (operand := array_operand(value)) is not None:
        return operand
    if isinstance(beside, Variable):
        value = from_host_data(value, function, beside.device)
        return wrap_array(value, _device_beside(value, beside, function, argument), False)
    value = from_host_data(value, function)
    device = find_device(value)
    if device is None:
        raise OperandError(
            f"{function}: {argument} must be a Variable or an array, got {describe(value)}. "
            "Make a Variable of it with tinynode.asarray(...)."
        )
    return wrap_array(value, device, False)


def _in_dtype_beside(x: Variable, beside: Variable) -> Variable:
    """A floating array in the dtype of a floating Variable beside it."""
    is_near = x.device is beside.device or is_over(beside.device, x.device)
    if not is_near or x.dtype == beside.dtype:
        return x
    both_floating = is_floating(x.filled_array()) and is_floating(beside.filled_array())
    return x.astype(beside.dtype) if both_floating else x


def _device_beside(
    value: Any, other: Variable, function: str, argument: str, number: bool = False
) -> Device:
    """The device of a Variable, if the given array lies there."""
    device = other.device
    found = device_beside(value, device)
    if found is not None and is_over(device, found):
        return found  # below hidden axes: the FunctionNode shares the array with all examples
    if found is None:
        kinds = "a Variable, an array or a number" if number else "a Variable or an array"
        raise OperandError(
            f"{function}: {argument} must be {kinds}, got {describe(value)}. "
            "Make a Variable of it with tinynode.asarray(...)."
        )
    raise DeviceMixError(
        f"{function}: {argument} is an array on {found}, beside a Variable on {device}. "
        f"Move it with tinynode.asarray({argument}, device={str(device)!r})."
    )


def unchanged(x: Any) -> Variable:
    """An operand that is the result of a function: an array in a pass on arrays."""
    result: Variable = x.raw if type(x) is Operand else x
    return result


def as_operand_list(function: str, argument: str, values: Iterable[Any]) -> list[Variable]:
    """Variables unchanged; arrays wrapped, with the device and dtype of the first Variable.

    Raises:
        OperandError: a value is neither.
        DeviceMixError: an array on another device than the first Variable.
    """
    if not isinstance(values, Iterable):
        raise OperandError(
            f"{function}: {argument} must be a list of Variables or arrays, got "
            f"{describe(values)}."
        )
    given = list(values)  # a generator is read once
    first = first_variable(*given)
    operands = []
    for i, value in enumerate(given):
        if isinstance(value, Variable):
            operands.append(value)
            continue
        x = _as_variable(function, f"{argument}[{i}]", value, first)
        if first is not None and _is_cast(x.filled_array(), first):
            x = x.astype(first.dtype)
        operands.append(x)
    return operands


def first_variable(*arguments: Any) -> Variable | None:
    """The first Variable among the arguments of a function: arrays go to its device."""
    return next((x for x in arguments if isinstance(x, Variable)), None)


def as_floating(function: str, argument: str, value: Any, beside: Any = None) -> Variable:
    """A Variable unchanged; an array wrapped, without requiring a gradient.

    ``beside`` is as for ``as_operand``.

    Raises:
        OperandError: the value is neither, or not floating.
        DeviceMixError: an array on another device than the Variable beside.
    """
    x = as_operand(function, argument, value, beside)
    if not is_floating(x.raw):
        if is_differentiable(x.raw):
            raise _not_real(function, argument, value)
        raise OperandError(
            f"{function}: {argument} must be floating, got {describe(value)}. Cast it first with "
            "astype."
        )
    return x


def _not_real(function: str, argument: str, value: Any) -> OperandError:
    return OperandError(
        f"{function}: {argument} must be real, got {describe(value)}. Take real(x), imag(x) or "
        "abs(x); docs/complex.md lists the functions of complex numbers."
    )


def real_operands(function: str, x1: Any, x2: Any) -> tuple[Variable, Variable]:
    """``as_operands``, which are not complex.

    Raises:
        OperandError: an operand is complex, or no operand.
        DeviceMixError: an array on another device than the Variable beside.
    """
    names = ("x1", "x2")
    pair = as_operands(function, x1, x2, names)
    for name, one in zip(names, pair, strict=True):
        if is_differentiable(one.raw) and not is_floating(one.raw):
            raise _not_real(function, name, one)
    return pair


def as_differentiable(function: str, argument: str, value: Any) -> Variable:
    """As ``as_floating``, but complex numbers are taken, too.

    Raises:
        OperandError: the value is neither a Variable nor an array, or not floating.
    """
    x = as_operand(function, argument, value)
    if not is_differentiable(x.filled_array()):
        raise OperandError(
            f"{function}: {argument} must be floating, got {describe(value)}. Cast it first with "
            "astype."
        )
    return x


def require_one_dtype(function: str, names: tuple[str, str], x: Variable, y: Variable) -> None:
    """Raises InvalidType if two Variables have different dtypes.

    Dtypes of two libraries are compared by name: ``apply`` names the devices then.
    """
    if x.device is y.device and x.dtype == y.dtype:
        return
    first, second = dtype_name(x.dtype), dtype_name(y.dtype)
    if first != second:
        raise InvalidType(
            f"{names[0]}.dtype == {names[1]}.dtype",
            f"{first} != {second}",
            f"{function}: {names[0]} is {first}, {names[1]} is {second}: cast one with astype.",
        )


def is_number(value: Any) -> bool:
    """True for a Python number; False for a scalar of an array library."""
    if isinstance(value, numpy.generic):  # numpy.float64 is a Python float, too
        return False
    return isinstance(value, int | float) and array_operand(value) is None


def as_number(function: str, argument: str, value: Any) -> float:
    """A setting of a function as a float.

    Raises:
        OperandError: the value is no real number.
    """
    if isinstance(value, int | float | numpy.integer | numpy.floating):
        try:
            return float(value)
        except OverflowError:
            raise messages.number_too_large(function, argument, value) from None
    raise OperandError(f"{function}: {argument} must be a number, got {describe(value)}.")


def as_integer(function: str, argument: str, value: Any) -> int:
    """A setting of a function as an integer of at most 64 bits.

    Raises:
        OperandError: the value is no integer.
        SizeError: the integer has more than 64 bits.
    """
    return checked_range(function, argument, as_label(function, argument, value))


def as_label(function: str, argument: str, value: Any) -> int:
    """An integer of any size: a label that no array can hold is equal to no label.

    Raises:
        OperandError: the value is no integer.
    """
    if not is_index(value):
        raise OperandError(f"{function}: {argument} must be an integer, got {describe(value)}.")
    return operator.index(value)


def checked_range(function: str, argument: str, number: int) -> int:
    """The integer, if an int64 can hold it. No array has more elements.

    Raises:
        SizeError: the integer has more than 64 bits.
    """
    if INT64.takes(number):
        return number
    raise messages.number_too_large(function, argument, number)


def is_index(value: Any) -> bool:
    """True for integers, and for integer arrays without axes; bools are no index."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _beside(value: Any, other: Variable, function: str, argument: str) -> Variable:
    """A number or an array as a Variable, with the dtype for a place beside ``other``."""
    if type(value) in PYTHON_NUMBERS:  # the usual case, quickly
        return _scalar_beside(value, other, function, argument)
    if thread_state.array_device and (operand := array_operand(value)) is not None:
        return operand
    if isinstance(value, bool | int | float | complex | numpy.generic):
        return _scalar_beside(value, other, function, argument)
    if isinstance(value, RawArgument):
        is_cast = _is_cast(value.raw, other)
        return value.variable.astype(other.dtype) if is_cast else value.variable
    value = from_host_data(value, function, other.device)
    device = _device_beside(value, other, function, argument, number=True)
    if _is_cast(value, other):
        value = device.xp.astype(value, without_hidden_axes(other.filled_array()).dtype)
    return wrap_array(value, device, False)


def _beside_array(value: Any, other: Variable, function: str, argument: str) -> Variable:
    """A number or an array beside an array of a recorded function: the array library promotes."""
    if _is_number(value):
        return _scalar_beside(value, other, function, argument)
    if isinstance(value, numpy.generic):
        value = other.device.from_host(numpy.asarray(value))
    if isinstance(value, Variable):
        return value
    return _as_variable(function, argument, value, other)


def _is_number(value: Any) -> bool:
    """True for a number of Python, which has no dtype of its own."""
    return isinstance(value, bool | int | float | complex) and not isinstance(value, numpy.generic)


def _is_cast(array: Any, other: Variable) -> bool:
    """True if an array takes the dtype of the Variable beside."""
    if array.dtype == other.dtype:
        return False
    return is_floating(other.filled_array()) and kind_of(array) < COMPLEX


def _scalar_beside(value: Any, other: Variable, function: str, argument: str) -> Variable:
    """A number as a 0-d array, of the other's dtype if the dtype can hold the kind of number.

    A 0-d array costs less in NumPy's arithmetic than a Python number.
    """
    reference = other.filled_array()
    device = other._device
    xp = device.xp
    number = value
    dtype = reference.dtype
    if type(value) not in PYTHON_NUMBERS or dtype not in device.floating_dtypes:
        number = value.item() if isinstance(value, numpy.generic) else value
        if is_floating(reference) and isinstance(number, complex):
            dtype = xp.result_type(dtype, xp.complex64)  # of the precision of the floats beside
        elif not _fits(number, reference):
            dtype = None
    try:
        array = xp.asarray(number, dtype=dtype, device=reference.device)
    except OverflowError:
        raise messages.number_too_large(function, argument, number) from None
    return wrap_array(array, device, False)


def _fits(number: Any, reference: Any) -> bool:
    if is_floating(reference):
        return not isinstance(number, complex)
    if isinstance(number, bool) or kind_of(reference) == COMPLEX:
        return True
    return isinstance(number, int) and is_integer(reference)


def as_shape(function: str, argument: str, shape: int | Sequence[int]) -> Shape:
    """A shape as a tuple of integers; an integer stands for a single axis.

    Raises:
        OperandError: the shape has another type.
        SizeError: an integer has more than 64 bits.
    """
    try:
        is_single = isinstance(shape, int | numpy.integer)
        entries: Any = (shape,) if is_single else shape
        return tuple([checked_range(function, argument, operator.index(n)) for n in entries])
    except TypeError:
        raise OperandError(
            f"{function}: {argument} must be an integer or a tuple of integers, got "
            f"{describe(shape)}."
        ) from None


def normalize_axis(function: str, axis: int, ndim: int, argument: str = "axis") -> int:
    """An axis counted from the front; ``argument`` is the name for messages.

    Raises:
        ValueError: there is no such axis.
    """
    if not is_index(axis):
        raise OperandError(f"{function}: {argument} must be an integer, got {describe(axis)}.")
    axis = checked_range(function, argument, operator.index(axis))
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"{function}: {argument} {axis} does not exist in an array of {ndim} axes."
        )
    return axis + ndim if axis < 0 else axis


def normalize_axes(
    function: str, axis: int | Sequence[int] | None, ndim: int, argument: str = "axis"
) -> tuple[int, ...]:
    """An axis, several or (None) all, counted from the front.

    Raises:
        ValueError: an axis does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list) and not is_index(axis):
        raise OperandError(
            f"{function}: {argument} must be an integer or a tuple of integers, got "
            f"{describe(axis)}."
        )
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    axes = tuple(normalize_axis(function, one, ndim, argument) for one in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{function}: {argument} {short_text(axis)} names an axis twice.")
    return axes


def require_elements(function: str, x: Variable, axes: tuple[int, ...]) -> None:
    """Raises ValueError if an axis has no elements."""
    for axis in axes:
        if x.shape[axis] == 0:
            raise ValueError(
                f"{function}: x has shape {x.shape}: axis {axis} is empty, so there is none."
            )


def input_nodes(function: FunctionNode) -> tuple[VariableNode, ...]:
    """The nodes of the inputs of a recorded function.

    Raises:
        GraphError: the function was not recorded, or was unchained.
    """
    if function.inputs is None:
        raise GraphError(
            f"{function.label} has no inputs to compute gradients for: it was applied without a "
            "graph, or was unchained."
        )
    return function.inputs


def input_shape(function: FunctionNode) -> Shape:
    """The shape of the first input of a recorded function."""
    return tuple(input_nodes(function)[0].shape)

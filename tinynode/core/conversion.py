"""Conversions from numbers, lists and arrays to Variables, and back.

Requirement: no data is copied or moved unawares. So ``Variable(...)`` takes only an array, and
``asarray`` alone converts, casts and moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy

import tinynode
from tinynode.configuration import config
from tinynode.core import messages
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.hooks import tell_detached, tell_value_read, thread_hooks
from tinynode.core.nested import nested_items
from tinynode.core.variable import Variable, variable_on_node, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    Array,
    Device,
    array_of_scalar,
    copy_from_host,
    device_beside,
    device_of,
    find_device,
    from_host_data,
    get_device,
    hidden_axes,
    is_array,
    is_differentiable,
    is_host_data,
    using_device,
)
from tinynode.devices import to_host as host_array
from tinynode.errors import OperandError, describe, dtype_name


def array_of_number(value: Any) -> Any:
    """A 0-d array of the current device for a number; other objects unchanged.

    Python floats become ``config.dtype``; numbers of NumPy keep their dtype.
    """
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise messages.number_too_large("Variable", "array", value)
    if isinstance(value, bool | int | float | numpy.generic):
        return asarray(value).raw
    return value


def require_array(array: Any) -> Device:
    """The device of the array for ``Variable(...)``.

    Raises:
        DeviceMixError: the object is no array of a known backend.
    """
    if isinstance(array, Variable):
        raise messages.variable_in_variable(array)
    return device_of(array, "Variable", "array")


def checked_array(array: Any) -> Array:
    """An array for a Variable, in the byte order of the machine.

    Raises:
        OperandError: the elements are not bools or numbers.
    """
    dtype: Any = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "f") in "OSTUMm" or getattr(dtype, "names", None):
        raise messages.elements_refused(array)
    if getattr(dtype, "isnative", True):
        return array
    return array.astype(dtype.newbyteorder("="))


def decide_requires_grad(array: Array, requires_grad: bool | None) -> bool:
    """True if a Variable on the array requires a gradient; None asks for the default.

    Raises:
        RequiresGradError: True was asked of a dtype that is not floating.
    """
    can = array is None or is_differentiable(array)
    if requires_grad is None:
        return can
    requires_grad = as_flag("Variable", "requires_grad", requires_grad)
    if requires_grad and not can:
        raise messages.cannot_require_grad(array)
    return requires_grad


def set_requires_grad(x: Variable, requires_grad: bool) -> None:
    """Let a leaf require a gradient from now on, or no gradient; its gradient is dropped.

    Recorded functions keep the old node: their backward gives x no gradient any more.

    Raises:
        GraphError: x was computed by a recorded function.
        RequiresGradError: True was asked of a dtype that is not floating.
    """
    requires_grad = decide_requires_grad(x.raw, requires_grad)
    if requires_grad is x.requires_grad:
        return
    if x.creator_node is not None:
        raise messages.requires_grad_of_result(x)
    for hook in thread_hooks():
        hook.setting_assigned("x.requires_grad")
    x.leave_node()
    x._requires_grad, x.grad_var = requires_grad, None


def as_flag(function: str, argument: str, value: Any) -> bool:
    """An option that is True or False; 1 and 0 stand for these, other values are refused.

    Raises:
        OperandError: the value is something else.
    """
    if value is True or value is False:
        return value
    if isinstance(value, int | numpy.bool_ | numpy.integer) and value in (0, 1):
        return bool(value)
    raise OperandError(f"{function}: {argument} must be True or False, got {describe(value)}.")


def is_operand(value: object) -> bool:
    """Whether a value may stand beside a Variable in an operator."""
    if isinstance(value, ArrayMethods | bool | int | float | complex | numpy.generic):
        return True
    return not isinstance(value, type) and is_array(value)


def is_comparable(value: object) -> bool:
    """Whether ``x == value`` compares by element; lists are refused there, as in ``x + v``."""
    return isinstance(value, list | tuple) or is_operand(value)


def as_variable(value: Any) -> Variable:
    """A Variable unchanged; an array wrapped, without requiring a gradient.

    Raises:
        TypeError: the value is neither.
    """
    if isinstance(value, ArrayMethods):
        return value.as_variable()
    value = from_host_data(value, "as_variable")
    device = device_of(value, "as_variable", "value")
    return wrap_array(value, device, False)


def as_array(value: Any) -> Array:
    """The array of a Variable; an array unchanged."""
    if isinstance(value, ArrayMethods):
        return value.raw
    value = array_of_scalar(value)
    device_of(value, "as_array", "value")
    return value


def to_host(array: Any) -> Array:
    """An array of any backend, or the array of a Variable, as a NumPy array.

    Memory may be shared.

        >>> tn.to_host(tn.asarray([1.0, 2.0]) + 1)
        array([2., 3.], dtype=float32)
    """
    if isinstance(array, ArrayMethods):
        tell_value_read("to_host(x)")
        array = array.filled_array()
    return host_array(array)


def as_host(value: Any) -> Array:
    """A Variable, an array of any backend, a number or a list as a NumPy array."""
    if isinstance(value, ArrayMethods) or is_array(value):
        return to_host(value)
    return numpy.asarray(value)


def asarray(
    obj: Any,
    dtype: Any = None,
    device: str | Device | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
    *,
    name: str | None = None,
) -> Variable:
    """A Variable made of an array, a number, a nested list, or a Variable.

    Python floats become ``config.dtype``. Other objects keep the dtype, unless ``dtype`` is given.
    A Variable stays in the graph.

        >>> tn.asarray([1.0, 2.0]).shape
        (2,)
        >>> tn.asarray([1, 2], dtype="float64").tolist()
        [1.0, 2.0]

    Args:
        obj: the object to convert; an array of another device is moved.
        dtype: a dtype of the device's namespace, or the name of a dtype.
        device: where the Variable stands; None means the current device, or where an array lies.
        copy: True always copies; False never copies, and raises if a copy is needed; None copies
            if needed.
        requires_grad: as for ``Variable``.
        name: shown in pictures of the graph and in messages. A given Variable keeps its own name.

    Raises:
        ValueError: ``copy=False`` and a copy is needed.
    """
    if copy is not None:
        copy = as_flag("asarray", "copy", copy)
    if name is not None:
        made = asarray(obj, dtype, device, copy, requires_grad)
        made = tinynode.functions.identity(made) if made is obj else made
        made.name = name
        return made
    if isinstance(obj, ArrayMethods):
        return _convert_variable(as_variable(obj), dtype, device, copy, requires_grad)
    asked = None if device is None else get_device(device)
    source = None if isinstance(obj, numpy.generic) else find_device(obj, asked)
    target = asked or (get_device() if source is None or is_host_data(obj) else source)
    if source is None or source is not target:
        if copy is False:
            raise ValueError(f"asarray: copy=False, but {describe(obj)} must be copied.")
        if is_host_data(obj):
            array = copy_from_host(obj.copy() if copy else obj, "asarray", target)
        else:
            host = _host_array(obj, dtype) if source is None else to_host(obj)
            array = target.from_host(host.copy() if copy and source is not None else host)
    else:
        array = target.xp.asarray(obj, copy=True) if copy else obj
    native = checked_array(array)
    if native is not array and copy is False:
        raise ValueError(f"asarray: copy=False, but the byte order of {describe(obj)} differs.")
    array = native
    if dtype is not None:
        array = _cast(array, dtype, target, copy)
    return wrap_array(array, target, decide_requires_grad(array, requires_grad))


def _named_dtype(device: Device, dtype: Any) -> Any:
    """A dtype of the device's namespace, from a name or a dtype."""
    if not isinstance(dtype, str):
        return dtype
    found = getattr(device.xp, dtype, None)
    if found is None:
        raise OperandError(
            f"asarray: dtype {dtype!r} is unknown on {device}. Names are 'float32', 'float64', "
            "'int64', 'bool' and the others of the Array API standard."
        )
    return found


def _cast(array: Array, dtype: Any, device: Device, copy: bool | None) -> Array:
    wanted = _named_dtype(device, dtype)
    if array.dtype == wanted:
        return array
    if copy is False:
        raise ValueError(
            f"asarray: copy=False, but casting {dtype_name(array.dtype)} to "
            f"{dtype_name(wanted)} copies."
        )
    return device.xp.astype(array, wanted)


def _convert_variable(
    x: Variable, dtype: Any, device: Any, copy: bool | None, requires_grad: bool | None
) -> Variable:
    moved = x
    if device is not None and get_device(device) is not x.device:
        moved = tinynode.functions.to_device(moved, device)
    if dtype is not None:
        wanted = _named_dtype(moved.device, dtype)
        if moved.dtype != wanted:
            moved = tinynode.functions.astype(moved, wanted)
    if moved is x and copy:
        moved = tinynode.functions.copy(x)
    elif moved is not x and copy is False:
        raise ValueError("asarray: copy=False, but the dtype or the device has to change.")
    if requires_grad is None or requires_grad == moved.requires_grad:
        return moved
    result = wrap_array(moved.raw, moved.device, decide_requires_grad(moved.raw, requires_grad))
    result.name = moved.name
    tell_detached(moved, result)
    return result


def _host_array(obj: Any, dtype: Any) -> Any:
    """Numbers and nested lists as a NumPy array; without a dtype floats become config.dtype."""
    if isinstance(obj, list | tuple):
        for item in nested_items("asarray", "obj", obj):
            if isinstance(item, Variable):
                raise messages.list_of_variables()
    try:
        host = numpy.asarray(obj)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"asarray: obj must have rows of one length, got {describe(obj)}. Pad them, or make "
            "an array of each."
        ) from error
    if host.dtype.kind not in "biufc":  # text, objects
        raise OperandError(
            f"asarray: obj must hold bools or numbers of at most 64 bits, got {describe(obj)}."
        )
    if dtype is None and host.dtype == numpy.float64 and not isinstance(obj, numpy.generic):
        host = host.astype(config.dtype)
    return host


def wrap_inputs(function: Any, inputs: Sequence[Any]) -> tuple[Variable, ...]:
    """The inputs of a FunctionNode as Variables: arrays on the device of the first Variable.

    Raises:
        DeviceMixError: an input is neither a Variable nor an array; or the devices differ.
        GraphError: a Variable is empty.
    """
    first = next((x for x in inputs if isinstance(x, Variable)), None)
    wrapped = []
    for position, x in enumerate(inputs):
        if isinstance(x, ArrayMethods):
            wrapped.append(as_variable(x))
            continue
        place = None if first is None else first.device
        x = from_host_data(x, function.label, place)
        device = None if place is None else device_beside(x, place)
        if device is None:
            device = device_of(x, function.label, f"input {position}")
        wrapped.append(wrap_array(x, device, False))
    if hidden_axes.stack:
        wrapped = tinynode.transforms.batched(wrapped)
    for x in wrapped:
        if x.raw is None:
            raise messages.empty_input(function, x)
    if len({x.device for x in wrapped}) > 1:
        raise messages.devices_mixed(function, wrapped)
    return tuple(wrapped)


def variable_holding(node: VariableNode, array: Array) -> Variable:
    """The user's Variable if alive and still with the same array, else a new Variable."""
    variable = node.get_variable_or_none()
    if variable is not None and variable.raw is array:
        return variable
    return variable_on_node(node, array)


def restore(
    variable: Variable, node: VariableNode | None, array: Array | None, grad_var: Variable | None
) -> None:
    """Bring a Variable back to a node, an array and a gradient; None starts a new leaf."""
    if variable._node is not node:
        variable.leave_node()
        variable._node = node
    if node is not None:
        node.set_variable(variable)
        variable._device, variable._requires_grad = node.device, node.requires_grad
    variable.raw, variable._grad_var = array, grad_var


def reduce_variable(x: Variable) -> tuple[Any, ...]:
    """The pickled form of a Variable: the values on the host, outside of any graph."""
    host = None if x.raw is None else to_host(x.raw)
    grad = None if x.grad_var is None else to_host(x.grad_var.raw)
    return rebuild, (type(x), host, str(x.device), x.name, x.requires_grad, grad)


def deep_copy(x: Variable, memo: dict[int, Any]) -> Variable:
    """A leaf with copies of the arrays of a leaf.

    Raises:
        GraphError: x was computed by a recorded function.
    """
    if x.creator_node is not None:
        raise messages.deep_copy_of_result(x)
    make, parts = x.__reduce__()
    copied: Variable = make(*deepcopy(parts, memo))
    return copied


def rebuild(
    cls: type[Variable], host: Any, device: str, name: str | None, requires_grad: bool, grad: Any
) -> Variable:
    """A Variable from the pickled form: on the same device, outside of any graph."""
    target = get_device(device)
    array = None if host is None else target.from_host(host)
    with using_device(target):
        variable = cls(array, name=name, requires_grad=requires_grad)
    if grad is not None:
        variable.grad_var = wrap_array(target.from_host(grad), target, True)
    return variable


def assign(variable: Variable, array: Array, device: Device) -> None:
    """Give a Variable a new array on ``device``.

    The device is an argument, since two devices may share the same kind of memory.
    """
    is_usual = not (thread_hooks() or hidden_axes.stack)
    if is_usual and variable.is_like(array, device):  # quickly
        variable.refill(array)
        return
    with using_device(device):
        variable.array = array

"""Questions about raw arrays: backend, device, namespace, kind of dtype.

Requirement: the answers stand in tables by array type, since a call of
``array.__array_namespace__`` takes as long as the sum of two small arrays.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.devices.device import Device, device_name
from tinynode.devices.dtypes import FLOATING, INTEGER, kind_of_dtype
from tinynode.devices.hidden_axes import below
from tinynode.devices.protocol import (
    Array,
    Arrays,
    Backend,
    FunctionalWrites,
    Overlay,
    Scatter,
    supports,
)
from tinynode.devices.registry import backends, current_device, get_backend, get_device
from tinynode.errors import DeviceError, DeviceMixError, OperandError, describe, dtype_name

backend_of_type: dict[type, Backend] = {}
namespace_of_type: dict[type, Any] = {}
kinds_of_type: dict[type, dict[Any, int]] = {}
"""The kinds of dtypes, by array type: dtypes of two libraries do not compare."""
float16_of_type: dict[type, Any] = {}
"""The dtype float16 by array type, or None: ``numpy.float16`` itself compares in 2 us."""


def find_device(array: object, first: Device | None = None) -> Device | None:
    """The device with an array, or None if no loaded backend owns the object.

    The device ``first``, by default the current one, is asked first. So two backends on one kind
    of memory do not compete.
    """
    first = first or current_device()
    if first.owns(array):
        return _device_at(first.backend, array)
    owner = _owner(array)
    return None if owner is None else _device_at(owner, array)


def device_beside(array: object, device: Device) -> Device | None:
    """The device of an array beside a Variable on a device, or None if no backend owns the object.

    In a vmapped function the array may lie below the hidden axes: all examples share the array.
    """
    place: Device | None = device
    while place is not None:
        if place.holds(array):
            return place
        place = below(place)
    return find_device(array, device)


def _owner(array: object) -> Backend | None:
    """The loaded backend whose memory holds an array."""
    own = own_backend(array)
    if own is not None:
        return own
    for backend in [get_backend("numpy"), *backends.values()]:
        if backend.owns(array):
            return base_of(backend)
    return None


def is_array(value: object) -> bool:
    """True if a loaded backend, or the backend of the current device, owns an object."""
    if _owner(value) is not None:
        return True
    try:
        return current_device().owns(value)
    except (DeviceError, TypeError):
        return False


def base_of(backend: Backend) -> Backend:
    """The backend with the memory of a backend: ``backend.base``, or the same backend."""
    return get_backend(backend.base) if supports(backend, Overlay) else backend


def _device_at(backend: Backend, array: Array) -> Device:
    device = get_device(device_name(backend, backend.index_of(array)))
    device.owns(array)  # the device remembers the type
    return device


def device_of(array: object, function: str, argument: str) -> Device:
    """The device that holds an array.

    Raises:
        DeviceMixError: no backend owns the object; names the function and the argument.
    """
    device = find_device(array)
    if device is None:
        raise DeviceMixError(
            f"{function}: {argument} must be an array of a known backend, got {describe(array)}. "
            "tinynode.asarray(...) accepts lists, numbers and Variables. For an array of another "
            "library, load its backend first: tinynode.get_device(name), with a name that "
            "`python -m tinynode backends` lists."
        )
    return device


def backend_of(array: Array) -> Backend:
    """The backend whose memory holds an array."""
    backend = backend_of_type.get(type(array)) or own_backend(array)
    if backend is None:
        backend = _owner(array) or base_of(device_of(array, "backend_of", "array").backend)
        backend_of_type[type(array)] = backend
    return backend


def array_of_scalar(value: Any, device: Device | None = None) -> Any:
    """A 0-d array for a scalar of NumPy, such as ``numpy.float64(1)``; other objects unchanged.

    NumPy gives scalars where other libraries give arrays without axes, so both mean the same.
    ``device`` is by default the current one.
    """
    if not isinstance(value, numpy.number | numpy.bool_):
        return value
    return (device or current_device()).from_host(numpy.asarray(value))


def own_backend(array: Array) -> Backend | None:
    """The backend that a batched array names; None for the arrays of libraries.

    Batched arrays of several backends have one type, so no table by type has an entry for them.
    """
    return getattr(array, "tinynode_backend", None)


def without_hidden_axes(array: Array) -> Array:
    """The array of all examples of a vmapped function; other arrays unchanged."""
    while own_backend(array) is not None:
        array = array.raw
    return getattr(array, "raw", array)  # while a net is recorded, Variables are inside


def namespace_of(array: Array) -> Any:
    """The Array API namespace of an array, found by its type.

    The namespace has the functions of the Array API standard, such as ``xp.exp``.

        >>> tn.namespace_of(np.ones(2)).__name__
        'numpy'
    """
    try:
        return namespace_of_type[type(array)]
    except KeyError:
        namespace = backend_of(array).namespace()
        if own_backend(array) is not None:
            return namespace
        namespace_of_type[type(array)] = namespace
        return namespace


def any_true(mask: Array) -> bool:
    """True if an element of a bool array is true. NumPy counts elements quicker than ``any``.

    Functions ask for rare values: a label out of range, a NaN. So False for arrays without values.
    """
    if isinstance(mask, numpy.ndarray | numpy.generic):
        return bool(numpy.count_nonzero(mask))
    if has_no_values(mask):
        return False
    return bool(namespace_of(mask).any(mask))


def all_true(mask: Array) -> bool:
    """True if each element of a bool array is true; True for arrays without values."""
    if isinstance(mask, numpy.ndarray | numpy.generic):
        return bool(numpy.count_nonzero(mask) == mask.size)
    if has_no_values(mask):
        return True
    return bool(namespace_of(mask).all(mask))


def all_finite(array: Array) -> bool:
    """True if no element is NaN or infinite; True for arrays without values."""
    xp = namespace_of(array)
    if array.dtype == xp.bool:  # the standard has isfinite of numbers alone
        return True
    return all_true(xp.isfinite(array))


def has_no_values(array: Array) -> bool:
    """True for an array of the backend ``shapes``: it has a shape and a dtype alone."""
    return "shapes" in backend_of(array).capabilities


def is_known_true(mask: Array) -> bool:
    """``all_true`` of NumPy's arrays; False for others, where the answer may wait for a GPU."""
    return isinstance(mask, numpy.ndarray) and all_true(mask)


def kind_of(array: Array) -> int:
    """The kind of an array's dtype: ``BOOL``, ``INTEGER``, ``FLOATING`` or ``COMPLEX``."""
    try:
        return kinds_of_type[type(array)][array.dtype]
    except KeyError:
        if own_backend(array) is not None:
            return kind_of(without_hidden_axes(array))
        kind = kind_of_dtype(namespace_of(array), array.dtype)
        kinds_of_type.setdefault(type(array), {})[array.dtype] = kind
        return kind


def is_floating(array: Array) -> bool:
    """True if an array's dtype is a real floating one."""
    return kind_of(array) == FLOATING


def is_differentiable(array: Array) -> bool:
    """True if an array's dtype is floating, real or complex: only such arrays have a gradient."""
    return kind_of(array) >= FLOATING


def is_integer(array: Array) -> bool:
    """True if an array's dtype is an integer one, signed or not."""
    return kind_of(array) == INTEGER


def check_cast(operation: str, value: Array, target: Array) -> None:
    """Refuse to write floats into integers, or complex numbers into real ones.

    Raises:
        OperandError: the kind of ``value`` is above that of ``target``.
    """
    if kind_of(value) > kind_of(target):
        raise OperandError(
            f"{operation}: the value is {dtype_name(value.dtype)}, x is "
            f"{dtype_name(target.dtype)}, which cannot hold it. Cast x first: x.astype(...)."
        )


def to_host(array: Array) -> Array:
    """An array of any backend as a NumPy array; memory may be shared."""
    return backend_of(array).to_host(array)


def is_float16(array: Array) -> bool:
    """True if an array is float16, a dtype outside the standard."""
    try:
        half = float16_of_type[type(array)]
    except KeyError:
        if own_backend(array) is not None:
            return is_float16(without_hidden_axes(array))
        xp = namespace_of(array)
        half = xp.empty((0,), dtype=xp.float16).dtype if hasattr(xp, "float16") else None
        float16_of_type[type(array)] = half
    return half is not None and bool(array.dtype == half)


def widened_array(array: Array) -> Array:
    """A float16 array in float32: in float16, 2,048 + 1 is 2,048, and 256 squared is infinite.

    Another array is unchanged.
    """
    xp = namespace_of(array)
    return xp.astype(array, xp.float32) if is_float16(array) else array


def narrowed_arrays(outputs: Arrays, inputs: Arrays) -> Arrays:
    """The way back from ``widened_array``: floating outputs in float16, if all inputs were.

    Beside a floating input of another dtype, the outputs are unchanged.
    """
    floating = [x for x in inputs if is_floating(x)]
    if not all(map(is_float16, floating)):
        return outputs
    narrowed = []
    for y in outputs:
        if y is not None and is_floating(y):
            y = namespace_of(y).asarray(y, dtype=floating[0].dtype)
        narrowed.append(y)
    return tuple(narrowed)


def is_separate(view: Array, taken: set[int], held: Array) -> bool:
    """True if a view may be changed in place, and neither ``taken`` nor ``held`` owns its memory.

    False for a read-only view, and for a view with several elements at one address. The id of the
    owner is added to ``taken``.
    """
    owners = (held, getattr(held, "base", held))
    is_free = id(view.base) not in taken and not any(view.base is one for one in owners)
    is_free = is_free and 0 not in view.strides
    taken.add(id(view.base))
    return is_free and bool(getattr(view.flags, "writeable", True))


def add_at(indices: Array, values: Array, length: int) -> Array:
    """Rows of values added up by index: result[indices[k]] += values[k], from zeros.

    indices: (k), integer, values: (k, ...) -> (length, ...). The Array API standard has no such
    function. A backend without ``Scatter`` goes through the host.
    """
    backend = backend_of(values)
    if supports(backend, Scatter):
        return backend.add_at(indices, values, length)
    numpy_backend: Any = get_backend("numpy")
    host = numpy_backend.add_at(to_host(indices), to_host(values), length)
    return backend.from_host(host, backend.index_of(values))


def put(array: Array, key: Any, value: Any) -> Array:
    """The array with a value at an index: the same array where it can be written to.

    The array must be new: without another owner. Callers go on with the result, since the
    arrays of some libraries never change (``FunctionalWrites``).
    """
    if type(array) is not numpy.ndarray:  # which are written to in any case
        backend = backend_of(array)
        if supports(backend, FunctionalWrites):
            return backend.put(array, key, value)
    array[key] = value
    return array


def put_product(array: Array, key: Any, value: Array) -> Array:
    """The array multiplied by a value at a basic index; otherwise as ``put``."""
    if type(array) is numpy.ndarray:
        part = array[key]
        part *= value
        return array
    backend = backend_of(array)
    if supports(backend, FunctionalWrites):
        return backend.put(array, key, array[key] * value)
    array[key] *= value
    return array


def put_sum(array: Array, key: Any, value: Array) -> Array:
    """The array with a value added at a basic index; otherwise as ``put``."""
    backend = backend_of(array)
    if supports(backend, FunctionalWrites):
        return backend.put(array, key, array[key] + value)
    array[key] += value
    return array

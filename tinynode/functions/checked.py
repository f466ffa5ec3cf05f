"""Checked arguments of constructors: ``self.axes = checked_axes(self, axes)``.

Requirement: a FunctionNode may be made directly, with any arguments. Backends compute addresses
from sizes, axes and windows, so a wrong one must be an error before any function runs. Public
functions convert their arguments first. So each check begins with a quick test for values that are
right. ``attribute_types`` judges all others by the annotations.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from tinynode.devices import Device
from tinynode.errors import OperandError, describe
from tinynode.functions.attribute_types import attribute_types, exact, fits, type_text
from tinynode.functions.attributes import (
    MOST_AXES,
    MOST_INT64,
    AnyIndex,
    Axes,
    Labels,
    Letters,
    Shape,
    Slice,
)


def checked(node: Any, name: str, value: Any) -> Any:
    """An argument of a constructor, with numbers of any type as those of Python.

    Raises:
        OperandError: the value is not of the declared type, or is out of the declared range.
    """
    kind = _declared(node, name)
    if type(value) is not tuple and isinstance(value, tuple) and not hasattr(value, "_fields"):
        value = tuple(value)  # such as the shape of an array of PyTorch
    if fits(value, kind, of_text=False):
        return exact(value)
    raise OperandError(
        f"{type(node).__name__}: {name} must be {type_text(kind)}, got {describe(value)}. Give "
        "another value, or call the function of the same name: it converts its arguments."
    )


def _declared(node: Any, name: str) -> Any:
    """The declared type of a constructor's parameter; a subclass may have another constructor."""
    for one in type(node).__mro__:
        if one.__module__.startswith("tinynode.") and name in attribute_types(one):
            return attribute_types(one)[name]
    return Any


def checked_axis(node: Any, axis: Any) -> int:
    """The axis of a function, from 0 on."""
    if type(axis) is int and 0 <= axis < MOST_AXES:
        return axis
    return int(checked(node, "axis", axis))


def checked_axes(node: Any, axes: Any) -> Axes:
    """The axes of a function: different ones, from 0 on."""
    is_right = type(axes) is tuple
    if is_right:
        for axis in axes:
            if type(axis) is not int or not 0 <= axis < MOST_AXES:
                is_right = False
                break
    if is_right and (len(axes) < 2 or len(set(axes)) == len(axes)):
        return axes  # type: ignore[no-any-return]
    return checked(node, "axes", axes)  # type: ignore[no-any-return]


def checked_rising_axes(node: Any, axes: Any) -> Axes:
    """The axes of a reduction; quicker than ``checked_axes`` for axes in their order."""
    if type(axes) is tuple:
        last = -1
        for axis in axes:
            if type(axis) is not int or not last < axis < MOST_AXES:
                return checked_axes(node, axes)
            last = axis
        return axes
    return checked_axes(node, axes)


def checked_subscripts(node: Any, subscripts: Any) -> tuple[Labels, ...]:
    """The labels of each operand of ``einsum``."""
    is_right = type(subscripts) is tuple
    if is_right:
        for labels in subscripts:
            if type(labels) is not str or not _are_labels(labels):
                is_right = False
                break
    if is_right:
        return subscripts  # type: ignore[no-any-return]
    return checked(node, "inputs", subscripts)  # type: ignore[no-any-return]


def checked_labels(node: Any, name: str, labels: Any) -> Labels:
    """The labels of the result of ``einsum``."""
    is_right = type(labels) is str and _are_labels(labels)
    return labels if is_right else checked(node, name, labels)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def _are_labels(text: str) -> bool:
    return Letters().takes(text)


def checked_shape(node: Any, shape: Any) -> Shape:
    """The shape of a function's result."""
    is_right = type(shape) is tuple and len(shape) <= MOST_AXES
    if is_right:
        for length in shape:
            if type(length) is not int or not 0 <= length <= MOST_INT64:
                is_right = False
                break
    return shape if is_right else checked(node, "shape", shape)  # type: ignore[no-any-return]


def checked_dtype(node: Any, dtype: Any) -> Any:
    """A dtype of numbers, of any namespace."""
    is_right = type(dtype) is type and issubclass(dtype, numpy.number)
    return dtype if is_right else checked(node, "dtype", dtype)


def checked_device(node: Any, name: str, device: Any) -> Device:
    """A device of a function."""
    is_right = type(device) is Device
    return device if is_right else checked(node, name, device)  # type: ignore[no-any-return]


def checked_source(node: Any, generator: Any) -> Any:
    """A generator of random numbers."""
    is_right = type(generator) is numpy.random.Generator
    return generator if is_right else checked(node, "generator", generator)


def checked_length(node: Any, name: str, length: Any, least: int = 0) -> int:
    """A length of a function, such as the number of classes."""
    if type(length) is int and least <= length <= MOST_INT64:
        return length
    return int(checked(node, name, length))


def checked_float(node: Any, name: str, number: Any) -> Any:
    """A number of a function, or None where the function takes None."""
    return number if type(number) is float else checked(node, name, number)


def checked_fraction(node: Any, name: str, number: Any) -> float:
    """A number from 0 to 1."""
    is_right = type(number) is float and 0.0 <= number <= 1.0
    return number if is_right else checked(node, name, number)  # type: ignore[no-any-return]


def checked_flag(node: Any, name: str, flag: Any) -> bool:
    """True or False."""
    return flag if flag is True or flag is False else bool(checked(node, name, flag))


def checked_label(node: Any, label: Any) -> int:
    """The label of rows that do not count; a label that no array can hold is equal to no label."""
    return label if type(label) is int else int(checked(node, "ignore_label", label))


def checked_index(node: Any, index: Any) -> AnyIndex:
    """The index of a function: integers, slices, None, ... and places of arrays."""
    is_right = type(index) is tuple
    if is_right:
        for item in index:
            if not (_is_int64(item) or item is None or _is_slice(item)):
                is_right = False
                break
    found: AnyIndex = index if is_right else checked(node, "index", index)
    return found


def _is_int64(item: Any) -> bool:
    return type(item) is int and -MOST_INT64 <= item <= MOST_INT64


def _is_slice(item: Any) -> bool:
    """True for a slice of integers; without a step, as in most programs."""
    if type(item) is not Slice or item.step is not None:
        return False
    start, stop = item.start, item.stop
    return (start is None or _is_int64(start)) and (stop is None or _is_int64(stop))

"""Reading and writing parts of an array: ``x[index]``, ``x[index] = v``, ``take``.

Integers, slices, ``...`` and None in an index are constants of the function. Integer and bool
arrays in an index are inputs of the function. Where an index with arrays names an element several
times, reading adds the gradients up, and writing gives a gradient to the last value alone.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from tinynode.core.array_methods import ArrayMethods
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.nested import check_nested
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    BOOL,
    INTEGER,
    Array,
    Arrays,
    add_at,
    any_true,
    check_cast,
    has_no_values,
    hidden_axes,
    is_array,
    is_integer,
    kind_of,
    namespace_of,
    own_backend,
    put,
    to_host,
)
from tinynode.errors import DeviceMixError, OperandError, describe, short_text
from tinynode.functions.attributes import AnyIndex, Axis, Length, Place, Shape, Slice
from tinynode.functions.checked import checked_axis, checked_index, checked_length, checked_shape
from tinynode.functions.masking import mark_masked
from tinynode.functions.operands import (
    as_operand,
    as_operands,
    checked_range,
    first_variable,
    input_shape,
    normalize_axis,
)
from tinynode.functions.shapes import (
    AxisNode,
    broadcasts_to,
    permute_dims,
    reshape,
    reshaped,
    unbroadcast,
    zeros_beside,
)
from tinynode.functions.shared_memory import shared_memory

__all__ = [
    "AddAt",
    "GetItem",
    "GetItemGrad",
    "Positions",
    "PositionsAlongAxis",
    "SetItem",
    "SetItemGrad",
    "TakeAlongAxis",
    "TakeRows",
    "get_item",
    "set_item",
    "take",
    "take_along_axis",
]
__dir__ = __all__.copy  # for completion

Index = AnyIndex
"""An index as hashable constants: int, Slice, None, Ellipsis and Place."""


def freeze_index(function: str, index: Any, x: Variable) -> tuple[Index, list[Variable]]:
    """A user's index as hashable constants, and the arrays of the index as Variables beside x.

    Raises:
        DeviceMixError: an array of the index is on another device than x.
        OperandError: an entry is no index.
        ValueError: the step of a slice is 0.
    """
    frozen: list[Any] = []
    arrays: list[Variable] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            frozen.append(item)
        elif isinstance(item, slice):
            frozen.append(_freeze_slice(function, item))
        elif _is_array(item):
            array = _index_array(function, item, x)
            frozen.append(Place(1 if is_integer(array.raw) else array.ndim))
            arrays.append(array)
        else:
            frozen.append(checked_range(function, "index", _integer(function, item)))
    return tuple(frozen), arrays


def variable_in(index: Any) -> Variable | None:
    """The first Variable in an index."""
    return first_variable(*index) if isinstance(index, tuple) else first_variable(index)


def _freeze_slice(function: str, item: slice) -> Slice:
    bounds = (item.start, item.stop, item.step)
    frozen = Slice(*(None if n is None else _integer(function, n) for n in bounds))
    if frozen.step == 0:
        raise ValueError(f"{function}: the step of {item} is 0. Give another, or leave it out.")
    return frozen


def _integer(function: str, item: Any) -> int:
    try:
        if not isinstance(item, bool) and getattr(item, "shape", ()) == ():
            return operator.index(item)
    except TypeError:  # a float; or an array of one, or of a bool
        pass
    raise OperandError(
        f"{function}: an index is made of integers, slices, ..., None, and integer or bool "
        f"arrays, got {describe(item)}."
    )


def _is_array(item: Any) -> bool:
    """True for lists, and for arrays and Variables, except single integers and floats."""
    if isinstance(item, list):
        return True
    array = item.raw if isinstance(item, ArrayMethods) else item
    if not hasattr(array, "shape") or isinstance(array, type | numpy.generic):
        return False
    if array.shape == () and own_backend(array) is not None:
        return kind_of(array) <= INTEGER  # another number in each example of a vmapped function
    return is_array(array) and (array.shape != () or kind_of(array) == BOOL)


def _index_array(function: str, item: Any, x: Variable) -> Variable:
    """An integer or bool array as a Variable on x's device."""
    if isinstance(item, list):
        return index_list(function, "index", item, x)
    variable = as_operand(function, "index", item, x)
    if variable.device is not x.device and not hidden_axes.stack:
        raise DeviceMixError(
            f"{function}: an array in the index is on {variable.device}, x is on {x.device}. "
            f"Move it with to_device(..., {str(x.device)!r})."
        )
    if not variable.xp.isdtype(variable.dtype, ("integral", "bool")):
        raise OperandError(
            f"{function}: an index array must be integer or bool, got {describe(variable)}."
        )
    return variable


def index_list(function: str, argument: str, values: Any, x: Variable) -> Variable:
    """A list of integers or bools as a Variable on x's device.

    Raises:
        OperandError: another entry, or lists of different length.
    """
    check_nested(function, argument, values)
    try:
        host = numpy.asarray(values)
    except ValueError:
        host = numpy.asarray(values, dtype=object)
    if host.size == 0:
        host = host.astype(numpy.int64)
    if host.dtype.kind not in "iub":
        raise OperandError(
            f"{function}: a list as {argument} must hold integers or bools, and lists in it be "
            f"equally long, got {describe(values)}."
        )
    return wrap_array(x.device.from_host(host), x.device, False)


def thaw_index(index: Index, shape: tuple[int, ...], arrays: Arrays = ()) -> Index:
    """The index for arrays of a shape, in the terms of the Array API standard.

    Every axis is named, and slices end within the array. The index is for ``turned`` arrays: all
    steps are positive.
    """
    axes = iter(axes_of(index, len(shape)))
    waiting = iter(arrays)
    thawed: list[Any] = []
    for item in index:
        if item is None or item is Ellipsis:
            thawed.append(item)
            continue
        axis = next(axes)
        if isinstance(item, Place):
            array = next(waiting, None)
            if array is None:
                raise ValueError(
                    f"index {short_text(index)} has more places than the {len(arrays)} arrays "
                    "given. Give an array for each place."
                )
            thawed.append(array)
        else:
            thawed.append(_clamped(item, shape[axis]) if isinstance(item, Slice) else item)
    if not arrays and Ellipsis not in index:
        thawed.append(Ellipsis)
    return tuple(thawed)


def turned(array: Array, index: Index) -> Array:
    """The array, flipped along the axes with a backward slice.

    Then all steps are positive: PyTorch has no others. Flipping twice gives the array again.
    """
    for item in index:
        if isinstance(item, Slice) and item.step is not None and item.step < 0:
            break
    else:
        return array
    named = [item for item in index if item is not None and item is not Ellipsis]
    axes = []
    for axis, item in zip(axes_of(index, array.ndim), named, strict=True):
        if isinstance(item, Slice) and item.step is not None and item.step < 0:
            axes.append(axis)
    return namespace_of(array).flip(array, axis=tuple(axes))


def axes_of(index: Index, ndim: int) -> list[int]:
    """The first axis of each integer, slice and array of an index."""
    axes: list[int] = []
    axis = 0
    for item in index:
        if item is Ellipsis:
            axis += ndim - named_axes(index)
        elif item is not None:
            axes.append(axis)
            axis += item.axes if isinstance(item, Place) else 1
    return axes


def named_axes(index: Index) -> int:
    """How many axes of x an index speaks of."""
    count = 0
    for item in index:
        if item is not None and item is not Ellipsis:
            count += item.axes if isinstance(item, Place) else 1
    return count


def _clamped(item: Slice, length: int) -> slice:
    """The same elements of an axis, by bounds within the axis; of the flipped axis, if the step
    is negative.
    """
    chosen = range(*slice(*item).indices(length))
    if not chosen:
        return slice(0, 0)
    if chosen.step < 0:
        return slice(length - 1 - chosen.start, length - chosen[-1], -chosen.step)
    return slice(chosen.start, chosen.stop, chosen.step)


def check_fits(function: str, index: Index, x: Variable, arrays: list[Variable]) -> None:
    """Refuse an index outside x's shape; array libraries differ in their checks.

    Raises:
        IndexError: too many indices, integers out of range, or arrays of the wrong shape.
    """
    if named_axes(index) > x.ndim or index.count(Ellipsis) > 1:
        raise IndexError(
            f"{function}: index {short_text(index)} has too many entries for x of shape {x.shape}."
        )
    named = [item for item in index if item is not None and item is not Ellipsis]
    waiting = iter(arrays)
    if len(arrays) > 1:
        _check_together(function, arrays)
    for axis, item in zip(axes_of(index, x.ndim), named, strict=True):
        if isinstance(item, Place):
            _check_array(function, next(waiting), x, axis)
        elif isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            raise IndexError(
                f"{function}: index {item} is out of bounds for axis {axis} of x, which has "
                f"shape {x.shape}."
            )


def _check_together(function: str, arrays: list[Variable]) -> None:
    """Arrays select element by element, so the shapes of the arrays must broadcast."""
    shapes = [one.shape if is_integer(one.raw) else _number_of_true(one) for one in arrays]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(shape) for shape in shapes)
        raise IndexError(
            f"{function}: the arrays in the index have shapes {text} (a bool array: its number "
            "of True), which do not broadcast together. For every pair of them index twice, "
            "x[rows][:, columns], or give the first a new axis, rows[:, None]."
        ) from None


def _number_of_true(mask: Variable) -> tuple[int]:
    return (int(mask.xp.sum(mask.xp.astype(mask.raw, mask.xp.int64))),)


def _check_array(function: str, array: Variable, x: Variable, axis: int) -> None:
    """Integers must lie within the axis; a bool array has the lengths of the covered axes."""
    if is_integer(array.raw):
        check_bounds(function, array, x, axis)
    elif array.shape != x.shape[axis : axis + array.ndim]:
        raise IndexError(
            f"{function}: a bool array of shape {array.shape} stands for axis {axis} on of x, "
            f"which has shape {x.shape}: the lengths must be equal."
        )


def check_bounds(function: str, indices: Variable, x: Variable, axis: int) -> None:
    """Refuse integers outside an axis of x.

    Raises:
        IndexError: an integer is outside.
    """
    xp, array, length = indices.xp, indices.raw, x.shape[axis]
    if indices.size and any_true((array < -length) | (array >= length)):
        low, high = int(xp.min(array)), int(xp.max(array))
        raise IndexError(
            f"{function}: indices run from {low} to {high}, but axis {axis} of x (shape "
            f"{x.shape}) has {length} entries."
        )


def written(array: Array, index: Index, arrays: Arrays, value: Array) -> Array:
    """Write into an array without other owners."""
    array = turned(array, index)
    place = thaw_index(index, array.shape, arrays)
    if None not in index:
        return turned(put(array, place, value), index)
    # the standard writes to existing axes only, so there is one where None stands
    xp = namespace_of(array)
    wide = xp.reshape(array, _shape_with_new_axes(index, array.shape))
    wide_place = tuple(slice(0, 1) if item is None else item for item in place)
    wide = put(wide, wide_place, value)
    return turned(xp.reshape(wide, array.shape), index)


def _shape_with_new_axes(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with an axis of length 1 at each None of an index."""
    wide: list[int] = []
    axis = 0
    for item in index:
        if item is None:
            wide.append(1)
            continue
        end = axis + (item.axes if isinstance(item, Place) else 1)
        if item is Ellipsis:
            end = axis + len(shape) - named_axes(index)
        wide.extend(shape[axis:end])
        axis = end
    return (*wide, *shape[axis:])


class TakeRows(FunctionNode):
    """y_k = x[indices_k]: parts along the first axis, rows of a matrix.

    x: (n, ...), indices: (k), integer -> y: (k, ...).
    dL/dx = zeros, plus each dL/dy_k at indices_k
    """

    input_counts = (2,)
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, indices = inputs
        self.retain_inputs((1,))
        return (namespace_of(x).take(x, indices, axis=0),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        mark_masked(self)
        return AddAt(input_shape(self)[0]).apply((gy, indices))[0], None


class AddAt(FunctionNode):
    """y = zeros, plus each values_k at indices_k: the gradient of ``TakeRows``.

    values: (k, ...), indices: (k), integer -> y: (length, ...).   dL/dvalues_k = dL/dy[indices_k]
    """

    input_counts = (2,)
    complex_rule = "conjugate"
    is_polynomial = True
    wide = True

    def __init__(self, length: Length) -> None:
        self.length = checked_length(self, "length", length)

    def forward(self, inputs: Arrays) -> Arrays:
        values, indices = inputs
        self.retain_inputs((1,))
        return (add_at(indices, values, self.length),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        return TakeRows().apply((gy, indices))[0], None


def take(x: Any, indices: Any, *, axis: int | None = None) -> Variable:
    """The parts of x at integers along an axis; an index may come several times.

    Args:
        x: (s).
        indices: integers; the standard asks for a single axis, more are accepted.
        axis: the axis; optional for a one-dimensional x.

    Raises:
        ValueError: the axis does not exist, or is left out although x is not one-dimensional.
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
    """
    x = as_operand("take", "x", x, indices)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: x has shape {x.shape}, so the axis must be given.")
    axis = normalize_axis("take", 0 if axis is None else axis, x.ndim)
    indices = require_integers("take", indices, x, axis)
    if axis == 0:
        return _rows(x, indices)
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    taken = _rows(permute_dims(x, order), indices)
    k = indices.ndim
    back = (*range(k, k + axis), *range(k), *range(k + axis, taken.ndim))
    return permute_dims(taken, back)


def _rows(x: Variable, indices: Variable) -> Variable:
    """The parts of x at integers along the first axis, without a check."""
    rows = TakeRows().apply((x, reshaped(indices, (math.prod(indices.shape),))))[0]
    return reshaped(rows, (*indices.shape, *x.shape[1:]))


def require_integers(function: str, indices: Any, x: Variable, axis: int) -> Variable:
    """Indices as an integer Variable beside x, all within an axis.

    Raises:
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
    """
    variable = index_variable(function, indices, x)
    check_bounds(function, variable, x, axis)
    return variable


def index_variable(function: str, indices: Any, x: Variable) -> Variable:
    """Indices as an integer Variable beside x.

    Raises:
        OperandError: the indices are not integers.
    """
    if isinstance(indices, list | tuple | int):
        variable = index_list(function, "indices", indices, x)
    else:
        variable = as_operand(function, "indices", indices, x)
    if not is_integer(variable.raw):
        raise OperandError(f"{function}: indices must be integers, got {describe(indices)}.")
    return variable


class TakeAlongAxis(AxisNode):
    """y = x at indices along an axis; along the other axes each element keeps the place.

    x: (s), indices: (s with any length at axis), integer -> y: (shape of indices).
    dL/dx = zeros of shape s, plus dL/dy at the indices
    """

    input_counts = (2,)
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, indices = inputs
        self.retain_inputs((1,))
        return (namespace_of(x).take_along_axis(x, indices, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        mark_masked(self)
        shape = input_shape(self)
        positions = PositionsAlongAxis(self.axis, shape).apply((indices,))[0]
        flat = AddAt(math.prod(shape)).apply((reshaped(gy, (math.prod(gy.shape),)), positions))[0]
        return reshaped(flat, shape), None


class PositionsAlongAxis(FunctionNode):
    """p = the flat positions of ``TakeAlongAxis``; no gradient.

    indices: (s with any length at axis), integer -> p: (number of indices), integer.
    """

    def __init__(self, axis: Axis, shape: Shape) -> None:
        self.axis = checked_axis(self, axis)
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (indices,) = inputs
        xp = namespace_of(indices)
        places = xp.arange(math.prod(self.shape), device=indices.device)
        places = xp.reshape(places, self.shape)
        selected = xp.take_along_axis(places, indices, axis=self.axis)
        return (xp.reshape(selected, (-1,)),)


def take_along_axis(x: Any, indices: Any, *, axis: int = -1) -> Variable:
    """x at ``indices`` along an axis.

    Args:
        x: (s).
        indices: integers, of x's shape but for the length of the axis.
        axis: the axis.

    Raises:
        ValueError: the axis does not exist, or the shapes do not fit together.
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
    """
    x = as_operand("take_along_axis", "x", x, indices)
    axis = normalize_axis("take_along_axis", axis, x.ndim)
    indices = require_integers("take_along_axis", indices, x, axis)
    expected = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if indices.ndim != x.ndim or indices.shape != expected:
        raise ValueError(
            f"take_along_axis: indices have shape {indices.shape}, x has {x.shape}: they must be "
            f"equal but for axis {axis}."
        )
    return TakeAlongAxis(axis).apply((x, indices))[0]


class GetItem(FunctionNode):
    """y = x[index].

    x: (s), the integer or bool arrays of the index -> y: (shape of the selection).
    dL/dx = zeros of shape s, plus dL/dy at index
    """

    input_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, index: Index) -> None:
        self.index = checked_index(self, index)

    def forward(self, inputs: Arrays) -> Arrays:
        x, *arrays = inputs
        self.retain_inputs(range(1, len(inputs)))
        place = thaw_index(self.index, x.shape, tuple(arrays))
        return (turned(x, self.index)[place],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        shape = input_shape(self)
        if not arrays:
            return GetItemGrad(self.index, shape).apply(grad_outputs)
        mark_masked(self)
        positions = Positions(self.index, shape).apply(arrays)[0]
        flat = AddAt(math.prod(shape)).apply((reshaped(gy, (math.prod(gy.shape),)), positions))[0]
        return (reshaped(flat, shape), *(None for _ in arrays))

    @staticmethod
    def put_back(setting: Index, source: Variable, part: Variable) -> Variable:
        """The source with the elements of a part at the index."""
        return SetItem(setting).apply((source, part))[0]


def get_item(x: Any, index: Any) -> Variable:
    """x[index]. The result is a value, not a view.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index has entries other than integers, slices, ``...``, None, and
            integer or bool arrays.
        ValueError: the step of a slice is 0.
    """
    x = as_operand("get_item", "x", x, variable_in(index))
    frozen, arrays = freeze_index("get_item", index, x)
    check_fits("get_item", frozen, x, arrays)
    if arrays and is_recording_net():
        frozen, arrays = _with_fixed_positions(index, frozen, arrays)
    if len(arrays) == 1 and len(frozen) == 1 and is_integer(arrays[0].raw):
        return _rows(x, arrays[0])
    result = GetItem(frozen).apply((x, *arrays))[0]
    if shared_memory.is_watched and not arrays and result.shape != ():  # NumPy copies numbers
        shared_memory.note(x, result, GetItem, frozen)
    return result


def _with_fixed_positions(
    index: Any, frozen: Index, arrays: list[Variable]
) -> tuple[Index, list[Variable]]:
    """An index with positions in the place of masks that are arrays or lists, for a net.

    Such a mask is a constant of the net, so the selection has a fixed shape.
    """
    given = [item for item in (index if isinstance(index, tuple) else (index,)) if _is_array(item)]
    waiting = iter(zip(given, arrays, strict=True))
    fixed: list[Any] = []
    found: list[Variable] = []
    for entry in frozen:
        if not isinstance(entry, Place):
            fixed.append(entry)
            continue
        item, array = next(waiting)
        is_mask = array.ndim > 0 and not is_integer(array.raw)
        if not is_mask or isinstance(item, ArrayMethods) or has_no_values(array.raw):
            fixed.append(entry)
            found.append(array)
            continue
        for positions in numpy.nonzero(to_host(array.raw)):
            fixed.append(Place(1))
            found.append(wrap_array(array.device.from_host(positions), array.device, False))
    return tuple(fixed), found


class GetItemGrad(FunctionNode):
    """gx = zeros of ``shape`` with gy written at a basic index.   gy: (selection) -> gx: (shape)

    The gradient of ``GetItem`` without arrays. Second order:   dL/dgy = dL/dgx[index]
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, index: Index, shape: Shape) -> None:
        self.index = checked_index(self, index)
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (gy,) = inputs
        zeros = namespace_of(gy).zeros(self.shape, dtype=gy.dtype, device=gy.device)
        return (written(zeros, self.index, (), gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return GetItem(self.index).apply(grad_outputs)


class Positions(FunctionNode):
    """p = the flat positions that an index with arrays selects; no gradient.

    integer or bool arrays -> p: (number of selected elements), integer.
    """

    input_counts = (1, ...)

    def __init__(self, index: Index, shape: Shape) -> None:
        self.index = checked_index(self, index)
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])
        places = xp.arange(math.prod(self.shape), device=inputs[0].device)
        places = xp.reshape(places, self.shape)
        selected = turned(places, self.index)[thaw_index(self.index, self.shape, inputs)]
        return (xp.reshape(selected, (-1,)),)


class SetItem(FunctionNode):
    """y = a copy of x with v written at index.

    x: (s), v: (broadcasts to the selection), integer or bool arrays -> y: (s).
    With g = dL/dy:   dL/dx = g with zeros at index   dL/dv = g[index], summed to v's shape. Where
    arrays name an element several times, only the value that stands in y has a gradient.
    """

    input_counts = (2, ...)
    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, index: Index) -> None:
        self.index = checked_index(self, index)

    def forward(self, inputs: Arrays) -> Arrays:
        x, v, *arrays = inputs
        xp = namespace_of(x)
        self.retain_inputs(range(2, len(inputs)))
        value = v if v.dtype == x.dtype else xp.astype(v, x.dtype)
        return (written(xp.asarray(x, copy=True), self.index, tuple(arrays), value),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        mark_masked(self)
        gx = gv = None
        if 0 in target_input_indexes:
            _, zero = as_operands("set_item", gy, 0)
            gx = SetItem(self.index).apply((gy, zero, *arrays))[0]
        if 1 in target_input_indexes:
            gv = unbroadcast(SetItemGrad(self.index).apply((gy, *arrays))[0], self, 1)
        return (gx, gv, *(None for _ in arrays))


class SetItemGrad(FunctionNode):
    """gv = gy[index], but 0 for a value that a later value of the same index has replaced.

    gy: (s), integer or bool arrays -> gv: (shape of the selection). The gradient of the value of
    ``SetItem``.   dL/dgy = zeros of shape s with dL/dgv written at index
    """

    input_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, index: Index) -> None:
        self.index = checked_index(self, index)

    def forward(self, inputs: Arrays) -> Arrays:
        gy, *arrays = inputs
        self.retain_inputs(range(1, len(inputs)))
        place = thaw_index(self.index, gy.shape, tuple(arrays))
        gv = turned(gy, self.index)[place]
        if not any(is_integer(array) for array in arrays):
            return (gv,)  # bool arrays and slices name an element once
        xp = namespace_of(gy)
        numbers = xp.reshape(xp.arange(math.prod(gv.shape), device=gy.device), gv.shape)
        unwritten = xp.zeros_like(gy, dtype=numbers.dtype)
        standing = turned(written(unwritten, self.index, tuple(arrays), numbers), self.index)
        return (xp.where(standing[place] == numbers, gv, xp.zeros_like(gv)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        arrays = self.get_retained_inputs()
        mark_masked(self)
        zeros = zeros_beside(h, input_shape(self))
        return (SetItem(self.index).apply((zeros, h, *arrays))[0], *(None for _ in arrays))


def set_item(x: Any, index: Any, value: Any) -> Variable:
    """A copy of x with ``value`` written at an index, for ``x[index] = value``.

    The value is cast to the dtype of x, from the same kind of dtype or a lower one: bool,
    integer, floating, complex. Where an index names an element several times, the last value
    stands, and the others have no gradient. ``index_add`` and ``scatter_add`` add all values.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: an entry of the index is no index; or the dtype of x cannot hold the value.
        ValueError: the value does not broadcast to the selection.
    """
    names = ("x", "value")
    x, value = as_operands("set_item", x, value, names, beside=variable_in(index))
    check_cast("x[i] = v", value.filled_array(), x.filled_array())
    frozen, arrays = freeze_index("set_item", index, x)
    check_fits("set_item", frozen, x, arrays)
    is_mask = len(frozen) == len(arrays) == 1 and not is_integer(arrays[0].raw)
    if is_mask and value.size == 1 and (hidden_axes.stack or has_no_values(x.raw)):
        # x[mask] has another shape by example, or an unknown shape; a number fits any
        fitting = reshape(value, ())
    else:
        fitting = _fitting(value, frozen, x, arrays)
    return SetItem(frozen).apply((x, fitting, *arrays))[0]


def _selection_shape(index: Index, x: Variable, arrays: list[Variable]) -> Shape:
    """The shape of ``x[index]``."""
    selected, raws = x.raw, [array.raw for array in arrays]
    if any(own_backend(raw) is not None for raw in (selected, *raws)):
        # in a vmapped function: the shape is that of NumPy's arrays of the shapes of an example
        selected = numpy.broadcast_to(numpy.False_, x.shape)
        raws = [numpy.zeros(i.shape, int) if is_integer(i) else to_host(i) for i in raws]
    return tuple(selected[thaw_index(index, x.shape, tuple(raws))].shape)


def _fitting(value: Variable, index: Index, x: Variable, arrays: list[Variable]) -> Variable:
    """The value, without leading axes of length 1 beyond those of the selection."""
    selection = _selection_shape(index, x, arrays)
    extra = value.ndim - len(selection)
    shape = value.shape[extra:] if extra > 0 else value.shape
    if math.prod(shape) != value.size or not broadcasts_to(shape, selection):
        raise ValueError(
            f"set_item: value has shape {value.shape}, which does not broadcast to the selection, "
            f"of shape {selection}. Reshape or index the value."
        )
    return reshape(value, shape)

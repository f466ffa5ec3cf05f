"""The same elements in another order or number: flip, roll, stack, tile, repeat and friends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Never

import numpy

from tinynode.core.conversion import as_host
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.messages import call_too_large
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, is_array, is_floating, namespace_of, put
from tinynode.errors import OperandError, SizeError, describe, short_text, unknown_keywords
from tinynode.functions.attributes import Axes, Axis, Length, Shift, Slice
from tinynode.functions.checked import checked, checked_axes, checked_axis
from tinynode.functions.data_types import promoted
from tinynode.functions.indexing import GetItem, set_item, take
from tinynode.functions.operands import (
    as_integer,
    as_number,
    as_operand,
    as_operand_list,
    as_shape,
    input_nodes,
    input_shape,
    is_index,
    normalize_axes,
    normalize_axis,
)
from tinynode.functions.shapes import AxisNode, broadcast_to, reshape, zeros_beside
from tinynode.functions.shared_memory import shared_memory
from tinynode.type_check import TypeInfoTuple, expect

__all__ = [
    "Concat",
    "Flip",
    "Roll",
    "Split",
    "Stack",
    "Unstack",
    "concat",
    "flip",
    "meshgrid",
    "pad",
    "repeat",
    "roll",
    "split",
    "stack",
    "tile",
    "unstack",
]
__dir__ = __all__.copy  # for completion


class Concat(AxisNode):
    """y = the inputs, joined along an axis.

    x_i: (s with n_i at axis) -> y: (s with sum of n_i).   dL/dx_i = the i-th part of dL/dy
    """

    input_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True
    type_hint = "all inputs need equal shapes, but for the axis of concat."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 1)
        first = in_types[0]
        expect(self.axis < first.ndim)
        for other in in_types[1:]:
            expect(other.dtype == first.dtype, other.ndim == first.ndim)
            for axis in range(int(first.ndim)):
                if axis != self.axis:
                    expect(other.shape[axis] == first.shape[axis])

    def forward(self, inputs: Arrays) -> Arrays:
        return (namespace_of(inputs[0]).concat(inputs, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        lengths = [node.shape[self.axis] for node in input_nodes(self)]
        ends = list(itertools.accumulate(lengths))
        return split(gy, ends[:-1], self.axis)


def concat(xs: Iterable[Any], axis: int | None = 0, **unknown: Never) -> Variable:
    """Variables or arrays, joined along ``axis``; None flattens the inputs first.

    xs: (..., n1, ...), (..., n2, ...) -> y: (..., n1 + n2, ...). The other axes are equal.

        >>> F.concat([tn.asarray([1.0]), tn.asarray([2.0, 3.0])]).tolist()
        [1.0, 2.0, 3.0]

    Raises:
        OperandError: the axis is no integer.
        ValueError: there are no inputs.
        InvalidType: shapes do not fit together, or floats stand beside integers.
    """
    if unknown:
        raise unknown_keywords("concat", unknown)
    if axis is not None and not is_index(axis):
        raise OperandError(
            f"concat: axis must be an integer, got {describe(axis)}. The inputs stand in one "
            "list: concat([x, y])."
        )
    variables = as_operand_list("concat", "xs", xs)
    if not variables:
        raise ValueError("concat: xs is empty; give at least one Variable.")
    if axis is None:
        variables = [reshape(x, -1) for x in variables]
    position = normalize_axis("concat", axis or 0, variables[0].ndim)
    return Concat(position).apply(promoted(*variables))[0]


class Split(FunctionNode):
    """y_i = the part of x between two positions along an axis.

    x: (s) -> y_i: (s with n_i at axis).   dL/dx = the dL/dy_i, joined
    """

    output_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, indices: tuple[Length, ...], axis: Axis) -> None:
        self.indices: tuple[int, ...] = checked(self, "indices", indices)
        self.axis = checked_axis(self, axis)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        parts = []
        for start, stop in zip(
            (0, *self.indices), (*self.indices, x.shape[self.axis]), strict=True
        ):
            parts.append(x[(*(slice(None),) * self.axis, slice(start, stop), ...)])
        return tuple(parts)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        shape = input_shape(self)
        example = next(gy for gy in grad_outputs if gy is not None)
        ends = (*self.indices, shape[self.axis])
        parts = []
        for gy, start, stop in zip(grad_outputs, (0, *self.indices), ends, strict=True):
            if gy is not None:
                parts.append(gy)
                continue
            part_shape = (*shape[: self.axis], stop - start, *shape[self.axis + 1 :])
            parts.append(zeros_beside(example, part_shape))
        return (concat(parts, self.axis),)


MOST_PARTS = 2**20
"""The number of sections of an empty axis, and of elements of a border, at most."""


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Variable, ...]:
    """x cut along ``axis``: at the given positions, or into equal sections.

    Raises:
        OperandError: the positions are not integers.
        ValueError: equal sections do not come out, or positions fall outside or back.
    """
    x = as_operand("split", "x", x)
    axis = normalize_axis("split", axis, x.ndim)
    length = x.shape[axis]
    if isinstance(indices_or_sections, int | numpy.integer):
        sections = as_integer("split", "indices_or_sections", indices_or_sections)
        if sections > max(length, MOST_PARTS):
            raise ValueError(
                f"split: indices_or_sections must be at most {max(length, MOST_PARTS)}, got "
                f"{sections} for an axis of length {length}."
            )
        if sections < 1 or length % sections:
            raise ValueError(
                f"split: indices_or_sections={sections} does not divide the length {length}."
            )
        step = length // sections
        indices = tuple(range(step, length, step)) if step else (0,) * (sections - 1)
    else:
        indices = as_shape("split", "indices_or_sections", indices_or_sections)
    if list(indices) != sorted(indices) or any(not 0 <= i <= length for i in indices):
        raise ValueError(f"split: indices_or_sections {indices} must rise, within 0 and {length}.")
    return Split(indices, axis).apply((x,))


class Stack(AxisNode):
    """y = the inputs, of equal shapes, joined along a new axis.

    x_i: (s) -> y: (s with the number of inputs at axis).   dL/dx_i = Unstack(dL/dy)_i
    """

    input_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True
    type_hint = "all inputs need one shape and one dtype."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 1)
        for other in in_types[1:]:
            expect(other.shape == in_types[0].shape, other.dtype == in_types[0].dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        return (namespace_of(inputs[0]).stack(inputs, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return Unstack(self.axis).apply(grad_outputs)


def stack(xs: Iterable[Any], *, axis: int = 0, **unknown: Never) -> Variable:
    """Variables or arrays of equal shapes, joined along a new axis.

    xs: (s), (s), ... -> y: (s with a new axis of the number of xs).

        >>> F.stack([tn.asarray([1.0, 2.0]), tn.asarray([3.0, 4.0])], axis=1).tolist()
        [[1.0, 3.0], [2.0, 4.0]]

    Raises:
        ValueError: there are no inputs, or the axis does not exist.
        InvalidType: floats stand beside integers.
    """
    if unknown:
        raise unknown_keywords("stack", unknown)
    variables = as_operand_list("stack", "xs", xs)
    if not variables:
        raise ValueError("stack: xs is empty; give at least one Variable.")
    place = normalize_axis("stack", axis, variables[0].ndim + 1)
    for i, x in enumerate(variables):
        if x.shape != variables[0].shape:
            raise ValueError(
                f"stack: xs[{i}] has shape {x.shape}, xs[0] has {variables[0].shape}: all must be "
                "equal. concat joins arrays of different length."
            )
    return Stack(place).apply(promoted(*variables))[0]


class Unstack(AxisNode):
    """y_i = the part of x at i along an axis, without the axis.

    x: (s) -> y_i: (s without the axis).   dL/dx = Stack(dL/dy_0, dL/dy_1, ...)
    """

    output_counts = (0, ...)
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        before = (slice(None),) * self.axis
        return tuple(x[(*before, i, ...)] for i in range(x.shape[self.axis]))

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        example = next(gy for gy in grad_outputs if gy is not None)
        zeros = zeros_beside(example, example.shape)
        return Stack(self.axis).apply([zeros if gy is None else gy for gy in grad_outputs])


def unstack(x: Any, *, axis: int = 0) -> tuple[Variable, ...]:
    """The parts of x along an axis, without the axis.

    Raises:
        ValueError: the axis does not exist.
    """
    x = as_operand("unstack", "x", x)
    axis = normalize_axis("unstack", axis, x.ndim)
    if x.shape[axis] == 0:
        return ()
    parts = Unstack(axis).apply((x,))
    if shared_memory.is_watched and x.ndim > 1:  # NumPy copies numbers
        for i, part in enumerate(parts):
            index = (*[Slice(None, None, None)] * axis, i)
            shared_memory.note(x, part, GetItem, index)
    return parts


class Flip(FunctionNode):
    """y = x with the order of the elements reversed along axes.

    x: (s) -> y: (s).   dL/dx = dL/dy reversed along the same axes
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, axes: Axes) -> None:
        self.axes = checked_axes(self, axes)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).flip(x, axis=self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return Flip(self.axes).apply(grad_outputs)


def flip(x: Any, *, axis: int | Sequence[int] | None = None) -> Variable:
    """x with the order of the elements reversed along an axis, several, or all.

    y[i] = x[n - 1 - i] along each axis.   x: (s) -> y: (s).

        >>> F.flip(tn.asarray([1.0, 2.0, 3.0])).tolist()
        [3.0, 2.0, 1.0]

    Raises:
        ValueError: an axis does not exist.
    """
    x = as_operand("flip", "x", x)
    return Flip(normalize_axes("flip", axis, x.ndim)).apply((x,))[0]


class Roll(FunctionNode):
    """y = x with the elements moved on along axes; elements beyond the end return at the front.

    x: (s) -> y: (s).   dL/dx = dL/dy moved back
    """

    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, shifts: tuple[Shift, ...], axes: tuple[Axis, ...]) -> None:
        self.shifts: tuple[int, ...] = checked(self, "shifts", shifts)
        self.axes: tuple[int, ...] = checked(self, "axes", axes)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).roll(x, self.shifts, axis=self.axes),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return Roll(tuple(-shift for shift in self.shifts), self.axes).apply(grad_outputs)


def roll(
    x: Any, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None
) -> Variable:
    """x with the elements moved on by ``shift`` places along an axis; None rolls x flattened.

    Raises:
        OperandError: a shift is not an integer.
        ValueError: an axis does not exist, or the numbers of shifts and axes differ.
    """
    x = as_operand("roll", "x", x)
    given = shift if isinstance(shift, tuple | list) else (shift,)
    shifts = as_shape("roll", "shift", given)
    if axis is None:
        if len(shifts) != 1:
            raise ValueError(f"roll: without an axis, shift must be one integer, got {shift}.")
        return reshape(Roll(shifts, (0,)).apply((reshape(x, -1),))[0], x.shape)
    axes = normalize_axes("roll", axis, x.ndim)
    if given is not shift:
        shifts = shifts * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts do not go with {len(axes)} axes.")
    return Roll(shifts, axes).apply((x,))[0]


def tile(x: Any, repetitions: int | Sequence[int]) -> Variable:
    """x laid side by side: ``repetitions[i]`` times along axis i, counted from the last.

    Raises:
        OperandError: a repetition is not an integer.
        ValueError: a repetition is negative.
    """
    x = as_operand("tile", "x", x)
    times = as_shape("tile", "repetitions", repetitions)
    if any(n < 0 for n in times):
        raise ValueError(f"tile: repetitions {times} must not be negative.")
    ndim = len(times) if len(times) > x.ndim else x.ndim
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    pairs = [m for pair in zip((1,) * ndim, shape, strict=True) for m in pair]
    wide = [m for pair in zip(times, shape, strict=True) for m in pair]
    result = tuple(n * m for n, m in zip(times, shape, strict=True))
    try:
        return reshape(broadcast_to(reshape(x, pairs), wide), result)
    except SizeError as error:
        raise call_too_large("tile", error, repetitions=repetitions) from error


def repeat(x: Any, repeats: Any, *, axis: int | None = None) -> Variable:
    """Each element of x ``repeats`` times along an axis; None repeats x flattened.

    Args:
        x: a Variable or an array.
        repeats: an integer; or an integer for each place of the axis.
        axis: the axis.

    Raises:
        ValueError: ``repeats`` is negative, has the wrong length, or the axis does not exist.
        OperandError: ``repeats`` does not consist of integers.
    """
    x = as_operand("repeat", "x", x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = normalize_axis("repeat", axis, x.ndim)
    if not hasattr(repeats, "__index__") or getattr(repeats, "shape", ()) != ():
        return take(x, _places(repeats, x.shape[axis]), axis=axis)
    repeats = as_integer("repeat", "repeats", repeats)
    if repeats < 0:
        raise ValueError(f"repeat: repeats must not be negative, got {repeats}.")
    before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
    try:
        wide = broadcast_to(reshape(x, (*before, 1, *after)), (*before, repeats, *after))
        return reshape(wide, (*before[:-1], before[-1] * repeats, *after))
    except SizeError as error:
        raise call_too_large("repeat", error, repeats=repeats) from error


def _places(repeats: Any, length: int) -> list[int]:
    """Each place of an axis as often as ``repeats`` says."""
    array = repeats.array if isinstance(repeats, Variable) else repeats
    if not is_array(array):
        is_list = isinstance(array, Iterable)
        if not is_list or not all(is_index(count) for count in array):
            raise OperandError(
                f"repeat: repeats must be an integer, or integers, got {describe(repeats)}."
            )
        array = [as_integer("repeat", "repeats", count) for count in array]
    counts = as_host(array)
    if counts.dtype.kind not in "iu":
        raise OperandError(
            f"repeat: repeats must be an integer, or integers, got {describe(repeats)}."
        )
    if counts.shape not in ((length,), (1,)) or (counts < 0).any():
        raise ValueError(
            f"repeat: repeats {describe(repeats)} must be {length} integers, one for each place "
            "of the axis, and none negative."
        )
    try:
        places: list[int] = numpy.repeat(numpy.arange(length), counts).tolist()
    except (MemoryError, ValueError) as error:
        raise SizeError(
            f"repeat: repeats {describe(repeats)} ask for more elements than fit into the memory."
        ) from error
    return places


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Variable, ...]:
    """Coordinates of a grid: for each vector an array of all axes, varying along the own axis.

    Args:
        arrays: vectors, of lengths n_0, n_1 and so on.
        indexing: "ij" gives arrays of shape (n_0, n_1, ...); "xy" exchanges the first two axes.

    Raises:
        ValueError: an argument is not one-dimensional, or the indexing is unknown.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}.')
    vectors = as_operand_list("meshgrid", "arrays", arrays)
    for i, x in enumerate(vectors):
        if x.ndim != 1:
            raise ValueError(f"meshgrid: arrays[{i}] must have one axis, its shape is {x.shape}.")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = tuple(vectors[i].size for i in order)
    places = {i: axis for axis, i in enumerate(order)}
    grids = []
    for i, x in enumerate(vectors):
        line = [1] * len(shape)
        line[places[i]] = x.size
        grids.append(broadcast_to(reshape(x, tuple(line)), shape))
    return tuple(grids)


def pad(x: Any, pad_width: Any, value: Any = 0, mode: str = "constant") -> Variable:
    """x with a border, of numbers or of x's own elements.

    Of numbers:   dL/dx = the part of dL/dy inside the border. Of elements, dL/dy of the border is
    added where the elements stood.

    Args:
        x: a Variable or an array.
        pad_width: how wide the border is: an integer for all sides, a pair (before, after) for
            all axes, or such a pair for each axis.
        value: the number; or a pair (before, after), or such a pair for each axis. A later axis
            fills the corners.
        mode: "constant", the numbers; "reflect", x mirrored at the first and last elements;
            "edge", the first and last elements.

    Raises:
        OperandError: a width is not an integer, or the value not a number.
        ValueError: a width is negative, widths or values do not fit x, the mode is unknown, or x
            is too short for the mode.
    """
    x = as_operand("pad", "x", x)
    numbers = _border_values(value, x)
    widths = _widths(pad_width, x)
    if mode != "constant":
        return _pad_with_elements(x, widths, mode)
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True))
    array = x.raw
    first = numbers[0][0] if numbers else 0  # a 0-d array has no border
    try:
        border = x.xp.full(shape, first, dtype=array.dtype, device=array.device)
    except (MemoryError, OverflowError, ValueError) as error:
        raise SizeError(
            f"pad: pad_width {short_text(pad_width)} or value {short_text(value)} is too large "
            f"for x of shape {x.shape}: {error}."
        ) from error
    if any(number != first for pair in numbers for number in pair):
        border = _with_sides(border, widths, numbers)
    inside = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))
    return set_item(wrap_array(border, x.device, False), inside, x)


def _border_values(value: Any, x: Variable) -> list[tuple[float, float]]:
    """The numbers before and after, for each axis of x."""
    check = as_number if is_floating(x.raw) else as_integer
    if not isinstance(value, tuple | list):
        number = check("pad", "value", value)
        return [(number, number)] * x.ndim
    pairs = value if any(isinstance(entry, tuple | list) for entry in value) else [value] * x.ndim
    lengths = [len(entry) if isinstance(entry, tuple | list) else 0 for entry in pairs]
    if lengths != [2] * x.ndim:
        raise ValueError(
            "pad: value must be a number, a pair, or a pair for each axis of x (shape "
            f"{x.shape}), got {short_text(value)}."
        )
    return [(check("pad", "value", low), check("pad", "value", high)) for low, high in pairs]


def _with_sides(
    border: Array, widths: list[tuple[int, ...]], numbers: list[tuple[float, float]]
) -> Array:
    """The border with a number of its own on each side."""
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, numbers, strict=True)):
        leading = (slice(None),) * axis
        length = border.shape[axis]
        border = put(border, (*leading, slice(0, before), ...), low)
        border = put(border, (*leading, slice(length - after, length), ...), high)
    return border


def _pad_with_elements(x: Variable, widths: list[tuple[int, ...]], mode: str) -> Variable:
    """x with a border of x's own elements."""
    if mode not in ("reflect", "edge"):
        raise ValueError(f'pad: mode must be "constant", "reflect" or "edge", got {mode!r}.')
    widest = max([max(pair) for pair in widths], default=0)
    if widest > MOST_PARTS:
        raise ValueError(
            f"pad: pad_width must be at most {MOST_PARTS} with mode={mode!r}, got {widest}."
        )
    for axis, (before, after) in enumerate(widths):
        last, width = x.shape[axis] - 1, before if before > after else after
        if width and (last < 0 or (mode == "reflect" and width > last)):
            raise ValueError(
                f"pad: axis {axis} of x (shape {x.shape}) is too short for a border of {width} "
                f"with mode={mode!r}."
            )
        if not width:
            continue
        low, high = [0] * before, [last] * after
        if mode == "reflect":
            low, high = list(range(before, 0, -1)), [last - 1 - i for i in range(after)]
        x = take(x, [*low, *range(last + 1), *high], axis=axis)
    return x


def _widths(pad_width: Any, x: Variable) -> list[tuple[int, ...]]:
    """The widths before and after, for each axis of x."""
    given = pad_width if isinstance(pad_width, tuple | list) else (pad_width, pad_width)
    if not any(isinstance(entry, tuple | list) for entry in given):
        given = (given,) * x.ndim
    widths = [as_shape("pad", "pad_width", entry) for entry in given]
    if len(widths) != x.ndim or any(len(w) != 2 or min(w) < 0 for w in widths):
        raise ValueError(
            f"pad: pad_width must be an integer, a pair, or a pair for each axis of x (shape "
            f"{x.shape}), none negative, got {short_text(pad_width)}."
        )
    return widths

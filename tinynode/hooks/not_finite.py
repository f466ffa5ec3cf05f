"""The first NaN or infinity of an array, and the operands at the element.

Requirement: a message about a NaN names numbers of the run itself. So only retained
arrays, gradients and the inputs of a running forward count. An element without a single operand
gets ranges in place of operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode.core.hooks import retained_arrays
from tinynode.devices import (
    COMPLEX,
    FLOATING,
    Array,
    all_finite,
    kind_of,
    own_backend,
    to_host,
    without_hidden_axes,
)
from tinynode.errors import describe, joined, number_text

Index: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[int, ...]
Named: TypeAlias = tuple[str, Array | None]
"""An array with the name in messages: ``("input 0", x)``."""
DIGITS = 6
"""The digits of a number in a message."""
UNKNOWN_GUARD = (
    "The function names no guard. Keep the operands in the domain: choose a safe "
    "operand with where before the function, clip the operand, or add a small eps."
)


class Bad(NamedTuple):
    """The first NaN or inf: a NaN if the array has one, else an infinity."""

    place: Index
    value: str
    is_nan: bool


class Inner(NamedTuple):
    """A function inside of a backward, with finite inputs and NaN or inf in the output."""

    function: Any
    inputs: tuple[Array, ...]
    output: Array


def is_finite(array: Array | None) -> bool:
    """True if an array has neither NaN nor infinity; also for integers, and without an array."""
    if array is None:
        return True
    array = without_hidden_axes(array)
    return kind_of(array) not in (FLOATING, COMPLEX) or all_finite(array)


def host_of(array: Array) -> Array:
    """An array as a NumPy array; in a vmapped function, of the first example with NaN or inf."""
    if own_backend(array) is None:
        return to_host(array)
    host = to_host(without_hidden_axes(array))
    examples = host.reshape(-1, *array.shape)
    if not len(examples) or host.dtype.kind not in "fc":
        return numpy.zeros(array.shape, host.dtype) if not len(examples) else examples[0]
    bad = ~numpy.isfinite(examples.reshape(len(examples), -1)).all(axis=1)
    return examples[int(numpy.argmax(bad))]


def first_bad(array: Array) -> Bad:
    """The first NaN of an array, else the first infinity; the array has one of both."""
    host = host_of(array)
    nan = numpy.isnan(host)
    is_nan = bool(nan.any())
    flat = int(numpy.argmax(nan if is_nan else numpy.isinf(host)))
    index = tuple(int(i) for i in numpy.unravel_index(flat, host.shape))
    return Bad(index, number_text(host[index], DIGITS), is_nan)


def place_text(index: Index) -> str:
    """An index in words."""
    return f"element [{', '.join(map(str, index))}]" if index else "the only element"


def value_fits(array: Array, shape: Shape) -> bool:
    """True if an array broadcasts to a shape."""
    own = tuple(array.shape)
    tail = shape[len(shape) - len(own) :]
    return len(own) <= len(shape) and all(n in (1, m) for n, m in zip(own, tail, strict=True))


def value_at(array: Array, index: Index, shape: Shape) -> str | None:
    """The number at an index of ``shape``, to which the array broadcasts; None if not so.

    None, too, in a vmapped function, where each example has another number.
    """
    if own_backend(array) is not None or not value_fits(array, shape):
        return None
    own = tuple(array.shape)
    position = index[len(shape) - len(own) :]
    place = tuple(0 if n == 1 else i for i, n in zip(position, own, strict=True))
    return number_text(host_of(array)[place], DIGITS)


def range_text(array: Array) -> str:
    """The shape and the range of an array in words."""
    host = to_host(without_hidden_axes(array))
    shape = f"of shape {tuple(host.shape)}"
    if not host.size or host.dtype.kind not in "fiu":
        return f"is {describe(array)}"
    finite = host[numpy.isfinite(host)]
    bad = host.size - finite.size
    more = f", with {bad} NaN or inf" if bad else ""
    if not finite.size:
        return f"{shape} has no finite element"
    low, high = number_text(finite.min(), DIGITS), number_text(finite.max(), DIGITS)
    return f"{shape} goes from {low} to {high}{more}"


def operand_texts(arrays: Sequence[Named], index: Index, shape: Shape) -> list[str]:
    """``input 0 is 0`` for each array that broadcasts to ``shape``, a range for the others."""
    texts = []
    for name, array in arrays:
        if array is not None:
            value = value_at(array, index, shape)
            texts.append(f"{name} {range_text(array)}" if value is None else f"{name} is {value}")
    return texts


def forward_facts(function: Any, inputs: Sequence[Array], output: Array) -> list[str]:
    """The first NaN or inf of an output, and the operands there."""
    bad = first_bad(output)
    named = [(f"input {i}", x) for i, x in enumerate(inputs)]
    return [
        f"First, {place_text(bad.place)} is {bad.value}.",
        _operands(function, named, bad, output),
    ]


def _operands(function: Any, named: Sequence[Named], bad: Bad, output: Array) -> str:
    shape = tuple(output.shape)
    if function.is_elementwise:
        return f"There {joined(operand_texts(named, bad.place, shape))}."
    ranges = [f"{name} {range_text(x)}" for name, x in named if x is not None]
    return (
        f"{function.label} makes an element of several: the element has no single operand. "
        f"{capitalized(joined(ranges))}."
    )


def backward_facts(
    function: Any,
    gradient: Array,
    grad_outputs: Sequence[Array | None],
    inner: Sequence[Inner],
) -> tuple[list[str], str]:
    """The first NaN or inf of a gradient, the operands, the guard."""
    bad, shape = first_bad(gradient), tuple(gradient.shape)
    facts = [f"First, {place_text(bad.place)} is {bad.value}."]
    named = [*retained(function), *_gradients(grad_outputs)]
    found = next(_inside(inner, bad, shape), None)
    index, whole = _place_in_output(function, named, grad_outputs, bad.place, shape)
    if index is not None and (function.is_elementwise or function.is_reduction):
        facts.append(_operands_there(function, named, (index, whole), (bad.place, shape)))
    else:
        ranges = [f"{name} {range_text(x)}" for name, x in named if x is not None]
        why = "sums over several elements" if function.is_elementwise else "mixes elements"
        facts.append(
            f"The gradient {why} of {function.label}: the element has no single operand. "
            f"{capitalized(joined(ranges))}."
        )
    if found is not None:
        facts.append(_inner_text(*found))
    source = found[0].function if found is not None and not function.guard else function
    return facts, guard_text(source)


def _operands_there(
    function: Any, named: Sequence[Named], output: tuple[Index, Shape], own: tuple[Index, Shape]
) -> str:
    """The operands at an element of the output, and in a reduction at the element itself."""
    if output[1] == own[1]:
        return f"There {joined(operand_texts(named, *output))}."
    place = place_text(output[0])
    if not function.is_reduction:
        texts = operand_texts(named, *output)
        return f"The element is a sum; at {place} of the output {joined(texts)}."
    texts = []
    for name, array in named:
        is_own = array is not None and tuple(array.shape) == own[1]
        texts += operand_texts([(name, array)], *(own if is_own else output))
    return f"The element belongs to {place} of the output: {joined(texts)}."


def _place_in_output(
    function: Any,
    named: Sequence[Named],
    grad_outputs: Sequence[Array | None],
    index: Index,
    shape: Shape,
) -> tuple[Index | None, Shape]:
    """The element of the output to an element of an input; None if several."""
    known = {tuple(gy.shape) for gy in grad_outputs if gy is not None}
    if len(known) != 1:
        return None, shape
    (whole,) = known
    if whole == shape:
        return index, shape
    if function.is_reduction:
        axes = function.axes
        if function.keepdims:
            return tuple(0 if i in axes else n for i, n in enumerate(index)), whole
        return tuple(n for i, n in enumerate(index) if i not in axes), whole
    return _first_in_sum(named, whole, index, shape), whole


def _first_in_sum(
    named: Sequence[Named], whole: Shape, index: Index, shape: Shape
) -> Index | None:
    """Of the elements of an output in a sum of ``sum_to``, the first with NaN or inf, or 0."""
    hosts = [host_of(x) for _, x in named if x is not None and value_fits(x, whole)]
    for is_special in (_is_bad, _is_zero):
        special = numpy.zeros(whole, bool)
        for host in hosts:
            special = special | is_special(host)
        for position in numpy.argwhere(special):
            place = tuple(int(i) for i in position)
            if _summed_place(place, whole, shape) == index:
                return place
    return None


def _is_bad(host: Array) -> Array:
    return ~numpy.isfinite(host)


def _is_zero(host: Array) -> Array:
    return host == 0


def _inside(inner: Sequence[Inner], bad: Bad, shape: Shape) -> Iterator[tuple[Inner, Index]]:
    """The functions of a backward with NaN or inf at the element, before sums too."""
    for one in inner:
        own = tuple(one.output.shape)
        host = host_of(one.output)
        for position in numpy.argwhere(~numpy.isfinite(host)):
            place = tuple(int(i) for i in position)
            if _summed_place(place, own, shape) == bad.place:
                yield one, place
                break


def _summed_place(place: Index, own: Shape, shape: Shape) -> Index | None:
    """The index after ``sum_to(array, shape)``; None if the shapes do not fit."""
    tail = own[len(own) - len(shape) :]
    if len(shape) > len(own) or any(m not in (1, n) for n, m in zip(tail, shape, strict=True)):
        return None
    position = place[len(own) - len(shape) :]
    return tuple(0 if m == 1 else i for i, m in zip(position, shape, strict=True))


def _inner_text(one: Inner, place: Index) -> str:
    shape = tuple(one.output.shape)
    values = [value_at(x, place, shape) for x in one.inputs]
    value = number_text(host_of(one.output)[place], DIGITS)
    if one.function.is_elementwise and None not in values:
        given = joined([str(text) for text in values])
        return f"Inside of the backward, {one.function.label} made {value} of {given}."
    return f"Inside of the backward, {one.function.label} made the first {value}."


def retained(function: Any) -> list[Named]:
    """The retained arrays of a function, with names."""
    inputs, outputs = retained_arrays(function)
    named = [(f"input {i}", x) for i, x in enumerate(inputs)]
    named += [(f"output {i}", x) for i, x in enumerate(outputs)]
    return [(name, x) for name, x in named if x is not None]


def _gradients(grad_outputs: Sequence[Array | None]) -> list[Named]:
    return [(f"the gradient of output {i}", gy) for i, gy in enumerate(grad_outputs)]


def capitalized(text: str) -> str:
    """The text with a capital at the beginning."""
    return text[:1].upper() + text[1:]


def guard_text(function: Any) -> str:
    """The guard of a function, with a heading."""
    return f"Guard: {function.guard or UNKNOWN_GUARD}"

"""Random bits from a key: the same key gives the same bits, on every device.

Requirement: a compiled or vmapped function draws new numbers for a new key. So the bits are a
function of the key and of the position, without a state: a *counter-based* generator. All steps
are integer arithmetic of the Array API standard, so each array library gives the same bits.

    bits[i] = Threefry(key, counter=i)

A key is an integer array with two words of 32 bits. ``tinynode.random`` makes keys, and turns bits
into numbers.

Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.core.array_arguments import RawArgument
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, is_array, is_integer, namespace_of
from tinynode.errors import OperandError, SizeError, describe, dtype_name, short_text
from tinynode.functions.attributes import Dtype, Shape
from tinynode.functions.checked import checked_dtype, checked_shape
from tinynode.functions.data_types import astype
from tinynode.functions.exponential import in_blocks
from tinynode.functions.manipulation import stack
from tinynode.functions.operands import (
    as_integer,
    as_operand,
    as_operands,
    as_shape,
)

__all__ = ["Counters", "KeyedBits", "KeyedNormal", "keyed_bits"]
__dir__ = __all__.copy  # for completion

WORD = 2**32 - 1
"""The bits of a word; ``& WORD`` takes the rest of a division by 2^32."""
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
DIGITS = {"float16": 11, "float32": 24, "float64": 53}
"""The binary digits of a floating dtype."""


class Counters(FunctionNode):
    """c[i] = first + i, where i counts the elements in row-major order.

    first: (), integer -> c: (shape), int64. No gradient.
    """

    input_counts = (1,)
    input_names = ("first",)

    def __init__(self, shape: Shape) -> None:
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        (first,) = inputs
        xp = namespace_of(first)
        places = xp.arange(math.prod(self.shape), dtype=xp.int64, device=first.device)
        return (xp.reshape(places, self.shape) + xp.astype(first, xp.int64),)


class KeyedBits(FunctionNode):
    """bits = the 64 bits that Threefry makes from the two words of a key and a counter.

    high: (s), low: (t), counters: (u), int64 -> bits: (broadcast of s, t and u), int64.
    No gradient.
    """

    is_elementwise = True
    input_counts = (3,)
    input_names = ("high", "low", "counters")

    def forward(self, inputs: Arrays) -> Arrays:
        words_and_counters = namespace_of(inputs[0]).broadcast_arrays(*inputs)
        return (in_blocks(threefry, *words_and_counters),)


class KeyedNormal(FunctionNode):
    """y = sqrt(-2 ln u) cos(2 pi v), with u in (0, 1] and v in [0, 1) from the bits of a key.

    high: (s), low: (t), counters: (u), int64 -> y: (broadcast of s, t and u), floating.
    No gradient.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
    """

    is_elementwise = True
    input_counts = (3,)
    input_names = ("high", "low", "counters")

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = checked_dtype(self, dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])

        def normal(high: Array, low: Array, counters: Array) -> Array:
            bits = threefry(high, low, counters)
            u = xp.astype(((bits >> 32) & WORD) + 1, self.dtype) * 2.0**-32
            angle = xp.astype(bits & WORD, self.dtype) * (math.tau * 2.0**-32)
            return xp.sqrt(xp.log(u) * -2.0) * xp.cos(angle)

        words_and_counters = xp.broadcast_arrays(*inputs)
        return (in_blocks(normal, *words_and_counters, dtype=self.dtype),)


def threefry(high: Array, low: Array, counters: Array) -> Array:
    """Threefry-2x32 with 20 rounds: 64 bits for each key and counter of 64 bits, all int64.

    The words x and y hold 32 bits each. A round adds y to x, and rotates the bits of y. After each
    four rounds, words of the key are added. An int64 has room for the carries of x, so ``& WORD``
    is needed only where the carries of y would count.
    """
    high, low = high & WORD, low & WORD
    keys = (high, low, high ^ low ^ PARITY)
    x = ((counters >> 32) & WORD) + keys[0]
    y = ((counters & WORD) + keys[1]) & WORD
    for stage in range(5):
        for places in ROTATIONS[stage % 2]:
            x = x + y
            rotated = (y << places) | (y >> (32 - places))
            y = (rotated ^ x) & WORD
        x = x + keys[(stage + 1) % 3]
        y = (y + keys[(stage + 2) % 3] + (stage + 1)) & WORD
    return (x << 32) | y


def keyed_bits(key: Any, shape: int | tuple[int, ...], first: Any = 0) -> Variable:
    """64 random bits for each element, as int64. Equal arguments give equal bits. No gradient.

    The draws of ``tinynode.random`` with a key are made of these bits.

    Args:
        key: a key, (2), integer: see ``tinynode.random.key``.
        shape: the shape of the result.
        first: the counter of the first element: an integer, or an integer Variable of shape ().

    Raises:
        OperandError: the key is no integer array of shape (2,), ``first`` is no integer, or the
            shape has another type.
        SizeError: the memory does not hold the bits.
    """
    words = as_key("keyed_bits", key, first)
    counter = as_counter("keyed_bits", "first", first, words)
    lengths = as_shape("keyed_bits", "shape", shape)
    try:
        return KeyedBits().apply(_operands(words, lengths, counter))[0]
    except MemoryError as error:
        raise SizeError(
            f"keyed_bits: shape {short_text(shape)} is too large for the memory. Draw in parts, "
            "with first=."
        ) from error


def _operands(key: Variable, shape: Shape, first: Any = 0) -> tuple[Variable, Variable, Variable]:
    """The two words of a key, and the counters."""
    return key[0], key[1], Counters(shape).apply((as_operands("key", key, first)[1],))[0]


def unit_numbers(key: Variable, shape: Shape, dtype: str) -> Variable:
    """Uniform draws from 0 to below 1; in each dtype the first digits of the float64 draw."""
    digits = DIGITS[dtype]
    whole = (keyed_bits(key, shape) >> (64 - digits)) & (2**digits - 1)
    return astype(whole, dtype) * 2.0**-digits


def normal_numbers(key: Variable, shape: Shape, dtype: str) -> Variable:
    """Normal draws, with float16 by way of float32."""
    kind = "float32" if dtype == "float16" else dtype
    return astype(KeyedNormal(getattr(key.xp, kind)).apply(_operands(key, shape))[0], dtype)


def whole_numbers(key: Variable, shape: Shape, count: int) -> Variable:
    """Integers from 0 to count - 1: floor(count * bits / 2^64), for counts up to 2^31."""
    bits = keyed_bits(key, shape)
    low_product = (bits & WORD) * count
    return (((bits >> 32) & WORD) * count + (low_product >> 32)) >> 32


def words_of(bits: Variable) -> Variable:
    """The high and the low 32 bits, along a new last axis."""
    return stack([(bits >> 32) & WORD, bits & WORD], axis=-1)


def as_key(function: str, key: Any, beside: Any = None) -> Variable:
    """A key as a Variable of int64; ``beside`` is as for ``as_operand``.

    Raises:
        OperandError: the argument is no integer array of shape (2,).
    """
    if not isinstance(key, Variable | RawArgument) and not is_array(key):
        raise _no_key(function, describe(key))
    words = as_operand(function, "key", key, beside)
    if not is_integer(words.filled_array()):
        raise _no_key(function, describe(key))
    if words.shape != (2,):
        is_stack = words.ndim > 1 and words.shape[-1] == 2
        cure = " A row of split's result is a key: keys[0]." if is_stack else ""
        raise _no_key(function, describe(key), cure)
    return words if dtype_name(words.dtype) == "int64" else astype(words, "int64")


def _no_key(function: str, got: str, cure: str = "") -> OperandError:
    return OperandError(
        f"{function}: key must be an integer array of shape (2,), got {got}. Make a key with "
        f"tn.random.key(0), and new keys with tn.random.split(key).{cure}"
    )


def as_counter(function: str, argument: str, number: Any, key: Variable) -> Variable:
    """An integer as a Variable beside a key.

    Raises:
        OperandError: the number is no integer, and no integer array of shape ().
        SizeError: an integer has more than 64 bits.
    """
    if isinstance(number, int | numpy.integer):
        number = as_integer(function, argument, number)
    counter = as_operands(function, key, number, ("key", argument))[1]
    if counter.shape != () or not is_integer(counter.filled_array()):
        raise OperandError(
            f"{function}: {argument} must be an integer, got {describe(number)}. Cast it with "
            "astype('int64')."
        )
    return counter

"""The instructions that compute, as functions on NumPy arrays.

Sums, products, quotients and square roots are rounded as IEEE 754 and PTX ask. ``fma`` rounds
once. ``.ftz`` makes subnormal float32 inputs and results zero. An ``.approx`` instruction gives
the exact result, rounded. On a GPU the last bits may differ: a test sets ``APPROXIMATE_ERROR``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptx.reader import DTYPES, Instruction, UnknownPTXError

Array = Any
APPROXIMATE_ERROR = 0.0
"""An error that tests add to each ``.approx`` result at float32, in units of the last place."""


# --- floating point ------------------------------------------------------------------------------


def flush(x: Array) -> Array:
    """Subnormal numbers become zeros of the same sign."""
    small = np.abs(x) < np.finfo(x.dtype).tiny
    return np.where(small, np.copysign(x.dtype.type(0), x), x)


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y rounded, and the rounding error (Knuth)."""
    total = x + y
    rest = total - x
    return total, (x - (total - rest)) + (y - rest)


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """x y rounded, and the rounding error (Dekker)."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = split(x), split(y)
    error = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
    return product, error


def split(x: Array) -> tuple[Array, Array]:
    """x as a sum of two float64 numbers of 26 bits each (Veltkamp)."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def odd_sum(x: Array, y: Array) -> Array:
    """x + y, rounded to odd: the last bit tells that the sum is not exact.

    A second rounding, to nearest, is then that of the exact sum (Boldo and Melquiond).
    """
    total, error = two_sum(x, y)
    bits = total.view(np.int64)
    towards = np.where((total > 0) == (error > 0), 1, -1)
    odd = np.where((error != 0) & (bits & 1 == 0), bits + towards, bits).view(np.float64)
    return np.where(np.isfinite(total) & np.isfinite(error), odd, total)


def to_float32(one: Instruction, total: Array) -> Array:
    """A float64 number, rounded to odd before: to nearest, ``.rm`` down, ``.rz`` towards zero."""
    result = total.astype(np.float32)
    wide = result.astype(np.float64)
    if "rm" in one.modifiers:
        return np.where(wide > total, np.nextafter(result, np.float32(-np.inf)), result)
    if "rz" in one.modifiers:
        is_far = np.abs(wide) > np.abs(total)
        return np.where(is_far, np.nextafter(result, np.float32(0)), result)
    return result


def add(one: Instruction, x: Array, y: Array) -> Array:
    if x.dtype == np.float32 and "rz" in one.modifiers:
        return to_float32(one, odd_sum(x.astype(np.float64), y.astype(np.float64)))
    return x + y


def fma(one: Instruction, x: Array, y: Array, z: Array) -> Array:
    """x y + z, rounded once."""
    if x.dtype == np.float32:
        x, y, z = (a.astype(np.float64) for a in (x, y, z))
        return to_float32(one, odd_sum(x * y, z))  # the product of two float32 numbers is exact
    product, error = two_product(x, y)
    total, rest = two_sum(product, z)
    result = total + odd_sum(rest, error)
    return np.where(np.isfinite(result), result, x * y + z)


def extreme(one: Instruction, x: Array, y: Array) -> Array:
    """``min`` and ``max``: of a number and NaN the number; -0 is less than +0."""
    if x.dtype.kind != "f":
        return np.minimum(x, y) if one.name == "min" else np.maximum(x, y)
    zeros = (x == 0) & (y == 0)
    if one.name == "min":
        return np.where(zeros, np.copysign(x, np.minimum(sign_of(x), sign_of(y))), np.fmin(x, y))
    return np.where(zeros, np.copysign(x, np.maximum(sign_of(x), sign_of(y))), np.fmax(x, y))


def sign_of(x: Array) -> Array:
    return np.copysign(x.dtype.type(1), x)


def approximate(one: Instruction, x: Array) -> Array:
    """A function of one float32 number, computed at float64 and rounded."""
    function = np.exp2 if one.name == "ex2" else np.log2
    return function(x.astype(np.float64)).astype(x.dtype)


def reciprocal(one: Instruction, x: Array) -> Array:
    """1 / x; ``rcp.approx.ftz.f64`` reads and writes the upper 32 bits only."""
    if x.dtype == np.float64 and "approx" in one.modifiers:
        upper = np.uint64(0xFFFFFFFF00000000)
        result = 1 / flush((x.view(np.uint64) & upper).view(np.float64))
        return (flush(result).view(np.uint64) & upper).view(np.float64)
    return 1 / x


def copysign(one: Instruction, sign: Array, x: Array) -> Array:
    return np.copysign(x, sign)


# --- integers ------------------------------------------------------------------------------------


def divide(one: Instruction, x: Array, y: Array) -> Array:
    """Quotients of integers are cut towards zero."""
    if x.dtype.kind == "f":
        return x / y
    if x.dtype.kind == "u":
        return x // y
    return ((x - np.fmod(x, y)) // y).astype(x.dtype)


def wide(x: Array) -> Array:
    """At twice the bits."""
    return x.astype(np.dtype(f"{x.dtype.kind}{2 * x.dtype.itemsize}"))


def multiply(one: Instruction, x: Array, y: Array) -> Array:
    """``mul``, and the product of ``mad``: ``.wide``, ``.hi``, or ``.lo``."""
    if "wide" in one.modifiers:
        return wide(x) * wide(y)
    if "hi" in one.modifiers:
        return (wide(x) * wide(y) >> 8 * x.dtype.itemsize).astype(x.dtype)
    return x * y


def multiply_add(one: Instruction, x: Array, y: Array, z: Array) -> Array:
    return multiply(one, x, y) + z


def shift(one: Instruction, x: Array, count: Array) -> Array:
    """``shl`` and ``shr``; a count beyond the bits shifts everything out."""
    bits = 8 * x.dtype.itemsize
    held = np.minimum(count, bits - 1).astype(x.dtype)
    shifted = x << held if one.name == "shl" else x >> held
    emptied = np.zeros_like(x) if x.dtype.kind == "u" else shifted
    return np.where(count >= bits, emptied, shifted)


def insert_bits(one: Instruction, x: Array, y: Array, start: Array, length: Array) -> Array:
    """``bfi``: y with ``length`` bits of x, from bit ``start`` on."""
    field = (np.uint64(1) << length.astype(np.uint64)) - np.uint64(1)
    mask = (np.where(length >= 64, np.uint64(2**64 - 1), field) << start).astype(y.dtype)
    return (y & ~mask) | ((x << start.astype(x.dtype)) & mask)


def count_bits(one: Instruction, x: Array) -> Array:
    """``popc`` counts the ones, ``clz`` the zeros before the first one."""
    if one.name == "popc":
        return np.bitwise_count(x).astype(np.uint32)
    below = x.copy()
    for step in (1, 2, 4, 8, 16, 32):  # every bit below the first one becomes one
        if step < 8 * x.dtype.itemsize:
            below |= below >> x.dtype.type(step)
    return (8 * x.dtype.itemsize - np.bitwise_count(below)).astype(np.uint32)


def select(one: Instruction, x: Array, y: Array, condition: Array) -> Array:
    return np.where(condition, x, y)


def compare(one: Instruction, x: Array, y: Array) -> Array:
    """``setp``; a comparison that ends in u is true for NaN."""
    name = one.modifiers[0]
    functions = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    if name in ("num", "nan"):
        return (np.isnan(x) | np.isnan(y)) == (name == "nan")
    result = functions[name[:2]](x, y)
    if x.dtype.kind == "f":
        unordered = np.isnan(x) | np.isnan(y)
        result = result | unordered if name.endswith("u") else result & ~unordered
    return result


# --- conversions ---------------------------------------------------------------------------------

ROUNDINGS = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert(one: Instruction, x: Array) -> Array:
    """``cvt``; floats beyond an integer's range become its limits."""
    dtype = DTYPES[one.types[0]]
    for name, function in ROUNDINGS.items():
        if name in one.modifiers:
            x = function(x)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return to_integer(x, dtype)
    result = x.astype(dtype)
    if "sat" in one.modifiers:
        result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(dtype)
    return result


def to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """The integer of a rounded float; NaN becomes 0, or the first bit where 64 bits take part."""
    limits = np.iinfo(dtype)
    nan = 0 if dtype.itemsize < 8 and x.dtype.itemsize < 8 else 1 << (limits.bits - 1)
    inside = (x > float(limits.min)) & (x < float(limits.max))
    result = np.where(inside, x, 0).astype(dtype)
    result = np.where(x <= float(limits.min), dtype.type(limits.min), result)
    result = np.where(x >= float(limits.max), dtype.type(limits.max), result)
    return np.where(np.isnan(x), np.asarray(nan, f"u{dtype.itemsize}").view(dtype), result)


# --- the table -----------------------------------------------------------------------------------


class Operation(NamedTuple):
    """The function of an instruction, and the modifiers that may stand behind its name."""

    function: Callable[..., Array]
    modifiers: str = ""


COMPARISONS = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
PLAIN = {
    "abs": Operation(np.abs, "ftz"),
    "and": Operation(np.bitwise_and),
    "neg": Operation(np.negative, "ftz"),
    "not": Operation(np.invert),
    "or": Operation(np.bitwise_or),
    "sqrt": Operation(np.sqrt, "rn approx ftz"),
    "sub": Operation(np.subtract, "rn ftz"),
    "xor": Operation(np.bitwise_xor),
}
"""Instructions that are functions of NumPy."""
OPERATIONS = {
    "add": Operation(add, "rn rz ftz"),
    "bfi": Operation(insert_bits),
    "clz": Operation(count_bits),
    "copysign": Operation(copysign),
    "cvt": Operation(convert, "rn rni rzi rmi rpi ftz sat"),
    "div": Operation(divide, "rn approx ftz"),
    "ex2": Operation(approximate, "approx ftz"),
    "fma": Operation(fma, "rn rm ftz"),
    "lg2": Operation(approximate, "approx ftz"),
    "mad": Operation(multiply_add, "lo hi wide"),
    "max": Operation(extreme, "ftz"),
    "min": Operation(extreme, "ftz"),
    "mul": Operation(multiply, "rn ftz lo hi wide"),
    "popc": Operation(count_bits),
    "rcp": Operation(reciprocal, "rn approx ftz"),
    "selp": Operation(select),
    "setp": Operation(compare, f"{COMPARISONS} ftz"),
    "shl": Operation(shift),
    "shr": Operation(shift),
}
"""Instructions whose modifiers or types matter: the functions take the instruction too."""


def source_types(one: Instruction) -> list[str]:
    """The type of each input of an instruction; the first operand is the result."""
    kind = one.types[-1]
    types = [kind] * (len(one.operands) - 1)
    if one.name in ("shl", "shr"):
        types[1] = "u32"
    elif one.name == "selp":
        types[2] = "pred"
    elif one.name == "bfi":
        types[2:] = ["u32", "u32"]
    elif one.name == "mad" and "wide" in one.modifiers:
        types[2] = wide_type(kind)
    return types


def result_type(one: Instruction) -> str:
    if one.name == "setp":
        return "pred"
    if one.name in ("popc", "clz"):
        return "u32"
    return wide_type(one.types[0]) if "wide" in one.modifiers else one.types[0]


def wide_type(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def compute(one: Instruction, arrays: Sequence[Array]) -> Array:
    """The result of an instruction of the table.

    Raises:
        UnknownPTXError: an instruction or a modifier that the table does not have.
    """
    operation = OPERATIONS.get(one.name) or PLAIN.get(one.name)
    is_known = operation is not None and set(one.modifiers) <= set(operation.modifiers.split())
    is_directed = not {"rm", "rz"}.isdisjoint(one.modifiers)
    if not is_known or (is_directed and one.types[0] != "f32"):
        raise UnknownPTXError(f"the machine does not know: {one.text}")
    flushes = "ftz" in one.modifiers
    arrays = [flush(x) if flushes and x.dtype == np.float32 else x for x in arrays]
    given = arrays if one.name in PLAIN else [one, *arrays]
    result = operation.function(*given)
    if "approx" in one.modifiers and result.dtype == np.float32 and APPROXIMATE_ERROR:
        result = result + np.float32(APPROXIMATE_ERROR) * np.spacing(result)
    return flush(result) if flushes and result.dtype == np.float32 else result


# --- sums with a carry ---------------------------------------------------------------------------


def compute_with_carry(one: Instruction, arrays: Sequence[Array], carry: Array) -> Any:
    """The result and the next carry of ``add.cc``, ``addc``, ``sub.cc``, ``subc``, ``mad.lo.cc``
    and ``madc.hi``, for integers of 32 bits.

    Raises:
        UnknownPTXError: integers of other sizes.
    """
    if DTYPES[one.types[0]].itemsize != 4:
        raise UnknownPTXError(f"the machine does not know: {one.text}")
    arrays = [x.astype(np.uint32).astype(np.int64) for x in arrays]
    if one.name.startswith("mad"):
        product = arrays[0].astype(np.uint64) * arrays[1].astype(np.uint64)
        half = product >> np.uint64(32) if "hi" in one.modifiers else product
        arrays = [(half & np.uint64(0xFFFFFFFF)).astype(np.int64), arrays[2]]
    given = carry if one.name in ("addc", "subc", "madc") else 0
    total = arrays[0] - arrays[1] - given
    if not one.name.startswith("sub"):
        total = arrays[0] + arrays[1] + given
    following = (total < 0) | (total > 0xFFFFFFFF) if "cc" in one.modifiers else carry
    return (total & 0xFFFFFFFF).astype(np.uint32), following

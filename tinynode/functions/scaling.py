"""Sums of squares of numbers near the ends of the range, for norms and deviations.

In float32 the square of 1e20 is infinite and that of 1e-30 is 0, but the norm of such numbers lies
in the range. So a function first adds up the squares as they are. If a sum is not usual, the
function multiplies the numbers by ``scale_of``, and divides the root by the same power of two.
"""

from __future__ import annotations

from typing import NamedTuple

from tinynode.devices import Array, is_known_true, namespace_of, without_hidden_axes


class SquareRange(NamedTuple):
    """The numbers of a dtype whose squares can be added up.

    Attributes:
        least, most: between them a sum of squares has lost no digit.
        small, large: beyond them numbers are scaled.
        power: the power of two that brings numbers back from beyond.
    """

    least: float
    most: float
    small: float
    large: float
    power: float


SINGLE = SquareRange(2.0**-77, 2.0**115, 2.0**-38, 2.0**48, 2.0**90)
DOUBLE = SquareRange(2.0**-614, 2.0**921, 2.0**-307, 2.0**400, 2.0**700)


def square_range(array: Array) -> SquareRange:
    """The range of an array's dtype, float32 or float64."""
    return DOUBLE if array.dtype == namespace_of(array).float64 else SINGLE


def are_usual(squares: Array, may_be_small: bool = False) -> bool:
    """True if sums of squares are known to have lost no digit.

    With ``may_be_small``, sums below the range count as usual.
    """
    limits = square_range(squares)
    usual = squares < limits.most
    if not may_be_small:
        usual = usual & (squares > limits.least)
    return is_known_true(without_hidden_axes(usual))


def scale_of(x: Array, axes: tuple[int, ...], may_be_small: bool = False) -> Array:
    """A power of two for the numbers along axes; 1 for numbers in the range.

    x: (s) -> k: (s with 1 at the axes). With ``may_be_small``, small numbers stay as they are.
    """
    xp, limits = namespace_of(x), square_range(x)
    largest = xp.max(xp.abs(x), axis=axes, keepdims=True)
    one = xp.ones_like(largest)
    scale = xp.where(largest > limits.large, one / limits.power, one)
    if may_be_small:
        return scale
    return xp.where(largest < limits.small, one * limits.power, scale)

"""Checks of the settings that layers and optimizers get.

Requirement: a setting that cannot work is refused where it is given, by a message that names it,
and not by the first forward. Windows are checked by ``tinynode.functions.convolution.pair``.
"""

from __future__ import annotations

import operator
from typing import Any

from tinynode.errors import describe


def checked_size(what: str, value: Any, least: int = 1) -> int:
    """The value, an integer of any kind, as a Python int; value >= least.

    Raises:
        TypeError: it is no integer.
        ValueError: it is too small.
    """
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {describe(value)}.") from None
    if size < least:
        raise ValueError(f"{what} must be at least {least}, got {size}.")
    return size


def checked_number(
    what: str, value: Any, low: float, high: float, *, with_high: bool = False
) -> float:
    """The value as a Python float, which no array library promotes to; low <= value < high.

    Args:
        what: how messages call it.
        value: a number.
        low: the least that is allowed.
        high: the first that is too large.
        with_high: whether ``high`` itself is allowed.

    Raises:
        TypeError: it is no number.
        ValueError: it is out of range.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, got {describe(value)}.") from None
    if not (low <= number < high or (with_high and number == high)):
        end = "at most" if with_high else "less than"
        raise ValueError(f"{what} must be at least {low:g} and {end} {high:g}, got {number}.")
    return number

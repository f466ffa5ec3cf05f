"""Checks of the settings of layers and optimizers.

Requirement: the constructor refuses a wrong setting, and the message names the setting. The first
forward would be too late.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping
from typing import Any, Self

from tinynode.errors import describe, short_text, unknown_keywords
from tinynode.functions.attributes import INT64
from tinynode.functions.image_windows import pair
from tinynode.functions.volumes import triple
from tinynode.habits.keywords import keyword_cure


def checked_size(setting: str, value: Any, least: int = 1) -> int:
    """The value, an integer of any kind, as a Python int; value >= least.

    Raises:
        TypeError: the value is no integer.
        ValueError: the value is too small.
    """
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"{setting} must be an integer, got {describe(value)}.") from None
    if size < least:
        raise ValueError(f"{setting} must be at least {least}, got {short_text(size)}.")
    if size > INT64.most:
        raise ValueError(f"{setting} must have at most 64 bits, got {describe(size)}.")
    return size


def checked_window(layer: str, setting: str, value: Any, least: int, axes: int) -> Any:
    """A window, stride or padding: an integer for signals; else a tuple with one for each axis.

    Raises:
        TypeError: the value for a signal is no integer.
        ValueError: the value is too small, or is no such tuple.
    """
    if axes == 1:
        return checked_size(f"{layer}: {setting}", value, least)
    return (pair if axes == 2 else triple)(layer, setting, value, least)


def checked_number(
    setting: str, value: Any, low: float, high: float, *, with_high: bool = False
) -> float:
    """The value as a Python float, for array libraries a weak type; low <= value < high.

    Args:
        setting: the layer and the argument, for messages, such as ``"Dropout: ratio"``.
        value: a number.
        low: the smallest value allowed.
        high: the limit above.
        with_high: True to allow ``high`` too.

    Raises:
        TypeError: the value is no number.
        ValueError: the value is out of range.
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{setting} must be a number, got {describe(value)}.") from None
    if not (low <= number < high or (with_high and number == high)):
        end = "at most" if with_high else "less than"
        raise ValueError(f"{setting} must be at least {low:g} and {end} {high:g}, got {number}.")
    return number


def refuse_keywords(cls: type, options: Mapping[str, Any]) -> None:
    """Refuse keywords that the constructor has not.

    Python's own error would name the base class that has the constructor.

    Raises:
        OperandError: names the keyword to write, in place of one of another library.
        TypeError: names the arguments of the constructor.
    """
    parameters = inspect.signature(cls).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    wrong = {name: value for name, value in options.items() if name not in parameters}
    if any(keyword_cure(cls.__name__, name) for name in wrong):
        raise unknown_keywords(cls.__name__, wrong)
    for name in wrong:
        raise TypeError(
            f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}: the "
            f"arguments are {', '.join(parameters)}."
        )


class RefusesKeywords:
    """Base of classes whose constructors answer unknown keywords, such as other libraries'."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """The object, before the constructor runs; unknown keywords are refused."""
        if options:
            refuse_keywords(cls, options)
        return super().__new__(cls)

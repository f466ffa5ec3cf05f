"""Axes of plots: the range, the ticks and the texts of the ticks.

Requirement: ticks lie at round numbers: 1, 2 or 5 times a power of ten. No two ticks have the same
text. Every finite float has a place on the axis: a constant series, numbers near the largest
float, and differences close to rounding errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_LARGEST = sys.float_info.max
_SMALLEST = 1e-307  # the least distance of ticks: smaller powers of ten lose digits
_FEWEST_TICKS = 4  # with fewer, a range of less than a decade gets the ticks of a linear axis


@dataclass(frozen=True)
class Axis:
    """One axis of a plot.

    Attributes:
        label: the text beside the axis.
        low: the number at the start.
        high: the number at the end.
        log: True if equal distances are equal factors.
        ticks: numbers and their texts.
    """

    label: str
    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def fraction(self, value: float) -> float:
        """A number's place: 0 is the start of the axis, 1 the end."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        # halves, because the difference of two large floats may be more than a float holds
        return (value / 2 - low / 2) / (high / 2 - low / 2)


def make_axis(
    label: str,
    values: Sequence[float],
    *,
    log: bool = False,
    whole: bool = False,
    pad: float = 0.0,
) -> Axis:
    """An axis with a place for each of some finite numbers.

    Args:
        label: the text beside the axis.
        values: the numbers; without any, the axis goes from 0 to 1, or from 1 to 10.
        log: a logarithmic axis; the numbers are above 0.
        whole: ticks lie at whole numbers only, for steps and counts.
        pad: the free fraction of the range at both ends.
    """
    if log:
        low, high = _wider_log(*_ends(values, (1.0, 10.0)))
        return Axis(label, low, high, True, _log_ticks(low, high))
    low, high = _wider(*_ends(values, (0.0, 1.0)))
    free = (high / 2 - low / 2) * (2 * pad)
    low, high = max(low - free, -_LARGEST), min(high + free, _LARGEST)
    return Axis(label, low, high, False, _linear_ticks(low, high, 1.0 if whole else 0.0))


def named_axis(label: str, names: Sequence[str]) -> Axis:
    """An axis with names at 0, 1, 2, ...; the first name is at the end."""
    ticks = tuple((float(position), name) for position, name in enumerate(names))
    return Axis(label, len(names) - 0.5, -0.5, False, ticks)


def _ends(values: Sequence[float], otherwise: tuple[float, float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else otherwise


def _wider(low: float, high: float) -> tuple[float, float]:
    """The range; wider for a constant, and for numbers that differ by rounding alone."""
    largest = max(abs(low), abs(high))
    if high / 2 - low / 2 > 1e-13 * largest and high - low > 1e-300:
        return low, high
    around = largest / 2 if largest > 1e-290 else 0.5
    return max(low - around, -_LARGEST), min(high + around, _LARGEST)


def _wider_log(low: float, high: float) -> tuple[float, float]:
    if math.log10(high) - math.log10(low) > 1e-9:
        return low, high
    return max(low / 2, 5e-324), min(high * 2, _LARGEST)


def _linear_ticks(low: float, high: float, least: float = 0.0) -> tuple[tuple[float, str], ...]:
    """Three to seven multiples of a round step."""
    rough = max(high / 7 - low / 7, least, _SMALLEST)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _STEPS if power * factor >= rough * 0.999999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    values = [number * step for number in range(first, last + 1)]
    return tuple(zip(values, _texts(values, step), strict=True))


def _texts(values: Sequence[float], step: float) -> list[str]:
    """The numbers with as many digits as the step needs, the same for all."""
    largest = max(map(abs, values), default=0.0)
    digits = 0 if largest == 0 else math.floor(math.log10(largest) + 1e-12)
    finest = math.floor(math.log10(step) + 1e-12)
    if -4 <= digits <= 5:
        return [f"{value:.{max(0, -finest)}f}" for value in values]
    return ["0" if value == 0 else f"{value:.{max(0, digits - finest)}e}" for value in values]


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Powers of ten; in a short range 2 and 5 times a power too, or a linear axis's ticks."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if last - first > 3:
        every = math.ceil((last - first) / 7)
        powers = [power for power in range(first, last + 1) if power % every == 0]
        inside = [power for power in powers if low <= _power(power) <= high]
        plain = all(-4 <= power <= 4 for power in inside)
        return tuple((_power(power), _power_text(power, plain)) for power in inside)
    factors = (1, 2, 5)
    values = [factor * _power(power) for power in range(first, last + 1) for factor in factors]
    values = [value for value in values if low <= value <= high]
    if len(values) < _FEWEST_TICKS:
        return tuple((value, text) for value, text in _linear_ticks(low, high) if value > 0)
    return tuple((value, f"{value:g}") for value in values)


def _power(exponent: int) -> float:
    """Ten to a power; 0 or inf outside of the range of floats."""
    return float(f"1e{exponent}")


def _power_text(exponent: int, plain: bool) -> str:
    return f"{_power(exponent):g}" if plain or exponent == 0 else f"1e{exponent}"

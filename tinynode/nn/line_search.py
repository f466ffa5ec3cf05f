"""Line search: a length t of a step along a direction, by the strong Wolfe conditions.

With f(t) = loss(x + t d):   f(t) <= f(0) + c1 t f'(0)   and   |f'(t)| <= c2 |f'(0)|.

Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from tinynode.devices import Array


class SearchPoint(NamedTuple):
    """A length, the loss there, the slope along the direction, and the gradient."""

    t: float
    value: float
    slope: float
    gradient: Array


C1, C2 = 1e-4, 0.9
"""The factors of the two conditions."""


def strong_wolfe(
    at: Callable[[float], SearchPoint], start: SearchPoint, t: float, least: float, most: int
) -> tuple[SearchPoint, int]:
    """A point with both conditions, or the best point found; and the number of evaluations.

    Args:
        at: evaluates the loss and the gradient.
        start: the point at t = 0, with a negative slope.
        t: the first guess.
        least: an interval below this width is not divided further.
        most: the search ends after more than ``most`` evaluations.
    """
    previous, point, calls = start, at(t), 1
    while calls <= most:
        if _is_too_high(start, point) or (calls > 2 and point.value >= previous.value):
            return _zoom(at, start, previous, point, least, most, calls)
        if abs(point.slope) <= -C2 * start.slope:
            return point, calls
        if point.slope >= 0:
            return _zoom(at, start, previous, point, least, most, calls)
        low, high = point.t + 0.01 * (point.t - previous.t), 10 * point.t
        t, previous = cubic_minimum(previous, point, low, high), point
        point = at(t)
        calls += 1
    return min(start, point, key=_value), calls


def _zoom(
    at: Callable[[float], SearchPoint],
    start: SearchPoint,
    low: SearchPoint,
    high: SearchPoint,
    least: float,
    most: int,
    calls: int,
) -> tuple[SearchPoint, int]:
    """Divide the interval between two points; ``low`` is the point with the smaller loss."""
    low, high = sorted((low, high), key=_value)
    was_near = False
    while calls <= most and abs(high.t - low.t) >= least:
        first, last = sorted((low.t, high.t))
        t = cubic_minimum(low, high, first, last)
        margin = 0.1 * (last - first)
        is_near = min(last - t, t - first) < margin
        if is_near and (was_near or t in (first, last)):  # little progress: move inwards
            t = last - margin if last - t < t - first else first + margin
            is_near = False
        was_near = is_near
        point = at(t)
        calls += 1
        if _is_too_high(start, point) or point.value >= low.value:
            low, high = sorted((low, point), key=_value)
            continue
        if abs(point.slope) <= -C2 * start.slope:
            return point, calls
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, calls


def _value(point: SearchPoint) -> float:
    return point.value if point.value == point.value else math.inf


def _is_too_high(start: SearchPoint, point: SearchPoint) -> bool:
    """True if the loss did not fall by enough, or is no number."""
    return not point.value <= start.value + C1 * point.t * start.slope


def cubic_minimum(a: SearchPoint, b: SearchPoint, low: float, high: float) -> float:
    """The minimum of the cubic with the values and slopes of two points, in low .. high.

    Source: Nocedal and Wright, equation 3.59.
    """
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:  # no minimum, or an infinite loss
        return (low + high) / 2
    d2 = math.sqrt(square)
    t = b.t - (b.t - a.t) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
    return min(max(t, low), high)

"""The contrast of two colours, by WCAG 2.2."""

from __future__ import annotations

from tinynode.show import palette


def luminance(colour: tuple[float, ...]) -> float:
    """The relative luminance of WCAG 2.2."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in colour)
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str, opacity: float = 1.0) -> float:
    """The contrast of a colour, seen on the other; ``opacity`` is of the first colour."""
    below = palette.red_green_blue(other)
    above = palette.red_green_blue(one)
    mixed = [opacity * a + (1 - opacity) * b for a, b in zip(above, below, strict=True)]
    low, high = sorted((luminance(tuple(mixed)), luminance(below)))
    return (high + 0.05) / (low + 0.05)

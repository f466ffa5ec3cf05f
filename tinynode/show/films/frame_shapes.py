"""The display list of a picture: boxes, paths, texts and heat maps in drawing order.

Requirement: an SVG and a GIF of a frame show the same. So the drawing is a list of simple shapes
with names of colours, and each format has one writer. Sizes are in pixels; y grows downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context
from typing import TypeAlias

from tinynode.show.graphs.text_sizes import text_columns

SANS = 0.55
"""The mean width of a letter of the caption's font, as a part of the font's size."""


@dataclass(frozen=True)
class Box:
    """A rectangle; an empty colour draws nothing."""

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    stroke: str = ""
    line: float = 1.0
    dash: tuple[float, ...] = ()
    radius: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Path:
    """Lines and cubic curves.

    Attributes:
        points: the start (x, y); then lines (x, y), or curves (x1, y1, x2, y2, x, y).
        is_closed: True if a line goes back to the start.
    """

    points: tuple[tuple[float, ...], ...]
    fill: str = ""
    stroke: str = ""
    line: float = 1.0
    dash: tuple[float, ...] = ()
    is_closed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """A line of text; y is the base line.

    Attributes:
        anchor: the place of x in the text: "start", "middle" or "end".
        is_mono: True for a monospace font.
    """

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: str = "start"
    is_bold: bool = False
    is_mono: bool = False
    opacity: float = 1.0

    @property
    def width(self) -> float:
        """The room for the text, in pixels."""
        return text_columns(self.text) * self.size * (0.61 if self.is_mono else SANS)


@dataclass(frozen=True)
class Cells:
    """A heat map: row by row the shade of each cell, from -SHADES to SHADES, None for nan."""

    x: float
    y: float
    width: float
    height: float
    columns: int
    shades: tuple[int | None, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.shades) // self.columns


Shape: TypeAlias = Box | Path | Text | Cells


def placed(shape: Shape, x: float, y: float, scale: float) -> Shape:
    """The shape, scaled and then moved by (x, y)."""
    if isinstance(shape, Path):
        points = tuple(
            tuple(number * scale + (x, y)[i % 2] for i, number in enumerate(point))
            for point in shape.points
        )
        dash = tuple(length * scale for length in shape.dash)
        return replace(shape, points=points, line=shape.line * scale, dash=dash)
    to_x, to_y = shape.x * scale + x, shape.y * scale + y
    if isinstance(shape, Text):
        return replace(shape, x=to_x, y=to_y, size=shape.size * scale)
    width, height = shape.width * scale, shape.height * scale
    if isinstance(shape, Cells):
        return replace(shape, x=to_x, y=to_y, width=width, height=height)
    return replace(
        shape,
        x=to_x,
        y=to_y,
        width=width,
        height=height,
        line=shape.line * scale,
        radius=shape.radius * scale,
        dash=tuple(length * scale for length in shape.dash),
    )


# --- texts ---------------------------------------------------------------------------------------


def wrapped(text: str, size: float, width: float) -> list[str]:
    """The text in lines of at most ``width`` pixels; longer words are cut."""
    most = max(8, int(width / (size * SANS)))
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_columns(longer) <= most:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while text_columns(line) > most:
            lines.append(line[:most])
            line = line[most:]
    return [*lines, line]


def number_text(cell: float | str | None) -> str:
    """A number with at most 4 digits, as the film's page writes it."""
    if cell is None:
        return "nan"
    if isinstance(cell, str):
        return cell
    size = abs(cell)
    if cell == 0 or (size < 1e6 and cell == math.floor(cell)):
        return str(int(cell))
    if size >= 1e5 or size < 1e-3:
        return _exponent(f"{cell:.2e}")
    return f"{float(f'{cell:.4g}'):g}"


def short_number(cell: float | str | None) -> str:
    """A number with 2 digits."""
    if cell is None or isinstance(cell, str):
        return number_text(cell)
    rounded = Context(prec=2, rounding=ROUND_HALF_UP).create_decimal_from_float(float(cell))
    if cell and abs(cell) < 1e-6:
        return _exponent(repr(float(rounded)))
    text = format(rounded, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def _exponent(text: str) -> str:
    """``1.20e-04`` as ``1.20e-4``."""
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"

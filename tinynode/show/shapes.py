"""The display list: a drawing as boxes, paths, texts and heat maps, in drawing order.

Requirement: graphs, plots and films look alike in each format. So each of them makes a ``Drawing``
of simple shapes with names of colours, and each format has one writer: ``svg`` and ``pixels``.
Sizes are in pixels; y grows downwards. The colours are those of ``palette.COLOURS``; an empty
colour draws nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tinynode.show.texts import MONO, SANS, text_columns


@dataclass(frozen=True)
class Box:
    """A rectangle; a radius makes the corners round."""

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
        is_turned: True for a text that runs upwards.
        has_halo: True for an outline in the colour of the background.
    """

    x: float
    y: float
    text: str
    size: float
    colour: str = "text"
    anchor: str = "start"
    is_bold: bool = False
    is_mono: bool = False
    opacity: float = 1.0
    is_slanted: bool = False
    is_turned: bool = False
    has_halo: bool = False

    @property
    def width(self) -> float:
        """The room for the text, in pixels."""
        return text_columns(self.text) * self.size * (MONO if self.is_mono else SANS)


@dataclass(frozen=True)
class Cells:
    """A heat map: row by row the shade of each cell, from -SHADES to SHADES, None for nan.

    Attributes:
        plus: the colour of shades above 0.
    """

    x: float
    y: float
    width: float
    height: float
    columns: int
    shades: tuple[int | None, ...]
    plus: str = "plus"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.shades) // self.columns


@dataclass(frozen=True)
class Group:
    """Shapes that belong together.

    Attributes:
        kind: words for programs that read the picture, such as ``"function backward"``.
        title: the text that a browser shows at the pointer.
    """

    shapes: tuple[Shape, ...]
    kind: str = ""
    title: str = ""


Shape: TypeAlias = Box | Path | Text | Cells | Group


@dataclass(frozen=True)
class Drawing:
    """A picture.

    Attributes:
        title: the name of the picture.
        words: the content of the picture, for a screen reader.
        fits: True if a page may show the picture smaller than its size.
    """

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str
    words: str
    fits: bool = False


def placed(shape: Shape, x: float, y: float, scale: float = 1.0) -> Shape:
    """The shape, scaled and then moved by (x, y)."""
    if isinstance(shape, Group):
        return replace(shape, shapes=tuple(placed(one, x, y, scale) for one in shape.shapes))
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

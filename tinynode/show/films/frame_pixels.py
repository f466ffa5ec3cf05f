"""Frames of a film as pixels, by Pillow: a GIF for slides.

Requirement: programs that know no SVG show a film too. The package Pillow is optional, and is
imported here only. Shapes are drawn enlarged and then made smaller, for smooth edges.
"""

from __future__ import annotations

import functools
import itertools
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from tinynode.show.films.frame_drawing import Frame
from tinynode.show.films.frame_shapes import Box, Cells, Path, Shape, Text
from tinynode.show.films.frame_writers import COLOURS, shade_look

SMOOTH = 2
"""Shapes are drawn so many times larger."""

COLOURS_OF_GIF = 96
"""The colours of a GIF's palette: fewer make the file smaller."""

_REPLACED = {
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
}

Colour = tuple[int, int, int]


def write_gif(frames: Sequence[Frame], path: FilePath, *, width: float, theme: str) -> None:
    """Write frames as a GIF that plays without end.

    Raises:
        ImportError: Pillow is not installed.
    """
    image = _pillow("Image")
    pictures = [_picture(frame, width, theme) for frame in frames]
    palette = _common_palette(image, pictures)
    dither = image.Dither.NONE
    reduced = [picture.quantize(palette=palette, dither=dither) for picture in pictures]
    reduced[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=[round(1000 * frame.seconds) for frame in frames],
        loop=0,
    )


def _pillow(module: str) -> Any:
    """A module of Pillow.

    Raises:
        ImportError: Pillow is not installed; the message has the command for the installation.
    """
    try:
        # here, since Pillow is optional
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(
            "a GIF is drawn by the package Pillow, which is not installed: run  "
            "pip install pillow  (the suffix .svg needs no package)."
        ) from error
    return {"Image": Image, "ImageDraw": ImageDraw, "ImageFont": ImageFont}[module]


def _common_palette(image: Any, pictures: Sequence[Any]) -> Any:
    """A palette for all pictures, from at most 5 pictures."""
    chosen = [*pictures[:: max(1, len(pictures) // 4)][:4], pictures[-1]]
    width, height = chosen[0].size
    sheet = image.new("RGB", (width, height * len(chosen)))
    for number, picture in enumerate(chosen):
        sheet.paste(picture, (0, height * number))
    return sheet.quantize(colors=COLOURS_OF_GIF, dither=image.Dither.NONE)


def _picture(frame: Frame, width: float, theme: str) -> Any:
    image = _pillow("Image")
    scale = width / frame.width
    size = (max(1, round(width)), max(1, round(frame.height * scale)))
    large = image.new("RGB", (size[0] * SMOOTH, size[1] * SMOOTH))
    pen = Pen(large, scale * SMOOTH, theme)
    for shapes in frame.layers.values():
        for shape in shapes:
            pen.draw(shape)
    return large.reduce(SMOOTH)


class Pen:
    """Draws shapes into an image of Pillow.

    Args:
        picture: the image.
        scale: pixels of the image for a pixel of the shapes.
        theme: "light" or "dark".
    """

    def __init__(self, picture: Any, scale: float, theme: str) -> None:
        self._picture = picture
        self._draw = _pillow("ImageDraw").Draw(picture)
        self._scale = scale
        self._theme = theme

    def draw(self, shape: Shape) -> None:
        """Draw a shape."""
        if isinstance(shape, Box):
            self._box(shape)
        elif isinstance(shape, Path):
            self._path(shape)
        elif isinstance(shape, Text):
            self._text(shape)
        else:
            self._cells(shape)

    def _colour(self, name: str, opacity: float, behind: str = "panel") -> Colour | None:
        """A colour above the background; None without a name."""
        return _mixed(self._theme, name, opacity, behind) if name else None

    def _box(self, box: Box) -> None:
        scale = self._scale
        x, y, right, bottom = (
            round(number * scale)
            for number in (box.x, box.y, box.x + box.width, box.y + box.height)
        )
        fill = self._colour(box.fill, box.opacity)
        radius = min(box.radius * scale, (right - x) / 2, (bottom - y) / 2)
        edges = (x, y, max(x, right - 1), max(y, bottom - 1))
        if fill is not None:
            self._draw.rounded_rectangle(edges, radius, fill=fill)
        stroke = self._colour(box.stroke, box.opacity)
        if stroke is None:
            return
        outline = _outline(x, y, right, bottom, radius)
        self._lines([*outline, outline[0]], stroke, box.line * scale, box.dash)

    def _path(self, path: Path) -> None:
        scale = self._scale
        points = [(x * scale, y * scale) for x, y in _flat(path.points)]
        fill = self._colour(path.fill, path.opacity)
        if fill is not None:
            self._draw.polygon(points, fill=fill)
        stroke = self._colour(path.stroke, path.opacity)
        if stroke is not None:
            closed = [*points, points[0]] if path.is_closed else points
            self._lines(closed, stroke, path.line * scale, path.dash)

    def _lines(
        self,
        points: list[tuple[float, float]],
        colour: Colour,
        width: float,
        dash: tuple[float, ...],
    ) -> None:
        whole = max(1, round(width))
        lengths = [length * self._scale for length in dash]
        for piece in _dashes(points, lengths) if dash else [points]:
            self._draw.line(piece, fill=colour, width=whole, joint="curve")

    def _text(self, text: Text) -> None:
        size = float(round(text.size * self._scale))
        x, y = text.x * self._scale, text.y * self._scale
        colour = self._colour(text.colour, text.opacity)
        has_nabla = text.text.startswith("∇ ")
        words = _in_the_font(text.text.removeprefix("∇ "))
        nabla = size * 0.95 if has_nabla else 0.0
        width = _font(size).getlength(words) + nabla
        room = (text.width + 6) * self._scale
        if width > room > 0:  # a font without a monospace face is sometimes wider
            size, nabla = float(int(size * room / width)), nabla * room / width
            width = _font(size).getlength(words) + nabla
        x -= {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
        if has_nabla:
            right, top = x + nabla * 0.72, y - size * 0.66
            corners = [(x, top), (right, top), ((x + right) / 2, y)]
            self._lines([*corners, corners[0]], colour or (0, 0, 0), size * 0.09, ())
        bold = {"stroke_width": size * 0.028, "stroke_fill": colour} if text.is_bold else {}
        self._draw.text((x + nabla, y), words, fill=colour, font=_font(size), anchor="ls", **bold)

    def _cells(self, cells: Cells) -> None:
        scale = self._scale
        across, down = cells.width * scale / cells.columns, cells.height * scale / cells.rows
        for number, shade in enumerate(cells.shades):
            if shade == 0:
                continue
            row, column = divmod(number, cells.columns)
            x, y = cells.x * scale + column * across, cells.y * scale + row * down
            name, opacity = shade_look(shade)
            edges = (round(x), round(y), round(x + across) - 1, round(y + down) - 1)
            if edges[0] <= edges[2] and edges[1] <= edges[3]:
                self._draw.rectangle(edges, fill=self._colour(name, opacity, "raised"))


@functools.cache
def _mixed(theme: str, name: str, opacity: float, behind: str) -> Colour:
    """A colour above another colour."""
    above, below = (_red_green_blue(COLOURS[theme][one]) for one in (name, behind))
    red, green, blue = (
        round(a * opacity + b * (1 - opacity)) for a, b in zip(above, below, strict=True)
    )
    return red, green, blue


@functools.cache
def _font(size: float) -> Any:
    """Pillow's own font."""
    return _pillow("ImageFont").load_default(max(1.0, size))


@functools.cache
def _in_the_font(text: str) -> str:
    """The text in letters of Pillow's own font: é becomes e, unknown letters become ?."""
    unknown = bytes(_font(20.0).getmask("\uffff"))
    found = []
    for letter in text:
        plain = _REPLACED.get(letter, letter)
        if plain == letter and bytes(_font(20.0).getmask(letter)) == unknown:
            plain = unicodedata.normalize("NFKD", letter)[0]
            plain = plain if plain.isascii() else "?"
        found.append(plain)
    return "".join(found)


def _red_green_blue(colour: str) -> Colour:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _outline(
    x: float, y: float, right: float, bottom: float, radius: float
) -> list[tuple[float, float]]:
    """The corners of a rectangle, or its round corners as short lines."""
    points = []
    for centre_x, centre_y, start in (
        (right - radius, y + radius, -90),
        (right - radius, bottom - radius, 0),
        (x + radius, bottom - radius, 90),
        (x + radius, y + radius, 180),
    ):
        for part in range(9 if radius > 2 else 1):
            angle = math.radians(start + 90 * part / 8)
            corner = (centre_x + radius * math.cos(angle), centre_y + radius * math.sin(angle))
            points.append(corner)
    return points


def _flat(points: tuple[tuple[float, ...], ...]) -> list[tuple[float, float]]:
    """A path as short lines."""
    found = [(points[0][0], points[0][1])]
    for point in points[1:]:
        if len(point) == 2:
            found.append((point[0], point[1]))
            continue
        (x0, y0), (x1, y1, x2, y2, x3, y3) = found[-1], point
        for part in range(1, 25):
            t = part / 24
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
            x = sum(w * one for w, one in zip(weights, (x0, x1, x2, x3), strict=True))
            y = sum(w * one for w, one in zip(weights, (y0, y1, y2, y3), strict=True))
            found.append((x, y))
    return found


def _dashes(
    points: list[tuple[float, float]], lengths: Sequence[float]
) -> list[list[tuple[float, float]]]:
    """The drawn pieces of dashed lines: a length is drawn, the next is left out."""
    pieces: list[list[tuple[float, float]]] = [[points[0]]]
    turn, left = 0, lengths[0]
    for (x0, y0), (x, y) in itertools.pairwise(points):
        whole = math.dist((x0, y0), (x, y))
        done = 0.0
        while whole - done > left:
            done += left
            place = (x0 + (x - x0) * done / whole, y0 + (y - y0) * done / whole)
            if turn % 2 == 0:
                pieces[-1].append(place)
            else:
                pieces.append([place])
            turn, left = turn + 1, lengths[(turn + 1) % len(lengths)]
        left -= whole - done
        if turn % 2 == 0:
            pieces[-1].append((x, y))
    return [piece for piece in pieces if len(piece) > 1]

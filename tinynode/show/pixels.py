"""Drawings as pixels, by Pillow: PNG files, and GIFs for slides.

Requirement: programs that know no SVG show a picture too. The package Pillow is optional, and is
imported here only. Shapes are drawn enlarged and then made smaller, for smooth edges.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from tinynode.atomic_file import replace_file
from tinynode.show.palette import COLOURS, red_green_blue, shade_look
from tinynode.show.shapes import Box, Cells, Drawing, Path, Shape, Text

SMOOTH = 2
"""Shapes are drawn so many times larger."""

MOST_PIXELS = 16_000_000
"""The most pixels of a PNG; the enlarged picture takes 12 bytes for each."""

COLOURS_OF_GIF = 96
"""The colours of a GIF's palette: fewer make the file smaller."""

_REPLACED = {
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
}

Colour = tuple[int, int, int]


def save_png(drawing: Drawing, path: FilePath) -> None:
    """Write a drawing as a PNG, with two pixels for each of the drawing, on a light background.

    Raises:
        ImportError: Pillow is not installed.
    """
    widest = math.sqrt(MOST_PIXELS * drawing.width / drawing.height)
    content = io.BytesIO()
    _picture(drawing, min(2 * drawing.width, widest), "light").save(content, format="PNG")
    replace_file(path, content.getvalue())


def save_gif(
    drawings: Sequence[Drawing],
    seconds: Sequence[float],
    path: FilePath,
    *,
    width: float,
    theme: str,
) -> None:
    """Write drawings of one size as a GIF that plays without end.

    Raises:
        ImportError: Pillow is not installed.
    """
    image = _pillow("Image")
    pictures = [_picture(drawing, width, theme) for drawing in drawings]
    palette = _common_palette(image, pictures)
    dither = image.Dither.NONE
    reduced = [picture.quantize(palette=palette, dither=dither) for picture in pictures]
    content = io.BytesIO()
    reduced[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=[round(1000 * time) for time in seconds],
        loop=0,
    )
    replace_file(path, content.getvalue())


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
            "pixels are drawn by the package Pillow, which is not installed: run  "
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


def _picture(drawing: Drawing, width: float, theme: str) -> Any:
    scale = width / drawing.width
    size = (max(1, round(width)), max(1, round(drawing.height * scale)))
    back = red_green_blue(COLOURS[theme]["panel"])
    large = _pillow("Image").new("RGB", (size[0] * SMOOTH, size[1] * SMOOTH), back)
    pen = _Pen(large, scale * SMOOTH, theme)
    for shape in drawing.shapes:
        pen.draw(shape)
    return large.reduce(SMOOTH)


class _Pen:
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
        elif isinstance(shape, Cells):
            self._cells(shape)
        else:
            for one in shape.shapes:
                self.draw(one)

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
        colour = _mixed(self._theme, text.colour, text.opacity, "panel")
        has_nabla = text.text.startswith("∇ ")
        words = _in_the_font(text.text.removeprefix("∇ "))
        nabla = size * 0.95 if has_nabla else 0.0
        width = _font(size).getlength(words) + nabla
        room = (text.width + 6) * self._scale
        if width > room > 0:  # a font without a monospace face is sometimes wider
            size, nabla = float(int(size * room / width)), nabla * room / width
            width = _font(size).getlength(words) + nabla
        before = {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
        if text.is_turned:
            self._turned(words, (x, y + before), colour, size)
            return
        x -= before
        if has_nabla:
            right, top = x + nabla * 0.72, y - size * 0.66
            corners = [(x, top), (right, top), ((x + right) / 2, y)]
            self._lines([*corners, corners[0]], colour, size * 0.09, ())
        look: dict[str, Any] = {}
        if text.has_halo:
            look = {"stroke_width": 1.5 * self._scale, "stroke_fill": self._colour("panel", 1)}
        elif text.is_bold:
            look = {"stroke_width": size * 0.028, "stroke_fill": colour}
        self._draw.text((x + nabla, y), words, fill=colour, font=_font(size), anchor="ls", **look)

    def _turned(self, words: str, start: tuple[float, float], colour: Colour, size: float) -> None:
        """A text that runs upwards from its start."""
        image = _pillow("Image")
        length, height = round(_font(size).getlength(words)) + 1, round(1.5 * size)
        mask = image.new("L", (length, height))
        pen = _pillow("ImageDraw").Draw(mask)
        pen.text((0, size), words, fill=255, font=_font(size), anchor="ls")
        corner = (round(start[0] - size), round(start[1] - length))
        self._picture.paste(colour, corner, mask.transpose(image.Transpose.ROTATE_90))

    def _cells(self, cells: Cells) -> None:
        scale = self._scale
        across, down = cells.width * scale / cells.columns, cells.height * scale / cells.rows
        for number, shade in enumerate(cells.shades):
            if shade == 0:
                continue
            row, column = divmod(number, cells.columns)
            x, y = cells.x * scale + column * across, cells.y * scale + row * down
            name, opacity = shade_look(shade, cells.plus)
            edges = (round(x), round(y), round(x + across) - 1, round(y + down) - 1)
            if edges[0] <= edges[2] and edges[1] <= edges[3]:
                self._draw.rectangle(edges, fill=self._colour(name, opacity, "raised"))


@functools.cache
def _mixed(theme: str, name: str, opacity: float, behind: str) -> Colour:
    """A colour above another colour."""
    above, below = (red_green_blue(COLOURS[theme][one]) for one in (name, behind))
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

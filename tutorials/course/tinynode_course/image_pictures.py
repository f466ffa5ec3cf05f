"""Pictures of images, for the steps of the course.

Requirement: a learner sees digits, filters and feature maps. A page shows SVG, for light
and dark pages; a terminal shows characters. Numbers above 0 are green and numbers below 0 are
purple, as in all pictures; images without numbers below 0 are ink on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinynode.show.palette import SHADES
from tinynode.show.shapes import Box, Cells, Drawing, Shape, Text
from tinynode.show.svg import svg

INK = " .:-=+*%#"
"""The characters of the shades of ink."""

ABOVE, BELOW = " .'+*xX#@", " ,_-~oO=%"
"""The characters of the shades of numbers above and below 0."""


class Picture:
    """A picture: a notebook and a page show SVG, ``print`` draws with characters."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg = svg
        self.text = text

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text


def images(
    arrays: Any,
    captions: Sequence[str] = (),
    *,
    title: str = "",
    columns: int = 10,
    pixel: int = 6,
) -> Picture:
    """Images side by side, with a caption below each.

    Args:
        arrays: the images, (n, height, width).
        captions: a short text for each image.
        title: above the picture.
        columns: the number of images in a row.
        pixel: the side of a pixel in the SVG.
    """
    stack = np.asarray(arrays, np.float64)
    names = [str(caption) for caption in captions] or [""] * len(stack)
    shades, signed = _shades(stack), bool((stack < 0).any())
    n, height, width = stack.shape
    across = max(width * pixel, 7 * max(map(len, names), default=0)) + 10
    down = height * pixel + (24 if any(names) else 8)
    top = 26 if title else 6
    size = width * pixel, height * pixel
    shapes: list[Shape] = [Text(10, 17, title, 14, is_bold=True)] if title else []
    for k in range(n):
        left, upper = 10 + k % columns * across, top + k // columns * down
        cells = tuple(shades[k].ravel().tolist())
        shapes.append(Box(left, upper, *size, stroke="line"))
        shapes.append(Cells(left, upper, *size, width, cells, "plus" if signed else "text"))
        if names[k]:
            shapes.append(Text(left, upper + height * pixel + 13, names[k], 11))
    room = max(20 + min(n, columns) * across, 20 + 8 * len(title))
    tall = top + -(-n // columns) * down + 4
    words = f"{n} images of {height} by {width} pixels. " + ", ".join(filter(None, names))
    back = Box(0, 0, room, tall, "panel", radius=6)
    drawing = Drawing(room, tall, (back, *shapes), title or "images", words, fits=True)
    text = _text_of_images(shades, signed, names, columns)
    return Picture(svg(drawing), f"{title}\n{text}" if title else text)


def _shades(numbers: Any) -> Any:
    """-SHADES to SHADES for each number; only 0 has none."""
    largest = float(np.abs(numbers).max(initial=0.0)) or 1.0
    strength = np.ceil(np.abs(numbers) / largest * SHADES).astype(int)
    return np.where(numbers < 0, -strength, strength)


def _letter(shade: int, signed: bool) -> str:
    if not signed:
        return INK[shade]
    return ABOVE[shade] if shade > 0 else BELOW[-shade]


def _text_of_images(shades: Any, signed: bool, names: list[str], columns: int) -> str:
    """The images as characters, as many in a row as fit into 80 columns."""
    wide = max(2 * shades.shape[2], *map(len, names)) + 2
    number = max(1, min(columns, 80 // wide))
    lines = []
    for start in range(0, len(shades), number):
        part = shades[start : start + number]
        for i in range(shades.shape[1]):
            rows = ["".join(2 * _letter(int(one), signed) for one in image[i]) for image in part]
            lines.append("".join(f"{row:<{wide}}" for row in rows).rstrip())
        captions = "".join(f"{name:<{wide}}" for name in names[start : start + number])
        lines += [captions.rstrip(), ""]
    return "\n".join(lines).rstrip()

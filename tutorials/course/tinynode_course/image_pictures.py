"""Pictures of images, for the steps of the course.

Requirement: a learner sees digits, filters and feature maps. A page shows SVG, for light
and dark pages; a terminal shows characters. Numbers above 0 are green and numbers below 0 are
purple, as in all pictures; images without numbers below 0 are ink on paper.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinynode.show.palette import DARK, LIGHT, SHADES, Theme, heat_opacity

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
    paths: dict[int, list[str]] = {}
    parts = []
    for k in range(n):
        left = 10 + k % columns * across
        upper = top + k // columns * down
        size = f'width="{width * pixel}" height="{height * pixel}"'
        parts.append(f'<rect class="frame" x="{left}" y="{upper}" {size}/>')
        for i, j in np.argwhere(shades[k]).tolist():
            corner = f"M{left + j * pixel} {upper + i * pixel}"
            paths.setdefault(int(shades[k, i, j]), []).append(
                f"{corner}h{pixel}v{pixel}h-{pixel}z"
            )
        where = f'x="{left}" y="{upper + height * pixel + 13}"'
        parts.append(f"<text {where}>{html.escape(names[k])}</text>" if names[k] else "")
    parts += [_path(shade, signed, "".join(found)) for shade, found in sorted(paths.items())]
    size_of = (20 + min(n, columns) * across, top + -(-n // columns) * down + 4)
    words = f"{n} images of {height} by {width} pixels. " + ", ".join(filter(None, names))
    text = _text_of_images(shades, signed, names, columns)
    return Picture(_svg(title, words, parts, size_of), f"{title}\n{text}" if title else text)


def _shades(numbers: Any) -> Any:
    """-SHADES to SHADES for each number; only 0 has none."""
    largest = float(np.abs(numbers).max(initial=0.0)) or 1.0
    strength = np.ceil(np.abs(numbers) / largest * SHADES).astype(int)
    return np.where(numbers < 0, -strength, strength)


def _path(shade: int, signed: bool, d: str) -> str:
    kind = "ink" if not signed else "plus" if shade > 0 else "minus"
    return f'<path class="{kind}" fill-opacity="{heat_opacity(abs(shade)):.2f}" d="{d}"/>'


def _colours(theme: Theme) -> str:
    return (
        f".tn-images .back{{fill:{theme.panel}}}.tn-images text{{fill:{theme.text}}}"
        f".tn-images .quiet{{fill:{theme.quiet}}}.tn-images .frame{{stroke:{theme.line}}}"
        f".tn-images .ink{{fill:{theme.text}}}.tn-images .plus{{fill:{theme.plus}}}"
        f".tn-images .minus{{fill:{theme.minus}}}.tn-images .strong{{fill:{theme.panel}}}"
    )


def _svg(title: str, words: str, parts: list[str], size: tuple[int, int]) -> str:
    width, height = max(size[0], 20 + 8 * len(title)), size[1]
    style = (
        ".tn-images{font-family:system-ui,sans-serif;font-size:11px;max-width:100%;height:auto}"
        ".tn-images .title{font-size:14px;font-weight:600}.tn-images .frame{fill:none}"
        ".tn-images .middle{text-anchor:middle}"
        f"{_colours(LIGHT)}@media(prefers-color-scheme:dark){{{_colours(DARK)}}}"
    )
    head = [f'<text class="title" x="10" y="17">{html.escape(title)}</text>'] if title else []
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tn-images" role="img" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<title>{html.escape(title or 'images')}</title><desc>{html.escape(words)}</desc>",
            f"<style>{style}</style>",
            f'<rect class="back" width="{width}" height="{height}" rx="6"/>',
            *head,
            *filter(None, parts),
            "</svg>\n",
        ]
    )


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

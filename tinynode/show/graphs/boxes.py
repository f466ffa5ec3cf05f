"""The shapes of boxes and arrows, of graphs and of films.

Requirement: a step of a film looks as the picture of the same graph does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tinynode.show.shapes import Box, Path, Shape, Text
from tinynode.show.texts import cut, one_line

Points = tuple[tuple[float, ...], ...]

DASHED = (4.0, 3.0)
"""The lines of backward."""


def box(kind: str, phase: str, place: Sequence[float], opacity: float = 1.0) -> Box:
    """A node's box: round for a variable; dashed, and in another colour, for backward.

    Args:
        kind: ``"variable"``, or another word for a function.
        phase: ``"forward"`` or ``"backward"``.
        place: the centre, the width and the height.
        opacity: from 0 to 1.
    """
    x, y, width, height = place
    fill, stroke = f"{phase}_tint", phase
    if kind == "variable":
        fill, stroke = "raised", "backward" if phase == "backward" else "quiet"
    dash = DASHED if phase == "backward" else ()
    radius = min(14.0, height / 2) if kind == "variable" else 2.0
    left, top = x - width / 2, y - height / 2
    return Box(left, top, width, height, fill, stroke, 1.2, dash, radius, opacity)


def marks(of: Box, *, is_retained: bool, has_gradient: bool) -> list[Shape]:
    """A square for an array retained for backward, and a triangle for a gradient."""
    found: list[Shape] = []
    if is_retained:
        corner = of.x - 4, of.y - 4
        found.append(Box(*corner, 9, 9, "forward", "panel", 1.5, opacity=of.opacity))
    if has_gradient:
        x, y = of.x + of.width - 9, of.y - 5
        corners = ((x, y), (x + 13, y), (x + 6.5, y + 11))
        found.append(Path(corners, "backward", "panel", 1.5, is_closed=True, opacity=of.opacity))
    return found


def label(of: Box, text: str, colour: str = "text", size: float = 12.0) -> Text:
    """The first line of a box."""
    line = cut(one_line(text))
    x = of.x + of.width / 2
    return Text(x, of.y + 16, line, size, colour, "middle", True, True, of.opacity)


def facts(of: Box, texts: Sequence[str], colour: str = "text", found: str = "bad") -> list[Text]:
    """The short lines below the label; the words of a finding begin with ``!``."""
    lines = []
    for number, fact in enumerate(texts):
        line = cut(one_line(fact))
        is_found = line.startswith("! ")
        ink, x, y = found if is_found else colour, of.x + of.width / 2, of.y + 30 + 13 * number
        lines.append(Text(x, y, line, 10, ink, "middle", is_found, True, of.opacity))
    return lines


# --- arrows --------------------------------------------------------------------------------------


def curve(points: Sequence[Sequence[float]], is_down: bool) -> Points:
    """A curve through the points, in the direction of the layers at each point."""
    found: list[tuple[float, ...]] = [tuple(points[0])]
    for (x0, y0), (x, y) in itertools.pairwise(points):
        if (x0 == x) if is_down else (y0 == y):
            found.append((x, y))
        elif is_down:
            found.append((x0, (y0 + y) / 2, x, (y0 + y) / 2, x, y))
        else:
            found.append(((x0 + x) / 2, y0, (x0 + x) / 2, y, x, y))
    return tuple(found)


def head(points: Points, colour: str, opacity: float = 1.0, *, is_back: bool = False) -> Path:
    """The head of an arrow at the end; at the start for gradients."""
    if is_back:
        tip, near = points[0][-2:], points[1][:2]
    else:
        tip, near = points[-1][-2:], points[-1][-4:-2] or points[-2][-2:]
    far = math.dist(tip, near) or 1.0
    step_x, step_y = (tip[0] - near[0]) / far, (tip[1] - near[1]) / far
    x, y = tip[0] - 7 * step_x, tip[1] - 7 * step_y
    side_x, side_y = 3.6 * step_y, -3.6 * step_x
    corners = (tuple(tip), (x + side_x, y + side_y), (x - side_x, y - side_y))
    return Path(corners, fill=colour, is_closed=True, opacity=opacity)

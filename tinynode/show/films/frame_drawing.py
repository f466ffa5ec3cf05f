"""A frame of a film as a display list: the graph, its numbers, the step in words, the losses.

Requirement: a picture on a slide is a step of the film's page. So nodes and edges have the places,
looks and numbers of the page (``page/files/graph.js`` and ``style.css``), with the same state. The
shapes of a frame are in layers with names: an animation keeps the layers that do not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tinynode.show.films.data import MOST_NUMBERS
from tinynode.show.films.state import Moment, State
from tinynode.show.films.text import cell_text, short_number
from tinynode.show.graphs import boxes
from tinynode.show.palette import SHADES
from tinynode.show.shapes import Box, Cells, Drawing, Path, Shape, Text, placed
from tinynode.show.texts import cut, one_line, wrapped

MAP = (66.0, 40.0)
"""Width and height of a heat map in a box."""

NARROWEST, WIDEST, TALLEST = 440.0, 960.0, 900.0
"""Limits of a frame's width, and of the graph's height."""

_MARGIN = 14.0
_LINE = 19.0
_CAPTION = 14.0
_CURVE = 44.0
_CHIPS = {
    "forward": "forward",
    "backward": "backward",
    "sweep": "backward starts",
    "end": "backward ends",
    "update": "update",
    "watch": "watch",
    "error": "error",
}
_STRIP = {"forward": (0, 4), "backward": (4, 4), "update": (0, 8), "bad": (0, 8)}
"""The upper edge and the height of each direction in the strip."""


@dataclass(frozen=True)
class Frame:
    """A picture of a step.

    Attributes:
        width: in pixels, as the height.
        layers: shapes by the name of the layer, in drawing order.
        seconds: the time of the picture.
        words: the picture's text for a screen reader.
    """

    width: float
    height: float
    layers: dict[str, tuple[Shape, ...]]
    seconds: float
    words: str

    def drawing(self, title: str) -> Drawing:
        """The picture without layers."""
        shapes = tuple(shape for layer in self.layers.values() for shape in layer)
        return Drawing(self.width, self.height, shapes, title, self.words)


class Stage:
    """What all frames of a film share: the size, the places of the parts, and the losses.

    Args:
        data: the film.
        shown: the indexes of the pictures in use.
        captions: the sentences in use; the longest gives the room.
        width: the wanted width, or None.
    """

    def __init__(
        self, data: dict[str, Any], shown: set[int], captions: set[str], width: float | None
    ) -> None:
        self.data = data
        pictures = {number: data["pictures"][number] for number in sorted(shown)}
        natural = max(picture["width"] for picture in pictures.values()) + 2 * _MARGIN
        self.width = min(max(natural, NARROWEST), max(WIDEST, width or 0.0))
        room = self.width - 2 * _MARGIN
        self.scales = {
            number: min(1.0, room / picture["width"], TALLEST / picture["height"])
            for number, picture in pictures.items()
        }
        self.graph_height = max(
            picture["height"] * self.scales[number] for number, picture in pictures.items()
        )
        self.caption_lines = max(len(self.lines_of(text)) for text in captions)
        self.losses = _losses(data)
        self.has_curve = sum(loss is not None for loss in self.losses) > 1
        self.foot = _MARGIN + 20 + self.graph_height + 8
        self.height = self.foot + 38 + _LINE * self.caption_lines + 4
        if self.has_curve:
            self.height += _CURVE + 14

    def lines_of(self, caption: str) -> list[str]:
        """A caption in lines."""
        return wrapped(one_line(caption), _CAPTION, self.width - 2 * _MARGIN)

    def frame(self, moment: Moment, seconds: float) -> Frame:
        """The picture of a step."""
        number = self.data["iterations"][moment.iteration]["picture"]
        picture = self.data["pictures"][number]
        scale = self.scales[number]
        left = (self.width - picture["width"] * scale) / 2
        top = _MARGIN + 20 + (self.graph_height - picture["height"] * scale) / 2
        layers: dict[str, tuple[Shape, ...]] = {
            "page": (Box(0, 0, self.width, self.height, "panel"),),
            "title": (self._title(),),
        }
        graph = _edges(picture, moment) | _nodes(self.data["values"], picture, moment, scale)
        for name, shapes in graph.items():
            layers[f"{number} {name}"] = tuple(placed(one, left, top, scale) for one in shapes)
        layers |= self._strip(number, picture, moment)
        layers |= self._caption(moment, len(picture["steps"]))
        if self.has_curve:
            layers |= self._curve(moment.iteration)
        title = one_line(moment.step["title"])
        words = f"{self._counter(moment, len(picture['steps']))}. {title}"
        return Frame(self.width, self.height, layers, seconds, words)

    # --- texts around the graph ------------------------------------------------------------------

    def _title(self) -> Text:
        most = int((self.width - 2 * _MARGIN) / (13 * 0.6))
        title = one_line(self.data["title"])
        return Text(_MARGIN, _MARGIN + 8, cut(title, most), 13, is_bold=True)

    def _counter(self, moment: Moment, count: int) -> str:
        return f"step {moment.index + 1} of {count}"

    def _strip(
        self, number: int, picture: dict[str, Any], moment: Moment
    ) -> dict[str, tuple[Shape, ...]]:
        """A strip with the directions of all steps, and a marker at the present step."""
        steps = picture["steps"]
        width = self.width - 2 * _MARGIN
        pieces: list[Shape] = []
        start = 0
        for end in range(1, len(steps) + 1):
            phase = _look_of(steps[start])
            if end < len(steps) and _look_of(steps[end]) == phase:
                continue
            x, right = (_MARGIN + width * place / len(steps) for place in (start, end))
            y, height = _STRIP[phase]
            pieces.append(Box(x, self.foot + y, right - x, height, phase))
            start = end
        wide = max(width / len(steps), 3.0)
        middle = _MARGIN + width * (moment.index + 0.5) / len(steps)
        marker = Box(middle - wide / 2, self.foot - 2, wide, 12, "", "text", 2, radius=3)
        return {f"{number} strip": tuple(pieces), "marker": (marker,)}

    def _caption(self, moment: Moment, count: int) -> dict[str, tuple[Shape, ...]]:
        """The direction, the step's number, and the step as a sentence."""
        step = moment.step
        is_failed = step["error"] is not None and step["kind"] != "end"
        look = "bad" if is_failed else _look_of(step)
        y = self.foot + 18
        word = _CHIPS[step["kind"]]
        if is_failed and step["kind"] != "error":
            word += " fails"
        wide = len(word) * 7.6 + 20
        chip = Text(_MARGIN + wide / 2, y + 12.5, word, 11.5, look, "middle", is_bold=True)
        dash = (4.0, 3.0) if look == "backward" else ()
        tint = "panel" if is_failed else f"{look}_tint"
        pill = Box(_MARGIN, y, wide, 17, tint, look, 1.2, dash, 8.5)
        right = self.width - _MARGIN
        lines = [
            Text(_MARGIN, y + 34 + _LINE * i, line, _CAPTION, "text")
            for i, line in enumerate(self.lines_of(step["title"]))
        ]
        return {
            "chip": (pill, chip),
            "counter": (Text(right, y + 13, self._counter(moment, count), 12.5, "quiet", "end"),),
            "caption": tuple(lines),
        }

    def _curve(self, iteration: int) -> dict[str, tuple[Shape, ...]]:
        """The losses of all iterations, and a marker at the present iteration."""
        top = self.height - _CURVE - _MARGIN
        right = self.width - _MARGIN
        words = self._iteration_words(iteration)
        left = _MARGIN + 200
        known = [loss for loss in self.losses if loss is not None]
        low, high = min(known), max(known)
        across = (right - left - 8) / (len(self.losses) - 1)
        points = []
        for number, loss in enumerate(self.losses):
            if loss is not None:
                part = 0.05 + 0.9 * (high - loss) / (high - low) if high > low else 0.5
                points.append((left + 4 + across * number, top + _CURVE * part))
        x = left + 4 + across * iteration
        return {
            "losses": (
                Box(left, top, right - left, _CURVE, "raised", radius=4),
                Path(tuple(points), stroke="update", line=2),
                Text(right - 4, top + 11, cell_text(high), 10, "quiet", "end", is_mono=True),
                Text(right - 4, top + _CURVE - 4, cell_text(low), 10, "quiet", "end", False, True),
            ),
            "iteration": (
                Path(((x, top), (x, top + _CURVE)), stroke="text", line=1.5),
                *(Text(_MARGIN, top + 17 + 18 * i, t, 12.5, "text") for i, t in enumerate(words)),
            ),
        }

    def _iteration_words(self, iteration: int) -> list[str]:
        words = [f"iteration {iteration + 1} of {len(self.losses)}"]
        loss = self.losses[iteration]
        return words if loss is None else [*words, f"loss {cell_text(loss)}"]


def _losses(data: dict[str, Any]) -> list[float | None]:
    """The loss of each iteration; None without a single finite number."""
    found: list[float | None] = []
    for one in data["iterations"]:
        cells = [] if one["loss"] is None else data["values"][one["loss"]]["cells"]
        is_number = len(cells) == 1 and isinstance(cells[0], int | float)
        found.append(float(cells[0]) if is_number else None)
    return found


def _look_of(step: dict[str, Any]) -> str:
    """The colours of a step: those of its direction; a watched step has those of an update.

    An error outside of functions has the colour "bad".
    """
    looks = {"watch": "update", "error": "bad"}
    return looks.get(step["direction"], str(step["direction"]))


# --- edges ---------------------------------------------------------------------------------------


def _edges(picture: dict[str, Any], moment: Moment) -> dict[str, tuple[Shape, ...]]:
    lit = set(moment.step["lit"])
    look = _look_of(moment.step)
    layers: dict[str, tuple[Shape, ...]] = {}
    for number, edge in enumerate(picture["edges"]):
        is_lit = number in lit
        points = tuple(map(tuple, edge["path"]))
        colour = "backward" if edge["phase"] == "backward" else "quiet"
        dash: tuple[float, ...] = (4.0, 3.0) if colour == "backward" else ()
        line, opacity = 1.2, 0.75
        if edge["born"] > moment.index:
            opacity = 0.13
        if is_lit:
            colour, line, opacity = look, 3.0, 1.0
            dash = (7.0, 4.0) if look == "backward" else ()
        layers[f"edge {number}"] = (
            Path(points, stroke=colour, line=line, dash=dash, opacity=opacity),
            boxes.head(points, colour, opacity, is_back=is_lit and look == "backward"),
        )
    return layers


# --- nodes ---------------------------------------------------------------------------------------


def _nodes(
    values: list[dict[str, Any]], picture: dict[str, Any], moment: Moment, scale: float
) -> dict[str, tuple[Shape, ...]]:
    roles, state = moment.step["roles"], moment.state
    layers: dict[str, tuple[Shape, ...]] = {}
    for node in picture["nodes"]:
        variable = node["of"] or node["id"]  # a box that repeats a leaf looks as the leaf
        role = roles.get(variable, "")
        is_born = state.has("born", variable)
        opacity = 1.0 if is_born else 0.22
        name = f"node {node['id']}"
        box = _box(node, role, _look_of(moment.step), state.has("freed", variable), opacity)
        layers[name] = (box,)
        layers[f"{name} text"] = tuple(_texts(box, node, role == "lit", scale))
        if node["kind"] == "variable" and node["of"] is None:
            shown = _numbers_in_box(values, node, state) if is_born else []
            layers[f"{name} numbers"] = tuple(_detail(shown, scale))
            has_gradient = state.gradient_of(variable) is not None
            is_retained = state.has("kept", variable)
            marks = boxes.marks(box, is_retained=is_retained, has_gradient=has_gradient)
            layers[f"{name} marks"] = tuple(marks)
    return layers


def _box(node: dict[str, Any], role: str, look: str, is_freed: bool, opacity: float) -> Box:
    """A node's box, with the look of the node's state and role, in a step with a look."""
    place = node["x"], node["y"], node["w"], node["h"]
    box = boxes.box(node["kind"], node["phase"], place, opacity)
    if node["kind"] == "variable":
        box = replace(box, stroke="quiet")
    if is_freed:
        box = replace(box, fill="", dash=(1.5, 3.0))
    lit_dash = (7.0, 4.0) if look == "backward" else ()
    if role == "lit":
        is_marked = any(fact.startswith("! ") for fact in node["facts"])
        fill = "bad" if is_marked else look
        stroke = "text" if look == "backward" else fill
        box = replace(box, fill=fill, stroke=stroke, line=3.0, dash=lit_dash)
    elif role:
        box = replace(box, stroke=look, line=3.0, dash=lit_dash or box.dash)
    return box


def _texts(box: Box, node: dict[str, Any], is_lit: bool, scale: float) -> list[Text]:
    """The label and the facts; from far away the label only, then nothing."""
    if scale < 0.25:
        return []
    ink = "panel" if is_lit else "text"
    if scale < 0.5:
        return [boxes.label(box, node["label"], ink, 17.0)]
    quiet, found = ("panel", "panel") if is_lit else ("quiet", "bad")
    return [boxes.label(box, node["label"], ink), *boxes.facts(box, node["facts"], quiet, found)]


def _detail(shapes: list[Shape], scale: float) -> list[Shape]:
    """The shapes of numbers with room at a scale: all, heat maps only, or none."""
    if scale >= 0.5:
        return shapes
    return [] if scale < 0.25 else [one for one in shapes if not isinstance(one, Text)]


# --- numbers in boxes ----------------------------------------------------------------------------


def _numbers_in_box(
    values: list[dict[str, Any]], node: dict[str, Any], state: State
) -> list[Shape]:
    """The value and the gradient of a variable: texts, or heat maps if one has many elements."""
    numbers = (state.array_of(node["id"]), state.gradient_of(node["id"]))
    arrays = [None if number is None else values[number] for number in numbers]
    is_text = all(array is None or math.prod(array["shape"]) <= MOST_NUMBERS for array in arrays)
    x, top = node["x"], node["y"] - node["h"] / 2 + 24 + 13 * len(node["facts"])
    shapes: list[Shape] = []
    for line, array in enumerate(arrays):
        colour, mark = (("text", ""), ("backward", "∇ "))[line]
        if array is None:
            continue
        if is_text:
            text = mark + _cells_text(array)
            shapes.append(Text(x, top + 8 + 13 * line, text, 11, colour, "middle", is_mono=True))
        else:
            column = line if node["takes_gradient"] else 0.5  # 0 on the left, 1 on the right
            left = x + column * (MAP[0] + 8) - MAP[0] - 4
            shapes += _map(array, left, top + 2, colour, mark)
    return shapes


def _cells_text(value: dict[str, Any]) -> str:
    """The elements of an array in a line."""
    text = ", ".join(cell_text(cell) for cell in value["cells"])
    return f"[{text}]" if value["shape"] else text


def _map(value: dict[str, Any], x: float, y: float, colour: str, mark: str) -> list[Shape]:
    """A heat map with its range; images keep the form of their pixels."""
    width, height = MAP
    shapes: list[Shape] = []
    range_x, size = x + width / 2, 8.5
    if value["cells"]:
        rows, columns = value["rows"], value["columns"]
        across, down = width / columns, height / rows
        if len(value["shape"]) > 2 and not value["thinned"]:
            across = down = min(across, down)
        left = x + (width - columns * across) / 2
        shapes.append(Cells(left, y, columns * across, rows * down, columns, shades_of(value)))
    else:
        told = f"mean {short_number(value['mean'])}" if value["thinned"] else "empty"
        shapes.append(Text(range_x, y + height / 2 + 3, told, size, colour, "middle", False, True))
    is_gradient = colour == "backward"
    dash = (4.0, 3.0) if is_gradient else ()
    shapes.append(Box(x, y, width, height, "", "backward" if is_gradient else "line", 1.0, dash))
    low, high = short_number(value["min"]), short_number(value["max"])
    told = mark + (low if value["min"] == value["max"] else f"{low}…{high}")
    shapes.append(Text(range_x, y + height + 10, told, size, colour, "middle", False, True))
    return shapes


def shades_of(value: dict[str, Any]) -> tuple[int | None, ...]:
    """The shade of each cell: ±SHADES for the largest size, 0 for zero only, None for nan."""
    finite = [
        c for c in (value["min"], value["max"], *value["cells"]) if isinstance(c, int | float)
    ]
    scale = max((abs(cell) for cell in finite), default=0.0)
    return tuple(_shade(cell, scale) for cell in value["cells"])


def _shade(cell: float | str | None, scale: float) -> int | None:
    if cell is None:
        return None
    if isinstance(cell, str):
        return -SHADES if cell.startswith("-") else SHADES
    if scale == 0 or cell == 0:
        return 0
    return int(math.copysign(math.ceil(abs(cell) / scale * SHADES), cell))

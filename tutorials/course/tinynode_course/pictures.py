"""Pictures for the pages of the course, so that no page has drawing code.

Requirement: a picture reads the learner's own graph, at any stage of ``mynode``. Up to step 6 a
graph has Variables; from step 11 on a graph has nodes and weak references to outputs.
"""

from __future__ import annotations

import base64
import html
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinynode.show.graphs.diagram import Diagram
from tinynode.show.graphs.diagram_data import DiagramNode
from tinynode.show.page.document import frame, scheme_script
from tinynode.show.plots.figure import Curve, Figure, curve_facts, legend
from tinynode.show.plots.plots import Plot
from tinynode.show.plots.scales import make_axis

FILM = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>:root {{ color-scheme: light dark }} body {{ font: 15px sans-serif; margin: 0 }}
img {{ max-width: 100% }} button {{ font: inherit; padding: 0.2em 0.9em }}
figure {{ margin: 0 0 1em }} figcaption {{ margin: 0.7em 0 }}</style>
<p id="buttons" hidden><button id="back">Back</button> <button id="next">Next</button></p>
{frames}
<script>{script}</script>"""

FRAME = """<figure><figcaption>{place}</figcaption>
<img alt="{title}" src="data:image/svg+xml;base64,{picture}"></figure>"""

FILM_SCRIPT = """
const at = (name) => document.getElementById(name);
const frames = [...document.querySelectorAll("figure")];
let place = 0;
function go(step) {
  place = Math.max(0, Math.min(frames.length - 1, place + step));
  frames.forEach((frame, number) => { frame.hidden = number !== place; });
}
at("buttons").hidden = false;
at("back").onclick = () => go(-1);
at("next").onclick = () => go(1);
document.onkeydown = (event) => {
  if (event.key === "ArrowRight") go(1);
  if (event.key === "ArrowLeft") go(-1);
};
go(0);
""" + scheme_script()
"""The script of every film: the pictures are data, so a policy of a page can name the script.

Without the script, the pictures stand below one another.
"""

MOST_ELEMENTS = 3
"""Arrays with more elements are described by the shape."""


def graph_of(
    y: Any,
    *,
    title: str = "",
    notes: Mapping[Any, str] | None = None,
    direction: str = "right",
) -> Diagram:
    """The graph that computed a Variable of ``mynode``, with values and gradients.

    Args:
        y: The result.
        title: A line above the picture.
        notes: Further lines for functions or Variables, such as ``{y.creator_node: "visit 1"}``.
        direction: ``"right"`` or ``"down"``: the direction from the leaves to the result.
    """
    diagram = Diagram(title, direction=direction)
    notes = notes or {}
    boxes: dict[int, DiagramNode] = {}
    functions = _functions(y)
    for function in functions:
        inputs = [_box(diagram, boxes, one, notes) for one in function.inputs]
        outputs = [_box(diagram, boxes, one, notes) for one in _outputs(function)]
        facts = [notes[function]] if function in notes else []
        diagram.function(type(function).__name__, *facts, inputs=inputs, outputs=outputs)
    if not functions:
        _box(diagram, boxes, y, notes)
    return diagram


class BackwardFilm:
    """The pictures of a backward pass of ``mynode``: a notebook shows the pictures in turn.

    Attributes:
        title: A line above the pictures.
        frames: For each picture its sentence, and the graph with the gradients so far.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.frames: list[tuple[str, Diagram]] = []

    def _repr_html_(self) -> str:
        """The pictures in a frame with two buttons."""
        drawn = [(text, diagram.to_svg()) for text, diagram in self.frames]
        heights = [re.search(r'height="([\d.]+)', svg) for _, svg in drawn]
        height = 100 + max(float(found[1]) if found else 300.0 for found in heights)
        title = html.escape(self.title, quote=True)
        frames = [
            FRAME.format(
                place=html.escape(f"{number} of {len(drawn)}: {text}"),
                title=title,
                picture=base64.b64encode(svg.encode()).decode(),
            )
            for number, (text, svg) in enumerate(drawn, 1)
        ]
        page = FILM.format(title=title, frames="\n".join(frames), script=FILM_SCRIPT)
        return frame(page, self.title, height)

    def __str__(self) -> str:
        lines = [f"{place}. {text}" for place, (text, _) in enumerate(self.frames, 1)]
        return "\n".join([self.title, *lines])


def backward_film(y: Any, *, title: str = "") -> BackwardFilm:
    """Run ``y.backward()``, and draw the graph after each visit of an operation.

    The film fits steps 4 to 6 of ``mynode``, where each box keeps its gradient. From step 11 on,
    inner boxes have no gradients, and the pictures show the visits only.

    Args:
        y: The result.
        title: A line above the pictures.
    """
    film = BackwardFilm(title)
    module: Any = sys.modules[f"{type(y).__module__.split('.')[0]}.core.backprop"]
    visit = module.run_backward
    notes: dict[Any, str] = {}

    def watched(function: Any, *others: Any) -> None:
        visit(function, *others)
        notes[function] = f"visit {len(film.frames) + 1}"
        text = f"{type(function).__name__} has sent gradients" + _gradients(function.inputs)
        film.frames.append((text, graph_of(y, title=title, notes=notes)))

    module.run_backward = watched
    try:
        y.backward()
    finally:
        module.run_backward = visit
    return film


def _gradients(inputs: Any) -> str:
    """The gradients of boxes in words; from step 11 on, inner boxes have none."""
    known = [x for x in dict.fromkeys(inputs) if getattr(x, "grad", None) is not None]
    said = [f"{x.name or 'a box'} has {_numbers(x.grad)}" for x in known]
    return ": " + ", ".join(said) if said else ""


def fit_of(x: Any, t: Any, curves: Mapping[str, Callable[[Any], Any]], *, title: str = "") -> Plot:
    """Data as points, and functions as curves through the points.

    Args:
        x: The places of the data.
        t: The values of the data.
        curves: By name, a function from an array of places to an array of values.
        title: A line above the plot.
    """
    x, t = np.asarray(x, float), np.asarray(t, float)
    grid = np.linspace(float(x.min()), float(x.max()), 41)
    drawn = [Curve("data", 0, tuple(x.tolist()), tuple(t.tolist()), joined=False)]
    for number, (name, function) in enumerate(curves.items(), 1):
        heights = np.broadcast_to(np.asarray(function(grid), float), grid.shape)
        drawn.append(Curve(name, number, tuple(grid.tolist()), tuple(heights.tolist())))
    heights_of_all = [height for curve in drawn for height in curve.ys]
    figure = Figure(
        title,
        make_axis("x", grid.tolist(), pad=0.05),
        make_axis("t", heights_of_all, pad=0.05),
        curves=tuple(drawn),
        names=legend([curve.name for curve in drawn]),
        facts=tuple(curve_facts(drawn)),
    )
    return Plot(figure)


def _functions(y: Any) -> list[Any]:
    """The operations before y, each after the creators of its inputs."""
    found: list[Any] = []
    finished: set[int] = set()
    waiting = [(y.creator_node, False)]
    while waiting:
        function, is_ready = waiting.pop()
        if function is None or id(function) in finished:
            continue
        if is_ready:
            finished.add(id(function))
            found.append(function)
            continue
        waiting.append((function, True))
        waiting += [(x.creator_node, False) for x in reversed(function.inputs)]
    return found


def _outputs(function: Any) -> list[Any]:
    """The outputs of an operation that are still there."""
    found = [one() if callable(one) else one for one in function.outputs]
    return [one for one in found if one is not None]


def _box(
    diagram: Diagram, boxes: dict[int, DiagramNode], one: Any, notes: Mapping[Any, str]
) -> DiagramNode:
    """The box of a Variable, or of a Variable's node; each has a single box."""
    key = id(getattr(one, "node", one))
    if key not in boxes:
        is_node = hasattr(one, "get_variable_or_none")
        variable = one.get_variable_or_none() if is_node else one
        facts = ["array is gone"] if variable is None else _facts(variable)
        marks = [] if one.creator_node is not None else ["leaf"]
        marks += ["gone"] if variable is None else []
        note = notes.get(variable, "") if variable is not None else ""
        name = (one.name if variable is None else variable.name) or ""
        label = str(name) or (facts.pop(0) if facts else "?")
        boxes[key] = diagram.variable(label, *facts, *([note] if note else []), marks=marks)
    return boxes[key]


def _facts(variable: Any) -> list[str]:
    facts = [_numbers(variable.array)]
    grad = getattr(variable, "grad", None)
    if grad is not None:
        facts.append(f"gradient {_numbers(getattr(grad, 'array', grad))}")
    return facts


def _numbers(array: Any) -> str:
    """An array in a few characters."""
    array = np.asarray(array)
    if array.size > MOST_ELEMENTS or array.dtype.kind not in "biuf":
        return f"shape {array.shape}"
    # -0.0 + 0.0 is 0.0
    texts = [f"{float(number) + 0.0:.4g}" for number in array.flat]
    return texts[0] if array.ndim == 0 else f"[{', '.join(texts)}]"

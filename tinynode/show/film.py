"""Film: recorded steps, as data for a page or a terminal.

Requirement: a single recording has several formats. A Film holds texts and numbers only.
``data()`` gives the whole film for JSON; the page, the terminal and tests read these parts:

    nodes, edges    the graph with its layout; "born" is the step from which on a part is drawn
    steps           the events in their order, and the changes of the gradient table
    values          summaries of arrays; the steps refer to them by index
    classes, files  the texts beside the picture

The state after a step is the result of all steps so far.

A step's "freed" has the nodes with a loss since the step before. The array was freed, or the
gradient left the gradient table and is not kept. Nodes of the second kind are in
``table["removed"]`` too.
The values of a backward step's inputs and outputs are the arrays retained by the function, at the
time of the step. Other values are None, since backward has no other arrays.
"""

from __future__ import annotations

import html
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinynode.show import film_text
from tinynode.show.film_sources import Files, SourceLocation, describe_class
from tinynode.show.film_values import Values

if TYPE_CHECKING:
    from tinynode.core.function_node import FunctionNode

Step = dict[str, Any]

GONE = "(gone)"
"""The label of a variable freed before the film knew the variable."""


@dataclass(eq=False)
class FilmNode:
    """A node of the film's graph.

    Attributes:
        id: ``"v0"`` for a variable, ``"f0"`` for a function.
        label: a variable's name, or nothing; a function's label.
        facts: short lines for the picture.
        rank: as in the graph.
        phase: ``"forward"``, or ``"backward"`` for a part connected by a sweep.
        born: the index of the node's first step.
        location: for a function, the line of user code.
        is_named: True if the label of a variable is the variable's name.
        is_state: True for a parameter or a buffer: the dots in its name separate modules.
    """

    id: str
    label: str
    facts: tuple[str, ...]
    rank: int
    phase: str
    born: int
    location: SourceLocation | None = None
    is_named: bool = False
    is_state: bool = False

    @property
    def kind(self) -> str:
        """``"variable"`` or ``"function"``."""
        return "variable" if self.id[0] == "v" else "function"

    def data(
        self, label: str, group: str | None, x: float, y: float, width: float, height: float
    ) -> dict[str, Any]:
        """The node with a box, for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "label": label,
            "facts": list(self.facts),
            "rank": self.rank,
            "phase": self.phase,
            "group": group,
            "x": round(x, 1),
            "y": round(y, 1),
            "w": round(width, 1),
            "h": round(height, 1),
            "born": self.born,
        }


@dataclass(eq=False)
class Film:
    """Recorded steps; ``with tinynode.show.record() as film:`` makes one.

    In a notebook it shows itself. ``len(film)`` is the number of steps.

    Attributes:
        title: shown above the film.
        note: the reason if the film ended early, else None.
    """

    title: str | None = None
    note: str | None = None
    nodes: list[FilmNode] = field(default_factory=list, repr=False)
    edges: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict, repr=False)
    steps: list[Step] = field(default_factory=list, repr=False)
    values: Values = field(default_factory=Values, repr=False)
    devices: dict[str, None] = field(default_factory=dict, repr=False)
    _classes: dict[str, type] = field(default_factory=dict, repr=False)
    _variables: int = field(default=0, repr=False)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        title = f" {self.title!r}" if self.title else ""
        functions = sum(node.kind == "function" for node in self.nodes)
        note = f"; {self.note}" if self.note else ""
        counts = f"{plural(len(self), 'step')}, {plural(functions, 'function')}"
        return f"<Film{title}: {counts}{note}>"

    # --- for the recorder ------------------------------------------------------------------------

    def add_variable(
        self, name: str | None, facts: tuple[str, ...], rank: int, phase: str
    ) -> FilmNode:
        """A new node for a variable."""
        number = self._variables
        self._variables += 1
        node = FilmNode(f"v{number}", name or "", facts, rank, phase, len(self.steps))
        node.is_named = bool(name)
        self.nodes.append(node)
        return node

    def add_function(
        self, function: FunctionNode, rank: int, phase: str, location: SourceLocation | None
    ) -> FilmNode:
        """A new node for a function application."""
        number = len(self.nodes) - self._variables
        born = len(self.steps)
        node = FilmNode(f"f{number}", function.label, (), rank, phase, born, location)
        self.nodes.append(node)
        return node

    def connect(self, source: FilmNode, target: FilmNode, phase: str) -> None:
        """Add a new edge along the data; an existing edge stays."""
        self.edges.setdefault((source.id, target.id), (phase, len(self.steps)))

    def class_key(self, function: FunctionNode) -> str:
        """The key of the function's class in the film."""
        cls = type(function.user_function)
        key, number = cls.__name__, 1
        while self._classes.setdefault(key, cls) is not cls:
            number += 1
            key = f"{cls.__name__} {number}"
        return key

    # --- formats ---------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """All of the film, in the types of JSON."""
        labels = self._labels()
        nodes, edges, width, height = self._picture(labels)
        files = Files(step["location"] for step in self.steps if step["location"] is not None)
        steps = []
        for step in self.steps:
            told = {key: step[key] for key in step if key not in ("location", "error")}
            if step["seconds"] is not None:
                told["seconds"] = float(f"{step['seconds']:.3g}")
            told["title"] = film_text.sentence(step, labels)
            told["at"] = files.at(step["location"])
            steps.append(told)
        return {
            "version": 1,
            "title": self.title or "Forward and backward, step by step",
            "note": self.note,
            # read at call time, since tinynode imports this module
            "tinynode": vars(sys.modules["tinynode"])["__version__"],
            "device": ", ".join(self.devices),
            "width": width,
            "height": height,
            "nodes": nodes,
            "edges": edges,
            "classes": {key: describe_class(cls) for key, cls in self._classes.items()},
            "files": files.data,
            "values": self.values.data(),
            "steps": steps,
        }

    def _labels(self) -> dict[str, str]:
        """The label of each node.

        Variables without a name, and further Variables of a name, get numbers, as in
        ``tinynode.show.graph``.
        """
        labels: dict[str, str] = {}
        taken: set[str] = set()
        number = 0
        for node in self.nodes:
            label = node.label
            if node.kind == "variable" and label != GONE:
                if not label or label in taken:
                    number += 1
                    label = f"{label}#{number}"
                taken.add(label)
            labels[node.id] = label
        return labels

    def _picture(
        self, labels: dict[str, str]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float, float]:
        """The nodes and edges with layout, and the picture's width and height."""
        # here, since recording needs no layout, and `import tinynode` stays quick
        from tinynode.show.diagram_data import DiagramEdge, DiagramNode, group_name
        from tinynode.show.grouping import spread_groups  # likewise
        from tinynode.show.layout import layout  # likewise

        boxes = [
            DiagramNode(node.id, node.kind, labels[node.id], node.facts, node.rank, node.phase)
            for node in self.nodes
        ]
        for node, box in zip(self.nodes, boxes, strict=True):
            if node.is_state and "." in node.label:
                box.group = group_name(node.label.rpartition(".")[0])
        arrows = [DiagramEdge(a, b, phase) for (a, b), (phase, _) in self.edges.items()]
        spread_groups(boxes, arrows, None)
        drawn = layout(boxes, arrows)
        nodes = [
            node.data(box.label, box.group, *drawn.position[node.id])
            for node, box in zip(self.nodes, boxes, strict=True)
        ]
        edges = []
        for (source, target, points), (phase, born) in zip(
            drawn.edges, self.edges.values(), strict=True
        ):
            rounded = [[round(x, 1), round(y, 1)] for x, y in points]
            edges.append(
                {"from": source, "to": target, "points": rounded, "phase": phase, "born": born}
            )
        return nodes, edges, round(drawn.width, 1), round(drawn.height, 1)

    def to_text(self) -> str:
        """Every step in words."""
        return film_text.text(self.data())

    def save(self, path: str | Path) -> None:
        """Write the film: ``.html`` is a self-contained page, ``.json`` is ``data()``.

        Raises:
            ValueError: the path has another suffix.
        """
        suffix = Path(path).suffix.lower()
        if suffix in (".html", ".htm"):
            content = self._page()
        elif suffix == ".json":
            content = to_json(self.data())
        else:
            raise ValueError(f"Film.save: the path must end in .html or .json, got {str(path)!r}.")
        # a file's name can have half of a surrogate pair, which no encoding has
        Path(path).write_bytes(content.encode("utf-8", "replace"))

    def _page(self) -> str:
        # here, since reading the page's files takes longer than recording a few steps
        from tinynode.show.page import page

        return page(self.data())

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        frame = html.escape(self._page(), quote=True)
        return (
            f'<iframe srcdoc="{frame}" title="film" '
            'style="width: 100%; height: 720px; border: 0"></iframe>'
        )

    def walk(self) -> None:
        """Step through the film in the terminal, by keys."""
        # here, since only this method needs a terminal
        from tinynode.show.walk import walk

        walk(self.data())


def plural(number: int, word: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def to_json(data: dict[str, Any]) -> str:
    """The film as JSON without spaces."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

"""Diagram: a picture as data, before it is drawn.

Requirement: one description of boxes and arrows, and every way to look at it: characters in a
terminal, SVG in a notebook and on a page, DOT and Mermaid for other tools. What is drawn is plain
data, so a test can read it, and a reader of the course can build a Diagram of an engine of his or
her own, node by node:

    diagram = Diagram("y = x * x")
    x = diagram.variable("x", "(3,)", marks="leaf")
    y = diagram.variable("y", "(3,)", marks="root")
    diagram.function("Square", inputs=[x], outputs=[y])
    diagram.save("square.svg")

Drawing does not touch the graph that a Diagram was made of: it holds texts and numbers only.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinynode.errors import describe
from tinynode.show import dot, mermaid, svg, text_diagram

KINDS = ("variable", "function", "fold")
PHASES = ("forward", "backward")
MARKS = ("leaf", "retained", "no gradient", "root", "gone", "gradient")
"""What may be said of a node besides its facts; pictures draw some of them."""

_SUFFIXES = (".svg", ".html", ".dot", ".gv", ".mmd", ".md", ".txt")


@dataclass(slots=True)
class DiagramNode:
    """A box.

    Attributes:
        id: a short word that no other node of the diagram has: ``"v0"``, ``"f3"``.
        kind: ``"variable"`` (rounded), ``"function"`` (a box), or ``"fold"``: stands for many.
        label: the first line: ``"x.node"``, ``"Multiply"``.
        facts: short lines below it: ``"(3,), float32"``.
        rank: the rank in the graph; a function's is the largest of its inputs.
        phase: ``"forward"``, or ``"backward"`` for what computes gradients.
        marks: some of ``MARKS``.
        group: the dotted name of the module it belongs to: ``"layers.0"`` lies in ``"layers"``.
    """

    id: str
    kind: str
    label: str
    facts: tuple[str, ...] = ()
    rank: int = 0
    phase: str = "forward"
    marks: frozenset[str] = frozenset()
    group: str | None = None


@dataclass(slots=True)
class DiagramEdge:
    """An arrow along the data: from an input to a function, or from a function to an output.

    Attributes:
        source: the id of the node where it starts.
        target: the id of the node where it ends.
        phase: ``"forward"`` or ``"backward"``.
        label: a short text beside it: right of an arrow down, above an arrow to the right.
    """

    source: str
    target: str
    phase: str = "forward"
    label: str = ""


@dataclass
class Diagram:
    """A picture of a graph; ``tinynode.show.graph`` makes one, and so can you.

    In a notebook it shows itself; ``print`` shows it as text.

    Attributes:
        title: one line.
        nodes: the boxes, inputs before what is computed of them.
        edges: the arrows.
        notes: lines for what the picture leaves out, or says of all nodes at once.
        direction: where the arrows lead: ``"down"`` or ``"right"``.
    """

    title: str = ""
    nodes: list[DiagramNode] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    direction: str = "down"

    def variable(
        self,
        label: str,
        *facts: str,
        marks: str | Iterable[str] = (),
        phase: str = "forward",
        group: str | None = None,
    ) -> DiagramNode:
        """Add a Variable's node.

        Args:
            label: what to call it.
            facts: short lines below, such as its shape.
            marks: one of ``"leaf"``, ``"retained"``, ``"no gradient"``, ``"root"``, ``"gone"``
                and ``"gradient"``, or several.
            phase: ``"forward"`` or ``"backward"``.
            group: the dotted name of a module.

        Raises:
            ValueError: there is no such mark or phase.
        """
        found = frozenset((marks,) if isinstance(marks, str) else marks)
        if not found <= set(MARKS):
            raise ValueError(f"Diagram.variable: marks must be some of {MARKS}, got {set(found)}.")
        return self._add(
            DiagramNode(self._id("v"), "variable", label, facts, 0, phase, found, group)
        )

    def function(
        self,
        label: str,
        *facts: str,
        inputs: Sequence[DiagramNode] = (),
        outputs: Sequence[DiagramNode] = (),
        phase: str = "forward",
        group: str | None = None,
    ) -> DiagramNode:
        """Add a function, and the arrows from its inputs and to its outputs.

        Ranks follow: the function gets the largest one of its inputs, and its outputs one more.

        Args:
            label: what to call it.
            facts: short lines below.
            inputs: nodes of this diagram.
            outputs: nodes of this diagram.
            phase: ``"forward"`` or ``"backward"``.
            group: the dotted name of a module.

        Raises:
            ValueError: an input or output is no node of this diagram, or there is no such phase.
        """
        for node in (*inputs, *outputs):
            if not any(node is own for own in self.nodes):
                raise ValueError(
                    f"Diagram.function: {label}: {describe(node)} is no node of this diagram. "
                    'Give what diagram.variable("x") returned.'
                )
        rank = max((node.rank for node in inputs), default=0)
        made = DiagramNode(self._id("f"), "function", label, facts, rank, phase, group=group)
        self._add(made)
        for node in inputs:
            self.edges.append(DiagramEdge(node.id, made.id, phase))
        for node in outputs:
            node.rank = rank + 1
            self.edges.append(DiagramEdge(made.id, node.id, phase))
        return made

    def _id(self, letter: str) -> str:
        """An id that is not taken: the number of nodes with that letter, or one above."""
        taken = {node.id for node in self.nodes if node.id.startswith(letter)}
        number = len(taken)
        while f"{letter}{number}" in taken:
            number += 1
        return f"{letter}{number}"

    def _add(self, node: DiagramNode) -> DiagramNode:
        if node.phase not in PHASES:
            raise ValueError(f"Diagram: phase must be one of {PHASES}, got {node.phase!r}.")
        self.nodes.append(node)
        return node

    # --- ways to look at it ----------------------------------------------------------------

    def to_text(self) -> str:
        """The picture as characters, to ``print``."""
        return text_diagram.to_text(self)

    def to_dot(self) -> str:
        """The picture in the language of graphviz."""
        return dot.to_dot(self)

    def to_mermaid(self) -> str:
        """The picture as a Mermaid flowchart, which many Markdown pages draw."""
        return mermaid.to_mermaid(self)

    def to_svg(self) -> str:
        """The picture as SVG, for light and dark pages.

        The layout is tinynode's own; that of a large diagram is left to graphviz where its
        program ``dot`` is installed and the arrows have no labels.

        Raises:
            ValueError: the edges lead in a circle, or to a node that is not there.
        """
        return svg.to_svg(self)

    def to_html(self) -> str:
        """A page with the picture on it, that needs nothing else."""
        title = html.escape(self.title or "graph")
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>\n:root {{ color-scheme: light dark; }}\n"
            "body { margin: 1rem; }\n</style>\n</head>\n"
            f"<body>\n{self.to_svg()}\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Write the picture to a file; its suffix says how.

        Args:
            path: ends in ``.svg``, ``.html`` (a page with the SVG), ``.dot`` or ``.gv``
                (graphviz), ``.mmd`` (Mermaid), ``.md`` (Mermaid in Markdown) or ``.txt``.

        Raises:
            ValueError: the suffix is another.
            FileNotFoundError: the folder is missing.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(
                f"Diagram.save: the suffix of path must be one of {', '.join(_SUFFIXES)}, got "
                f"{str(path)!r}. For a PNG, open the .svg or .html in a browser, or give the .dot "
                "to graphviz."
            )
        if not target.parent.is_dir():
            raise FileNotFoundError(
                f"Diagram.save: the folder {str(target.parent)!r} of {str(path)!r} does not "
                "exist. Make it first: pathlib.Path(...).mkdir(parents=True)."
            )
        target.write_text(self._written(suffix), encoding="utf-8")

    def _written(self, suffix: str) -> str:
        """The text of a file with that suffix."""
        if suffix == ".svg":
            return self.to_svg() + "\n"
        if suffix == ".html":
            return self.to_html()
        if suffix in (".dot", ".gv"):
            return self.to_dot() + "\n"
        if suffix == ".mmd":
            return self.to_mermaid() + "\n"
        if suffix == ".md":
            return f"```mermaid\n{self.to_mermaid()}\n```\n"
        return self.to_text() + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Diagram {self.title!r} of {len(self.nodes)} nodes>"

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: the SVG, or the text where it cannot."""
        return {"image/svg+xml": self.to_svg(), "text/plain": self.to_text()}

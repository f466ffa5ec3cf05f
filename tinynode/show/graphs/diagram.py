"""Diagram: a picture as data, and the formats for display.

Requirement: a single description of boxes and arrows has several formats. They are characters for
a terminal, SVG for notebooks and pages, DOT and Mermaid for other tools. The description is plain
data, which a test can read. A reader of the course can also build a Diagram of an own engine, node
by node:

    diagram = Diagram("y = x * x")
    x = diagram.variable("x", "(3,)", marks="leaf")
    y = diagram.variable("y", "(3,)", marks="root")
    diagram.function("Square", inputs=[x], outputs=[y])
    diagram.save("square.svg")

A Diagram holds texts and numbers only, so drawing does not touch the graph.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tinynode.atomic_file import replace_file
from tinynode.errors import describe
from tinynode.safe_files import checked_path
from tinynode.show.graphs import dot, mermaid
from tinynode.show.graphs.diagram_data import MARKS, PHASES, DiagramData, DiagramEdge, DiagramNode
from tinynode.show.graphs.drawing import drawing
from tinynode.show.graphs.text import to_text
from tinynode.show.pixels import save_png
from tinynode.show.svg import svg

_SUFFIXES = (".svg", ".png", ".html", ".dot", ".gv", ".mmd", ".md", ".txt")


class Diagram(DiagramData):
    """A picture of a graph, built by ``tinynode.show.graph`` or by hand.

    A notebook shows the picture; ``print`` shows text. The attributes ``title``, ``nodes``,
    ``edges``, ``notes`` and ``direction`` are the attributes of ``DiagramData``.
    """

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
            label: the name in the picture.
            facts: short lines below, such as the shape.
            marks: some of ``"leaf"``, ``"retained"``, ``"no gradient"``, ``"root"``, ``"gone"``,
                ``"gradient"`` and ``"finding"``.
            phase: ``"forward"`` or ``"backward"``.
            group: the dotted name of a module.

        Raises:
            ValueError: a mark or the phase does not exist.
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
        """Add a function, and the arrows from the inputs and to the outputs.

        Ranks follow: the function gets the largest rank of the inputs, and the outputs one more.

        Args:
            label: the name in the picture.
            facts: short lines below.
            inputs: nodes of this diagram.
            outputs: nodes of this diagram.
            phase: ``"forward"`` or ``"backward"``.
            group: the dotted name of a module.

        Raises:
            ValueError: an input or output is no node of this diagram, or the phase does not exist.
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
        """A free id: the letter with the number of its nodes, or with a larger number."""
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

    # --- formats ---------------------------------------------------------------------------

    def to_text(self) -> str:
        """The picture as characters, to ``print``."""
        return to_text(self)

    def to_dot(self) -> str:
        """The picture in the language of graphviz."""
        return dot.to_dot(self)

    def to_mermaid(self) -> str:
        """The picture as a Mermaid flowchart, for Markdown pages."""
        return mermaid.to_mermaid(self)

    def to_svg(self) -> str:
        """The picture as SVG, for light and dark pages.

        A leaf with distant uses has further boxes.

        Raises:
            ValueError: the edges form a cycle, or lead to a missing node.
        """
        return svg(drawing(self))

    def to_html(self) -> str:
        """A self-contained page with the picture."""
        title = html.escape(self.title or "graph")
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>\n:root {{ color-scheme: light dark; }}\n"
            "body { margin: 1rem; }\n</style>\n</head>\n"
            f"<body>\n{self.to_svg()}\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Write the picture to a file in the format of the suffix.

        Args:
            path: ends in ``.svg``, ``.png`` (needs Pillow), ``.html`` (a page with the SVG),
                ``.dot`` or ``.gv`` (graphviz), ``.mmd`` (Mermaid), ``.md`` (Mermaid in Markdown)
                or ``.txt``.

        Raises:
            ValueError: the suffix is another.
            FileNotFoundError: the folder is missing.
            ImportError: the path ends in ``.png``, and Pillow is not installed.
        """
        target = Path(checked_path("Diagram.save", path))
        suffix = target.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(
                f"Diagram.save: the suffix of path must be one of {', '.join(_SUFFIXES)}, got "
                f"{str(path)!r}. For other formats, give the .dot to graphviz."
            )
        if not target.parent.is_dir():
            raise FileNotFoundError(
                f"Diagram.save: the folder {str(target.parent)!r} of {str(path)!r} does not "
                "exist. Make it first: pathlib.Path(...).mkdir(parents=True)."
            )
        if suffix == ".png":
            save_png(drawing(self), target)
            return
        replace_file(target, self._content(suffix).encode())

    def _content(self, suffix: str) -> str:
        """The content of a file with the suffix."""
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
        """For notebooks: the SVG, and the text where no SVG can be shown."""
        return {"image/svg+xml": self.to_svg(), "text/plain": self.to_text()}

"""A Diagram as characters.

Requirement: a terminal, a log and a screen reader show the content of a picture. The form is that
of ``tinynode.show.text``: a line ``x.node <- Multiply <- z.node`` for each function, then a line
for each Variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinynode.show.graphs.diagram_data import DiagramData, DiagramNode
from tinynode.show.texts import one_line


def to_text(diagram: DiagramData) -> str:
    """The picture as lines: the functions in order, then the facts of each Variable."""
    inputs: dict[str, list[str]] = {node.id: [] for node in diagram.nodes}
    outputs: dict[str, list[str]] = {node.id: [] for node in diagram.nodes}
    labels = {node.id: one_line(node.label) for node in diagram.nodes}
    for edge in diagram.edges:
        inputs[edge.target].append(labels[edge.source] + _times(edge.label))
        outputs[edge.source].append(labels[edge.target] + _times(edge.label))
    functions = [node for node in sorted(diagram.nodes, key=_rank) if node.kind != "variable"]
    blocks = [
        [one_line(diagram.title)] if diagram.title else [],
        function_lines((inputs[node.id], _title(node), outputs[node.id]) for node in functions),
        _variables(diagram),
        [one_line(note) for note in diagram.notes],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def function_lines(functions: Iterable[tuple[list[str], str, list[str]]]) -> list[str]:
    """``x <- f <- y`` for the inputs, the title and the outputs of each function.

    A further input has a line below: ``z <-'``.
    """
    rows = []
    for inputs, title, outputs in functions:
        first, *others = inputs or [""]
        rows.append((first, f" {title} <- {', '.join(outputs)}"))
        rows += [(name, "'") for name in others]
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}} <-{rest}".rstrip() for name, rest in rows]


def variable_lines(variables: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """``x: facts`` for the name and the facts of each Variable."""
    width = max((len(name) for name, _ in variables), default=0) + 1
    return [f"{name + ':':<{width}} {', '.join(facts)}" for name, facts in variables]


def _times(label: str) -> str:
    return f" ({one_line(label)})" if label else ""


def _rank(node: DiagramNode) -> int:
    return node.rank


def _title(node: DiagramNode) -> str:
    """A function's label and facts, and the word "backward" for that phase."""
    words = [*node.facts, *(["backward"] if node.phase == "backward" else [])]
    facts = f" ({', '.join(one_line(word) for word in words)})" if words else ""
    return one_line(node.label) + facts


def _variables(diagram: DiagramData) -> list[str]:
    """A line for each Variable, the highest rank first."""
    variables = [node for node in diagram.nodes if node.kind == "variable"]
    rows = []
    for node in sorted(variables, key=_rank, reverse=True):
        words = [f"rank {node.rank}", *node.facts]
        if "leaf" in node.marks and "leaf" not in ", ".join(node.facts).split(", "):
            words.append("leaf")
        if node.phase == "backward":
            words.append("backward")
        rows.append((one_line(node.label), [one_line(word) for word in words]))
    return variable_lines(rows)

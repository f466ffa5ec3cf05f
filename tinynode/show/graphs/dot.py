"""A Diagram in the language of graphviz.

Requirement: other tools can draw the picture.
"""

from __future__ import annotations

import itertools

from tinynode.show.graphs.diagram_data import DiagramData, DiagramNode, nested, short_label
from tinynode.show.palette import EITHER, FRAME
from tinynode.show.texts import one_line


def to_dot(diagram: DiagramData) -> str:
    """The lines of a DOT file: Variables are ellipses, functions are boxes."""
    lines = ["digraph {", f"    rankdir={'LR' if diagram.direction == 'right' else 'TB'};"]
    if diagram.title:
        lines.append(f'    label="{_quoted(diagram.title)}"; labelloc=t;')
    lines += ['    node [fontname="monospace", fontsize=10];', '    edge [fontname="monospace"];']
    lines += _clusters(diagram)
    for edge in diagram.edges:
        lines.append(
            f"    {edge.source} -> {edge.target}{_edge_attributes(edge.phase, edge.label)};"
        )
    lines += [f"    // {one_line(note)}" for note in diagram.notes]
    return "\n".join([*lines, "}"])


def _clusters(diagram: DiagramData) -> list[str]:
    """The lines of the nodes; a group is a subgraph of the group around it."""
    lines: list[str] = []
    numbers = itertools.count()
    for depth, part in nested(diagram.nodes):
        indent = "    " * (depth + 1)
        if part is None:
            lines.append(f"{indent}}}")
        elif isinstance(part, DiagramNode):
            lines.append(f"{indent}{part.id} [{_attributes(part)}];")
        else:
            lines.append(f"{indent}subgraph cluster_{next(numbers)} {{")
            lines.append(f'{indent}    label="{_quoted(part)}"; color="{FRAME}";')
    return lines


def _attributes(node: DiagramNode) -> str:
    label = "\\n".join(_quoted(text) for text in (short_label(node), *node.facts))
    shape = {"variable": "ellipse", "function": "box", "fold": "box3d"}[node.kind]
    styles = ["dashed"] if node.phase == "backward" else []
    if "gone" in node.marks:
        styles = ["dotted"]
    if node.marks & {"root", "finding"}:
        styles.append("bold")
    words = [f'label="{label}"', f"shape={shape}", f'color="{_colour(node)}"']
    if styles:
        words.append(f'style="{",".join(styles)}"')
    return ", ".join(words)


def _edge_attributes(phase: str, label: str) -> str:
    words = [f'label="{_quoted(label)}"'] if label else []
    if phase == "backward":
        words += ["style=dashed", f'color="{EITHER.backward}"']
    return f" [{', '.join(words)}]" if words else ""


def _colour(node: DiagramNode) -> str:
    if "finding" in node.marks:
        return EITHER.bad
    return EITHER.backward if node.phase == "backward" else EITHER.forward


def _quoted(text: str) -> str:
    """The text escaped for DOT's quotes, between which DOT reads HTML's entities too."""
    return one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')

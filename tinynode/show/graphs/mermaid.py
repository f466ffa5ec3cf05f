"""A Diagram as a Mermaid flowchart.

Requirement: a README, an issue and a page of documentation show the picture without a further
file, since many Markdown renderers draw Mermaid. Only strokes are coloured, so the text keeps the
page's colours, light or dark.
"""

from __future__ import annotations

import itertools

from tinynode.show.graphs.diagram_data import DiagramData, DiagramNode, nested, short_label
from tinynode.show.palette import EITHER
from tinynode.show.texts import one_line

_CLASSES = (
    f"classDef forward stroke:{EITHER.forward}",
    f"classDef backward stroke:{EITHER.backward},stroke-dasharray:5 3",
    "classDef root stroke-width:3px",
    "classDef gone stroke-dasharray:1 3",
    f"classDef finding stroke:{EITHER.bad},stroke-width:3px",
)
_SHAPES = {"variable": ("([", "])"), "function": ("[", "]"), "fold": ("[[", "]]")}
_INDENT = "    "


def to_mermaid(diagram: DiagramData) -> str:
    """The lines of a flowchart: Variables are rounded, functions are boxes."""
    lines = [f"flowchart {'LR' if diagram.direction == 'right' else 'TD'}"]
    if diagram.title:
        lines.append(f"{_INDENT}accTitle: {_text(diagram.title)}")
    lines += _nodes(diagram)
    for edge in diagram.edges:
        arrow = "-.->" if edge.phase == "backward" else "-->"
        label = f'|"{_text(edge.label)}"|' if edge.label else ""
        lines.append(f"{_INDENT}{edge.source} {arrow}{label} {edge.target}")
    classes: dict[str, list[str]] = {}
    for node in diagram.nodes:
        for name in (node.phase, *sorted(node.marks & {"root", "gone", "finding"})):
            classes.setdefault(name, []).append(node.id)
    lines += [_INDENT + line for line in _CLASSES if line.split()[1] in classes]
    lines += [f"{_INDENT}class {','.join(ids)} {name}" for name, ids in classes.items()]
    lines += [f"{_INDENT}%% {_text(note)}" for note in diagram.notes]
    return "\n".join(lines)


def _nodes(diagram: DiagramData) -> list[str]:
    """A line for each node; a group is a subgraph of the group around it."""
    lines: list[str] = []
    numbers = itertools.count()
    for depth, part in nested(diagram.nodes):
        if part is None:
            text = "end"
        elif isinstance(part, DiagramNode):
            text = _node(part)
        else:
            text = f'subgraph g{next(numbers)}["{_text(part)}"]'
        lines.append(_INDENT * (depth + 1) + text)
    return lines


def _node(node: DiagramNode) -> str:
    left, right = _SHAPES[node.kind]
    text = "<br/>".join(_text(line) for line in (short_label(node), *node.facts))
    return f'{node.id}{left}"{text}"{right}'


_ENTITIES = {
    "#": "#35;",
    ";": "#59;",
    "&": "#amp;",
    "<": "#lt;",
    ">": "#gt;",
    '"': "#quot;",
    "`": "#96;",
    "%": "#37;",
    "{": "#123;",
    "}": "#125;",
}


def _text(text: str) -> str:
    """The text escaped for Mermaid's quotes, between which Mermaid reads HTML."""
    return "".join(_ENTITIES.get(letter, letter) for letter in one_line(text))

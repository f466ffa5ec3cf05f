"""The data of a diagram: boxes, arrows, and the module of each box.

Requirement: every writer (text, DOT, Mermaid, drawing) and the layout read the same plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tinynode.show.texts import FACT_WIDTH, LABEL_WIDTH, cut, text_columns

PHASES = ("forward", "backward")
MARKS = ("leaf", "retained", "no gradient", "root", "gone", "gradient", "finding")
"""The marks of a node besides its facts; pictures draw some of the marks."""


@dataclass(slots=True)
class DiagramNode:
    """A box.

    Attributes:
        id: a short word, unique in the diagram: ``"v0"``, ``"f3"``.
        kind: ``"variable"`` (rounded), ``"function"`` (a box), or ``"fold"`` (many functions).
        label: the first line: ``"x.node"``, ``"Multiply"``.
        facts: short lines below the label: ``"(3,), float32"``.
        rank: the rank in the graph; for a function, the largest rank of the inputs.
        phase: ``"forward"``, or ``"backward"`` for a computation of gradients.
        marks: some of ``MARKS``.
        group: the dotted name of the node's module: ``"layers.0"`` lies in ``"layers"``.
        room: width and height of free room below the facts, in pixels.
        repeats: for a leaf drawn again, the id of the leaf's first box.
    """

    id: str
    kind: str
    label: str
    facts: tuple[str, ...] = ()
    rank: int = 0
    phase: str = "forward"
    marks: frozenset[str] = frozenset()
    group: str | None = None
    room: tuple[float, float] = (0.0, 0.0)
    repeats: str | None = None


@dataclass(slots=True)
class DiagramEdge:
    """An arrow along the data: from an input to a function, or from a function to an output.

    Attributes:
        source: the id of the node at the start.
        target: the id of the node at the end.
        phase: ``"forward"`` or ``"backward"``.
        label: a short text: right of an arrow down, above an arrow to the right.
    """

    source: str
    target: str
    phase: str = "forward"
    label: str = ""


@dataclass(repr=False)
class DiagramData:
    """A picture of a graph before it is drawn.

    Attributes:
        title: one line.
        nodes: the boxes, inputs before the nodes computed from them.
        edges: the arrows.
        notes: lines on omitted parts, and on properties shared by all nodes.
        direction: where the arrows lead: ``"down"`` or ``"right"``.
    """

    title: str = ""
    nodes: list[DiagramNode] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    direction: str = "down"


def group_name(dotted: str) -> str:
    """A module's name as Python code writes it: ``layers[0].linear`` for ``layers.0.linear``."""
    words: list[str] = []
    for word in dotted.split("."):
        if word.isdigit() and words:
            words[-1] += f"[{word}]"
        else:
            words.append(word)
    return ".".join(words)


def group_path(group: str | None) -> tuple[str, ...]:
    """A group and the groups around it, outer first: ``("a", "a.b")`` for ``"a.b"``."""
    if not group:
        return ()
    words = group.split(".")
    return tuple(".".join(words[: i + 1]) for i in range(len(words)))


def nested(nodes: Sequence[DiagramNode]) -> Iterator[tuple[int, DiagramNode | str | None]]:
    """The nodes in their groups, for languages with brackets.

    Yields the number of groups around a part, and the part. A part is the name of a group that
    begins, a node, or None for the end of a group.
    """
    opened: tuple[str, ...] = ()
    for node in sorted(nodes, key=_group_key):
        wanted = group_path(node.group)
        while opened != wanted[: len(opened)]:
            opened = opened[:-1]
            yield len(opened), None
        for name in wanted[len(opened) :]:
            yield len(opened), name
            opened = (*opened, name)
        yield len(opened), node
    for depth in reversed(range(len(opened))):
        yield depth, None


def _group_key(node: DiagramNode) -> tuple[str, ...]:
    return group_path(node.group)


# --- sizes, in pixels ---------------------------------------------------------------------------

_LABEL_HEIGHT = 13.0


def short_label(node: DiagramNode) -> str:
    """A node's label in a picture: inside of a module's outline, without the module's name."""
    return cut(node.label.removeprefix(f"{node.group}.") if node.group else node.label)


def box_size(node: DiagramNode) -> tuple[float, float]:
    """Width and height of a node's box: room for its texts and numbers."""
    widest = text_columns(short_label(node)) * LABEL_WIDTH
    for fact in node.facts:
        widest = max(widest, text_columns(cut(fact)) * FACT_WIDTH)
    width, height = node.room
    return max(44.0, widest + 20, width + 16), 24.0 + 13 * len(node.facts) + height


def label_size(label: str) -> tuple[float, float]:
    """Width and height of the text beside an arrow."""
    return text_columns(cut(label)) * FACT_WIDTH, _LABEL_HEIGHT

"""The sizes of boxes and labels of a graph, in pixels."""

from __future__ import annotations

from tinynode.show.graphs.diagram_data import DiagramNode
from tinynode.show.texts import FACT_WIDTH, LABEL_WIDTH, cut, text_columns

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

"""The sizes of texts in pictures, in pixels.

Requirement: the layout reserves the room that the SVG's texts take, so both read the sizes here.
"""

from __future__ import annotations

import unicodedata

from tinynode.show.graphs.diagram_data import DiagramNode

LABEL_WIDTH = 7.3
"""Width of a letter of a label, in pixels: 12 px monospace."""
FACT_WIDTH = 6.2
"""Width of a letter of a fact: 10 px monospace."""
NUMBER_WIDTH = 6.7
"""Width of a letter of a number: 11 px monospace."""
LONGEST_TEXT = 40
"""Pictures cut a text of more letters."""

_LABEL_HEIGHT = 13.0


def text_columns(text: str) -> int:
    """The number of columns of a text in a monospace font; a wide character takes two."""
    if text.isascii():
        return len(text)
    columns = 0
    for letter in text:
        if not unicodedata.combining(letter):
            columns += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
    return columns


def cut(text: str) -> str:
    """The text, cut to ``LONGEST_TEXT`` letters."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


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

"""Texts in pictures: their sizes in pixels, their lines, and letters that every format can show.

Requirement: a layout reserves the room that the drawn texts take, so both read the sizes here. A
name with control characters steers no terminal, and is well-formed in XML.
"""

from __future__ import annotations

import unicodedata

LABEL_WIDTH = 7.3
"""Width of a letter of a label, in pixels: 12 px monospace."""
FACT_WIDTH = 6.2
"""Width of a letter of a fact: 10 px monospace."""
NUMBER_WIDTH = 6.7
"""Width of a letter of a number: 11 px monospace."""
SANS = 0.55
"""The mean width of a letter of a font with proportional letters, as a part of the size."""
MONO = 0.61
"""Likewise, of a monospace font."""
LONGEST_TEXT = 40
"""Pictures cut a text of more letters."""

LONGEST_NOTE = 2000
"""Films keep so many letters of an error, and of a line of a program."""


def text_columns(text: str) -> int:
    """The number of columns of a text in a monospace font; a wide character takes two."""
    if text.isascii():
        return len(text)
    columns = 0
    for letter in text:
        if not unicodedata.combining(letter):
            columns += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
    return columns


def one_line(text: str) -> str:
    """The text without line breaks, and without control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def cut(text: str, longest: int = LONGEST_TEXT, dots: str = "…") -> str:
    """The text, cut to so many letters."""
    return text if len(text) <= longest else text[: longest - len(dots)] + dots


def clean(text: str, longest: int = 60) -> str:
    """A text for one line of a plot or a card, cut if too long."""
    return cut(one_line(text), longest, "...")


def wrapped(text: str, size: float, width: float) -> list[str]:
    """The text in lines of at most ``width`` pixels; longer words are cut."""
    most = max(8, int(width / (size * SANS)))
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_columns(longer) <= most:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while text_columns(line) > most:
            lines.append(line[:most])
            line = line[most:]
    return [*lines, line]

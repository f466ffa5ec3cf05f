"""Marks of equivalent mutants, by the text of the line.

Requirement: a mutant without an effect for callers is left out, with a reason, and a reader of the
source meets no mark. ``marks.toml`` has the marks of each file:

    [["tinynode/functions/activation.py"]]
    within = "ReLU.backward"
    line = "return ReLUGrad().apply((y, gy))"
    operators = ["CutGraph y"]
    reason = "ReLUGrad has no gradient for y"

A mark holds for each line with this text within the definition; ``within`` is "" outside of
definitions. Without ``line``, the mark holds for the whole definition. ``CutGraph y`` names the
changes of ``y`` alone. Without ``operators``, no operator changes the line.
"""

from __future__ import annotations

import ast
import pathlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

FILE = pathlib.Path(__file__).with_name("marks.toml")


@dataclass(frozen=True)
class Mark:
    """A mark of a file.

    Attributes:
        within: the qualified name of the function or class around the line; "" for none.
        reason: why no caller sees the mutants.
        line: the text of the line, without spaces at its ends; "" for all lines.
        operators: names of operators, with a text after a space or without; none means all.
    """

    within: str
    reason: str
    line: str = ""
    operators: Sequence[str] = ()

    def names(self, operator: str, text: str = "") -> bool:
        """True if the mark names an operator's change of a text."""
        name = operator.rpartition("/")[2]
        return not self.operators or name in self.operators or f"{name} {text}" in self.operators


class MarkedLines:
    """The marks of a file, at the lines of its source.

    Args:
        source: the text of the file.
        marks: the marks.

    Attributes:
        stale: the marks without a line.
    """

    def __init__(self, source: str, marks: Iterable[Mark]) -> None:
        lines = [line.strip() for line in source.splitlines()]
        definitions = definitions_of(source)
        self._marks: list[tuple[Mark, set[int]]] = []
        self.stale = []
        for mark in marks:
            within = {n for n, name in enumerate(definitions, 1) if name == mark.within}
            found = {n for n in within if mark.line in ("", lines[n - 1])}
            self._marks.append((mark, found))
            if not found:
                self.stale.append(mark)

    def exclude(self, line: int, operator: str, text: str = "") -> bool:
        """True if a mark excludes an operator's change of a text in a line."""
        return any(line in found and mark.names(operator, text) for mark, found in self._marks)


@cache
def all_marks() -> dict[str, list[Mark]]:
    """The marks of ``marks.toml`` by file.

    Raises:
        TypeError: an entry has an unknown key, or lacks a key.
    """
    files = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {path: [Mark(**entry) for entry in entries] for path, entries in files.items()}


def definitions_of(source: str) -> list[str]:
    """For each line, the qualified name of the innermost definition around it."""
    names = [""] * len(source.splitlines())
    waiting: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    for node, around in waiting:  # outer definitions come first, and inner ones overwrite them
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = f"{around}.{node.name}".lstrip(".")
            last = node.end_lineno or node.lineno
            names[node.lineno - 1 : last] = [around] * (last - node.lineno + 1)
        waiting += [(child, around) for child in ast.iter_child_nodes(node)]
    return names

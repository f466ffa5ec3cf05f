"""Marks of equivalent mutants in source lines.

Requirement: a mutant without an effect for callers is marked where it would be planted, with a
reason. The mark is a comment at the end of the line, or alone on the line above the statement:

    # pragma: no mutate (CutGraph): ReLUGrad has no gradient for y

The parentheses name operators, and ``CutGraph y`` the changes of ``y`` alone. Without parentheses
no operator changes the line. The mark of a ``def``, ``class`` or ``if`` line holds for that line
alone; ``no mutate below`` marks the block.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

_MARK = re.compile(
    r"#\s*pragma:\s*no mutate(?P<below> below)?\s*(\((?P<names>[^()]*)\))?\s*(:(?P<reason>.*))?$"
)


@dataclass(frozen=True)
class Mark:
    """A mark: the marked lines, the operators with texts (none means all), and the reason."""

    first: int
    last: int
    operators: frozenset[str]
    reason: str

    def holds(self, line: int, operator: str, text: str = "") -> bool:
        """True if the mark excludes an operator's change of a text in a line."""
        name = operator.rpartition("/")[2]
        named = not self.operators or bool({name, f"{name} {text}"} & self.operators)
        return self.first <= line <= self.last and named


def marks_of(source: str) -> list[Mark]:
    """All marks of a file. A mark without a reason has an empty text there."""
    lines = source.splitlines()
    return [_mark(lines, row, match) for row, match in _comments(source)]


def _comments(source: str) -> Iterator[tuple[int, re.Match[str]]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "no mutate" in token.string:
            match = _MARK.match(token.string)
            if match is None:
                raise ValueError(f"line {token.start[0]}: unreadable mark {token.string!r}")
            yield token.start[0], match


def _mark(lines: list[str], row: int, match: re.Match[str]) -> Mark:
    names = frozenset(name.strip() for name in (match["names"] or "").split(",") if name.strip())
    if lines[row - 1].lstrip().startswith("#"):
        while lines[row].lstrip().startswith("#"):  # the reason may take several lines
            row += 1
        row += 1
    last = row
    if match["below"]:
        depth = _depth(lines[row - 1])
        while last < len(lines) and (not lines[last].strip() or _depth(lines[last]) > depth):
            last += 1
    return Mark(row, last, names, (match["reason"] or "").strip())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())

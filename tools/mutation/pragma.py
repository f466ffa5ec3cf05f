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
    return [_mark(lines, row, text) for row, text in _comments(source) if "no mutate" in text]


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each comment; lines without code continue a comment."""
    found: list[tuple[int, str]] = []
    last, is_alone = 0, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, text = token.start[0], token.string
        if is_alone and row == last + 1 and "pragma:" not in text and _is_alone(token):
            found[-1] = (found[-1][0], f"{found[-1][1]} {text.lstrip('# ')}")
        else:
            found.append((row, text))
        last, is_alone = row, _is_alone(token)
    yield from found


def _is_alone(token: tokenize.TokenInfo) -> bool:
    return token.line.lstrip().startswith("#")


def _mark(lines: list[str], row: int, text: str) -> Mark:
    match = _MARK.match(text)
    if match is None:
        raise ValueError(f"line {row}: unreadable mark {text!r}")
    names = frozenset(name.strip() for name in (match["names"] or "").split(",") if name.strip())
    while lines[row - 1].lstrip().startswith("#"):  # a comment alone marks the next statement
        row += 1
    last = row
    if match["below"]:
        depth = _depth(lines[row - 1])
        while last < len(lines) and (not lines[last].strip() or _depth(lines[last]) > depth):
            last += 1
    return Mark(row, last, names, (match["reason"] or "").strip())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())

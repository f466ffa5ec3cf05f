"""Marks of equivalent mutants: each one is readable, and says why no caller sees the mutant."""

from __future__ import annotations

import pathlib

import pytest

from tools.mutation.pragma import Mark, marks_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("tinynode", "backends/tinynode_fast")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

SOURCE = """\
x = 1  # pragma: no mutate: the start has no effect
# pragma: no mutate (CutGraph y, FlipSign): the reason takes
# two lines
# pragma: no mutate (NextNumber,
# DropCopy): two marks of a line
y = 2
class Limits:  # pragma: no mutate below (NextNumber): speed alone
    a: int = 1

    b: int = 2
z = "no mutate"
"""


def test_marks_stand_in_the_line_above_the_line_or_on_a_block():
    assert marks_of(SOURCE) == [
        Mark(1, 1, frozenset(), "the start has no effect"),
        Mark(6, 6, frozenset({"CutGraph y", "FlipSign"}), "the reason takes two lines"),
        Mark(6, 6, frozenset({"NextNumber", "DropCopy"}), "two marks of a line"),
        Mark(7, 10, frozenset({"NextNumber"}), "speed alone"),
    ]


def test_a_mark_holds_for_its_lines_and_operators():
    every, two, _, block = marks_of(SOURCE)
    assert every.holds(1, "core/ReplaceAndWithOr") and not every.holds(2, "core/ReplaceAndWithOr")
    assert two.holds(6, "tinynode/FlipSign", "-y") and not two.holds(6, "tinynode/NextNumber", "y")
    assert two.holds(6, "tinynode/CutGraph", "y") and not two.holds(6, "tinynode/CutGraph", "x")
    assert [line for line in range(1, 12) if block.holds(line, "NextNumber")] == [7, 8, 9, 10]


def test_an_unreadable_mark_is_refused():
    with pytest.raises(ValueError, match="line 1: unreadable mark"):
        marks_of("x = 1  # pragma: no mutate (CutGraph) and so on\n")


@pytest.mark.slow
def test_every_mark_has_a_reason():
    marks = {path: marks_of(path.read_text(encoding="utf-8")) for path in FILES}
    without = [
        f"{path.relative_to(ROOT)}:{mark.first}"
        for path, found in marks.items()
        for mark in found
        if len(mark.reason.split()) < 3
    ]
    assert without == []

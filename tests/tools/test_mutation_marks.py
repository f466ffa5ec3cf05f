"""Marks of equivalent mutants: each one has a line, and says why no caller sees the mutant."""

from __future__ import annotations

import pathlib

import pytest

from tools.mutation import marks
from tools.mutation.marks import Mark, MarkedLines, all_marks, definitions_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = """\
x = 1
class A:
    limit: int = 1

    def f(self, x):
        y = -x
        return y
def f(x):
    y = -x
    return -x
"""


def test_definitions_of_lines():
    assert definitions_of(SOURCE) == ["", *["A"] * 3, *["A.f"] * 3, *["f"] * 3]


@pytest.mark.parametrize(
    ("mark", "lines"),
    [
        (Mark("", "", "x = 1"), [1]),
        (Mark("f", "", "y = -x"), [9]),
        (Mark("A.f", "", "y = -x"), [6]),
        (Mark("A", ""), [2, 3, 4]),
        (Mark("f", "", "y = -y"), []),
        (Mark("g", "", "y = -x"), []),
    ],
)
def test_a_mark_holds_for_the_lines_with_its_text(mark, lines):
    marked = MarkedLines(SOURCE, [mark])
    assert [n for n in range(1, 11) if marked.exclude(n, "core/FlipSign")] == lines
    assert marked.stale == ([] if lines else [mark])
    below = MarkedLines("import math\n\n" + SOURCE, [mark])
    assert [n - 2 for n in range(1, 13) if below.exclude(n, "core/FlipSign")] == lines


def test_a_mark_names_operators_and_texts():
    marked = MarkedLines("y = -x\n", [Mark("", "", "y = -x", ("CutGraph y", "FlipSign"))])
    assert marked.exclude(1, "tinynode/FlipSign", "-y") and marked.exclude(1, "CutGraph", "y")
    assert not marked.exclude(1, "tinynode/NextNumber", "y")
    assert not marked.exclude(1, "tinynode/CutGraph", "x")


def test_an_entry_with_a_wrong_key_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(marks, "FILE", tmp_path / "marks.toml")
    marks.FILE.write_text('[["a.py"]]\nwithin = "f"\nlines = "x"\nreason = "none"\n')
    with pytest.raises(TypeError, match="'lines'"):
        all_marks.__wrapped__()


def test_every_mark_has_a_line_and_a_reason():
    for path, found in all_marks().items():
        marked = MarkedLines((ROOT / path).read_text(encoding="utf-8"), found)
        assert marked.stale == [], f"marks.toml: {path} has no such line in the definition"
        assert [mark for mark in found if len(mark.reason.split()) < 3] == []
        assert not [mark for mark in found if found.count(mark) > 1], path

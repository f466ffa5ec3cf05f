"""Hints: about the failing check, the least help first; the place by an exchange of functions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tinynode_course import hints, lessons, mynode, places, sources, swapping
from tinynode_course.checks import CheckFailed, expect_equal
from tinynode_course.judge import plans
from tinynode_course.places import Spot

MINE = '''\
"""Mine."""


def double(x):
    return 3 * x


class Box:
    """A box."""

    size = 1

    def grow(self):
        self.size += 1
'''
RIGHT = '''\
"""Right."""

import math


def double(x):
    """Twice x."""
    return 2 * x


class Box:
    size = 1

    @property
    def root(self):
        return math.sqrt(self.size)

    def grow(self):
        # by one
        self.size += 1
'''


def test_units_differ_by_meaning() -> None:
    assert swapping.different(MINE, RIGHT) == ["double", "Box", "Box.root"]
    assert swapping.different("", RIGHT) == ["double", "Box", "Box.root", "Box.grow"]
    assert swapping.unit_at(MINE, 14) == "Box.grow" and swapping.unit_at(MINE, 9) == "Box"
    assert swapping.unit_at(MINE, 1) == ""


def test_a_unit_is_exchanged_with_its_imports() -> None:
    text = swapping.exchanged(MINE, RIGHT, "double")
    assert "return 2 * x" in text and "import math" not in text and "class Box" in text
    text = swapping.exchanged(MINE, RIGHT, "Box.root")
    assert "import math" in text and "3 * x" in text
    names = {}
    exec(compile(text, "mine", "exec"), names)
    assert names["Box"]().root == 1.0
    assert "def double" in swapping.exchanged("", RIGHT, "double")
    assert swapping.exchanged("", RIGHT, "Box.root") == ""


def test_a_place_in_words() -> None:
    step = sources.find("04")
    here = Spot("core/a.py", "Add.backward", 7, "def backward(self):")
    assert here.words(step) == "mynode/core/a.py, line 7, in Add: def backward(self):"
    here = Spot("core/a.py", "add", 7, "def add(x):")
    assert here.words(step) == "mynode/core/a.py, line 7: def add(x):"
    assert Spot("core/a.py", "add", 0).words(step) == "mynode/core/a.py: add is missing"


def write(key: str, folder: Path, *bug: str) -> Path:
    """The reference of a step with a bug; returns the learner's file."""
    wrong = mynode.mistake(key, *bug) if bug else {}
    mynode.write_files(mynode.reference(key) | wrong, folder / mynode.NAME)
    return folder / mynode.NAME / "__init__.py"


SIGN = ("functions/arithmetic.py", "gz, -gz", "gz, gz")


@pytest.mark.slow
def test_an_exchange_finds_the_method_behind_a_check_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the chain of minus signs blamed a recursion, for a sign."""
    step = sources.find("04")
    work = write("04", tmp_path, *SIGN)
    (work.parent / "junk.py").write_text("def (")  # nobody imports this file
    event = {
        "event": "failed",
        "check": 3,
        "kind": "wrong",
        "lines": ["mynode/core/x.py, line 1: a"],
        "look": "Subtract.backward: which sign?",
    }
    (found,) = places.places_of(event, step, work, "04")
    assert (found.path, found.name, found.is_sure) == (SIGN[0], "Subtract.backward", True)
    found = places.with_sure_place(event, step, work, "04")
    (line,) = found["lines"]
    assert "in Subtract: def backward(" in line and found["look"] == event["look"]
    event["look"] = "backward: a function that calls itself"
    assert places.with_sure_place(event, step, work, "04")["look"] == places.ELSEWHERE
    monkeypatch.setattr(places, "SECONDS", 0.01)
    assert places.with_sure_place(event, step, work, "04") == event


OF_TWO = """
from tinynode_course.checks import expect_equal


def check_both(work):
    expect_equal("first", work.first(), 2, "")
    expect_equal("second", work.second(), 4, "")
"""


def test_a_failure_before_the_place_is_not_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference's scale breaks first, which passed: that is no progress."""
    mine = "def scale():\n    return 1\n\n\ndef first():\n    return 2 * scale()\n\n\n"
    mine += "def second():\n    return 5 + scale()\n"
    right = "def scale():\n    return 2\n\n\ndef first():\n    return scale()\n\n\n"
    right += "def second():\n    return 2 * scale()\n"
    checks = tmp_path / "of_two.py"
    checks.write_text(OF_TWO)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = "work_of_two"
    texts = {f"{name}.py": mine}, {f"{name}.py": right}
    job = swapping.ExchangeJob(str(checks), 0, name, *texts, [])
    assert swapping.Search(job, tmp_path).found() is None


@pytest.mark.slow
def test_a_right_program_has_no_place_and_needs_no_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    step = sources.find("04")
    work = write("04", tmp_path)
    event = {"event": "failed", "check": 3, "kind": "wrong", "lines": []}
    assert places.places_of(event, step, work, "04") == []
    assert hints.failing(step, "04", 30.0) is None


@pytest.mark.slow
def test_the_hints_of_a_wrong_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    step = sources.find("04")
    write("04", tmp_path, *SIGN)
    failing = hints.failing(step, "04", 30.0)
    assert failing is not None
    assert failing.title == "operations with two inputs send a gradient to both"
    question, place, formula, lines = hints.ladder(step, failing, "04")
    assert question.endswith("?")
    assert place.startswith("Look here.") and "in Subtract: def backward(" in place
    assert "z = x - y: (gz, -gz)" in formula
    assert "return gz, -gz" in lines and "Multiply" not in lines


def hints_of_stubs(key: str, *written: tuple[str, str]) -> hints.Failing:
    """What fails first for the stubs of a step, with some functions written."""
    step = sources.find(key)
    files = plans.stub(step)
    for path, name in written:
        old, new = files[f"{mynode.NAME}/{path}"], mynode.reference(key)[path]
        files[f"{mynode.NAME}/{path}"] = swapping.exchanged(old, new, name)
    mynode.write_files(files, Path())
    found = hints.failing(step, key, 30.0)
    assert found is not None
    return found


@pytest.mark.slow
def test_hints_are_about_the_function_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an unfinished apply, the first hint asked what forward returns; forward was given."""
    monkeypatch.chdir(tmp_path)
    step = sources.find("01")
    failing = hints_of_stubs("01")
    assert (failing.number, failing.unit) == (0, "FunctionNode.apply")
    question, place, formula, *_ = hints.ladder(step, failing, "01")
    assert "references" in question and "self.inputs" in formula
    assert "core/function_node.py" in place and "exponential" not in place
    apply = ("core/function_node.py", "FunctionNode.apply")
    other = hints_of_stubs("01", apply)
    assert (other.number, other.unit) == (0, "negative")
    assert next(hints.ladder(step, other, "01")).startswith("One object")
    assert other.key != failing.key  # a new place begins with the question
    third = hints_of_stubs("01", apply, ("functions/arithmetic.py", "negative"))
    assert third.unit == "Negative.forward"
    assert "forward" in next(hints.ladder(step, third, "01"))


def test_the_lessons_of_earlier_steps_have_a_hint() -> None:
    words = hints.words_of(sources.find("05"))
    assert words[-1] == lessons.HINTS["check_earlier_lessons"]
    assert len(words) == 9


def test_a_none_is_no_array() -> None:
    """An array in place of None was an error of the check, not of the learner."""
    with pytest.raises(CheckFailed) as failure:
        expect_equal("x.grad", np.ones(2), None, "look")
    assert failure.value.expected == "None"

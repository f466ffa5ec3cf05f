"""``check --self-test``: the planted bugs, the page of the shares, and a small sample."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from checkout import of_a_checkout

from tinynode.commands.command_line import CommandError
from tinynode_course import command, mynode, self_test, sources

PAGE = Path(__file__).resolve().parents[2] / "docs" / "course-checks.md"
ROW = re.compile(r"^\| Step (\d\d) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)


@of_a_checkout
def test_the_page_has_the_planted_bugs_of_all_exercises() -> None:
    """If not: ``python -m tinynode.learn check --self-test --page > docs/course-checks.md``."""
    rows = {key: (int(bugs), int(blind)) for key, bugs, blind, _ in ROW.findall(PAGE.read_text())}
    found = {}
    for step in self_test.exercises():
        bugs, blind = self_test.read(step)
        found[step.key] = (len(bugs), blind)
    assert rows == found


@of_a_checkout
def test_there_are_200_bugs_in_12_exercises_at_least_10_in_each() -> None:
    numbers = [len(self_test.read(step)[0]) for step in self_test.exercises()]
    assert len(numbers) >= 12
    assert min(numbers) >= 10
    assert sum(numbers) >= 200


@of_a_checkout
@pytest.mark.slow
def test_each_bug_is_another_program_with_words_of_its_own() -> None:
    for step in self_test.exercises():
        reference = mynode.reference(step.key)
        bugs, blind = self_test.read(step)
        assert 0 <= blind <= len(bugs)
        assert len({bug.misconception for bug in bugs}) == len(bugs)
        for bug in bugs:
            text = reference[bug.file]
            assert bug.old in text and bug.old != bug.new, bug.misconception
            ast.parse(text.replace(bug.old, bug.new))


@pytest.mark.slow
def test_a_refused_bug_and_a_text_that_changes_nothing() -> None:
    step = sources.find("05")
    lost = self_test.Bug("the last wins", "core/backprop.py", "x.grad + gx", "gx")
    same = self_test.Bug("the other order", "core/backprop.py", "x.grad + gx", "gx + x.grad")
    assert self_test.judge(step, lost, 30.0) == self_test.Verdict(True, True)
    assert self_test.judge(step, same, 30.0) == self_test.Verdict(False, False)


def test_a_changed_method_is_planted_and_not_its_class() -> None:
    right = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n\n\ndef g(): ...\n"
    assert self_test.planted_units(right, right.replace("return 1", "return 2")) == {"A.f"}
    assert self_test.planted_units(right, right.replace("x = 1", "x = 2")) == {"A"}
    assert self_test.planted_units(right, right.replace("def g(): ...", "")) == {"g"}


@of_a_checkout
def test_an_exercise_without_planted_bugs_is_refused() -> None:
    with pytest.raises(CommandError, match="step 00 has no planted bugs; these have: 01"):
        self_test.read(sources.find("00"))


def test_check_without_a_step_names_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["check"]) != 0
    said = capsys.readouterr().err
    assert "name one step, as in: " in said and "-m tinynode.learn check 07; or: " in said

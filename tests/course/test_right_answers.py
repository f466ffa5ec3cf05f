"""Right answers of another form than the solution: the checks and the drills accept them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import IS_CHECKOUT, of_a_checkout
from forked_examiner import events_of
from judging import plan

from tinynode_course import mynode, self_test
from tinynode_course.judge import plans

PAGE = Path(__file__).resolve().parents[2] / "docs" / "course-checks.md"
ANSWERS = self_test.answers() if IS_CHECKOUT else []
pytestmark = of_a_checkout
OFTEN = 12
"""Each twelfth answer is tested in the slow tests, all of them in the long ones."""


def test_there_are_40_right_answers_of_15_exercises() -> None:
    assert len({(one.step.key, one.form) for one in ANSWERS}) == len(ANSWERS) >= 40
    assert len({one.step.key for one in ANSWERS}) >= 15


def test_the_page_has_their_number() -> None:
    """If not: ``python -m tinynode.learn check --self-test --page > docs/course-checks.md``."""
    (words,) = self_test.accepted(ANSWERS, [])
    assert words in PAGE.read_text(encoding="utf-8").splitlines()


def test_each_answer_is_another_program() -> None:
    for one in ANSWERS:
        files, same = one.files(), self_test.Answer(one.step, one.form, ()).files()
        assert files != same, one.form
        for text in files.values():
            ast.parse(text)


def test_an_edit_of_a_missing_text_is_refused() -> None:
    wrong = self_test.Answer(ANSWERS[0].step, "none", (("core/variable.py", "no such text", "x"),))
    with pytest.raises(ValueError, match="does not have 'no such text'"):
        wrong.files()


@pytest.mark.slow
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, marks=[pytest.mark.long] if number % OFTEN else [], id=one.form)
        for number, one in enumerate(ANSWERS)
    ],
)
def test_it_passes(one: self_test.Answer, tmp_path: Path) -> None:
    files = one.files()
    mynode.write_files(files, tmp_path)
    kinds = [event["event"] for event in events_of(one.step, tmp_path / one.step.work)]
    assert "failed" not in kinds and kinds[-1] == "end"
    judged = plan(one.step.name)
    engine = {} if one.step.builds else plans.reference(one.step)
    found = plans.run(judged, engine | files)
    assert {plans.verdict(judged, place, *got) for place, got in enumerate(found)} == {""}

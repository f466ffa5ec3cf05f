"""The model of minutes: counts words and lines, and no step is longer than an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinynode_course import command, minutes, sources
from tinynode_course.sources import Step

STEP = '''\
# %% [markdown]
# # Step 1: first
#
# {words}
#
# | a table | is no text |
# ## Predict
#
#     code in a text

# %%
"""A docstring."""
# a comment
a = 1

b = 2
'''
STUB = '''\
"""What to do."""


def f(x):
    raise NotImplementedError


def given(x):
    return x
'''
SOLUTION = '''\
"""A solution."""


def f(x):
    """What f is."""
    y = x
    # a comment
    y = x
    return x


def given(x):
    return x
'''


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    for folder in ("exercises", "solutions", "checks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "step01_first.py").write_text(STEP.format(words="word " * 150))
    (tmp_path / "exercises" / "step01.py").write_text(STUB)
    (tmp_path / "solutions" / "step01.py").write_text(SOLUTION)
    (tmp_path / "checks" / "step01.py").write_text("HINTS = {}\n")
    monkeypatch.setattr(sources, "tutorials", lambda: tmp_path)
    return Step("01", "step", "first", tmp_path / "step01_first.py")


def test_words_code_and_pauses_are_read(step: Step) -> None:
    found = minutes.of(step)
    headings = len(["Step", "first", "Predict"])
    expected = (150 + headings) / minutes.WORDS_A_MINUTE + 2 / minutes.CODE_LINES_A_MINUTE
    assert found.reading == pytest.approx(expected + minutes.PAUSE + minutes.PREDICTION)


def test_new_lines_take_longer_than_known_ones(step: Step) -> None:
    # y = x is new, then known; "return x" stands in the stub; the stub's def line is there
    assert minutes.lines_to_write(step) == (1, 2)
    written = 1 / minutes.NEW_LINES_A_MINUTE + 2 / minutes.KNOWN_LINES_A_MINUTE
    assert minutes.of(step).exercise == pytest.approx(minutes.START + written)


def test_lines_that_the_page_shows_are_copied(step: Step) -> None:
    step.path.write_text(step.path.read_text() + "\n\ndef f(x):\n    y = x\n")
    assert minutes.lines_to_write(step) == (0, 3)


def test_the_command_prints_each_step(step: Step, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["minutes"]) == 0
    assert "   01  first" in capsys.readouterr().out


@pytest.mark.slow
def test_no_step_takes_more_than_an_hour_and_the_way_to_a_gpt_less_than_15() -> None:
    found = {step.key: minutes.of(step).total for step in sources.steps()}
    assert {key for key, total in found.items() if total > 60} == set()
    to_gpt, everything = minutes.ways().values()
    assert (to_gpt[-1].key, everything[-1].key) == ("21", "26")
    assert sum(found[step.key] for step in to_gpt) < 15 * 60
    assert sum(found[step.key] for step in everything) < 18.5 * 60


@pytest.mark.slow
def test_the_table_has_the_sums_that_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["minutes"]) == 0
    printed = capsys.readouterr().out.splitlines()
    rows = minutes.table().splitlines()[2:]
    assert len(rows) == len(minutes.parts()) + len(minutes.ways())
    for row in rows:
        name, _, hours, _ = (cell.strip(" *") for cell in row.strip("|").split("|"))
        assert f"{name}: {hours} hours" in printed

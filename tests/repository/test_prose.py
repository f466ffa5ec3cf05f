"""The tool that measures prose finds long sentences and pronouns, and its check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose

LONG = "Word" + " word" * 25


def figures(path: Path) -> tuple[int, int, int]:
    found = prose.measure(list(prose.sentences_of(path)))
    return found.sentences, found.long, found.pronouns


def test_docstrings_are_measured_and_code_is_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        f'"""First sentence. {LONG}."""\n\n\n'
        "class A:\n"
        '    """A class.\n\n'
        f"        formula(it, which, {LONG})\n\n"
        "    Args:\n"
        "        x: an array.\n"
        '    """\n\n'
        "    value = 1\n"
        '    """It names nothing that one knows."""\n'
        f'    text = "{LONG} it it it"\n'
    )
    sentences, long, pronouns = figures(path)
    assert (long, pronouns) == (1, 4)
    assert sentences == 5  # two of the module, two of the class, one of the attribute


def test_a_guide_is_measured_without_its_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nIt stands. {LONG}.\n\n```python\n{LONG}  # it it\n```\n")
    _, long, pronouns = figures(page)
    assert (long, pronouns) == (1, 1)


@pytest.mark.parametrize("kind", ["docstrings", "guides"])
def test_the_check_fails_above_each_limit(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = prose.Figures(sentences=100, long=0, words=1000, pronouns=0)
    totals = dict.fromkeys(prose.LIMITS, good)
    assert prose.check(totals) == 0
    most_long, most_pronouns = prose.LIMITS[kind]
    for bad in (good._replace(long=most_long + 1), good._replace(pronouns=999)):
        assert most_pronouns < bad.share or bad.long > most_long
        assert prose.check(totals | {kind: bad}) == 1
        assert kind in capsys.readouterr().out

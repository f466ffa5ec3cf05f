"""The part of the home page about microgpt: its texts come from runs, and stand in the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from tools import microgpt_page

HOME = microgpt_page.ROOT / "docs" / "index.md"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModuleType]]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield microgpt_page.programs()
    for name in ("microgpt", "microgpt_scalars", "microgpt_compiled"):
        sys.modules.pop(name, None)


def test_the_home_page_has_a_place_for_each_text() -> None:
    page = HOME.read_text(encoding="utf-8")
    texts = {f"microgpt_{name}.txt": f"made {name}" for name in microgpt_page.TEXTS}
    found = microgpt_page.with_texts(page, texts)
    assert microgpt_page.MARK not in found
    assert all(found.count(text) == 1 for text in texts.values())
    with pytest.raises(KeyError):
        microgpt_page.with_texts(page, {})


def test_the_program_and_the_buttons_are_those_of_today() -> None:
    assert microgpt_page.PROGRAM.read_text(encoding="utf-8") in microgpt_page.program()
    links = re.findall(r'href="([^"]+)"', microgpt_page.button())
    assert {"microgpt_step.html", "microgpt_letter.html"} <= set(links)
    has_page = (HOME.parent / "play.md").exists()
    assert any(link.startswith("play/#tn1.") for link in links) == has_page


def test_counted_pairs_are_better_than_a_guess(programs: list[ModuleType]) -> None:
    arrays = programs[0]
    assert 1.0 < microgpt_page.loss_of_pairs(arrays) < np.log(len(arrays.letters))


@pytest.mark.slow
def test_the_films_and_the_table_are_made(
    programs: list[ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats = {"microgpt": 3, "microgpt_compiled": 3, "microgpt_scalars": 1}
    monkeypatch.setattr(microgpt_page, "REPEATS", repeats)
    arrays, scalars, _ = programs
    weights = arrays.new_weights()
    step = microgpt_page.film_of_step(arrays, weights)
    assert "Adam" in step and len(step) < 1_500_000
    letter = microgpt_page.film_of_letter(arrays, scalars, weights)
    assert '"title":"head, 1 of 2 equal parts"' in letter and len(letter) < 1_500_000
    table = microgpt_page.table(*programs)
    counts = [int(n.replace(",", "")) for n in re.findall(r"<td>([\d,]+)</td>", table)]
    assert counts[0] < 100 < 10_000 < counts[1] and counts[2] == 1
    assert len(re.findall(r"<td>[\d.]+ m?s</td>", table)) == 3
    assert "pairs of letters" in microgpt_page.curve(arrays, [3.0, 2.0])

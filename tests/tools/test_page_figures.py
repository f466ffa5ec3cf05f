"""Figures in pages that a constant or a count of the code decides.

Each row has a page, the sentence around the figure, and today's value. A change of the constant
fails until the page has the new figure. Measured times and ratios are not here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repository.test_step_budget import CALLS_OF_PRODUCT
from tinynode import collector
from tinynode.distributed import requests
from tinynode.doctor import thresholds
from tinynode.nn import data_files
from tinynode.show import program_link
from tinynode.show.films import nodes, recorder, values
from tinynode.show.graphs import repeats
from tinynode.show.plots import variable_html
from tinynode.transforms import implicit, jacobians
from tinynode_course import mynode
from tinynode_course.judge import one
from tools.mutation import choice, plan

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"([\d,.]+|\w+)"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def programs(pattern: str) -> int:
    """The number of the course's programs of a name."""
    return len(list((ROOT / "tutorials").glob(pattern)))


def lines_of_engine() -> int:
    """The lines of step 13's engine that the page compares with ``tinynode/core``."""
    files = mynode.reference("13")
    counted = [
        len(text.splitlines())
        for path, text in files.items()
        if path.startswith("core/") or path in ("configuration.py", "functions/arithmetic.py")
    ]
    return sum(counted)


FIGURES = [
    ("README.md", "Start from one of # programs", programs("examples/start_*.py")),
    ("docs/data.md", "of at most # million pixels", data_files._MOST_PIXELS / 1e6),
    ("docs/diagnose.md", "more than # % of the units", 100 * thresholds.DEAD_SHARE),
    ("docs/diagnose.md", "more than # % of the elements", 100 * thresholds.SATURATED_SHARE),
    ("docs/diagnose.md", "less than # % of the largest slope", 100 * thresholds.SATURATED_SLOPE),
    ("docs/distributed.md", "a line after # s, and", requests.NOTICE_SECONDS),
    ("docs/distributed.md", "`RankError` after # s", requests.TIMEOUT_SECONDS),
    ("docs/films.md", "A film ends after # steps", recorder.MAX_STEPS),
    ("docs/films.md", "A picture shows at most # steps", nodes.MAX_PICTURE),
    ("docs/films.md", "A film keeps arrays of at most # elements", values.CELLS),
    ("docs/films.md", "in all at most # elements", values.KEPT_CELLS),
    ("docs/films.md", "Arrays of at most # elements, such as", values.ALWAYS),
    ("docs/films.md", "has at most # characters, about", program_link.MOST_LINK),
    ("docs/implicit.md", "A solver of more than # operators", implicit.LARGEST_SOLVER),
    ("docs/in-your-browser.md", "# characters after the", program_link.MOST_LINK),
    ("docs/in-your-browser.md", "# bytes of program", program_link.MOST_TEXT),
    ("docs/in-your-browser.md", "# characters of title", program_link.MOST_TITLE),
    ("docs/index.md", "steps through `x * y` in at most # calls", CALLS_OF_PRODUCT),
    ("docs/mutation.md", "Of an operator with more than # mutants", plan.PER_OPERATOR),
    ("docs/mutation.md", "The chosen tests take at most # seconds", choice.SECONDS),
    ("docs/performance.md", "raises the first threshold to #", collector.THRESHOLD),
    ("docs/pictures.md", "A leaf with uses more than # layers apart", repeats._FAR),
    ("docs/pictures.md", "At most # numbers", variable_html._MOST_NUMBERS),
    ("docs/pictures.md", "in at most # columns", variable_html._MOST_COLUMNS),
    ("docs/play.md", "has at most # characters", program_link.MOST_LINK),
    ("docs/play.md", "the program at most # bytes", program_link.MOST_TEXT),
    ("docs/read-the-core.md", "`functions/arithmetic.py` have # lines", lines_of_engine()),
    ("docs/teaching.md", "The course has # steps", programs("step*.py")),
    ("docs/teaching.md", "steps, electives and # capstones", programs("capstone*.py")),
    ("docs/teaching.md", "an exercise, # s in all", one.TOTAL_SECONDS),
    ("docs/vmap.md", "up to # backward passes", jacobians.AT_ONCE),
]
"""Page, sentence with ``#`` in place of the figure, and the value of today."""


def figures(text: str, sentence: str) -> list[float]:
    """The figures at the places of a sentence in a text; lines may break anywhere."""
    before, after = (re.escape(part).replace(r"\ ", r"\s+") for part in sentence.split("#"))
    found = re.findall(before + NUMBER + after, text)
    return [number(word) for word in found]


def number(word: str) -> float:
    if word in WORDS:
        return WORDS.index(word)
    return float(word.rstrip(".,").replace(",", ""))


@pytest.mark.parametrize(("page", "sentence", "value"), FIGURES)
def test_a_page_has_the_figure_of_the_code(page: str, sentence: str, value: float) -> None:
    """No figure found: the page has other words now, so change the row above."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures(text, sentence) == [pytest.approx(value)]


def test_figures_are_found_over_line_ends_and_in_words() -> None:
    assert figures("It ends after 30,000\nsteps. It ends.", "ends after # steps") == [30_000]
    assert figures("one of ten programs", "one of # programs") == [10]
    assert figures("a threshold to 10,000.", "threshold to #") == [10_000]
    assert figures("It ends after a while.", "ends after # steps") == []

"""The page of figures is made from the files of the versions, and reads what pages say."""

from __future__ import annotations

import tinynode
from tools import version_figures


def test_the_page_is_that_of_the_files() -> None:
    versions = version_figures.all_versions()
    assert tinynode.__version__ in versions
    assert version_figures.PAGE.read_text(encoding="utf-8") == version_figures.page(versions)


def test_the_newest_version_stands_first_and_a_lacking_figure_is_a_dash() -> None:
    text = version_figures.page({"0.9.0": {"A": {"x": "1"}}, "0.10.0": {"A": {"y": "2"}}})
    assert "| | 0.10.0 | 0.9.0 |" in text
    assert "| y | 2 | - |" in text and "| x | - | 1 |" in text


def test_functions_within_the_limit_are_counted() -> None:
    text = "# Accuracy\n\n## float32\n\n| function | tinynode | JAX |\n|---|---|---|\n"
    text += "| exp | 0.5 / 9.0 | 7.0 |\n| special.k0 | 7.0 | - |\n| log | 4.1 | inf |\n"
    assert version_figures.of_accuracy(text) == {
        "float32: functions of tinynode with values within the limit": "2 of 3",
        "float32: functions of JAX with values within the limit": "0 of 2",
    }


def test_planted_bugs_and_right_answers_are_added_up() -> None:
    text = "| Exercise | Bugs |\n|---|---:|\n| Step 01 | 20 | 18 | 19 | 95 % |\n"
    text += (
        "| Step 02 | 10 | 8 | 10 | 100 % |\n**Right answers of x**: 7 in 3. The checks accept 6."
    )
    assert version_figures.of_checks(text) == {
        "planted bugs that the course's checks refuse": "29 of 30",
        "right answers of unusual forms that pass": "6 of 7",
    }


def test_workloads_are_least_times_over_pytorch() -> None:
    times = {"torch": {"cpu": [2.0, 3.0]}, "compiled": {"cpu": [1.5, 1.0]}}
    measured = {"threads": {"1": {"workloads": {"W1": times, "W9": {"fast": {"cpu": [1.0]}}}}}}
    found = version_figures.of_workloads(measured)
    assert found == {"W1, 1 thread, over PyTorch": "compiled 0.50"}

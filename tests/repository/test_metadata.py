"""The distributions: one version, one licence, and two dependencies of the framework."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from checkout import IS_CHECKOUT

import tinynode

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    "tinynode": ROOT,
    "tinynode-course": ROOT / "tutorials",
    "tinynode-course-solutions": ROOT / "course_solutions",
}
"""The names of the distributions, and the folders that they are built from."""


def project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def test_tests_of_a_checkout_run_in_a_checkout() -> None:
    assert IS_CHECKOUT


@pytest.mark.parametrize("name", PROJECTS)
def test_a_distribution_has_the_version_and_the_licence(name: str) -> None:
    folder = PROJECTS[name]
    data = project(folder)
    assert data["name"] == name
    assert data["version"] == tinynode.__version__
    assert data["license"] == "MIT"
    assert data["requires-python"] == project(ROOT)["requires-python"]
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_framework_needs_two_distributions() -> None:
    names = [text.partition(">")[0] for text in project(ROOT)["dependencies"]]
    assert names == ["numpy", "array-api-compat"]


def test_a_distribution_needs_the_one_below_in_the_same_version() -> None:
    version = tinynode.__version__
    assert project(PROJECTS["tinynode-course"])["dependencies"] == [f"tinynode=={version}"]
    teachers = project(PROJECTS["tinynode-course-solutions"])
    assert teachers["dependencies"] == [f"tinynode-course=={version}"]


def test_the_citation_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tinynode.__version__}\n" in text

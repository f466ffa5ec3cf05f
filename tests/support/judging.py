"""Helpers of the tests of the judge: plans once for all, and submissions in a line."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from tinynode_course import grading, hunts, mynode, sources
from tinynode_course.judge import hunting, one, plans, process, submission
from tinynode_course.judge.shelf import Shelf
from tinynode_course.mynode import Files

ROOT = Path(__file__).resolve().parents[2]
HUNTS = ROOT / "course_solutions" / "tinynode_course_solutions" / "hunts"
KEY = "the key of the tests"
SINGLE = "forward_mode"
"""An exercise in a file of its own, on tinynode, with one drill."""

process.adopt_orphans()


@functools.cache
def shelf() -> Shelf:
    """Libraries for all tests of a process."""
    folder = tempfile.TemporaryDirectory(prefix="tinynode-shelf-")
    _FOLDERS.append(folder)
    return Shelf(Path(folder.name))


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # removed at the end of the process


@functools.cache
def plan(name: str, key: str = KEY) -> plans.StepPlan:
    """The plan of a step, by the name of its files."""
    return plans.plan(step_of(name), key, shelf())


def step_of(name: str) -> sources.Step:
    """A step by the name of its files, such as "step05"."""
    return next(step for step in sources.steps() if step.name == name)


def solution(name: str) -> Files:
    """A perfect submission of a step."""
    return plans.reference(step_of(name))


def write(files: Files, folder: Path) -> Path:
    """Write a submission."""
    mynode.write_files(files, folder)
    return folder


def reasons(name: str, folder: Path) -> list[str]:
    """Why the drills of a step are not passed; "" for each passed drill."""
    step = step_of(name)
    student = submission.read(folder, grading.with_exercise())
    result = one.Judge(student).step(step, plan(name))
    return ["".join(check["text"]) for check in result["checks"]]


@functools.cache
def hunt_plan(name: str) -> hunting.HuntPlan:
    """The plan of a hunt."""
    hunt = hunts.of(step_of(name))
    assert hunt is not None
    return hunting.plan(hunt, KEY, shelf())


def hunted(name: str, tests: str, folder: Path) -> dict[str, Any]:
    """The score of tests in a hunt."""
    step = hunt_plan(name)
    (folder / step.work).write_text(tests)
    return hunting.score(step, folder, process.ChildLimits(5.0, 60.0))

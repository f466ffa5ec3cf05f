"""Bug hunts: a learner's tests on right and wrong engines, in a child.

Requirement: the tests can't know the wrong engines. The key draws the planted bugs, their
order and the form of each engine. A failure on a right engine, in any form, makes the hunt
worthless, as in ``learn hunt``.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tinynode_course import hunter, hunts, sources
from tinynode_course.judge import keys, process
from tinynode_course.judge.rewriting import rewritten
from tinynode_course.judge.shelf import PRELOAD, Shelf
from tinynode_course.mynode import Files

MOST_BUGS = 12
"""The planted bugs of a class."""

RIGHT = 3
"""The engines without a bug."""


@dataclass
class HuntPlan:
    """How to judge a hunt: engines in the order of the runs; a right engine has the bug ""."""

    key: str
    work: str
    name: str
    libraries: list[str]
    preload: list[str]
    engines: list[Files]
    bugs: list[str]

    def as_json(self) -> dict[str, Any]:
        """The plan for a worker."""
        return asdict(self)


def plan(hunt: hunts.Hunt, key: str, shelf: Shelf) -> HuntPlan:
    """The plan of a hunt, drawn from a key."""
    module = sources.load(hunt.path, f"tinynode_hunt_{hunt.path.stem}")
    rng = keys.generator(key, hunt.step.name, "hunt")
    numbers = [int(n) + 1 for n in rng.permutation(len(module.BUGS))[:MOST_BUGS]] + [0] * RIGHT
    order = [numbers[int(place)] for place in rng.permutation(len(numbers))]
    engines = []
    for number in order:
        files = hunter.version(module, number)
        engines.append({path: rewritten(text, rng) for path, text in files.items()})
    kind = "numpy" if "__init__.py" in module.ENGINE else "tinynode"
    return HuntPlan(
        key=hunt.step.key,
        work=hunt.work,
        name=hunter.name_of(module.ENGINE),
        libraries=shelf.libraries(kind),
        preload=PRELOAD[kind],
        engines=engines,
        bugs=[module.BUGS[number - 1][0] if number else "" for number in order],
    )


def score(one: HuntPlan, folder: Path, limits: process.ChildLimits) -> dict[str, Any]:
    """The result of a hunt, as in ``check --json``: caught bugs, and broken tests.

    Args:
        one: The plan.
        folder: The folder with the learner's tests.
        limits: The limits of a child. An engine may end the child; another child goes on.
    """
    failed: dict[int, str] = {}
    number = 0
    end = time.monotonic() + limits.total
    while number < len(one.engines):
        if time.monotonic() > end:
            of = sum(map(bool, one.bugs))
            return {"caught": 0, "of": of, "broken": ["the time of the hunt is over"]}
        number = _run_from(one, folder, limits, number, failed)
    rights = [reason for place, reason in failed.items() if not one.bugs[place] and reason]
    caught = [place for place, reason in failed.items() if one.bugs[place] and reason]
    of = sum(bool(bug) for bug in one.bugs)
    return {"caught": 0 if rights else len(caught), "of": of, "broken": rights[:1]}


def _run_from(
    one: HuntPlan, folder: Path, limits: process.ChildLimits, first: int, failed: dict[int, str]
) -> int:
    """Run the tests from an engine on; returns the number of the next engine."""
    hunt = {"name": one.name, "tests": one.work.removesuffix(".py")}
    job = {"libraries": one.libraries, "preload": one.preload, "work": str(folder)}
    left = list(enumerate(one.engines))[first:]
    number = first
    try:
        for event in process.events({**job, "hunt": {**hunt, "engines": left}}, limits):
            if event.get("event") == "tested":
                if event.get("number") != number or number >= len(one.engines):
                    raise process.Stopped("the tests write results of their own")
                has_tests = type(event.get("tests")) is int and event["tests"] > 0
                failed[number] = str(event.get("failed") or "")[:300] if has_tests else ""
                if not has_tests and event.get("failed"):
                    failed[number] = str(event["failed"])[:300]
                number += 1
    except process.Stopped as stopped:
        failed[min(number, len(one.engines) - 1)] = str(stopped)
        return number + 1
    return max(number, first + 1)

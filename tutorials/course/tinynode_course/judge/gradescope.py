"""The results of a submission as ``results.json`` of Gradescope.

Requirement: an autograder of Gradescope shows a point for each check, and shows students no
expected value of the class. So the texts of failed drills are for instructors only, by default.

Source: Gradescope, Autograder Specifications: ``tests`` with score, max_score, name, output,
status and visibility.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

HUNT_POINTS = 5.0
"""The points of a bug hunt."""


def results(content: dict[str, Any], shows_values: bool = False) -> str:
    """The text of ``results.json``.

    Args:
        content: a result of ``class judge`` or of ``check all --json``.
        shows_values: True if students read the texts of failed checks at once.
    """
    tests = [test for one in content["steps"] for test in _tests(one, shows_values)]
    document: dict[str, Any] = {
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": round(content.get("seconds", 0.0)),
        "output": "\n".join(content.get("remarks", [])),
        "tests": tests,
    }
    if not tests:
        document |= {"score": 0.0, "output": "No exercise of the course is in this submission."}
    return json.dumps(document, indent=1) + "\n"


def _tests(one: dict[str, Any], shows_values: bool) -> Iterator[dict[str, Any]]:
    """A test for each check of an exercise, and for its bug hunt."""
    if one["stopped"] is not None and not one["checks"]:
        yield _test(one, "the checks ran", 0.0, 1.0, one["stopped"]["text"], True)
    for number, check in enumerate(one["checks"], 1):
        name = check.get("title", f"check {number}")
        yield _test(one, name, float(check["passed"]), 1.0, check.get("text", []), shows_values)
    if one["hunt"] is not None:
        caught, of = one["hunt"]["caught"], one["hunt"]["of"]
        score = round(HUNT_POINTS * caught / of, 2) if of else 0.0
        said = [f"{caught} of {of} planted bugs are caught."]
        yield _test(one, "bug hunt", score, HUNT_POINTS, said, True)


def _test(
    one: dict[str, Any], name: str, score: float, most: float, lines: list[str], is_shown: bool
) -> dict[str, Any]:
    is_passed = score >= most
    found: dict[str, Any] = {
        "name": f"{one['title']}: {name}",
        "score": score,
        "max_score": most,
        "status": "passed" if is_passed else "failed",
        "visibility": "visible",
    }
    said = "\n".join(lines)
    if is_shown:
        return found | {"output": said}
    hint = "" if is_passed else f"Run the checks of the course: learn check {one['step']}"
    return found | {"output": hint, "extra_data": {"for instructors": said}}

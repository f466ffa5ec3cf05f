"""The hints about a failing check: a question, the place, the formula, a puzzle, the lines.

Requirement: a hint is about what fails now, and gives as little as possible. So the checks run
first. The first failing check has a question without code, and a formula, in ``HINTS`` of the
file of checks. A check can fail at a function beside the check's subject. ``PLACES`` has words by
check and function:

    PLACES = {("check_values", "FunctionNode.apply"): Hint("Which references ...?", "...")}

The place is found in the learner's files. The puzzle and the lines are those of
the reference at this place.

Source: Wood, Bruner and Ross, The role of tutoring in problem solving, 1976: the least help first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinynode_course import checking, examiner, lessons, places, puzzle
from tinynode_course.checks import Hint
from tinynode_course.places import Spot
from tinynode_course.sources import Step

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
"""The errors of a file that Python cannot read: a hint on a check would not help."""


@dataclass(frozen=True)
class Failing:
    """A failing check: its number, its title, and the places in the learner's files.

    ``unit`` is the function to write or to mend, such as "Square.forward"; "" if nobody knows.
    ``unreadable`` has the failure in words if a file is no Python: no check has run then.
    """

    number: int
    title: str
    places: tuple[Spot, ...]
    unit: str = ""
    unreadable: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The failure in the learner's progress: another place begins with the question again."""
        where = [f"{one.path} {one.name}" for one in self.near[:1]]
        return " ".join([str(self.number), *where])

    @property
    def near(self) -> tuple[Spot, ...]:
        """The place of ``unit``; without a place of this name, all places."""
        return tuple(one for one in self.places if one.name == self.unit) or self.places


def words_of(step: Step) -> list[Hint]:
    """The question and the formula for each check of an exercise, in the order of the checks."""
    module = step.check_module()
    known = {**getattr(module, "HINTS", {}), **lessons.HINTS}
    found = []
    for check in examiner.checks_of(module, step.builds):
        title = examiner.title_of(check)
        found.append(
            known.get(check.__name__, Hint(f"What must hold for this check: {title}?", ""))
        )
    return found


def words_of_places(step: Step) -> dict[tuple[int, str], Hint]:
    """The question and the formula for functions beside the subject of a check.

    The key is the number of the failing check, and the name of the function.
    """
    known: dict[tuple[str, str], Hint] = getattr(step.check_module(), "PLACES", {})
    names = [check.__name__ for check in _checks(step)]
    return {(names.index(check), unit): one for (check, unit), one in known.items()}


def failing(step: Step, stage: str, seconds: float) -> Failing | None:
    """The first failing check of the work in the current folder; None if all checks pass.

    Without any work, the first check.
    """
    titles = [examiner.title_of(one) for one in _checks(step)]
    work = Path(step.work)
    if not work.is_file():
        return Failing(0, titles[0], ())
    event = first_failure(step, work.absolute(), seconds)
    if event is None:
        return None
    number = event.setdefault("check", 0)
    if str(event.get("message", "")).startswith(NO_PYTHON):
        said = tuple(checking.in_words(event, step.work))
        return Failing(number, titles[number], (), unreadable=said)
    found = places.places_of(event, step, work.absolute(), stage)
    sure = [one.name for one in found if one.is_sure]
    return Failing(number, titles[number], tuple(found), event.get("unit", "".join(sure)))


def _checks(step: Step) -> list[Any]:
    return list(examiner.checks_of(step.check_module(), step.builds))


def first_failure(step: Step, work: Path, seconds: float) -> dict[str, Any] | None:
    """The event of the first failure, with the number of the running check."""
    running = 0
    with contextlib.closing(checking.events(step, work, seconds)) as events:
        for event in events:
            if event["event"] == "begin":
                running = event["check"]
            if event["event"] in checking.FAILURES:
                return {"check": running, **event}
    return None


def ladder(step: Step, failing: Failing, stage: str) -> Iterator[str]:
    """The hints about a failing check, the least help first."""
    subject = words_of(step)[failing.number]
    words = words_of_places(step).get((failing.number, failing.unit), subject)
    yield words.question
    if failing.places:
        yield _place(step, failing.near)
    if words.formula:
        yield f"The formula, or the rule: {words.formula}"
    groups = puzzle.groups(step, failing.places, stage)
    mixed = puzzle.puzzle(step, groups)
    if mixed:
        yield mixed
    yield puzzle.solution_lines(step, groups)


def _place(step: Step, found: tuple[Spot, ...]) -> str:
    named = "".join(f"\n    {one.words(step)}" for one in found)
    if any(one.is_sure for one in found):
        return f"Look here. With a right version of this, the check gets further:{named}"
    return f"Look here:{named}"

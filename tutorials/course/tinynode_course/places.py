"""The places in the learner's files that a failed check is about.

Requirement: a learner looks where the mistake is. An exchange of functions finds the place
(``tinynode_course.swapping``). Else the place is where the program stopped, or the operation that
the message of the check names.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import queue
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinynode_course import checking, mynode
from tinynode_course.locating import operation_lines
from tinynode_course.mynode import NAME, Files
from tinynode_course.sources import Step
from tinynode_course.swapping import ExchangeJob, unit_at, units

SECONDS = 8.0
"""The most seconds of a search; a check of a long training has no search to the end."""

ELSEWHERE = "at your code below: with another version of this place, the check gets further"
"""In place of a text that names another function than the sure place."""

_LINE = re.compile(r"(?P<path>.+?), line (?P<line>\d+): ")


@dataclass(frozen=True)
class Spot:
    """A unit of the learner's, and a line of the unit.

    Attributes:
        path: the file, relative to the package.
        name: the unit, such as "Square.backward".
        line: the number of the line; 0 for a unit that the file does not have.
        source: the text of the line.
        is_sure: True if the check gets further with the reference's unit in this place.
    """

    path: str
    name: str
    line: int
    source: str = ""
    is_sure: bool = False

    def words(self, step: Step) -> str:
        """The place for a message."""
        file = f"{NAME}/{self.path}" if step.builds else self.path
        if not self.line:
            return f"{file}: {self.name} is missing"
        owner, _, method = self.name.rpartition(".")
        inside = f", in {owner}" if owner and f" {method}(" in self.source else ""
        return f"{file}, line {self.line}{inside}: {self.source}"


def places_of(event: dict[str, Any], step: Step, work: Path, stage: str) -> list[Spot]:
    """The places of a failure.

    Args:
        event: the event of the examiner, with the number of the check.
        step: the exercise.
        work: the learner's file.
        stage: the last step that the learner's package has parts of.
    """
    mine = files_of(step, work)
    if event.get("kind") in ("wrong", "error") and type(event.get("check")) is int:
        found = exchanged_unit(step, event["check"], mine, stage, work)
        if found is not None:
            return [found]
    return _of_lines(event.get("lines", []), mine, step)


def with_sure_place(event: dict[str, Any], step: Step, work: Path, stage: str) -> dict[str, Any]:
    """The event of a failure with the sure place, if there is one, before other lines."""
    sure = [one for one in places_of(event, step, work, stage) if one.is_sure]
    if not sure:
        return event
    mine = files_of(step, work)
    lines = event.get("lines", []) if event["kind"] == "error" else []
    around = {(one.path, one.name) for one in _of_lines(lines, mine, step)}
    before = [one.words(step) for one in sure if (one.path, one.name) not in around]
    found = {**event, "lines": before + lines}
    if "look" in event and not _agrees(event["look"], sure[0], mine):
        found["look"] = ELSEWHERE
    return found


def _agrees(look: str, sure: Spot, mine: Files) -> bool:
    """True if a text names the sure place, its class or nothing of the learner's."""
    named = {
        unit_at(text, line)
        for text in mine.values()
        for line in operation_lines(f". {look}", ast.parse(text))
    }
    return not named or not named.isdisjoint({sure.name, sure.name.partition(".")[0]})


def _of_lines(lines: list[str], mine: Files, step: Step) -> list[Spot]:
    """The units around lines such as "mynode/core/variable.py, line 7: class Variable:"."""
    found: dict[tuple[str, str], Spot] = {}
    for text in lines:
        match = _LINE.match(text)
        if match is None:
            continue
        path, line = match["path"], int(match["line"])
        path = path.removeprefix(f"{NAME}/") if step.builds else path
        with contextlib.suppress(SyntaxError):
            name = unit_at(mine.get(path, ""), line)
            if name:
                source = text[match.end() :]
                found.setdefault((path, name), Spot(path, name, line, source))
    return list(found.values())


def exchanged_unit(step: Step, number: int, mine: Files, stage: str, work: Path) -> Spot | None:
    """The unit that an exchange finds; None without one, and at the end of the time."""
    reference = reference_of(step, stage)
    new = [
        [path, name]
        for path in (mynode.changed(step.key) if step.builds else ())
        for name in mynode.new_definitions(step.key, path)
    ]
    name = NAME if step.builds else step.name
    job = ExchangeJob(str(step.check), number, name, mine, reference, new)
    with tempfile.TemporaryDirectory(prefix="tinynode-exchange-") as folder:
        path = Path(folder, "job.json")
        path.write_text(json.dumps(dataclasses.asdict(job)), encoding="utf-8")
        answer = _answer(path)
    if answer is None:
        return None
    text = mine.get(answer[0], "")
    here = units(text).get(answer[1])
    line = here.line if here else 0
    source = text.splitlines()[line - 1].strip() if line else ""
    return Spot(answer[0], answer[1], line, source, is_sure=True)


def _answer(job: Path) -> tuple[str, str] | None:
    """The line of the search, or None."""
    end = time.monotonic() + SECONDS
    with checking.program("swapping", [str(job)], job.parent) as (_, lines):
        try:
            found = json.loads(lines.get(timeout=max(0.0, end - time.monotonic())) or "null")
        except (queue.Empty, ValueError):
            return None
    is_pair = isinstance(found, list) and len(found) == 2
    return (str(found[0]), str(found[1])) if is_pair else None


def reference_of(step: Step, stage: str) -> Files:
    """The reference's files for a learner whose package is as far as a stage."""
    if not step.builds:
        return {step.work: step.solution.read_text(encoding="utf-8")}
    if step.kind == "step":
        return mynode.reference(max(stage, step.key))
    needed = mynode.earlier(step)[-1].key
    return mynode.reference(max(stage, needed)) | mynode.changed(step.key)


def files_of(step: Step, work: Path) -> Files:
    """The learner's files; a file that is no Python is left out."""
    found = {}
    paths = sorted(work.parent.rglob("*.py")) if step.builds else [work]
    for path in paths:
        with contextlib.suppress(SyntaxError, ValueError, OSError):
            text = path.read_text(encoding="utf-8")
            ast.parse(text)
            found[path.relative_to(work.parent).as_posix()] = text
    return found

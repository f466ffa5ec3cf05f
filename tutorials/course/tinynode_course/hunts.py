"""The command ``hunt``: the learner writes tests, and planted bugs score them.

Requirement: a learner finds out the worth of a test. So the tests must pass on the right engine
first. Then copies of the engine follow, each with a planted bug. The score is the
number of bugs with a failed test. A living bug is described, without the line.

The bugs are data:

    tutorials/hunts/step06.py            ENGINE, a dictionary of files, and BUGS: (what, path,
                                         old text, new text); the old text occurs once
    tutorials/hunts/engines/step14.py    the right engine of a hunt without mynode
    tutorials/hunts/stubs/step06.py      the learner's first version of ``hunt06.py``
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import sources
from tinynode_course.checking import Lines, environment, program
from tinynode_course.mynode import Files
from tinynode_course.progress import PROGRAM, open_progress, write_file
from tinynode_course.sources import Step

SUMMARY = "write tests, and see how many planted bugs they catch"

SECONDS = 20.0
"""The time limit of the tests on the right engine."""

LEAST_SECONDS = 2.0
"""The least time limit of the tests on an engine with a bug."""

FACTOR = 5.0
"""The time limit on an engine with a bug, in units of the time on the right engine."""


@dataclass(frozen=True)
class Hunt:
    """A bug hunt: the file of bugs and the stub of the learner's tests."""

    step: Step
    path: Path
    stub: Path

    @property
    def work(self) -> str:
        """The name of the learner's tests: ``hunt06.py``, ``hunt_compile.py``."""
        return f"hunt{'' if self.step.kind == 'step' else '_'}{self.step.key}.py"


def engine(file: str) -> Files:
    """The engine beside a file of bugs, ``engine(__file__)``: a module of its own."""
    path = Path(file)
    text = (path.parent / "engines" / path.name).read_text(encoding="utf-8")
    return {f"engine_{path.stem}.py": text}


def of(step: Step) -> Hunt | None:
    """The bug hunt of a step, or None."""
    folder = step.path.parent / "hunts"
    path = folder / f"{step.name}.py"
    return Hunt(step, path, folder / "stubs" / path.name) if path.exists() else None


def hunts() -> list[Hunt]:
    """The bug hunts of the course, in the order of the steps."""
    return [hunt for hunt in map(of, sources.steps()) if hunt is not None]


def find(text: str) -> Hunt:
    """The bug hunt of a step.

    Raises:
        CommandError: The step has no hunt; the message lists the steps with a hunt.
    """
    step = sources.find(text)
    hunt = of(step)
    if hunt is None:
        keys = " ".join(one.step.key for one in hunts())
        raise CommandError(f"step {step.key} has no bug hunt; steps with one are: {keys}")
    return hunt


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("step", metavar="STEP", help="such as 06, or compile")


def run(options: argparse.Namespace) -> int:
    """Write the stub; or score the tests; 0 if all bugs are caught."""
    hunt = find(options.step)
    work = Path(hunt.work)
    command = f"{PROGRAM} hunt {hunt.step.key}"
    if not work.exists():
        write_file(work, hunt.stub.read_text(encoding="utf-8"))
        print(f"wrote {work}: its top says what the engine promises. Write tests, then")
        print(f"  {command}")
        return 0
    print(f"{hunt.step.title}: {work}")
    result = score(hunt, work.absolute())
    for line in in_words(result, hunt):
        print(line)
    if result.counts:
        _note(hunt, result)
    return 0 if result.counts and result.lives is None else 1


def _note(hunt: Hunt, result: Score) -> None:
    """Keep the best score."""
    progress = open_progress()
    facts = progress.of(hunt.step.key).get("hunt")
    best, runs = (
        (facts.get("caught", 0), facts.get("runs", 0)) if isinstance(facts, dict) else (0, 0)
    )
    caught = max(best, len(result.caught))
    progress.note(hunt.step.key, hunt={"caught": caught, "of": len(result.bugs), "runs": runs + 1})


@dataclass
class Score:
    """The result of a hunt: ``caught`` maps the number of a bug to the first failing test.

    ``broken`` has the tests that fail on the right engine; the score then counts nothing.
    """

    bugs: tuple[tuple[str, str, str, str], ...]
    tests: list[str] = field(default_factory=list)
    caught: dict[int, str] = field(default_factory=dict)
    broken: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """True if there are tests, and all tests pass on the right engine."""
        return bool(self.tests) and not self.broken

    @property
    def lives(self) -> tuple[str, str, str, str] | None:
        """The first living bug."""
        alive = [bug for number, bug in enumerate(self.bugs, 1) if number not in self.caught]
        return alive[0] if alive else None


def score(hunt: Hunt, tests: Path) -> Score:
    """Run the tests on the right engine, then on each engine with a bug."""
    module = sources.load(hunt.path, f"tinynode_hunt_{hunt.path.stem}")
    result = Score(module.BUGS)
    next_version = 0
    limit = SECONDS
    while next_version <= len(result.bugs):
        for event in _events(tests, hunt, next_version, limit):
            _add(result, event)
            next_version = event["version"] + 1
            if event["version"] == 0:
                limit = max(LEAST_SECONDS, FACTOR * event["seconds"])
                if not result.counts:
                    return result
    return result


def _add(result: Score, event: dict[str, Any]) -> None:
    failed = event["failed"]
    if event["version"] == 0:
        result.tests, result.broken = event["tests"], failed
    elif failed:
        result.caught[event["version"]] = next(iter(failed))


def _events(tests: Path, hunt: Hunt, first: int, limit: float) -> Iterator[dict[str, Any]]:
    """The results of the versions from a number on; the last version may have no end."""
    arguments = [str(tests), str(hunt.path), str(first)]
    settings = {**environment(), "OPENBLAS_NUM_THREADS": "1"}
    with program("hunter", arguments, tests.parent, env=settings, stderr=subprocess.DEVNULL) as (
        _,
        lines,
    ):
        yield from _results(lines, first, limit)


def _results(lines: Lines, first: int, limit: float) -> Iterator[dict[str, Any]]:
    running = first
    wait = SECONDS  # the imports of a new process take their time
    while True:
        try:
            line = lines.get(timeout=wait)
        except queue.Empty:
            message = f"the tests took more than {wait:g} s; is there a loop that never ends?"
            yield _unfinished(running, message)
            return
        event: dict[str, Any] = json.loads(line) if line else {"event": "crash"}
        if event["event"] == "begin":
            running, wait = event["version"], limit
        elif event["event"] == "result":
            if event["version"] == 0:
                limit = max(LEAST_SECONDS, FACTOR * event["seconds"])
            yield event
            running = event["version"] + 1
        elif event["event"] == "end":
            return
        else:
            yield _unfinished(running, "Python ended while the tests ran, without a message")
            return


def _unfinished(version: int, message: str) -> dict[str, Any]:
    failed = {"": {"message": message, "lines": []}}
    return {"version": version, "tests": ["?"], "failed": failed, "seconds": 0.0}


def in_words(result: Score, hunt: Hunt) -> Iterator[str]:
    """The result as lines of text."""
    if not result.tests and not result.broken:
        yield f"{hunt.work} has no tests yet: write functions  def test_...(engine)"
    elif result.broken:
        yield "On the right engine every test must pass first."
        for name, failed in result.broken.items():
            yield f"\n{name or hunt.work} fails on the right engine:"
            yield from (f"  {line}" for line in failed["message"].splitlines())
            yield from (f"  {line}" for line in failed["lines"])
    else:
        number, of = len(result.caught), len(result.bugs)
        tests = f"{len(result.tests)} test{'s' if len(result.tests) > 1 else ''}"
        yield f"On the right engine {tests} pass{'' if len(result.tests) > 1 else 'es'}."
        yield f"Your tests caught {number} of {of} planted bugs."
        if result.lives is not None:
            what, path, _, _ = result.lives
            yield f"\nOne that lives: {what}"
            if len(path.split("/")) > 1:
                yield f"  it lives in {path}"

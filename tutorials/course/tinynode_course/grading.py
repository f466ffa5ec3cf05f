"""The command ``check``: of a step for the learner, of all steps or as JSON for a teacher.

Requirement: a teacher's program reads the results without knowing the course. ``--json`` prints a
JSON document, in a format with a version, and leaves the learner's progress alone. The format is
described in docs/teaching.md:

    {"format": "tinynode-course-check", "version": 1, "tinynode": "0.1.0", "folder": "ada",
     "passed": true, "seconds": 1.2, "steps": [{"step": "13", "state": "passed", ...}]}
"""

from __future__ import annotations

import argparse
import json
import os
import time
import types
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tinynode
from tinynode.commands.command_line import CommandError, Parser, positive_number
from tinynode_course import (
    checking,
    examiner,
    exercises,
    hidden,
    hunts,
    mynode,
    owners,
    self_test,
    sources,
)
from tinynode_course.progress import PROGRAM, Progress, open_progress
from tinynode_course.sources import Step

SUMMARY = "check your exercise, or all exercises"
FORMAT = "tinynode-course-check"
VERSION = 1
NOT_RUN = "Not run: this check passes without any work, so the other checks must pass first."


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("step", metavar="STEP", nargs="*", help="such as 07, or compile; or: all")
    parser.add_argument(
        "--self-test", action="store_true", help="check the checks: which planted bugs pass?"
    )
    parser.add_argument("--page", action="store_true", help="of --self-test: print its page")
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=60.0,
        help="time limit of a check; default: %(default)g",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--hidden", action="store_true", help="run the hidden checks too, where installed"
    )


def run(options: argparse.Namespace) -> int:
    """Check a step or all steps; 0 if all checks pass."""
    if options.self_test:
        return self_test.run(options.step, options.seconds, options.page)
    if len(options.step) != 1:
        raise CommandError(f"name one step, as in: {PROGRAM} check 07; or: {PROGRAM} check all")
    (options.step,) = options.step
    mynode.refuse_stranger()
    if options.hidden and not hidden.folders():
        raise CommandError("--hidden: no hidden checks are installed; see docs/teaching.md")
    if options.step != "all" and not options.json:
        status = exercises.check(options)
        return _check_hidden(options) or status if options.hidden else status
    chosen = with_exercise() if options.step == "all" else [sources.find_exercise(options.step)]
    if options.step != "all":
        exercises.work_of(chosen[0])  # says that there is no work
    found = document(chosen, options.seconds, options.hidden)
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=True))
    else:
        _print_table(found)
    return 0 if found["passed"] else 1


def _check_hidden(options: argparse.Namespace) -> int:
    """Print the results of the hidden checks of a step; 0 if all pass."""
    step = sources.find_exercise(options.step)
    status = 0
    for path in hidden.checks_of(step):
        print(f"\nHidden checks: {path}")
        work = exercises.work_of(step).absolute()
        status |= not checking.check(step, work, options.seconds, path).passed
    return status


def with_exercise() -> list[Step]:
    """The steps with an exercise."""
    return [step for step in sources.steps() if step.stub.exists()]


def document(steps: Sequence[Step], seconds: float, with_hidden: bool) -> dict[str, Any]:
    """The results of the current folder, as a document for JSON."""
    start = time.perf_counter()
    progress = open_progress()
    for step in steps:
        if is_started(step, progress):
            exercises.work_of(step)  # a missing file is an error before the threads start
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda one: graded(one, progress, seconds, with_hidden), steps))
    begun = [one for one in results if one["state"] != "not started"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "tinynode": tinynode.__version__,
        "folder": Path.cwd().name,
        "passed": bool(begun) and all(one["passed"] for one in begun),
        "seconds": round(time.perf_counter() - start, 2),
        "steps": results,
    }


def is_started(step: Step, progress: Progress, folder: Path | None = None) -> bool:
    """True if a folder, by default the current folder, has work for a step."""
    if not (folder or Path()).joinpath(step.work).is_file():
        return False
    if not step.builds or not progress.path.exists():
        return True
    return bool(progress.of(step.key).get("started"))


def is_untouched(step: Step) -> bool:
    """True for an exercise of a single file that is still the stub."""
    if step.builds:
        return False
    return Path(step.work).read_bytes().split() == step.stub.read_bytes().split()


def graded(step: Step, progress: Progress, seconds: float, with_hidden: bool) -> dict[str, Any]:
    """The results of a step in the learner's folder."""
    facts = progress.of(step.key)
    result: dict[str, Any] = {"step": step.key, "title": step.title, "state": "not started"}
    result |= {"passed": False, "checks": [], "stopped": None, "read_solution": []}
    result |= {"hidden": None, "definitions": None, "same_as_reference": []}
    result |= {"attempts": facts.get("attempts", 0), "hints": facts.get("hints", 0)}
    result |= {"hunt": _hunt(step)}
    if not is_started(step, progress) or is_untouched(step):
        return result
    result |= owners.definitions_of(step, owners.work_in(Path(), progress))
    if exercises.outgrown(step, progress):  # later exercises changed what these checks look at
        passed = bool(facts.get("passed"))
        return {**result, "state": "passed earlier" if passed else "failed", "passed": passed}
    work = Path(step.work).absolute()
    result |= fold(checking.events(step, work, seconds), step)
    result["state"] = "passed" if result["passed"] else "failed"
    paths = hidden.checks_of(step) if with_hidden else []
    if paths:
        runs = [fold(checking.events(step, work, seconds, path), step) for path in paths]
        checks = [check for one in runs for check in one["checks"]]
        passed = all(one["passed"] for one in runs)
        result["hidden"] = {"passed": passed, "checks": checks}
        reads = [read for one in runs for read in one["read_solution"]]
        result["read_solution"] += reads
        if reads:
            result |= {"passed": False, "state": "failed"}
    return result


def _hunt(step: Step) -> dict[str, Any] | None:
    """The score of the learner's tests in the bug hunt of a step, if there are some."""
    hunt = hunts.of(step)
    if hunt is None or not Path(hunt.work).is_file():
        return None
    score = hunts.score(hunt, Path(hunt.work).absolute())
    caught = len(score.caught) if score.counts else 0
    return {"caught": caught, "of": len(score.bugs), "broken": list(score.broken)}


def titles_of(checks: Path, step: Step) -> list[str]:
    """The titles of a step's file of checks, in the order of the examiner."""
    module = sources.load(checks, f"tinynode_check_{checks.stem}")
    return [examiner.title_of(check) for check in examiner.checks_of(module, step.builds)]


def fold(events: Iterable[dict[str, Any]], step: Step) -> dict[str, Any]:
    """The results of the checks, from the events of an examination."""
    checks: list[dict[str, Any]] = []
    found: dict[str, Any] = {"stopped": None, "read_solution": []}
    running: dict[str, Any] | None = None
    ended = False
    for event in events:
        kind = event["event"]
        ended = kind == "end"
        if kind == "checks":
            checks = [
                {"title": title, "passed": False, "kind": "not run", "text": [], "lines": []}
                for title in event["titles"]
            ]
        elif kind == "begin":
            running = checks[event["check"]]
        elif kind in ("passed", "failed"):
            checks[event["check"]] |= _result_of(event, step)
            running = None
        elif kind == "read solution":
            found["read_solution"].append(_result_of(event, step))
        elif kind in ("import failed", "too long", "crash", "junk"):
            found["stopped"] = _result_of(event, step)
            if running is not None:
                running |= _result_of(event, step)
    for check in checks:
        if ended and check["kind"] == "not run":
            check["text"] = [NOT_RUN]
    passed = ended and bool(checks) and all(check["passed"] for check in checks)
    return {**found, "checks": checks, "passed": passed and not found["read_solution"]}


def _result_of(event: dict[str, Any], step: Step) -> dict[str, Any]:
    """The facts of an event, and the failure in the words of ``learn check``."""
    kind = event["event"]
    result = {name: fact for name, fact in event.items() if name not in ("event", "check")}
    if kind == "passed":
        return {**result, "passed": True, "kind": kind}
    text = list(checking.in_words(event, step.work))
    kind = event["kind"] if kind in ("failed", "import failed") else kind
    return {**result, "passed": False, "kind": kind, "text": text}


# in notebooks


def as_module(names: dict[str, Any]) -> types.ModuleType:
    """The names of a notebook as a module for checks."""
    module = types.ModuleType("answer")
    vars(module).update(names)
    return module


def check_names(key: str, check: str, names: dict[str, Any]) -> None:
    """Run a check of a step on the names of a notebook, as templates for nbgrader do.

    A check that an untouched stub passes runs after all checks that the stub fails.

    Raises:
        AssertionError: The check failed, or an earlier check that is needed.
    """
    module = sources.find(key).check_module()
    guards = examiner.guards_of(module)
    functions = {one.__name__: one for one in examiner.functions_of(module)}
    work = as_module(names)
    if check in guards:
        for name in [name for name in functions if name not in guards]:
            functions[name](work)
    functions[check](work)


# the table


def _print_table(found: dict[str, Any]) -> None:
    for one in found["steps"]:
        if one["state"] == "not started":
            continue
        checks = one["checks"]
        number = sum(check["passed"] for check in checks)
        said = f"{number} of {len(checks)} checks" if checks else ""
        if one["hidden"] is not None:
            hidden_checks = one["hidden"]["checks"]
            number = sum(check["passed"] for check in hidden_checks)
            said += f", {number} of {len(hidden_checks)} hidden"
        if one["read_solution"]:
            said += ", reads the solution of the course"
        print(f"  {one['state']:<15} {one['step']}  {said}")
    begun = [one for one in found["steps"] if one["state"] != "not started"]
    passed = sum(one["passed"] for one in begun)
    print(f"{passed} of {len(begun)} exercises pass, in {found['seconds']:g} s.")
    if not begun:
        print(f"Begin with  {PROGRAM} start 01")

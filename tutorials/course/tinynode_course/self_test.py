"""``check --self-test``: how many planted bugs the public checks refuse, and which right answers.

Requirement: the share tells of bugs that nobody chose for the checks. So the bugs stand in files
of their own, ``tutorials/planted/step05.toml``, written from the solution and from known
misconceptions, without a look at the checks. A bug is a text of the reference and a wrong text:

    [[bug]]
    misconception = 'the last gradient wins'
    file = 'core/backprop.py'
    old = 'gx if x.grad is None else x.grad + gx'
    new = 'gx'

``blind`` in a file is the number of bugs that the checks refused at the first measurement, before
any check was sharpened. A wheel has no planted bugs.

``right_answers.toml`` has right answers of unusual forms, as edits of the reference. The checks
accept each.
"""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError
from tinynode_course import hints, mynode, places, sources, swapping
from tinynode_course.sources import Step

FOLDER = "planted"
ANSWERS = "right_answers.toml"

BEFORE = """\
# What the checks of the course refuse

A check that accepts a wrong answer teaches the wrong answer. So bugs are planted into the
reference solution, one at a time, and the public checks run on each program.

The bugs stand in `tutorials/planted`, each with a misconception in words. The author wrote the
bugs from the solutions, without a look at the checks of each step. The column *Refused at first*
has the measurement before these bugs sharpened any check.

*Place named* counts the refused bugs for which `learn check` names the changed function under
"your code". The place comes from an exchange of functions with the solution. A bug here is one
change in the solution: programs of another design are harder.

A check that refuses a right answer teaches a wrong lesson, too. So the public checks also run on
right answers of unusual forms, in `tutorials/planted/right_answers.toml`.
"""

AFTER = """
This page is made by `python -m tinynode.learn check --self-test --page`. With numbers of steps,
such as `check 05 --self-test`, the command measures these exercises only."""


@dataclass(frozen=True)
class Bug:
    """A planted bug: a misconception in words, and its text in place of the reference's."""

    misconception: str
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Answer:
    """A right answer: its form in words, and edits (file, old text, new text) of the reference.

    Without an old text, the new text is the file.
    """

    step: Step
    form: str
    edits: tuple[tuple[str, str, str], ...]

    def files(self) -> mynode.Files:
        """The files of the answer, in a learner's folder."""
        step = self.step
        files = (
            {f"{mynode.NAME}/{path}": text for path, text in mynode.reference(step.key).items()}
            if step.builds
            else {step.work: step.solution.read_text(encoding="utf-8")}
        )
        for file, old, new in self.edits:
            path = f"{mynode.NAME}/{file}" if step.builds else file
            if old not in files.get(path, ""):
                raise ValueError(f"{self.form}: {path} of step {step.key} does not have {old!r}")
            files[path] = files[path].replace(old, new) if old else new
        return files


@dataclass(frozen=True)
class Verdict:
    """What the checks say of a bug: refused, and with the changed function under "your code"."""

    is_refused: bool
    is_named: bool


@dataclass(frozen=True)
class Result:
    """The bugs of an exercise: how many there are, refused at first and now, and which pass.

    ``named`` is the number of refused bugs with the changed function under "your code".
    """

    step: Step
    bugs: int
    blind: int
    passing: tuple[str, ...]
    named: int

    @property
    def refused(self) -> int:
        """The number of bugs that the checks refuse."""
        return self.bugs - len(self.passing)


def exercises() -> list[Step]:
    """The exercises with planted bugs, in order.

    Raises:
        CommandError: The installation has no planted bugs.
    """
    folder = sources.tutorials() / FOLDER
    found = [step for step in sources.steps() if (folder / f"{step.name}.toml").is_file()]
    if not found:
        raise CommandError("--self-test: a wheel has no planted bugs; use a checkout of tinynode")
    return found


def read(step: Step) -> tuple[list[Bug], int]:
    """The planted bugs of an exercise, and how many were refused at the first measurement.

    Raises:
        CommandError: The exercise has no planted bugs.
    """
    path = sources.tutorials() / FOLDER / f"{step.name}.toml"
    if not path.is_file():
        names = " ".join(one.key for one in exercises())
        raise CommandError(
            f"--self-test: step {step.key} has no planted bugs; these have: {names}"
        )
    facts: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Bug(**bug) for bug in facts["bug"]], facts.get("blind", 0)


def answers() -> list[Answer]:
    """The right answers of unusual forms, in the order of the course."""
    path = sources.tutorials() / FOLDER / ANSWERS
    facts: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    found = []
    for one in facts["answer"]:
        edits = [(edit["file"], edit.get("old", ""), edit["new"]) for edit in one["edit"]]
        found.append(Answer(sources.find(one["exercise"]), one["form"], tuple(edits)))
    return found


def judge(step: Step, bug: Bug, seconds: float) -> Verdict:
    """What the public checks say of the reference with a bug."""
    reference = mynode.reference(step.key)
    wrong = mynode.mistake(step.key, bug.file, bug.old, bug.new)
    with tempfile.TemporaryDirectory(prefix="tinynode-self-test-") as folder:
        mynode.write_files(reference | wrong, Path(folder, mynode.NAME))
        work = Path(folder, step.work)
        event = hints.first_failure(step, work, seconds)
        if event is None:
            return Verdict(is_refused=False, is_named=False)
        found = places.places_of(event, step, work, step.key)
    planted = planted_units(reference[bug.file], wrong[bug.file])
    is_named = any(one.path == bug.file and one.name in planted for one in found)
    return Verdict(is_refused=True, is_named=is_named)


def planted_units(reference: str, wrong: str) -> set[str]:
    """The smallest units of a file that a bug changes: a method, not the class of the method."""
    names = swapping.different(wrong, reference)
    owners = {name.partition(".")[0] for name in names if "." in name}
    return set(names) - owners


def fails(step: Step, files: mynode.Files, seconds: float) -> bool:
    """True if a public check of an exercise fails on the files of a learner's folder."""
    with tempfile.TemporaryDirectory(prefix="tinynode-self-test-") as folder:
        mynode.write_files(files, Path(folder))
        return hints.first_failure(step, Path(folder, step.work), seconds) is not None


def results(steps: Sequence[Step], seconds: float) -> Iterator[Result]:
    """The results of exercises, one after the other; Ctrl-C waits for the running programs."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        for step in steps:
            bugs, blind = read(step)
            verdicts = pool.map(lambda bug, step=step: judge(step, bug, seconds), bugs)
            passing = []
            named = 0
            for number, (bug, verdict) in enumerate(zip(bugs, verdicts, strict=True), 1):
                say_progress(f"step {step.key}: {number} of {len(bugs)}")
                named += verdict.is_named
                if not verdict.is_refused:
                    passing.append(bug.misconception)
            say_progress("")
            yield Result(step, len(bugs), blind, tuple(passing), named)
    finally:
        pool.shutdown(cancel_futures=True)


def refused_answers(chosen: Sequence[Answer], seconds: float) -> list[str]:
    """The forms of the right answers that a check refuses, with their exercises."""
    found = []
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        verdicts = pool.map(lambda one: fails(one.step, one.files(), seconds), chosen)
        for number, (one, refused) in enumerate(zip(chosen, verdicts, strict=True), 1):
            say_progress(f"right answers: {number} of {len(chosen)}")
            if refused:
                found.append(f"{one.step.title}: {one.form}")
        say_progress("")
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def say_progress(text: str) -> None:
    """Show a text in the last line of a terminal, in place of the text before."""
    if sys.stderr.isatty():
        print(f"\r{text:30}\r", end="", file=sys.stderr, flush=True)


def run(keys: Sequence[str], seconds: float, as_page: bool) -> int:
    """Print the share of refused bugs; 0 if 95 % or more are refused, and no right answer."""
    steps = [sources.find_exercise(key) for key in keys] or exercises()
    found = list(results(steps, seconds))
    chosen = [one for one in answers() if not keys or one.step in steps]
    refused = refused_answers(chosen, seconds)
    lines = [*table(found), "", *accepted(chosen, refused)]
    for line in (BEFORE, *lines, AFTER) if as_page else lines:
        print(line)
    return 0 if share(found) >= 95 and not refused else 1


def share(found: Sequence[Result]) -> float:
    """The refused bugs of all, in percent."""
    return 100 * sum(one.refused for one in found) / sum(one.bugs for one in found)


def table(found: Iterable[Result]) -> Iterator[str]:
    """The results as lines of a Markdown table, and the bugs that pass."""
    found = list(found)
    yield "| Exercise | Bugs | Refused at first | Refused | Share | Place named |"
    yield "|---|---:|---:|---:|---:|---:|"
    for one in found:
        yield (
            f"| Step {one.step.key} | {one.bugs} | {one.blind} | {one.refused} "
            f"| {share([one]):.0f} % | {one.named} |"
        )
    bugs, blind = sum(one.bugs for one in found), sum(one.blind for one in found)
    refused, named = sum(one.refused for one in found), sum(one.named for one in found)
    yield f"| **All** | {bugs} | {blind} | {refused} | {share(found):.1f} % | {named} |"
    if refused < bugs:
        yield ""
        yield "These bugs pass:"
        yield ""
    for one in found:
        for words in one.passing:
            yield f"- Step {one.step.key}: {words}"


def accepted(chosen: Sequence[Answer], refused: Sequence[str]) -> Iterator[str]:
    """The number of right answers, and the refused ones."""
    exercises = len({one.step.key for one in chosen})
    yield (
        f"**Right answers of unusual forms**: {len(chosen)} in {exercises} exercises. "
        f"The checks accept {len(chosen) - len(refused)}."
    )
    if refused:
        yield ""
        yield from (f"- refused, though right: {words}" for words in refused)

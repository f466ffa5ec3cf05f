"""The command ``watch``: checks the learner's work whenever a file of it is saved.

Requirement: the learner stays in the editor. A passed step leads to the next one. Ctrl-C ends the
command. The screen is cleared in a terminal only, so a file of the output is complete.

The times of the files are compared twice a second: no package is needed.
Source: rustlings, the exercises of the Rust project, made the mode known.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode_course import exercises, mynode, screen, sources
from tinynode_course.progress import NAME, PROGRAM, next_step, open_progress
from tinynode_course.sources import Step

SUMMARY = "check the exercise whenever a file of it is saved"
SECONDS = 0.5
"""Between two looks at the files."""

CLEAR = "\x1b[2J\x1b[3J\x1b[H"

Times = dict[Path, int]


def run(options: argparse.Namespace) -> int:
    """Watch a step, or the next open step, until Ctrl-C or the end of the course."""
    step = sources.find_exercise(options.step) if options.step else next_step(open_progress())
    clear = True
    try:
        while step is not None:
            clear = not _passes(step, options.seconds, clear)  # a success stays on the screen
            if not clear:
                step = next_step(open_progress(), step)
    except KeyboardInterrupt:
        print("\nThe watch has ended.")
        return 0
    return 0


def _passes(step: Step, seconds: float, clear: bool) -> bool:
    """Check a step once, when it is started; False after the next saved file."""
    while not is_started(step):
        print(f"\nWaiting for the start of {step.title}. In another terminal:")
        print(f"  {PROGRAM} start {step.key}", flush=True)
        wait(step, files(step))
    before = files(step)
    if clear and screen.is_terminal(sys.stdout):
        sys.stdout.write(CLEAR)
    try:
        options = argparse.Namespace(step=step.key, seconds=seconds)
        if exercises.check(options) == 0:
            return True
    except CommandError as error:
        print(error)
    work = mynode.NAME if step.builds else step.work
    print(f"\nWatching {work}: save a file for the next check. Ctrl-C ends the watch.", flush=True)
    wait(step, before)
    return False


def is_started(step: Step) -> bool:
    """True if the learner's folder has the exercise."""
    if not Path(step.work).is_file():
        return False
    facts = open_progress().of(step.key)
    return not step.builds or bool(facts.get("started") or facts.get("passed"))


def files(step: Step) -> Times:
    """The learner's files of a step, and the progress, with the times of the last change."""
    work = Path(step.work)
    found = [*work.parent.rglob("*.py")] if step.builds else [work]
    if not is_started(step):
        found.append(Path(NAME))
    times = {}
    for path in found:
        try:
            times[path] = path.stat().st_mtime_ns
        except FileNotFoundError:
            continue
    return times


def wait(step: Step, before: Times) -> None:
    """Wait until the files of a step differ from ``before``.

    Editors may write a file twice in a row: the second look is a moment later.
    """
    while files(step) == before:
        time.sleep(SECONDS)
    time.sleep(SECONDS / 5)

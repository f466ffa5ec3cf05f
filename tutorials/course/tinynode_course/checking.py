"""Runs the checks of an exercise, and prints the results for the learner.

Requirement: a check ends for every program of a learner, and the learner sees plain words and
lines of the learner's own file. The checks run in another process, ``tinynode_course.examiner``.
Here the events of the process become sentences.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError
from tinynode_course.examiner import root_of
from tinynode_course.shell import PROGRAM
from tinynode_course.sources import Step

GRACE = 5.0
"""Seconds after the time limit, for the examiner to name the present line."""

FAILURES = ("failed", "import failed", "too long", "crash", "junk")
"""The events of a failure."""

Lines = queue.SimpleQueue[str]
"""The printed lines of a process; at the end, an empty text."""

Find = Callable[[dict[str, Any]], dict[str, Any]]
"""A function from the event of a failure to the event with better lines."""


class Report:
    """The results of the checks: ``show`` prints an event, ``passed`` is True if all passed.

    Args:
        step: the exercise.
        find: gives the event of a failure with better lines of "your code".
    """

    def __init__(self, step: Step, find: Find | None = None) -> None:
        self.step = step
        self._find = find
        self.titles: list[str] = []
        self.done = 0
        self.first: dict[str, Any] | None = None
        self.running: int | None = None
        yes, no = "✓", "✗"
        if not can_print(yes + no):
            yes, no = "ok ", "NO "
        self._signs = {True: yes, False: no}

    @property
    def passed(self) -> bool:
        """All checks ran, and none failed."""
        return self.first is None and self.running is None and 0 < len(self.titles) == self.done

    def show(self, event: dict[str, Any]) -> None:
        """Print an event."""
        kind = event["event"]
        if kind == "checks":
            self.titles = event["titles"]
        elif kind == "begin":
            self.running = event["check"]
        elif kind in ("passed", "failed"):
            print(f"  {self._signs[kind == 'passed']} {self.titles[event['check']]}", flush=True)
            self.running = None
            self.done += 1
        elif kind == "too long" and self.running is not None:
            print(f"  {self._signs[False]} {self.titles[self.running]}", flush=True)
        for line in event.get("printed", ()):
            print(f"      | {line}")
        if kind in FAILURES and self.first is None:
            self.first = event
        if kind == "read solution":
            self.first = event

    def conclude(self) -> None:
        """Print the first failure in words, and the next command."""
        key = self.step.key
        if self.passed:
            print(f"\nAll {len(self.titles)} checks pass.")
            return
        print()
        if self.first is not None:
            if self._find is not None:
                self.first = self._find(self.first)
            for line in in_words(self.first, self.step.work):
                print(line)
            left = len(self.titles) - self.done
            if left and self.first["event"] == "import failed":
                print(f"\nThe {len(self.titles)} checks could not start.")
            elif left and self.first["event"] == "failed":
                print(f"\nChecks that run when all of these pass: {left}.")
        print(f"\nA hint: {PROGRAM} hint {key}")


def can_print(text: str) -> bool:
    """True if the terminal's encoding has all letters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def in_words(event: dict[str, Any], work: str) -> Iterator[str]:
    """A failure as lines of text."""
    lines = event.get("lines", [])
    if event["event"] == "read solution":
        yield f"Your file reads the solution of the course: {event['path']}."
        yield "So the work is not passed. Write your own, or look with  learn show."
        yield from _located("  your code:  ", lines)
    elif event["event"] == "too long":
        yield f"This took more than {event['seconds']:g} s and was stopped. Is there a loop that"
        yield "never ends?"
        yield from _located("  it was at:  ", lines)
    elif event["event"] == "junk":
        yield f"{work} writes to the pipe of the checks. So the results can't be read."
    elif event["event"] == "crash":
        yield f"Python ended while it ran {work} (status {event['status']}), without an error"
        yield (
            "message. Does your program call os._exit?"
            if event["status"] == 0
            else "message. Is there a recursion that never ends, or a great deal of memory in use?"
        )
    elif event["kind"] == "wrong":
        yield f"Not yet: {event['what']}"
        yield f"  expected:   {event['expected']}"
        yield f"  got:        {event['got']}"
        yield f"  look here:  {event['look']}"
        yield from _located("  your code:  ", lines)
    elif event["kind"] == "to do":
        yield "This is still to be written" + (
            f": {event['message']}" if event["message"] else "."
        )
        yield from _located("  your code:  ", lines)
    elif event["kind"] == "missing":
        yield f"A name is missing: {event['message']}."
    else:
        yield "Your code stops with an error:"
        yield from (f"  {line}" for line in event["message"].splitlines())
        if "'NoneType' object" in event["message"]:
            yield "  Does a function end without return? Python returns None there."
        yield from _located("  your code:  ", lines)


def _located(lead: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield lead + line
        lead = " " * len(lead)


def check(
    step: Step,
    work: Path,
    seconds: float,
    checks: Path | None = None,
    find: Find | None = None,
) -> Report:
    """Run the checks of a step, or further checks, on a file, and print the results."""
    report = Report(step, find)
    for event in events(step, work, seconds, checks):
        report.show(event)
    report.conclude()
    return report


def events(
    step: Step, work: Path, seconds: float, checks: Path | None = None
) -> Generator[dict[str, Any], None, None]:
    """The events of the examiner in order; the last event may be a crash.

    The examiner ends with the generator, for instance by Ctrl-C.
    """
    arguments = [str(work), str(checks or step.check), str(seconds)]
    with program("examiner", arguments, root_of(work)) as (process, lines):
        yield from _until_end(process, lines, seconds)


@contextlib.contextmanager
def program(
    module: str, arguments: Sequence[str], folder: Path, **options: Any
) -> Iterator[tuple[subprocess.Popen[str], Lines]]:
    """A program of the course in a process: the process, and the printed lines.

    The end of the ``with`` block ends the process.

    Args:
        module: The name, such as "examiner".
        arguments: The arguments.
        folder: The working folder.
        options: Further arguments of ``subprocess.Popen``.

    Raises:
        CommandError: This Python runs in a browser, and has no processes.
    """
    if sys.platform == "emscripten":
        raise CommandError(
            "checks run in a process of their own, and Python in a browser has none. Your files "
            "are saved. Check the files in a page of the course's site, or on your computer."
        )
    options = {"env": environment(), **options}
    process = subprocess.Popen(
        [sys.executable, "-m", f"tinynode_course.{module}", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C comes to us alone: we end the process
        **options,
    )
    lines: Lines = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    try:
        yield process, lines
    finally:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes of the learner's
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _until_end(
    process: subprocess.Popen[str], lines: Lines, seconds: float
) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + seconds + GRACE
    last, number = "", 0
    while True:
        try:
            line = lines.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            yield {"event": "too long", "seconds": seconds, "lines": []}
            return
        if not line:
            break
        event = _event(line, number)
        last = event["event"]
        if last == "checks":
            number = len(event["titles"])
        yield event
        if last == "junk":
            return
    if last not in ("end", "too long"):
        yield {"event": "crash", "status": process.wait()}


def _event(line: str, number: int) -> dict[str, Any]:
    """The event of a line; "junk" for a line that the examiner does not write.

    ``number`` is the number of the checks. The learner's program can write to the pipe.
    """
    try:
        event = json.loads(line)
        check = event.get("check", 0)
        known = {"checks", "imported", "begin", "passed", "failed", "read solution"}
        is_known = event["event"] in {*known, "import failed", "too long", "end"}
        if is_known and type(check) is int and 0 <= check < max(number, 1):
            return dict(event)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return {"event": "junk", "lines": []}


def _read_lines(stream: Iterable[str], lines: Lines) -> None:
    """Put the lines of a stream into a queue, then an empty text."""
    with contextlib.suppress(ValueError):  # closed at the end of the time
        for line in stream:
            lines.put(line)
    lines.put("")


def environment() -> dict[str, str]:
    """The environment for a child process: the same ``sys.path``, and no bytecode files."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

"""Starts the child, and reads the events, in bounded time.

Requirement: every program of a student ends with a sentence in the report: loops, exits, forks,
floods, junk on the pipe, lasting processes. The judge waits for events with a time limit for
each, and with a limit for all. Then the child and all descendants are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinynode_course.judge.inside import wire

INSIDE = Path(__file__).resolve().parent / "inside" / "__main__.py"

START_SECONDS = 30.0
"""The time until the child is locked: the start of Python and of the libraries."""

MOST_LINE = 16_000_000
"""The most bytes of an event."""

MOST_OUTPUT = 64_000_000
"""The most bytes of all events of a child."""

MOST_EVENTS = 10_000


@dataclass(frozen=True)
class ChildLimits:
    """The limits of a child: seconds of an event and of all events, and memory."""

    seconds: float = 10.0
    total: float = 40.0
    megabytes: int = 1500


class Stopped(Exception):  # noqa: N818 - not an error of the judge's
    """The child was stopped, or ended too early; the text is the sentence of the report."""


def locks(libraries: list[str]) -> list[str]:
    """The locks around a child on the current system, such as "landlock" and "seccomp"."""
    job = {"libraries": libraries, "preload": [], "work": libraries[0], "module": "json"}
    first = next(events({**job, "drill": "", "calls": []}, ChildLimits()))
    found: list[str] = first["locks"]
    return found


def environment() -> dict[str, str]:
    """The whole environment of a child."""
    one_thread = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TINYNODE_THREADS")
    return {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", **dict.fromkeys(one_thread, "1")}


def adopt_orphans() -> None:
    """Make the current process the parent of orphans, for ``kill_all``; Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def events(job: dict[str, Any], limits: ChildLimits) -> Iterator[dict[str, Any]]:
    """The events of a child that runs a job, up to the event "end".

    Args:
        job: See ``inside/__main__.py``, without the limits and the pipe.
        limits: The limits of the child.

    Raises:
        Stopped: The child did not come to its end. The events before count.
    """
    spared = children()
    ours, theirs = socket.socketpair()  # no program opens a socket by /proc/self/fd, to read it
    ours.shutdown(socket.SHUT_WR)
    writing = theirs.fileno()
    job = {**job, "seconds": limits.total, "megabytes": limits.megabytes, "pipe": writing}
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        stack.callback(theirs.close)
        with tempfile.TemporaryDirectory(prefix="tinynode-judge-") as empty:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(INSIDE)],
                cwd=empty,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writing,),
                start_new_session=True,
            )
            stack.callback(kill_all, process, spared)
            theirs.close()
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:  # type: ignore[union-attr]
                stdin.write(json.dumps(job).encode() + b"\n")
            yield from _read(ours.fileno(), process, limits)


def _read(
    reading: int, process: subprocess.Popen[bytes], limits: ChildLimits
) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + START_SECONDS + limits.total
    wait = START_SECONDS
    lines = _Lines(reading, process)
    for _ in range(MOST_EVENTS):
        line = lines.next(min(time.monotonic() + wait, end), wait)
        try:
            event = wire.from_line(line)
        except wire.WireError as error:
            raise Stopped(f"the program writes to the pipe of the judge: {error}") from None
        if event.get("event") == "locked":
            end = time.monotonic() + limits.total
        wait = limits.seconds
        yield event
        if event.get("event") == "end":
            return
    raise Stopped(f"the program writes more than {MOST_EVENTS} events to the pipe of the judge")


class _Lines:
    """The lines from a pipe, until the writer ends: not until the pipe is closed.

    A lasting process may hold the pipe open for ever.
    """

    def __init__(self, reading: int, process: subprocess.Popen[bytes]) -> None:
        os.set_blocking(reading, False)
        self._reading = reading
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._selector.register(reading, selectors.EVENT_READ)
        self._rest = bytearray()
        self._searched = 0  # so far, the rest has no end of a line
        self._sum = 0

    def next(self, end: float, seconds: float) -> bytes:
        """The next line, until a time of the clock; ``seconds`` is for the sentence."""
        while True:
            place = self._rest.find(b"\n", self._searched)
            if place >= 0:
                line = bytes(self._rest[:place])
                del self._rest[: place + 1]
                self._searched = 0
                return line
            self._searched = len(self._rest)
            if len(self._rest) > MOST_LINE or self._sum > MOST_OUTPUT:
                raise Stopped("the program writes without an end to the pipe of the judge")
            left = end - time.monotonic()
            if left <= 0:
                raise Stopped(f"the time is over (at most {seconds:g} s for a drill): a loop?")
            has_ended = self._process.poll() is not None
            if self._selector.select(0 if has_ended else min(left, 0.2)):
                data = os.read(self._reading, 1 << 16)
                self._rest += data
                self._sum += len(data)
                if data:
                    continue
                with contextlib.suppress(subprocess.TimeoutExpired):  # closed: it ends, or stays
                    self._process.wait(min(left, 1.0))
                raise Stopped(_how_it_ended(self._process))
            if has_ended:
                raise Stopped(_how_it_ended(self._process))


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    status = process.poll()
    if status is None:
        return "the program closed the pipe of the judge, and went on"
    if status == -signal.SIGXCPU or status == -signal.SIGKILL:
        return "the program was stopped by the system: too much time or memory"
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return f"Python ended by the signal {name}: memory, or a recursion without an end?"
    return f"Python ended with status {status}, before the work was done: exit or os._exit?"


def kill_all(process: subprocess.Popen[bytes], spared: Collection[int]) -> None:
    """Kill a child, the child's group, and adopted orphans; see ``kill_orphans``."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    kill_orphans(spared)


def kill_orphans(spared: Collection[int] = ()) -> None:
    """Kill all children of the current process: the judge's child, and adopted orphans.

    Does no work without a call of ``adopt_orphans`` before.

    Args:
        spared: Children from before the student's program: servers of the program that judges.
    """
    if sys.platform != "linux" or not _is_adopting():
        return
    for _ in range(1000):  # a fork bomb is faster than one round
        orphans = set(children()) - set(spared)
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.001)


def _is_adopting() -> bool:
    found = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(37, ctypes.byref(found), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
    return bool(found.value)


def children() -> list[int]:
    """The children of this process, by the kernel; [] if the system does not tell."""
    found: list[int] = []
    if sys.platform != "linux":
        return found
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(word) for word in (thread / "children").read_text().split()]
    return found

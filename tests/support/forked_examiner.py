"""The program that examines a learner's file, without the seconds of its imports.

The server process has imported tinynode once; each examination is a fork of the server, so it
starts with fresh modules of the learner's and ends alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from pathlib import Path

from tinynode_course import checking, examiner
from tinynode_course.sources import Step

SECONDS = 30.0
"""The time limit of an examination."""

_METHODS = multiprocessing.get_all_start_methods()
SERVER = multiprocessing.get_context("forkserver" if "forkserver" in _METHODS else "spawn")
SERVER.set_forkserver_preload(["forked_examiner", "tinynode.gradient_check", "tinynode.net"])


def events_of(step: Step, work: Path, checks: Path | None = None) -> list[dict]:
    """The events of an examination, as `checking.events` gives them."""
    process = SERVER.Process(target=_examine, args=(str(work), str(checks or step.check)))
    process.start()
    process.join(SECONDS + checking.GRACE)
    if process.exitcode is None:
        process.kill()
        process.join()
    lines = (examiner.root_of(work) / "events").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    if not events or events[-1]["event"] not in ("end", "too long"):
        events.append({"event": "crash", "status": process.exitcode})
    return events


def _examine(work: str, check: str) -> None:
    """In the fork: the examiner's own main, with its output in a file."""
    sys.dont_write_bytecode = True  # as in the environment of a real examination
    os.chdir(examiner.root_of(Path(work)))
    file = os.open("events", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os._exit(examiner.main([work, check, str(SECONDS)]))

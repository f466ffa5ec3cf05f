"""A child process: films a script with an edited text, and writes the page.

Requirement: each run starts in a fresh process, and ends with the process that asked for the run.
So this module is a program. The first line of its standard input is a job in JSON: "script",
"arguments", "text", "quiz", "changes", "seed", "page" and "folder". The seed is that of the random
generators, the page a path, the folder that of all files of the parent process. When the standard
input ends, the parent process is gone. Then the folder is removed, and the process ends with all
processes of its group.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any

from tinynode.show.films.changes import Change, from_json
from tinynode.show.films.random_states import seed_all
from tinynode.show.films.what_if import ScriptRuns, rerun
from tinynode.show.page.document import page

IMPOSSIBLE = 77
"""The exit status after a change that is not possible; the last line of the output says why."""


def main() -> int:
    """Film the script of the job; returns 1 if the script failed."""
    requests = _requests()
    job = json.loads(requests.readline())
    arguments = (requests, job["folder"])
    threading.Thread(target=_end_with_parent, args=arguments, daemon=True).start()
    runs = ScriptRuns(job["script"], job["arguments"], job["text"])
    seed_all(job["seed"])
    try:
        data = _data_of(runs, from_json(job["changes"]), quiz=job["quiz"])
    except ValueError as error:
        print(error)
        return IMPOSSIBLE
    if data:
        text = page({**data, "program": job["text"]})
        Path(job["page"]).write_bytes(text.encode("utf-8", "replace"))
    return runs.status


def _data_of(runs: ScriptRuns, changes: list[Change], *, quiz: bool) -> dict[str, Any]:
    """The film of the script, or the comparison of the films; empty without a step.

    Raises:
        ValueError: a change is not possible.
    """
    if changes:
        return rerun(runs, changes).data()
    film = runs()
    if quiz and len(film):
        film.quiz()
    return film.data() if len(film) else {}


def _requests() -> IO[str]:
    """The pipe from the parent; the script and its children get an empty standard input."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return requests


def _end_with_parent(requests: IO[str], folder: str) -> None:
    requests.read()
    shutil.rmtree(folder, ignore_errors=True)
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())

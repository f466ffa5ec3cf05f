"""A child process: films a script with an edited text, and writes the page.

Requirement: each run starts in a fresh process, and ends with the process that asked for the run.
So this module is a program. The first line of its standard input is a job in JSON: "script",
"arguments", "text", "quiz", "page", the path of the page, and "folder", the folder with all files
of the parent process. When the standard input ends, the parent process is gone. Then the folder
is removed, and the process ends with all processes of its group.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import IO

from tinynode.commands.step import film_of_script
from tinynode.show.page.document import page


def main() -> int:
    """Film the script of the job; returns 1 if the script failed."""
    requests = _requests()
    job = json.loads(requests.readline())
    arguments = (requests, job["folder"])
    threading.Thread(target=_end_with_parent, args=arguments, daemon=True).start()
    target = Path(job["page"])
    film, status = film_of_script(job["script"], job["arguments"], job["text"])
    if len(film):
        if job["quiz"]:
            film.quiz()
        text = page({**film.data(), "program": job["text"]})
        target.write_bytes(text.encode("utf-8", "replace"))
    return status


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

"""A child process: films a script with an edited text, and writes the page.

Requirement: each run starts in a fresh process, and ends with the process that asked for the run.
So this module is a program. The first line of its standard input is a job in JSON: "script",
"arguments", "text", "quiz" and "page", the path of the page. When the standard input ends, the
process ends, since the parent process is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import IO

from tinynode.commands.step import film_of_script
from tinynode.show.page.document import page


def main() -> int:
    """Film the script of the job; returns 1 if the script failed."""
    requests, sys.stdin = sys.stdin, open(os.devnull, encoding="utf-8")  # noqa: SIM115
    job = json.loads(requests.readline())
    threading.Thread(target=_end_with_parent, args=(requests,), daemon=True).start()
    target = Path(job["page"])
    film, status = film_of_script(job["script"], job["arguments"], job["text"])
    if len(film):
        if job["quiz"]:
            film.quiz()
        text = page({**film.data(), "program": job["text"]})
        target.write_bytes(text.encode("utf-8", "replace"))
    return status


def _end_with_parent(requests: IO[str]) -> None:
    requests.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())

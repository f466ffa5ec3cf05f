"""The child of the judge: runs drills, or a learner's tests, on a stranger's program.

Requirement: the child only computes. The judge draws the inputs, knows the right values, and
compares. The child knows neither. No line here decides on a grade. A student's program
can take the process over, and gains a pipe for values.

The judge starts ``python -I -S -B .../inside/__main__.py``, with the job as a line of JSON on the
standard input. A job is a dictionary:

    libraries  folders for sys.path, such as a copy of NumPy; they come before the student's folder
    preload    modules of the libraries, imported before the locks are closed
    work       the copy of the student's folder; module: the name of the module to import
    drill      the text of the drills; calls: a list of [name, inputs]
    hunt       in place of drill and calls: tests and engines, see ``hunting``
    seconds, megabytes, pipe: the limits, and the number of the pipe

The child writes events to the pipe, each a line of JSON.
"""

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

PARTS = ("hunting", "limits", "lock", "wire")
"""The files in the same folder; the child has no package."""

MOST_MESSAGE = 400
"""The most characters of an error in an event."""


def main() -> None:
    """Read the job, close the locks, and run."""
    job = json.loads(sys.stdin.buffer.readline())
    here = os.path.dirname(os.path.abspath(__file__))
    standard = list(sys.path)
    sys.path[:] = [here, *standard, *job["libraries"]]
    sys.dont_write_bytecode = True
    for name in ("ctypes", "hashlib", "random", "zlib", "decimal", "typing", *job["preload"]):
        importlib.import_module(name)
    hunting, limits, lock, wire = map(importlib.import_module, PARTS)
    sys.path[:] = [*standard, *job["libraries"], job["work"]]
    limits.die_with_parent()
    limits.apply(job["seconds"], job["megabytes"])
    library = os.path.dirname(os.__file__)
    readable = [os.path.join(library, name) for name in os.listdir(library)]
    readable = [path for path in readable if not path.endswith("-packages")]
    readable += [*job["libraries"], job["work"], "/dev/null", "/dev/urandom"]
    held = lock.lock(readable)

    def tell(**event: object) -> None:
        left = memoryview(wire.to_line(event))
        while left:
            left = left[os.write(job["pipe"], left) :]

    tell(event="locked", locks=held)
    if "hunt" in job:
        hunting.run(job, tell, in_words)
    else:
        run_drills(job, tell, wire)
    tell(event="end")
    os._exit(0)  # without waiting for threads


def run_drills(job: dict[str, Any], tell: Callable[..., None], wire: Any) -> None:
    """Import the work, and run each call; a call's value or error is an event."""
    drill: dict[str, Any] = {"__name__": "drill"}
    try:
        exec(compile(job["drill"], "drill", "exec"), drill)
        work = importlib.import_module(job["module"])
    except BaseException as error:
        tell(event="import failed", error=in_words(error, job["work"]))
        return
    tell(event="imported")
    for number, (name, inputs) in enumerate(job["calls"]):
        tell(event="begin", number=number)
        try:
            value = wire.encode(drill[name](work, wire.decode(inputs)))
        except BaseException as error:
            tell(event="failed", number=number, error=in_words(error, job["work"]))
        else:
            tell(event="result", number=number, value=value)


def in_words(error: BaseException, folder: str) -> str:
    """The error, with the last line of the student's file in the traceback."""
    said = "".join(traceback.format_exception_only(error)).strip()[-MOST_MESSAGE:]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(folder + os.sep)]
    if not own:
        return said
    return f"{os.path.relpath(own[-1].filename, folder)}, line {own[-1].lineno}: {said}"


if __name__ == "__main__":
    main()

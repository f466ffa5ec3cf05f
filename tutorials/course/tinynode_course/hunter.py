"""Runs the learner's tests of a bug hunt on the right engine and on each engine with a bug.

Requirement: a planted bug may loop, exit or crash, and the score is there in a few seconds. So
``tinynode_course.hunts`` starts this module as a program

    python -m tinynode_course.hunter hunt06.py tutorials/hunts/step06.py 0

in the learner's folder. The program runs the versions from the given number: version 0 is the
right engine, version 7 has bug 7. Each version has fresh modules. The program prints events, a
JSON object in each line. ``hunts`` ends a version after a time limit, and starts the next.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import io
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from tinynode_course import sources
from tinynode_course.mynode import Files, write_files

MOST_LINES = 3
"""The most lines of the learner's file in an event of a failed test."""


def version(hunt: types.ModuleType, number: int) -> Files:
    """The files of the right engine for 0, or of the engine with bug ``number``."""
    files = dict(hunt.ENGINE)
    if number:
        _, path, old, new = hunt.BUGS[number - 1]
        files[path] = files[path].replace(old, new)
    return files


def name_of(files: Files) -> str:
    """The name of the engine's module: ``mynode``, or the name of the only file."""
    return "mynode" if "__init__.py" in files else next(iter(files)).removesuffix(".py")


def load_engine(files: Files, folder: Path) -> types.ModuleType:
    """A fresh module of the engine, as real files in a folder."""
    name = name_of(files)
    write_files(files, folder / name if "__init__.py" in files else folder)
    for old in [old for old in sys.modules if old.split(".")[0] == name]:
        del sys.modules[old]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def tests_of(module: types.ModuleType) -> dict[str, Callable[[Any], None]]:
    """The functions ``test_...`` of a module, in the order of the file."""
    return {
        name: thing
        for name, thing in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(thing)
    }


def failure(error: BaseException, tests: Path) -> dict[str, Any]:
    """A failed test in words, with the lines of the learner's file in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == tests]
    lines = [f"{tests.name}, line {frame.lineno}: {frame.line}" for frame in own]
    if isinstance(error, SyntaxError) and error.filename == str(tests):
        lines.append(f"{tests.name}, line {error.lineno}: {(error.text or '').strip()}")
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return {"message": "\n".join(message[:4])[:500], "lines": lines[-MOST_LINES:]}


def run(tests: Path, hunt: types.ModuleType, number: int, tell: Callable[..., None]) -> None:
    """Run the tests on a version; on an engine with a bug, up to the first test that fails."""
    tell(event="begin", version=number)
    folder = Path(tempfile.mkdtemp(prefix="tinynode-hunt-"))
    start = time.perf_counter()
    failed: dict[str, Any] = {}
    names: list[str] = []
    try:
        found = _load(tests)
        names = list(found)
        engine = load_engine(version(hunt, number), folder)
        sys.path.insert(0, str(folder))  # for modules that a test imports late
        for name, test in found.items():
            try:
                test(engine)
            except BaseException as error:
                failed[name] = failure(error, tests)
                if number:
                    break
    except BaseException as error:
        failed[""] = failure(error, tests)
    finally:
        sys.path[:] = [entry for entry in sys.path if entry != str(folder)]
        shutil.rmtree(folder, ignore_errors=True)
    gc.enable()
    gc.collect()
    seconds = time.perf_counter() - start
    tell(event="result", version=number, tests=names, failed=failed, seconds=seconds)


def _load(tests: Path) -> dict[str, Callable[[Any], None]]:
    sys.modules.pop(tests.stem, None)
    return tests_of(sources.load(tests, tests.stem))


def main(arguments: list[str]) -> int:
    """Run the versions; arguments are the tests, the file of the hunt, and the first version."""
    tests, path, first = Path(arguments[0]).resolve(), Path(arguments[1]), int(arguments[2])
    # prints of a test past sys.stdout must not look like events
    events: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, str(tests.parent))
    sys.dont_write_bytecode = True

    def tell(**event: Any) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    hunt = sources.load(path, f"tinynode_hunt_{path.stem}")
    with redirect_stdout(io.StringIO()):
        for number in range(first, len(hunt.BUGS) + 1):
            run(tests, hunt, number, tell)
    tell(event="end")
    os._exit(0)  # without waiting for threads of an engine's


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

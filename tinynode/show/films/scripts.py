"""The film of a script, run as the main program.

Requirement: a command shows the graph of any script, without a change of the script. The script
runs as under ``python script.py``. After an error, the film ends at the error.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinynode.learn import ENGINE
from tinynode.show.films.film import Film
from tinynode.show.films.recorder import record


def film_of_script(
    script: str,
    arguments: Sequence[str],
    text: str | None = None,
    most: int | None = None,
    arrays: bool = False,
) -> tuple[Film, int]:
    """The film of a script run as the main program, and the exit status of the command.

    Args:
        script: the path of the script.
        arguments: the script's arguments.
        text: runs in place of the file's text.
        most: the most steps of the film.
        arrays: True to keep whole arrays.
    """
    film, status = Film(), 0
    with _as_main(script, arguments) as module:
        try:
            file = module["__file__"]
            source: bytes | str = Path(script).read_bytes() if text is None else text
            if text is not None:  # for tracebacks, and the film's lines
                linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            code = compile(source, file, "exec", dont_inherit=True)
            if Path(script).with_name(ENGINE).joinpath("__init__.py").exists():
                importlib.import_module(ENGINE)  # a film has the steps of an imported engine
            with record(os.path.basename(script), most=most, arrays=arrays) as film:
                exec(code, module)
        except BaseException as error:
            status = _status_of(error)
    return film, status


def _status_of(error: BaseException) -> int:
    """The status for an error of the script, with Python's output; 0 for ``sys.exit()``."""
    if isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    if isinstance(error, SystemExit) and not error.code:
        return 0
    if isinstance(error, SystemExit):
        if isinstance(error.code, int):
            return error.code
        print(error.code, file=sys.stderr)
        return 1
    frames = error.__traceback__
    if frames is not None:
        frames = frames.tb_next  # the first frame is in this file
    traceback.print_exception(type(error), error, frames)
    return 1


@contextmanager
def _as_main(script: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The names of a fresh main module; ``sys`` is set as for a script."""
    module = types.ModuleType("__main__")
    module.__file__ = os.path.abspath(script)
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    # in front of the old entries: the first may be the path to tinynode
    sys.path.insert(0, os.path.dirname(module.__file__))
    try:
        yield vars(module)
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path

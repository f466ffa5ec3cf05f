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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tinynode.learn import ENGINE
from tinynode.show.films.film import Film
from tinynode.show.films.recorder import record


@dataclass(frozen=True)
class Script:
    """A script as found before the first run: a run may go to another folder, or remove files.

    Attributes:
        name: the path as given; ``sys.argv[0]``.
        file: the absolute path.
        source: the text, or the bytes of the file.
        folder: the working folder of each run; None if the folder was gone before.
    """

    name: str
    file: str
    source: str | bytes
    folder: str | None

    @classmethod
    def at(cls, path: str, text: str | None = None) -> Script:
        """The script at a path; ``text`` takes the place of the file's text.

        Raises:
            OSError: the file cannot be read.
        """
        source = Path(path).read_bytes() if text is None else text
        try:
            folder = os.getcwd()
        except FileNotFoundError:
            folder = None
        return cls(path, os.path.abspath(path), source, folder)

    def enter_folder(self) -> None:
        """Go back to the working folder, if there still is one."""
        if self.folder is not None and os.path.isdir(self.folder):
            os.chdir(self.folder)


def film_of_script(
    script: str | Script,
    arguments: Sequence[str],
    text: str | None = None,
    most: int | None = None,
    arrays: bool = False,
) -> tuple[Film, int]:
    """The film of a script run as the main program, and the exit status of the command.

    Args:
        script: the path of the script, or a ``Script`` for several runs.
        arguments: the script's arguments.
        text: with a path, runs in place of the file's text.
        most: the most steps of the film.
        arrays: True to keep whole arrays.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(script, str):
        script = Script.at(script, text)
    script.enter_folder()
    film, status = Film(), 0
    process = os.getpid()
    with _as_main(script, arguments) as module:
        try:
            file, source = script.file, script.source
            if isinstance(source, str):  # for tracebacks, and the film's lines
                lines = source.splitlines(keepends=True)
                linecache.cache[file] = (len(source), None, lines, file)
            code = compile(source, file, "exec", dont_inherit=True)
            if Path(file).with_name(ENGINE).joinpath("__init__.py").exists():
                importlib.import_module(ENGINE)  # a film has the steps of an imported engine
            with record(os.path.basename(file), most=most, arrays=arrays) as film:
                exec(code, module)
        except BaseException as error:
            status = _status_of(error)
    if os.getpid() != process:
        _end_of_fork(status)
    return film, status


def _end_of_fork(status: int) -> NoReturn:
    """End a process that the script made by ``os.fork``: the first process has the film."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(status)


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
def _as_main(script: Script, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The names of a fresh main module; ``sys`` is set as for a script."""
    module = types.ModuleType("__main__")
    module.__file__ = script.file
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.modules["__main__"] = module
    sys.argv = [script.name, *arguments]
    # in front of the old entries: the first may be the path to tinynode
    sys.path.insert(0, os.path.dirname(script.file))
    try:
        yield vars(module)
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path

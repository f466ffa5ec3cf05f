"""Runs programs in the same process, where no other process can be started.

Requirement: a browser has no processes, and a program there meets the state of a new process. So
the program gets a new ``__main__``, an environment and a ``sys.path``, and imports tinynode anew.
Operators and backends of earlier programs are unknown to the program.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import os
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

OURS = ("tinynode", "tinynode_numpy", "tinynode_fast", "tinynode_course", "mynode")
"""The packages that a program imports anew; ``mynode`` is the learner's."""


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run ``[sys.executable, "-c", code]``: a stand-in of ``subprocess.run``.

    Args:
        command: The command; no other form is possible here.
        env: The environment of the program; None is the present environment.
        cwd: The working folder of the program; None is the present folder.
        options: Further arguments of ``subprocess.run``. The outputs are always kept, as text.

    Raises:
        OSError: The command is another one.
    """
    if len(command) != 3 or command[0] != sys.executable or command[1] != "-c":
        raise OSError(f"no other process can be started here: {' '.join(map(str, command))}")
    out, err = io.StringIO(), io.StringIO()
    environment, folder = os.environ if env is None else env, cwd or os.getcwd()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with as_new_process(environment, folder) as names, streams[0], streams[1]:
        status = _status_of(command[2], names)
    done = subprocess.CompletedProcess(list(command), status, out.getvalue(), err.getvalue())
    if options.get("check"):
        done.check_returncode()
    return done


def _status_of(code: str, names: dict[str, Any]) -> int:
    try:
        exec(compile(code, "<string>", "exec", dont_inherit=True), names)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def as_new_process(env: Mapping[str, str], folder: str) -> Iterator[dict[str, Any]]:
    """The names of a new ``__main__``; all changes are taken back at the end.

    Modules of the folder, and modules made by hand, are forgotten, as tinynode's own.
    """
    modules, path, environment = dict(sys.modules), list(sys.path), dict(os.environ)
    before = os.getcwd()
    main = types.ModuleType("__main__")
    linecache.clearcache()
    try:
        forget_ours()
        sys.modules["__main__"] = main
        entries = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
        sys.path[:] = ["", *entries, *(entry for entry in path if entry not in entries)]
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        yield vars(main)
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        forget_ours()
        new = set(sys.modules) - set(modules)
        for name in [name for name in new if _is_in(folder, sys.modules[name])]:
            del sys.modules[name]
        sys.modules.update(modules)
        linecache.clearcache()


def forget_ours() -> None:
    """Let the next import of tinynode run tinynode's files again."""
    for name in list(sys.modules):
        if name.partition(".")[0] in OURS or name.startswith("tinynode_check_"):
            del sys.modules[name]
    importlib.invalidate_caches()


def _is_in(folder: str, module: types.ModuleType) -> bool:
    """True for a module of a folder, and for a module made by hand."""
    if getattr(module, "__spec__", None) is None:
        return True
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    inside = Path(folder).resolve()
    return any(Path(place).is_relative_to(inside) for place in places if isinstance(place, str))

"""How the learner calls the course, in the learner's own shell.

Requirement: a learner can copy each printed command. On Windows, in a notebook,
and without an activated environment, ``python`` may be missing or another interpreter.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

MODULE = "-m tinynode.learn"

WRITTEN = f"python {MODULE}"
"""The command as the pages of the course write it."""

ON_WINDOWS = os.name == "nt"

IN_A_NOTEBOOK = "%learn"
"""The line magic of ``%load_ext tinynode.learn``."""


def program() -> str:
    """The start of each command, such as ``python -m tinynode.learn``."""
    if in_a_kernel():
        return IN_A_NOTEBOOK
    return f"{interpreter()} {MODULE}"


def in_a_kernel() -> bool:
    """True if this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


def interpreter() -> str:
    """The shortest words that start this interpreter in the learner's shell."""
    if not sys.executable:  # in a browser
        return "python"
    for name in ("python", "python3"):
        if _is_this_interpreter(shutil.which(name)):
            return name
    in_environment = sys.prefix != sys.base_prefix
    if ON_WINDOWS and not in_environment and shutil.which("py"):
        return f"py -{sys.version_info.major}.{sys.version_info.minor}"
    return quoted(_shortest(sys.executable))


def _is_this_interpreter(path: str | None) -> bool:
    """True for a program of this interpreter's folder that is the same file.

    A virtual environment's program is a link to another folder: the same file is not sufficient.
    """
    if path is None:
        return False
    here, other = (Path(one).parent.resolve() for one in (sys.executable, path))
    try:
        return here == other and os.path.samefile(path, sys.executable)
    except OSError:
        return False


def _shortest(path: str) -> str:
    """The path, or the path from the working folder: the shorter of the two."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive of Windows
        return path
    return min(relative, path, key=len)


def quoted(path: str) -> str:
    """A path as a word of the shell."""
    if ON_WINDOWS:
        return f'"{path}"' if " " in path else path
    return shlex.quote(path)


PROGRAM = program()
"""The command of the course in this process."""

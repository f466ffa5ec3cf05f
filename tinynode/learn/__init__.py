"""The door to the course: ``python -m tinynode.learn``, and ``%load_ext tinynode.learn``.

Requirement: tinynode runs without the course. So the course is another package,
``tinynode_course``, and the door imports the package at the first command, or for a film of the
learner's package.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

ENGINE = "mynode"
"""The name of the learner's package."""

MISSING = """\
python -m tinynode.learn: error: the course, package tinynode_course, is not installed; \
run: python -m pip install tinynode-course, or in a checkout: python -m pip install -e ."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the course; returns the exit status, 1 without the course."""
    if importlib.util.find_spec("tinynode_course") is None:
        print(MISSING, file=sys.stderr)
        return 1
    status: int = importlib.import_module("tinynode_course.command").main(arguments)
    return status


def add_command(commands: Any) -> None:
    """Name the course in the help of ``python -m tinynode``."""
    commands.add_parser(
        "learn", help="the course, python -m tinynode.learn: build a framework of your own"
    )


def filmed_engine(film: Any, most: int) -> AbstractContextManager[Any]:
    """Films the learner's package too, in a ``with`` block; nothing without the package."""
    is_used = not sys.modules.keys().isdisjoint({ENGINE, "tinynode_course"})
    if not is_used or importlib.util.find_spec("tinynode_course") is None:
        return nullcontext()
    recorder = importlib.import_module("tinynode_course.engine_recorder")
    filmed: AbstractContextManager[Any] = recorder.filmed(film, most)
    return filmed


def load_ipython_extension(shell: Any) -> None:
    """Add the course to a notebook; IPython calls this function for ``%load_ext``."""
    importlib.import_module("tinynode_course.notebook_magics").load(shell)

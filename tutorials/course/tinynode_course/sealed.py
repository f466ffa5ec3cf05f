"""Notices a learner's program that reads the course's solutions or hidden checks.

Requirement: a program of three lines that runs a solution does not pass, and nothing is guessed.
The interpreter reports each opened file and each started process (``sys.addaudithook``). So the
examiner notes a read of the sealed folders, unless the innermost known frame is of the checks. A
solution copied by hand is not noticed here.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tinynode_course import hidden, sources

COURSE = re.compile(r"tinynode(?:\W+learn|_course)\b")
"""The course in a command: ``tinynode.learn``, ``tinynode learn``, or the package."""


def sealed_folders(checks: Path) -> list[Path]:
    """The folders of solutions, and of hidden checks, for an examination by a file of checks."""
    own = [checks.parent.parent / "solutions", sources.tutorials() / "solutions"]
    return [*own, *hidden.folders()]


class Seal:
    """The sealed folders: ``broken`` has a description of each read by the learner's program."""

    def __init__(
        self, folders: Sequence[Path], checks: Path, line: Callable[[Any], list[str]]
    ) -> None:
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.broken: list[dict[str, Any]] = []
        self._checks = str(checks)
        self._line = line
        self._asleep = False

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook."""
        if event not in ("open", "subprocess.Popen", "os.system") or self._asleep:
            return
        self._asleep = True  # what happens below opens files too
        try:
            found = self._sealed(event, arguments)
            if found:
                self._note(found)
        finally:
            self._asleep = False

    def _sealed(self, event: str, arguments: tuple[Any, ...]) -> str:
        """The name of the sealed file of an event; "" for other events."""
        if event == "open":
            path = arguments[0]
            if not isinstance(path, str | bytes | os.PathLike):
                return ""  # an open file, by number
            with contextlib.suppress(OSError, ValueError):
                real = os.path.realpath(os.fsdecode(path))
                inside = [f for f in self.folders if real.startswith(f + os.sep)]
                return os.path.relpath(real, os.path.dirname(inside[0])) if inside else ""
            return ""
        said = " ".join(str(argument) for argument in arguments[:2])
        if COURSE.search(said) and re.search(r"\b(?:show|take)\b", said):
            return "learn show"
        inside = [folder for folder in self.folders if folder in said]
        return os.path.basename(inside[0]) if inside else ""

    def _note(self, found: str) -> None:
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._checks:
                return
            lines = self._line(frame)
            if lines:
                break
            frame = frame.f_back
        else:
            lines = []
        if found not in [one["path"] for one in self.broken]:
            self.broken.append({"path": found.replace(os.sep, "/"), "lines": lines})

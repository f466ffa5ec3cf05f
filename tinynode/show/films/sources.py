"""The program of a film: its running expressions, its names, and the lines of its files.

Requirement: a step shows the line of user code. A film reads the line at the time of display, not
during the recording. A film leaves out missing source: code typed into a prompt, or without a
file.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import ntpath
import os
import posixpath
import re
import sysconfig
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

from tinynode.devices import backend_names
from tinynode.show.texts import LONGEST_NOTE, cut

SourceLocation = tuple[str, int]
"""A file, and the number of a line."""

Place = tuple[str, int, int, int, int]
"""An expression: the file, the first and last line, the first and last column in bytes."""

WHOLE_FILE = 400
"""A file of at most so many lines is shown whole; of a longer file, windows of lines."""

AROUND = 40
"""The lines shown before and after a line of a long file."""


def user_frame() -> FrameType | None:
    """The frame of the user's code: the innermost frame outside of tinynode."""
    frame = inspect.currentframe()
    own = _own_packages()
    while frame is not None and _package_of(frame) in own:
        frame = frame.f_back
    return frame


def is_user_frame(frame: FrameType) -> bool:
    """True for a frame of the user's program: not of tinynode, of mynode or of a library."""
    return _package_of(frame) not in _own_packages() and not _is_of_library(frame)


def is_source_frame(frame: FrameType) -> bool:
    """True for a frame of the user's program, or of the package that a learner writes."""
    return _package_of(frame) == "mynode" or is_user_frame(frame)


def _is_of_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(("<frozen", *_library_folders()))


@functools.cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({sysconfig.get_path(name) + os.sep for name in names})


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__") or "").partition(".")[0]


@functools.cache
def _own_packages() -> frozenset[str]:
    """tinynode, backends, course, the learner's mynode; ``contextlib``: frames of ``with``."""
    backends = (f"tinynode_{name}" for name in backend_names())
    return frozenset({"tinynode", "tinynode_course", "mynode", "contextlib", *backends})


def user_places() -> tuple[Place, ...]:
    """The running expressions of the user's code, the innermost first.

    Two steps with equal places run at the same place of the program.
    """
    own = _own_packages()
    frame = inspect.currentframe()
    places = []
    while frame is not None:
        if _package_of(frame) not in own:
            places.append(place_of(frame.f_code, frame.f_lasti, frame.f_lineno))
        frame = frame.f_back
    return tuple(places)


@functools.lru_cache(maxsize=4096)
def place_of(code: CodeType, instruction: int, line: int) -> Place:
    """The place of an instruction; zeros for unknown columns."""
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    first, last, start, end = (number or 0 for number in positions)
    return code.co_filename, first or line, last or line, start, end


def script_names(frame: FrameType) -> list[tuple[str, Any]]:
    """The names of the frame's module (a script, a notebook), with the present values.

    The local names of running functions are left alone: a read would keep the values alive.
    """
    return [item for item in frame.f_globals.items() if not item[0].startswith("_")]


class Files:
    """The user's files in a film: whole, or a few windows of each."""

    def __init__(self, locations: Iterable[SourceLocation]) -> None:
        self.data: dict[str, dict[str, Any]] = {}
        self._keys: dict[SourceLocation, str] = {}
        wanted: dict[str, set[int]] = {}
        for file, line in locations:
            wanted.setdefault(file, set()).add(line)
        for file, numbers in wanted.items():
            texts = linecache.getlines(file)
            lines = [cut(line.rstrip("\r\n"), LONGEST_NOTE) for line in texts]
            for first, last in _windows(sorted(numbers), len(lines)):
                key = str(len(self.data))
                shown = lines[first - 1 : last]
                self.data[key] = {"name": last_part(file), "first": first, "lines": shown}
                for number in numbers:
                    if first <= number <= last:
                        self._keys[file, number] = key

    def at(self, location: SourceLocation | None) -> list[Any] | None:
        """``[key of a file, line]``; None if the film has no such line."""
        if location is None or location not in self._keys:
            return None
        return [self._keys[location], location[1]]


def _windows(numbers: list[int], length: int) -> list[tuple[int, int]]:
    """The first and last lines of a file's windows, without overlap."""
    if not length:
        return []
    if length <= WHOLE_FILE:
        return [(1, length)]
    windows: list[tuple[int, int]] = []
    for number in numbers:
        first, last = max(1, number - AROUND), min(length, number + AROUND)
        if windows and first <= windows[-1][1] + 1:
            windows[-1] = (windows[-1][0], last)
        else:
            windows.append((first, last))
    return windows


def last_part(file: str) -> str:
    """A file's name without the folder, for paths of every system."""
    if re.search(r"[\\/]ipykernel_\d+[\\/]\d+\.py$", file):
        return "notebook cell"  # its file is named by a mere number
    return posixpath.basename(ntpath.basename(file)) or file

"""What the learner has done, kept in the folder in which they work.

Requirement: nothing that a learner did is lost. The file is short and can be read; it is written
to another file first, which then takes its place, so that a full disk or Ctrl-C leaves the old
one. A file that cannot be understood is set aside, not overwritten; and in a folder where nothing
can be written the course goes on, and says that it cannot remember.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NAME = "tinynode-course.json"
FORMAT = 1


class Progress:
    """The learner's progress in a folder, by the key of a step.

    ``warnings`` are sentences for the learner: of what was wrong with the file.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.warnings: list[str] = []
        self._content: dict[str, Any] = {"format": FORMAT, "steps": {}}
        self._broken = False
        self._read()

    def _read(self) -> None:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except OSError as error:
            self.warnings.append(f"{NAME} cannot be read ({error.strerror}): starting without it")
            return
        except ValueError:  # no JSON, or no UTF-8
            self._set_aside("is damaged")
            return
        if _is_understood(content):
            self._content = content
        else:
            self._set_aside("was written by another version of the course")

    def _set_aside(self, reason: str) -> None:
        self._broken = True
        self.warnings.append(f"{NAME} {reason}: starting a new one; the old one is kept beside it")

    def of(self, key: str) -> dict[str, Any]:
        """What is known of a step: started, passed, attempts, hints."""
        state: dict[str, Any] = self._content["steps"].get(key, {})
        return state

    def note(self, key: str, **facts: Any) -> None:
        """Remember facts of a step, such as ``passed=True``."""
        steps = self._content["steps"]
        steps[key] = {**steps.get(key, {}), **facts}
        self._content["steps"] = dict(sorted(steps.items()))
        try:
            self._write()
        except OSError as error:
            print(f"your progress could not be saved: {error.strerror or error}", file=sys.stderr)

    def _write(self) -> None:
        if self._broken:
            self.path.replace(unused(self.path, "broken"))
            self._broken = False
        write_atomically(self.path, json.dumps(self._content, indent=2) + "\n")


def _is_understood(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return False
    steps = content.get("steps")
    return isinstance(steps, dict) and all(isinstance(one, dict) for one in steps.values())


def write_atomically(path: Path, text: str) -> None:
    """Write a file, or leave what was there.

    Raises:
        OSError: It cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o644)  # mkstemp makes it unreadable to others
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def unused(path: Path, word: str) -> Path:
    """A name beside a file that is not taken: ``step07.py.old-1``, ``step07.py.old-2`` ..."""
    number = 1
    while path.with_name(f"{path.name}.{word}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.{word}-{number}")

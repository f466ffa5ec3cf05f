"""The learner's progress, as a file in the learner's folder.

Requirement: no progress is lost. The file is short and readable. A new version is written to
another file first, then renamed, so a full disk or Ctrl-C leaves the old version. A file of
unknown form is renamed, not overwritten. In a read-only folder the course goes on, with a warning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tinynode.atomic_file import replace_file
from tinynode.commands.command_line import CommandError
from tinynode.safe_files import parse_json, read_file
from tinynode_course import sources
from tinynode_course.shell import PROGRAM as PROGRAM
from tinynode_course.sources import Step

NAME = "tinynode-course.json"
FORMAT = 3
MOST_BYTES = 1 << 22
"""The bytes of a file of progress; a larger file is not read."""
MOST_DEPTH = 8

FIRST_EDITION = {
    "13": "14",
    "19": "registry",
    "20": "backward_network",
    "21": "portability",
    "22": "devices",
    "23": "fast_path",
    "24": "compile",
    "25": "your_own_backend",
    "capstone": "gradient_penalty",
}
"""Today's keys of the steps of format 1; its other steps had other exercises."""

SECOND_EDITION = {
    "07": ("11",),
    "08": ("12",),
    "09": ("13",),
    "10": ("15",),
    "11": ("07",),
    "12": ("08", "09"),
    "13": ("14",),
    "14": ("16",),
    "15": ("17",),
    "16": (),
    "17": (),
    "18": (),
    "19": (),
    "20": (),
}
"""Today's keys of the steps that format 2 knew by another key; () for another exercise now."""


class Progress:
    """The learner's progress in a folder, by the key of a step.

    ``warnings`` are sentences for the learner about a damaged file.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.warnings: list[str] = []
        self._content: dict[str, Any] = {"format": FORMAT, "steps": {}}
        self._broken = False
        self._read()

    def _read(self) -> None:
        try:
            content = parse_json(read_file(self.path, MOST_BYTES), MOST_DEPTH)
        except FileNotFoundError:
            return
        except OSError as error:
            if self.path.is_file():  # else nothing can replace it
                self._set_aside(f"cannot be read ({error.strerror})")
            else:
                self.warnings.append(f"{NAME} cannot be read ({error.strerror}): remove it")
            return
        except ValueError:  # no JSON, no UTF-8, or nested too deeply
            self._set_aside("is damaged")
            return
        moved = _of_today(content)
        if _is_understood(moved):
            self._content = moved
            if moved is not content:
                self.warnings.append(f"{NAME} has the old order of the steps: {MOVED}")
        else:
            self._set_aside("was written by another version of the course")

    def _set_aside(self, reason: str) -> None:
        self._broken = True
        self.warnings.append(f"{NAME} {reason}: starting a new one; the old one is kept beside it")

    def of(self, key: str) -> dict[str, Any]:
        """The facts of a step, such as attempts; those of wrong types are left out."""
        state: dict[str, Any] = self._content["steps"].get(key, {})
        return {
            name: fact
            for name, fact in state.items()
            if name not in FACTS or has_form(fact, FACTS[name])
        }

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


MOVED = (
    "what you did stands at today's numbers. Broadcasting and the first network come before "
    "memory now, and steps 22 to 26 have new exercises. The list: python -m tinynode.learn list"
)


def _of_today(content: Any) -> Any:
    """The content of a file with today's keys; files of other forms come back as they are."""
    steps = content.get("steps") if isinstance(content, dict) else None
    if not isinstance(steps, dict) or content.get("format") not in (1, 2):
        return content
    moved: dict[str, Any] = {}
    for key, facts in steps.items():
        if content["format"] == 1:
            today: tuple[str, ...] = (FIRST_EDITION[key],) if key in FIRST_EDITION else ()
        else:
            today = SECOND_EDITION.get(key, (key,))
        moved |= dict.fromkeys(today, facts)
    return {**content, "format": FORMAT, "steps": moved}


def _is_understood(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return False
    steps = content.get("steps")
    return isinstance(steps, dict) and all(isinstance(facts, dict) for facts in steps.values())


FACTS: dict[str, tuple[type, ...]] = {
    "attempts": (int,),
    "cell": (str,),
    "cells": (dict, str),
    "hinted": (dict, int),
    "hints": (int,),
    "hunt": (dict, int),
    "passed": (bool,),
    "predictions": (list, str),
    "review": (dict, list, int),
    "started": (bool,),
    "taken": (dict, dict, str),
}
"""The types of the facts of a step: of the fact, then of its values, then of their values."""


def has_form(value: Any, kinds: tuple[type, ...]) -> bool:
    """True if the value has the first type, and its own values have the next ones."""
    if type(value) is not kinds[0]:
        return False
    if len(kinds) == 1:
        return True
    inner: Any = value.values() if isinstance(value, dict) else value
    return all(has_form(one, kinds[1:]) for one in inner)


def write_atomically(path: Path, text: str) -> None:
    """Write a file completely, or leave the old file.

    Raises:
        OSError: The file cannot be written.
    """
    replace_file(path, text.encode())


def write_file(path: Path, text: str, keep: bool = False) -> Path | None:
    """Write a file, and missing folders.

    Args:
        keep: True to keep an old file under another name; returns the kept file.

    Raises:
        CommandError: The file cannot be written.
    """
    kept = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if keep and path.exists():
            kept = unused(path, "old")
            path.rename(kept)
        write_atomically(path, text)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", status=1) from None
    return kept


def unused(path: Path, word: str) -> Path:
    """A free name beside a file: ``step11.py.old-1``, ``step11.py.old-2`` ..."""
    number = 1
    while path.with_name(f"{path.name}.{word}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.{word}-{number}")


def open_progress() -> Progress:
    """The learner's progress in this folder; prints warnings about a damaged file."""
    progress = Progress(Path.cwd())
    for warning in progress.warnings:
        print(warning, file=sys.stderr)
    return progress


def next_step(progress: Progress, after: Step | None = None) -> Step | None:
    """The next open step with an exercise; the search goes on at the first step."""
    steps = sources.steps()
    later = [s for s in steps if after is None or sources.order(s) > sources.order(after)]
    for step in [*later, *steps]:
        facts = progress.of(step.key)
        if not (facts.get("passed") or facts.get("taken")) and step.stub.exists():
            return step
    return None


def say_next(progress: Progress, after: Step | None = None) -> None:
    """Print the next open step and the commands."""
    step = next_step(progress, after)
    if step is None:
        print("All exercises are done.")
    elif progress.of(step.key).get("started"):
        work = "mynode" if step.builds else step.work
        print(f"Go on with {step.title}: edit {work}, then {PROGRAM} check {step.key}")
    else:
        print(f"Next: {step.title}")
        print(f"  {PROGRAM} run {step.key}")
        print(f"  {PROGRAM} start {step.key}")

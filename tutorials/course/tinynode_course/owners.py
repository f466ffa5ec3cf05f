"""Whose definitions are in a learner's work: written, taken from the reference, or to write.

Requirement: a teacher sees the taken definitions, in ``check --json`` and in ``class judge``. So
the work is a function from paths to texts: files of a folder, or the copied files of a submission.
No program of the learner's runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinynode_course import exercises, mynode, sources
from tinynode_course.progress import Progress
from tinynode_course.sources import Step

Digests = dict[str, dict[str, str]]
"""Digests of definitions, by file of ``mynode`` and by name."""


@dataclass(frozen=True)
class Work:
    """A learner's texts.

    ``read`` gives the text of a path, such as ``mynode/core/variable.py``; "" for a missing file.
    ``stage`` is the last started step of ``mynode``; "" without such a step.
    """

    read: Callable[[str], str]
    stage: str
    taken: Digests = field(default_factory=dict)


def work_in(folder: Path, progress: Progress) -> Work:
    """The work in a learner's folder."""

    def read(path: str) -> str:
        file = folder / path
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    keys = [step.key for step in mynode.steps_that_build()]
    stage = ([key for key in keys if progress.of(key).get("started")] or keys or [""])[-1]
    return Work(read, stage, taken_by(progress))


def taken_by(progress: Progress) -> Digests:
    """The digests of all definitions from the reference, by the command ``take``."""
    found: Digests = {}
    for step in mynode.builders():
        record = progress.of(step.key).get("taken")
        for path, names in record.items() if isinstance(record, dict) else ():
            found[path] = {**found.get(path, {}), **names}
    return found


def definitions_of(step: Step, work: Work) -> dict[str, Any]:
    """The owners of a step's definitions, as numbers, and the names of equal definitions.

    A definition with the syntax tree of the reference may be honest: short functions have a
    single form. So the names are listed, and nothing is concluded.
    """
    counts = {"own": 0, "same as reference": 0, "taken": 0, "to write": 0}
    same = []
    for where, text, stub, reference, taken in _files_of(step, work):
        here, stubs = definitions(text), definitions(stub)
        for name, there in definitions(reference).items():
            one = here.get(name)
            if name in stubs and stubs[name].meaning == there.meaning:
                continue  # given, not to be written
            if one is None or (name in stubs and stubs[name].meaning == one.meaning):
                counts["to write"] += 1
            elif taken.get(name) == exercises.digest(one):
                counts["taken"] += 1
            elif one.meaning == there.meaning:
                counts["same as reference"] += 1
                same.append(f"{where}{name}")
            else:
                counts["own"] += 1
    return {"definitions": counts, "same_as_reference": same}


def has_begun(step: Step, work: Work) -> bool:
    """True if a new definition of a step of ``mynode`` is more than a stub.

    A changed definition says nothing: the definition is older work of the learner's.
    """
    stubs = mynode.read_files(step.stub)
    for path, names in _added_by(step.key).items():
        there = definitions(work.read(f"{mynode.NAME}/{path}"))
        given = definitions(stubs.get(path, ""))
        for name in names & there.keys():
            if name not in given or given[name].meaning != there[name].meaning:
                return True
    return False


@functools.lru_cache(maxsize=256)
def definitions(text: str) -> Mapping[str, mynode.Definition]:
    """The definitions of a text by name; {} for a text that is no Python."""
    try:
        return mynode.definitions(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _files_of(step: Step, work: Work) -> list[tuple[str, str, str, str, dict[str, str]]]:
    """Each file of a step: name, learner's text, stub, reference, and taken definitions."""
    if not step.builds:
        stub, reference = (path.read_text(encoding="utf-8") for path in (step.stub, step.solution))
        return [("", work.read(step.work), stub, reference, {})]
    stubs = mynode.read_files(step.stub)
    found = []
    for path, names in _names_of(step.key, work.stage).items():
        there = mynode.definitions(mynode.changed(step.key)[path])
        new = "\n\n\n".join(there[name].text for name in names)
        mine = work.read(f"{mynode.NAME}/{path}")
        found.append((f"{path}: ", mine, stubs.get(path, ""), new, work.taken.get(path, {})))
    return found


@functools.cache
def _names_of(key: str, stage: str) -> dict[str, list[str]]:
    """The definitions of a step, without later changes up to a stage, by file."""
    later = [step.key for step in mynode.steps_that_build() if key < step.key <= stage]
    changed = {(path, name) for one in later for path, name in _changed_by(one)}
    found: dict[str, list[str]] = {}
    for path, name in _changed_by(key):
        if (path, name) not in changed:
            found.setdefault(path, []).append(name)
    return found


@functools.cache
def _changed_by(key: str) -> list[tuple[str, str]]:
    """The new and changed definitions of a step."""
    paths = mynode.changed(key)
    return [(path, name) for path in paths for name in mynode.new_definitions(key, path)]


@functools.cache
def _added_by(key: str) -> dict[str, set[str]]:
    """The new definitions of a step, without given ones, by file."""
    stubs = mynode.read_files(sources.find(key).stub)
    before, after = mynode.before(key), mynode.changed(key)
    found: dict[str, set[str]] = {}
    for path, text in after.items():
        old, given = definitions(before.get(path, "")), definitions(stubs.get(path, ""))
        found[path] = {
            name
            for name, one in definitions(text).items()
            if name not in old and not (name in given and given[name].meaning == one.meaning)
        }
    return found

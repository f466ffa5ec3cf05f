"""Finds the function behind a failed check: the reference's functions come in, one at a time.

Requirement: "your code:" names the wrong function. A check of a whole network can't know which
of ten functions is wrong. So each of the learner's functions that differs from the reference's is
exchanged in a copy of the work, and the failed check runs again. If the check passes, the
exchanged function was the wrong one. If no exchange helps, nothing is concluded: a program of
another design has other functions.

The search runs as a program, with a time limit by the caller. The program reads a job, and prints
a line of JSON, the path and the name of a unit:

    python -m tinynode_course.swapping job.json

A unit is a function, a method such as ``Square.backward``, a class or a variable of a module.

Source: Zeller, Yesterday, my program worked. Today, it does not. Why? ESEC/FSE 1999: the change
that makes a test fail is found by tests of programs with some of the changes.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinynode_course import examiner, mynode, sources
from tinynode_course.checks import CheckFailed
from tinynode_course.mynode import Files


@dataclass(frozen=True)
class Unit:
    """A function, method, class or variable: ``name``, and the lines from ``start`` to ``end``.

    The lines are counted from 0, and ``end`` is excluded. ``meaning`` is equal for units that
    differ in comments and docstrings only.
    """

    name: str
    start: int
    end: int
    line: int
    meaning: str


@dataclass(frozen=True)
class Failure:
    """The outcome of a check: ``kind`` is "none" for a pass, "wrong", or "error".

    ``line`` is the line of the check that found a wrong quantity.
    """

    kind: str
    what: str
    message: str
    line: int = 0


def units(text: str) -> dict[str, Unit]:
    """The units of a file by name: each class, then its methods.

    Raises:
        SyntaxError: The text is no Python.
    """
    found: dict[str, Unit] = {}
    for node in ast.parse(text).body:
        name = mynode.name_of(node)
        if name:
            found[name] = _unit(name, node)
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef):
                whole = f"{name}.{inner.name}"
                found[whole] = _unit(whole, inner)
    return found


def _unit(name: str, node: ast.stmt) -> Unit:
    decorators = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    return Unit(name, start, node.end_lineno or node.lineno, node.lineno, mynode.meaning_of(node))


def text_of(text: str, one: Unit) -> str:
    """The lines of a unit, without the indentation of a method."""
    return textwrap.dedent("\n".join(text.splitlines()[one.start : one.end]))


def unit_at(text: str, line: int) -> str:
    """The name of the innermost unit with a line, counted from 1; "" for none."""
    inside = [one for one in units(text).values() if one.start < line <= one.end]
    return min(inside, key=lambda one: one.end - one.start).name if inside else ""


def different(mine: str, reference: str) -> list[str]:
    """The units of a reference that a learner's file lacks, or has with another meaning."""
    here, there = units(mine), units(reference)
    return [name for name, one in there.items() if _differs(here.get(name), one)]


def _differs(mine: Unit | None, reference: Unit) -> bool:
    return mine is None or mine.meaning != reference.meaning


def exchanged(mine: str, reference: str, name: str) -> str:
    """A learner's file with one unit of the reference, and with the imports of that unit."""
    new = text_of(reference, units(reference)[name])
    here = units(mine)
    if name in here:
        one = here[name]
        text = _with_lines(mine, one.start, one.end, new, "." in name)
    elif "." in name and name.partition(".")[0] in here:
        end = here[name.partition(".")[0]].end
        text = _with_lines(mine, end, end, f"\n{new}", True)
    elif "." in name:
        return mine
    else:
        text = f"{mine}\n\n{new}\n"
    return mynode.with_imports(text, _needed(mynode.imports(reference), new))


def _with_lines(text: str, start: int, end: int, new: str, is_method: bool) -> str:
    lines = text.splitlines()
    lines[start:end] = (textwrap.indent(new, "    ") if is_method else new).splitlines()
    return "\n".join(lines) + "\n"


def _needed(imports: Sequence[str], code: str) -> list[str]:
    """The import statements with names that a unit uses."""
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return [line for line in imports if line.split()[-1].split(".")[0] in used]


@dataclass(frozen=True)
class ExchangeJob:
    """What to search: all fields are of JSON.

    Attributes:
        checks: the file of the checks.
        number: the failed check, counted from 0.
        name: the module of the work, "mynode" or "compile".
        mine: the learner's files, by path.
        reference: the reference's files, by path.
        new: the definitions of the step, a path and a name in each.
    """

    checks: str
    number: int
    name: str
    mine: Files
    reference: Files
    new: list[list[str]]


class Search:
    """The exchanges of a job, in an empty folder."""

    def __init__(self, job: ExchangeJob, folder: Path) -> None:
        is_package = job.name == mynode.NAME
        module = sources.load(Path(job.checks), f"tinynode_check_{Path(job.checks).stem}")
        self._job = job
        self._check = examiner.checks_of(module, is_package)[job.number]
        self._root = folder / job.name if is_package else folder
        self._classes = {
            name.partition(".")[0]
            for text in job.reference.values()
            for name in units(text)
            if "." in name
        }
        sys.path.insert(0, str(folder))

    def found(self) -> tuple[str, str] | None:
        """The path and the name of the unit whose exchange makes the check pass.

        Without such a unit, the unit with which the check fails at another quantity, at the same
        line of the check or later. None if there is none, and if the check passes without any
        exchange.
        """
        mynode.write_files(self._job.mine, self._root)
        before = self._failure()
        if before.kind == "none":
            return None
        further = None
        for path, name in self._candidates(before.message):
            after = self._failure_with(path, name)
            if after.kind == "none":
                return path, name
            is_other = after.kind == "wrong" and after.what != before.what
            if further is None and is_other and after.line >= before.line:
                further = path, name
        return further

    def _failure_with(self, path: str, name: str) -> Failure:
        """What the check says of the work with a unit of the reference."""
        mine = self._job.mine.get(path, "")
        text = exchanged(mine, self._job.reference[path], name)
        mynode.write_files({path: text}, self._root)
        after = self._failure()
        mynode.write_files({path: mine}, self._root)
        return after

    def _failure(self) -> Failure:
        """What the check says of the files as they are."""
        for known in [one for one in sys.modules if one.split(".")[0] == self._job.name]:
            del sys.modules[known]
        importlib.invalidate_caches()
        try:
            self._check(importlib.import_module(self._job.name))
        except CheckFailed as error:
            called = error.__traceback__.tb_next if error.__traceback__ else None
            line = called.tb_lineno if called else 0
            return Failure("wrong", error.what, f"{error.what} {error.look}", line)
        except BaseException as error:
            return Failure("error", type(error).__name__, str(error))
        return Failure("none", "", "")

    def _candidates(self, message: str) -> list[tuple[str, str]]:
        """The units to exchange: first the units in the message, then the others of the step.

        A class with methods comes last: a method is the smaller exchange.
        """
        found = [
            (path, name)
            for path, text in self._job.reference.items()
            for name in different(self._job.mine.get(path, ""), text)
        ]
        words = set(re.findall(r"\w+", message.lower()))

        def order(one: tuple[str, str]) -> tuple[bool, bool, bool]:
            path, name = one
            is_named = set(name.lower().split(".")) <= words
            is_new = [path, name.partition(".")[0]] in self._job.new
            return name in self._classes, not is_named, not is_new

        return sorted(found, key=order)


def main(arguments: list[str]) -> int:
    """Print the unit of a job, a file of JSON; the folder of the file is for the copies."""
    path = Path(arguments[0])
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    job = ExchangeJob(**json.loads(path.read_text(encoding="utf-8")))
    folder = path.parent / "work"
    folder.mkdir()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = Search(job, folder).found()
    output.write(json.dumps(found) + "\n")
    output.flush()
    os._exit(0)  # without waiting for threads of the learner's


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

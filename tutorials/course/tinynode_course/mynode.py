"""The learner's package ``mynode``: stages, stubs and owners of definitions.

Requirement: the learner writes a framework, step by step, and owns each line. So a step brings
stubs of new definitions only, and never replaces a definition of the learner's. To skip
a step, a learner takes the reference's definitions of the step, by name.

The reference of a step is a folder of whole files, ``tutorials/solutions/step11``, with the files
that the step adds or changes. The **stage** of step 11 has each file in its newest version up to
step 11. Files are dictionaries of texts by path, such as ``core/variable.py``.

The unit is a **definition**: a function, class or variable at the top level of a file.
"""

from __future__ import annotations

import ast
import atexit
import difflib
import importlib
import importlib.metadata
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode_course import engine_recorder, sources
from tinynode_course.sources import Step

NAME = "mynode"

SHOWN = re.compile(r"^<!-- mynode: (\S+)((?: [A-Za-z_]\w*)*) -->$", re.MULTILINE)
"""A line of a page that shows definitions: ``<!-- mynode: core/backprop.py backward -->``."""

Files = dict[str, str]
"""Texts of files by path, relative to the package."""


def read_files(folder: Path) -> Files:
    """The Python files of a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def write_files(files: Files, folder: Path) -> None:
    """Write the files into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


NEEDS = {
    "bytes": "13",
    "diffusion": "13",
    "experts": "17",
    "reinforce": "17",
    "splats": "13",
    "tiled_attention": "19",
}
"""For an elective that builds a part of ``mynode``: the last step that the elective needs.

The part of an elective has files of its own, so electives can be done in any order.
"""


def builders() -> list[Step]:
    """The steps that build ``mynode``, in order, then the electives."""
    return [step for step in sources.steps() if step.part.is_dir()]


def steps_that_build() -> list[Step]:
    """The numbered steps that build ``mynode``, in order."""
    return [step for step in builders() if step.kind == "step"]


def earlier(step: Step) -> list[Step]:
    """The steps with the parts of ``mynode`` that a step or an elective builds on, in order."""
    numbered = steps_that_build()
    if step.kind == "step":
        return [one for one in numbered if one.key < step.key]
    last = NEEDS.get(step.key, numbered[-1].key)
    return [one for one in numbered if one.key <= last]


def changed(key: str) -> Files:
    """The reference's files that a step adds or changes."""
    step = sources.find(key)
    return read_files(step.part)


def reference(key: str) -> Files:
    """The stage of a step: the whole package, by the reference.

    Raises:
        CommandError: No step up to this one builds ``mynode``.
    """
    last = sources.find(key)
    files = before(key) | read_files(last.part)
    if not files:
        raise CommandError(f"{NAME} begins after step {key}")
    return files


def whole() -> Files:
    """The package after all steps and electives, by the reference."""
    files: Files = {}
    for step in builders():
        files |= read_files(step.part)
    return files


def mistake(key: str, path: str, old: str, new: str, *more: tuple[str, str]) -> Files:
    """A file of the stage of a step with a wrong text, for the ``MISTAKES`` of checks.

    ``more`` has further pairs of an old and a new text.

    Raises:
        ValueError: The file does not have an old text.
    """
    text = reference(key)[path]
    for right, wrong in ((old, new), *more):
        if right not in text:
            raise ValueError(f"{path} of step {key} does not have {right!r}")
        text = text.replace(right, wrong)
    return {path: text}


def before(key: str) -> Files:
    """The stage before a step; {} for the first step."""
    files: Files = {}
    for step in earlier(sources.find(key)):
        files |= read_files(step.part)
    return files


@dataclass(frozen=True)
class Definition:
    """A definition in a file: the lines ``start`` to ``end``, counted from 0, ``end`` excluded."""

    name: str
    start: int
    end: int
    text: str
    meaning: str
    """The syntax tree without docstrings: equal for texts that differ in comments only."""


def definitions(text: str) -> dict[str, Definition]:
    """The definitions of a file by name, with decorators, and with the comment lines before.

    Raises:
        SyntaxError: The text is no Python.
    """
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        name = name_of(node)
        if not name:
            continue
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(one.lineno for one in decorators)]) - 1
        while start > 0 and lines[start - 1].startswith("#"):
            start -= 1
        end = node.end_lineno or node.lineno
        found[name] = Definition(name, start, end, "\n".join(lines[start:end]), meaning_of(node))
    return found


def name_of(node: ast.stmt) -> str:
    """The name that a statement defines; "" for other statements."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    return target.id if isinstance(target, ast.Name) else ""


def meaning_of(node: ast.stmt) -> str:
    """The syntax tree of a statement, without docstrings."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner):
            inner.body = inner.body[1:] or [ast.Pass()]
    return ast.dump(node)


def imports(text: str) -> list[str]:
    """The import statements at the top level of a file, a name in each."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            found += [ast.unparse(ast.Import([alias])) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            one_by_one = [ast.ImportFrom(node.module, [name], node.level) for name in node.names]
            found += [ast.unparse(statement) for statement in one_by_one]
    return found


def with_imports(text: str, wanted: list[str]) -> str:
    """The text with the missing import statements, after the imports that are there."""
    there = imports(text)
    missing = [line for line in wanted if line not in there]
    if not missing:
        return text
    lines = text.splitlines()
    place = 0
    body = ast.parse(text).body
    for number, node in enumerate(body):
        docstring = number == 0 and isinstance(node, ast.Expr)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            place = node.end_lineno or place
    gap = [""] if place and not there else []
    lines[place:place] = gap + missing
    return "\n".join(lines).rstrip("\n") + "\n"


def add_stubs(text: str, stubs: str, order: Sequence[str] = ()) -> tuple[str, list[str]]:
    """A learner's file with the missing definitions of a file of stubs, and their names.

    Existing definitions stay unchanged. ``order`` has the names of the reference's file:
    a base class is put before the classes that will inherit from it.

    Raises:
        SyntaxError: The learner's file is no Python.
    """
    there = definitions(text)
    new = [one for name, one in definitions(stubs).items() if name not in there]
    text = with_imports(text, imports(stubs))
    for one in new:
        text = _inserted(text, one, order)
    return text, [one.name for one in new]


def _inserted(text: str, new: Definition, order: Sequence[str]) -> str:
    """The text with a new definition before the definitions that follow in the order."""
    there = definitions(text)
    following = order[order.index(new.name) + 1 :] if new.name in order else ()
    starts = [there[name].start for name in following if name in there]
    lines = text.rstrip("\n").splitlines()
    if starts:
        lines[min(starts) : min(starts)] = [*new.text.splitlines(), "", ""]
    else:
        lines += ["", "", *new.text.splitlines()]
    return "\n".join(lines) + "\n"


def tasks(step: Step) -> dict[str, str]:
    """The tasks of a step by file: in the docstring of a stub, the text from "Step 5: " on.

    The mark of an elective is "Elective bytes: ".
    """
    start = f"Step {int(step.key)}: " if step.kind == "step" else f"Elective {step.key}: "
    found = {}
    for path, text in read_files(step.stub).items():
        said = ast.get_docstring(ast.parse(text)) or ""
        _, mark, task = said.partition(start)
        if mark:
            found[path] = " ".join(task.split())
    return found


def taken(text: str, key: str, path: str, left_out: Collection[str] = ()) -> tuple[str, list[str]]:
    """A learner's file with the reference's definitions of a step, and their names.

    Args:
        text: The learner's file.
        key: The key of the step.
        path: The path of the file in the package.
        left_out: Names of definitions that stay as they are.

    Raises:
        SyntaxError: The learner's file is no Python.
    """
    after = changed(key)[path]
    new = [name for name in new_definitions(key, path) if name not in left_out]
    text = with_imports(text, imports(after))
    for name in new:
        text = with_definition(text, definitions(after)[name], list(definitions(after)))
    return text, new


def with_definition(text: str, definition: Definition, order: Sequence[str] = ()) -> str:
    """The text with a definition, in place of the definition of this name, or in order."""
    there = definitions(text).get(definition.name)
    if there is None:
        return _inserted(text, definition, order)
    lines = text.splitlines()
    lines[there.start : there.end] = definition.text.splitlines()
    return "\n".join(lines) + "\n"


def merged(text: str, cell: str, stubs: str) -> tuple[str, list[str]]:
    """A learner's file with the definitions of a notebook's cell, and their names.

    An unchanged stub replaces no definition.

    Raises:
        SyntaxError: The learner's file or the cell is no Python.
    """
    untouched = {name: one.meaning for name, one in definitions(stubs).items()}
    new = [
        one for name, one in definitions(cell).items() if one.meaning != untouched.get(name, "")
    ]
    text = with_imports(text, imports(cell))
    for one in new:
        text = with_definition(text, one)
    return text, [one.name for one in new]


def new_definitions(key: str, path: str) -> list[str]:
    """The names of the definitions that a step adds to a file, or changes."""
    earlier = definitions(before(key).get(path, ""))
    now = definitions(changed(key).get(path, ""))
    return [
        name
        for name, one in now.items()
        if name not in earlier or earlier[name].meaning != one.meaning
    ]


@dataclass(frozen=True)
class Excerpt:
    """Definitions of a file of ``mynode`` for a page; ``marked`` are new lines, from 1.

    ``marked`` is empty if all lines are new.
    """

    path: str
    code: str
    marked: tuple[int, ...]


def excerpt(key: str, path: str, names: list[str]) -> Excerpt:
    """The definitions as they are after a step, with marks at the lines that the step changes.

    Args:
        key: The step.
        path: A file of ``mynode``, such as ``core/variable.py``.
        names: The definitions; without names, the whole file.

    Raises:
        KeyError: The stage has no such file or definition.
    """
    now, earlier = reference(key)[path], before(key).get(path, "")
    if not names:
        return Excerpt(path, now.rstrip("\n"), _marks(earlier, now))
    parts: list[str] = []
    marked: list[int] = []
    some_old = False
    for name in names:
        here = definitions(now)[name]
        there = definitions(earlier).get(name)
        first = sum(len(part.splitlines()) + 2 for part in parts)
        lines = range(1, len(here.text.splitlines()) + 1)
        marks = tuple(lines) if there is None else _marks(there.text, here.text)
        some_old = some_old or there is not None
        marked += [first + line for line in marks]
        parts.append(here.text)
    return Excerpt(path, "\n\n\n".join(parts), tuple(marked) if some_old else ())


def _marks(earlier: str, now: str) -> tuple[int, ...]:
    """The lines of a text that are new or changed; () if all are."""
    if not earlier:
        return ()
    matcher = difflib.SequenceMatcher(None, earlier.splitlines(), now.splitlines(), False)
    marks: list[int] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("replace", "insert"):
            marks += range(start + 1, end + 1)
    return tuple(marks)


def parts(text: str, key: str) -> list[str | Excerpt]:
    """The text of a cell, with an excerpt in place of each line ``<!-- mynode: ... -->``."""
    found: list[str | Excerpt] = []
    place = 0
    for match in SHOWN.finditer(text):
        found += [
            text[place : match.start()].strip("\n"),
            excerpt(key, match[1], match[2].split()),
        ]
        place = match.end()
    return [part for part in (*found, text[place:].strip("\n")) if part]


def refuse_stranger() -> None:
    """Refuse an installed package with the name of the learner's: the index has one, by others.

    Raises:
        CommandError: A distribution of this name is installed.
    """
    try:
        found = importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        return
    raise CommandError(
        f"another package {NAME} is installed in {found.locate_file('')}. Yours is a folder that "
        f"you write here. Remove the other package: python -m pip uninstall {NAME}"
    )


@dataclass
class Source:
    """Where ``use_mynode`` finds the package: the learner's folder, or None for the reference."""

    folder: Path | None = None


source = Source()


def use_mynode(step: str) -> None:
    """Make ``import mynode`` give the package as it is after a step.

    The reference of the stage is written into a temporary folder, as real files, for debuggers
    and tracebacks. ``python -m tinynode.learn run 11 --mine`` takes the learner's package.

    Args:
        step: The key of the step, such as "07".

    Raises:
        CommandError: No such step, or no step up to this one builds ``mynode``.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]
    folder = source.folder
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix=f"{NAME}-{step}-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        write_files(reference(step), folder / NAME)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    engine_recorder.found(importlib.import_module(NAME))

"""The exercises of the course in a notebook: ``%load_ext tinynode.learn``.

Requirement: notebook and terminal share the learner's folder, files and progress: see ``home``. A
cell begins with the name of the exercise, and running the cell saves the code:

    %%exercise 05                       the cell is the file step05.py
    %%exercise 11 core/backprop.py      its definitions go into mynode/core/backprop.py, by name
    check()                             checks the exercise of the last such cell
    hint()                              gives a hint, the next one each time
    %learn take 06                      any command of the course

A cell never drops work: a file or a definition that was edited elsewhere is kept under another
name.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import shlex
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError
from tinynode_course import command, exercises, mynode, notebooks, progress, sources
from tinynode_course.mynode import NAME, Files
from tinynode_course.progress import Progress, open_progress, unused, write_file
from tinynode_course.sources import Step


def load(shell: Any) -> None:
    """Add the magics, and the functions ``check`` and ``hint``, to an IPython shell."""
    course = Course(shell)
    shell.register_magic_function(course.exercise, "cell", "exercise")
    shell.register_magic_function(course.learn, "line", "learn")
    course.add_functions()


class Course:
    """The course in a notebook; ``key`` is the step of the last exercise cell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.key = ""

    def add_functions(self) -> None:
        """Give the notebook ``check`` and ``hint``; a cell may have used these names."""
        self._shell.push({"check": self.check, "hint": self.hint})

    def exercise(self, line: str, cell: str) -> None:
        """Save the code of a cell: a file of the learner's, or definitions of mynode."""
        self.add_functions()
        try:
            with contextlib.chdir(home()):
                said = save(line.split(), cell, self)
            if home() != Path.cwd():
                said.append(f"Your folder is {home()}")
            print("\n".join(said))
        except CommandError as error:
            print(f"not saved: {error}")

    def learn(self, line: str) -> None:
        """Run a command of the course, such as ``%learn take 06``."""
        run(shlex.split(line))

    def check(self, step: str | int = "") -> None:
        """Check the exercise of the last cell ``%%exercise``, or of a step."""
        self._run("check", step)

    def hint(self, step: str | int = "") -> None:
        """Print the next hint for the last cell ``%%exercise``, or for a step."""
        self._run("hint", step)

    def _run(self, name: str, step: str | int) -> None:
        key = str(step) or self.key
        if key:
            run([name, key])
        else:
            print(f'Run a cell that begins with %%exercise first, or name the step: {name}("05")')


def run(arguments: list[str]) -> None:
    """Run a command; errors in the arguments leave the kernel running."""
    try:
        with contextlib.chdir(home()):
            command.main(arguments)
    except SystemExit:  # argparse has printed the reason
        return


def home() -> Path:
    """The learner's folder: of the progress file, else of the notebook.

    The progress file lies in the notebook's folder, or one or two folders above. Notebooks in
    ``tinynode-notebooks`` belong to the folder in which the command ``notebooks`` was given.
    """
    here = Path.cwd()
    for folder in (here, *here.parents[:2]):
        if (folder / progress.NAME).is_file():
            return folder
    return here.parent if here.name == notebooks.FOLDER else here


def save(words: list[str], cell: str, course: Course) -> list[str]:
    """Save the code of a cell; returns sentences about the result.

    Args:
        words: The step, and for mynode the path of the file.
        cell: The code.
        course: The course; ``key`` is set.

    Raises:
        CommandError: No such exercise, or an earlier step is open, or the code is no Python.
    """
    if not words:
        raise CommandError("name the step: %%exercise 05")
    step = sources.find_exercise(words[0])
    course.key = step.key
    if not step.builds:
        return _save_file(step, cell)
    stubs = mynode.read_files(step.stub)
    path = words[1] if len(words) > 1 else ""
    known = {*stubs, *mynode.reference(step.key)}
    if path not in known:
        files = ", ".join(sorted(stubs)) or ", ".join(sorted(known))
        raise CommandError(f"name a file of {NAME}: %%exercise {step.key} PATH, with PATH {files}")
    return _save_definitions(step, path, cell, stubs)


def _save_file(step: Step, cell: str) -> list[str]:
    """Save the cell as the learner's file."""
    work = Path(step.work)
    stub = step.stub.read_text(encoding="utf-8")
    there = work.read_text(encoding="utf-8", errors="replace") if work.exists() else None
    if there is not None and cell.strip() == stub.strip():
        return [f"{work} is here already, and stays as it is: this cell is as at the start."]
    facts = open_progress()
    said = []
    if there is not None and _is_own(there, [stub, cell], {facts.of(step.key).get("cell", "")}):
        said.append(f"kept the {work} that was here as {_keep(work).name}")
    write_file(work, cell)
    facts.note(step.key, started=True, cell=digest(cell))
    return [*said, f"saved {work}. Next cell: check()"]


def _save_definitions(step: Step, path: str, cell: str, stubs: Files) -> list[str]:
    """Put the cell's definitions into the learner's mynode."""
    facts = open_progress()
    exercises.require_earlier(step, facts)
    try:
        body = ast.parse(cell).body
    except SyntaxError as error:
        line = (error.lineno or 1) + 1  # the magic is the first line of the cell
        raise CommandError(f"line {line} of the cell: {error.msg}") from None
    exercises.add_stubs(step, Path(NAME))
    file = Path(NAME, path)
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    new, names = exercises.edited(path, mynode.merged, old, cell, stubs.get(path, ""))
    known = [cell, stubs.get(path, ""), mynode.before(step.key).get(path, "")]
    said = []
    if _drops_work(old, names, known, _written(facts)):
        said.append(f"kept the {NAME}/{path} that was here as {_keep(file).name}")
    write_file(file, new)
    now = mynode.definitions(new)
    record = {f"{path} {name}": digest(now[name].text) for name in names}
    facts.note(step.key, started=True, cells=_cells(facts, step) | record)
    others = [node for node in body if not _is_kept(node)]
    if others:
        line = others[0].lineno + 1  # the magic is the first line of the cell
        said.append(f"left out line {line}: {NAME} takes definitions and imports only")
    if not names:
        return [*said, f"nothing new: the definitions of this cell are as at the start ({path})"]
    return [*said, f"{NAME}/{path}: saved {', '.join(names)}. Next cell: check()"]


def _cells(facts: Progress, step: Step) -> dict[str, str]:
    """The digests of the definitions that cells of a step have written."""
    found = facts.of(step.key).get("cells")
    return found if isinstance(found, dict) else {}


def _written(facts: Progress) -> set[str]:
    """The digests of all definitions that cells have written."""
    return {one for step in mynode.builders() for one in _cells(facts, step).values()}


def _drops_work(old: str, names: list[str], known: list[str], written: set[str]) -> bool:
    """True if a replaced definition is neither of a known text nor written by a cell."""
    texts = [one.text for text in known for one in mynode.definitions(text).values()]
    there = mynode.definitions(old)
    return any(_is_own(there[name].text, texts, written) for name in names if name in there)


def _is_own(text: str, known: list[str], written: set[str]) -> bool:
    """True for text that is neither known nor written by a cell before."""
    return text not in known and digest(text) not in written


def _is_kept(node: ast.stmt) -> bool:
    """True for definitions, imports and a docstring."""
    kinds = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, kinds | ast.Import | ast.ImportFrom)


def _keep(path: Path) -> Path:
    """Keep a copy of a file under another name."""
    kept = unused(path, "old")
    write_file(kept, path.read_text(encoding="utf-8", errors="replace"))
    return kept


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]

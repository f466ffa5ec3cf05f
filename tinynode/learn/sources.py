"""The files of the course's steps.

Requirement: a wheel and a checkout have the course in the same files, and a new step needs no
entry in a list. A wheel has the folder ``tutorials`` inside of this package; a checkout or an
editable install has the folder at the root.

    tutorials/step07_weak_references.py    the step
    tutorials/exercises/step07.py          the learner's stub
    tutorials/checks/step07.py             HINTS, and the checks
    tutorials/solutions/step07.py          a solution
    tutorials/notebooks/step07_....ipynb   the step as a notebook, without outputs
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode.learn import cells

FILE = re.compile(r"step(\d\d)_([a-z0-9_]+)\.py|(capstone)_([a-z0-9_]+)\.py")

PARTS = (
    ("01", "A. Scalars and the chain"),
    ("07", "B. Graph hygiene"),
    ("11", "C. Arrays"),
    ("14", "D. New-style functions"),
    ("19", "E. A second way to differentiate: nets"),
    ("21", "F. Backends, devices, scale"),
    ("capstone", "Capstone"),
)
"""The parts of the course, each with the key of the first step."""


@dataclass(frozen=True)
class Step:
    """A step; ``key`` is "07" or "capstone", ``name`` the name of the files, "step07"."""

    key: str
    name: str
    topic: str
    path: Path

    @property
    def title(self) -> str:
        """The first heading of the step."""
        return cells.title(cells.read(self.path)) or self.path.stem

    @property
    def stub(self) -> Path:
        """The learner's first version of the file."""
        return self._exercise("exercises")

    @property
    def solution(self) -> Path:
        """A solution of the exercise."""
        return self._exercise("solutions")

    @property
    def check(self) -> Path:
        """The module with the hints and the checks."""
        return self._exercise("checks")

    @property
    def notebook(self) -> Path:
        """The step as a Jupyter notebook, without outputs."""
        return self.path.parent / "notebooks" / f"{self.path.stem}.ipynb"

    @property
    def work(self) -> str:
        """The name of the learner's file."""
        return f"{self.name}.py"

    @property
    def engine_name(self) -> str:
        """The name of the file with the engine of the step; the exercise imports the file."""
        return f"engine{self.key}.py"

    def engine(self) -> str:
        """The engine at the end of the step, as a module; "" for a step without engine."""
        code = cells.engine(cells.read(self.path))
        if not code:
            return ""
        lead = f"{self.title}. Its cells of code, joined; the exercise imports from here."
        return f'"""{lead}"""\n\n{code}'

    def hints(self) -> tuple[str, ...]:
        """The hints of the exercise; the last hint is the most detailed."""
        hints: tuple[str, ...] = load(self.check, f"tinynode_check_{self.name}").HINTS
        return hints

    def _exercise(self, folder: str) -> Path:
        return self.path.parent / folder / f"{self.name}.py"


def tutorials() -> Path:
    """The folder of the steps: in this package if a wheel was installed, or of the checkout.

    Raises:
        CommandError: The folder is in neither place.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "tutorials", here.parent.parent / "tutorials"):
        if folder.is_dir():
            return folder
    raise CommandError("the steps of the course are missing: install tinynode again", status=1)


def steps(folder: Path | None = None) -> list[Step]:
    """The steps of the course in order, the capstone last."""
    folder = tutorials() if folder is None else folder
    found = []
    for path in folder.glob("*.py"):
        match = FILE.fullmatch(path.name)
        if match:
            key = match[1] or match[3]
            name = f"step{key}" if match[1] else key
            found.append(Step(key, name, match[2] or match[4], path))
    return sorted(found, key=order)


def order(step: Step) -> tuple[bool, str]:
    """The key for sorting steps: by number, then the capstone."""
    return (not step.key.isdigit(), step.key)


def find(text: str, folder: Path | None = None) -> Step:
    """The step for a learner's "7", "07", "step07" or "step07.py".

    Raises:
        CommandError: No such step; the message lists all steps.
    """
    key = text.lower().removesuffix(".py").removeprefix("step")
    key = key.zfill(2) if key.isdigit() else key
    known = steps(folder)
    for step in known:
        if step.key == key:
            return step
    keys = " ".join(step.key for step in known)
    raise CommandError(f"there is no step {text!r}; the steps are: {keys}")


def part(step: Step) -> str:
    """The part of the course with a step."""
    first = [name for key, name in PARTS if (not key.isdigit(), key) <= order(step)]
    return first[-1] if first else PARTS[0][1]


def load(path: Path, name: str) -> types.ModuleType:
    """A file as a module of the given name."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

"""The files of the course.

Requirement: a wheel and a checkout have the course in the same files, and a new step needs no
entry in a list. A wheel has the folder ``tutorials`` inside of this package. In a checkout, and
for an editable install, this package is in ``tutorials/course``.

    tutorials/step11_weak_references.py    a step; its key is "11", its name "step11"
    tutorials/elective_compile.py          an elective; its key and its name are "compile"
    tutorials/capstone_tiny_gpt.py         a capstone; its key and its name are "tiny_gpt"
    tutorials/checks/step11.py             HINTS, and the checks
    tutorials/drills/step11.py             drills for the judge of a class
    tutorials/planted/step05.toml          bugs by which the checks are tested; not in a wheel
    tutorials/notebooks/step11_....ipynb   the step as a notebook, without outputs

An exercise is a file of the learner's, or a part of the learner's package ``mynode``
(``tinynode_course.mynode``):

    tutorials/exercises/compile.py         the learner's stub
    tutorials/solutions/compile.py         a solution
    tutorials/exercises/step11/            stubs of the definitions that step 11 adds to mynode
    tutorials/solutions/step11/            the files of mynode that step 11 adds or changes
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode_course import cells

FILE = re.compile(r"step(\d\d)_([a-z0-9_]+)\.py|(elective|capstone)_([a-z0-9_]+)\.py")

PARTS = (
    ("00", "0. Ten minutes"),
    ("01", "A. A scalar engine"),
    ("07", "B. Arrays, and a network of your own"),
    ("11", "C. Memory and rigour"),
    ("16", "D. Architectures, to a GPT"),
    ("22", "E. Gradients of gradients"),
    ("elective", "F. Electives, in any order"),
    ("capstone", "Capstones"),
)
"""The parts of the course, each with the key of the first step or the kind."""

ORDER = (
    *("registry", "backward_network", "portability", "interface", "devices", "fast_path"),
    *("compile", "net_in_c", "forward_mode", "vmap", "jacobians", "your_own_backend"),
    *("processes", "roofline", "bytes", "experts", "tiled_attention"),
    *("diffusion", "reinforce", "splats"),
    *("gradient_penalty", "tiny_gpt", "differential_equation", "implicit_layer"),
    "your_own_function",
)
"""The electives and capstones in the order of the list; others follow."""

WORK_PACKAGE = "mynode/__init__.py"
"""The learner's file of an exercise that is a part of the package."""


@dataclass(frozen=True)
class Step:
    """A step, elective or capstone: ``kind``; ``key`` is "11" or "compile"."""

    key: str
    kind: str
    topic: str
    path: Path

    @property
    def name(self) -> str:
        """The name of the step's files: "step11" or "compile"."""
        return f"step{self.key}" if self.kind == "step" else self.key

    @property
    def title(self) -> str:
        """The first heading of the step."""
        return cells.title(cells.read(self.path)) or self.path.stem

    @property
    def builds(self) -> bool:
        """True if the exercise is a part of the learner's package ``mynode``."""
        return self._exercise("exercises", "").is_dir()

    @property
    def part(self) -> Path:
        """The folder of the files of ``mynode`` that the step adds or changes."""
        return self._exercise("solutions", "")

    @property
    def stub(self) -> Path:
        """The learner's first version of the file, or the folder of stubs."""
        return self._exercise("exercises", "" if self.builds else ".py")

    @property
    def solution(self) -> Path:
        """A solution of the exercise: a file, or the folder of files of ``mynode``."""
        return self._exercise("solutions", "" if self.builds else ".py")

    @property
    def check(self) -> Path:
        """The module with the hints and the checks."""
        return self._exercise("checks", ".py")

    @property
    def notebook(self) -> Path:
        """The step as a Jupyter notebook, without outputs."""
        return self.path.parent / "notebooks" / f"{self.path.stem}.ipynb"

    @property
    def work(self) -> str:
        """The name of the learner's file."""
        return WORK_PACKAGE if self.builds else f"{self.name}.py"

    def check_module(self) -> types.ModuleType:
        """The module with the hints and the checks, freshly loaded."""
        return load(self.check, f"tinynode_check_{self.name}")

    def _exercise(self, folder: str, suffix: str) -> Path:
        return self.path.parent / folder / f"{self.name}{suffix}"


def tutorials() -> Path:
    """The folder of the steps: in this package if a wheel was installed, else of the checkout.

    Raises:
        CommandError: The folder is in neither place.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "tutorials", here.parent.parent):
        if (folder / "checks").is_dir():
            return folder
    raise CommandError(
        "the steps of the course are missing: install tinynode-course again", status=1
    )


def steps(folder: Path | None = None) -> list[Step]:
    """The steps of the course in order, then the electives, then the capstones."""
    folder = tutorials() if folder is None else folder
    found = []
    for path in folder.glob("*.py"):
        match = FILE.fullmatch(path.name)
        if match and match[1]:
            found.append(Step(match[1], "step", match[2], path))
        elif match:
            found.append(Step(match[4], match[3], match[4], path))
    return sorted(found, key=order)


def order(step: Step) -> tuple[int, int, str]:
    """The key for sorting: steps by number, then electives and capstones by ``ORDER``."""
    place = ORDER.index(step.key) if step.key in ORDER else len(ORDER)
    return ("step", "elective", "capstone").index(step.kind), place, step.key


def find(text: str, folder: Path | None = None) -> Step:
    """The step for a learner's "7", "07", "step07", "step07.py" or "compile".

    Raises:
        CommandError: No such step; the message lists all steps.
    """
    key = text.lower().removesuffix(".py").replace("-", "_")
    for word in ("step", "elective_", "capstone_"):
        key = key.removeprefix(word)
    key = key.zfill(2) if key.isdigit() else key
    known = steps(folder)
    for step in known:
        if step.key == key:
            return step
    keys = " ".join(step.key for step in known)
    raise CommandError(f"there is no step {text!r}; the steps are: {keys}")


def find_exercise(text: str) -> Step:
    """The step for a learner's "7", with an exercise.

    Raises:
        CommandError: No such step, or a step without an exercise.
    """
    step = find(text)
    if not step.stub.exists():
        raise CommandError(f"step {step.key} has no exercise")
    return step


def part(step: Step) -> str:
    """The part of the course with a step."""
    if step.kind != "step":
        return dict(PARTS)[step.kind]
    first = [name for key, name in PARTS if key.isdigit() and key <= step.key]
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

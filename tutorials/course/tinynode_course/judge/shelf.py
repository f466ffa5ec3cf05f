"""The libraries of the child: copies of NumPy and of tinynode in separate folders.

Requirement: a student's program can't import the course, the solutions or the judge. So
``sys.path`` of the child has the standard library and folders of this module, and no folder
``site-packages``. Where Landlock holds, the child can't open other files.

    numpy       NumPy only: for the learner's own package
    tinynode    tinynode too, with its backends for NumPy: for programs of tinynode

``WITHOUT`` of a drill names the exercise's definitions in tinynode. The copies have no body, so an
import in place of an answer is empty.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinynode_course import mynode

NUMPY = ("numpy", "numpy.libs")
TINYNODE = ("tinynode", "tinynode_numpy", "tinynode_batched", "tinynode_fast", "array_api_compat")
"""The packages for a program of tinynode."""

PRELOAD = {
    "numpy": ["numpy"],
    "tinynode": ["numpy", "tinynode", "tinynode.nn", "tinynode.functions", "tinynode_numpy"],
}

EMPTY = '    raise NotImplementedError("not in the library of the judge")'

Without = Mapping[str, Sequence[str]]
"""Names of definitions by file, such as {"functions/trigonometric.py": ["TanhGrad"]}."""


class Shelf:
    """Builds folders of libraries in a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def libraries(self, kind: str, without: Without = {}) -> list[str]:  # noqa: B006 - read only
        """The folders for ``sys.path`` of a child.

        Args:
            kind: "numpy" or "tinynode".
            without: Empty definitions of tinynode.
        """
        folders = [self._built("numpy", NUMPY, {})]
        if kind == "tinynode":
            names = sorted(name for found in without.values() for name in found)
            folders.append(self._built("-".join(["tinynode", *names]), TINYNODE, without))
        return [str(folder) for folder in folders]

    def _built(self, name: str, packages: Sequence[str], without: Without) -> Path:
        folder = self._folder / name
        if folder.exists():
            return folder
        for package in packages:
            place = place_of(package)
            if place is not None:
                hidden = shutil.ignore_patterns("tests", "*.pyi")
                shutil.copytree(place, folder / package, ignore=hidden)
        if packages is NUMPY:
            _add_course(folder)
        for file, names in without.items():
            empty(folder / "tinynode" / file, names)
        return folder


def place_of(package: str) -> Path | None:
    """The folder of a package, or of the libraries beside NumPy; None without a folder."""
    base, _, rest = package.partition(".")
    spec = importlib.util.find_spec(base)
    if spec is None or spec.origin is None:
        return None
    place = Path(spec.origin).parent
    place = place.with_name(package) if rest else place
    return place if place.is_dir() else None


def _add_course(folder: Path) -> None:
    """Two files of the course: ``rows`` for an exercise, ``drilling`` for the drills."""
    course = folder / "tinynode_course"
    course.mkdir()
    (course / "__init__.py").write_text("")
    for name in ("rows.py", "drilling.py"):
        shutil.copy(Path(mynode.__file__).with_name(name), course)


def empty(path: Path, names: Sequence[str]) -> None:
    """Take the bodies of definitions out of a file.

    Raises:
        ValueError: The file has no such definition.
    """
    text = path.read_text(encoding="utf-8")
    for name in names:
        there = mynode.definitions(text)
        if name not in there:
            raise ValueError(f"{path.name} has no definition {name}")
        one = there[name]
        lines = text.splitlines()
        first = next(line for line in one.text.splitlines() if line.startswith(("def", "class")))
        is_class = first.startswith("class")
        head = f"class {name}:" if is_class else f"def {name}(*inputs, **options):"
        lines[one.start : one.end] = [head, "    pass" if is_class else EMPTY]
        text = "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")

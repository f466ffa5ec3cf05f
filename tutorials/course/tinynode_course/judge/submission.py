"""A submission: a copy of the judged files of a student's folder.

Requirement: a folder of a stranger is read, and no program in the folder runs here. Links, pipes
and devices are no work. Only ``mynode/``, the files of exercises and of hunts are copied. So a
package ``tinynode`` of a student's replaces no library.

An adapter judges a course of other names. The teacher's file ``ours.py`` becomes
``mynode/__init__.py``, and imports from the student's package ``ours``:

    from ours.tensor import Tensor as Variable, sine as sin
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tinynode
from tinynode.commands.command_line import CommandError
from tinynode_course import hunts, mynode, owners, progress
from tinynode_course.judge import keys
from tinynode_course.mynode import NAME
from tinynode_course.sources import Step

MOST_FILE = 400_000
"""The most bytes of a file."""

MOST_FILES = 400

LOOKS_INSIDE = re.compile(
    rb"__code__|co_code|co_consts|\binspect\b|getsource|meta_path|_getframe|\bdis\b|\bast\b|__loader__"
)
"""Words for reading the program of an engine, in place of running the engine."""
MOST_DEPTH = 6


@dataclass(frozen=True)
class Adapter:
    """A teacher's file that gives a student's ``package`` the names of ``mynode``."""

    package: str
    text: str


def read_adapter(path: Path) -> Adapter:
    """The adapter of a file; the name of the file is the name of the students' package.

    Raises:
        CommandError: The name is that of a library, or the file cannot be read.
    """
    name = path.stem
    is_taken = name in sys.stdlib_module_names or name.startswith(("tinynode", "numpy", NAME))
    if path.suffix != ".py" or not name.isidentifier() or is_taken:
        raise CommandError(
            f"--adapter: the file has the name of the students' package, such as ours.py for a "
            f"package ours; got {path.name}"
        )
    try:
        return Adapter(name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--adapter: {path} cannot be read: {error}") from None


@dataclass
class Submission:
    """The texts of the judged files, and sentences about other files.

    ``package`` is the folder of the student's engine: ``mynode``, or that of an adapter.
    ``left_out`` has the reasons for judged files that cannot be read, by path.
    """

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    package: str = NAME
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A fingerprint of the files."""
        parts = [part for path in sorted(self.files) for part in (path, self.files[path])]
        return keys.digest(*parts)

    def has(self, step: Step) -> bool:
        """True if there is work for a step: a file that is no untouched stub."""
        if step.work not in self.files:
            return False
        return step.builds or _words(self.files[step.work]) != _words(step.stub.read_bytes())

    def why_left_out(self, step: Step) -> str:
        """The reason why the work for a step cannot be judged; "" without such a reason."""
        return self.left_out.get(step.work, "")

    def texts(self) -> owners.Work:
        """The texts of the files, for the owners of definitions."""
        stage = ""
        work = owners.Work(self._text, stage, self._taken())
        for step in mynode.steps_that_build():
            if owners.has_begun(step, work):
                stage = step.key
        return dataclasses.replace(work, stage=stage)

    def _text(self, path: str) -> str:
        return self.files.get(path, b"").decode(errors="replace")

    def _taken(self) -> owners.Digests:
        """The records of ``take`` in the student's file of progress; {} for a damaged file."""
        content = self.files.get(progress.NAME)
        if content is None:
            return {}
        with tempfile.TemporaryDirectory(prefix="tinynode-progress-") as folder:
            Path(folder, progress.NAME).write_bytes(content)
            return owners.taken_by(progress.Progress(Path(folder)))

    def write(self, folder: Path, wanted: str) -> None:
        """Write the engine and the wanted file into a folder."""
        for path, content in self.files.items():
            if path == wanted or path.startswith((f"{NAME}/", f"{self.package}/")):
                place = folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)


def folders_by_name(folders: Sequence[str]) -> dict[str, Path]:
    """The folders by name; no folder holds the working folder or the running tinynode.

    Raises:
        CommandError: a folder is missing, has the name of another, or holds one of these two.
    """
    names = Counter(Path(folder).resolve().name for folder in folders)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise CommandError(
            f"two submissions have the name {twice[0]}; rename a folder, or use two classes"
        )
    found = {}
    for text in folders:
        path = Path(text).resolve()
        if not path.is_dir():
            raise CommandError(f"{text} is no folder; a submission is a folder of a student's")
        for inner in (Path.cwd(), Path(tinynode.__file__)):
            if inner.resolve().is_relative_to(path):
                raise CommandError(
                    f"{inner} is inside of the submission {text}: Python would take the student's "
                    "files for its own. Go to another folder, and use  python -P -m tinynode.learn"
                )
        found[path.name] = path
    return found


def read(folder: Path, steps: Sequence[Step], adapter: Adapter | None = None) -> Submission:
    """The submission in a folder.

    Args:
        folder: The student's folder.
        steps: The steps with an exercise.
        adapter: For a package of other names; ``mynode`` of the student's is not read then.
    """
    found = Submission(folder.resolve().name, package=adapter.package if adapter else NAME)
    try:
        top = folder.resolve(strict=True)
        if not top.is_dir():
            raise NotADirectoryError(20, "no folder")
        _collect(found, top, _wanted(steps))
    except OSError as error:
        found.remarks.append(f"the folder cannot be read: {error.strerror or error}")
    if adapter is not None and any(path.startswith(f"{adapter.package}/") for path in found.files):
        found.files[f"{NAME}/__init__.py"] = adapter.text.encode()
    elif adapter is not None:
        found.remarks.append(f"there is no package {adapter.package}, which the adapter needs")
    return found


def _wanted(steps: Sequence[Step]) -> set[str]:
    wanted = {step.work for step in steps if not step.builds} | {progress.NAME}
    return wanted | {hunt.work for hunt in map(hunts.of, steps) if hunt is not None}


def _collect(found: Submission, top: Path, wanted: set[str]) -> None:
    ignored = []
    with os.scandir(top) as entries:
        for one in sorted(entries, key=_name_of):
            if one.name == found.package and one.is_dir(follow_symlinks=False):
                _collect_package(found, top, found.package, 0)
            elif one.name == found.package:
                _leave_out(found, f"{one.name}/__init__.py", f"{one.name} is no folder")
            elif one.name in wanted:
                _add(found, top, one.name)
            elif one.is_dir() or one.name.endswith(".py"):
                ignored.append(one.name)
    for name in sorted(name for name in found.files if name.startswith("hunt")):
        words = sorted({word.decode() for word in LOOKS_INSIDE.findall(found.files[name])})
        if words:
            found.remarks.append(f"{name} reads the program of the engine: {' '.join(words)}")
    shadows = [name for name in ignored if name.startswith(("tinynode", "numpy"))]
    if shadows:
        found.remarks.append(f"not used, though the names are of libraries: {' '.join(shadows)}")


def _name_of(one: os.DirEntry[str]) -> str:
    return one.name


def _collect_package(found: Submission, top: Path, path: str, depth: int) -> None:
    is_near = depth < MOST_DEPTH
    with os.scandir(top / path) as entries:
        for one in sorted(entries, key=_name_of):
            inner = f"{path}/{one.name}"
            if one.name.endswith(".py"):
                _add(found, top, inner)
            elif one.is_dir(follow_symlinks=False) and one.name != "__pycache__" and is_near:
                _collect_package(found, top, inner, depth + 1)


def _add(found: Submission, top: Path, path: str) -> None:
    """Read a regular file of a usual size, or say why not."""
    if len(found.files) >= MOST_FILES:
        _leave_out(found, path, f"there are more than {MOST_FILES} files")
        return
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe does not wait for a writer
        with open(os.open(top / path, flags), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_FILE:
                raise OSError(22, f"no usual file of at most {MOST_FILE} bytes")
            found.files[path] = file.read(MOST_FILE)
    except IsADirectoryError:
        _leave_out(found, path, "expected a file, got a folder")
    except OSError as error:
        _leave_out(found, path, error.strerror or str(error))


def _leave_out(found: Submission, path: str, reason: str) -> None:
    found.left_out[path] = reason
    found.remarks.append(f"{path}: left out: {reason}")


def _words(content: bytes) -> list[bytes]:
    """The content without line ends and blanks, for a comparison with a stub."""
    return content.split()

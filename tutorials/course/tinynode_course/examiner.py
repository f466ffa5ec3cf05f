"""Runs the checks of an exercise on the learner's file, in a process of its own.

Requirement: the command survives every program of a learner: an endless loop, an exit, a crash.
So ``tinynode_course.checking`` starts this module as a program

    python -m tinynode_course.examiner step11.py tutorials/checks/step11.py 60

in the learner's folder. The program prints events, a JSON object in each line. The event of an
error has the lines of the learner's file in the traceback, without the lines of tinynode.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import importlib
import inspect
import io
import json
import linecache
import os
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from tinynode_course import lessons
from tinynode_course.checks import CheckFailed
from tinynode_course.locating import operation_lines
from tinynode_course.sealed import Seal, sealed_folders
from tinynode_course.sources import load

MOST_LINES = 20
"""The most lines of the learner's output in an event: the last lines."""

MOST_FRAMES = 4

ATTEMPTS = 100
"""The most attempts to find the running line."""


class Tail(io.TextIOBase):
    """Keeps only the last printed lines, for endless loops that print."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=MOST_LINES)
        self._open = ""

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Keep the text."""
        *complete, self._open = (self._open + text).split("\n")
        self._lines.extend(line[:500] for line in complete)
        self._open = self._open[-500:]
        return len(text)

    def take(self) -> list[str]:
        """Return the last lines, and drop them."""
        lines = [*self._lines, *([self._open] if self._open else [])]
        self._lines.clear()
        self._open = ""
        return lines


class Examiner:
    """The examination of a file."""

    def __init__(
        self, work: Path, checks: Path, events: TextIO, sealed: Sequence[Path] = ()
    ) -> None:
        self.work = work
        self.root = root_of(work)
        self.checks = checks
        self._events = events
        self._printed = Tail()
        self._lock = threading.Lock()
        self._seal = Seal(sealed, checks, self.learners_line) if sealed else None

    def tell(self, **event: Any) -> None:
        """Write one event."""
        with self._lock:
            self._events.write(json.dumps(event) + "\n")
            self._events.flush()

    def run(self) -> bool:
        """Import the learner's file and run the checks in order; True if all pass."""
        module = load(self.checks, f"tinynode_check_{self.work.stem}")
        checks = checks_of(module, builds=self.work.parent != self.root)
        self.tell(event="checks", titles=[title_of(check) for check in checks])
        if self._seal is not None:
            sys.addaudithook(self._seal.hook)
        with contextlib.redirect_stdout(self._printed):
            work = self._import()
            self.tell(event="imported", printed=self._printed.take())
            if work is None:
                return False
            results = self._results(checks, guards_of(module), work)
        for read in self._seal.broken if self._seal is not None else ():
            self.tell(event="read solution", **read)
            results.append(False)
        return all(results)

    def _results(
        self, checks: Sequence[types.FunctionType], guards: set[str], work: types.ModuleType
    ) -> list[bool]:
        """Run the checks in order; the guards at the end run if all other checks pass."""
        results: list[bool] = []
        is_done = True
        for number, check in enumerate(checks):
            is_guard = check.__name__ in guards
            if is_guard and not is_done:
                break
            passed = self._run(number, check, work)
            is_done = is_done and (is_guard or passed)
            results.append(passed)
        return results

    def _import(self) -> types.ModuleType | None:
        try:
            if self.work.parent == self.root:
                return load(self.work, self.work.stem)
            return importlib.import_module(self.work.parent.name)
        except BaseException as error:
            self.tell(event="import failed", **self.describe(error))
            return None

    def _run(self, number: int, check: types.FunctionType, work: types.ModuleType) -> bool:
        self.tell(event="begin", check=number)
        try:
            check(work)
        except BaseException as error:
            said = self.describe(error)
            if said["kind"] == "error":  # such as "Reshape.backward: input 0 has shape ..."
                said["lines"] = [*self.operations(said["message"])[:1], *said["lines"]]
            if not said["lines"]:  # no line of the learner's was running
                message = f"{said.get('what', '')}. {said.get('look', '')}"
                said["lines"] = self.operations(message) or self.definitions(
                    concerned(error, check)
                )
            self.tell(event="failed", check=number, printed=self._printed.take(), **said)
            return False
        self.tell(event="passed", check=number, printed=self._printed.take())
        return True

    def describe(self, error: BaseException) -> dict[str, Any]:
        """An error in words, with the lines of the learner's file in the traceback."""
        if isinstance(error, CheckFailed):
            said = {"what": error.what, "expected": error.expected, "got": error.got}
            inner = error.__cause__
            lines = self.learners_lines(inner) if inner is not None else []
            return {"kind": "wrong", **said, "look": error.look, "lines": lines}
        lines = self.learners_lines(error)
        if isinstance(error, NotImplementedError):
            unit = self.innermost(error)
            return {"kind": "to do", "message": str(error), "lines": lines, "unit": unit}
        name = self._module_name(error.obj) if isinstance(error, AttributeError) else ""
        if isinstance(error, AttributeError) and name:
            message = f"{name} does not define {error.name}"
            return {"kind": "missing", "message": message, "lines": lines}
        if isinstance(error, SystemExit):
            message = "your program ends Python here (exit): leave that out"
            return {"kind": "error", "message": message, "lines": lines}
        message = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, SyntaxError):
            message = f"{type(error).__name__}: {error.msg}"
        return {"kind": "error", "message": message[-2000:], "lines": lines}

    def learners_lines(self, error: BaseException) -> list[str]:
        """The traceback's lines of files in the learner's folder."""
        locations = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
        ]
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            locations.append((error.filename, error.lineno))
        return [self._line(name, line) for name, line in locations if self._is_learners(name)][
            -MOST_FRAMES:
        ]

    def innermost(self, error: BaseException) -> str:
        """The innermost function of the learner's in the traceback, such as "Square.forward"."""
        names = [
            frame.f_code.co_qualname
            for frame, _ in traceback.walk_tb(error.__traceback__)
            if self._is_learners(frame.f_code.co_filename)
        ]
        return names[-1].partition(".<locals>")[0] if names else ""

    def _module_name(self, thing: Any) -> str:
        """The name of the learner's file or package; "" for other things."""
        file = getattr(thing, "__file__", None) if isinstance(thing, types.ModuleType) else None
        if file is None or not self._is_learners(file):
            return ""
        path = Path(file).resolve()
        return (
            (path.parent if path.name == "__init__.py" else path)
            .relative_to(self.root.resolve())
            .as_posix()
        )

    def _is_learners(self, name: str) -> bool:
        path = Path(name)  # may be "<frozen importlib._bootstrap>": no file
        if not path.is_file():
            return False
        path, root = path.resolve(), self.root.resolve()
        package = root / self.work.parent.name
        return path.parent == root or (self.root != self.work.parent and package in path.parents)

    def _line(self, name: str, line: int) -> str:
        path = Path(name).resolve().relative_to(self.root.resolve()).as_posix()
        return f"{path}, line {line}: {linecache.getline(name, line).strip()}"

    def definitions(self, used: set[str]) -> list[str]:
        """The lines in the learner's files with definitions of the names."""
        lines = []
        for path, tree in self._modules():
            for node in tree.body:
                if names_of(node) & used:
                    lines.append(self._line(str(path), node.lineno))
        return lines[-MOST_FRAMES:]

    def operations(self, message: str) -> list[str]:
        """The lines of the operations that a message names; [] if it names none."""
        lines = []
        for path, tree in self._modules():
            for line in operation_lines(message, tree):
                lines.append(self._line(str(path), line))
        return lines[:MOST_FRAMES]

    def _modules(self) -> Iterator[tuple[Path, ast.Module]]:
        """The learner's files, parsed; an unused file may be no Python."""
        alone = self.work.parent == self.root
        for path in [self.work] if alone else sorted(self.work.parent.rglob("*.py")):
            with contextlib.suppress(SyntaxError, ValueError, OSError):
                yield path, ast.parse(path.read_text(encoding="utf-8"))

    def watch(self, thread: int, seconds: float) -> None:
        """Report the present line of the learner's program, and end the process."""
        lines: list[str] = []
        for _ in range(ATTEMPTS):  # a frame may end meanwhile, and then has no f_back
            lines = lines or self._running_line(sys._current_frames().get(thread))
        try:
            self.tell(event="too long", seconds=seconds, lines=lines, printed=self._printed.take())
        finally:
            os._exit(1)  # also if the reader has closed the pipe

    def _running_line(self, frame: types.FrameType | None) -> list[str]:
        """The innermost running line of the learner's files."""
        while frame is not None:
            lines = self.learners_line(frame)
            if lines:
                return lines
            frame = frame.f_back
        return []

    def learners_line(self, frame: types.FrameType) -> list[str]:
        """The running line of a frame; [] for a frame that is not of the learner's files."""
        name = frame.f_code.co_filename
        return [self._line(name, frame.f_lineno)] if self._is_learners(name) else []


def root_of(work: Path) -> Path:
    """The learner's folder: of a file, or of a package's ``__init__.py``."""
    return work.parent.parent if work.name == "__init__.py" else work.parent


def names_of(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in stored if isinstance(n.ctx, ast.Store)}


def concerned(error: BaseException, check: types.FunctionType) -> set[str]:
    """The names that a failed check is about: the class of a missing attribute, or all names."""
    if isinstance(error, AttributeError) and not isinstance(error.obj, types.ModuleType):
        return {one.__name__ for one in type(error.obj).__mro__}
    return set(check.__code__.co_names)


def checks_of(module: types.ModuleType, builds: bool) -> list[types.FunctionType]:
    """The checks of a step: guards come last, and for the package the lessons of earlier steps."""
    guards = guards_of(module)
    checks = sorted(functions_of(module), key=lambda check: check.__name__ in guards)
    if builds:
        checks += functions_of(lessons)
    return checks


def guards_of(module: types.ModuleType) -> set[str]:
    """The names of the checks that an untouched stub passes, for the work of earlier steps.

    A guard gives no point for nothing: all other checks must pass before a guard runs.
    """
    return {*getattr(module, "GUARDS", ()), lessons.check_earlier_lessons.__name__}


def functions_of(module: types.ModuleType) -> list[types.FunctionType]:
    """The functions ``check_...`` of a module, in the order of the file."""
    return [
        thing
        for name, thing in vars(module).items()
        if name.startswith("check_") and inspect.isfunction(thing)
    ]


def title_of(check: types.FunctionType) -> str:
    """The first line of the docstring."""
    return (inspect.getdoc(check) or check.__name__).splitlines()[0]


def main(arguments: list[str]) -> int:
    """Examine a file: arguments are its path, the path of the checks, and the time limit."""
    work, checks, seconds = Path(arguments[0]).resolve(), Path(arguments[1]), float(arguments[2])
    # writes of a program past sys.stdout must not look like events
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, str(root_of(work)))
    examiner = Examiner(work, checks, events, sealed_folders(checks))
    main_thread = threading.main_thread().ident
    alarm = threading.Timer(seconds, examiner.watch, (main_thread, seconds))
    alarm.daemon = True
    alarm.start()
    passed = examiner.run()
    examiner.tell(event="end")
    os._exit(0 if passed else 1)  # without waiting for threads of the learner's


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

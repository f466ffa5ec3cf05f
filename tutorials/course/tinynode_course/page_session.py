"""The Python side of a page of the course in the reader's browser.

Requirement: a page runs cells, checks exercises and shows films without a server. The page starts
Python in a worker, and sends requests. Here a request becomes events, as JSON objects:

    {"do": "open", "step": "07"}                   begins a step, with no names defined
    {"do": "run", "sources": [...], "cell": 2}     runs a cell: printed ..., output or error
    {"do": "film", "sources": [...]}               runs the cells as one program: film or refused
    {"do": "play", "text": ..., "title": ...}      runs a program of its own: film or refused
    {"do": "start", "files": {...}, "take": []}    adds the stubs of a step to mynode: files
    {"do": "check", "files": {"step22.py": ...}}   examines the learner's files
    {"do": "solution", "files": {...}}             compares the files with a solution

``sources`` has the present text of each cell of code, and "" for a cell to leave out.
``files`` has the learner's files by path. With ``"mine": files``, the cells of ``run`` and
``film`` import the learner's ``mynode``. With ``"changes": [...]``, ``film`` and ``play`` run it
again with changes of numbers: see ``tinynode.show.films.changes``. The module needs no browser.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import json
import linecache
import os
import shutil
import subprocess
import symtable
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tinynode_course import cells, checking, mynode, same_process, sources
from tinynode_course.cells import Cell
from tinynode_course.mynode import Files
from tinynode_course.same_process import as_new_process
from tinynode_course.sources import Step

PREFIX = f"{mynode.NAME}/"

PAUSE = 0.1
"""Seconds between two events with printed text."""

MOST_PRINTED = 100_000
"""The most printed characters of a cell."""


class Printed(io.StringIO):
    """The printed text of a cell: parts go to the page while the cell runs."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._tell = tell
        self._waiting: list[str] = []
        self._last = time.monotonic()
        self._left = MOST_PRINTED

    def write(self, text: str) -> int:
        """Keep the text, and send the kept text from time to time."""
        if self._left > 0:
            self._waiting.append(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                self._waiting.append("\n... the cell prints more than a page can show\n")
        if time.monotonic() - self._last > PAUSE:
            self.send()
        return len(text)

    def send(self) -> None:
        """Send the kept text."""
        if self._waiting:
            self._tell({"event": "printed", "text": "".join(self._waiting)})
        self._waiting.clear()
        self._last = time.monotonic()


class Told(io.StringIO):
    """The stream of an examiner's events: each line goes to the page, with a failure in words."""

    def __init__(self, tell: Callable[[dict[str, Any]], None], work: str) -> None:
        super().__init__()
        self._tell = tell
        self._work = work

    def write(self, text: str) -> int:
        """Send an event."""
        event = json.loads(text)
        if event["event"] in ("failed", "import failed"):
            event["words"] = list(checking.in_words(event, self._work))
        self._tell(event)
        return len(text)


class PageSession:
    """Runs the program, the exercise and the film of a page."""

    def __init__(self, folder: Path, send: Callable[[str], None]) -> None:
        self.folder = folder
        self._send = send
        self._step = sources.steps()[0]
        self._cells: list[Cell] = []
        self._main = types.ModuleType("__main__")
        self._starts: list[int] = []
        self._ran: set[int] = set()
        self._path = list(sys.path)
        if sys.platform == "emscripten":
            subprocess.run = same_process.run  # type: ignore[assignment]

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to the page."""
        self._send(json.dumps(event))

    def answer(self, request: str) -> None:
        """Do the work of a request; the last event is ``done``."""
        wish = json.loads(request)
        if wish["do"] == "open":
            self.open(sources.find(wish["step"]))
        elif wish["do"] == "run":
            self.run(wish["sources"], wish["cell"], wish.get("mine"))
        elif wish["do"] == "film":
            self.film(wish["sources"], wish.get("mine"), wish.get("changes", []))
        elif wish["do"] == "play":
            self.play(wish["text"], wish["title"], wish.get("changes", []))
        elif wish["do"] == "start":
            self.start(wish["files"], wish["take"])
        elif wish["do"] == "check":
            self.check(wish["files"])
        elif wish["do"] == "solution":
            self.solution(wish["files"])
        self.tell({"event": "done"})

    def open(self, step: Step) -> None:
        """Begin a step: no names are defined, and the learner's modules are forgotten."""
        sys.path[:] = self._path
        same_process.forget_ours()
        self._step = step
        self._cells = [cell for cell in cells.read(step.path) if cell.kind == "code"]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._main = types.ModuleType("__main__")
        self._main.__file__ = str(self.program)
        self._ran = set()

    @property
    def program(self) -> Path:
        """The file with the present text of all cells."""
        return self.folder / self._step.path.name

    def run(self, texts: list[str], number: int, mine: Files | None = None) -> None:
        """Run one cell in the names of the earlier cells."""
        present = self._write(texts)
        self.choose_package(mine)
        printed = Printed(self.tell)
        before = sys.modules["__main__"]
        sys.modules["__main__"] = self._main
        try:
            with contextlib.redirect_stderr(printed), _in_folder(self.folder):
                names, flags = vars(self._main), cells.future_flags(present)
                output = cells.run_cell(present[number], self.program, names, flags, printed)
        except BaseException as error:
            printed.send()
            missing = self._missing(error, texts[:number])
            text = self._in_words(error) + cells_to_run(missing, error)
            places = [self._cell_and_line(line) for line in self._lines_of(error)]
            self.tell({"event": "error", "text": text, "missing": missing, "places": places})
        else:
            self._ran.add(number)
            printed.send()
            pictures = {"svg": output.svg, "html": output.html}
            shown = "" if output.svg or output.html else output.shown
            self.tell({"event": "output", "shown": shown, **pictures})
        finally:
            sys.modules["__main__"] = before

    def _write(self, texts: list[str]) -> list[Cell]:
        """Write the program with the present text of the cells; returns the cells as they are."""
        text, self._starts = with_texts(
            self._step.path.read_text(encoding="utf-8"), self._cells, texts
        )
        self.program.write_text(text, encoding="utf-8")
        linecache.checkcache(str(self.program))
        return [
            Cell("code", text, cell.tags, start)
            for cell, text, start in zip(self._cells, texts, self._starts, strict=True)
        ]

    def _missing(self, error: BaseException, earlier: list[str]) -> list[int]:
        """The earlier cells that have not run, and define the name that the error lacks."""
        open_cells = [number for number in range(len(earlier)) if number not in self._ran]
        if isinstance(error, NameError):
            return [k for k in open_cells if error.name in names_defined(earlier[k])]
        if isinstance(error, ModuleNotFoundError) and error.name == mynode.NAME:
            return [k for k in open_cells if "use_mynode(" in earlier[k]]
        return []

    def _in_words(self, error: BaseException) -> str:
        """An error for the learner: the message, then the lines of the cells."""
        lines = ["".join(traceback.format_exception_only(error)).rstrip()]
        if isinstance(error, SyntaxError) and error.filename == str(self.program):
            lines[0] = f"{type(error).__name__}: {error.msg}"
        for line in self._lines_of(error):
            number, place = self._cell_and_line(line)
            text = linecache.getline(str(self.program), line).strip()
            lines.append(f"  cell {number + 1}, line {place}: {text}")
        return "\n".join(lines)

    def _lines_of(self, error: BaseException) -> list[int]:
        """The lines of the program in the traceback, the innermost last."""
        program = str(self.program)
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == program]
        if isinstance(error, SyntaxError) and error.filename == program:
            lines.append(error.lineno or 1)
        return lines

    def _cell_and_line(self, line: int) -> tuple[int, int]:
        """The cell of a line of the program, from 0, and the line in the cell, from 1."""
        number = max((k for k, start in enumerate(self._starts) if start <= line), default=0)
        return number, line - self._starts[number] + 1

    def choose_package(self, mine: Files | None) -> None:
        """Let ``use_mynode`` give the learner's package, or the reference."""
        if mine is not None:
            _write_new(mine, self.folder / "mine")
        # the tinynode of the program: as_new_process and open import tinynode anew
        package = importlib.import_module("tinynode_course.mynode")
        package.source.folder = None if mine is None else self.folder / "mine"

    def film(self, texts: list[str], mine: Files | None = None, changes: Any = None) -> None:
        """Run the cells as one program, and send the page of the film."""
        self._write(texts)
        self._film(self.program, mine, changes)

    def play(self, text: str, title: str, changes: Any = None) -> None:
        """Run a program of its own, such as that of a link, and send the page of the film."""
        path = self.folder / "program.py"
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")  # half a character is no Python
        self._film(path, None, changes, title)

    def _film(self, program: Path, mine: Files | None, changes: Any, title: str = "") -> None:
        """Run a program in the state of a new process; send the printed text and the film."""
        text = program.read_text(encoding="utf-8")
        printed = Printed(self.tell)
        event = {"event": "film", "page": ""}
        with as_new_process(os.environ, str(self.folder)):
            self.choose_package(mine)
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    event["page"] = _page_of_film(str(program), text, changes or [], title)
                except (TypeError, ValueError) as error:
                    event = {"event": "refused", "text": str(error)}
        printed.send()
        self.tell(event)

    def start(self, files: Files, take: list[str]) -> None:
        """Add the stubs of the step to the learner's package; send the files of the package.

        Args:
            files: The files, such as ``mynode/core/variable.py``.
            take: The keys of the steps whose reference is taken first.
        """
        package = {path.removeprefix(PREFIX): text for path, text in files.items()}
        try:
            for key in take:
                package |= with_reference(package, key)
            if self._step.key not in take:
                for path, stub in mynode.read_files(self._step.stub).items():
                    there = package.get(path)
                    package[path] = stub if there is None else mynode.add_stubs(there, stub)[0]
        except SyntaxError as error:
            self._refuse(error)
        else:
            named = {PREFIX + path: text for path, text in sorted(package.items())}
            self.tell({"event": "files", "files": named})

    def _refuse(self, error: SyntaxError) -> None:
        text = f"a file of {mynode.NAME} is no Python: line {error.lineno}, {error.msg}"
        self.tell({"event": "refused", "text": text})

    def check(self, files: Files) -> None:
        """Write the learner's files into an empty folder, and run the checks of the step."""
        folder = self.folder / "work"
        _write_new(files, folder)
        events = Told(self.tell, self._step.work)
        settings = {**os.environ, "PYTHONPATH": str(folder)}
        with as_new_process(settings, str(folder)):
            # the tinynode that the learner's file imports
            examiner = importlib.import_module("tinynode_course.examiner")
            passed = examiner.Examiner(folder / self._step.work, self._step.check, events).run()
        self.tell({"event": "checked", "passed": passed})

    def solution(self, files: Files) -> None:
        """Send the differences between the learner's files and a solution."""
        try:
            wanted = solution_files(self._step, files)
        except SyntaxError as error:
            self._refuse(error)
            return
        lines: list[str] = []
        for path, text in wanted.items():
            mine = files.get(path, "").splitlines()
            lines += difflib.unified_diff(mine, text.splitlines(), path, "a solution", lineterm="")
        self.tell({"event": "solution", "text": "\n".join(lines)})


def names_defined(text: str) -> set[str]:
    """The names that a cell defines at its top level; none for text that is no Python."""
    try:
        table = symtable.symtable(text, "cell", "exec")
    except SyntaxError:
        return set()
    return {
        one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()
    }


def cells_to_run(missing: list[int], error: BaseException) -> str:
    """A line for the learner: the cells that define the missing name have not run."""
    if not missing:
        return ""
    name = getattr(error, "name", "")
    numbers = " and ".join(str(number + 1) for number in missing)
    if len(missing) == 1:
        return f"\nCell {numbers} defines {name}, and has not run. Run the cells above first."
    return f"\nCells {numbers} define {name}, and have not run. Run the cells above first."


def _page_of_film(script: str, text: str, changes: Any, title: str = "") -> str:
    """The page of a program's film, or of the film with changes; empty without a step.

    Raises:
        TypeError: a change has a wrong type.
        ValueError: a change is not possible.
    """
    # the tinynode of the program: as_new_process imports tinynode anew
    what_if = importlib.import_module("tinynode.show.films.what_if")
    checks = importlib.import_module("tinynode.show.films.changes")
    document = importlib.import_module("tinynode.show.page.document")
    runs = what_if.ScriptRuns(script, [], text)
    checked = checks.from_json(changes)
    shown = what_if.rerun(runs, checked) if checked else runs()
    if not checked and not len(shown):
        return ""
    data = {**shown.data(), "host": "course"}
    page: str = document.page({**data, "title": title} if title else data)
    return page


def _write_new(files: Files, folder: Path) -> None:
    """Write the files into an emptied folder."""
    shutil.rmtree(folder, ignore_errors=True)
    mynode.write_files(files, folder)


def with_reference(package: Files, key: str) -> Files:
    """The files changed by a step, with the reference's definitions."""
    return {
        path: mynode.taken(package.get(path, ""), key, path)[0] for path in mynode.changed(key)
    }


def solution_files(step: Step, files: Files) -> Files:
    """The files of an exercise, with a solution."""
    if not step.builds:
        return {step.work: step.solution.read_text(encoding="utf-8")}
    package = {path.removeprefix(PREFIX): text for path, text in files.items()}
    return {PREFIX + path: text for path, text in with_reference(package, step.key).items()}


def first_files(step: Step) -> Files:
    """The files of an exercise at its start; {} for a part of ``mynode``, or no exercise."""
    if step.builds or not step.stub.exists():
        return {}
    return {step.work: step.stub.read_text(encoding="utf-8")}


def with_texts(program: str, code: list[Cell], texts: list[str]) -> tuple[str, list[int]]:
    """A program with other texts of the cells; returns the first line of each cell too."""
    lines = program.splitlines()
    result: list[str] = []
    starts = []
    position = 0
    for cell, text in zip(code, texts, strict=True):
        result += lines[position : cell.line - 1]
        starts.append(len(result) + 1)
        result += text.split("\n")
        position = cell.line - 1 + len(cell.source.split("\n"))
    return "\n".join([*result, *lines[position:]]) + "\n", starts


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

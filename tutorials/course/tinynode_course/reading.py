"""The command ``run``: a step in the terminal, with text, code, output and pictures.

Requirement: a step reads well without a browser. The learner sees what a page shows: text, code,
and below each cell what the cell prints and draws.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import traceback
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode_course import mynode, plain_math, screen, shell, sources
from tinynode_course.cells import Cell, Output, read, run
from tinynode_course.examiner import MOST_FRAMES
from tinynode_course.plain_screen import PlainScreen
from tinynode_course.predictions import Predictions
from tinynode_course.progress import PROGRAM, write_file
from tinynode_course.sources import Step

SOURCE_PAGE = re.compile(r"\(\.\./source/(\S+?)\.md\)")
"""The address of a source file's page on the site, in the links of steps."""


class Reader:
    """Shows the cells of a step, asks for predictions, and saves pictures.

    Args:
        step: The step.
        shown: The screen.
        questions: True to ask for predictions.
        folder: The folder for pictures, or None.
    """

    def __init__(
        self, step: Step, shown: PlainScreen, questions: bool, folder: Path | None
    ) -> None:
        self.step = step
        self.screen = shown
        self.predictions = Predictions(step)
        self.saved: list[Path] = []
        self._questions = questions
        self._folder = folder

    def show(self, cell: Cell, output: Output) -> None:
        """Show a cell that has run, then the output."""
        self.predictions.read(cell)
        if cell.kind == "markdown":
            for part in mynode.parts(cell.source, self.step.key):
                if isinstance(part, str):
                    self.text(part)
                else:
                    self.screen.excerpt(part)
            return
        self.screen.code(cell.source)
        if self._questions and self.predictions.is_due(output):
            self.screen.end()
            self.predictions.ask(output)
        printed = output.printed + output.shown
        if output.words:
            printed += f"\n{output.words}\nThe film as a page: {self._saving()}"
        if printed.strip():
            self.screen.output(printed)
        if self._folder is not None and (output.svg or output.html):
            self._save(self._folder, output)

    def _saving(self) -> str:
        return f"{PROGRAM} run {self.step.key} --save pictures"

    def text(self, text: str) -> None:
        """Show Markdown: formulas in Unicode, paths of source files, the learner's commands."""
        text = SOURCE_PAGE.sub(r"(\1.py)", plain_math.plain(text))
        self.screen.text(text.replace(shell.WRITTEN, PROGRAM))

    def _save(self, folder: Path, output: Output) -> None:
        suffix = "svg" if output.svg else "html"
        path = folder / f"{self.step.name}-{len(self.saved) + 1}.{suffix}"
        write_file(path, output.svg or page(path.stem, output.html))
        self.saved.append(path)


def page(title: str, picture: str) -> str:
    """A page with a picture of a cell, in the reader's colours, light or dark."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n{picture}\n</body>\n</html>\n"
    )


def run_step(options: argparse.Namespace) -> int:
    """Run a step; the terminal shows text, code, output and pictures."""
    step = sources.find(options.step)
    if options.mine:
        mynode.refuse_stranger()
    mynode.source.folder = _own_package() if options.mine else None
    folder = _folder(options.save) if options.save is not None else None
    terminal = screen.is_terminal(sys.stdout)
    questions = terminal and screen.is_terminal(sys.stdin) and not options.no_questions
    shown = screen.make(not options.no_pager, terminal)
    reader = Reader(step, shown, questions, folder)
    try:
        _run(reader)
    finally:
        shown.end()
    if reader.predictions.asked:  # below the pager: a learner may leave it early
        reader.screen = screen.make(False, terminal)
        reader.text(reader.predictions.compared())
    for path in reader.saved:
        print(f"saved {path}")
    if folder is not None and not reader.saved:
        print("this step draws no pictures")
    if step.stub.exists():
        print(f"Now the exercise: {PROGRAM} start {step.key}")
    return 0


def _run(reader: Reader) -> None:
    """Run the cells of a step.

    Raises:
        CommandError: The step stopped with an error.
    """
    path = reader.step.path
    try:
        run(read(path), path, reader.show)
    except (CommandError, BrokenPipeError):  # the reader of our output has left: no mistake
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in where if frame.filename == str(path)]
        line = f", line {lines[-1]}" if lines else ""
        message = f"{path.name}{line} stopped with {type(error).__name__}: {error}"
        own = _lines_of_own_package(where)
        if own:
            message += "; your code: " + "; ".join(own)
        raise CommandError(message, status=1) from error


def _lines_of_own_package(where: traceback.StackSummary) -> list[str]:
    """The last places of a traceback in the learner's package, without repetitions."""
    package = Path.cwd() / mynode.NAME
    places = [
        f"{Path(frame.filename).relative_to(package.parent).as_posix()}, line {frame.lineno}"
        for frame in where
        if Path(frame.filename).is_relative_to(package)
    ]
    return list(dict.fromkeys(places))[-MOST_FRAMES:]


def _own_package() -> Path:
    """The learner's folder with the package.

    Raises:
        CommandError: There is no package in this folder.
    """
    if not Path(sources.WORK_PACKAGE).is_file():
        raise CommandError(
            f"--mine: there is no {mynode.NAME} in this folder; begin with {PROGRAM} start 01"
        )
    return Path.cwd()


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--save {name}: {error.strerror}") from None
    return folder

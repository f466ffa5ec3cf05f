"""The command ``run``: a step in the terminal, with text, code, output and pictures.

Requirement: a step reads well without a browser. The learner sees what a page shows: text, code,
and below each cell what the cell prints and draws.
"""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode.learn import mynode, sources
from tinynode.learn.cells import Cell, Output, read, run
from tinynode.learn.mynode import Excerpt
from tinynode.learn.progress import PROGRAM, write_atomically


def run_step(options: argparse.Namespace) -> int:
    """Run a step; the terminal shows text, code, output and pictures."""
    step = sources.find(options.step)
    cells = read(step.path)
    mynode.source.folder = _own_package() if options.mine else None
    folder = _folder(options.save) if options.save is not None else None
    saved: list[Path] = []

    def after(cell: Cell, output: Output) -> None:
        _print_cell(cell, output, step.key)
        if folder is not None and (output.svg or output.html):
            suffix = "svg" if output.svg else "html"
            path = folder / f"{step.name}-{len(saved) + 1}.{suffix}"
            _save(path, output.svg or output.html)
            saved.append(path)

    try:
        run(cells, step.path, after)
    except CommandError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in where if frame.filename == str(step.path)]
        line = f", line {lines[-1]}" if lines else ""
        message = f"{step.path.name}{line} stopped with {type(error).__name__}: {error}"
        raise CommandError(message, status=1) from error
    for path in saved:
        print(f"saved {path}")
    if folder is not None and not saved:
        print("this step draws no pictures")
    if step.stub.exists():
        print(f"\nNow the exercise: {PROGRAM} start {step.key}")
    return 0


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


def _print_cell(cell: Cell, output: Output, key: str) -> None:
    """Print a cell of text, or a cell of code after a bar, with the output."""
    if cell.kind == "markdown":
        for part in mynode.parts(cell.source, key):
            if isinstance(part, str):
                _print_text(part)
            else:
                _print_excerpt(part)
        return
    _print_code(cell.source.strip("\n"), ())
    for text in (output.printed, output.shown):
        if text.strip():
            print(text.rstrip("\n"), flush=True)


def _print_text(text: str) -> None:
    for line in text.splitlines():
        title = line.lstrip("#").strip()
        print(f"\n{title}\n{'-' * len(title)}" if line.startswith("#") else line)
    print()


def _print_excerpt(part: Excerpt) -> None:
    """Print code of ``mynode``, with ``+`` at the lines that are new."""
    print(f"{mynode.NAME}/{part.path}" + (":  + marks new lines" if part.marked else ":"))
    _print_code(part.code, part.marked)


def _print_code(code: str, marked: tuple[int, ...]) -> None:
    for number, line in enumerate(code.splitlines(), 1):
        print(f"{'+' if number in marked else ' '} | {line}".rstrip())
    print()


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--save {name}: {error.strerror}") from None
    return folder


def _save(path: Path, text: str) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", status=1) from None

"""The command line of the course: ``python -m tinynode.learn``.

Requirement: the learner always sees the next command to type: at the start, after an exercise, and
after a failed check. Exit statuses are those of ``tinynode.commands``. ``check`` ends with 0 if
all checks pass, else with 1.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError, Parser, positive_number, run_command
from tinynode.learn import checking, notebooks, pages, sources
from tinynode.learn.cells import Cell, Output, read, run
from tinynode.learn.progress import Progress, unused, write_atomically
from tinynode.learn.sources import Step

PROGRAM = "python -m tinynode.learn"

FIRST = f"""\
The tinynode course: from x * x to a compiled network, in steps that you run, break and mend.

Make a folder of your own and work there. For each step
  {PROGRAM} run 01      shows the step: its text, its code, what it prints and draws
  {PROGRAM} start 01    writes the exercise into this folder, as step01.py
  {PROGRAM} check 01    checks your step01.py
  {PROGRAM} hint 01     gives a hint, the next one each time
  {PROGRAM} show 01     compares your file with a solution
  {PROGRAM} list        lists all steps, and what you have done
  {PROGRAM} notebooks   makes Jupyter notebooks of all steps (--help: of some)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    return run_command(_parser(), arguments, "\ninterrupted")


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description="The tinynode course.")
    parser.set_defaults(run=welcome, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add(commands, "list", show_list, "list the steps, and what you have done", step=False)
    start_parser = _add(commands, "start", start, "write the exercise of a step into this folder")
    start_parser.add_argument(
        "--again", action="store_true", help="begin anew; your file is kept as stepNN.py.old-1"
    )
    check_parser = _add(commands, "check", check, "check your exercise")
    check_parser.add_argument(
        "--seconds", type=positive_number, default=60.0, help="time limit; default: %(default)g"
    )
    _add(commands, "hint", hint, "give a hint, the next one each time")
    _add(commands, "show", show, "compare your file with a solution")
    run_parser = _add(commands, "run", run_step, "run a step and show what it prints and draws")
    run_parser.add_argument("--save", metavar="FOLDER", help="save its pictures too")
    notebooks.add_arguments(_add(commands, "notebooks", notebooks.run, notebooks.SUMMARY, False))
    pages.add_arguments(_add(commands, "pages", pages.run, pages.SUMMARY, False))
    return parser


def _add(
    commands: Any,
    name: str,
    function: Callable[[argparse.Namespace], int],
    summary: str,
    step: bool = True,
) -> Parser:
    parser: Parser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=function, parser=parser)
    if step:
        parser.add_argument("step", metavar="STEP", help="its number, such as 07, or: capstone")
    return parser


def _progress() -> Progress:
    """The learner's progress in this folder; prints warnings about a damaged file."""
    progress = Progress(Path.cwd())
    for warning in progress.warnings:
        print(warning, file=sys.stderr)
    return progress


def welcome(options: argparse.Namespace) -> int:
    """Print the first or the next command to type."""
    print(FIRST)
    _say_next(_progress())
    return 0


def show_list(options: argparse.Namespace) -> int:
    """Print the steps by parts, with title and the learner's progress."""
    progress = _progress()
    last = ""
    for step in sources.steps():
        if sources.part(step) != last:
            print(f"{chr(10) if last else ''}{sources.part(step)}")
            last = sources.part(step)
        print(f"  {_state(progress.of(step.key)):<10} {_numbered(step)}")
    print()
    _say_next(progress)
    return 0


def _numbered(step: Step) -> str:
    """``07  weak references and memory``."""
    title = step.title.partition(":")[2].strip() or step.title
    return f"{step.key}  {title}"


def _state(facts: dict[str, Any]) -> str:
    if facts.get("passed"):
        return "done"
    if facts.get("attempts"):
        return "tried"
    return "started" if facts.get("started") else "-"


def _say_next(progress: Progress, after: str = "") -> None:
    """Print the next open step and the commands; the search goes on at the first step."""
    steps = sources.steps()
    later = [step for step in steps if step.key > after]
    for step in [*later, *steps]:
        facts = progress.of(step.key)
        if facts.get("passed") or not step.stub.exists():
            continue
        if facts.get("started"):
            print(f"Go on with {step.title}: edit {step.work}, then {PROGRAM} check {step.key}")
        else:
            print(f"Next: {step.title}")
            print(f"  {PROGRAM} run {step.key}")
            print(f"  {PROGRAM} start {step.key}")
        return
    print("All exercises are done.")


def _exercise(options: argparse.Namespace) -> Step:
    step = sources.find(options.step)
    if not step.stub.exists():
        raise CommandError(f"step {step.key} has no exercise")
    return step


def start(options: argparse.Namespace) -> int:
    """Write the stub and the imported engine; existing files stay."""
    step = _exercise(options)
    work = Path(step.work)
    if work.exists() and not options.again:
        print(f"{work} is here already, and stays as it is.")
        print(f"Check it:    {PROGRAM} check {step.key}")
        print(
            f"Begin anew:  {PROGRAM} start {step.key} --again   (keeps yours under another name)"
        )
        return 1
    kept = _write(work, step.stub.read_text(encoding="utf-8"), options.again)
    if kept:
        print(f"kept your file as {kept.name}")
    print(f"wrote {work}")
    engine = step.engine()
    if engine:
        _write_engine(Path(step.engine_name), engine, options.again)
    _progress().note(step.key, started=True)
    print(f"\n{step.title}. Open {work} in your editor: what to do stands at its top. Then")
    print(f"  {PROGRAM} check {step.key}")
    return 0


def _write_engine(path: Path, code: str, again: bool) -> None:
    """The engine that the exercise imports; one that the learner changed is not overwritten."""
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") == code:
        return
    if path.exists() and not again:
        print(f"{path} is here already, and stays as it is")
        return
    kept = _write(path, code, again)
    print(
        f"wrote {path}, the engine of this step" + (f"; kept yours as {kept.name}" if kept else "")
    )


def _write(path: Path, text: str, again: bool) -> Path | None:
    """Write a new file; with ``again`` an old file gets another name."""
    kept = None
    try:
        if again and path.exists():
            kept = unused(path, "old")
            path.rename(kept)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        where = Path.cwd()
        raise CommandError(f"{path} cannot be written in {where}: {error.strerror}", 1) from None
    return kept


def _work(step: Step) -> Path:
    """The learner's file.

    Raises:
        CommandError: The exercise was not started in this folder.
    """
    work = Path(step.work)
    if not work.is_file():
        raise CommandError(
            f"there is no {work} in this folder; begin with {PROGRAM} start {step.key}, or go to "
            "the folder in which you did"
        )
    return work


def check(options: argparse.Namespace) -> int:
    """Check the learner's file; 0 if all checks pass."""
    step = _exercise(options)
    work = _work(step)
    engine = Path(step.engine_name)
    if not engine.exists() and step.engine():
        _write(engine, step.engine(), again=False)
    print(f"{step.title}: {work}")
    progress = _progress()
    report = checking.check(step, work.absolute(), options.seconds)
    facts = progress.of(step.key)
    attempts = facts.get("attempts")
    progress.note(
        step.key,
        started=True,
        attempts=(attempts if isinstance(attempts, int) else 0) + 1,
        passed=report.passed or bool(facts.get("passed")),  # a passed step stays passed
    )
    if report.passed:
        _say_next(progress, step.key)
    return 0 if report.passed else 1


def hint(options: argparse.Namespace) -> int:
    """Print the next hint; after the last hint, the last hint again."""
    step = _exercise(options)
    progress = _progress()
    hints = step.hints()
    seen = progress.of(step.key).get("hints")
    number = min(seen if isinstance(seen, int) and seen >= 0 else 0, len(hints) - 1)
    print(f"Hint {number + 1} of {len(hints)} for step {step.key}: {hints[number]}")
    if number + 1 == len(hints):
        print(f"That is the last hint. A solution: {PROGRAM} show {step.key}")
    progress.note(step.key, hints=number + 1)
    return 0


def show(options: argparse.Namespace) -> int:
    """Print the difference from the learner's file, or from the stub, to a solution."""
    step = _exercise(options)
    work = Path(step.work)
    mine = work if work.is_file() else step.stub
    name = work.name if mine is work else f"{work.name} as it is at the start"
    difference = list(
        difflib.unified_diff(
            mine.read_text(encoding="utf-8", errors="replace").splitlines(),
            step.solution.read_text(encoding="utf-8").splitlines(),
            name,
            "a solution",
            lineterm="",
        )
    )
    for line in difference:
        print(line)
    if not difference:
        print(f"{work} is the same as the solution.")
    return 0


def run_step(options: argparse.Namespace) -> int:
    """Run a step; the terminal shows text, code, output and pictures."""
    step = sources.find(options.step)
    cells = read(step.path)
    folder = _folder(options.save) if options.save is not None else None
    saved: list[Path] = []

    def after(cell: Cell, output: Output) -> None:
        _print_cell(cell, output)
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


def _print_cell(cell: Cell, output: Output) -> None:
    """Print a cell of text, or a cell of code after a bar, with the output."""
    if cell.kind == "markdown":
        for line in cell.source.splitlines():
            title = line.lstrip("#").strip()
            print(f"\n{title}\n{'-' * len(title)}" if line.startswith("#") else line)
        print()
        return
    for line in cell.source.strip("\n").splitlines():
        print(f"  | {line}".rstrip())
    print()
    for text in (output.printed, output.shown):
        if text.strip():
            print(text.rstrip("\n"), flush=True)


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

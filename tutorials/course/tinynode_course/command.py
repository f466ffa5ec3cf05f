"""The command line of the course: ``python -m tinynode.learn``.

Requirement: the learner always sees the next command to type: at the start, after an exercise, and
after a failed check. Exit statuses are those of ``tinynode.commands``. ``check`` ends with 0 if
all checks pass, else with 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from tinynode.commands.command_line import Parser, positive_number, run_command
from tinynode_course import (
    cost,
    examples,
    exercises,
    grading,
    hunts,
    minutes,
    notebooks,
    pages,
    reading,
    report,
    slides,
    sources,
    templates,
    watch,
)
from tinynode_course.judge import classes
from tinynode_course.progress import PROGRAM, open_progress, say_next
from tinynode_course.recall import review
from tinynode_course.sources import Step

FIRST = f"""\
The tinynode course: build a framework of your own, step by step, and watch it learn.

Make a folder of your own and work there. For each step
  {PROGRAM} run 00      shows the step: its text, its code, what it prints and draws
  {PROGRAM} start 01    writes the exercise into this folder: stubs in your package mynode
  {PROGRAM} check 01    checks your work
  {PROGRAM} watch       checks your work whenever you save it
  {PROGRAM} hint 01     gives a hint, the next one each time
  {PROGRAM} show 01     compares your work with a solution
  {PROGRAM} take 01     takes the reference, if you skip the step
  {PROGRAM} hunt 06     scores your own tests, by planted bugs
  {PROGRAM} review      asks about past steps: two minutes a day
  {PROGRAM} status      says which parts of mynode are yours
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
    start = _add(
        commands, "start", exercises.start, "write the exercise of a step into this folder"
    )
    start.add_argument(
        "--again", action="store_true", help="begin anew; your file is kept as stepNN.py.old-1"
    )
    grading.add_arguments(_add(commands, "check", grading.run, grading.SUMMARY, False))
    watching = _add(commands, "watch", watch.run, watch.SUMMARY, step=False)
    watching.add_argument("step", metavar="STEP", nargs="?", help="default: the next open step")
    watching.add_argument(
        "--seconds",
        type=positive_number,
        default=60.0,
        help="time limit of a check; default: %(default)g",
    )
    _add(commands, "hint", exercises.hint, "give a hint, the next one each time")
    show = _add(commands, "show", exercises.show, "compare your work with a solution")
    show.add_argument("--now", action="store_true", help="without a try before")
    _add(commands, "take", exercises.take, "take the reference of a step into your mynode")
    _add(commands, "status", exercises.status, "list the parts of your mynode", step=False)
    run = _add(commands, "run", reading.run_step, "run a step and show what it prints and draws")
    run.add_argument("--save", metavar="FOLDER", help="save its pictures too")
    run.add_argument("--mine", action="store_true", help="with your own mynode")
    run.add_argument("--no-pager", action="store_true", help="print all of it at once")
    run.add_argument("--no-questions", action="store_true", help="ask for no prediction")
    review.add_arguments(_add(commands, "review", review.run, review.SUMMARY, False))
    hunts.add_arguments(_add(commands, "hunt", hunts.run, hunts.SUMMARY, False))
    examples.add_arguments(_add(commands, "example", examples.run, examples.SUMMARY, False))
    _add(commands, "cost", cost.run, cost.SUMMARY, step=False)
    _add_for_teachers(commands)
    return parser


def _add_for_teachers(commands: Any) -> None:
    """Add the commands of a class, and the writers of files for others."""
    classes.add_arguments(_add(commands, "class", classes.run_judge, classes.SUMMARY, False))
    _add(commands, "minutes", minutes.run, minutes.SUMMARY, step=False)
    report.add_arguments(_add(commands, "report", report.run, report.SUMMARY, False))
    slides.add_arguments(_add(commands, "slides", slides.run, slides.SUMMARY, False))
    templates.add_arguments(_add(commands, "template", templates.run, templates.SUMMARY, False))
    notebooks.add_arguments(_add(commands, "notebooks", notebooks.run, notebooks.SUMMARY, False))
    pages.add_arguments(_add(commands, "pages", pages.run, pages.SUMMARY, False))


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
        parser.add_argument("step", metavar="STEP", help="such as 07, or compile")
    return parser


def welcome(options: argparse.Namespace) -> int:
    """Print the first or the next command to type."""
    print(FIRST)
    progress = open_progress()
    review.say_due(progress)
    say_next(progress)
    return 0


def show_list(options: argparse.Namespace) -> int:
    """Print the steps by parts, with title and the learner's progress."""
    progress = open_progress()
    last = ""
    for step in sources.steps():
        if sources.part(step) != last:
            print(f"{chr(10) if last else ''}{sources.part(step)}")
            last = sources.part(step)
        print(f"  {_state(progress.of(step.key)):<10} {_numbered(step)}")
    print()
    review.say_due(progress)
    say_next(progress)
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

"""The command ``example``: a program of the course goes into the learner's folder.

Requirement: a learner with a wheel has no checkout, and can still run, read and change the
programs that the steps name.

    python -m tinynode.learn example                 lists the programs
    python -m tinynode.learn example write_sonnets   writes write_sonnets.py here
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import sources
from tinynode_course.progress import PROGRAM, write_file
from tinynode_course.shell import interpreter

SUMMARY = "write a program of the course, such as write_sonnets, into this folder"


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="default: list the programs")


def run(options: argparse.Namespace) -> int:
    """Write a program, or list all.

    Raises:
        CommandError: No program has the name, or another file does.
    """
    programs = {path.stem: path for path in sorted(folder().glob("*.py"))}
    if options.name is None:
        for name, path in programs.items():
            print(f"  {name:<22} {summary(path)}")
        print(f"\nOne of these, as a file in this folder: {PROGRAM} example NAME")
        return 0
    name = options.name.removesuffix(".py")
    if name not in programs:
        raise CommandError(f"example {name}: expected one of {', '.join(programs)}")
    text = programs[name].read_text(encoding="utf-8")
    path = Path(f"{name}.py")
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
        raise CommandError(f"{path} is there, and differs: rename or remove the file first", 1)
    write_file(path, text)
    print(f"wrote {path}. Run the program: {interpreter()} {path}")
    return 0


def folder() -> Path:
    """The folder with the programs, in a checkout and in a wheel."""
    return sources.tutorials() / "examples"


def summary(path: Path) -> str:
    """The first line of the docstring of a program."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]

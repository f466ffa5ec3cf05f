"""The command line: ``python -m tinynode COMMAND``.

Requirement: a new command is a module and an entry in ``COMMANDS``. The module's function
``add_command(commands)`` describes the command to argparse and sets ``run``, the function to call.
The exit statuses of commands:

    0     done
    1     failed during the run, for example because the disk is full
    2     an argument, or a named file or device, cannot be used
    130   stopped by Ctrl-C
    141   the reader of the output has closed the pipe
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tinynode
from tinynode import learn
from tinynode.commands import backends, predict, settings, step, train
from tinynode.commands.command_line import Parser, run_command, show_help

COMMANDS = (train, predict, step, backends, settings, learn)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["learn"]:  # the course reads all further arguments, --help too
        return learn.main(words[1:])
    return run_command(_parser(), words)


def _parser() -> Parser:
    parser = Parser(prog="python -m tinynode", description="The commands of tinynode.")
    parser.add_argument("--version", action="version", version=f"tinynode {tinynode.__version__}")
    parser.set_defaults(run=show_help, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_command(commands)
    return parser

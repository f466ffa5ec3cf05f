"""The command line: ``python -m tinynode COMMAND``.

Requirement: a new command is one module, with a function ``add_command(commands)`` that describes
it to argparse and names the function that runs it, and one entry in ``COMMANDS``. A command ends
with one of these statuses:

    0     done
    1     failed on the way: the disk is full
    2     the command line, or a file or device that it names, cannot be used
    130   stopped by Ctrl-C
    141   nobody reads the output any more
"""

from __future__ import annotations

from collections.abc import Sequence

import tinynode
from tinynode.commands import backends, settings, step, train
from tinynode.commands.command_line import Parser, run_command, show_help

COMMANDS = (train, step, backends, settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    return run_command(_parser(), arguments)


def _parser() -> Parser:
    parser = Parser(prog="python -m tinynode", description="What tinynode can do by itself.")
    parser.add_argument("--version", action="version", version=f"tinynode {tinynode.__version__}")
    parser.set_defaults(run=show_help, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_command(commands)
    return parser

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

import os
import sys
from collections.abc import Sequence

import tinynode
from tinynode.commands import backends, settings, step, train
from tinynode.commands.command_line import CommandError, Parser, show_help

COMMANDS = (train, step, backends, settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # what is still in the buffer has nowhere to go, and Python would try once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except CommandError as error:
        message = " ".join(str(error).split())  # in one line
        print(f"{options.parser.prog}: error: {message}", file=sys.stderr)
        return error.status
    return status


def _parser() -> Parser:
    parser = Parser(prog="python -m tinynode", description="What tinynode can do by itself.")
    parser.add_argument("--version", action="version", version=f"tinynode {tinynode.__version__}")
    parser.set_defaults(run=show_help, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_command(commands)
    return parser

"""Arguments and errors of all commands.

Requirement: bad input gives a line with the cure, and no traceback.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class CommandError(Exception):
    """A command cannot go on. The user sees the message, without a traceback.

    Attributes:
        is_shown: False if another process shows the message.
    """

    is_shown = True

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """argparse's parser, with errors of a single line.

    Attributes:
        given: the words of the last call, with a first ``--``, which Python 3.14 takes away.
    """

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the known arguments; returns the options and the other words."""
        self.given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and leave with status 2."""
        text = " ".join(message.split())
        print(f"{self.prog}: error: {text} (see --help)", file=sys.stderr)
        sys.exit(2)


def run_command(
    parser: Parser, arguments: Sequence[str] | None, farewell: str = "interrupted"
) -> int:
    """Read the arguments and run the named command; returns the exit status.

    Args:
        parser: the parser or the command's parser sets the defaults ``run`` and ``parser``.
        arguments: None means the arguments of the process.
        farewell: the message after Ctrl-C.
    """
    try:
        status = _status(parser.parse_args(arguments))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(farewell, file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the buffer has no reader, and Python would write it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _status(options: argparse.Namespace) -> int:
    """The exit status of a command; the message of a CommandError goes to stderr."""
    try:
        status: int = options.run(options)
    except CommandError as error:
        message = " ".join(str(error).split())  # in a single line
        if error.is_shown:
            print(f"{options.parser.prog}: error: {message}", file=sys.stderr)
        return error.status
    return status


def show_help(options: argparse.Namespace) -> int:
    """Print the help: for a command without a subcommand."""
    print(options.parser.format_help(), end="")
    return 0


def count(text: str) -> int:
    """Read an integer argument, 0 or more."""
    return _integer(text, 0)


def positive_count(text: str) -> int:
    """Read an integer argument, 1 or more."""
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"expected an integer, {least} or more, got {text!r}")
    return number


def positive_number(text: str) -> float:
    """Read a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number

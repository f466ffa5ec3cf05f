"""What the commands share: how arguments are read, and how a command says that it cannot go on.

Requirement: bad input gives one line that says what to change, and no traceback.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


class CommandError(Exception):
    """A command cannot go on. The message is shown to the user, without a traceback."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """argparse's parser, with errors of one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr and leave with status 2."""
        text = " ".join(message.split())
        print(f"{self.prog}: error: {text} (see --help)", file=sys.stderr)
        sys.exit(2)


def run_command(
    parser: Parser, arguments: Sequence[str] | None, farewell: str = "interrupted"
) -> int:
    """Read the arguments and run the command that they name; returns its exit status.

    Args:
        parser: its defaults, or those of a command, are ``run`` and ``parser``.
        arguments: None means those of the process.
        farewell: what is said after Ctrl-C.
    """
    try:
        status = _status(parser.parse_args(arguments))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(farewell, file=sys.stderr)
        return 130
    except BrokenPipeError:
        # what is still in the buffer has nowhere to go, and Python would try once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _status(options: argparse.Namespace) -> int:
    """The status that a command ends with; the message of a CommandError goes to stderr."""
    try:
        status: int = options.run(options)
    except CommandError as error:
        message = " ".join(str(error).split())  # in one line
        print(f"{options.parser.prog}: error: {message}", file=sys.stderr)
        return error.status
    return status


def show_help(options: argparse.Namespace) -> int:
    """What a command does that needs a further word: it lists those words."""
    print(options.parser.format_help(), end="")
    return 0


def count(text: str) -> int:
    """An argument that is an integer, 0 or more."""
    return _integer(text, 0)


def positive_count(text: str) -> int:
    """An argument that is an integer, 1 or more."""
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
    """An argument that is a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number

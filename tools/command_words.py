"""The words behind the name of a tool: ``--help`` prints the tool's text, and nothing is written.

Requirement: a mistyped call changes no page. So each tool that writes files reads its words here,
or with a parser of its own, before any work.
"""

from __future__ import annotations

import argparse


def read(text: str | None, *names: str) -> list[str]:
    """The words of the command line, one for each name.

    Ends the program for ``--help``, for a missing word, and for a word too many.

    Args:
        text: The docstring of the tool.
        names: Names of words, such as "FOLDER".
    """
    parser = argparse.ArgumentParser(
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in names:
        parser.add_argument(name)
    options = parser.parse_args()
    return [getattr(options, name) for name in names]

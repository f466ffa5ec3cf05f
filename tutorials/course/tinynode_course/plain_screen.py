"""The pieces of a step as lines: text is Markdown as written.

A piece of code has ``|`` on the left, with ``+`` at new lines. Output has ``>`` on the left.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tinynode
from tinynode_course import mynode
from tinynode_course.mynode import Excerpt


class PlainScreen:
    """Lines of text."""

    def text(self, text: str) -> None:
        """Show Markdown."""
        print(text.strip("\n") + "\n")

    def code(self, code: str, marked: tuple[int, ...] = ()) -> None:
        """Show code; the lines ``marked``, counted from 1, are new."""
        for number, line in enumerate(code.strip("\n").splitlines(), 1):
            print(f"{'+' if number in marked else ' '} | {line}".rstrip())
        print()

    def excerpt(self, part: Excerpt) -> None:
        """Show code of ``mynode``, with a caption."""
        print(caption(part))
        self.code(part.code, part.marked)

    def output(self, text: str) -> None:
        """Show printed text of a cell."""
        for line in text.strip("\n").splitlines():
            print(f"  > {line}".rstrip())
        print(flush=True)

    def end(self) -> None:
        """Show what waits for the pager."""
        sys.stdout.flush()


def caption(part: Excerpt) -> str:
    """The path of an excerpt, and the file of tinynode with the same name."""
    line = f"{mynode.NAME}/{part.path}"
    if package_file(part.path):
        line += f"   (in the package: {package_file(part.path)})"
    return line + ("   + marks new lines" if part.marked else "")


def package_file(path: str) -> str:
    """The file of tinynode for a file of ``mynode``; "" if there is none."""
    there = Path(tinynode.__file__).parent / path
    return f"tinynode/{path}" if "/" in path and there.is_file() else ""

"""How ``run`` shows the pieces of a step: in colours by rich, or as plain lines.

Requirement: text, code and output are told apart at a glance, in a terminal and in a file. The
package rich is optional. It draws in a terminal only.

A piece of code has ``|`` on the left, with ``+`` at new lines. Output has ``>`` on the left.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import tinynode
from tinynode_course import mynode, pager
from tinynode_course.mynode import Excerpt
from tinynode_course.plain_text import FENCE, HEADING, plain, words

WIDEST = 100
"""The most columns of text: longer lines are hard to read."""


class PlainScreen:
    """Lines of text."""

    def text(self, text: str) -> None:
        """Show Markdown."""
        print(plain(text).strip("\n") + "\n")

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


class RichScreen(PlainScreen):
    """Text, code and output in colours.

    With ``paged``, the method ``end`` shows all text with the pager.
    """

    def __init__(self, paged: bool) -> None:
        from rich import console, theme  # rich is optional

        styles = theme.Theme({"markdown.code": "cyan", "markdown.link": "underline"})
        width = min(WIDEST, shutil.get_terminal_size().columns)
        self._console = console.Console(
            file=sys.stdout, width=width, highlight=False, theme=styles
        )
        self._paged = paged and bool(pager.pager())
        if self._paged:
            self._console.begin_capture()

    def text(self, text: str) -> None:
        """Show Markdown; headings at the left, in place of rich's headings in the middle."""
        from rich import markdown  # rich is optional

        for heading, body in sections(text):
            if heading:
                self._heading(heading)
            if body.strip():
                shown = markdown.Markdown(body, code_theme="ansi_dark", inline_code_lexer="python")
                self._console.print(shown)
                self._console.print()

    def _heading(self, line: str) -> None:
        found = HEADING.match(line)
        title = words(found[2]) if found else line
        first = line.startswith("# ")
        style = "bold reverse" if first else "bold cyan"
        self._console.print(f" {title} " if first else title, style=style, markup=False)

    def code(self, code: str, marked: tuple[int, ...] = ()) -> None:
        """Show code; new lines have a green sign."""
        from rich import syntax, text  # rich is optional

        highlighted = syntax.Syntax("", "python", theme="ansi_dark").highlight(code.strip("\n"))
        highlighted.rstrip()
        for number, line in enumerate(highlighted.split("\n"), 1):
            new = number in marked
            lead = ("+ ┃ ", "bold green") if new else ("  │ ", "dim")
            self._console.print(text.Text.assemble(lead, line), soft_wrap=True)
        self._console.print()

    def excerpt(self, part: Excerpt) -> None:
        """Show code of ``mynode``, with a caption."""
        self._console.print(caption(part), style="italic", markup=False)
        self.code(part.code, part.marked)

    def output(self, text: str) -> None:
        """Show printed text of a cell."""
        from rich import text as texts  # rich is optional

        for line in text.strip("\n").splitlines():
            shown = texts.Text.assemble(("  ▌ ", "yellow"), texts.Text.from_ansi(line))
            self._console.print(shown, soft_wrap=True)
        self._console.print()

    def end(self) -> None:
        """Show what waits for the pager."""
        if self._paged:
            waiting = self._console.end_capture()
            self._console.begin_capture()
            if waiting.strip():
                pager.show(waiting)
        super().end()


def make(paged: bool, terminal: bool) -> PlainScreen:
    """The screen of this process; ``terminal`` is True if stdout is a terminal."""
    if terminal and importlib.util.find_spec("rich") is not None:
        return RichScreen(paged)
    return PlainScreen()


def sections(text: str) -> list[tuple[str, str]]:
    """Markdown as pairs of a heading, or "", and the text below the heading."""
    found: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        if not fence and HEADING.match(line):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return [(heading, "\n".join(lines)) for heading, lines in found]


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


def is_terminal(stream: Any) -> bool:
    """True for a terminal; False for a file, a pipe, and a closed stream."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False

"""The screen in colours: rich sets text and code. Only ``screen.make`` imports this file."""

from __future__ import annotations

import shutil
import sys

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from tinynode_course import pager
from tinynode_course.mynode import Excerpt
from tinynode_course.plain_screen import PlainScreen, caption

WIDEST = 100
"""The most columns of text: longer lines are hard to read."""


class RichScreen(PlainScreen):
    """Text, code and output in colours.

    With ``paged``, the method ``end`` shows all text with the pager.
    """

    def __init__(self, paged: bool) -> None:
        styles = Theme({"markdown.code": "cyan", "markdown.link": "underline"})
        width = min(WIDEST, shutil.get_terminal_size().columns)
        self._console = Console(file=sys.stdout, width=width, highlight=False, theme=styles)
        self._paged = paged and bool(pager.pager())
        if self._paged:
            self._console.begin_capture()

    def text(self, text: str) -> None:
        """Show Markdown."""
        shown = Markdown(
            text, code_theme="ansi_dark", inline_code_lexer="python", hyperlinks=False
        )
        self._console.print(shown)
        self._console.print()

    def code(self, code: str, marked: tuple[int, ...] = ()) -> None:
        """Show code; new lines have a green sign."""
        highlighted = Syntax("", "python", theme="ansi_dark").highlight(code.strip("\n"))
        highlighted.rstrip()
        for number, line in enumerate(highlighted.split("\n"), 1):
            lead = ("+ ┃ ", "bold green") if number in marked else ("  │ ", "dim")
            self._console.print(Text.assemble(lead, line), soft_wrap=True)
        self._console.print()

    def excerpt(self, part: Excerpt) -> None:
        """Show code of ``mynode``, with a caption."""
        self._console.print(caption(part), style="italic", markup=False)
        self.code(part.code, part.marked)

    def output(self, text: str) -> None:
        """Show printed text of a cell."""
        for line in text.strip("\n").splitlines():
            shown = Text.assemble(("  ▌ ", "yellow"), Text.from_ansi(line))
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

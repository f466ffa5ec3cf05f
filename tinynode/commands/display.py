"""The output of a training run: the rows of a table, and in a terminal a progress bar below.

Requirement: the output reads well in a file too. Without a terminal, or without the optional
package rich, the output is plain lines, written without delay.
"""

from __future__ import annotations

import importlib.util
import sys
from types import TracebackType
from typing import Any, Self


class PlainDisplay:
    """Lines, and no progress bar."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.stdout.flush()

    def line(self, text: str) -> None:
        """Write a line."""
        print(text, flush=True)

    def advance(self, steps: int) -> None:
        """``steps`` more steps are done."""


class RichDisplay(PlainDisplay):
    """Lines above a progress bar; the bar disappears at the end."""

    def __init__(self, total: int) -> None:
        # rich is optional, and its import takes longer than tinynode's
        from rich import progress

        self._progress = progress.Progress(
            progress.TextColumn("training"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(),
            transient=True,
        )
        self._task = self._progress.add_task("training", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.stop()
        super().__exit__(*error)

    def line(self, text: str) -> None:
        """Write a line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def advance(self, steps: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, steps)


def make_display(total: int) -> PlainDisplay:
    """The display for standard output; ``total`` is the number of steps of a full bar."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        return RichDisplay(total)
    return PlainDisplay()

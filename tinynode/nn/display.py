"""The output of a training run: the rows of a table, and a progress bar below.

Requirement: the output reads well in a file too. A bar moves in a terminal, by the package rich,
which is optional, and in a notebook's cell, by IPython. All other output is plain lines, written
without delay. A line with ``!`` in a notebook prints plain lines: the output is a
pseudo-terminal, but notebooks print control codes as text.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import Any, Self

TERMINAL_VARIABLE = "TINYNODE_TERMINAL"
"""The columns of the terminal, for a process whose output reaches a terminal through a pipe."""


class PlainDisplay:
    """Lines, and no progress bar."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
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
        from rich import console, progress

        columns = _columns_behind_pipe()
        through_pipe = console.Console(force_terminal=True, width=columns) if columns else None
        self._progress = progress.Progress(
            progress.TextColumn("training"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(),
            transient=True,
            console=through_pipe,
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


class NotebookDisplay(PlainDisplay):
    """Lines, and a progress bar in the output of a cell; the bar disappears at the end."""

    LENGTH = 40
    SECONDS = 0.1  # between two pictures of the bar

    def __init__(self, total: int, display: Any) -> None:
        self._total = max(total, 1)
        self._done = 0
        self._drawn = 0.0
        self._display = display
        self._handle: Any = None

    def __enter__(self) -> Self:
        self._handle = self._display(self._bar(), raw=True, display_id=True)
        return self

    def __exit__(self, *error: Any) -> None:
        self._handle.update({"text/plain": ""}, raw=True)
        super().__exit__(*error)

    def advance(self, steps: int) -> None:
        """Move the bar, ten times a second at most."""
        self._done += steps
        now = time.monotonic()
        if now - self._drawn >= self.SECONDS:
            self._drawn = now
            self._handle.update(self._bar(), raw=True)

    def _bar(self) -> dict[str, str]:
        share = min(self._done / self._total, 1.0)
        full = round(share * self.LENGTH)
        bar = "█" * full + "░" * (self.LENGTH - full)
        return {"text/plain": f"training {bar} {share:4.0%}"}


class NoDisplay(PlainDisplay):
    """Nothing is written."""

    def line(self, text: str) -> None:
        """Write nothing."""


def make_display(total: int, quiet: bool = False) -> PlainDisplay:
    """The display for standard output; ``total`` is the number of steps of a full bar."""
    if quiet:
        return NoDisplay()
    if type(sys.stdout).__module__.startswith("ipykernel"):
        from IPython.display import display  # this process is a kernel, so the package is there

        return NotebookDisplay(total, display)
    if is_capable_terminal() and importlib.util.find_spec("rich") is not None:
        return RichDisplay(total)
    return PlainDisplay()


def is_capable_terminal() -> bool:
    """True if standard output is a terminal that can move the cursor.

    False for the pseudo-terminal of a notebook's line with ``!``: Jupyter gives the environment of
    kernels a variable.
    """
    dumb = os.environ.get("TERM", "") in ("dumb", "unknown")
    is_terminal = sys.stdout.isatty() or _columns_behind_pipe() is not None
    return is_terminal and not dumb and "JPY_PARENT_PID" not in os.environ


def _columns_behind_pipe() -> int | None:
    """The columns of the terminal behind a pipe, if the starter of the process has told them."""
    text = os.environ.get(TERMINAL_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None

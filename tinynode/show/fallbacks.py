"""What a backend's kernels ran, and what they left to the portable forward.

Requirement: whoever moves a program to a fast path sees what it does there: which functions its
kernels ran, which fell back and why, how often, and what time that took.
"""

from __future__ import annotations

from tinynode.devices import Use, fallback_uses, kernel_uses
from tinynode.hooks.table import format_table

_HEAD = ("backend", "function", "kernel or why not", "calls", "time, ms")


def fallbacks(*, reset: bool = False) -> str:
    """A table of the functions that backends with kernels of their own ran, to ``print``.

    A row for each function and kernel, the longest time first; then one for each function and
    reason that it fell back. Functions without either are not listed: those of a backend without
    kernels, and those that a backend runs as the portable forward does, because that is as quick
    (one call of the array library, or a small array). Calls count since the start or the last
    reset, in all threads.

    Args:
        reset: count from zero after this.
    """
    rows = [*_rows(kernel_uses, "{}"), *_rows(fallback_uses, "no: {}")]
    if reset:
        kernel_uses.clear()
        fallback_uses.clear()
    if not rows:
        return "no function ran on a kernel of its backend, and none fell back"
    return format_table(_HEAD, rows, left=(0, 1, 2))


def _rows(uses: dict[tuple[str, str, str], Use], text: str) -> list[tuple[str, ...]]:
    """A row for each use, the longest time first."""
    known = sorted(uses.items(), key=_seconds, reverse=True)
    return [
        (backend, function, text.format(how), str(use.calls), f"{use.seconds * 1e3:.3f}")
        for (backend, function, how), use in known
    ]


def _seconds(item: tuple[tuple[str, str, str], Use]) -> float:
    return item[1].seconds

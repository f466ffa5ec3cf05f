"""The functions run by a backend's kernels, and the functions run by the portable forward.

Requirement: a user moves a program to a fast path, and sees the use of the path. A table has the
functions run by kernels, the fallbacks with their reasons, the number of calls, and the time.
"""

from __future__ import annotations

from tinynode.devices import Use, fallback_uses, kernel_uses
from tinynode.hooks.table import format_table

_HEAD = ("backend", "function", "kernel or why not", "calls", "time, ms")


def fallbacks(*, reset: bool = False) -> str:
    """A table of the functions run on backends with kernels, to ``print``.

    The table has a row for each function and kernel, the longest time first; then a row for each
    function and reason of a fallback. Functions of backends without kernels have no row. Nor has
    a function with a portable forward as quick as a kernel: a single call of the array library,
    or a small array. Calls of all threads count, since the start or the last reset.

    Args:
        reset: count from zero afterwards.
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

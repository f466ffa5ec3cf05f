"""Tables of what is counted while programs run: kernels and their fallbacks, copies to devices.

Requirement: a user moves a program to a fast path, or to a GPU by one setting, and sees the use.
A table has the functions run by kernels, and the fallbacks with their reasons. Another table has
the copies of NumPy arrays to a device: one copy before a loop can replace a copy in each step.
"""

from __future__ import annotations

from tinynode.devices import Transfer, Use, clear_transfers, fallback_uses, kernel_uses
from tinynode.devices import transfers as counted
from tinynode.hooks.table import format_table

_OF_FALLBACKS = ("backend", "function", "kernel or why not", "calls", "time, ms")
_OF_TRANSFERS = ("function", "device", "copies", "again", "bytes", "bytes per copy")
_CURE = (
    "again: copies of memory that was copied before. If an array does not change, copy it once, "
    "before the loop: x = tinynode.asarray(x)"
)


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
    return format_table(_OF_FALLBACKS, rows, left=(0, 1, 2))


def _rows(uses: dict[tuple[str, str, str], Use], text: str) -> list[tuple[str, ...]]:
    """A row for each use, the longest time first."""
    known = sorted(uses.items(), key=_seconds, reverse=True)
    return [
        (backend, function, text.format(how), str(use.calls), f"{use.seconds * 1e3:.3f}")
        for (backend, function, how), use in known
    ]


def _seconds(item: tuple[tuple[str, str, str], Use]) -> float:
    return item[1].seconds


def transfers(*, reset: bool = False) -> str:
    """A table of the copies of NumPy arrays to devices with memory of their own, to ``print``.

    The table has a row for each function and device, the most bytes first. Copies of all threads
    count, since the start or the last reset. Lists and numbers are not counted. The column "again"
    counts the copies of an array, or of the same part of it, that was copied before. Such a loop
    is cheaper with ``tinynode.asarray(array)`` before it; a last line says so.

    Args:
        reset: count from zero afterwards.
    """
    known = sorted(counted.items(), key=_bytes, reverse=True)
    if reset:
        clear_transfers()
    if not known:
        return "no array of NumPy was copied to another device"
    rows = [
        (
            *(function, device, str(one.copies), str(one.again)),
            *(str(one.nbytes), str(one.nbytes // one.copies)),
        )
        for (function, device), one in known
    ]
    table = format_table(_OF_TRANSFERS, rows, left=(0, 1))
    has_repeats = any(one.again for _, one in known)
    return f"{table}\n{_CURE}" if has_repeats else table


def _bytes(item: tuple[tuple[str, str], Transfer]) -> int:
    return item[1].nbytes

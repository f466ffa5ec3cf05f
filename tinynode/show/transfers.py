"""The copies of host data to devices.

Requirement: a NumPy array beside a Variable on a GPU is copied there, so that a program moves by
one setting. A user sees what the copies are, and can make them once in place of each step.
"""

from __future__ import annotations

from tinynode.devices import Transfer, clear_transfers
from tinynode.devices import transfers as counted
from tinynode.hooks.table import format_table

_HEAD = ("function", "device", "copies", "again", "bytes", "bytes per copy")
_CURE = (
    "again: copies of memory that was copied before. If an array does not change, copy it once, "
    "before the loop: x = tinynode.asarray(x)"
)


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
    table = format_table(_HEAD, rows, left=(0, 1))
    has_repeats = any(one.again for _, one in known)
    return f"{table}\n{_CURE}" if has_repeats else table


def _bytes(item: tuple[tuple[str, str], Transfer]) -> int:
    return item[1].nbytes

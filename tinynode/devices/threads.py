"""Threads: large arrays are shared by the cores.

Requirement: a loop over a large array uses every core. NumPy and compiled functions release the
interpreter's lock while they compute.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable
from typing import Any


@functools.cache
def thread_count() -> int:
    """TINYNODE_THREADS, else OMP_NUM_THREADS, else the number of cores of the process."""
    for variable in ("TINYNODE_THREADS", "OMP_NUM_THREADS"):
        wanted = os.environ.get(variable, "").partition(",")[0]
        if wanted.isdecimal() and int(wanted) > 0:
            return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_shares(length: int, size: int, work: Callable[[int, int], Any]) -> list[Any]:
    """The results of ``work(start, stop)`` for shares of a size, each in a thread, in order."""
    starts = range(0, length, size)
    results: dict[int, Any] = {}

    def run(start: int) -> None:
        try:
            results[start] = work(start, min(start + size, length))
        except BaseException as error:
            results[start] = error

    running: list[threading.Thread] = []
    try:
        for start in starts[1:]:
            # the caller's numpy.errstate is a context variable, so it holds in the thread too
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(run, start))
            try:
                thread.start()
                running.append(thread)
            except RuntimeError:  # no thread can start, as when the program ends
                run(start)
        run(0)
    finally:  # no thread may write to the arrays after the return
        for thread in running:
            thread.join()
    for error in [result for result in results.values() if isinstance(result, BaseException)]:
        raise error
    return [results[start] for start in starts]

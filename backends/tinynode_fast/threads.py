"""Threads: large arrays are shared by the cores.

Requirement: a loop over a large array uses every core. NumPy and compiled functions release the
interpreter's lock while they compute.
"""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@functools.cache
def thread_count() -> int:
    """TINYNODE_THREADS, else OMP_NUM_THREADS, else the number of cores of the process."""
    for variable in ("TINYNODE_THREADS", "OMP_NUM_THREADS"):
        wanted = os.environ.get(variable, "").partition(",")[0]
        if wanted.isdigit() and int(wanted) > 0:
            return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def pool() -> ThreadPoolExecutor:
    """The threads that all calls share: made at the first use, and again after a fork."""
    # imported here: the module refuses to be imported when the program ends
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max(thread_count() - 1, 1), "tinynode_fast")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)


def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call in a thread; in this one if no thread can start, as when the program ends."""
    future: Future[Any] = Future()
    # the caller's numpy.errstate is a context variable, so it holds in the thread too
    call = functools.partial(contextvars.copy_context().run, function, *arguments)
    try:
        pool().submit(_fulfil, future, call)
    except RuntimeError:
        if future.cancel():  # no thread has begun the call, and none will
            future = Future()
            _fulfil(future, call)
    return future


def _fulfil(future: Future[Any], call: Callable[[], Any]) -> None:
    """Make a call; the future gets its result or its error."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def in_shares(length: int, size: int, work: Callable[[int, int], Any]) -> list[Any]:
    """The results of ``work(start, stop)`` for shares of a size, each in a thread, in order."""
    waiting: list[Future[Any]] = []
    try:
        for start in range(size, length, size):
            waiting.append(submit(work, start, min(start + size, length)))
        first = work(0, min(size, length))
    finally:  # no thread may write to the arrays after the return
        wait(waiting)
    return [first, *[future.result() for future in waiting]]

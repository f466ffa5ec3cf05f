"""Blocks: whole arrays are cut into pieces that stay in the cache, and shared by threads.

Requirement: a chain of NumPy functions keeps intermediate results in the cache, not in memory.
Large arrays use every core. A block function is called as
``function(inputs, outputs, scratch)``. It writes to ``outputs``; ``scratch`` holds arrays like the
first output. It is called with whole arrays or with parts along their first axis. NumPy releases
the interpreter's lock while it computes.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy

from tinynode.devices import Arrays
from tinynode_fast.limits import LIMITS

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

BlockFunction: TypeAlias = Callable[[Arrays, Arrays, Arrays], None]


@functools.cache
def thread_count() -> int:
    """The number of threads: OMP_NUM_THREADS if it is set, else the number of cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
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


def run(function: BlockFunction, inputs: Arrays, outputs: Arrays, scratch: int = 0) -> None:
    """Run a block function block by block, with a number of scratch arrays.

    All arrays have the same length; the first output is the largest array.
    """
    first, length = outputs[0], len(outputs[0])
    # pragma: no mutate (ReplaceComparisonOperator_LtE_Lt): one block by either branch
    if first.size <= LIMITS.block:
        function(inputs, outputs, tuple([numpy.empty_like(first) for _ in range(scratch)]))
        return
    step = max(1, LIMITS.block // max(1, math.prod(first.shape[1:])))

    def run_share(start: int, stop: int) -> None:
        shape = (min(step, stop - start), *first.shape[1:])
        spare = [numpy.empty(shape, first.dtype) for _ in range(scratch)]
        for low in range(start, stop, step):
            high = min(low + step, stop)
            function(
                tuple([x[low:high] for x in inputs]),
                tuple([y[low:high] for y in outputs]),
                tuple([s[: high - low] for s in spare]),
            )

    shares = thread_count() if first.size >= LIMITS.threaded else 1
    in_shares(length, -(-length // shares), run_share)


def run_flat(function: BlockFunction, inputs: Arrays, scratch: int = 0) -> Any:
    """The result of an elementwise block function; the inputs have one shape and dtype.

    The result's axes lie in memory in the order of the first input's axes.
    """
    y = numpy.empty_like(inputs[0])
    axes = memory_order(y)
    # an input with another order of axes is copied here
    flat = tuple([x.transpose(axes).reshape(-1) for x in inputs])
    run(function, flat, (y.transpose(axes).reshape(-1),), scratch)
    return y


def memory_order(x: Any) -> list[int]:
    """The axes of x, from the largest step in memory to the smallest."""
    return sorted(range(x.ndim), key=[-abs(stride) for stride in x.strides].__getitem__)


def in_order(straight: Any, axes: Sequence[int]) -> Any:
    """A view of an array in C order, whose axes are ``axes`` of the view."""
    return straight.transpose(sorted(range(len(axes)), key=axes.__getitem__))


@functools.lru_cache(LIMITS.numbers)
def number(value: float, dtype: Any) -> Any:
    """A number as a read-only 0-d array: NumPy converts a Python number at every call."""
    array = numpy.asarray(value, dtype)
    array.flags.writeable = False
    return array


def give_pages_back() -> None:
    """Give freed memory back to the system, where the C library can: see malloc_trim(3).

    The recording of a net, and a dropped plan, need more memory than later runs.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@functools.cache
def _c_library() -> Any:
    """The C library of the process; None on systems without access."""
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None

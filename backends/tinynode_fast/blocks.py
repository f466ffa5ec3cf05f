"""Kernels over blocks: whole arrays are cut into pieces that stay in the cache.

Requirement: a chain of NumPy functions should read and write its intermediate results in the
cache, not in memory, and large arrays should use every core. So a kernel is a function
``kernel(inputs, outputs, scratch)`` that writes to ``outputs`` and uses ``scratch`` (arrays like
the first output) on the way. It may be called with whole arrays or with any part of them along
their first axis; NumPy releases the interpreter's lock while it computes.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Arrays: TypeAlias = tuple[Any, ...]
Kernel: TypeAlias = Callable[[Arrays, Arrays, Arrays], None]


class Entry(NamedTuple):
    """What the backend knows of a class: its kernel's name, and where it pays.

    ``run(node, arrays)`` gives the outputs, ``Fallback``, or None where the portable forward is
    as quick. So it is for a first input of fewer than ``least`` elements.
    """

    name: str
    least: int
    run: Callable[[Any, Arrays], Any]


BLOCK = 1 << 16
"""So many elements of an array make a block."""
THREADED = 1 << 20
"""Arrays of so many elements are shared out to the threads. Handing a share over may take as long
as a small kernel where other programs use the cores too."""


@functools.cache
def thread_count() -> int:
    """The number of threads: OMP_NUM_THREADS where it is set, else the number of cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Threads:
    """The pool that all calls share. It is made when first used, and again after a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """A call in a thread; here and now where none can be had, as when the program ends."""
        future: Future[Any] = Future()
        # the caller's numpy.errstate holds in the thread too: it is a context variable
        call = functools.partial(contextvars.copy_context().run, function, *arguments)
        try:
            with self.lock:
                if self.pool is None:
                    self.pool = _new_pool()
                self.pool.submit(_fulfil, future, call)
        except RuntimeError:
            if future.cancel():  # no thread has begun, and none will
                future = Future()
                _fulfil(future, call)
        return future


def _new_pool() -> ThreadPoolExecutor:
    # imported here: the module refuses to be imported when the program ends
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max(thread_count() - 1, 1), "tinynode_fast")


def _fulfil(future: Future[Any], call: Callable[[], Any]) -> None:
    """Make a call, and note in the future how it ended."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


_threads = _Threads()
if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_threads.forget)


def run(kernel: Kernel, inputs: Arrays, outputs: Arrays, scratch: int = 0) -> None:
    """Run a kernel block by block; the arrays have one length along their first axes.

    Args:
        kernel: the function.
        inputs: what it reads.
        outputs: what it writes; the first is the largest array.
        scratch: how many arrays like the first output it uses on the way.
    """
    first = outputs[0]
    length = first.shape[0]
    if first.size <= BLOCK:
        kernel(inputs, outputs, tuple([numpy.empty_like(first) for _ in range(scratch)]))
        return
    step = max(1, BLOCK // max(1, math.prod(first.shape[1:])))
    shares = thread_count() if first.size >= THREADED else 1
    work = functools.partial(_run_share, kernel, inputs, outputs, scratch, step)
    in_shares(length, -(-length // shares), work)


def _run_share(
    kernel: Kernel, inputs: Arrays, outputs: Arrays, scratch: int, step: int, start: int, stop: int
) -> None:
    """Run a kernel on the blocks from ``start`` to ``stop``, with scratch arrays of its own."""
    like = outputs[0]
    shape = (min(step, stop - start), *like.shape[1:])
    spare = tuple(numpy.empty(shape, like.dtype) for _ in range(scratch))
    for low in range(start, stop, step):
        high = min(low + step, stop)
        kernel(
            tuple([x[low:high] for x in inputs]),
            tuple([y[low:high] for y in outputs]),
            tuple([s[: high - low] for s in spare]),
        )


def in_shares(length: int, size: int, work: Callable[[int, int], Any]) -> list[Any]:
    """The results of ``work(start, stop)`` for shares of a size, each in a thread, in order."""
    waiting: list[Future[Any]] = []
    try:
        for start in range(size, length, size):
            waiting.append(_threads.submit(work, start, min(start + size, length)))
        first = work(0, min(size, length))
    finally:  # nobody may write to the arrays any more when this returns
        errors = [future.exception() for future in waiting]
    for error in errors:
        if error is not None:
            raise error
    return [first, *[future.result() for future in waiting]]


def run_flat(kernel: Kernel, inputs: Arrays, scratch: int = 0) -> Any:
    """The result of an elementwise kernel; the inputs have one shape and dtype.

    The result lies in memory in the order of the first input's axes.
    """
    first = inputs[0]
    if all(x.flags.c_contiguous for x in inputs):
        y = numpy.empty(first.shape, first.dtype)
        run(kernel, tuple([x.reshape(-1) for x in inputs]), (y.reshape(-1),), scratch)
        return y
    axes = memory_order(first)
    # where the inputs do not lie alike, this copies
    straight = tuple([numpy.asarray(x.transpose(axes), order="C") for x in inputs])
    return run_flat(kernel, straight, scratch).transpose(numpy.argsort(axes))


def memory_order(x: Any) -> list[int]:
    """The axes of x, from the largest step in memory to the smallest."""
    return sorted(range(x.ndim), key=[-abs(stride) for stride in x.strides].__getitem__)


@functools.lru_cache(1024)
def number(value: float, dtype: Any) -> Any:
    """A number as an array of a dtype: NumPy converts a Python number at every call."""
    array = numpy.asarray(value, dtype)
    array.flags.writeable = False
    return array


KEPT = 1 << 26
"""So many bytes are kept for a thread at most."""


class _Workspace(threading.local):
    """Memory that a thread uses again and again: fresh memory costs page faults."""

    def __init__(self) -> None:
        self.memory = numpy.empty(0, numpy.uint8)


_workspace = _Workspace()


def workspace(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of this thread's workspace: it holds until the next call, and is never a result."""
    size = math.prod(shape) * dtype.itemsize
    if size > KEPT:
        return numpy.empty(shape, dtype)
    if _workspace.memory.size < size:
        _workspace.memory = numpy.empty(size, numpy.uint8)
    return _workspace.memory[:size].view(dtype).reshape(shape)


def keep_pages() -> None:
    """Let the C library keep what is freed, up to about 60 MB: a page that it gives back costs a
    page fault when it is needed again. It is called once, when the backend is loaded.

    glibc raises its limits when a block that it mapped is freed, as far as 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD). The block here is never touched, so it takes no memory. Elsewhere this does
    nothing, nor where MALLOC_MMAP_THRESHOLD_ or MALLOC_TRIM_THRESHOLD_ are set.
    """
    numpy.empty(31 << 20, numpy.uint8)

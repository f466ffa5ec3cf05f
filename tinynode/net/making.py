"""Whether a net is made now: recorded, or differentiated.

Requirement: a net is made from a run whose values do not count. Functions for messages between
processes send nothing there, since the other processes may make no net at the time.

A net of thousands of operators is made of many small objects, without garbage. Python's collector
would look at all objects again and again, so the collector pauses meanwhile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tinynode.core.hooks import is_recording_net


class _State(threading.local):
    """The number of gradient nets in the making, for each thread."""

    def __init__(self) -> None:
        self.depth = 0


_state = _State()


class _Pause:
    """The pause of the collector.

    Attributes:
        depth: the number of nets in the making, in all threads.
        was_on: True if the collector was on before the first.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finalizer may record, too
        self.depth = 0
        self.was_on = False


_pause = _Pause()


@contextmanager
def paused_collector() -> Iterator[None]:
    """A context without runs of Python's collector; reference counts free memory as before."""
    with _pause.lock:
        if _pause.depth == 0:
            _pause.was_on = gc.isenabled()
            gc.disable()
        _pause.depth += 1
    try:
        yield
    finally:
        with _pause.lock:
            _pause.depth -= 1
            if _pause.depth == 0 and _pause.was_on:
                gc.enable()


@contextmanager
def making_net() -> Iterator[None]:
    """A context in which ``is_making_net`` is True."""
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1


def is_making_net() -> bool:
    """True while the thread records a function, or makes a gradient net."""
    return _state.depth > 0 or is_recording_net()

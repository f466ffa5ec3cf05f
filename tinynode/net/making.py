"""Whether a net is made now: recorded, or differentiated.

Requirement: a net is made from a run whose values do not count. Functions for messages between
processes send nothing there, since the other processes may make no net at the time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tinynode.core.hooks import is_recording_net


class _State(threading.local):
    """The number of gradient nets in the making, for each thread."""

    def __init__(self) -> None:
        self.depth = 0


_state = _State()


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

"""Commit: the end of a compiled training step, where new parameters replace the old ones.

Requirement: a step takes effect as a whole, or not at all. A plan may write new parameters and
moments over the old arrays, which saves the memory of a second copy. So a plan runs every other
operator first. An error of such an operator leaves all parameters unchanged. From ``begin`` to
``end`` nothing stops the step: Ctrl-C waits, and compiled functions of other threads wait.

An array is overwritten without another holder alone. A view, a graph or a variable of the user
is a holder. Other holders than references to the array are unknown here. So eager code of another
thread must not read a parameter during a step.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

active = 0
"""The number of open commits; at most 1, apart from code run by a finalizer."""
_lock = threading.RLock()


def _after_fork() -> None:
    """The child of a fork has no committing thread."""
    global active, _lock
    active, _lock = 0, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def wait() -> None:
    """Wait until no other thread writes over parameters."""
    with _lock:
        pass


class Commit:
    """The commit of a step.

    Args:
        holders: the number of references by parameters, moments and the call, for each array
            to overwrite, by name.
    """

    def __init__(self, holders: Mapping[str, int]) -> None:
        self.holders = holders
        self.has_begun = False
        self._handler: Any = None
        self._interrupt: Any = None

    def begin(self) -> None:
        """Hold back Ctrl-C and other threads until ``end``."""
        global active
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        _lock.acquire()
        active += 1
        self.has_begun = True

    def _note(self, number: int, frame: Any) -> None:
        self._interrupt = number, frame

    def is_free(self, name: str, arrays: Sequence[Any], place: int, others: int) -> bool:
        """True if ``arrays[place]`` has no other holder.

        Args:
            name: the name of the array.
            arrays: a list with the array.
            others: the number of references by the plan, beside ``arrays``.
        """
        allowed = self.holders.get(name)
        return allowed is not None and _count(arrays, place) <= _ALONE + others + allowed

    def end(self) -> None:
        """Let others go on. A Ctrl-C since ``begin`` is answered now."""
        global active
        if self.has_begun:
            self.has_begun = False
            active -= 1
            _lock.release()
        if self._handler is not None:
            handler, self._handler = self._handler, None
            signal.signal(signal.SIGINT, handler)
            if self._interrupt is not None:
                handler(*self._interrupt)


def _count(arrays: Sequence[Any], place: int) -> int:
    """The count of references to an element."""
    return sys.getrefcount(arrays[place])


_ALONE = _count([object()], 0)
"""The count for an object held by a list alone."""

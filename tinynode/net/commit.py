"""Commit: the end of a compiled training step, where new parameters replace the old ones.

Requirement: a step takes effect as a whole, or not at all. A plan may write new parameters and
moments over the old arrays, which saves the memory of a second copy. So a plan runs every other
operator first. An error of such an operator leaves all parameters unchanged. From ``begin`` to
``end`` nothing stops the step: Ctrl-C waits, and compiled functions of other threads wait.

An array is overwritten only if the step owns the memory and nobody else can see it: see
``owned_memory``. A view, a graph or a variable of the user keeps the old array. Eager code of
another thread must not read a parameter during a step.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy

from tinynode.net.owned_memory import is_alone, owned_copy

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
    if active:
        with _lock:
            pass


class ArrayHolder(NamedTuple):
    """Where a parameter or a moment stands.

    Attributes:
        slot: the optimizer's slot.
        moment: the name of the moment; None for the parameter.
    """

    slot: Any
    moment: str | None

    def own(self) -> None:
        """Move the array to owned memory, if NumPy made it."""
        slot, moment = self
        array = slot.parameter.raw if moment is None else slot.moments[moment]
        if type(array) is numpy.ndarray:
            self.put(owned_copy(array))

    def put(self, array: Any) -> None:
        """Put another array of the same values there."""
        if self.moment is None:
            self.slot.parameter.raw = array
        else:  # a new dict: a user may hold the old one
            self.slot.moments = {**self.slot.moments, self.moment: array}


class Commit:
    """The commit of a step.

    Args:
        places: the parameters and moments to overwrite, by name.
    """

    def __init__(self, places: Mapping[str, ArrayHolder]) -> None:
        self.places = places
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

    def take(self, name: str, array: Any) -> bool:
        """True if the step may write over an array that was lent to it by ``lent``.

        The array takes the place of the array that lent the memory. So the memory is free if
        nobody else holds an array on it.
        """
        place = self.places.get(name)
        if place is None:
            return False
        place.put(array)
        return is_alone(array)

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

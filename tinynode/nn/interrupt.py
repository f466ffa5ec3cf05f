"""Ctrl-C as a request.

Requirement: after Ctrl-C at any time, parameters and optimizer belong to the same step. So Ctrl-C
does not stop the program between two arbitrary lines, but sets a flag for the training loop. A
second Ctrl-C stops the program at once: a step may take minutes.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any, Self

_SAME_PRESS = 0.5
"""Seconds: two signals this close are one Ctrl-C, since a launcher may repeat the signal."""


class Interrupt:
    """``with Interrupt() as interrupt:`` a Ctrl-C in the block sets ``interrupt.requested``.

    A second Ctrl-C raises KeyboardInterrupt. In a block inside another such block, an earlier
    Ctrl-C of the outer block counts too.
    """

    def __init__(self) -> None:
        self.requested = False
        self._time = 0.0
        self._before: Any = None
        # in Python only the main thread handles signals
        self._installs = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._installs:
            self._before = signal.signal(signal.SIGINT, self._note)
            outer = getattr(self._before, "__self__", None)
            self.requested = isinstance(outer, Interrupt) and outer.requested
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.requested and now - self._time > _SAME_PRESS:
            raise KeyboardInterrupt
        if not self.requested:
            self._time = now
        self.requested = True

    def __exit__(self, *error: Any) -> None:
        if self._installs:
            signal.signal(signal.SIGINT, self._before)

"""Ctrl-C as a request.

Requirement: Ctrl-C at any time leaves parameters and optimizer in step with each other. So it does
not stop the program between two arbitrary lines: it is noted, and the training loop looks.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt:
    """``with Interrupt() as interrupt:`` a Ctrl-C in the block sets ``interrupt.requested``."""

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None
        # Python lets the main thread alone handle signals
        self._installs = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._installs:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._installs:
            signal.signal(signal.SIGINT, self._before)

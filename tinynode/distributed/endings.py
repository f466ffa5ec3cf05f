"""The end of a program of several ranks.

Requirement: an exception on a rank ends all ranks, since the others would wait for ever.
The traceback is shown with the number of the rank. If all ranks raise, rank 0 alone tells.
"""

from __future__ import annotations

import atexit
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from tinynode.distributed.heartbeat import watch

PATIENCE_SECONDS = 0.3
"""The time for rank 0 to tell of the same exception, and to end all ranks."""
INTERRUPTED = 130
"""The exit status after Ctrl-C."""


class Ending:
    """Takes the place of ``sys.excepthook``.

    Args:
        mpi: the communicator of all ranks, of mpi4py.
    """

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi

    def install(self) -> None:
        """Watch over the exceptions and the end of this process."""
        sys.excepthook = self.after_exception
        atexit.register(watch.end)

    def after_exception(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        """Show the traceback with the rank, and end all ranks."""
        if self.mpi.rank:
            time.sleep(PATIENCE_SECONDS)
        title = f"rank {self.mpi.rank} of {self.mpi.size}"
        if issubclass(kind, KeyboardInterrupt):
            self._write(f"{title}: interrupted, so all ranks end.\n")
            self.mpi.Abort(INTERRUPTED)
            return
        lines = traceback.format_exception(kind, error, trace)
        self._write(f"{title} raised an exception, so all ranks end.\n{''.join(lines)}")
        self.mpi.Abort(1)

    def _write(self, text: str) -> None:
        """Write a whole text at once: ranks share the terminal."""
        sys.stdout.flush()
        sys.stderr.write(text)
        sys.stderr.flush()

"""The end of a program of several ranks.

Requirement: an exception on a rank ends all ranks, since the others would wait for ever.
The traceback is shown with the number of the rank. If all ranks raise, rank 0 alone tells.

``os._exit`` ends a rank without a word to the others. The launcher would end all ranks with the
status 0, as after success. So ``os._exit`` ends all ranks with another status.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from tinynode.distributed.heartbeat import watch
from tinynode.distributed.transport import mpi_module

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
        self._process = os.getpid()
        self._plain_exit = os._exit

    def install(self) -> None:
        """Watch over the exceptions and the end of this process."""
        sys.excepthook = self.after_exception
        os._exit = self.leave  # type: ignore[assignment]
        atexit.register(watch.end)

    def leave(self, status: int) -> None:
        """``os._exit`` of a rank: all ranks end. A child process of the rank ends alone."""
        if os.getpid() == self._process and not mpi_module().Is_finalized():
            title = f"rank {self.mpi.rank} of {self.mpi.size}"
            self._write(
                f"{title} left by os._exit({status}), so all ranks end. Use sys.exit at the end.\n"
            )
            self.mpi.Abort(status or 1)
        self._plain_exit(status)

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

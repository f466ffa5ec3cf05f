"""Limits of the child: time, memory, files. The kernel counts.

``resource`` sets a soft and a hard limit. Only a privileged process raises a hard limit again;
``lock`` refuses the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys


def apply(seconds: float, megabytes: int) -> None:
    """Set the limits of the current process, for good.

    Args:
        seconds: Processor time; the judge counts the time of the clock.
        megabytes: Address space.
    """
    processor = max(1, round(seconds + 1.0))
    _limit("RLIMIT_CPU", processor)
    _limit("RLIMIT_AS", megabytes * 1_000_000)
    _limit("RLIMIT_FSIZE", 0)  # no file grows; a pipe is no file
    _limit("RLIMIT_NOFILE", 64)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_MSGQUEUE", 0)
    if os.getuid():
        _limit("RLIMIT_NPROC", 0)  # the user has a process already: no fork works
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an OSError in place of a crash


def _limit(name: str, value: int) -> None:
    kind = getattr(resource, name, None)  # each system has its own
    if kind is not None:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(kind, (value, value))


def die_with_parent() -> None:
    """End the current process together with the judge; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG

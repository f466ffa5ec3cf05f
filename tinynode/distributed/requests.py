"""Waiting for messages of MPI.

Requirement: a waiting rank can be interrupted, and does not wait for an ended rank. So a wait is
a loop in Python: ask MPI again and again. Ctrl-C and the watch over the neighbour work there.

The loop asks without a pause at first, since most messages need microseconds. Later the loop
sleeps between two questions, and leaves the processor to other ranks.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from tinynode.distributed.heartbeat import watch
from tinynode.errors import RankError

EAGER_SECONDS = 0.02
"""The time of asking without a pause."""
PAUSE_SECONDS = 0.0005
NOTICE_SECONDS = 30.0
"""The wait after which a rank prints a line."""
TIMEOUT_VARIABLE = "TINYNODE_MPI_TIMEOUT"
TIMEOUT_SECONDS = 600.0
ORDER = "Each rank has to call the same methods of the communicator in the same order."


def timeout() -> float:
    """The longest wait in seconds, from the variable ``TINYNODE_MPI_TIMEOUT``.

    Raises:
        ValueError: the variable is no positive number.
    """
    text = os.environ.get(TIMEOUT_VARIABLE, str(TIMEOUT_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"{TIMEOUT_VARIABLE} must be a number of seconds above 0, got {text!r}.")
    return seconds


def wait_for(is_done: Callable[[], Any], what: str, rank: int, partner: int | None = None) -> Any:
    """Call ``is_done`` again and again; the first true result.

    Args:
        is_done: asks MPI.
        what: the method of the communicator, for messages.
        rank: the waiting rank.
        partner: the other rank of a message; -1 if all ranks of the world have to come, None if
            nothing is known.

    Raises:
        RankError: another rank has ended, or nothing came before ``timeout``.
    """
    found = is_done()
    if found:
        return found
    start = time.monotonic()
    waited, has_told = 0.0, False
    while not (found := is_done()):
        waited = time.monotonic() - start
        if waited < EAGER_SECONDS:
            _yield()
            continue
        time.sleep(PAUSE_SECONDS)
        watch.check(what, partner)
        if waited > NOTICE_SECONDS and not has_told:
            has_told = True
            print(_notice(what, rank, waited), file=sys.stderr, flush=True)
        if waited > timeout():
            raise RankError(
                f"Communicator.{what}: rank {rank} waited {waited:.0f} s, and another rank did "
                f"not come. {ORDER} For longer waits set {TIMEOUT_VARIABLE}, in seconds."
            )
    return found


def _yield() -> None:
    """Let another process run."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:  # pragma: no cover - Windows
        time.sleep(0)


def _notice(what: str, rank: int, waited: float) -> str:
    return f"rank {rank} has waited {waited:.0f} s in Communicator.{what} for other ranks. {ORDER}"

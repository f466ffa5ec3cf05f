"""Heartbeat: each rank hears a sign of life of another rank twice a second.

Requirement: a stopped rank, or the loss of a machine, ends the run everywhere within seconds. A
slow rank does not. So a thread of each rank sends a beat to the next rank, also during a long
computation, and listens to the rank before. The ranks form a ring. After a long silence, the
listener names the silent rank, and ends the run.

At the end of the program, a rank says goodbye. Then a wait for the rank raises ``RankError``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from tinynode.errors import RankError

PERIOD_SECONDS = 0.5
"""The time between two beats."""
LIMIT_VARIABLE = "TINYNODE_HEARTBEAT"
LIMIT_SECONDS = 8.0
"""The silence after which a rank counts as stopped."""
BEAT, GOODBYE = b"b", b"g"
GRACE_SECONDS = 1.0
"""The time for the last messages of an ended rank to arrive."""


def limit() -> float:
    """The longest silence in seconds, from ``TINYNODE_HEARTBEAT``; 0 for no watch.

    Raises:
        ValueError: the variable is no number of at least 0.
    """
    text = os.environ.get(LIMIT_VARIABLE, str(LIMIT_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ValueError(f"{LIMIT_VARIABLE} must be a number of seconds, 0 or more, got {text!r}.")
    return seconds


class Heartbeat(threading.Thread):
    """A thread: beats, and listens.

    Args:
        mpi: a communicator of mpi4py, for the beats alone.
        silence: the longest silence in seconds.
    """

    def __init__(self, mpi: Any, silence: float) -> None:
        super().__init__(name="tinynode-heartbeat", daemon=True)
        self.mpi = mpi
        self.silence = silence
        self.before = (mpi.rank - 1) % mpi.size
        self.after = (mpi.rank + 1) % mpi.size
        self.left_at: float | None = None
        self._end = threading.Event()
        self._sent: list[Any] = []

    def run(self) -> None:
        """Beat and listen until ``stop``."""
        heard = woke = time.monotonic()
        while True:
            self._send(BEAT)
            now = time.monotonic()
            if self._hears() or now - woke > 4 * PERIOD_SECONDS:  # else this rank was stopped
                heard = now
            if self.left_at is None and now - heard > self.silence:
                self._give_up(now - heard)
            woke = now
            if self._end.wait(PERIOD_SECONDS):
                self._send(GOODBYE)
                return

    def _send(self, beat: bytes) -> None:
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        kept = bytearray(beat)  # MPI reads the memory later
        self._sent.append((self.mpi.Isend(kept, self.after), kept))

    def _hears(self) -> bool:
        """True if a beat has come from the rank before."""
        has_come = False
        while self.mpi.Iprobe(self.before):
            beat = bytearray(1)
            self.mpi.Recv(beat, self.before)
            has_come = True
            if bytes(beat) == GOODBYE:
                self.left_at = time.monotonic()
        return has_come

    def _give_up(self, seconds: float) -> None:
        text = f"rank {self.before} of {self.mpi.size} has not answered for {seconds:.1f} s"
        hint = f"For longer silences set {LIMIT_VARIABLE}, in seconds; 0 for no watch."
        print(f"{text}: rank {self.mpi.rank} ends the run. {hint}", file=sys.stderr, flush=True)
        self.mpi.Abort(1)

    def stop(self) -> None:
        """Say goodbye, and end the thread."""
        self._end.set()
        self.join()


class Watch:
    """The heartbeat of the process; none where the program has a single process."""

    def __init__(self) -> None:
        self.heartbeat: Heartbeat | None = None

    def begin(self, mpi: Any) -> None:
        """Start to beat, unless ``TINYNODE_HEARTBEAT`` is 0."""
        silence = limit()
        if silence > 0 and self.heartbeat is None:
            self.heartbeat = Heartbeat(mpi.Dup(), silence)
            self.heartbeat.start()

    def end(self) -> None:
        """Say goodbye."""
        if self.heartbeat is not None:
            self.heartbeat.stop()
            self.heartbeat = None

    def check(self, what: str, partner: int | None) -> None:
        """Refuse to wait for an ended rank.

        Args:
            what: the method of the communicator, for the message.
            partner: as for ``wait_for``.

        Raises:
            RankError: the rank before has ended.
        """
        beat = self.heartbeat
        if beat is None or beat.left_at is None or partner not in (-1, beat.before):
            return
        if time.monotonic() - beat.left_at > GRACE_SECONDS:
            raise RankError(
                f"Communicator.{what}: rank {beat.before} has ended, and rank {beat.mpi.rank} "
                "waits. Look for the reason in the output of the other rank. Each rank has to "
                "call the same methods of the communicator in the same order."
            )


watch = Watch()

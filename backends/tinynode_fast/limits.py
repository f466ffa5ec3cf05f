"""The limits of the fast path: thresholds, and sizes of caches.

Requirement: every tuned number stands on one page, with a unit and a reason. The code reads
``LIMITS`` at each call, so a test can change a number.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limits:
    """Numbers that decide about speed alone."""

    threaded: int = 1 << 20  # elements that threads share: a handover may cost a small loop
    copied_bytes: int = 4096  # bytes of inputs and results that a plan copies, for bound calls
    awaited_bytes: int = 1 << 22  # bytes of a net's values from which a run waits for the compiler
    awaited_seconds: float = 0.5  # the longest such wait: the compiler takes 0.2 to 0.4 s
    columns: int = 1 << 18  # elements of columns that a convolution unfolds at a time: 1 MiB
    few_channels: int = 8  # channels below which a window's row is too short for one copied run


LIMITS = Limits()

"""Makes the fast backend run its kernels on the small arrays of tests, in small blocks."""

from __future__ import annotations

import dataclasses
from typing import Any

import tinynode_fast
from tinynode_fast import blocks
from tinynode_fast.limits import LIMITS


def two_threads() -> int:
    return 2


def set_limits(monkeypatch: Any, **numbers: float) -> None:
    """Change limits of the fast path."""
    for name, number in numbers.items():
        monkeypatch.setattr(LIMITS, name, number)


def force_kernels(monkeypatch: Any) -> None:
    """Every kernel runs at any size; blocks have few elements, and two threads share them."""
    kernels = tinynode_fast.KERNELS.items()
    forced = {kind: dataclasses.replace(kernel, least=0) for kind, kernel in kernels}
    monkeypatch.setattr(tinynode_fast, "KERNELS", forced)
    monkeypatch.setattr(blocks, "thread_count", two_threads)
    set_limits(monkeypatch, block=8, threaded=16, rows_summed=1, few_channels=2, columns=64)

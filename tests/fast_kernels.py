"""Makes the fast backend run its kernels on the small arrays of tests, in small blocks."""

from __future__ import annotations

from typing import Any

import tinynode_fast
from tinynode_fast import blocks, images, rows


def two_threads() -> int:
    return 2


def force_kernels(monkeypatch: Any) -> None:
    """Every kernel runs at any size; blocks have few elements, and two threads share them."""
    forced = {kind: entry._replace(least=0) for kind, entry in tinynode_fast.KERNELS.items()}
    monkeypatch.setattr(tinynode_fast, "KERNELS", forced)
    monkeypatch.setattr(blocks, "BLOCK", 8)
    monkeypatch.setattr(blocks, "THREADED", 16)
    monkeypatch.setattr(blocks, "thread_count", two_threads)
    monkeypatch.setattr(rows, "FEW", 1)
    monkeypatch.setattr(images, "FEW", 2)
    monkeypatch.setattr(images, "COLUMNS", 64)

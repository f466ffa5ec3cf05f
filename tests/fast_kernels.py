"""Sets the limits of the fast backend, so that small arrays of tests reach each branch."""

from __future__ import annotations

import dataclasses
from typing import Any

import tinynode_fast
from tinynode_fast import blocks
from tinynode_fast.limits import LIMITS, Limits

HUGE = 1 << 40
"""A limit that no array of a test reaches."""

READ_AT_IMPORT = {"numbers": "the size of a cache"}
"""Limits that the fast backend reads once; a test cannot change these."""

LEAST = {"block": 1, "in_cache": 1, "chain_step": 1, "sampled_rows": 1}
"""The least numbers of the limits for which 0 has no meaning."""

NOT_HUGE = {"near": "the distance at which float32 still holds a term: not about speed"}
"""Limits that stay as they are where all others are huge."""

CHANGEABLE = [one.name for one in dataclasses.fields(Limits) if one.name not in READ_AT_IMPORT]


def two_threads() -> int:
    return 2


def set_limits(monkeypatch: Any, **numbers: float) -> None:
    """Change limits of the fast path."""
    for name, number in numbers.items():
        monkeypatch.setattr(LIMITS, name, number)


def extreme_limits(name: str, huge: bool) -> dict[str, float]:
    """The lowest or a huge number for a limit; empty where the limit has no such number."""
    if huge:
        return {} if name in NOT_HUGE else {name: HUGE}
    return {name: LEAST.get(name, 0)}


def set_least(monkeypatch: Any, least: int) -> None:
    """All kernels of eager code run from this number of elements on; threads are two."""
    kernels = tinynode_fast.KERNELS.items()
    changed = {kind: dataclasses.replace(kernel, least=least) for kind, kernel in kernels}
    monkeypatch.setattr(tinynode_fast, "KERNELS", changed)
    monkeypatch.setattr(blocks, "thread_count", two_threads)


def set_all_limits(monkeypatch: Any, huge: bool) -> None:
    """All limits at once: each at its lowest number, or huge."""
    set_least(monkeypatch, HUGE if huge else 0)
    for name in CHANGEABLE:
        set_limits(monkeypatch, **extreme_limits(name, huge))


def small_pieces(monkeypatch: Any, step: int = 2, copied_bytes: int = 0) -> None:
    """Every array counts as large in plans, and chains run in blocks of few elements."""
    chain = {"chain_step": step, "chain_bytes": 32 * step}
    set_limits(monkeypatch, in_cache=2, **chain, copied_bytes=copied_bytes)


def force_kernels(monkeypatch: Any) -> None:
    """Every kernel runs at any size; blocks have few elements, and two threads share them."""
    set_least(monkeypatch, 0)
    set_limits(monkeypatch, block=8, threaded=16, rows_summed=1, few_channels=2, columns=64)

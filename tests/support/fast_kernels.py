"""Sets the limits of the fast backend, so that small arrays of tests reach each branch."""

from __future__ import annotations

import dataclasses
from typing import Any

from tinynode.devices import threads
from tinynode_fast.limits import LIMITS, Limits
from tinynode_fast.native import calls

HUGE = 1 << 40
"""A limit that no array of a test reaches."""

CHANGEABLE = [one.name for one in dataclasses.fields(Limits)]


def two_threads() -> int:
    return 2


def set_limits(monkeypatch: Any, **numbers: float) -> None:
    """Change limits of the fast path."""
    for name, number in numbers.items():
        monkeypatch.setattr(LIMITS, name, number)


def use_two_threads(monkeypatch: Any) -> None:
    for module in (threads, calls):
        monkeypatch.setattr(module, "thread_count", two_threads)


def set_all_limits(monkeypatch: Any, huge: bool) -> None:
    """All limits at once: each at 0, or huge."""
    use_two_threads(monkeypatch)
    set_limits(monkeypatch, **dict.fromkeys(CHANGEABLE, HUGE if huge else 0))


def force_kernels(monkeypatch: Any) -> None:
    """Every kernel runs at any size, and two threads share loops of few elements."""
    use_two_threads(monkeypatch)
    set_limits(monkeypatch, threaded=16, few_channels=2, columns=64)

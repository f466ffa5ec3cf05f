"""Counts of which functions ran by a kernel, and which fell back, and why.

``tinynode.show.fallbacks()`` prints them.
"""

from __future__ import annotations


class Use:
    """The number of calls of one function in one way, and their seconds in total."""

    __slots__ = ("calls", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0


fallback_uses: dict[tuple[str, str, str], Use] = {}
"""The functions that fell back, by (backend, label, reason)."""
kernel_uses: dict[tuple[str, str, str], Use] = {}
"""The functions that a backend's own kernels ran, by (backend, label, kernel)."""


def count_use(
    uses: dict[tuple[str, str, str], Use], key: tuple[str, str, str], seconds: float
) -> None:
    """Add one call to ``fallback_uses`` or ``kernel_uses``."""
    use = uses.get(key)
    if use is None:
        use = uses.setdefault(key, Use())
    use.calls += 1
    use.seconds += seconds

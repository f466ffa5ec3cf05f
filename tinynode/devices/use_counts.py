"""Counts of the functions that ran by a kernel, and of the fallbacks with the reasons.

``tinynode.show.fallbacks()`` prints them.
"""

from __future__ import annotations


class Use:
    """The number of calls of a function by the same way, and the total of seconds."""

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

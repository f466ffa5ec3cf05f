"""The collector of cycles: with a graph in memory, Python looks for cycles less often.

Requirement: the cost of a function application does not grow with the graph. A graph has no
cycles, so reference counting frees a graph. But a function adds about six objects with references.
And Python's collector visits new objects after every 700. Most visits find nothing to free.

``import tinynode`` raises the threshold of the youngest generation, unless the program has changed
the threshold before. ``gc.set_threshold(700)`` after the import brings Python's number back.
"""

from __future__ import annotations

import gc

PYTHONS_OWN = (700, 2000)
"""The first threshold of a fresh interpreter, in old and in new versions of Python."""
THRESHOLD = 10_000
"""The number of new objects between two visits."""


def raise_threshold() -> None:
    """Set the first of ``gc.get_threshold()`` to ``THRESHOLD``, if still Python's own number."""
    first, *others = gc.get_threshold()
    if first in PYTHONS_OWN:
        gc.set_threshold(THRESHOLD, *others)


raise_threshold()

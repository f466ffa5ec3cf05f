"""The collector of cycles: with a graph in memory, Python looks for cycles less often.

Requirement: the cost of a function application does not grow with the graph. A graph has no
cycles, so reference counting frees a graph. But a function adds about six objects with references.
And Python's collector visits new objects after every 700. Most visits find nothing to free. After
every 100 visits, a full visit looks at all objects, hence at the whole graph.

``import tinynode`` raises two thresholds, unless the program has changed the thresholds before:
that of the youngest generation, and that of full visits. A cycle that dies young is freed after
10,000 new objects. A cycle that lived through two visits waits for a full visit, or for
``gc.collect()``. ``gc.set_threshold(700, 10, 10)`` after the import brings Python's numbers back.
"""

from __future__ import annotations

import gc

PYTHONS_OWN = (700, 2000)
"""The first threshold of a fresh interpreter, in old and in new versions of Python."""
PYTHONS_LAST = 10
"""The third threshold of a fresh interpreter; new versions of Python make no full visits."""
THRESHOLD = 10_000
"""The number of new objects between two visits."""
LAST = 100
"""The number of visits of the middle generation between two full visits.

A full visit costs about a microsecond for each recorded function.
"""


def raise_thresholds() -> None:
    """Set the first and the last of ``gc.get_threshold()``, if they are still Python's own."""
    first, middle, last = gc.get_threshold()
    if first in PYTHONS_OWN:
        gc.set_threshold(THRESHOLD, middle, LAST if last == PYTHONS_LAST else last)


raise_thresholds()

"""Imports at the first use, by one thread at a time.

Requirement: threads may use any late names of tinynode at once. Packages import their modules, and
modules need their packages. Two threads with two of these imports wait for each other. Then
Python raises a ``_DeadlockError``, or a thread gets a module without its names. So one lock serves
all late imports.

``import tinynode.nn`` in a thread of the user takes no such lock. So two rules hold, with tests:

- The late modules import each other in one direction.
- A package comes before its modules: ``import tinynode.net`` is at the top of a file.

The import of ``tinynode.net.trace`` alone locks the module, then the package. The import of the
package locks the two in the other order. One case of Python's own is left: two threads import a
package and a module of the package, both for the first time.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

_NEEDS = {
    "tinynode.nn.model_function": "tinynode.transforms",
    "tinynode.nn.summary": "tinynode.transforms",
}
"""Late modules of a package that the needed package imports: no line at the top of a file."""

_one_thread = threading.RLock()  # a late module may need another late name while it is imported


def _after_fork() -> None:
    """The child of a fork has no importing thread, but perhaps a locked lock."""
    global _one_thread
    _one_thread = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def import_late(path: str) -> Any:
    """The module of a dotted path, imported if needed.

    The packages around the module are imported first.
    """
    parts = path.split(".")
    with _one_thread:
        if path in _NEEDS:
            importlib.import_module(_NEEDS[path])
        for length in range(1, len(parts)):
            importlib.import_module(".".join(parts[:length]))
        return importlib.import_module(path)

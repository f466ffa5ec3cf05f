"""Imports at the first use, by one thread at a time.

Requirement: threads may use any late names of tinynode at once. The late modules import each
other in circles. Where two threads import two of these modules at once, each thread waits for the
other. Then Python raises a ``_DeadlockError``, or a thread gets a module without its names. So one
lock serves all late imports.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

_one_thread = threading.RLock()  # a late module may need another late name while it is imported


def _after_fork() -> None:
    """The child of a fork has no importing thread, but perhaps a locked lock."""
    global _one_thread
    _one_thread = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def import_late(path: str) -> Any:
    """The module of a dotted path, imported if needed."""
    with _one_thread:
        return importlib.import_module(path)

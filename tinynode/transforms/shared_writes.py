"""Writes in the code of other libraries: they reach what would share the memory in NumPy.

``h = y[:2]; h += 1`` in SciPy is a write to y. So the Variables that h was made of are written
too, and then their other parts are made anew. Each step is a function of the graph. In a program
of one's own a write changes one Variable alone.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from tinynode.array_api.gradient_cut import CONSUMERS
from tinynode.core.variable import Variable
from tinynode.devices import Array
from tinynode.functions.shared_memory import SharedPart, shared_memory
from tinynode.transforms.batching import note_write

Change = tuple[Variable, Array]
"""A written Variable, and its array before the write."""


def finish_write(x: Any, result: Variable, operation: str) -> None:
    """Move x to the result of a write; in foreign code with all that would share the memory.

    Args:
        x: the written Variable, or a stand-in for one.
        result: the result of the write.
        operation: the write in the words of messages, such as ``x += v``.

    Raises:
        GraphError: x is a part of a leaf that requires a gradient.
    """
    is_shared = shared_memory.is_watched and isinstance(x, Variable) and _is_in_code_of_others()
    if not is_shared:
        note_write(x, result)
        x.become(result)
        return
    above = _parts_with_sources(x)
    for _, source in above:
        source.check_writable(operation)
    changes = [_changed(x, result)]
    for part, source in above:
        written = part.function.put_back(part.setting, source, changes[-1][0])
        changes.append(_changed(source, written))
        part.agree()
    _renew_parts(changes)


def _is_in_code_of_others() -> bool:
    """True if the first caller outside of tinynode is a library with code for any arrays."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package != "tinynode":
            return package in CONSUMERS
        frame = frame.f_back
    return False


def _parts_with_sources(x: Variable) -> list[tuple[SharedPart, Variable]]:
    """The note of x and its source, the note of that source, and so on upwards."""
    found = []
    part = shared_memory.parts.get(id(x))
    while part is not None and part.is_shared():
        source = part.source_or_none()
        if source is None:
            break
        found.append((part, source))
        part = shared_memory.parts.get(id(source))
    return found


def _changed(x: Variable, result: Variable) -> Change:
    """Move x to a result."""
    before = x.raw
    note_write(x, result)
    x.become(result)
    return x, before


def _renew_parts(changes: list[Change]) -> None:
    """Make the parts of written Variables anew, and the parts of these parts."""
    are_written = {id(x) for x, _ in changes}
    waiting = list(changes)
    while waiting:
        source, before = waiting.pop()
        for part in list(shared_memory.parts.values()):
            x = part.reference()
            if x is None or id(x) in are_written or not part.was_made_of(source, before):
                continue
            waiting.append(_changed(x, part.again(source)))
            part.agree()

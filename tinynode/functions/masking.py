"""Masks: a gradient of zero behind a mask stays zero before the mask.

Where a condition hides an element, the gradient of the element is exactly 0. Before the condition
the derivative may be infinite or NaN: 0 * NaN would be NaN. So ``where``, index
arrays and writes mark the functions before them, and a marked function multiplies with
``zero_safe_multiply``.
"""

from __future__ import annotations

from tinynode.core.function_node import FunctionNode


def mark_masked(function: FunctionNode) -> None:
    """Mark all functions before a mask: ``is_masked`` becomes True. Each is visited once."""
    waiting = [function]
    while waiting:
        for node in waiting.pop().inputs or ():
            creator = node.creator_node
            if creator is not None and "is_masked" not in vars(creator):
                creator.is_masked = True
                waiting.append(creator)

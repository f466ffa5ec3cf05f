"""Nested lists and dicts from users, looked through in bounded time.

Requirement: a list may hold itself, or lists of very many levels. NumPy needs very long for some
of these, and Python's recursion ends with an error of its own. So they are refused before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinynode.errors import SizeError, describe

MOST_LEVELS = 64
"""The axes that an array of NumPy has at most, so the levels of a nested list."""
MOST_ELEMENTS = 2**31
"""The elements of a nested list. A list that holds others several times is soon larger."""


MOST_LEAVES = 2**18
"""The leaves of a tree of arrays, such as the arguments of a compiled function."""
MOST_NUMBERS = 2**24
"""The numbers of nested lists, for writing or drawing in turn."""


def nested_items(
    function: str,
    argument: str,
    value: Any,
    most: int = MOST_ELEMENTS,
    levels: int = MOST_LEVELS,
) -> Iterator[Any]:
    """The elements and the lists in a list, tuple or dict, level by level.

    A list that stands several times in a level is visited once.

    Raises:
        ValueError: the value has more than ``levels`` levels, or holds itself.
        SizeError: the value has more than ``most`` elements in a level.
    """
    level: dict[int, tuple[Any, int]] = {id(value): (value, 1)}  # each list, and how often
    for _ in range(levels):
        elements = 0
        below: dict[int, tuple[Any, int]] = {}
        for rows, count in level.values():
            elements += count * len(rows)
            items = rows
            if isinstance(rows, dict):
                items = rows.values()
            for item in items:
                yield item
                if isinstance(item, list | tuple | dict):
                    before = below.get(id(item), (item, 0))[1]
                    below[id(item)] = (item, before + count)
        if elements > most:
            raise SizeError(
                f"{function}: {argument} has {elements} elements, and at most {most} are "
                f"allowed: got {describe(value)}. Give an array in place of lists."
            )
        if not below:
            return
        level = below
    raise ValueError(
        f"{function}: {argument} must have at most {levels} levels of lists, got "
        f"{describe(value)}. A list must not hold itself."
    )


def check_nested(
    function: str,
    argument: str,
    value: Any,
    most: int = MOST_ELEMENTS,
    levels: int = MOST_LEVELS,
) -> None:
    """Refuse a list, tuple or dict that ``nested_items`` refuses; other values pass."""
    if isinstance(value, list | tuple | dict):
        for _ in nested_items(function, argument, value, most, levels):
            pass

"""Habits: names of other libraries, each with the code to write in tinynode.

Requirement: users of PyTorch, NumPy, Keras, JAX, micrograd or Chainer learn the name of tinynode
from the first line of the error. Python asks ``__getattr__`` of a module or a class only
after the normal look-up has failed. So an existing name has no cost, and always wins over the
table. The tables are imported at the first wrong name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

TITLES = {
    "tn": "tinynode",
    "F": "tinynode.functions",
    "linalg": "tinynode.functions.linalg",
    "nn": "tinynode.nn",
    "initializers": "tinynode.nn.initializers",
    "random": "tinynode.random",
    "x": "Variable",
}
"""The places where names are looked up, as in messages."""


def missing_attribute(
    place: str, name: str, known: Iterable[str], functions: Collection[str] = (), title: str = ""
) -> AttributeError:
    """The error for an unknown name.

    Args:
        place: a key of ``TITLES``, or ``model``.
        name: the name.
        known: the existing names; the message suggests a close name.
        functions: the names of ``tinynode.functions``, for suggestions.
        title: the place in words; by default the entry of ``TITLES``.
    """
    where = title or TITLES[place]
    kind = "module" if where.startswith("tinynode") else "object"
    text = f"{where!r} {kind} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    remedy = remedy_of(place, name, functions)
    if not remedy:
        public = [one for one in known if not one.startswith("_")]
        close = closest(name, public, cutoff=0.75)
        remedy = f"did you mean {close[0]!r}?" if close else ""
    # name and obj are set, so that Python adds no suggestion of its own
    return AttributeError(f"{text}: {remedy}" if remedy else text, name=name, obj=None)


def remedy_of(place: str, name: str, functions: Collection[str] = ()) -> str:
    """The code to write for a name, from the table or the functions; an empty text without."""
    # the tables are read at the first wrong name
    from tinynode.habits.table import TABLE

    found = TABLE.get((place, name))
    if found is not None:
        habit = found.habit
        note = f" {habit.note}" if habit.note else ""
        return f"write {in_full(habit.write)} in place of {found.library}'s {name}.{note}"
    if name in functions and name.islower():
        arguments = "(x)" if place == "x" else ""
        return f"write tn.functions.{name}{arguments}."
    return ""


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The known name that is most like a wrong one, as a list of one; an empty list without.

    Args:
        name: the wrong name.
        known: the existing names.
        cutoff: the least ratio of likeness, from 0 to 1.
    """
    # imported at the first wrong name: most programs have none
    import difflib

    return difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)


def in_full(code: str) -> str:
    """Code of the table with ``tn.functions`` in place of ``F``."""
    return re.sub(r"\bF\.", "tn.functions.", code)

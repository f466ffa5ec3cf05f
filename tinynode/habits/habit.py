"""The form of a row in the tables of habits."""

from __future__ import annotations

from typing import NamedTuple


class Habit(NamedTuple):
    """Names of another library, and the way to write them in tinynode.

    Attributes:
        places: where people look the names up: ``tn``, ``F``, ``linalg``, ``nn``,
            ``initializers``, ``random``, ``x`` (a Variable), ``model`` (a Module),
            ``optimizer``. Several places
            stand with spaces between.
        names: the names, with spaces between.
        write: the code for tinynode. ``x`` is a Variable there, ``model`` a Module.
        note: a sentence about the difference, or nothing.
    """

    places: str
    names: str
    write: str
    note: str = ""

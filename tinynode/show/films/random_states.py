"""The random generators of a program: those of tinynode, NumPy and Python.

Requirement: two runs of a program draw the same numbers. So each run starts with one state.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy

from tinynode import generator


class RandomStates(NamedTuple):
    """The states of the three generators."""

    of_tinynode: Any
    of_numpy: Any
    of_python: Any

    @classmethod
    def now(cls) -> RandomStates:
        """The present states."""
        return cls(generator.get_state(), numpy.random.get_state(), random.getstate())

    def restore(self) -> None:
        """Go on from these states."""
        generator.set_state(self.of_tinynode)
        numpy.random.set_state(self.of_numpy)
        random.setstate(self.of_python)


def seed_all(seed: int) -> None:
    """Begin the three generators anew."""
    generator.seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)

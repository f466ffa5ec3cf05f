"""All habits in one table."""

from __future__ import annotations

from typing import NamedTuple

from tinynode.habits import other_libraries, pytorch, training
from tinynode.habits.habit import Habit


class Found(NamedTuple):
    """A habit, with the library that has the name."""

    library: str
    habit: Habit


LIBRARIES: dict[str, tuple[Habit, ...]] = {
    "PyTorch": pytorch.HABITS + training.HABITS,
    **other_libraries.HABITS,
}
"""The habits, by library."""

TABLE: dict[tuple[str, str], Found] = {}
"""The habits by place and name; the first library with a name counts."""

for library, habits in LIBRARIES.items():
    for habit in habits:
        for place in habit.places.split():
            for name in habit.names.split():
                TABLE.setdefault((place, name), Found(library, habit))

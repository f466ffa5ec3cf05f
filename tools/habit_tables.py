"""Tables of names for the page "From PyTorch", made from ``tinynode.habits``.

Requirement: the page and the messages of errors say the same. So the tables come from the table of
habits, in place of ``PYTORCH`` and ``OTHERS``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinynode.habits.habit import Habit
from tinynode.habits.table import LIBRARIES

PYTORCH = "<!-- the habits from PyTorch -->"
OTHERS = "<!-- the habits from other libraries -->"

TITLES = {
    "tn": "The package",
    "x": "Tensors",
    "F": "Functions",
    "linalg": "Linear algebra",
    "random": "Random numbers",
    "nn": "Layers and losses",
    "initializers": "Initializers",
    "model": "Modules",
    "optimizer": "Optimizers",
    "average": "Averages",
}
"""The headings, by the place of a name."""


def with_tables(markdown: str) -> str:
    """A page with the tables in place of the marks."""
    if PYTORCH in markdown:
        markdown = markdown.replace(PYTORCH, "\n\n".join(_by_place(LIBRARIES["PyTorch"])))
    if OTHERS in markdown:
        tables = [
            f"### {library}\n\n{table(library, habits)}"
            for library, habits in LIBRARIES.items()
            if library != "PyTorch"
        ]
        markdown = markdown.replace(OTHERS, "\n\n".join(tables))
    return markdown


def _by_place(habits: Iterable[Habit]) -> list[str]:
    """A heading and a table for each place; a habit stands under the place named most clearly."""
    groups: dict[str, list[Habit]] = {}
    for habit in habits:
        places = habit.places.split()
        groups.setdefault("F" if "F" in places else places[0], []).append(habit)
    return [
        f"### {title}\n\n{table('PyTorch', groups[place])}"
        for place, title in TITLES.items()
        if place in groups
    ]


def table(library: str, habits: Iterable[Habit]) -> str:
    """A table of three columns: the names, the code for tinynode, and the note."""
    lines = [f"| In {library} | In tinynode | What to know |", "|---|---|---|"]
    for habit in habits:
        names = ", ".join(f"`{name}`" for name in habit.names.split())
        lines.append(f"| {names} | `{habit.write}` | {habit.note} |")
    return "\n".join(['<div class="names" markdown>', "", *lines, "", "</div>"])

"""Film: recorded steps, in the formats of a page, a terminal and a notebook.

Requirement: a single recording has several formats. ``data()`` gives the whole film for JSON; the
page, the terminal and tests read these parts:

    pictures        nodes and edges with their layout, and the steps of one run through them
    iterations      the runs: the picture, and the values of each step
    values          summaries of arrays; steps refer to them by index
    watched         examples and pictures of predictions; iterations refer to pictures by index
    classes, files  the texts beside the picture

A program without a loop has one picture and one iteration. "born" is the step of the picture from
which on a part is drawn. The state after a step is the result of all steps so far; an iteration
begins with the nodes that are in "shared", since only these go from iteration to iteration.

A step's "freed" has the nodes with a loss since the step before. The array was freed, or the
gradient left the gradient table and is not kept. Nodes of the second kind are in
``table["removed"]`` too.
The values of a backward step's inputs and outputs are the arrays retained by the function, at the
time of the step. Other values are None, since backward has no other arrays.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from tinynode.show import film_text
from tinynode.show.film_nodes import Recording


class Film(Recording):
    """Recorded steps; ``with tinynode.show.record() as film:`` makes one.

    In a notebook it shows itself. ``len(film)`` is the number of steps.

    Attributes:
        title: shown above the film.
        note: the reason if the film ended early, else None.
    """

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        title = f" {self.title!r}" if self.title else ""
        functions = sum(node.kind == "function" for node in self.nodes)
        note = f"; {self.note}" if self.note else ""
        counts = f"{plural(len(self), 'step')}, {plural(functions, 'function')}"
        return f"<Film{title}: {counts}{note}>"

    # --- formats ---------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """All of the film, in the types of JSON."""
        # here, since recording needs no layout, and `import tinynode` stays quick
        from tinynode.show.film_data import film_data

        return film_data(self)

    def to_text(self) -> str:
        """Every step in words."""
        return film_text.text(self.data())

    def save(self, path: str | Path) -> None:
        """Write the film: ``.html`` is a self-contained page, ``.json`` is ``data()``.

        Raises:
            ValueError: the path has another suffix.
        """
        suffix = Path(path).suffix.lower()
        if suffix in (".html", ".htm"):
            content = self._page()
        elif suffix == ".json":
            content = to_json(self.data())
        else:
            raise ValueError(f"Film.save: the path must end in .html or .json, got {str(path)!r}.")
        # a file's name can have half of a surrogate pair, which no encoding has
        Path(path).write_bytes(content.encode("utf-8", "replace"))

    def _page(self) -> str:
        # here, since reading the page's files takes longer than recording a few steps
        from tinynode.show.page import page

        return page(self.data())

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        frame = html.escape(self._page(), quote=True)
        return (
            f'<iframe srcdoc="{frame}" title="film" '
            'style="width: 100%; height: 720px; border: 0"></iframe>'
        )

    def walk(self) -> None:
        """Step through the film in the terminal, by keys."""
        # here, since only this method needs a terminal
        from tinynode.show.walk import walk

        walk(self.data())


def plural(number: int, word: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def to_json(data: dict[str, Any]) -> str:
    """The film as JSON without spaces."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

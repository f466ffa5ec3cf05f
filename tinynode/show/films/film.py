"""Film: recorded steps, in the formats of a page, a terminal and a notebook.

Requirement: a single recording has several formats. ``data()`` gives the whole film for JSON; the
page, the terminal and tests read these parts:

    pictures        nodes and edges with their layout, and the steps of one run through them
    iterations      the runs: the picture, and the values of each step
    values          summaries of arrays; steps refer to them by index
    watched         examples and pictures of predictions; iterations refer to pictures by index
    memory          who holds which array, from which step to which: see ``memory_data.py``
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

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tinynode.atomic_file import replace_file
from tinynode.safe_files import checked_path
from tinynode.show.films import text as film_text
from tinynode.show.films.nodes import MAX_PICTURE, Recording
from tinynode.show.films.questions import asked_question
from tinynode.show.films.walk import walk

if TYPE_CHECKING:
    from tinynode.show.films.frames import FrameOptions
    from tinynode.show.films.memory_timeline import MemoryTimeline
    from tinynode.show.films.replay import Replay


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

    # --- questions -------------------------------------------------------------------------------

    def ask(
        self, text: str, answer: Any, *, choices: Sequence[str] | None = None, why: str = ""
    ) -> None:
        """Ask the reader of the page, before the page shows the next recorded step.

            with tn.show.record() as film:
                z = x * y
                film.ask("What is the gradient of y?", answer=[1, 2, 3], why="It is x.")
                F.sum(z).backward()

        The page stops there until an answer or a skip. A question after the last step comes at
        the end.

        Args:
            text: the question.
            answer: a number, numbers (a list, an array or a Variable) or a string. The page
                compares numbers with 3 significant digits, and strings without case.
            choices: the possible answers; the answer is one of these strings.
            why: shown after the answer.

        Raises:
            TypeError: an argument has a wrong type.
            ValueError: the answer is not a choice, is empty or has a number that is not finite.
        """
        self.asked.append((len(self.steps), asked_question(text, answer, choices, why)))

    def quiz(self, most: int = 8) -> None:
        """Let the page ask automatic questions: next functions, values and gradients.

        Raises:
            ValueError: ``most`` is not an integer of 1 or more.
        """
        if type(most) is not int or most < 1:
            raise ValueError(f"Film.quiz: most must be an integer, 1 or more, got {most!r}.")
        self.automatic = most

    # --- formats ---------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """All of the film, in the types of JSON."""
        from tinynode.show.films.data import film_data  # here, since recording needs no layout
        from tinynode.show.films.folding import folded  # nor boxes

        shows_failure = self.has_failed and len(self) <= MAX_PICTURE  # a box would hide the call
        return film_data(folded(self) if self.is_folded and not shows_failure else self)

    def memory(self) -> MemoryTimeline:
        """The bytes alive at each step, by holder; ``print(film.memory())`` shows words."""
        from tinynode.show.films.data import film_data  # here, since recording needs no layout
        from tinynode.show.films.memory_timeline import MemoryTimeline  # reads the whole film

        return MemoryTimeline(film_data(self))  # of the recorded steps, also if boxes are drawn

    def to_short_text(self) -> str:
        """The steps of the first iteration, a sentence each, with the numbers that each makes."""
        return film_text.short_text(self.data())

    def to_text(self) -> str:
        """Every step in words."""
        return film_text.text(self.data())

    def save(self, path: str | Path, **options: Unpack[FrameOptions]) -> None:
        """Write the film; the suffix gives the format.

        ``.html`` is a self-contained page, ``.json`` is ``data()``, ``.svg`` is an animated
        picture, and ``.gif`` is ``gif(path)``.

        Args:
            path: the file.
            options: for pictures only, see ``frames``; ``seconds`` is the time of a step.

        Raises:
            ValueError: the path has another suffix, or an option is not allowed.
            ImportError: the path ends in ``.gif``, and Pillow is not installed.
        """
        path = checked_path("Film.save", path)
        suffix = Path(path).suffix.lower()
        if suffix in (".svg", ".gif"):
            from tinynode.show.films import frames  # here, since recording needs no pictures

            write = frames.save_svg if suffix == ".svg" else frames.save_gif
            write(self.data(), Path(path), options)
            return
        if suffix not in (".html", ".htm", ".json"):
            raise ValueError(
                f"Film.save: the path must end in .html, .json, .svg or .gif, got {str(path)!r}."
            )
        if options:
            raise ValueError(f"Film.save: {suffix} has no options, got {', '.join(options)}.")
        content = to_json(self.data()) if suffix == ".json" else self._page()
        # a file's name can have half of a surrogate pair, which no encoding has
        replace_file(path, content.encode("utf-8", "replace"))

    def frames(self, folder: str | Path, **options: Unpack[FrameOptions]) -> list[Path]:
        """Write an SVG for each step: ``0001.svg``, ``0002.svg`` and so on.

        Without ``iterations``, a loop shows all steps of the first iteration, then the last step
        of at most 60 further iterations.

        Args:
            folder: the folder; a missing folder is made.
            options: ``steps``, the steps of each iteration, as a slice or as indexes (0 is the
                first, -1 the last); ``iterations``, indexes or ``"all"``; ``width`` in pixels;
                ``theme``, ``"light"``, ``"dark"`` or ``"auto"`` (the reader's preference).

        Returns:
            The paths of the files.

        Raises:
            ValueError: an option is not allowed, or no step is chosen.
        """
        from tinynode.show.films import frames  # here, since recording needs no pictures

        return frames.save_frames(self.data(), Path(folder), options)

    def gif(self, path: str | Path, **options: Unpack[FrameOptions]) -> None:
        """Write an animated GIF; needs Pillow: ``pip install pillow``.

        Args:
            path: the file.
            options: see ``frames``; ``seconds`` is the time of a step.

        Raises:
            ValueError: an option is not allowed, or no step is chosen.
            ImportError: Pillow is not installed.
        """
        from tinynode.show.films import frames  # here, since recording needs no pictures

        frames.save_gif(self.data(), Path(path), options)

    def _page(self) -> str:
        from tinynode.show.page.document import page  # here, since recording needs no page

        return page(self.data())

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        return framed(self.data())

    # --- proof -----------------------------------------------------------------------------------

    def replay(self, *, tolerance: float | None = None) -> Replay:
        """Compute each step again from the recorded inputs, and compare.

            >>> w = tn.asarray([1.0, 2.0], requires_grad=True)
            >>> with tn.show.record() as film:
            ...     F.sum(w * w).backward()
            >>> print(film.replay())
            6 of 6 steps computed again: all agree, to the last bit

        Of large arrays a film has samples only. The steps with such an array are left out, with
        the reason. A film of ``record(arrays=True)`` has whole arrays.

        Args:
            tolerance: a distance up to tolerance times the largest number of both arrays is
                rounding. By default as for ``tinynode.show.compare``; 0 asks for equal numbers.

        Returns:
            The number of steps, the disagreements, and the steps left out.

        Raises:
            ValueError: the tolerance is negative or not finite.
        """
        from tinynode.show.films.replay import replay  # here, since recording needs no replay

        return replay(self, tolerance)

    def walk(self) -> None:
        """Step through the film in the terminal, by keys."""
        walk(self.data())


def framed(data: dict[str, Any]) -> str:
    """The page of a film in a frame, for notebooks; in a kernel, the page offers changes."""
    from tinynode.show.page.document import frame, page  # here, since recording needs no page

    shell = sys.modules.get("IPython")
    is_kernel = shell is not None and shell.get_ipython() is not None
    return frame(page({**data, "host": "notebook"} if is_kernel else data), "film", 720)


def plural(number: int, word: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def to_json(data: dict[str, Any]) -> str:
    """The film as JSON without spaces."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

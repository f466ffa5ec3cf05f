"""Predictions of the learner: asked for before the output, kept, and shown again at the end.

Requirement: a learner commits to an answer before the output shows the answer. A step has a
section ``## Predict``. The first output after this section waits for a line of text.

Source: Crouch and others, Classroom demonstrations: learning tools or entertainment?, American
Journal of Physics 72, 2004: demonstrations teach those who predict the outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tinynode_course.cells import Cell, Output
from tinynode_course.progress import NAME, open_progress
from tinynode_course.sources import Step

SECTION = "Predict"
HEADING = re.compile(r"^#+ +(.*?)\s*$")
MOST_LINES = 6
"""The most lines of an output that are shown again."""


@dataclass
class Question:
    """An asked prediction: the learner's answer, and the first output after it."""

    answer: str
    section: str
    output: str


@dataclass
class Predictions:
    """The predictions of a step during a run."""

    step: Step
    asked: list[Question] = field(default_factory=list)
    _open: bool = False
    _section: str = ""

    def read(self, cell: Cell) -> None:
        """Note the sections of a cell of text."""
        for line in cell.source.splitlines() if cell.kind == "markdown" else ():
            found = HEADING.match(line)
            if found:
                self._section = found[1]
                self._open = self._open or self._section == SECTION

    def is_due(self, output: Output) -> bool:
        """True if this output answers the question of the section ``Predict``."""
        return self._open and bool((output.printed + output.shown).strip())

    def ask(self, output: Output) -> None:
        """Ask for a line of text, and save it; an empty line is no prediction.

        The learner knows before the answer where the line goes, and why.
        """
        self._open = False
        print(f"What do you predict? {NAME} in this folder keeps your line.")
        print("At the end you see your line beside the output.")
        try:
            answer = input("A line, or Enter alone to skip: ").strip()
        except EOFError:
            answer = ""
        print()
        if answer:
            shown = (output.printed + output.shown).strip()
            self.asked.append(Question(answer, self._section, shown))
            progress = open_progress()
            before = progress.of(self.step.key).get("predictions")
            kept = before if isinstance(before, list) else []
            progress.note(self.step.key, predictions=[*kept, answer])

    def compared(self) -> str:
        """The predictions beside the outputs, as Markdown; "" without predictions."""
        parts = []
        for question in self.asked:
            lines = question.output.splitlines()
            more = ["..."] if len(lines) > MOST_LINES else []
            shown = "\n".join([*lines[:MOST_LINES], *more])
            parts.append(
                f"## Your prediction\nYou wrote: {question.answer}\n\n"
                f"The output in section **{question.section}** begins with\n\n"
                f"```text\n{shown}\n```"
            )
        return "\n\n".join(parts)

"""A question with blanks: the numbers are drawn, and the answer is computed.

Requirement: no answer is typed by hand. A card has a short program with blanks. Drawn values fill
the blanks. The program runs, filmed by ``tinynode.show.record``, and the answer is an expression
of the program's names and of the film. So each learner gets other numbers, with right answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode_course import cells

TOLERANCE = 0.006
"""A number with two right digits is right: the largest relative distance."""

MOST_TRIES = 100
"""The most draws of numbers until the answer is one of the choices, and finite."""

Draws = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class DrawnQuestion:
    """A question with its numbers.

    Attributes:
        card: the name of the card.
        step: the key of the step with the idea.
        program: a program for the learner to read, or "".
        text: the question.
        answer: a number, or a text.
        choices: the possible answers; () for a number or a short text.
        why: the explanation after the answer.
    """

    card: str
    step: str
    program: str
    text: str
    answer: float | str
    why: str
    choices: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        """True if the answer is a number."""
        return not isinstance(self.answer, str)

    @property
    def answer_text(self) -> str:
        """The right answer, as a learner may write the answer."""
        return self.answer if isinstance(self.answer, str) else f"{self.answer:.6g}"

    def is_right(self, text: str) -> bool:
        """True for the right answer: a number, the letter of a choice, or the text."""
        text = text.strip()
        if isinstance(self.answer, str):
            for letter, choice in self.lettered():
                text = choice if text.lower().rstrip(").") == letter else text
            return _plain(text) == _plain(self.answer)
        try:
            number = _number(text)
        except (ValueError, ZeroDivisionError):
            return False
        return abs(number - self.answer) <= self.distance

    def wish(self, text: str) -> str:
        """The form of an answer, for a text of another form; "" for an answer and for nothing."""
        if text and self.choices:
            letters = [letter for letter, _ in self.lettered()]
            known = {*letters, *map(_plain, self.choices)}
            return "" if _plain(text) in known else f"Write a letter: {', '.join(letters)}."
        if not text or not self.is_number:
            return ""
        try:
            _number(text)
        except (ValueError, ZeroDivisionError):
            return "Write a number, such as 3, 0.75 or 3/4."
        return ""

    @property
    def distance(self) -> float:
        """The largest distance of a right number from the answer."""
        return TOLERANCE * abs(float(self.answer)) + 1e-9

    def lettered(self) -> list[tuple[str, str]]:
        """The choices with the letters a, b, c ..."""
        return [(chr(ord("a") + place), choice) for place, choice in enumerate(self.choices)]


@dataclass(frozen=True)
class Card:
    """A question with blanks such as ``{a}``, in all texts.

    Attributes:
        name: unique in the course; the learner's progress has the name.
        step: the key of the step with the idea.
        program: runs before the answer; the names ``tn``, ``nn``, ``F`` and ``np`` are there.
        text: the question.
        answer: an expression of the program's names, and of ``film``, a ``Seen``.
        why: the explanation.
        draws: for each blank, the values to draw from.
        choices: the possible answers, or () for a number or a short text.
        is_shown: False if the program is for the answer only.
    """

    name: str
    step: str
    program: str
    text: str
    answer: str
    why: str
    draws: Draws = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    is_shown: bool = True

    def draw(self, generator: random.Random) -> DrawnQuestion:
        """The question with drawn numbers, and the computed answer.

        Raises:
            ValueError: no draw gives an answer among the choices.
        """
        for _ in range(MOST_TRIES):
            values = {name: generator.choice(list(found)) for name, found in self.draws.items()}
            question = self.filled(values)
            if not question.choices or question.answer in question.choices:
                return question
        raise ValueError(f"Card {self.name}: no draw of {MOST_TRIES} has its answer in choices.")

    def filled(self, values: Mapping[str, str]) -> DrawnQuestion:
        """The question with these values in the blanks."""
        program = _fill(self.program, values)
        found = answer_of(program, _fill(self.answer, values))
        answer = found if isinstance(found, str) else float(found)
        choices = tuple(dict.fromkeys(_fill(choice, values) for choice in self.choices))
        known = {**values, "answer": answer if isinstance(answer, str) else f"{answer:.6g}"}
        return DrawnQuestion(
            self.name,
            self.step,
            program if self.is_shown else "",
            _fill(self.text, values),
            answer,
            _fill(self.why, known),
            choices,
        )


class Seen:
    """What a film of a program shows, in the words of the cards."""

    def __init__(self, film: tn.show.Film) -> None:
        self.steps = film.steps
        self.labels = {node.id: node.label for node in film.nodes}

    def forward(self) -> list[str]:
        """The functions that ran forward, in their order: ``["Exp", "Multiply"]``."""
        return list(self._classes("forward"))

    def backward(self) -> list[str]:
        """The functions whose backward ran, in their order."""
        return list(self._classes("backward"))

    def kept(self, function: str) -> str:
        """What such a function keeps: "its input", "its output", "both" or "nothing"."""
        step = next(one for one in self.steps if one["class"] == function)
        kept = set(step["retained"])
        inputs = bool(kept & {name for name, _ in step["inputs"]})
        outputs = bool(kept & {name for name, _ in step["outputs"]})
        if inputs and outputs:
            return "both"
        return "its input" if inputs else "its output" if outputs else "nothing"

    def _classes(self, kind: str) -> Iterator[str]:
        for step in self.steps:
            if step["kind"] == kind:
                yield step["class"]


def answer_of(program: str, answer: str) -> Any:
    """Run a program, filmed, and find the value of an expression after the program."""
    names: dict[str, Any] = {"tn": tn, "nn": nn, "F": F, "np": np}
    path = Path("question.py")
    with tn.show.record() as film:
        cells.run_cell(cells.Cell("code", program, frozenset(), 1), path, names)
    names["film"] = Seen(film)
    cells.run_cell(cells.Cell("code", f"answer = {answer}", frozenset(), 1), path, names)
    return names["answer"]


def _fill(text: str, values: Mapping[str, str]) -> str:
    """The text with values in the blanks ``{name}``; other braces stay.

    A value may have blanks too: "({n}, 1)". So the values go in twice.
    """
    for name, value in [*values.items()] * 2:
        text = text.replace(f"{{{name}}}", value)
    return text


def spellings(answer: str) -> list[str]:
    """A text as learners write the text: ``(3,)``, ``(3)``, ``3``; without spaces too."""
    inner = answer.strip("()").rstrip(",")
    shown = [answer, f"({inner})", inner] if answer.startswith("(") else [answer]
    return list(dict.fromkeys([*shown, *(text.replace(" ", "") for text in shown)]))


def _plain(text: str) -> str:
    """A text for a comparison: without spaces, brackets, and a comma at the end."""
    return re.sub(r"[\s()\[\]]", "", text).lower().rstrip(",.")


def _number(text: str) -> float:
    """``2.5``, ``2,5``, ``1/3`` or ``-4``."""
    text = text.replace(",", ".").replace("\N{MINUS SIGN}", "-")
    top, _, bottom = text.partition("/")
    return float(top) / float(bottom or "1")

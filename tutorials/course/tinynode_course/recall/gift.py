"""Question banks in the format GIFT, which Moodle imports.

Requirement: a quiz of Moodle takes a random question of a category. So each card is a category,
and the category has the card with many drawn numbers.

Source: Moodle Docs, GIFT format. The characters ``~ = # { } :`` and the backslash get a backslash.
An empty line ends a question, so the lines of a program are joined by ``<br>``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from tinynode_course.recall.card import DrawnQuestion, spellings

SPECIAL = re.compile(r"([\\~=#{}:])")


def bank(groups: Mapping[str, Sequence[DrawnQuestion]], title: str) -> str:
    """The text of a file: a category for each group, with all questions of the group."""
    parts = []
    for name, questions in groups.items():
        parts.append(f"$CATEGORY: $course$/top/{title}/{name}")
        parts += [_question(name, number, one) for number, one in enumerate(questions, 1)]
    return "\n\n".join(parts) + "\n"


def _question(name: str, number: int, question: DrawnQuestion) -> str:
    text = as_html(question)
    feedback = _plain(html.escape(question.why, quote=False))
    return f"::{name} {number}:: [html]{_plain(text)} {{{_answers(question)}####{feedback}}}"


def _answers(question: DrawnQuestion) -> str:
    """The part in braces: ``#13:0.08``, ``=yes ~no`` or ``=(3,) =3``."""
    if question.is_number:
        return f"#{question.answer_text}:{question.distance:.9f}"
    if not question.choices:
        return " ".join(f"={_plain(text)}" for text in spellings(str(question.answer)))
    signs = {True: "=", False: "~"}
    return " ".join(
        f"{signs[choice == question.answer]}{_plain(html.escape(choice, quote=False))}"
        for choice in question.choices
    )


def _plain(text: str) -> str:
    """The text with a backslash before GIFT's own characters, in a line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split("\n")))


def as_html(question: DrawnQuestion) -> str:
    """The program and the question as HTML in a line."""
    lines = html.escape(question.program, quote=False).strip("\n").split("\n")
    program = f"<pre>{'<br>'.join(lines)}</pre>" if question.program else ""
    return f"{program}<p>{html.escape(question.text, quote=False)}</p>"

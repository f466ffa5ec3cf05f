"""The actions ``class questions`` and ``class sheets``: question banks, and sheets for exams.

Requirement: no two students have the same numbers, and a teacher can make every sheet again. All
numbers come from the key of the class and from names. A new key is a new version for a new term.

    python -P -m tinynode.learn class questions teacher moodle.gift
    python -P -m tinynode.learn class questions teacher canvas.zip --variants 40
    python -P -m tinynode.learn class sheets teacher exam submissions/*

A sheet has questions of the course with the student's own numbers, then questions on definitions
that the student wrote. The student's files are read as text; no program of a student's runs.
"""

from __future__ import annotations

import argparse
import ast
import html
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinynode.atomic_file import replace_file
from tinynode.commands.command_line import CommandError
from tinynode.errors import printable
from tinynode_course import grading, mynode, sources
from tinynode_course.judge import keys, submission
from tinynode_course.progress import write_file
from tinynode_course.recall import gift, more_cards, qti
from tinynode_course.recall.card import Card, DrawnQuestion

TITLE = "tinynode"
VARIANTS = 20
TRIES = 5
"""The draws for each wanted variant; a draw may come twice."""
QUESTIONS = 6
DEFINITIONS = 3
SHORTEST = 4
"""A definition of fewer lines has one form: there is nothing to ask."""

STYLE = """\
body{font:16px/1.45 system-ui,sans-serif;max-width:46em;margin:2em auto;color:#1b1f24}
pre{background:#f2f4f7;padding:.6em .9em;white-space:pre-wrap}
section{break-inside:avoid;margin:0 0 2em}h2{font-size:1.05em}
.room{height:4.5em;border-bottom:1px solid #c5ccd4}
article+article{break-before:page}
"""


def add_actions(actions: Any) -> None:
    """Describe both actions to argparse."""
    bank = actions.add_parser("questions", help="write a question bank for Moodle or Canvas")
    bank.add_argument("folder", metavar="FOLDER", help="the teacher's folder")
    bank.add_argument("file", metavar="FILE", help=".gift for Moodle, .zip for Canvas (QTI 1.2)")
    bank.add_argument("--variants", type=int, default=VARIANTS, help="default: %(default)s")
    bank.add_argument("--steps", metavar="KEYS", help="such as 01,02; default: all")
    bank.set_defaults(run=run_questions, parser=bank)
    sheets = actions.add_parser("sheets", help="write exam sheets: own numbers, own code")
    sheets.add_argument("folder", metavar="FOLDER", help="the teacher's folder")
    sheets.add_argument("out", metavar="OUT", help="a new folder for the sheets")
    sheets.add_argument("submissions", metavar="SUBMISSION", nargs="+")
    sheets.add_argument("--steps", metavar="KEYS", help="such as 01,02; default: all")
    sheets.set_defaults(run=run_sheets, parser=sheets)


def cards_of(text: str | None) -> list[Card]:
    """The cards of steps such as "01,02", or of all.

    Raises:
        CommandError: a step is unknown, or the steps have no questions.
    """
    chosen = None if text is None else {sources.find(key).key for key in text.split(",")}
    cards = more_cards.of_steps(chosen)
    if not cards:
        raise CommandError(f"--steps: steps {text} have no questions; the steps 01 to 26 have")
    return cards


# --- banks ---------------------------------------------------------------------------------------


def run_questions(options: argparse.Namespace) -> int:
    """Write a bank; the suffix of the file gives the format."""
    writers = {".gift": _as_gift, ".zip": qti.package}
    path = Path(options.file)
    if path.suffix not in writers:
        raise CommandError(f"FILE must end in .gift (Moodle) or .zip (Canvas), got {path.name!r}")
    if not 1 <= options.variants <= 500:
        raise CommandError(f"--variants must be 1 to 500, got {options.variants}")
    groups = drawn(keys.open_key(Path(options.folder)), cards_of(options.steps), options.variants)
    try:
        replace_file(path, writers[path.suffix](groups, TITLE))
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", status=1) from None
    count = sum(map(len, groups.values()))
    print(f"wrote {path}: {count} questions in {len(groups)} groups; a quiz draws from each group")
    return 0


def _as_gift(groups: Mapping[str, Sequence[DrawnQuestion]], title: str) -> bytes:
    return gift.bank(groups, title).encode()


def drawn(key: str, cards: Sequence[Card], variants: int) -> dict[str, list[DrawnQuestion]]:
    """Different questions of each card by the name of the card; at most so many variants.

    A card with few numbers has fewer variants.
    """
    groups = {}
    for card in cards:
        generator = random.Random(keys.digest(key, "questions", card.name))
        found: dict[tuple[str, str], DrawnQuestion] = {}
        for _ in range(TRIES * variants):
            if len(found) < variants:
                question = card.draw(generator)
                found.setdefault((question.program, question.text), question)
        groups[f"{card.step}_{card.name}"] = list(found.values())
    return groups


# --- sheets --------------------------------------------------------------------------------------


def run_sheets(options: argparse.Namespace) -> int:
    """Write a sheet for each submission, and the answers of all."""
    key, cards = keys.open_key(Path(options.folder)), cards_of(options.steps)
    out = Path(options.out)
    if out.exists():
        raise CommandError(f"{out} is there already; give a new folder", status=1)
    answers = []
    for folder in submission.folders_by_name(options.submissions).values():
        student = submission.read(folder, grading.with_exercise())
        name = printable(student.name)
        questions = questions_for(key, cards, student.name)
        own = own_code(key, student)
        write_file(
            out / "students" / f"{name}.html",
            _page([_sheet(name, questions, own)]),
        )
        answers.append(_answer_sheet(name, questions, own))
        print(f"{name}: {len(questions)} questions, {len(own)} of own definitions")
    write_file(out / "answers.html", _page(answers))
    print(f"wrote {out}: students/ has a page for each, answers.html is for you")
    return 0


def questions_for(key: str, cards: Sequence[Card], name: str) -> list[DrawnQuestion]:
    """The questions of a student: cards in the order of the course, with the student's numbers."""
    generator = random.Random(keys.digest(key, "sheet", name))
    chosen = generator.sample(range(len(cards)), min(QUESTIONS, len(cards)))
    return [cards[place].draw(generator) for place in sorted(chosen)]


def own_code(key: str, student: submission.Submission) -> list[tuple[str, str, str]]:
    """Definitions of the student's, as ``(place, text, question)``.

    A definition with the syntax tree of the reference comes only if there is no other.
    """
    known = {
        one.meaning
        for step in mynode.builders()
        for text in mynode.changed(step.key).values()
        for one in mynode.definitions(text).values()
    }
    found = []
    for path, content in student.files.items():
        for one in _definitions(content):
            if one.end - one.start >= SHORTEST:
                found.append((one.meaning in known, f"{path}, line {one.start + 1}", one.text))
    generator = random.Random(keys.digest(key, "own code", student.name))
    generator.shuffle(found)
    found.sort(key=_is_like_the_reference)
    return [
        (place, text, question_about(text, generator)) for _, place, text in found[:DEFINITIONS]
    ]


def _is_like_the_reference(found: tuple[bool, str, str]) -> bool:
    return found[0]


def _definitions(content: bytes) -> list[mynode.Definition]:
    """The definitions of a student's file; none of a file that is no Python."""
    try:
        return list(mynode.definitions(content.decode("utf-8")).values())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def question_about(text: str, generator: random.Random) -> str:
    """A question on a definition: its backward, or one of its lines."""
    lines = text.splitlines()
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    numbers = sorted({node.lineno for node in statements if _can_go(node)})
    choices = []
    if numbers:
        line = lines[generator.choice(numbers) - 1].strip()
        choices += [
            f"The line  {line}  is deleted. Name a program of a few lines that goes wrong "
            "then, and say how.",
            f"Why does the program need the line  {line}  ?",
        ]
    if "def backward(self, " in text:
        choices += [
            "Change a sign or a factor in this backward. Which value does a gradient check at "
            "x = 2 show, and which value is right?",
            "Which arrays does this function keep between forward and backward, and why these?",
        ]
    plain = "Give an input of a few numbers, and write down what the definition computes for it."
    return generator.choice(choices or [plain])


def _can_go(node: ast.stmt) -> bool:
    """True for a statement in a line of its own that changes something."""
    kinds = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.AnnAssign)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, kinds) and not is_text and node.lineno == node.end_lineno


def _page(articles: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Sheets</title>\n'
        f"<style>{STYLE}</style>\n{chr(10).join(articles)}\n</html>\n"
    )


def _sheet(
    name: str, questions: Sequence[DrawnQuestion], own: Sequence[tuple[str, str, str]]
) -> str:
    """The page of a student, with room for answers."""
    parts = [f"<article><h1>{html.escape(name)}</h1>"]
    for number, question in enumerate(questions, 1):
        choices = "".join(
            f"<br>{letter}) {html.escape(choice)}" for letter, choice in question.lettered()
        )
        parts.append(
            f"<section><h2>{number}. Step {question.step}</h2>{gift.as_html(question)}"
            f'{choices}<div class="room"></div></section>'
        )
    for number, (place, text, asked) in enumerate(own, len(questions) + 1):
        parts.append(
            f"<section><h2>{number}. Your {html.escape(place)}</h2>"
            f"<pre>{html.escape(text)}</pre><p>{html.escape(asked)}</p>"
            '<div class="room"></div></section>'
        )
    return "\n".join([*parts, "</article>"])


def _answer_sheet(
    name: str, questions: Sequence[DrawnQuestion], own: Sequence[tuple[str, str, str]]
) -> str:
    """The teacher's page of a student: answers, and the places of the code."""
    rows = [
        f"<li><b>{html.escape(question.answer_text)}</b> {html.escape(question.why)}</li>"
        for question in questions
    ]
    rows += [
        f"<li>{html.escape(place)}: {html.escape(question)}</li>" for place, _, question in own
    ]
    return f"<article><h1>{html.escape(name)}</h1><ol>{''.join(rows)}</ol></article>"

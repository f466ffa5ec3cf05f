"""The command ``review``: two minutes of questions on past steps, spaced by the answers.

Requirement: a learner still knows a step after a month. Each question belongs to a step that the
learner has passed, and has other numbers each time. A right answer moves the card to the next
box, which waits twice as long. After a wrong answer, the card waits in the first box. Each answer
is saved before the next question, so Ctrl-C loses none.

    python -m tinynode.learn review
    python -m tinynode.learn review 05 --ahead

Source: the boxes are those of Leitner, So lernt man lernen, Herder 1972, with intervals that
double. Why at all: Roediger and Karpicke, Test-enhanced learning, Psychological Science 17, 2006.
"""

from __future__ import annotations

import argparse
import datetime
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tinynode.commands.command_line import CommandError, Parser, positive_number
from tinynode_course import sources
from tinynode_course.plain_screen import PlainScreen
from tinynode_course.progress import PROGRAM, Progress, open_progress
from tinynode_course.recall import more_cards
from tinynode_course.recall.card import Card, DrawnQuestion

SUMMARY = "ask questions on past steps, spaced by your answers"

DAYS = (1, 2, 4, 8, 16, 32)
"""The days that a card waits in each box."""

SECONDS = 120.0
"""No new question begins after so many seconds."""

FACT = "review"
"""The fact of a step in the progress file: ``{card: [box, day, right, asked]}``."""


@dataclass(frozen=True)
class State:
    """What the progress file knows about a card: the box, the day, and counts.

    ``day`` is the proleptic Gregorian ordinal of ``datetime.date``: a day when the card is due.
    """

    box: int = 0
    day: int = 0
    right: int = 0
    asked: int = 0

    def after(self, is_right: bool, today: int) -> State:
        """The state after an answer: the next box, or the first box."""
        if not is_right:
            return State(0, today + DAYS[0], self.right, self.asked + 1)
        box = min(self.box + 1, len(DAYS) - 1) if self.asked else 0
        return State(box, today + DAYS[box], self.right + 1, self.asked + 1)

    def is_due(self, today: int) -> bool:
        """True on the day and later, and for a day that no box gives: a clock was wrong."""
        return self.day <= today or self.day > today + DAYS[-1]


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("step", metavar="STEP", nargs="?", help="such as 07; default: all passed")
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=SECONDS,
        help="no new question after so many seconds; default: %(default)g",
    )
    parser.add_argument("--ahead", action="store_true", help="ask cards before their day too")


def run(options: argparse.Namespace) -> int:
    """Ask the due questions; 0 after any answers."""
    progress = open_progress()
    cards = more_cards.of_steps(passed(progress, options.step))
    today = datetime.date.today().toordinal()
    states = {card.name: state_of(progress, card) for card in cards}
    due = in_order(cards, states, today, options.ahead)
    if not due:
        print(_nothing_due(states))
        return 0
    print(f"{_questions(len(due))} due. Enter alone: you do not know. q: stop.\n")
    asked, right = _ask_all(due, today, time.monotonic() + options.seconds)
    print(f"{right} of {asked} right.  {_next_day(cards, today)}")
    return 0


def say_due(progress: Progress) -> None:
    """Print the number of due questions and the command; nothing if none is due."""
    keys = {step.key for step in sources.steps() if progress.of(step.key).get("passed")}
    cards = more_cards.of_steps(keys)
    today = datetime.date.today().toordinal()
    due = in_order(cards, {card.name: state_of(progress, card) for card in cards}, today)
    if due:
        print(f"{_questions(len(due))} due on passed steps: {PROGRAM} review")


def passed(progress: Progress, text: str | None = None) -> set[str]:
    """The keys of the passed steps, or of a passed step.

    Raises:
        CommandError: No step is passed, or the named step is not.
    """
    keys = {step.key for step in sources.steps() if progress.of(step.key).get("passed")}
    if text is not None:
        step = sources.find(text)
        if step.key not in keys:
            raise CommandError(f"step {step.key} is not passed yet: {PROGRAM} check {step.key}", 1)
        keys = {step.key}
    if not keys:
        raise CommandError(f"no step is passed yet; begin with {PROGRAM} start 01", 1)
    return keys


def state_of(progress: Progress, card: Card) -> State:
    """The state of a card; a new state for numbers of another form."""
    found: dict[str, list[int]] = progress.of(card.step).get(FACT, {})
    numbers = found.get(card.name, [])
    is_known = len(numbers) == 4 and min(numbers) >= 0 and numbers[0] < len(DAYS)
    return State(*numbers) if is_known else State()


def save(card: Card, is_right: bool, today: int) -> None:
    """Write the state after an answer; the file is read again, for another terminal may write."""
    progress = open_progress()
    state = state_of(progress, card).after(is_right, today)
    before: dict[str, list[int]] = progress.of(card.step).get(FACT, {})
    numbers = [state.box, state.day, state.right, state.asked]
    progress.note(card.step, **{FACT: {**before, card.name: numbers}})


def in_order(
    cards: Sequence[Card], states: dict[str, State], today: int, ahead: bool = False
) -> list[Card]:
    """The due cards: those asked before by box and day, then the new ones by step."""
    due = [card for card in cards if ahead or states[card.name].is_due(today)]

    def place(card: Card) -> tuple[bool, int, int]:
        state = states[card.name]
        return state.asked == 0, state.box, state.day

    return sorted(due, key=place)  # stable: new cards stay in the order of the steps


def _ask_all(due: Sequence[Card], today: int, end: float) -> tuple[int, int]:
    """Ask until the time is over; the numbers of asked and of right answers."""
    generator = random.Random()
    asked = right = 0
    for card in due:
        if asked and time.monotonic() > end:
            print(f"Time is up; {_questions(len(due) - asked)} left for later.")
            break
        question = card.draw(generator)
        show(question, asked + 1)
        answer = read_answer()
        if answer and question.wish(answer):  # a slip of the keys is no wrong answer
            print(question.wish(answer))
            answer = read_answer()
        if answer is None:
            break
        is_right = question.is_right(answer)
        save(card, is_right, today)
        asked += 1
        right += is_right
        print(f"{'Right.' if is_right else f'No: {question.answer_text}.'}  {question.why}\n")
    return asked, right


def show(question: DrawnQuestion, number: int) -> None:
    """Print a question; plain lines, as for a pipe."""
    print(f"{number}. (step {question.step})")
    if question.program:
        PlainScreen().code(question.program)
    print(question.text)
    for letter, choice in question.lettered():
        print(f"  {letter}) {choice}")


def read_answer() -> str | None:
    """A line of the learner's; None to stop."""
    try:
        text = input("> ").strip()
    except EOFError:
        print()
        return None
    except UnicodeDecodeError:  # a terminal of another encoding
        return ""
    return None if text.lower() in ("q", "quit") else text


def _questions(count: int) -> str:
    return "1 question is" if count == 1 else f"{count} questions are"


def _nothing_due(states: dict[str, State]) -> str:
    if not states:
        return "The passed steps have no questions yet."
    day = min(state.day for state in states.values())
    date = datetime.date.fromordinal(day).isoformat()
    return (
        f"Nothing is due today. The next questions: {date}. Before that: {PROGRAM} review --ahead"
    )


def _next_day(cards: Sequence[Card], today: int) -> str:
    progress = open_progress()
    day = min(state_of(progress, card).day for card in cards)
    if day <= today:
        return f"More are due today: {PROGRAM} review"
    return f"The next questions: {datetime.date.fromordinal(day).isoformat()}."

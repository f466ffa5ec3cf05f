"""The questions of the course as data: a page in a browser asks without Python.

Requirement: the browser and the terminal ask the same cards, and use the same boxes. So the build
of the site writes one JSON file: the rule of the boxes, and each card with many drawn numbers.
The answers come from filmed runs, as in the terminal.

    {"rule": {"days": [1, 2, ...], "seconds": 120},
     "cards": [{"name": "rank", "step": "step06", "key": "06", "title": "Step 6: ...",
                "stem": "step06_rank_and_order",
                "draws": [{"program": ..., "text": ..., "why": ..., "choices": [],
                           "answer": 4, "shown": "4", "distance": 0.024}, ...]}, ...]}
"""

from __future__ import annotations

import random
from typing import Any

from tinynode_course import sources
from tinynode_course.recall import more_cards
from tinynode_course.recall.card import Card, DrawnQuestion
from tinynode_course.recall.review import DAYS, SECONDS

DRAWS = 12
"""The most different draws of a card: at a question a day, numbers come back after two weeks."""

SEED = 1
"""Equal cards give an equal file."""


def sheet() -> dict[str, Any]:
    """The rule and all cards, as JSON data."""
    return {
        "rule": {"days": list(DAYS), "seconds": SECONDS},
        "cards": [card_data(card) for card in more_cards.of_steps()],
    }


def card_data(card: Card) -> dict[str, Any]:
    """A card with its draws, and with the page of its step."""
    step = sources.find(card.step)
    return {
        "name": card.name,
        "step": step.name,
        "key": step.key,
        "title": step.title,
        "stem": step.path.stem,
        "draws": [draw_data(question) for question in different_draws(card)],
    }


def different_draws(card: Card) -> list[DrawnQuestion]:
    """Some draws of a card, each with other numbers."""
    generator = random.Random(SEED)
    found: dict[tuple[str, str, str], DrawnQuestion] = {}
    for _ in range(3 * DRAWS):
        question = card.draw(generator)
        found.setdefault((question.program, question.text, question.why), question)
        if len(found) == DRAWS:
            break
    return list(found.values())


def draw_data(question: DrawnQuestion) -> dict[str, Any]:
    """A question with its answer; ``distance`` is None for an answer in words."""
    return {
        "program": question.program,
        "text": question.text,
        "why": question.why,
        "choices": list(question.choices),
        "answer": question.answer,
        "shown": question.answer_text,
        "distance": question.distance if question.is_number else None,
    }

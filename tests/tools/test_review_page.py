"""The page of reviews: the terminal's cards, boxes and judgements, by keyboard and offline."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from contrast import contrast
from course_site import Tab

from tinynode_course.recall import more_cards, review
from tinynode_course.recall.card import DrawnQuestion, spellings
from tinynode_course.recall.review import DAYS, SECONDS, State
from tinynode_course.recall.sheet import DRAWS, card_data, different_draws, draw_data, sheet

TODAY = datetime.date.today().toordinal()

WORDS = (
    "", " ", "?", "a", "B)", "c.", "yes", "NO", "0", "1", "-1", "2.5", "2,5", "1/3", "1/0", "1/",
    "/2", "1/2/3", ".5", "5.", "1e-4", "1E3", "\N{MINUS SIGN}4", "- 4", "+4", "nan", "x", "1 2",
    "(3,)", "3", "(3, 1)", "[3, 1]", "both", "Its Input", "0x10", "infinite",
)  # fmt: skip
"""Texts that learners write, right for few questions."""


@pytest.mark.slow
def test_the_sheet_has_each_card_with_different_draws() -> None:
    found = sheet()
    assert found["rule"] == {"days": list(DAYS), "seconds": SECONDS}
    cards = more_cards.of_steps()
    assert [card["name"] for card in found["cards"]] == [card.name for card in cards]
    assert found["cards"][0] == card_data(cards[0]) and json.loads(json.dumps(found)) == found
    for card in found["cards"]:
        assert 3 <= len(card["draws"]) <= DRAWS
        assert len({json.dumps(draw) for draw in card["draws"]}) == len(card["draws"])
        for draw in card["draws"]:
            assert not draw["choices"] or draw["answer"] in draw["choices"]


# --- one rule in two languages -------------------------------------------------------------------

AGREE = """async ([days, today, states, decks, draws, dates]) => {
  const rule = await import("./recall.js");
  return {
    after: states.map((state) => [true, false].map((is) => rule.after(state, is, today, days))),
    due: states.map((state) => rule.isDue(state, today, days)),
    known: [[99, 1, 1, 1], [1], "x", null, [0, -1, 0, 0], [0, 1.5, 0, 0], {}]
      .map((found) => rule.stateOf(found, days)),
    order: decks.map((deck) => [false, true].map((ahead) =>
      rule.inOrder(deck.map((_, i) => i), (i) => deck[i], today, days, ahead))),
    right: draws.map(([draw, texts]) => texts.map((text) => rule.isRight(draw, text))),
    days: dates.map(([y, m, d]) => rule.dayOf(new Date(y, m - 1, d, 23, 30))),
    dates: dates.map(([y, m, d]) => rule.dateOf(rule.dayOf(new Date(y, m - 1, d, 0, 30)))),
  };
}"""


def all_states() -> list[State]:
    days = (0, TODAY - 40, TODAY - 1, TODAY, TODAY + 1, TODAY + DAYS[-1], TODAY + DAYS[-1] + 1)
    counts = ((0, 0), (0, 1), (3, 5))
    return [State(b, d, *c) for b in range(len(DAYS)) for d in days for c in counts]


def order_in_python(deck: Sequence[State]) -> list[list[int]]:
    cards = more_cards.ALL[: len(deck)]
    states = {card.name: state for card, state in zip(cards, deck, strict=True)}
    orders = [review.in_order(cards, states, TODAY, ahead) for ahead in (False, True)]
    return [[cards.index(card) for card in order] for order in orders]


def texts_for(question: DrawnQuestion) -> list[str]:
    texts = [*WORDS, question.answer_text, *question.choices, *spellings(question.answer_text)]
    if question.is_number:
        number = float(question.answer)
        texts += [f"{number * factor:.9g}" for factor in (1.005, 0.995, 1.007, 0.993, -1)]
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles"])
def test_browser_and_terminal_have_one_rule(browser: Any, site_address: str, zone: str) -> None:
    generator = random.Random(3)
    states = all_states()
    decks = [generator.choices(states, k=generator.randrange(9)) for _ in range(60)]
    questions = [
        question for card in more_cards.of_steps() for question in different_draws(card)[:3]
    ]
    dates = [(2024, 2, 29), (2026, 3, 8), (2026, 11, 1), (2026, 12, 31), (2100, 3, 1)]
    context = browser.new_context(timezone_id=zone)
    page = context.new_page()
    page.goto(f"{site_address}browser/licences.html")
    found = page.evaluate(
        AGREE,
        [
            DAYS,
            TODAY,
            [as_list(state) for state in states],
            [[as_list(state) for state in deck] for deck in decks],
            [[draw_data(question), texts_for(question)] for question in questions],
            dates,
        ],
    )
    context.close()
    answers = (True, False)
    assert found["after"] == [[as_list(s.after(is_, TODAY)) for is_ in answers] for s in states]
    assert found["due"] == [state.is_due(TODAY) for state in states]
    assert found["known"] == [[0, 0, 0, 0]] * 7
    assert found["order"] == [order_in_python(deck) for deck in decks]
    assert found["days"] == [datetime.date(*date).toordinal() for date in dates]
    assert found["dates"] == [datetime.date(*date).isoformat() for date in dates]
    for question, judged in zip(questions, found["right"], strict=True):
        for text, is_right in zip(texts_for(question), judged, strict=True):
            assert is_right == question.is_right(text), (question.card, text)


def as_list(state: State) -> list[int]:
    return [state.box, state.day, state.right, state.asked]


BEGIN = "button:text-is('Begin')"


# --- the page ------------------------------------------------------------------------------------


def open_review(tab: Tab, passed: Sequence[str] = ()) -> None:
    """Go to the page as a learner with these passed steps."""
    tab.page.goto(f"{tab.address}browser/licences.html")
    put = "(names) => { for (const n of names)"
    put += " localStorage.setItem(`tinynode-course:${n}`, JSON.stringify({passed: true})) }"
    tab.page.evaluate(put, list(passed))
    tab.page.goto(f"{tab.address}review/")
    tab.page.wait_for_selector("html[data-tinynode=ready]", state="attached")


def kept(tab: Tab, step: str) -> dict[str, list[int]]:
    entry = tab.page.evaluate(f"localStorage.getItem('tinynode-course:{step}')")
    found: dict[str, list[int]] = json.loads(entry).get("review", {})
    return found


def draw_shown(tab: Tab) -> tuple[str, dict[str, Any]]:
    """The card and the draw of the shown question."""
    card, draw = tab.page.evaluate("[tinynodeReview.card.name, tinynodeReview.draw]")
    (known,) = (one for one in more_cards.ALL if one.name == card)
    assert draw in card_data(known)["draws"]
    return card, draw


@pytest.mark.slow
def test_a_learner_reviews_by_keyboard_without_a_server(tab: Tab) -> None:
    open_review(tab)
    assert "No passed step of this browser has questions" in tab.text("#tinynode-review")
    open_review(tab, ["step03", "step05"])
    assert "4 questions are due." in tab.text("#tinynode-review")
    tab.page.select_option("#tinynode-review select", "step03")
    assert "2 questions are due." in tab.text("#tinynode-review")
    tab.page.context.set_offline(True)
    press = tab.page.keyboard.press

    tab.page.focus(BEGIN)
    press("Enter")
    card, draw = draw_shown(tab)
    assert card == "central_difference" and not draw["choices"]
    assert draw["program"].strip() == tab.text("#tinynode-review pre").strip()
    press("Enter")  # nothing is written yet
    assert "Write an answer first" in tab.text(".tn-result") and kept(tab, "step03") == {}
    tab.page.keyboard.type(draw["shown"])
    press("Enter")
    assert tab.text(".tn-result").startswith("✓ Right. " + draw["why"][:20])
    assert kept(tab, "step03") == {"central_difference": [0, TODAY + 1, 1, 1]}

    press("Enter")  # the focus is on "Next question"
    card, draw = draw_shown(tab)
    assert card == "best_eps" and len(draw["choices"]) > 1
    wrong = next(i for i, choice in enumerate(draw["choices"]) if choice != draw["answer"])
    press("abc"[wrong])
    press("Enter")
    assert f"✗ No: {draw['shown']}." in tab.text(".tn-result")
    assert kept(tab, "step03")["best_eps"] == [0, TODAY + 1, 0, 1]
    press("Enter")
    tomorrow = (datetime.date.today() + datetime.timedelta(1)).isoformat()
    assert tab.text("#tinynode-review p") == f"1 of 2 right. The next questions: {tomorrow}."
    tab.page.click("text=Back to the start")
    assert "Nothing is due today." in tab.text("#tinynode-review")

    tab.page.select_option("#tinynode-review select", "")
    tab.page.click(BEGIN)
    tab.page.click("text=I do not know")
    assert kept(tab, "step05")["two_uses"] == [0, TODAY + 1, 0, 1]
    tab.page.evaluate("tinynodeReview.end = 0")
    tab.page.click("text=Next question")
    assert "Time is up; 1 question is left for later." in tab.text("#tinynode-review")
    tab.page.context.set_offline(False)

    saved = tab.page.evaluate(
        f"import('{tab.address}browser/store.js').then((s) => s.imported(s.exported()))"
    )
    assert saved == 2, "a file of progress with reviews can be read again"
    tab.page.goto(f"{tab.address}tutorials/")
    assert tab.text(".tn-due") == "1 question is due on passed steps: Review"
    assert not [url for url in tab.requests if "/python/" in url], "no Python is needed"


LOOK = """() => [...document.querySelectorAll(
  "#tinynode-review :is(legend, label, p, .tn-yes, .tn-no, button)")].map((one) => {
  const hex = (colour) => "#" + colour.match(/\\d+/g).slice(0, 3)
    .map((part) => Number(part).toString(16).padStart(2, "0")).join("");
  const { color, backgroundColor } = getComputedStyle(one);
  const page = getComputedStyle(document.body).backgroundColor;
  const area = one.matches("button") ? backgroundColor : page;
  return [one.textContent, hex(color), hex(area)];
})"""
"""The text of each part, with the colours of its text and its area."""


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_question_is_read_on_a_phone(browser: Any, site_address: str, theme: str) -> None:
    size = {"width": 390, "height": 844}
    context = browser.new_context(viewport=size, color_scheme=theme)
    tab = Tab(context, site_address)
    open_review(tab, ["step06"])
    tab.page.click(BEGIN)
    for press in ("I do not know", "Next question"):
        for text, colour, area in tab.page.evaluate(LOOK):
            assert contrast(colour, area) >= 4.5, text
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        tab.page.click(f"button:text-is('{press}')")
    context.close()
    assert tab.local() and tab.errors == []

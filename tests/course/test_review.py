"""Questions on past steps: right answers, other numbers each time, and no lost answer."""

from __future__ import annotations

import datetime
import json
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tinynode_course import sources
from tinynode_course.progress import NAME, Progress
from tinynode_course.recall import more_cards, review
from tinynode_course.recall.card import Card, DrawnQuestion
from tinynode_course.recall.review import DAYS, State

TODAY = datetime.date.today().toordinal()

BY_NAME = {card.name: card for card in more_cards.ALL}

BY_HAND: list[tuple[str, dict[str, str], float | str]] = [
    ("graph_size", {"a": "2", "formula": "x * x + x"}, 2),
    ("creator", {"a": "2", "formula": "(x + x) * x"}, "Multiply"),
    ("product_rule", {"a": "2", "b": "7"}, 7),
    ("chain_rule", {"a": "3", "b": "2"}, 24),
    ("central_difference", {"a": "2"}, 13),
    ("best_eps", {"a": "2", "eps": "1e-1, 1e-5, 1e-13"}, "1e-05"),
    ("best_eps", {"a": "1", "eps": "1e-1, 1e-3, 1e-13"}, "1e-03"),
    ("first_backward", {"a": "2", "formula": "F.exp(F.tanh(x)) * x"}, "Multiply"),
    ("slope_of_a_loss", {"w": "1", "x": "2", "t": "5"}, -12),
    ("two_uses", {"a": "3", "b": "7"}, 13),
    ("sum_of_copies", {"b": "5", "sum": "u + u + u"}, 15),
    ("next_of_two", {"a": "1", "f": "tanh", "uses": "u = x * 2\nv = F.tanh(u)\n"}, "tanh"),
    ("next_of_two", {"a": "1", "f": "tanh", "uses": "v = F.tanh(x)\nu = v * 2\n"}, "multiply"),
    ("rank", {"v": "F.exp(F.exp(u))"}, 4),
    ("gradient_shape", {"n": "4", "m": "3", "shape": "({n}, 1)"}, "(4, 1)"),
    ("gradient_of_repeated", {"n": "4", "m": "7", "shape": "({n}, 1)"}, 7),
    ("broadcast_shape", {"n": "4", "m": "2"}, "(4, 2)"),
    ("linear_size", {"n": "10", "m": "3"}, 33),
    ("weight_gradient_shape", {"batch": "8", "n": "3", "m": "5"}, "(3, 5)"),
    ("sgd_step", {"w": "10", "lr": "0.25"}, 5),
    ("cross_entropy_gradient", {"k": "4"}, -0.75),
    ("kept_epoch", {"losses": "[1.0, 0.9, 0.8, 0.7, 0.9]"}, 4),
    ("he_scale", {"n": "8"}, 0.5),
    ("alive", {"use": "z = y * 2"}, "no"),
    ("alive", {"use": "z = y"}, "yes"),
    ("kept", {"a": "2", "f": "exp"}, "its output"),
    ("kept", {"a": "2", "f": "log"}, "its input"),
    ("kept", {"a": "2", "f": "sum"}, "nothing"),
    ("kept_by_operators", {"a": "2", "sign": "*"}, "both inputs"),
    ("kept_by_operators", {"a": "2", "sign": "-"}, "nothing"),
    ("kept_bytes", {"n": "250"}, 1000),
    ("backward_twice", {"a": "5", "between": ""}, 20),
    ("backward_twice", {"a": "5", "between": "x.cleargrad()\n"}, 10),
    ("no_graph", {"a": "2", "formula": "u * 2"}, "no"),
    ("no_graph", {"a": "2", "formula": "u + x"}, "yes"),
    ("measured_error", {"a": "2", "k": "5"}, 6),
    ("kink", {"slope": "0.2"}, 0.6),
    ("refused", {"n": "2", "m": "3", "k": "2"}, "yes"),
    ("refused", {"n": "2", "m": "3", "k": "3"}, "no"),
    ("convolution_size", {"n": "9", "k": "3", "stride": "2", "padding": "1"}, 5),
    ("filter_size", {"c": "3", "d": "4", "k": "5"}, 304),
    ("through_time", {"w": "3", "t": "4"}, 108),
    ("normalised", {"a": "9", "b": "5"}, -1),
    ("residual_gradient", {"n": "2", "w": "0.5"}, 2.25),
    ("scores_shape", {"t": "3", "s": "6", "d": "8"}, "(3, 6)"),
    ("causal", {"t": "10"}, 55),
    ("merged", {"text": "banana", "pair": "an"}, 4),
    ("cache_size", {"layers": "2", "t": "10", "d": "32"}, 1280),
    ("low_rank", {"r": "2", "n": "64", "m": "32"}, 192),
    ("second_derivative", {"a": "2", "formula": "x * x * x"}, 12),
    ("gradient_from_output", {"y": "-0.5", "gy": "4.0"}, 3),
    ("linear_twice", {"a": "2", "formula": "3 * x"}, "no"),
    ("linear_twice", {"a": "2", "formula": "F.exp(x)"}, "yes"),
    ("contributions", {"formula": "(x + x) + (x + x)"}, 3),
    ("hook_calls", {"a": "2", "formula": "F.exp(x) * x"}, 4),
]
"""Draws of each card, with the answer found on paper."""


@pytest.mark.parametrize(("name", "values", "answer"), BY_HAND)
def test_the_answer_of_a_run_is_the_answer_on_paper(
    name: str, values: dict[str, str], answer: float | str
) -> None:
    found = BY_NAME[name].filled(values).answer
    assert found == (answer if isinstance(answer, str) else pytest.approx(answer, rel=1e-3))


def test_each_card_has_an_answer_on_paper_and_a_step() -> None:
    assert {name for name, _, _ in BY_HAND} == set(BY_NAME)
    assert len(BY_NAME) == len(more_cards.ALL)
    known = {step.key for step in sources.steps()}
    with_cards = {card.step for card in more_cards.ALL}
    assert with_cards - known <= {"19", "20", "21"}  # steps that an installation may lack
    numbered = {key for key in known if key.isdigit()} - {"00"}
    assert numbered <= with_cards, "a step without questions"


@pytest.mark.parametrize("card", more_cards.ALL, ids=lambda card: card.name)
def test_each_draw_is_complete(card: Card) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        questions = [card.draw(random.Random(seed)) for seed in range(6)]
    for question in questions:
        texts = (question.program, question.text, question.why, *question.choices)
        assert not any(re.search(r"\{\w+\}", text) for text in texts)
        assert question.is_right(question.answer_text)
        assert question.answer in question.choices if question.choices else True
        assert not question.is_right("")
        assert len(question.text.split()) <= 25
    if card.draws:
        seen = {(question.program, question.text) for question in questions}
        assert len(seen) > 1, "the same numbers each time"


CHOICES = [card for card in more_cards.ALL if card.choices]


@pytest.mark.parametrize("card", CHOICES, ids=lambda card: card.name)
def test_no_letter_is_always_right(card: Card) -> None:
    letters = set()
    for seed in range(16):
        question = card.draw(random.Random(seed))
        letters |= {letter for letter, text in question.lettered() if text == question.answer}
    assert len(letters) > 1, f"{card.name}: a learner learns the letter {letters}"


def test_answers_are_read_kindly_and_exactly() -> None:
    number = DrawnQuestion("a", "01", "", "?", 0.75, "")
    for text in ("0.75", " .75 ", "3/4", "0,75", "0.752"):
        assert number.is_right(text)
    for text in ("0.7", "-0.75", "3/0", "three", "", "nan", "inf"):
        assert not number.is_right(text)
    shape = DrawnQuestion("a", "01", "", "?", "(3,)", "")
    assert shape.is_right("(3)") and shape.is_right("[3, ]") and shape.is_right("3")
    assert not shape.is_right("(3, 1)")
    choice = DrawnQuestion("a", "01", "", "?", "yes", "", ("no", "yes"))
    assert choice.is_right("b") and choice.is_right("B)") and choice.is_right("YES")
    assert not choice.is_right("a")
    assert choice.wish("c") == "Write a letter: a, b." and number.wish("x").startswith("Write a")
    for text in ("a", "B)", "YES", ""):
        assert choice.wish(text) == ""
    assert number.wish("3/4") == number.wish("") == shape.wish("of 3") == ""


def test_boxes_double_and_a_wrong_answer_begins_anew() -> None:
    state = State()
    waits = []
    for _ in range(8):
        state = state.after(True, TODAY)
        waits.append(state.day - TODAY)
    assert waits == [1, 2, 4, 8, 16, 32, 32, 32]
    assert state.after(False, TODAY) == State(0, TODAY + 1, 8, 9)
    assert State(day=TODAY).is_due(TODAY) and not State(day=TODAY + 1).is_due(TODAY)
    assert State(day=TODAY + DAYS[-1] + 1).is_due(TODAY)  # a clock was wrong


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(monkeypatch: pytest.MonkeyPatch, answers: list[Any], *arguments: str) -> int:
    """Run the command with these answers; an exception is raised in place of an answer."""
    left = iter(answers)

    def answer(prompt: str = "") -> str:
        found = next(left, None)
        if isinstance(found, BaseException):
            raise found
        if found is None:
            raise EOFError
        return str(found)

    monkeypatch.setattr("builtins.input", answer)
    from tinynode_course import command

    return command.main(["review", *arguments])


@pytest.fixture
def same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each card has the same numbers each time; c is the best eps."""
    draw = Card.draw
    monkeypatch.setattr(Card, "draw", lambda card, _: draw(card, random.Random(0)))


def states(folder: Path, key: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = Progress(folder).of(key).get("review", {})
    return found


def test_only_passed_steps_are_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, []) == 1
    assert "no step is passed yet" in capsys.readouterr().err
    Progress(folder).note("03", taken={"a.py": {"f": "x"}})
    Progress(folder).note("05", passed=True)
    assert ask(monkeypatch, [], "03") == 1
    assert "step 03 is not passed" in capsys.readouterr().err
    assert ask(monkeypatch, ["?"] * 20) == 0
    assert set(states(folder, "05")) == {"two_uses", "sum_of_copies"}
    assert states(folder, "03") == {}
    assert "0 of 2 right" in capsys.readouterr().out


@pytest.mark.usefixtures("same_numbers")
def test_answers_space_the_questions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress(folder).note("03", passed=True, attempts=4)
    assert ask(monkeypatch, ["1e-4", "c"]) == 0  # the cube is wrong, the best eps right
    assert states(folder, "03") == {
        "central_difference": [0, TODAY + 1, 0, 1],
        "best_eps": [0, TODAY + 1, 1, 1],
    }
    capsys.readouterr()
    assert ask(monkeypatch, []) == 0
    assert "Nothing is due today" in capsys.readouterr().out
    assert ask(monkeypatch, ["q"], "--ahead") == 0
    assert ask(monkeypatch, ["0", "c"], "--ahead") == 0
    assert states(folder, "03")["best_eps"] == [1, TODAY + 2, 2, 2]
    assert Progress(folder).of("03")["attempts"] == 4


@pytest.mark.parametrize("end", [KeyboardInterrupt(), EOFError(), "q"])
def test_an_end_in_the_middle_keeps_the_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    Progress(folder).note("03", passed=True)
    status = ask(monkeypatch, ["0", end])
    assert status == (130 if isinstance(end, KeyboardInterrupt) else 0)
    assert set(states(folder, "03")) == {"central_difference"}


def test_another_terminal_may_write_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Progress(folder).note("03", passed=True)

    class Writes(str):
        def __str__(self) -> str:
            Progress(folder).note("04", passed=True)
            return "0"

    assert ask(monkeypatch, [Writes("0"), "q"]) == 0
    assert Progress(folder).of("04") == {"passed": True}
    assert set(states(folder, "03")) == {"central_difference"}


@pytest.mark.usefixtures("same_numbers")
def test_a_slip_of_the_keys_may_be_mended_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress(folder).note("03", passed=True)
    assert ask(monkeypatch, ["one", "0", "x", "c"]) == 0
    assert states(folder, "03")["best_eps"] == [0, TODAY + 1, 1, 1]
    said = capsys.readouterr().out
    assert "Write a number" in said and "Write a letter: a, b, c, d." in said


@pytest.mark.usefixtures("same_numbers")
def test_damaged_states_are_new_states(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for damaged in ({"best_eps": [99, 1, 1, 1]}, {"best_eps": [1]}, {"best_eps": "x"}, [1], 3):
        Progress(folder).note("03", passed=True, review=damaged)
        assert ask(monkeypatch, ["0", "c"]) == 0
        assert states(folder, "03")["best_eps"] == [0, TODAY + 1, 1, 1]
        (folder / NAME).unlink()


def test_the_time_ends_the_questions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress(folder).note("12", passed=True)
    assert ask(monkeypatch, ["a"] * 3, "--seconds", "1e-9") == 0
    assert len(states(folder, "12")) == 1
    assert "Time is up; 2 questions are left for later." in capsys.readouterr().out


def test_the_lowest_box_comes_first_then_new_cards() -> None:
    cards = [BY_NAME[name] for name in ("graph_size", "creator", "product_rule", "chain_rule")]
    known = {
        "graph_size": State(),
        "creator": State(3, TODAY - 9, 4, 4),
        "product_rule": State(0, TODAY, 0, 1),
        "chain_rule": State(1, TODAY + 1, 1, 1),
    }
    found = [card.name for card in review.in_order(cards, known, TODAY)]
    assert found == ["product_rule", "creator", "graph_size"]
    assert len(review.in_order(cards, known, TODAY, ahead=True)) == 4


def test_the_list_says_what_is_due(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tinynode_course import command

    for words in ([], ["list"]):
        command.main(words)
        assert "due on passed steps" not in capsys.readouterr().out
    Progress(folder).note("03", passed=True)
    for words in ([], ["list"]):
        command.main(words)
        assert "2 questions are due on passed steps" in capsys.readouterr().out
    ask(monkeypatch, ["13", "b"])
    capsys.readouterr()
    command.main(["list"])
    assert "due on passed steps" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_pipe_without_colours(tmp_path: Path) -> None:
    Progress(tmp_path).note("02", passed=True)
    done = subprocess.run(
        [sys.executable, "-m", "tinynode.learn", "review"],
        cwd=tmp_path,
        input="5\n\nq\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout and "2 questions are due" in done.stdout
    assert json.loads((tmp_path / NAME).read_text())["steps"]["02"]["review"]

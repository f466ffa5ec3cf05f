"""Questions of films: asked by a teacher or made from the film, answered in the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.commands import main
from tinynode.show.films.film import Film
from tinynode.show.films.recorder import record

F = tn.functions


def teacher_film() -> Film:
    """x * y + x, with a question at the start, before backward and at the end."""
    x = tn.Variable(np.array([1.0, 2.0, 3.0]), name="x")
    y = tn.Variable(np.array([4.0, 5.0, 6.0]), name="y")
    with record("x * y + x") as film:
        film.ask("What is x * y?", answer=[4, 10, 18], why="Products of elements.")
        z = F.sum(x * y + x)
        film.ask("Which backward runs first?", "Sum", choices=["Add", "Multiply", "Sum"])
        film.ask("What is dL/dy?", answer=x, why="It is x.")
        z.backward()
        film.ask("Who adds to the gradient of x?", "Multiply")
    return film


def loop_film() -> Film:
    w = tn.nn.Parameter(np.array([1.0, 2.0]), name="w")
    optimizer = tn.nn.SGD([w], lr=0.1)
    with record("loop") as film:
        for _ in range(3):
            film.ask("What is w?", w)
            loss = F.sum(F.square(w * w - 3.0))
            w.cleargrad()
            loss.backward()
            optimizer.update()
    return film


def forked_film() -> Film:
    x = tn.Variable(np.array([1.0, 2.0, 3.0]), name="x")
    y = tn.Variable(np.array([4.0, 5.0, 6.0]), name="y")
    with record("fork") as film:
        F.sum(x * y + F.exp(x) * 0.5).backward()
    film.quiz()
    return film


def random_film(seed: int) -> Film:
    """A random graph on two leaves with numbers of one digit and of many."""
    random = np.random.default_rng(seed)
    values = [random.integers(-3, 4, 2).astype(float), random.normal(size=2)]
    known = [tn.Variable(value, name=name) for value, name in zip(values, "ab", strict=True)]
    with record("random") as film:
        for _ in range(6):
            a, b = (known[i] for i in random.integers(0, len(known), 2))
            results = (a * b, a - b, F.exp(a), a + b)
            known.append(results[random.integers(0, 4)])
        F.sum(known[-1] * known[-2]).backward()
    film.quiz(100)
    return film


# --- questions of a teacher ----------------------------------------------------------------------


def test_questions_have_a_place_before_the_next_step() -> None:
    questions = teacher_film().data()["questions"]
    assert [(q["iteration"], q["step"], q["kind"]) for q in questions] == [
        (0, 0, "numbers"), (0, 3, "choice"), (0, 3, "numbers"), (0, 8, "text"),
    ]  # fmt: skip
    assert questions[0] == {
        "iteration": 0,
        "step": 0,
        "kind": "numbers",
        "text": "What is x * y?",
        "choices": [],
        "answer": [4, 10, 18],
        "why": "Products of elements.",
    }
    assert questions[2]["answer"] == [1.0, 2.0, 3.0]


def test_questions_in_a_loop_belong_to_their_iterations() -> None:
    data = loop_film().data()
    assert len(data["iterations"]) == 3
    assert [(q["iteration"], q["step"]) for q in data["questions"]] == [(0, 0), (1, 0), (2, 0)]
    assert data["questions"][1]["answer"] == pytest.approx([1.8, 1.2])


def test_a_film_without_steps_has_no_questions() -> None:
    with record() as film:
        film.ask("Why?", "because")
    film.quiz()
    assert film.data()["questions"] == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"text": "", "answer": 1}, TypeError, "text must be a question, got str ''"),
        ({"text": 3, "answer": 1}, TypeError, "text must be a question, got int 3"),
        ({"text": "?", "answer": None}, TypeError, "answer must be numbers or a string"),
        ({"text": "?", "answer": True}, TypeError, "answer must be numbers or a string"),
        ({"text": "?", "answer": [1, "x"]}, TypeError, "answer must be numbers or a string"),
        ({"text": "?", "answer": [[1], [2, 3]]}, TypeError, "answer must be numbers or a string"),
        ({"text": "?", "answer": 1j}, TypeError, "answer must be numbers or a string"),
        ({"text": "?", "answer": []}, ValueError, "answer must have 1 to 36 numbers, got 0"),
        ({"text": "?", "answer": np.zeros(37)}, ValueError, "1 to 36 numbers, got 37"),
        ({"text": "?", "answer": [np.nan]}, ValueError, "numbers of answer must be finite"),
        ({"text": "?", "answer": " "}, ValueError, "answer must not be an empty string"),
        ({"text": "?", "answer": 1, "why": 2}, TypeError, "why must be a string, got int 2"),
        ({"text": "?", "answer": "a", "choices": "ab"}, TypeError, "choices must be a list"),
        ({"text": "?", "answer": 1, "choices": [1, 2]}, TypeError, "choices must be a list"),
        ({"text": "?", "answer": "a", "choices": ["a"]}, ValueError, "2 or more different"),
        ({"text": "?", "answer": "a", "choices": ["a", "a"]}, ValueError, "2 or more different"),
        ({"text": "?", "answer": "c", "choices": ["a", "b"]}, ValueError, "answer must be one of"),
        ({"text": "?", "answer": [1], "choices": ["a", "b"]}, ValueError, "must be one of"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with record() as film, pytest.raises(error, match=f"Film.ask: .*{message}"):
        film.ask(**arguments)
    assert film.asked == []


@pytest.mark.parametrize("most", [0, -1, 2.0, True, "8"])
def test_a_wrong_number_of_automatic_questions(most: Any) -> None:
    with pytest.raises(ValueError, match=r"Film.quiz: most must be an integer, 1 or more"):
        Film().quiz(most)


# --- automatic questions -------------------------------------------------------------------------


def test_automatic_questions_of_a_fork() -> None:
    questions = forked_film().data()["questions"]
    assert 5 <= len(questions) <= 8
    assert [q["step"] for q in questions] == sorted({q["step"] for q in questions})
    at_fork = next(q for q in questions if "wait in the queue" in q["text"])
    assert at_fork["step"] == 8 and at_fork["answer"] == "Multiply, of exp(x) * 0.5"
    assert at_fork["choices"] == ["Multiply, of exp(x) * 0.5", "Multiply, of x * y"]
    how = [q["answer"] for q in questions if q["text"].endswith("come first, or add?")]
    assert how == ["The first contribution", "It adds to the gradient in the table"]


def test_the_update_is_asked_for() -> None:
    film = loop_film()
    film.asked.clear()
    film.quiz()
    questions = film.data()["questions"]
    assert {q["iteration"] for q in questions} == {0}
    update = questions[-1]
    assert update["answer"] == [1.8, 1.2] and "What is w then?" in update["text"]


def test_two_structures_have_their_own_questions() -> None:
    x = tn.Variable(np.array([1.0, 2.0]), name="x")
    with record() as film:
        for i in range(4):
            y = F.exp(x) * x if i % 2 else x * x + x
            F.sum(y).backward()
    film.quiz()
    data = film.data()
    assert len(data["pictures"]) == 2
    assert {q["iteration"] for q in data["questions"]} == {0, 1}


def test_the_loss_on_the_page_is_not_asked_for() -> None:
    film = loop_film()
    film.quiz(100)
    assert not [q for q in film.data()["questions"] if q["text"].endswith("What is loss?")]


@pytest.mark.parametrize("seed", range(5))
def test_each_answer_is_what_the_film_shows(seed: int) -> None:
    """An independent reading: the numbers of the step behind the question."""
    data = random_film(seed).data()
    picture = data["pictures"][0]
    labels = {node["id"]: node["label"] for node in picture["nodes"]}
    for question in data["questions"]:
        step = picture["steps"][question["step"]]
        before = picture["steps"][question["step"] - 1]
        name = question["text"].removesuffix(" then?").rpartition(" of ")[2].removesuffix("?")
        if question["kind"] == "numbers" and step["kind"] == "forward":
            ((output, value),) = step["outputs"]
            assert question["text"].endswith(f"What is {labels[output]}?")
            assert data["values"][value]["cells"] == question["answer"]
        elif question["kind"] == "numbers":
            found = [v for node, v in step["table"]["set"] if labels[node] == name]
            assert [data["values"][v]["cells"] for v in found] == [question["answer"]]
        elif "wait in the queue" in question["text"]:
            assert question["answer"].startswith(labels[step["function"]])
            assert before["queue"][0][0] > before["queue"][1][0]
        else:
            hows = [entry[2] for entry in step["grad_inputs"]]
            expected = "added" if question["answer"].startswith("It adds") else "first"
            assert expected in hows


def test_rounded_numbers_that_cancel_are_not_asked_for() -> None:
    x = tn.Variable(np.array([1.23456]), name="x")
    y = tn.Variable(np.array([1.23449]), name="y")
    with record() as film:
        _ = x - y
        _ = x * y
        _ = y * x
    film.quiz()
    assert [q["text"][:8] for q in film.data()["questions"]] == ["Multiply", "Multiply"]


def test_large_arrays_and_unknown_functions_are_not_asked_for() -> None:
    class Twice(tn.FunctionNode):
        """y = 2 x."""

        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 2,)

    x = tn.Variable(np.arange(7.0), name="x")
    with record() as film:
        _ = x * x
        _ = x * x
        _ = Twice().apply((tn.Variable(np.array([1.0])),))
    film.quiz()
    assert film.data()["questions"] == []


def test_the_command_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "import numpy as np\nimport tinynode as tn\n"
    body = 'x = tn.Variable(np.array([1.0, 2.0]), name="x")\n'
    Path("small.py").write_text(
        head + body + "tn.functions.sum(x * x * 2.0).backward()\n", encoding="utf-8"
    )
    Path("large.py").write_text(
        head + "x = tn.Variable(np.ones(50))\ny = x * x\n", encoding="utf-8"
    )
    assert main(["step", "--quiz", "--no-open", "small.py"]) == 0
    assert "steps with " in capsys.readouterr().out
    assert '"questions":[{' in Path("small.html").read_text(encoding="utf-8")
    assert main(["step", "--quiz", "--no-open", "large.py"]) == 0
    assert "1 step with 0 questions, written to large.html" in capsys.readouterr().out
    assert main(["step", "--quiz", "--text", "small.py"]) == 2
    assert "--quiz needs the page: leave out --text." in capsys.readouterr().err


# --- the page ------------------------------------------------------------------------------------


class Quiz:
    """A film's page with questions."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def answer(self, text: str) -> None:
        self.page.fill("#quiz-answer", text)
        self.press("Enter")

    def text(self, selector: str) -> str:
        return str(self.page.text_content(selector))

    @property
    def place(self) -> tuple[int, int]:
        data = (
            "[document.documentElement.dataset.iteration, document.documentElement.dataset.step]"
        )
        iteration, step = self.page.evaluate(data)
        return int(iteration), int(step)

    @property
    def is_asking(self) -> bool:
        return bool(self.page.is_visible("#quiz"))

    @property
    def focused(self) -> str:
        return str(self.page.evaluate("document.activeElement.id"))


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Quiz]]:
    """Open films; at the end, no page may have complained."""
    problems: list[str] = []
    contexts = []

    def open_film(film: Film, fragment: str = "", **options: Any) -> Quiz:
        file = tmp_path / f"film{len(contexts)}.html"
        film.save(file)
        context = browser.new_context(**options)
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(file.as_uri() + fragment)
        return Quiz(page)

    yield open_film
    for context in contexts:
        context.close()
    assert not problems


@pytest.mark.slow
def test_the_film_stops_asks_and_goes_on(show: Callable[..., Quiz]) -> None:
    quiz = show(teacher_film())
    assert quiz.is_asking and quiz.place == (0, 0) and quiz.page.is_hidden("main")
    assert quiz.focused == ""  # a page that opens takes no focus
    quiz.press("ArrowRight")
    assert quiz.place == (0, 0) and quiz.focused == "quiz-answer"
    for wrong, hint in (
        ("", "Write numbers"),
        ("4 x 18", "Write numbers"),
        ("4, 10", "The answer has 3 numbers, and yours has 2."),
    ):
        quiz.answer(wrong)
        assert quiz.text("#verdict").startswith(hint)
    quiz.answer("[4; 10, 18.04]")
    assert quiz.text("#verdict") == "Right. Products of elements."
    assert quiz.page.is_hidden("main") and quiz.focused == "answer"
    assert quiz.text("#score span") == "Questions: 1 of 1 right at the first try, 3 to come."
    quiz.press("Enter")
    assert not quiz.is_asking and quiz.page.is_visible("main") and quiz.place == (0, 0)
    quiz.press("n", "n", "n", "n")
    assert quiz.is_asking and quiz.place == (0, 2)
    assert quiz.page.evaluate("document.activeElement.type") == "radio"
    assert quiz.page.is_hidden("#queue > *")
    quiz.press("Space", "Enter")
    assert quiz.text("#verdict").startswith("Not right. Try again")
    quiz.press("ArrowDown", "ArrowDown", "Enter")
    assert quiz.text("#verdict") == "Right."
    quiz.press("Enter")  # the second question at this place
    assert quiz.is_asking and quiz.place == (0, 2) and "dL/dy" in quiz.text("#quiz label")
    quiz.answer("1 1 1")
    quiz.page.click("#skip")
    assert quiz.text("#verdict") == "The answer: 1, 2, 3. It is x."
    quiz.page.click("#answer")
    assert not quiz.is_asking and quiz.place == (0, 3)
    quiz.press("End")
    assert quiz.is_asking and quiz.place == (0, 7)
    quiz.answer("  multiply ")
    quiz.press("Enter")
    assert quiz.text("#score span") == ("The end. Questions: 2 of 4 right at the first try.")
    quiz.page.click("#again")
    assert quiz.is_asking and quiz.place == (0, 0)
    assert quiz.text("#score span") == "Questions: 0 of 0 right at the first try, 4 to come."


@pytest.mark.slow
def test_going_back_is_free_and_skipping_too(show: Callable[..., Quiz]) -> None:
    quiz = show(teacher_film(), "#step=3")  # an address leads to its step
    assert quiz.place == (0, 2) and not quiz.is_asking
    quiz.press("End")
    assert quiz.is_asking and quiz.place == (0, 2)
    quiz.page.click("#back")
    assert not quiz.is_asking and quiz.place == (0, 1)
    quiz.page.locator("#slider").fill("8")
    assert quiz.is_asking and quiz.place == (0, 2)
    assert quiz.page.input_value("#slider") == "3"
    quiz.page.click("#skip")
    assert quiz.is_asking and quiz.place == (0, 2)
    quiz.page.click("#skip-all")
    assert not quiz.is_asking and quiz.place == (0, 3)
    quiz.press("End")
    assert not quiz.is_asking and quiz.place == (0, 7)
    assert quiz.text("#score span") == (
        "The end. Questions: 0 of 4 right at the first try, 4 skipped."
    )


@pytest.mark.slow
def test_playing_stops_and_goes_on_after_the_answer(show: Callable[..., Quiz]) -> None:
    quiz = show(loop_film())
    quiz.page.click("#skip")
    quiz.page.select_option("#speed", "80")
    quiz.page.click("#play")
    for _ in range(500):
        if quiz.is_asking:
            break
        time.sleep(0.01)
    assert quiz.place[0] == 0 and quiz.page.get_attribute("#play", "aria-label") == "Play"
    assert quiz.page.is_hidden("#iteration-text")
    quiz.answer("1.80 1.2")
    quiz.press("Enter")
    assert quiz.page.get_attribute("#play", "aria-label") == "Pause"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_field_has_a_name_and_fits(show: Callable[..., Quiz], scheme: str) -> None:
    quiz = show(teacher_film(), color_scheme=scheme, viewport={"width": 390, "height": 800})
    assert quiz.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert quiz.page.get_by_label("What is x * y?").count() == 1
    quiz.page.click("#skip")
    quiz.press("End")
    assert quiz.page.get_by_role("group", name="Which backward runs first?").count() == 1
    assert quiz.page.get_by_role("radio", name="Multiply").count() == 1
    assert quiz.page.get_attribute("#verdict", "role") == "status"
    assert quiz.page.evaluate("document.documentElement.scrollWidth") <= 390
    quiz.press("n")  # a key of the film, while a radio button has the focus
    assert quiz.is_asking and quiz.place == (0, 2)


@pytest.mark.parametrize(
    ("names", "start"), [("xw", "In the letters of Tanh itself: y"), ("ab", "y")]
)
def test_letters_of_a_formula_are_told_from_variables_of_the_program(
    names: str, start: str
) -> None:
    x, w = (tn.Variable(np.array(0.5), name=name) for name in names)
    with record() as film:
        loss = F.tanh(x * w) * x
        loss.backward()
    film.quiz()
    first = film.data()["questions"][0]["why"]
    assert first.startswith(f"{start} = tanh x. So ")

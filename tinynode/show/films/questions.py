"""Questions of a film: a reader answers before the page shows the next step.

Requirement: a learner predicts a number or a function, and then compares. A teacher writes
questions with ``film.ask``. ``film.quiz`` makes questions from the film's data alone. An automatic
question needs a certain answer: few numbers, all in the film, from a function that the reader can
compute; or a queue with distinct ranks.

In ``data["questions"]``, each question has these entries:

    iteration, step   the question comes before this step; both count from 0
    kind              "numbers", "choice" or "text"
    text              the question
    choices           the possible answers, or an empty list
    answer            a list of numbers, or a string
    why               the explanation after the answer
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.core.conversion import as_host
from tinynode.core.variable import Variable
from tinynode.errors import describe
from tinynode.learn import ENGINE
from tinynode.show.films.iterations import Segment, with_values
from tinynode.show.films.nodes import Recording, Step
from tinynode.show.films.reference import agrees
from tinynode.show.films.text import numbers_text

Question = dict[str, Any]

MOST_ANSWERS = 36
"""The most numbers of an answer."""

QUOTAS = {"next": 3, "how": 2, "gradient": 3, "update": 1, "value": 2}
"""How many automatic questions of each sort a film gets first."""

PLAIN_QUOTAS = {"first": 1, "shape": 3}
"""The sorts for a film without any other question: networks have too many numbers to compute."""

MOST_CHOICES = 6
"""A question about the first function has at most so many choices."""

ASKED_SIZE = 3
"""An automatic question asks for at most so many numbers."""

GIVEN_SIZE = 6
"""An automatic question uses arrays of at most so many elements."""

ANY_DIGITS = {
    *("Divide", "Maximum", "Minimum", "Multiply", "Negative", "Positive", "ReLU", "Reciprocal"),
    *("Sqrt", "Square"),
}
"""The functions that a reader can compute from rounded numbers: relative errors stay small."""

FEW_DIGITS = {
    *("Add", "AddAll", "Exp", "Linear", "Log", "MatMul", "Mean", "PowConstant", "Subtract", "Sum"),
    "Tanh",
}
"""The functions that need exact numbers: a difference of rounded numbers can be wrong."""

SHORT = 3
"""Numbers of at most so many significant digits count as exact. Answers need as many."""

FIRST = "The first contribution"
ADDED = "It adds to the gradient in the table"


def film_questions(
    film: Recording, segments: Sequence[Segment], data: dict[str, Any]
) -> list[Question]:
    """All questions of a film, in the order of the steps."""
    questions = _placed_questions(film.asked, segments)
    if film.automatic:
        most = film.automatic
        questions += _chosen(data, QUOTAS, most) or _chosen(data, PLAIN_QUOTAS, most)
    return sorted(questions, key=_place)


# --- questions of a teacher ----------------------------------------------------------------------


def asked_question(text: Any, answer: Any, choices: Any, why: Any) -> Question:
    """A checked question, without a place in the film.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument has a wrong value.
    """
    if not isinstance(text, str) or not text.strip():
        raise TypeError(f"Film.ask: text must be a question, got {describe(text)}.")
    if not isinstance(why, str):
        raise TypeError(f"Film.ask: why must be a string, got {describe(why)}.")
    kind = "text"
    if choices is not None:
        kind, choices = "choice", _checked_choices(choices)
        if answer not in choices:
            raise ValueError(
                f"Film.ask: answer must be one of choices {choices}, got {describe(answer)}."
            )
    elif not isinstance(answer, str):
        kind, answer = "numbers", _checked_numbers(answer)
    elif not answer.strip():
        raise ValueError("Film.ask: answer must not be an empty string.")
    return _question(kind, text, answer, why, choices or ())


def _checked_choices(choices: Any) -> list[str]:
    is_list = isinstance(choices, Sequence) and not isinstance(choices, str)
    if not is_list or not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"Film.ask: choices must be a list of strings, got {describe(choices)}.")
    if len(choices) < 2 or len(set(choices)) < len(choices):
        raise ValueError(f"Film.ask: choices must be 2 or more different strings, got {choices}.")
    return list(choices)


def _checked_numbers(answer: Any) -> list[int | float]:
    """The numbers of an answer: a number, a list, an array or a Variable."""
    error = f"Film.ask: answer must be numbers or a string, got {describe(answer)}."
    try:
        if isinstance(answer, Variable):
            answer = answer.raw
        array = as_host(answer)
    except (TypeError, ValueError):
        raise TypeError(error) from None
    if array.dtype.kind not in "iuf":
        raise TypeError(error)
    if not 0 < array.size <= MOST_ANSWERS:
        raise ValueError(
            f"Film.ask: answer must have 1 to {MOST_ANSWERS} numbers, got {array.size}."
        )
    if not numpy.all(numpy.isfinite(array)):
        raise ValueError(f"Film.ask: the numbers of answer must be finite, got {array.tolist()}.")
    return list(array.reshape(-1).tolist())


def _question(
    kind: str, text: str, answer: Any, why: str, choices: Sequence[str] = ()
) -> Question:
    return {"kind": kind, "text": text, "choices": list(choices), "answer": answer, "why": why}


def _placed_questions(
    asked: Sequence[tuple[int, Question]], segments: Sequence[Segment]
) -> list[Question]:
    """A teacher's questions with iteration and step; behind the last step: its number + 1."""
    placed = []
    for index, question in asked:
        for number, segment in enumerate(segments):
            if index < segment.last or number == len(segments) - 1:
                step = max(0, index - segment.first)
                placed.append({"iteration": number, "step": step, **question})
                break
    return placed


# --- automatic questions -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scene:
    """A step of a film, and the step before.

    Attributes:
        data: the film.
        labels: the label of each node.
        before: the step before.
        step: the step that a question is about.
        loss: the index of the iteration's loss if the page shows the loss, else None.
        edges: the edges of the picture.
        forward: the forward step of the function.
        uses: for each variable, the number of functions with the variable as an input.
    """

    data: dict[str, Any]
    labels: Mapping[str, str]
    before: Step
    step: Step
    loss: int | None
    edges: Sequence[dict[str, Any]]
    forward: Step | None
    uses: dict[str, int]

    @property
    def package(self) -> str:
        """The package of the function, such as ``"tinynode"``."""
        return str(self.data["classes"][self.step["class"]]["name"]).partition(".")[0]

    def is_computable(self) -> bool:
        """True if a reader can compute the step's results from small arrays."""
        step = self.step
        if step["class"] not in ANY_DIGITS | FEW_DIGITS:
            return False
        if self.package not in ("tinynode", ENGINE):
            return False
        given = [*step["inputs"], *step["grad_outputs"]]
        if step["kind"] == "backward":
            given += step["outputs"]  # the arrays retained for backward; None for the others
        arrays = [self.data["values"][entry[1]] for entry in given if entry[1] is not None]
        if not arrays or max(math.prod(array["shape"]) for array in arrays) > GIVEN_SIZE:
            return False
        cells = [cell for array in arrays for cell in array["cells"]]
        if not all(isinstance(cell, int | float) for cell in cells):
            return False
        if self.package == ENGINE and not agrees(step, self.forward, self.data["values"]):
            return False
        return step["class"] in ANY_DIGITS or all(_is_short(cell) for cell in cells)

    def numbers(self, value: int | None) -> list[int | float] | None:
        """The elements of a small array, or None if an answer would not be certain."""
        if value is None:
            return None
        array = self.data["values"][value]
        cells = array["cells"]
        is_plain = array["dtype"].startswith(("float", "int", "uint"))
        if not is_plain or len(cells) != math.prod(array["shape"]):
            return None
        if not 0 < len(cells) <= ASKED_SIZE:
            return None
        if not all(isinstance(cell, int | float) for cell in cells):
            return None
        # a tiny number is often an error of rounding
        return None if any(0 < abs(cell) < 1e-6 for cell in cells) else list(cells)

    def words(self, value: int | None) -> str:
        """An array in a line."""
        return "unknown" if value is None else numbers_text(self.data["values"][value])

    def formula(self) -> str:
        """The formula of the step's function, in the step's direction; in a line.

        A letter of the formula may be another variable of the program: then the line says so.
        """
        line = self._formula()
        letters = set(re.findall(r"[A-Za-z_]\w*", line))
        is_unclear = bool(letters & set(self.labels.values()))
        return f"In the letters of {self.step['class']} itself: {line}" if is_unclear else line

    def _formula(self) -> str:
        text = self.data["classes"][self.step["class"]]["formula"]
        if self.step["kind"] == "forward":
            line = str(re.split(r"   |\n", text)[0]).strip()
            return f"{line}." if line and line[-1] not in ".:" else line
        found = re.search(r"(With g = |dL/d).*", text, re.DOTALL)
        parts = re.split(r"\s{2,}|\n", found[0]) if found else []
        return "; ".join(parts).replace(":;", ":") + "." if parts else ""


def _chosen(data: dict[str, Any], quotas: Mapping[str, int], most: int) -> list[Question]:
    """Questions of the sorts with a quota, in the order of the steps; one a step at most."""
    sorts: dict[str, list[Question]] = {sort: [] for sort in quotas}
    for scene, iteration, number in _scenes(data):
        for sort, question in _questions_about(scene):
            if sort in sorts:
                sorts[sort].append({"iteration": iteration, "step": number, **question})
    chosen: dict[tuple[int, int], Question] = {}
    for sort, quota in quotas.items():
        for question in _spread([q for q in sorts[sort] if _place(q) not in chosen], quota):
            chosen.setdefault(_place(question), question)
    for question in [question for found in sorts.values() for question in found]:
        if len(chosen) < most:
            chosen.setdefault(_place(question), question)
    return _spread([chosen[place] for place in sorted(chosen)], most)


def _is_short(cell: float) -> bool:
    return float(f"{cell:.{SHORT}g}") == cell


def _place(question: Question) -> tuple[int, int]:
    return question["iteration"], question["step"]


def _spread(questions: list[Question], count: int) -> list[Question]:
    """At most so many of the questions, at equal distances."""
    if len(questions) <= count:
        return questions
    return [questions[(2 * i + 1) * len(questions) // (2 * count)] for i in range(count)]


def _scenes(data: dict[str, Any]) -> Iterator[tuple[_Scene, int, int]]:
    """The steps of the first iteration of each picture, with iteration and step."""
    seen = set()
    for number, iteration in enumerate(data["iterations"]):
        if iteration["picture"] in seen:
            continue
        seen.add(iteration["picture"])
        picture = data["pictures"][iteration["picture"]]
        labels = {node["id"]: node["label"] for node in picture["nodes"]}
        values = iter(iteration["values"])
        steps = [with_values(step, values) for step in picture["steps"]]
        uses = Counter(
            name
            for step in steps
            for name in {entry[0] for entry in step["inputs"]}
            if step["kind"] == "forward"
        )
        forwards = {one["function"]: one for one in steps if one["kind"] == "forward"}
        loss = iteration["loss"] if len(data["iterations"]) > 1 else None
        for index in range(1, len(steps)):
            before, step = steps[index - 1], steps[index]
            forward = forwards.get(step["function"])
            scene = _Scene(data, labels, before, step, loss, picture["edges"], forward, uses)
            yield scene, number, index


def _questions_about(scene: _Scene) -> Iterator[tuple[str, Question]]:
    """The possible questions about a step, with their sorts."""
    kind = scene.step["kind"]
    found: list[tuple[str, Question | None]] = []
    if kind == "forward":
        found = [("value", _value_question(scene))]
    elif kind == "backward":
        found = [
            ("next", _next_question(scene)),
            ("gradient", _gradient_question(scene)),
            ("how", _how_question(scene)),
            ("first", _first_question(scene)),
            ("shape", _shape_question(scene)),
        ]
    elif kind == "update":
        found = [("update", _update_question(scene))]
    for sort, question in found:
        if question is not None:
            yield sort, question


def _value_question(scene: _Scene) -> Question | None:
    """What does the next function compute?"""
    step, labels = scene.step, scene.labels
    if not scene.is_computable() or len(step["outputs"]) != 1:
        return None
    name, value = step["outputs"][0]
    numbers = scene.numbers(value)
    if numbers is None or value == scene.loss:
        return None
    function = labels[step["function"]]
    given = dict.fromkeys(_equation(labels[x], scene.words(v)) for x, v in step["inputs"])
    return _question(
        "numbers",
        f"{function} runs next, on {' and '.join(given)}. What is {labels[name]}?",
        numbers,
        f"{scene.formula()} So {_equation(labels[name], scene.words(value))}.",
    )


def _equation(label: str, numbers: str) -> str:
    """``x = [1.0, 2.0]``; only the label for a number such as ``3``."""
    return label if re.fullmatch(r"[\d.e+-]+", label) else f"{label} = {numbers}"


def _next_question(scene: _Scene) -> Question | None:
    """Which of the waiting functions runs next?"""
    queue = scene.before["queue"]
    if scene.before["queued"] != len(queue) or len(queue) < 2:
        return None
    ranks = [rank for rank, _ in queue]
    if ranks[0] <= ranks[1] or queue[0][1] != scene.step["function"]:
        return None  # the order of equal ranks is not in the film
    names = _distinct_names(scene, [function for _, function in queue])
    if names is None:
        return None
    told = [f"{name} has rank {rank}" for name, rank in zip(names, ranks, strict=True)]
    return _question(
        "choice",
        f"{len(queue)} functions wait in the queue. Which function's backward runs next?",
        names[0],
        f"The highest rank runs first: {', '.join(told)}.",
        sorted(names),
    )


def _distinct_names(scene: _Scene, functions: Sequence[str]) -> list[str] | None:
    """A different name for each function: the label, or the label and the output's label."""
    names = [scene.labels[function] for function in functions]
    if len(set(names)) < len(names):
        outputs = {
            edge["from"]: scene.labels[edge["to"]]
            for edge in scene.edges
            if edge["from"][0] == "f"
        }
        names = [
            f"{name}, of {outputs.get(function, '')}"
            for name, function in zip(names, functions, strict=True)
        ]
    return names if len(set(names)) == len(names) else None


def _gradient_question(scene: _Scene) -> Question | None:
    """What is a gradient after the next backward?"""
    if not scene.is_computable():
        return None
    labels, function = scene.labels, scene.labels[scene.step["function"]]
    for name, value, how, total in _single_entries(scene.step):
        result = total if how == "added" else value
        numbers = scene.numbers(result)
        if numbers is None or (how == "added" and _cancels(scene, value, numbers)):
            continue
        if how == "added" and scene.package == ENGINE:
            continue  # an early engine overwrites the first contribution
        why = f"{scene.formula()} {function} gives {scene.words(value)}"
        if how == "added":
            why += f" and adds to the gradient in the table; the sum is {scene.words(result)}"
        return _question(
            "numbers",
            f"{function}'s backward runs next. What is the gradient of {labels[name]} then?",
            numbers,
            f"{why}.".strip(),
        )
    return None


def _cancels(scene: _Scene, value: int, total: Sequence[float]) -> bool:
    """True if a sum of rounded numbers is much smaller than a summand."""
    cells = scene.data["values"][value]["cells"]
    return any(
        not (_is_short(cell) and _is_short(result)) and abs(result) < 0.25 * abs(cell)
        for cell, result in zip(cells, total, strict=True)
    )


def _how_question(scene: _Scene) -> Question | None:
    """Does the next backward give the first contribution, or add?"""
    labels, function = scene.labels, scene.labels[scene.step["function"]]
    for name, _, how, _ in _single_entries(scene.step):
        if scene.uses[name] < 2:
            continue
        label = labels[name]
        first, added = (
            f"No function has given a gradient to {label} before in this backward pass.",
            f"An earlier function of this backward pass has given a gradient to {label}.",
        )
        return _question(
            "choice",
            f"{function}'s backward runs next. Does its gradient of {label} come first, or add?",
            FIRST if how == "first" else ADDED,
            first if how == "first" else added,
            (FIRST, ADDED),
        )
    return None


def _first_question(scene: _Scene) -> Question | None:
    """Which function's backward runs first?"""
    queue = scene.before["queue"]
    if scene.before["kind"] != "sweep" or len(queue) != 1 or not scene.before["grad_outputs"]:
        return None
    first = scene.labels[scene.step["function"]]
    labels = [label for name, label in scene.labels.items() if name[0] == "f" and label != first]
    others = list(dict.fromkeys(labels))[-MOST_CHOICES + 1 :]
    if not others or queue[0][1] != scene.step["function"]:
        return None
    start = scene.labels[scene.before["grad_outputs"][0][0]]
    return _question(
        "choice",
        f"Backward starts at {start}. Which function's backward runs first?",
        first,
        f"Only the function that made {start} has all its gradients: {first}.",
        sorted([first, *others]),
    )


def _shape_question(scene: _Scene) -> Question | None:
    """What is the shape of the gradient that the next backward gives? Of a leaf, if possible.

    A wrong shape, of an engine under construction, is no answer.
    """
    values, forward = scene.data["values"], scene.forward
    operands = {} if forward is None else dict(forward["inputs"])
    computed = {edge["to"] for edge in scene.edges if edge["from"][0] == "f"}
    entries = sorted(_single_entries(scene.step), key=lambda entry: entry[0] in computed)
    for name, value, _, _ in entries:
        operand = operands.get(name)
        if value is None or operand is None or not values[value]["shape"]:
            continue
        shape = list(values[value]["shape"])
        if shape != list(values[operand]["shape"]):
            continue
        function, label = scene.labels[scene.step["function"]], scene.labels[name]
        return _question(
            "numbers",
            f"{function}'s backward runs next. What is the shape of its gradient of {label}?",
            shape,
            f"A gradient has the shape of its variable: {label} has {tuple(shape)}.",
        )
    return None


def _single_entries(step: Step) -> Iterator[tuple[str, int, str, int | None]]:
    """The contributions to variables with a single contribution in the step."""
    names = [entry[0] for entry in step["grad_inputs"]]
    for name, value, how, total in step["grad_inputs"]:
        if how != "none" and names.count(name) == 1:
            yield name, value, how, total


def _update_question(scene: _Scene) -> Question | None:
    """What is a parameter after a step of plain gradient descent?"""
    optimizer = scene.step["optimizer"]
    name = scene.data["classes"][scene.step["class"]]["name"]
    for parameter, old, gradient, value, moments in scene.step["updates"]:
        numbers = scene.numbers(value)
        if (
            not name.endswith(".SGD")
            or moments
            or "(" in scene.step["rule"]  # a decay changes the gradient
            or numbers is None
            or _cancels(scene, old, numbers)
        ):
            continue
        label = scene.labels[parameter]
        given = f"{label} = {scene.words(old)}, with the gradient {scene.words(gradient)}"
        return _question(
            "numbers",
            f"{optimizer} updates {given}. What is {label} then?",
            numbers,
            f"The learning rate times the gradient is subtracted: {scene.words(value)}.",
        )
    return None

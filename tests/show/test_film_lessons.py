"""What a film explains: axes of sums, updates in numbers, the lines that compute, own engines."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from typing import Any

import numpy as np
import pytest
from film_views import all_steps

import tinynode as tn
from tinynode import nn
from tinynode.core.function_node import FunctionNode
from tinynode.nn.updates import AdamUpdate, UpdateFunction
from tinynode.show.films.recorder import record
from tinynode.show.films.text import axes_in_words
from tinynode.show.page.lessons import lesson
from tinynode_course import use_mynode

F = tn.functions


@pytest.mark.parametrize(
    ("shape", "axes", "words"),
    [
        ((4, 3), [0], "axis 0 (4 rows)"),
        ((4, 3), [1], "axis 1 (3 columns)"),
        ((1, 3), [-2], "axis 0 (1 row)"),
        ((5,), [0], "axis 0 (5 elements)"),
        ((2, 3, 4), [2], "axis 2 (4 elements)"),
        ((2, 3, 4), [0, 2], "axes 0 and 2 (8 elements)"),
        ((2, 3, 4), [0, 1, 2], "axes 0, 1 and 2 (24 elements)"),
        ((), [], ""),
    ],
)
def test_axes_in_words(shape: tuple[int, ...], axes: list[int], words: str) -> None:
    assert axes_in_words(shape, axes) == words


REDUCTIONS = [F.sum, F.mean, F.max, F.min, F.prod, F.std, F.logsumexp, F.softmax, F.log_softmax]


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__name__)
def test_a_reduction_names_its_axes_in_both_directions(function: Any) -> None:
    x = tn.Variable(np.arange(12.0).reshape(4, 3), name="x")
    with record() as film:
        y = function(x, axis=0)
        F.sum(y).backward()
    told = [step["axes"] for step in all_steps(film.data()) if step["class"] not in (None, "Sum")]
    if function is not F.sum:
        assert told == [[0], [0]]
    assert film.to_text().count("over axis 0 (4 rows)") == 2


class WeightedSum(FunctionNode):
    """y = the sum of x * w over the axis."""

    axis = -1

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((1,))
        return ((inputs[0] * inputs[1]).sum(self.axis),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (w,) = self.get_retained_inputs()
        return F.expand_dims(grad_outputs[0], -1) * w, None


def test_axes_in_backward_are_those_of_the_forward_step() -> None:
    x = tn.Variable(np.ones((3, 4)), name="x")
    w = tn.Variable(np.ones(4), name="w", requires_grad=False)
    with record() as film:
        (y,) = WeightedSum().apply((x, w))
        F.sum(y).backward()
    assert film.to_text().count("over axis 1 (4 columns)") == 2


def test_axes_are_those_of_the_input_with_the_most_axes() -> None:
    x = tn.Variable(np.ones(4), name="x")
    y = tn.Variable(np.ones((3, 4)), name="y")
    with record() as film:
        F.sum(F.vecdot(x, y)).backward()
    assert film.to_text().count("over axis 1 (4 columns)") == 2


def test_without_the_forward_step_no_axes_are_told() -> None:
    x = tn.Variable(np.ones((3, 4)), name="x")
    y = F.mean(x)
    with record() as film:
        y.backward()
    assert "over axes" not in film.to_text()


def test_a_function_without_a_sum_has_no_axes() -> None:
    x = tn.Variable(np.ones((4, 3)), name="x")
    with record() as film:
        F.concat([x, x], axis=0)
    assert all_steps(film.data())[0]["axes"] is None


# --- updates -------------------------------------------------------------------------------------

OPTIMIZERS = [
    lambda ps: nn.SGD(ps, lr=0.1),
    lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9),
    lambda ps: nn.SGD(ps, lr=0.1, weight_decay=0.01),
    lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    lambda ps: nn.Adam(ps, lr=0.1),
    lambda ps: nn.AdamW(ps, lr=0.1, weight_decay=0.1),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_an_update_in_numbers_gives_the_parameter(make: Any) -> None:
    """The equations are computed here, with the arrays of the film."""
    p = tn.Variable(np.array([1.0, -2.0]), name="p")
    optimizer = make([p])
    with record() as film:
        for _ in range(3):
            optimizer.cleargrads()
            F.sum(p * p).backward()
            optimizer.update()
    data = film.data()
    seen = 0
    for step in film.steps:
        if step["kind"] != "update":
            continue
        ((_, before, gradient, after, moments),) = step["updates"]
        index = {"before": before, "gradient": gradient}
        index |= {f"{name}_old": old for name, old, _ in moments}
        known = {name: np.array(data["values"][i]["cells"]) for name, i in index.items()}
        for equation in step["rule"].split("; "):
            name, _, right = equation.rpartition(" = ")
            scope = {**known, "sqrt": np.sqrt}
            known[name] = eval(right.replace("^", "**"), {}, scope)
        np.testing.assert_allclose(known[""], data["values"][after]["cells"], rtol=2e-3, atol=2e-3)
        seen += 1
    assert seen == 3


class OwnFormula(nn.Adam):
    def formula(self) -> UpdateFunction:
        return AdamUpdate((0.1, 0.1), 1.0)


class OwnLoop(nn.SGD):
    def _each_one(self, steps: Any) -> Any:
        return [(array - grad, moments) for array, grad, moments, _ in steps]


class OwnUpdate(nn.AdamW):
    def update(self, closure: Any = None) -> Any:
        for slot in self.slots:
            slot.parameter.grad_var = slot.parameter.grad_var * 0.1
        return super().update(closure)


class OnlyAName(nn.AdamW):
    pass


@pytest.mark.parametrize(
    ("make", "is_told"),
    [(OwnFormula, False), (OwnLoop, False), (OwnUpdate, False), (OnlyAName, True)],
)
def test_a_subclass_with_an_update_of_its_own_has_no_equation(make: Any, is_told: bool) -> None:
    p = tn.Variable(np.array([1.0]), name="p")
    optimizer = make([p], lr=0.1)
    with record() as film:
        F.sum(p * p).backward()
        optimizer.update()
    assert bool(film.steps[-1]["rule"]) == is_told


def test_each_iteration_has_its_own_corrections() -> None:
    p = tn.Variable(np.array([1.0]), name="p")
    optimizer = nn.Adam([p], lr=0.1)
    with record() as film:
        for _ in range(3):
            optimizer.cleargrads()
            F.sum(p * p).backward()
            optimizer.update()
    lines = [line for line in film.to_text().splitlines() if "after = before" in line]
    assert len(set(lines)) == 3


def test_the_source_of_an_update_is_the_formula() -> None:
    p = tn.Variable(np.array([1.0]), name="p")
    with record() as film:
        F.sum(p * p).backward()
        nn.SGD([p], lr=0.1).update()
    known = film.data()["classes"]["SGD"]
    assert "return (p - rounded(lr, g) * g,)" in known["update"]
    assert "Args:" not in known["formula"] and "p <- p - lr * g" in known["formula"]


# --- the lines that compute ----------------------------------------------------------------------


def test_a_lesson_has_no_guards() -> None:
    source = textwrap.dedent(inspect.getsource(F.arithmetic.Multiply.backward))
    assert lesson(source).splitlines() == [
        "def backward(self, target_input_indexes, grad_outputs):",
        "    (gz,) = grad_outputs",
        "    x, y = self.get_retained_inputs()",
        "    gx = gz * y",
        "    gy = gz * x",
        "    return self.unbroadcast(gx, gy)",
    ]


def test_comments_and_layout_stay() -> None:
    source = """
def backward(self, wanted, gys):
    gx = gy = None
    if 0 in wanted:
        gx = f(  # a comment: with "(" and é
            gys[0],
        )
    if 1 in wanted:
        gy = gys[0]  # behind
    return gx, gy
""".strip()
    assert (
        lesson(source)
        == """
def backward(self, wanted, gys):
    gx = f(  # a comment: with "(" and é
        gys[0],
    )
    gy = gys[0]  # behind
    return gx, gy
""".strip()
    )


@pytest.mark.parametrize("text", ["", "x = 1", "def f(:", "def f(self): return 1", "\0"])
def test_a_text_without_guards_has_no_lesson(text: str) -> None:
    assert lesson(text) == ""


def all_classes(cls: type) -> list[type]:
    return [cls, *(one for sub in cls.__subclasses__() for one in all_classes(sub))]


def test_lessons_of_all_functions_are_python() -> None:
    count = 0
    for cls in all_classes(FunctionNode):
        if not cls.__module__.startswith("tinynode.functions") or "backward" not in vars(cls):
            continue
        text = lesson(textwrap.dedent(inspect.getsource(vars(cls)["backward"])))
        if text:
            ast.parse(text)
            count += 1
            assert " in target_input_indexes else" not in text
    assert count > 30


# --- an engine of one's own ----------------------------------------------------------------------


@pytest.mark.parametrize("key", ["01", "04", "09", "15"])
def test_a_film_of_ones_own_engine_asks(key: str) -> None:
    use_mynode(key)
    package = importlib.import_module("mynode")
    x = package.Variable(np.array(0.5), name="x")
    with record() as film:
        y = package.square(x)
        z = package.square(y)
        if key >= "04":
            z.backward()
    film.quiz()
    questions = film.data()["questions"]
    assert questions and any(one["kind"] == "numbers" for one in questions)
    values = {round(float(np.ravel(v.array)[0]), 4) for v in (y, z)}
    assert {
        round(one["answer"][0], 4) for one in questions if "What is y" in one["text"]
    } <= values


def test_a_wrong_result_of_ones_own_engine_is_no_answer() -> None:
    use_mynode("09")
    package = importlib.import_module("mynode")

    class Square(package.FunctionNode):  # type: ignore[misc,name-defined]
        """y = x * x."""

        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 3.0,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return (grad_outputs[0] * 3.0,)

    Square.__module__ = "mynode.functions"
    x = package.Variable(np.array(0.7), name="x")
    with record() as film:
        (y,) = Square().apply((x,))
        (z,) = Square().apply((y,))
        z.backward()
    film.quiz()
    assert not [one for one in film.data()["questions"] if one["kind"] == "numbers"]

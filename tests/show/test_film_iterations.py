"""Films of loops: pictures, iterations, the values of each, updates, and the limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from film_views import Data, all_steps, cells, labels, named, rounded, steps, tables

import tinynode as tn
from tinynode import nn
from tinynode.show import Film
from tinynode.show.films import data as film_data
from tinynode.show.films import recorder
from tinynode.show.films import values as film_values
from tinynode.show.films.iterations import values_of, with_values
from tinynode.show.films.recorder import record
from tinynode.show.films.text import steps_of_iteration

F = tn.functions
IMAGES = np.random.default_rng(0).normal(size=(20, 3))
TARGETS = np.arange(20) % 2


def variable(*values: float, name: str | None = None) -> tn.Variable:
    return tn.Variable(np.array(values), name=name)


def make_model() -> nn.Sequential:
    tn.seed(0)
    return nn.Sequential(
        nn.Linear(3, 4, dtype="float64"), F.tanh, nn.Linear(4, 2, dtype="float64")
    )


def pictures(data: Data) -> list[int]:
    """The picture of each iteration."""
    return [one["picture"] for one in data["iterations"]]


def sizes(data: Data) -> list[int]:
    """The number of steps of each iteration."""
    return [len(one["seconds"]) for one in data["iterations"]]


def losses(data: Data) -> list[Any]:
    return [one["loss"] and data["values"][one["loss"]]["cells"][0] for one in data["iterations"]]


def check(data: Data, film: Film) -> None:
    """What holds for every film: ids, values, births, layout and tables."""
    json.dumps(data, allow_nan=False)
    assert sum(sizes(data)) == len(film) == len(all_steps(data))
    assert set(pictures(data)) == set(range(len(data["pictures"])))
    for one in data["iterations"]:
        picture = data["pictures"][one["picture"]]
        count = sum(len(list(values_of(step))) for step in picture["steps"])
        assert len(one["values"]) == count and len(one["seconds"]) == len(picture["steps"])
        assert all(v is None or 0 <= v < len(data["values"]) for v in one["values"])
    for picture in data["pictures"]:
        nodes = {node["id"]: node for node in picture["nodes"]}
        assert len(nodes) == len(picture["nodes"])
        variables = [n for n in nodes.values() if n["kind"] == "variable" and not n["of"]]
        assert len({node["label"] for node in variables}) == len(variables)
        assert {node["of"] for node in nodes.values()} - {None} <= set(nodes)
        assert set(picture["shared"]) <= set(nodes)
        for edge in picture["edges"]:
            assert {edge["from"], edge["to"]} <= set(nodes)
        for number, step in enumerate(picture["steps"]):
            told = {entry[0] for key in ("inputs", "outputs", "updates") for entry in step[key]}
            told |= {e[0] for key in ("grad_inputs", "grad_outputs") for e in step[key]}
            told |= {*step["freed"], *step["retained"], *step["cleared"]}
            told |= {name for _, name in step["queue"]} | {*step["table"]["removed"]}
            assert told <= set(nodes)
            assert all(nodes[entry[0]]["born"] <= number for entry in step["inputs"])
    if not data["note"]:
        assert tables(data)[-1:] in ([], [{}])


def train(model: nn.Sequential, optimizer: nn.Optimizer, count: int = 4) -> list[float]:
    found = []
    for _ in range(count):
        loss = F.softmax_cross_entropy(model(IMAGES), TARGETS)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        found.append(float(loss))
    return found


# --- the structure of programs -------------------------------------------------------------------


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam, nn.AdamW])
def test_a_training_loop_is_one_picture(make: Callable[..., nn.Optimizer]) -> None:
    model = make_model()
    expected = train(model, make(model, lr=0.1))
    model = make_model()
    with record() as film:
        found = train(model, make(model, lr=0.1))
    data = film.data()
    check(data, film)
    assert found == expected  # recording changes no result
    assert pictures(data) == [0] * 4 and sizes(data) == [11] * 4
    assert losses(data) == rounded(expected)
    kinds = [step["kind"] for step in data["pictures"][0]["steps"]]
    assert kinds == ["forward"] * 4 + ["sweep"] + ["backward"] * 4 + ["end", "update"]
    names = {node["id"]: node["label"] for node in data["pictures"][0]["nodes"]}
    assert {"loss", "weight", "bias", "weight (2)", "IMAGES"} <= set(names.values())
    shared = {names[name] for name in data["pictures"][0]["shared"]}
    assert shared == {"weight", "bias", "weight (2)", "bias (2)"}


SCRIPT = """
model = make_model()
optimizer = nn.SGD(model, lr=0.1)
with record() as film:
    for i in range(3):
        scores = model(IMAGES)
        loss = F.softmax_cross_entropy(scores, TARGETS)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
"""


def test_a_loop_of_a_script() -> None:
    space: dict[str, Any] = {**globals(), "__name__": "script"}
    exec(SCRIPT, space)
    data = space["film"].data()
    check(data, space["film"])
    assert pictures(data) == [0] * 3 and sizes(data) == [11] * 3
    assert {"model.layers.0.weight", "scores", "loss"} <= set(labels(data).values())


def test_a_smaller_last_batch_has_its_own_picture() -> None:
    model = make_model()
    optimizer = nn.SGD(model, lr=0.1)
    with record() as film:
        for i in range(0, 20, 8):
            loss = F.softmax_cross_entropy(model(IMAGES[i : i + 8]), TARGETS[i : i + 8])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 0, 1] and sizes(data) == [11] * 3
    shapes = [
        data["values"][step["inputs"][0][1]]["shape"]
        for step in all_steps(data)
        if step["class"] == "Linear" and step["kind"] == "forward"
    ][::2]
    assert shapes == [[8, 3], [8, 3], [4, 3]]
    assert data["pictures"][0]["shared"] == data["pictures"][1]["shared"]  # the parameters


def test_epochs_with_an_evaluation_between() -> None:
    model = make_model()
    optimizer = nn.Adam(model)
    with record() as film:
        for _ in range(2):
            train(model, optimizer, 3)
            with tn.no_backprop_mode():
                scores = model(IMAGES)
                F.argmax(scores, axis=1)
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 0, 0, 1, 0, 0, 0, 1]
    assert [one["loss"] is None for one in data["iterations"]] == [False, False, False, True] * 2


def test_a_recurrent_net_is_unrolled_within_an_iteration() -> None:
    tn.seed(0)
    model = nn.Sequential(nn.Linear(3, 3, dtype="float64"), nn.Linear(3, 3, dtype="float64"))
    optimizer = nn.SGD(model, lr=0.1)
    cell, given = model.layers
    with record() as film:
        for _ in range(4):
            h = tn.Variable(np.zeros((2, 3)))
            for t in range(5):
                h = F.tanh(cell(h) + given(IMAGES[2 * t : 2 * t + 2]))
            loss = F.sum(h * h)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 4 and sizes(data) == [47] * 4
    assert {"h", "h (2)", "h (6)"} <= set(labels(data).values())


def test_a_loop_with_two_backward_passes_and_two_optimizers() -> None:
    tn.seed(0)
    generator, judge = nn.Linear(3, 3, dtype="float64"), nn.Linear(3, 1, dtype="float64")
    first, second = nn.Adam(judge), nn.SGD(generator)
    with record() as film:
        for i in range(4):
            fake = generator(IMAGES[i : i + 4])
            loss = F.mean(F.softplus(judge(fake.detach()))) + F.mean(judge(IMAGES[:4]))
            judge.cleargrads()
            loss.backward()
            first.update()
            other = F.mean(F.softplus(-judge(fake)))
            generator.cleargrads()
            other.backward()
            second.update()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 4
    kinds = [step["kind"] for step in data["pictures"][0]["steps"]]
    assert kinds.count("sweep") == kinds.count("update") == kinds.count("end") == 2
    assert [s["optimizer"] for s in steps(data, "update")] == [repr(first), repr(second)] * 4
    assert [s["class"] for s in steps(data, "update")] == ["Adam", "SGD"] * 4


def test_iterations_of_another_structure_have_another_picture() -> None:
    w = variable(1.0, 2.0, name="w")
    expected = []
    with record() as film:
        for i in range(6):
            w.cleargrad()
            loss = F.sum(w * w)
            if i % 2:
                loss = loss + F.sum(F.exp(w))
            loss.backward()
            w.array = w.array - 0.1 * w.grad
            expected.append(float(loss))
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 1] * 3 and sizes(data) == [6, 12] * 3
    assert losses(data) == rounded(expected)


def test_a_gradient_penalty_in_a_loop() -> None:
    w = variable(1.0, 2.0, 3.0, name="w")
    expected = []
    with record() as film:
        for i in range(12):  # ids of two digits, then three
            w.cleargrad()
            x = tn.Variable(IMAGES[i])
            y = F.sum(F.tanh(x * w))
            (gx,) = tn.grad([y], [x], enable_double_backprop=True)
            loss = y + F.sum(gx * gx)
            loss.backward()
            expected.append(w.grad)
            w.array = w.array - 0.1 * w.grad
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 12
    ends = steps(data, "end")[1::2]
    found = [named(data, end["grad_inputs"])[0] for end in ends]
    assert found == [("w", rounded(g), "first", rounded(g)) for g in expected]
    assert {node["phase"] for node in data["pictures"][0]["nodes"]} == {"forward", "backward"}


def test_no_cut_leads_through_a_graph() -> None:
    w = variable(1.0, 2.0, name="w")
    before = F.sum(w * w)
    with record() as film:
        old = F.sum(F.exp(w))
        for _ in range(4):
            old.backward()
            before.backward()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] and len(film) == 34
    with record() as film:
        state = w
        for _ in range(5):
            state = F.tanh(state)
            F.sum(state * state).backward()  # through all iterations so far
    assert pictures(film.data()) == [0]


def test_an_unrolled_sum_is_one_iteration() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = x
        for _ in range(50):
            y = y + x
        F.sum(y).backward()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] and len(film) == 104
    assert x.grad.tolist() == [51.0, 51.0]


@pytest.mark.parametrize("in_place", [False, True])
def test_a_loop_without_a_graph(in_place: bool) -> None:
    model = make_model()
    with record() as film, tn.no_backprop_mode():
        for i in range(4):
            y = F.identity(model(IMAGES[i : i + 2]))
            if in_place:
                y += 0.5
            F.softmax(y)
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 4 and sizes(data) == [6 if in_place else 5] * 4
    if in_place:
        for one in data["iterations"]:
            *_, identity, add, softmax = steps_of_iteration(data, one)
            assert identity["outputs"][0] == add["inputs"][0]
            assert add["outputs"][0] == softmax["inputs"][0] != identity["outputs"][0]


def test_in_place_sums_over_iterations_are_one_picture() -> None:
    """``total += y`` leads from iteration to iteration; without a graph, no cut is hurt."""
    x = variable(1.0, 2.0, name="x")
    with record() as film, tn.no_backprop_mode():
        total = F.identity(x)
        for _ in range(5):
            y = F.exp(x)
            total += y
    data = film.data()
    check(data, film)
    sums = [cells(data, s["outputs"][0][1]) for s in steps(data, "forward") if s["class"] == "Add"]
    assert sums == [rounded(x.array + n * np.exp(x.array)) for n in range(1, 6)]


def test_a_program_without_a_loop() -> None:
    model = make_model()
    with record() as film:
        loss = F.softmax_cross_entropy(model(IMAGES), TARGETS)
        loss.backward()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] and data["pictures"][0]["shared"] == []
    assert "Iteration" not in film.to_text()


def test_a_film_without_steps() -> None:
    with record() as film:
        pass
    data = film.data()
    assert data["pictures"] == data["iterations"] == data["values"] == []


def test_an_error_in_the_middle_of_an_iteration() -> None:
    w = variable(1.0, 2.0, name="w")
    with pytest.raises(ValueError, match="planted"), record() as film:
        for i in range(4):
            w.cleargrad()
            loss = F.sum(w * w)
            if i == 2:
                raise ValueError("planted")
            loss.backward()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 0, 1] and sizes(data) == [6, 6, 3]
    assert data["note"] == "The recorded code ended with ValueError: planted"


class Fails(tn.FunctionNode):
    """y = x; its backward raises from the third time on."""

    times = 0

    def forward(self, inputs: Any) -> Any:
        return (inputs[0].copy(),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        Fails.times += 1
        if Fails.times > 2:
            raise ValueError(f"time {Fails.times}")
        return grad_outputs


def test_failed_backward_passes_have_their_own_pictures() -> None:
    Fails.times = 0
    w = variable(1.0, 2.0, name="w")
    with record() as film:
        for _ in range(4):
            w.cleargrad()
            loss = F.sum(Fails().apply((w * w,))[0])
            try:
                loss.backward()
            except ValueError:
                continue
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 0, 1, 2]
    ends = [step["title"] for step in steps(data, "end")]
    assert ends[0] == ends[1] and "time 3" in ends[2] and "time 4" in ends[3]


def test_the_short_text_has_the_numbers_that_each_step_makes() -> None:
    x, w = tn.Variable(np.array(3.0), name="x"), tn.Variable(np.array([2.0, 5.0]), name="w")
    with record() as film:
        y = F.sum(w * x)
        y.backward()
    said = film.to_short_text().splitlines()
    assert said[0] == "1. Multiply computes w * x from w and x."
    assert said[1:4] == ["   w * x: (2,) [6, 15]", "2. Sum computes y from w * x.", "   y: 21"]
    assert said[-2:] == ["   gradient of w: (2,) [3, 3]", "   gradient of x: 7"]
    with record() as film:
        z = F.exp(tn.Variable(np.arange(8.0)))
    assert film.to_short_text().splitlines()[-1] == "   z: (8,) from 1 to 1097" and z.size == 8
    model = make_model()
    with record() as film:
        train(model, nn.SGD(model, lr=0.5), 3)
    said = film.to_short_text().splitlines()
    assert said[-1] == "... and 2 more iterations" and "SGD updates" in film.to_short_text()
    with record() as film:
        pass
    assert film.to_short_text() == ""


def test_the_text_has_the_iterations() -> None:
    model = make_model()
    with record() as film:
        train(model, nn.SGD(model, lr=0.5), 2)
    text = film.to_text()
    assert "\nIteration 1 of 2\n" in text and "\nIteration 2 of 2\n" in text
    assert "\n11. SGD updates weight, bias, weight (2) and bias (2).\n" in text
    assert "\n22. SGD updates" in text and "   optimizer: SGD(4 parameters, lr=0.5" in text
    assert "   before bias: (4,) float64 [0.0, 0.0, 0.0, 0.0]\n" in text


# --- the values of an iteration ------------------------------------------------------------------


def test_values_of_a_step_and_back() -> None:
    model = make_model()
    with record() as film:
        train(model, nn.Adam(model), 2)
        x = variable(1.0, 2.0)
        F.sum(x * x * x).backward()
    seen = 0
    for step in film.steps:
        values = list(values_of(step))
        other = with_values(step, iter(range(len(values))))
        assert list(values_of(other)) == list(range(len(values)))
        back = with_values(other, iter(values))
        assert {key: back[key] for key in back} == json.loads(json.dumps(step, default=list)) | {
            key: step[key] for key in ("places",)
        }
        seen += len(values)
    assert seen == sum(len(one["values"]) for one in film.data()["iterations"])


class Arrays(tn.FunctionHook):
    """The inputs, outputs and gradients that really were there."""

    name = "arrays"

    def __init__(self) -> None:
        self.forward: list[list[list[float]]] = []
        self.backward: list[list[list[float]]] = []

    def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
        if function.inputs is not None:
            self.forward.append([rounded(x.array) for x in (*inputs, *outputs)])

    def after_backward(self, function: Any, indexes: Any, gys: Any, gxs: Any) -> None:
        self.backward.append([rounded(g.array) for g in (*gys, *gxs) if g is not None])


def test_the_values_of_each_iteration_are_those_that_were_computed() -> None:
    w, hook = variable(1.0, -2.0, name="w"), Arrays()
    optimizer = nn.Adam([w], lr=0.3)
    with hook, record() as film:
        for _ in range(5):
            loss = F.sum(F.exp(w) * w)
            w.cleargrad()
            loss.backward()
            optimizer.update()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 5
    forward = [
        [cells(data, e[1]) for e in (*step["inputs"], *step["outputs"])]
        for step in steps(data, "forward")
    ]
    backward = [
        [cells(data, e[1]) for e in (*step["grad_outputs"], *step["grad_inputs"])]
        for step in steps(data, "backward")
    ]
    assert forward == hook.forward and backward == hook.backward
    assert len({str(one) for one in forward}) == 15  # each iteration has other values


def test_a_leaf_with_a_new_array_in_each_iteration() -> None:
    x = variable(0.0, 0.0, name="x")
    with record() as film:
        for i in range(4):
            x.array = np.array([i, i + 0.5])
            F.exp(x)
    with record() as other, tn.no_backprop_mode():
        for i in range(4):
            x.array = np.array([i, i + 0.5])
            F.exp(x)
    for one in (film, other):
        data = one.data()
        check(data, one)
        assert pictures(data) == [0] * 4
        found = [named(data, step["inputs"]) for step in all_steps(data)]
        assert found == [[("x", [i, i + 0.5])] for i in range(4)]
        assert all(step["freed"] == [] for step in all_steps(data) if one is film)


def test_an_update_by_hand() -> None:
    w, expected = variable(1.0, 2.0, name="w"), []
    with record() as film:
        for _ in range(3):
            expected.append(w.array.tolist())
            loss = F.sum(w * w)
            w.cleargrad()
            loss.backward()
            w.array = w.array - 0.25 * w.grad
    data = film.data()
    check(data, film)
    assert pictures(data) == [0] * 3
    found = [cells(data, s["inputs"][0][1]) for s in steps(data, "forward") if s["class"] != "Sum"]
    assert found == expected == [[1.0, 2.0], [0.5, 1.0], [0.25, 0.5]]
    (sweep, *_) = [s for s in data["pictures"][0]["steps"] if s["kind"] == "sweep"]
    assert [labels(data)[node] for node in sweep["cleared"]] == ["w"]


@pytest.mark.parametrize("at_the_top", [True, False])
def test_gradients_that_are_not_cleared_add_up(at_the_top: bool) -> None:
    """Every second iteration clears: the other iterations add, and have their own picture."""
    w = variable(1.0, 2.0, name="w")
    with record() as film:
        for i in range(6):
            if at_the_top and i % 2 == 0:
                w.cleargrad()
            loss = F.sum(w * w)
            loss.backward()
            if not at_the_top and i % 2:
                w.cleargrad()
    data = film.data()
    check(data, film)
    assert pictures(data) == [0, 1] * 3
    ends = [named(data, end["grad_inputs"]) for end in steps(data, "end")]
    first = [("w", [2.0, 4.0], "first", [2.0, 4.0])]
    assert ends == [first, [("w", [2.0, 4.0], "added", [4.0, 8.0])]] * 3
    cleared = [
        [labels(data)[n] for s in p["steps"] for n in s["cleared"]] for p in data["pictures"]
    ]
    assert cleared == [["w"], []]
    first_step = data["pictures"][0]["steps"][0]
    assert first_step["cleared"]


# --- optimizers ----------------------------------------------------------------------------------


def updates(data: Data) -> Iterator[tuple[str, list[float], list[float], Any, list[float]]]:
    """For each update: name, before, gradient, moments by name, after."""
    for step in steps(data, "update"):
        for node, before, gradient, after, moments in step["updates"]:
            told = {name: (cells(data, a), cells(data, b)) for name, a, b in moments}
            name = labels(data)[node]
            yield (name, cells(data, before), cells(data, gradient), told, cells(data, after))


def test_the_update_of_sgd() -> None:
    w = variable(1.0, 2.0, name="w")
    optimizer = nn.SGD([w], lr=0.25, momentum=0.5)
    with record() as film:
        for _ in range(3):
            loss = F.sum(w * w)
            w.cleargrad()
            loss.backward()
            optimizer.update()
    array, v = np.array([1.0, 2.0]), np.zeros(2)
    data = film.data()
    check(data, film)
    for name, before, gradient, moments, after in updates(data):
        assert name == "w" and before == rounded(array) and gradient == rounded(2 * array)
        old, v = v, 0.5 * v + 2 * array
        assert moments == {"v": (rounded(old), rounded(v))}
        array = array - 0.25 * v
        assert after == rounded(array)
    assert rounded(w.array) == rounded(array) and len(steps(data, "update")) == 3


def test_the_update_of_adam() -> None:
    w = variable(1.0, -2.0, name="w")
    optimizer = nn.Adam([w], lr=0.1)
    with record() as film:
        for _ in range(3):
            loss = F.sum(w * w * w)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    array, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    data = film.data()
    check(data, film)
    for t, (_, before, gradient, moments, after) in enumerate(updates(data), 1):
        g = 3 * array * array
        assert before == rounded(array) and gradient == rounded(g)
        old = m, v
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        assert moments == {
            "m": (rounded(old[0]), rounded(m)),
            "v": (rounded(old[1]), rounded(v)),
        }
        array = array - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert after == rounded(array)
    assert rounded(w.array) == rounded(array)


def test_a_changing_learning_rate_keeps_the_picture() -> None:
    w = variable(1.0, name="w")
    optimizer = nn.SGD([w], lr=0.5)
    rates = []
    with record() as film:
        for i in range(3):
            optimizer.lr = 0.5 / (i + 1)
            w.cleargrad()
            F.sum(w * w).backward()
            optimizer.update()
            rates.append(repr(optimizer))
    data = film.data()
    assert pictures(data) == [0] * 3 and len(set(rates)) == 3
    assert [step["optimizer"] for step in steps(data, "update")] == rates
    rules = [f"before - {0.5 / (i + 1):g} * gradient" for i in range(3)]
    assert [step["rule"] for step in steps(data, "update")] == rules
    pairs = list(zip(rates, rules, strict=True))
    assert [one["optimizers"] for one in data["iterations"]] == [
        [None], *([list(pair)] for pair in pairs[1:])
    ]  # fmt: skip


def test_a_parameter_without_a_gradient_is_not_updated() -> None:
    w, other = variable(1.0, name="w"), variable(2.0, name="other")
    optimizer = nn.SGD([w, other], lr=0.5, allow_missing=True)
    with record() as film:
        F.sum(w * w).backward()
        optimizer.update()
    data = film.data()
    assert [name for name, *_ in updates(data)] == ["w"]
    assert all_steps(data)[-1]["title"] == "SGD updates w."


def test_an_update_that_fails_is_no_step() -> None:
    w = variable(1.0, name="w")
    optimizer = nn.SGD([w], lr=0.5)
    with record() as film:
        with pytest.raises(tn.errors.GraphError):
            optimizer.update()
        F.sum(w * w).backward()
        optimizer.update()
    assert [step["kind"] for step in all_steps(film.data())].count("update") == 1
    assert w.array.tolist() == [0.0]


# --- long films ----------------------------------------------------------------------------------


def long_film(count: int) -> tuple[Film, list[Any]]:
    """A loop with arrays of 100 elements."""
    w = tn.Variable(np.linspace(-1.0, 1.0, 100), name="w")
    arrays = []
    with record() as film:
        for _ in range(count):
            arrays.append(w.array)
            loss = F.sum(F.exp(w))
            w.cleargrad()
            loss.backward()
            w.array = w.array - 0.1 * w.grad
    return film, arrays


def test_a_long_film_keeps_the_elements_of_some_iterations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(film_values, "KEPT_CELLS", 2000)
    film, arrays = long_film(30)
    data = film.data()
    check(data, film)
    whole = [one["arrays"] for one in data["iterations"]]
    assert whole[0] and whole[-1] and 3 <= sum(whole) < 30
    numbers = [i for i, one in enumerate(whole) if one]
    assert len({b - a for a, b in pairwise(numbers[:-1])}) <= 1
    assert sum(len(v["cells"]) for v in data["values"] if len(v["cells"]) > 16) <= 2000
    for one, array in zip(data["iterations"], arrays, strict=True):
        exp = next(steps_of_iteration(data, one))
        value = data["values"][exp["inputs"][0][1]]
        assert value["thinned"] is not one["arrays"] and value["shape"] == [100]
        assert value["cells"] == (rounded(array) if one["arrays"] else [])
        three = [value["min"], value["max"], value["mean"]]
        assert three == rounded([array.min(), array.max(), array.mean()])
        loss = data["values"][one["loss"]]
        assert loss["cells"] == rounded(np.exp(array).sum())  # small arrays are always whole
    text = film.to_text()
    assert "(100,) float64 from -1.0 to 1.0" in text


def test_a_short_film_keeps_all_elements() -> None:
    film, _ = long_film(5)
    data = film.data()
    assert all(one["arrays"] for one in data["iterations"])
    assert not any(value["thinned"] for value in data["values"])


def test_a_film_that_is_cut_in_the_middle_of_an_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit, expected in ((9, [6, 3]), (8, [6, 2]), (11, [6, 5]), (12, [6, 6])):
        monkeypatch.setattr(recorder, "MAX_STEPS", limit)
        with pytest.warns(UserWarning, match=f"{limit} steps"):
            film, _ = long_film(4)
        data = film.data()
        check(data, film)
        assert len(film) == limit and sizes(data) == expected
        assert pictures(data) == [0, 0 if limit == 12 else 1]
        assert f"{limit} steps" in data["note"]


def test_a_huge_picture_is_cut_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_data, "MAX_PICTURE", 20)
    x = variable(1.0, name="x")
    with record() as film:
        y = x
        for _ in range(30):
            y = y * 1.5
        y.backward()
    data = film.data()
    assert len(film) == 62 and sizes(data) == [20] and film.note is None
    assert data["note"] == "Cut: a picture holds 20 steps, and 42 more are left out."
    assert data["note"] in film.to_text()
    assert len([n for n in data["pictures"][0]["nodes"] if n["kind"] == "function"]) == 20
    json.dumps(data, allow_nan=False)


def test_a_loop_may_have_more_steps_than_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_data, "MAX_PICTURE", 20)
    film, _ = long_film(10)
    data = film.data()
    check(data, film)
    assert sum(sizes(data)) == len(film) > 20 and "Cut" not in data["note"]


def test_both_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_data, "MAX_PICTURE", 3)
    with pytest.raises(ValueError, match="planted"), record() as film:
        y = variable(1.0)
        for _ in range(5):
            y = F.tanh(y)
        raise ValueError("planted")
    note = film.data()["note"]
    assert note.startswith("The recorded code ended with ValueError: planted. Cut: a picture ")


def rule_by_hand(rounds: int, *, has_rule: bool = True) -> Film:
    w = tn.Variable(np.array([3.0, -2.0]), name="w")
    x = tn.Variable(np.array([1.0, 1.0]), name="x", requires_grad=False)
    optimizer = tn.nn.SGD([w], lr=0.25)
    with tn.show.record() as film:
        for step in range(rounds):
            loss = F.sum(w * w * x)
            w.cleargrad()
            loss.backward()
            if has_rule:
                w.array -= 0.25 * w.grad
            else:
                optimizer.update()
            x.array = x.array + step  # data, and no weight
    return film


def test_a_weight_that_the_program_changes_itself_is_told() -> None:
    data = rule_by_hand(3).data()
    told = (
        "The program itself changes w, first before iteration 2, step 1. "
        "No step of the film shows this change."
    )
    assert data["note"] == told and len(data["pictures"]) == 1
    assert told in rule_by_hand(3).to_text()
    assert rule_by_hand(1).data()["note"] is None
    assert rule_by_hand(3, has_rule=False).data()["note"] is None


def test_a_change_of_the_reader_is_no_change_of_the_program() -> None:
    def program() -> None:
        w = tn.Variable(np.array([3.0, -2.0]), name="w")
        optimizer = tn.nn.SGD([w], lr=0.25)
        for _ in range(3):
            loss = F.sum(w * w)
            w.cleargrad()
            loss.backward()
            optimizer.update()

    found = tn.show.what_if(program, "iteration 2, step 1: w[0] = 0")
    assert found.data()["note"] is None

"""A changed number at a step of a film: the program goes on with the number from there."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn, show
from tinynode.show import Change, what_if
from tinynode.show.films.changes import MOST_CHANGES, from_json, parsed, to_json

F = tn.functions

W, X = [[3.0, -2.0]], [[1.0], [2.0]]


def product() -> None:
    """loss = sum((w @ x)^2); w @ x is -1, so loss is 1."""
    w = tn.Variable(np.array(W), name="w")
    x = tn.Variable(np.array(X), name="x")
    loss = F.sum((w @ x) ** 2)
    loss.backward()


def training(rate: float = 0.25) -> None:
    """Ten updates of w against sum(w^2): each multiplies w by 1 - 2 * rate."""
    w = tn.Variable(np.array([3.0, -2.0]), name="w")
    optimizer = nn.SGD([w], lr=rate)
    for _ in range(10):
        loss = F.sum(w * w)
        w.cleargrad()
        loss.backward()
        optimizer.update()


def last_values(film: show.Film, name: str) -> list[Any]:
    """The elements of the last array with a name, of the forward steps and updates."""
    data = film.data()
    found: list[Any] = []
    for iteration, step in show.films.text.steps_of(data):
        labels = show.films.text.labels_of(
            data["pictures"][data["iterations"][iteration - 1]["picture"]]
        )
        updated = [(node, after) for node, _, _, after, _ in step["updates"]]
        for node, value in [*step["inputs"], *step["outputs"], *updated]:
            if labels[node] == name and step["kind"] in ("forward", "update"):
                found = data["values"][value]["cells"]
    return found


def gradients_at_end(film: show.Film) -> dict[str, list[Any]]:
    """The gradients that the last backward pass has written, by name."""
    data = film.data()
    found = {}
    for iteration, step in show.films.text.steps_of(data):
        if step["kind"] == "end":
            picture = data["pictures"][data["iterations"][iteration - 1]["picture"]]
            labels = show.films.text.labels_of(picture)
            found = {
                labels[node]: data["values"][total]["cells"]
                for node, _, how, total in step["grad_inputs"]
                if how != "none"
            }
    return found


def losses(found: show.Comparison) -> tuple[list[Any], list[Any]]:
    assert found.losses is not None
    return found.losses.before, found.losses.after


# --- each kind of change -------------------------------------------------------------------------


@pytest.fixture(params=["numpy", "fast"])
def device(request: pytest.FixtureRequest) -> Any:
    with tn.using_device(request.param):
        yield request.param


@pytest.mark.usefixtures("device")
def test_a_weight_and_an_input() -> None:
    found = what_if(product, Change(step=1, name="w", index=(0, 1), to=0.0))
    assert losses(found) == ([1.0], [9.0])
    # the gradient of w is 2 * (w @ x) * x
    assert gradients_at_end(found.films[1]) == {"w": [6.0, 12.0], "x": [18.0, 0.0]}
    assert str(found).startswith("changed: step 1: w[0, 1] = 0, was -2\nloss: 1 before, 9 after\n")
    found = what_if(product, Change(step=1, name="x", index=(-1, 0), to=4))
    assert losses(found) == ([1.0], [25.0])
    assert found.note == ""


@pytest.mark.usefixtures("device")
def test_a_result_changes_after_its_function() -> None:
    found = what_if(product, Change(step=1, name="w @ x", index=(0, 0), to=3.0))
    assert losses(found)[1] == [9.0]
    assert gradients_at_end(found.films[1])["w"] == [6.0, 12.0], "2 * 3 * x"


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("4: gradient of loss = 10", [-20.0, -40.0]),
        ("5: gradient of (w @ x) ** 2[0, 0] = 3", [-6.0, -12.0]),
        ("6: gradient of w @ x[0, 0] = 5", [5.0, 10.0]),
        ("7: gradient of w @ x[0, 0] = 5", [5.0, 10.0]),
        ("7: gradient of w[0, 1] = 0.5", [-2.0, 0.5]),
        ("8: gradient of w[0, 0] = nan", [None, -4.0]),
    ],
)
def test_a_gradient(change: str, expected: list[Any]) -> None:
    found = what_if(product, change)
    assert gradients_at_end(found.films[1])["w"] == expected
    assert losses(found) == ([1.0], [1.0])
    number = int(change[0])
    assert found.first is not None and found.first.steps == (number, number)


@pytest.mark.usefixtures("device")
def test_a_variable_at_both_places_has_one_gradient() -> None:
    def square() -> None:
        w = tn.Variable(np.array([3.0, -2.0]), name="w")
        F.sum(w * w).backward()

    found = what_if(square, "5: gradient of w[0] = 1.5")
    assert gradients_at_end(found.films[1]) == {"w": [1.5, -4.0]}
    assert losses(what_if(square, "1: w[0] = 5"))[1] == [29.0]


@pytest.mark.usefixtures("device")
def test_the_third_iteration_of_ten() -> None:
    change = Change(step=1, name="w", index=(0,), to=8.0, iteration=3)
    found = what_if(training, change)
    before, after = losses(found)
    assert before[:2] == after[:2] and before[2] == 0.8125
    expected = [(8.0 * 0.5**k) ** 2 + (2.0 * 0.5 ** (k + 2)) ** 2 for k in range(8)]
    assert after[2:] == pytest.approx(expected, rel=1e-3)
    told = str(found).splitlines()
    assert told[:2] == [
        "changed: iteration 3, step 1: w[0] = 8, was 0.75",
        "loss in iteration 3: 0.8125 before, 64.25 after",
    ]
    assert told[2].startswith("loss in the last iteration, 10: 4.96e-5 before, ")
    same = what_if(training, "15: w[0] = 8")
    assert losses(same) == losses(found), "14 steps come before iteration 3"


@pytest.mark.usefixtures("device")
def test_an_update_takes_another_rate_array_and_gradient() -> None:
    stopped = what_if(training, "iteration 3, step 7: lr = 0")
    assert losses(stopped)[1][3:] == [0.8125] * 7, "the rate stays"
    moved = what_if(training, Change(7, "w", (1,), 0.0, iteration=1))
    assert losses(moved)[1][1] == pytest.approx(1.5**2 + 1.0), "0 - 0.25 * -4 is 1"
    turned = what_if(training, Change(7, "w", (0,), -6.0, part="gradient", iteration=1))
    assert losses(turned)[1][1] == pytest.approx(4.5**2 + 1.0)
    setting = what_if(training, Change(7, "momentum", to=0.5, part="setting"))
    assert losses(setting)[1] != losses(setting)[0]


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_branch_goes_the_other_way(scale: float) -> None:
    def program() -> None:
        w = tn.Variable(np.array(2.0), name="w")
        y = w * scale
        loss = F.exp(y) if float(y.array) < 0 else y * 3.0
        loss.backward()

    found = what_if(program, Change(1, "w", (), -0.01))
    assert losses(found)[1] == [pytest.approx(math.exp(-0.01 * scale), rel=1e-3)]
    alone = [pair for pair in found.pairs if None in pair]
    assert len(alone) == 4, "forward and backward of Multiply and of Exp"


def test_a_large_array_changes_by_its_index() -> None:
    def program() -> None:
        x = tn.Variable(np.ones((30, 40), np.float32), name="x")
        loss = F.sum(x)
        loss.backward()

    found = what_if(program, "1: x[17, 33] = 101")
    assert losses(found) == ([1200.0], [1300.0])
    assert found.changes[0].was == 1.0
    with pytest.raises(ValueError, match=r"the index 40 is out of range; x has shape \(30, 40\)"):
        what_if(program, "1: x[0, 40] = 0")


def test_a_compiled_function_is_one_step() -> None:
    @tn.compile
    def cube(x: Any) -> Any:
        return x * x * x

    def program() -> None:
        x = tn.Variable(np.array([1.0, 2.0]), name="x")
        loss = F.sum(cube(x))
        loss.backward()

    found = what_if(program, Change(1, "x", (1,), 0.0))
    assert losses(found) == ([9.0], [1.0])
    assert gradients_at_end(found.films[1]) == {"x": [3.0, 0.0]}


def test_the_loss_is_named_so() -> None:
    def program() -> None:
        logits = tn.Variable(np.array([[1.0, 1.0]]), name="logits")
        F.softmax_cross_entropy(logits, np.array([0])).backward()

    assert "\nloss: 0.6931 before, 0.3133 after\n" in str(what_if(program, "1: logits[0, 1] = 0"))


def test_several_changes_in_turn() -> None:
    found = what_if(product, ["1: w[0, 1] = 0", Change(1, "x", (0, 0), 2.0), "2: w @ x[0, 0] = 7"])
    assert losses(found) == ([1.0], [49.0])
    assert [one.was for one in found.changes] == [-2.0, 1.0, 6.0]
    both = what_if(training, ["iteration 2, step 1: w[0] = nan", "iteration 3, step 1: w[0] = 1"])
    assert losses(both)[1][1] is None and losses(both)[1][2] == 1.25


# --- nothing else changes ------------------------------------------------------------------------


def test_arrays_of_others_stay_as_they_are() -> None:
    """A view of the data, and a result that its function has retained."""
    data = np.arange(6.0).reshape(3, 2)
    seen = []

    def program() -> None:
        for _ in range(2):
            x = tn.Variable(data[:2], name="x")
            h = F.tanh(x)
            loss = F.sum(h * h)
            loss.backward()
            seen.append(x.grad)

    found = what_if(program, Change(2, "h", (0, 1), 5.0, iteration=1))
    assert data.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    slope = 1.0 - np.tanh(1.0) ** 2
    assert seen[4][0, 1] == pytest.approx(10.0 * slope), "Tanh has its own result"
    assert losses(found)[0][1] == losses(found)[1][1], "the next iteration is the same"


def test_a_variable_and_an_optimizer_from_outside_get_their_numbers_back() -> None:
    w = tn.Variable(np.array([3.0, -2.0]), name="w")
    before = w.raw

    def program() -> None:
        F.sum(w * w)

    for change in ("1: w[0] = 0", ["1: w[0] = 0", "1: w[0] = 5"]):
        assert "w[0] = 0, was 3" in str(what_if(program, change))
        assert w.raw is before and w.raw.tolist() == [3.0, -2.0]

    optimizer = nn.SGD([w], lr=0.25)

    def training() -> None:
        w.array = before
        w.cleargrad()
        F.sum(w * w).backward()
        optimizer.update()

    found = what_if(training, "7: lr = 0")
    assert found.note == "" and "lr = 0, was 0.25" in str(found) and optimizer.lr == 0.25


def test_a_number_from_the_program_stays() -> None:
    w = tn.Variable(np.array([3.0, -2.0]), name="w")

    def program() -> None:
        w.array = np.array([3.0, -2.0])
        F.sum(w * w)
        w.array = np.array([7.0, 7.0])

    what_if(program, "1: w[0] = 0")
    assert w.array.tolist() == [7.0, 7.0]


def test_in_debug_mode_nothing_was_changed_in_place() -> None:
    def program() -> None:
        with tn.using_config(debug=True):
            product()

    for change in ("1: w[0, 1] = 0", "1: w @ x[0, 0] = 3", "7: gradient of w[0, 1] = 1"):
        assert what_if(program, change).note == ""


def test_functions_inside_of_functions() -> None:
    """checkpoint runs functions inside of a function, and again in the backward pass."""

    def program() -> None:
        x = tn.Variable(np.array([1.0, 2.0]), name="x")
        y = tn.checkpoint(lambda v: F.exp(v) * v, x)
        loss = F.sum(y)
        loss.backward()

    with show.record() as film:
        program()
    kinds = [step["kind"] for step in film.steps]
    for number in range(1, kinds.index("sweep") + 1):
        text = [line for line in film.to_text().splitlines() if line.startswith(f"{number}. ")]
        name = text[0].rpartition(" from ")[2].rstrip(".").partition(" and ")[0]
        found = what_if(program, Change(number, name, (1,), 0.0))
        assert found.note == "" and found.first is not None
        assert found.first.steps == (number, number), text


def test_second_derivatives() -> None:
    def program() -> None:
        x = tn.Variable(np.array([1.0, 2.0]), name="x")
        y = F.sum(x**3)
        (gx,) = tn.grad([y], [x], enable_double_backprop=True)
        loss = F.sum(gx * gx)
        loss.backward()

    found = what_if(program, Change(1, "x", (1,), 1.0))
    assert losses(found) == ([9.0], [2.0]), "of the first pass, which starts at y"
    assert gradients_at_end(found.films[1])["x"] == [36.0, 36.0], "36 x^3"
    with show.record() as film:
        program()
    steps = [step["kind"] for step in film.steps]
    inner = steps.index("forward", steps.index("sweep")) + 1
    assert film.steps[inner - 1]["depth"] == 1, "a function inside of the first pass"
    data = film.data()
    labels = show.films.text.labels_of(data["pictures"][0])
    step = data["pictures"][0]["steps"][inner - 1]
    name, index = next(
        (labels[node], value)
        for node, value in zip(
            [entry[0] for entry in step["inputs"]],
            [entry[1] for entry in film.steps[inner - 1]["inputs"]],
            strict=True,
        )
    )
    shape = data["values"][index]["shape"]
    other = what_if(program, Change(inner, name, (0,) * len(shape), 50.0))
    assert other.first is not None and other.first.steps == (inner, inner)


def test_a_schedule_and_groups_of_an_optimizer() -> None:
    rates: list[list[float]] = []

    def program() -> None:
        v, w = (tn.Variable(np.array([1.0]), name=name) for name in "vw")
        groups = [{"parameters": [v]}, {"parameters": [w], "lr": 0.2}]
        optimizer = nn.SGD(groups, lr=0.1)
        for _ in range(2):
            loss = F.sum(v * v + w * w)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
        rates.append([group.lr for group in optimizer.groups])

    what_if(program, "iteration 1, step 11: lr = 0.3")
    assert rates[2] == [pytest.approx(0.3), pytest.approx(0.6)]

    def scheduled() -> None:
        w = tn.Variable(np.array([1.0]), name="w")
        optimizer = nn.SGD([w], lr=0.1)
        schedule = nn.schedules.StepSchedule(optimizer, 1, 0.5)
        for _ in range(3):
            loss = F.sum(w * w)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            schedule.step()

    with pytest.warns(UserWarning, match="was set to 0.0 by hand, and the schedule sets 0.05"):
        found = what_if(scheduled, "iteration 1, step 7: lr = 0")
    assert losses(found)[1][:2] == [1.0, 1.0] and losses(found)[1][2] < 1.0


# --- programs that are not the same twice --------------------------------------------------------


def test_random_numbers_without_a_seed_are_the_same() -> None:
    import random

    def program() -> None:
        x = tn.asarray([random.random(), float(np.random.rand())]) + tn.random.normal((2,))
        y = x * 2.0
        F.sum(y)

    assert what_if(program, "2: x[0] = 0").note == ""


@pytest.mark.parametrize("number", [1, 3])
def test_a_program_that_is_not_the_same_is_reported(number: int) -> None:
    def program() -> None:
        w = tn.Variable(np.random.default_rng().normal(size=2), name="w")
        y = w * w
        z = y + 1.0
        F.sum(z * z)

    name = {1: "w", 3: "z"}[number]
    found = what_if(program, Change(number, name, (0,), 0.0))
    assert found.note == (
        "The program is not the same before the change: the runs differ in step 1, forward of "
        "Multiply. Set a seed in the program: tn.seed(0), np.random.default_rng(0)."
    )
    assert found.note in str(found) and found.data()["compared"]["note"] == found.note


def test_a_program_with_a_generator_from_outside_is_not_the_same_twice() -> None:
    generator = np.random.default_rng(0)

    def program() -> None:
        w = tn.Variable(np.array([1.0, 1.0]), name="w")
        y = w * 2.0
        F.sum(y * generator.normal(size=2))

    found = what_if(program, "1: w[0] = 1")
    assert found, "the change is none, and the films differ"
    assert found.note == (
        "The program is not the same twice: two runs without changes differ in step 2, forward of "
        "Multiply. So the change may not be the reason of a difference. Set a seed in the "
        "program: tn.seed(0), np.random.default_rng(0)."
    )

    sizes = iter((1, 2, 2))

    def longer() -> None:
        w = tn.Variable(np.array([1.0, 1.0]), name="w")
        for _ in range(next(sizes)):
            F.sum(w)

    assert "differ in step 2, forward of Sum." in what_if(longer, "1: w[0] = 0").note


def test_a_second_run_that_does_not_reach_the_step() -> None:
    runs: list[int] = []

    def program() -> None:
        runs.append(1)
        x = tn.Variable(np.array([1.0]), name="x")
        y = F.exp(x) if len(runs) == 1 else F.tanh(x)
        F.sum(y)

    with pytest.raises(
        ValueError, match=r"the second run has no such step of tinynode: forward of E"
    ):
        what_if(program, "1: x[0] = 0")
    runs.clear()

    def twice() -> None:
        program()
        if len(runs) == 1:
            v = tn.Variable(np.array([1.0]), name="v")
            F.exp(v)

    with pytest.raises(
        ValueError, match=r"step 3: .* = 0: The program is not the same before the"
    ):
        what_if(twice, "3: v[0] = 0")


def test_a_step_of_the_learners_package_is_refused(tmp_path: Path) -> None:
    from tinynode_course import mynode

    mynode.write_files(mynode.reference("09"), tmp_path / "mynode")
    script = tmp_path / "train.py"
    text = "import numpy as np\nfrom mynode import Variable, square\nw = Variable(np.ones(1))\n"
    script.write_text(f"{text}loss = square(w)\nloss.backward()\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"Square is of the learner's package mynode, and a"):
        what_if(script, "1: w = 1")


def test_an_error_after_the_change_ends_the_film() -> None:
    def program() -> None:
        x = tn.Variable(np.array([4.0]), name="x")
        y = F.sqrt(x)
        if float(y.array[0]) < 1.0:
            raise RuntimeError("too small")
        F.sum(y)

    found = what_if(program, "1: x[0] = 0.25")
    assert "The recorded code ended with RuntimeError: too small" in str(found)

    def failing() -> None:
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        what_if(failing, "1: x = 0")


# --- errors --------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[], None], Any, str]] = {
    "a name": (product, "1: v[0] = 1", "MatMul does not have v. It has the arrays w, x, w @ x."),
    "a gradient forward": (
        product,
        "1: gradient of w[0, 0] = 1",
        "forward of MatMul does not have the gradient of w. It has the arrays w, x, w @ x.",
    ),
    "a value backward": (
        product,
        "7: w[0, 0] = 1",
        "backward of MatMul does not have w. It has the gradients of w, x, w @ x.",
    ),
    "a setting": (training, "7: rate = 1", "It has the arrays w; the gradients of w; the settings "
                  "lr, momentum, weight_decay, nesterov."),
    "a step": (product, "9: w = 1", "step 9: w = 1: the film has 8 steps."),
    "a step of an iteration": (training, "iteration 2, step 8: w = 1", "iteration 2 has 7 steps."),
    "an iteration": (training, "iteration 11, step 1: w = 1", "the film has 10 iterations."),
    "an index": (product, "1: w[0, 2] = 1", r"the index 2 is out of range; w has shape \(1, 2\)."),
    "no index": (product, "1: w = 1", r"w has shape \(1, 2\), so an index has 2 numbers."),
    "a rate": (training, "7: lr = -1", "lr must be at least 0 and less than inf, got -1"),
    "an index of a rate": (training, "7: lr[0] = 1", "lr is a setting, so it has no index."),
    "a flag": (training, "7: nesterov = 1", "nesterov is False, and a change is a single number."),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_change_and_what_there_is(name: str) -> None:
    program, change, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        what_if(program, change)


def test_numbers_that_a_dtype_does_not_hold() -> None:
    def program() -> None:
        x = tn.Variable(np.ones(2, np.float32), name="x")
        n = tn.asarray([1, 2])
        n.name = "n"
        (x + n, F.cos(tn.asarray([1j])))

    for change, message in (
        ("1: x[0] = 1e300", "1e[+]300 is too large for float32"),
        ("1: n[0] = 0.5", "n is int64, so the number must be whole"),
        ("1: n[0] = nan", "n is int64, so the number must be whole"),
    ):
        with pytest.raises(ValueError, match=message):
            what_if(program, change)
    assert what_if(program, "1: x[0] = inf") and what_if(program, "1: n[0] = 7")

    def complex_program() -> None:
        z = tn.asarray([1j])
        z.name = "z"
        F.exp(z)

    with pytest.raises(ValueError, match="z is complex, and a change is a real number"):
        what_if(complex_program, "1: z[0] = 1")


def test_arguments_of_wrong_types(tmp_path: Path) -> None:
    for program, change, kind, message in (
        (product, 3, TypeError, "a change must be a tn.show.Change or a text"),
        (product, [], ValueError, f"expected 1 to {MOST_CHANGES} changes, got 0"),
        (3, "1: w = 1", TypeError, "what_if"),
        (str(tmp_path / "no.py"), "1: w = 1", ValueError, "must be a function or a script"),
        (lambda: None, "1: w = 1", ValueError, "the program ran nothing of tinynode"),
    ):
        with pytest.raises(kind, match=message):
            what_if(program, change)  # type: ignore[arg-type]


# --- texts and requests --------------------------------------------------------------------------

TEXTS = {
    "3: w[0, 1] = 0": Change(3, "w", (0, 1), 0),
    " step 3 : w [ 0 ,1 ]=-1.5e-3 ": Change(3, "w", (0, 1), -1.5e-3),
    "11: loss = 3": Change(11, "loss", (), 3),
    "2: parts[1][0] = inf": Change(2, "parts[1]", (0,), math.inf),
    "2: x[0][] = 4": Change(2, "x[0]", (), 4),
    "9: lr = 0.1": Change(9, "lr", (), 0.1),
    "iteration 2, step 3: gradient of net.layers.0.weight[4, 0] = 1": Change(
        3, "net.layers.0.weight", (4, 0), 1, "gradient", 2
    ),
    "4: x == y[0] = 1": Change(4, "x == y", (0,), 1),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    change = parsed(text)
    assert change == TEXTS[text]
    assert parsed(str(change)) == change and from_json([to_json(change)]) == [change]


@pytest.mark.parametrize(
    "text",
    [
        *("", "w = 1", "1: w", "1: w = one", "1: = 1", "1:  = 1", "w"),
        *("0: w = 1", "1: w = 1e999", "1: w = infinity", "x: w = 1", "1: w[--1] = 2"),
        *(f"1: {'w' * 500} = 1", f"{10**30}: w = 1", f"1: w = {10**30}", f"1: w[{10**30}] = 1"),
        *("iteration 0, step 1: w = 1", "\x00", "1: w[1] = 1; print(1)"),
    ],
)  # fmt: skip
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Change: "):
        parsed(text)


GOOD = {"step": 1, "name": "w", "to": 0.5}


@pytest.mark.parametrize(
    "request_",
    [
        *({}, "text", None, 3, [3], [[]], [None], ["3: w = 1"]),
        *([{}], [{"step": 1}], [{**GOOD, "other": 1}], [{**GOOD, "__class__": "x"}]),
        *([{**GOOD, "step": step}] for step in (0, -1, 1.5, "1", True, None, 2**80)),
        *([{**GOOD, "name": name}] for name in ("", 3, None, ["w"], "w" * 401)),
        *([{**GOOD, "index": index}] for index in (0, "0", [0.5], ["0"], [True])),
        *([{**GOOD, "index": index}] for index in ([2**70], [0] * 65, {}, None)),
        *([{**GOOD, "to": to}] for to in ("1", "NaN", "infinity", None, [1], True, {}, 2**70)),
        *([{**GOOD, "part": part}] for part in ("values", "", None, 3, ["value"])),
        *([{**GOOD, "iteration": number}] for number in (0, "1", 1.0, False)),
        [GOOD] * (MOST_CHANGES + 1),
    ],
)  # fmt: skip
def test_a_hostile_request_is_refused(request_: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^Change: ") as refused:
        from_json(request_)
    assert len(str(refused.value)) < 600


def test_a_request() -> None:
    found = from_json([GOOD, {**GOOD, "index": [0, 1], "to": "nan", "part": "gradient"}])
    assert found[0] == Change(1, "w", (), 0.5)
    assert math.isnan(found[1].to) and found[1].index == (0, 1)
    assert str(from_json([{**GOOD, "name": "\x1b[2J<b>"}])[0]) == "step 1: \\x1b[2J<b> = 0.5"


# --- scripts and the command ---------------------------------------------------------------------

SCRIPT = """\
import numpy as np
import sys
import tinynode as tn
import helper_of_changes

w = tn.Variable(np.array([3.0, -2.0]) * helper_of_changes.factor(), name="w")
loss = tn.functions.sum(w * w)
loss.backward()
print("loss", float(loss.array), sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    helper = "calls = []\ndef factor():\n    calls.append(1)\n    return len(calls)\n"
    Path("helper_of_changes.py").write_text(helper, encoding="utf-8")
    Path("script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path / "script.py"


def test_a_script_runs_again_with_its_modules_anew(script: Path) -> None:
    found = what_if(script, "1: w[0] = 0", arguments=["a"])
    assert losses(found) == ([13.0], [4.0]) and found.note == ""
    assert "helper_of_changes" not in sys.modules
    assert found.films[1].title == "script.py"


MOVED = """\
import os, sys
import numpy as np
import tinynode as tn

w = tn.Variable(np.array([3.0, -2.0]), name="w")
tn.functions.sum(w * w)
"""


def test_a_script_in_another_folder_is_not_run(script: Path) -> None:
    """The script goes to a folder with a file of the same name."""
    Path("other").mkdir()
    Path("other/script.py").write_text("raise RuntimeError('another file')", encoding="utf-8")
    script.write_text(f"{MOVED}os.chdir('other')\n", encoding="utf-8")
    for program in ("script.py", script):
        found = what_if(program, "1: w[0] = 0")
        assert found.note == "" and "RuntimeError" not in str(found)
        assert os.getcwd() == str(script.parent)


GOING = {
    "another folder": "os.chdir('other')",
    "a removed folder": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "a removed script": "os.path.exists(__file__) and os.remove(__file__)",
}


@pytest.mark.parametrize("name", GOING)
def test_a_script_that_goes_away_runs_again(
    script: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tinynode.__main__ import main

    Path("other").mkdir()
    Path("second.py").write_text(MOVED, encoding="utf-8")
    for arguments in (["--change", "1: w[0] = 0"], ["--against", "second.py"]):
        script.write_text(f"{MOVED}{GOING[name]}\n", encoding="utf-8")
        assert main(["step", "--no-open", *arguments, "script.py"]) == 0
        told = capsys.readouterr()
        assert told.err == "" and "not the same" not in told.out
        os.chdir(script.parent)


def test_the_command(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tinynode.__main__ import main

    command = ["step", "--no-open", "--change", "1: w[0] = 0", "script.py", "--change"]
    assert main([*command, "5: gradient of w[1] = 7", "b"]) == 0
    told = capsys.readouterr().out
    assert told.count("loss 13.0 ['b']\n") == 2 and told.count("loss 4.0 ['b']\n") == 2
    assert (
        "changed: step 1: w[0] = 0, was 3\nchanged: step 5: gradient of w[1] = 7, was -4\n"
        "loss: 13 before, 4 after\n"
    ) in told
    assert told.endswith("written to script-changed.html\n")
    assert "difference-next" in Path("script-changed.html").read_text(encoding="utf-8")
    for arguments, message in (
        (["--change", "w = 1"], 'expected a text such as "3: w[0, 1] = 0"'),
        (["--change", "1: v = 1"], "forward of Multiply does not have v. It has the arrays w,"),
        (["--change", "1: w[0] = 1", "--serve"], "--change shows a page of two films: leave out"),
        (["--change", "1: w[0] = 1", "--against", "script.py"], "leave out --change"),
        (["--change", "1: w[0] = 1", "--output", "x.svg"], "a comparison is a page"),
    ):
        assert main(["step", "--no-open", *arguments, "script.py"]) == 2
        assert message in capsys.readouterr().err


def test_an_unsteady_script_ends_with_status_1(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tinynode.__main__ import main

    text = SCRIPT.replace("helper_of_changes.factor()", "np.random.default_rng().random()")
    script.write_text(text, encoding="utf-8")
    assert main(["step", "--no-open", "--change", "2: loss = 1", "script.py"]) == 1
    assert "The program is not the same before the change" in capsys.readouterr().out


# --- the data of the page ------------------------------------------------------------------------


def test_the_page_has_the_changes_and_the_losses(tmp_path: Path) -> None:
    found = what_if(training, Change(1, "w", (1,), math.nan, iteration=4))
    compared = found.data()["compared"]
    number, step, words, change = compared["changes"][0]
    assert (number, step, words) == (3, 0, "iteration 4, step 1: w[1] = nan, was -0.25")
    assert from_json([change])[0].iteration == 4 and change["to"] == "nan"
    name, before, after = compared["losses"]
    assert name == "loss" and len(before) == len(after) == 10 and after[9] is None
    found.save(tmp_path / "changed.html")
    page = (tmp_path / "changed.html").read_text(encoding="utf-8")
    assert '"host"' not in page and "training, changed" in page


def test_a_program_without_a_backward_pass_shows_its_last_number() -> None:
    def program() -> None:
        x = tn.asarray([1.0, 2.0])
        x.name = "x"
        total = F.sum(x)
        total = total * 2.0

    assert "total (2): 6 before, 4 after" in str(what_if(program, "1: x[0] = 0"))

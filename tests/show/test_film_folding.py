"""Folded films: calls as boxes, scalars as arrays, and the inside of each box."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.show.films.calls import calls_in, equal_parts
from tinynode.show.films.text import steps_of_iteration

SIZE = 6


def dot(row: Any, other: Any) -> Any:
    total = row[0] * other[0]
    for x, y in zip(row[1:], other[1:], strict=True):
        total = total + x * y
    return total


def times(row: Any, matrix: Any) -> Any:
    return [dot(row, column) for column in matrix]


def squares(row: Any) -> Any:
    return [x * x for x in row]


@pytest.fixture(scope="module")
def filmed() -> Iterator[tuple[Any, Any, np.ndarray, np.ndarray]]:
    """The film of dot(w x, w x) on scalars, its data, and x and w as arrays."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=SIZE), rng.normal(size=(SIZE, SIZE))
    row = [tn.Variable(number, name=f"x[{i}]") for i, number in enumerate(x)]
    matrix = [
        [tn.Variable(number, name=f"w[{i}][{j}]") for j, number in enumerate(line)]
        for i, line in enumerate(w)
    ]
    with tn.show.record("scalars", fold=True) as film:
        hidden = times(row, matrix)
        loss = dot(squares(hidden), hidden)
        loss.backward()
    yield film, film.data(), x, w


def steps(data: dict[str, Any], number: int) -> list[dict[str, Any]]:
    return list(steps_of_iteration(data, data["iterations"][number]))


def labels(data: dict[str, Any], number: int) -> dict[str, str]:
    picture = data["pictures"][data["iterations"][number]["picture"]]
    return {node["id"]: node["label"] for node in picture["nodes"]}


def array(data: dict[str, Any], index: int) -> np.ndarray:
    value = data["values"][index]
    return np.array(value["cells"]).reshape(value["shape"])


def test_calls_are_boxes_and_scalars_are_arrays(filmed: Any) -> None:
    film, data, x, w = filmed
    assert len(film) > 2 * SIZE * SIZE
    forward = [step for step in steps(data, 0) if step["kind"] == "forward"]
    assert [step["title"] for step in forward] == [
        "times computes hidden from x and w.",
        "squares computes squares(hidden) from hidden.",
        "dot computes loss from squares(hidden) and hidden.",
    ]
    known = labels(data, 0)
    values = {known[name]: value for step in forward for name, value in step["inputs"]}
    np.testing.assert_allclose(array(data, values["x"]), x, rtol=1e-3)
    np.testing.assert_allclose(array(data, values["w"]), w, rtol=1e-3)
    np.testing.assert_allclose(array(data, values["hidden"]), w @ x, rtol=1e-3)


def test_the_gradients_of_boxes_are_those_of_arrays(filmed: Any) -> None:
    """A box gives its part, and the table has the sum, whatever the order of the ranks was."""
    _, data, x, w = filmed
    xs, ws = tn.Variable(x), tn.Variable(w)
    hidden = ws @ xs
    functions.sum(hidden * hidden * hidden).backward()
    known = labels(data, 0)
    end = steps(data, 0)[-1]
    found = {known[name]: total for name, _, _, total in end["grad_inputs"]}
    np.testing.assert_allclose(array(data, found["x"]), xs.grad, rtol=1e-3)
    np.testing.assert_allclose(array(data, found["w"]), ws.grad, rtol=1e-3)
    backward = [step for step in steps(data, 0) if step["kind"] == "backward"]
    by_name = {
        (step["title"].split()[0], known[name]): (how, array(data, part), array(data, total))
        for step in backward
        for name, part, how, total in step["grad_inputs"]
    }
    h = w @ x
    first = by_name["dot", "hidden"]
    assert first[0] == "first"
    np.testing.assert_allclose(first[1], h * h, rtol=1e-3)
    how, part, total = by_name["squares", "hidden"]
    assert how == "added"
    np.testing.assert_allclose(part, 2 * h * h, rtol=1e-3)
    np.testing.assert_allclose(total, 3 * h * h, rtol=1e-3)


def test_a_box_has_an_inside_with_its_own_numbers(filmed: Any) -> None:
    _, data, x, w = filmed
    folds = data["folds"]
    assert [fold["title"] for fold in folds[:2]] == ["", f"times, 1 of {SIZE} equal parts"]
    assert len(folds) == len(data["iterations"]) == len(data["pictures"])
    for number, fold in enumerate(folds[1:], 1):
        assert fold["around"] < number
        assert fold["box"] in labels(data, fold["around"])
    inside = steps(data, 1)
    forward = [step for step in inside if step["kind"] == "forward"]
    assert len(forward) == 2 * SIZE - 1, "one of the equal parts"
    last = array(data, forward[-1]["outputs"][0][1])
    np.testing.assert_allclose(last, w[0] @ x, rtol=1e-3)
    seed = next(step for step in inside if step["kind"] == "sweep")
    assert seed["title"].startswith("Backward arrives at ")
    np.testing.assert_allclose(array(data, seed["grad_outputs"][0][1]), 3 * last**2, rtol=1e-3)


def test_data_may_be_asked_twice_and_keeps_no_other_values(filmed: Any) -> None:
    film, data, _, _ = filmed
    assert film.data() == data
    used = {value for one in data["iterations"] for value in one["values"] if value is not None}
    assert used == set(range(len(data["values"])))


def test_the_memory_of_a_folded_film_counts_the_recorded_steps(filmed: Any) -> None:
    film, data, _, _ = filmed
    assert data["memory"] is None, "the page has no bytes for boxes"
    assert len(film.memory()) == len(film)


def test_a_film_without_repetition_stays_as_it_is() -> None:
    def run(fold: bool) -> dict[str, Any]:
        with tn.show.record(fold=fold) as film:
            functions.sum(functions.exp(tn.Variable(np.ones(3), name="x"))).backward()
        return film.data()

    plain, folded = run(False), run(True)
    assert "folds" not in folded
    assert [step["title"] for step in steps(folded, 0)] == [s["title"] for s in steps(plain, 0)]


def test_a_branch_that_got_no_gradient_is_forward_only() -> None:
    row = [tn.Variable(float(i), name=f"x[{i}]") for i in range(4)]
    with tn.show.record(fold=True) as film:
        unused = squares(row)
        loss = dot(row, row)
        loss.backward()
    data = film.data()
    titles = [step["title"] for step in steps(data, 0)]
    assert titles[0] == "squares computes unused from x." and len(unused) == 4
    assert "squares takes" not in " ".join(titles)


def test_a_film_with_an_error_is_not_folded_and_ends_at_the_error() -> None:
    row = [tn.Variable(float(i)) for i in range(4)]
    with pytest.raises(ZeroDivisionError), tn.show.record(fold=True) as film:
        squares(squares(row))
        raise ZeroDivisionError("no")
    data = film.data()
    assert "ZeroDivisionError" in data["note"]
    assert {step["kind"] for step in steps(data, 0)} == {"forward", "error"}
    assert "folds" not in data and data["failed"] == [0, len(film) - 1]


def test_equal_parts_are_the_shortest() -> None:
    assert equal_parts("ababab") == 3
    assert equal_parts("aaaa") == 4
    assert equal_parts("abcab") == 1
    assert equal_parts("a") == 1


def test_the_calls_of_a_film_have_all_its_functions(filmed: Any) -> None:
    film = filmed[0]
    forward = [step for step in film.steps if step["kind"] == "forward"]
    found = [step for call in calls_in(forward) for step in call.steps]
    assert [id(step) for step in found] == [id(step) for step in forward]


def test_a_press_opens_a_box_and_the_path_leads_back(
    filmed: Any, tmp_path: Path, browser: Any
) -> None:
    film = filmed[0]
    path = tmp_path / "film.html"
    film.save(path)
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.locator("#graph .node.fold").first.click()
    assert page.inner_text("#folds li[aria-current]") == "times, 1 of 6 equal parts"
    assert page.inner_text("#counter").endswith(f" of {2 * (2 * SIZE - 1) + 1}")
    page.keyboard.press("End")
    assert page.inner_text("#folds li[aria-current]").startswith("times")
    page.click("#folds button")
    assert page.inner_text("#folds li[aria-current]") == "The whole film"
    assert page.inner_text("#sentence").startswith("times takes the gradient of hidden")
    assert page.is_hidden("#iterations")
    page.locator("#graph .node.fold").first.focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#folds li[aria-current]") == "times, 1 of 6 equal parts"
    page.keyboard.press("u")
    assert page.inner_text("#folds li[aria-current]") == "The whole film"
    page.keyboard.press("End")
    assert page.inner_text("#sentence").startswith("Backward has ended")
    assert errors == []
    page.close()

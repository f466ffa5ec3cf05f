"""The chain rule in the page of a film: formulas, with the film's arrays in place of the letters.

The tests drive the page in a browser. Without Chromium or Chrome, or without ``playwright``, they
are skipped; the tests of the film's data run everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show.films.recorder import record

Film = Any


def variable(array: Any, name: str) -> tn.Variable:
    return tn.Variable(numpy.array(array, numpy.float64), name=name)


def multiply_film() -> Film:
    """x gets contributions from Add and Multiply."""
    x, y = variable([1, 2, 3], "x"), variable([4, 5, 6], "y")
    with record("z = x * y + x") as film:
        functions.sum(x * y + x).backward()
    return film


def repeated_film() -> Film:
    """x has a gradient from before the film, then gets gradients from two passes."""
    x = variable([1, 2], "x")
    functions.sum(x).backward()
    with record("twice") as film:
        y = functions.sum(x * 3.0)
        y.backward()
        y.backward()
    return film


def broadcast_film() -> Film:
    x, b = variable([[0, 1, 2], [3, 4, 5]], "x"), variable([1, 2, 3], "b")
    with record("x * b") as film:
        functions.sum(x * b).backward()
    return film


def matrix_film() -> Film:
    a, b = variable([[1, 2], [3, 4]], "a"), variable([[5, 6], [7, 8]], "b")
    with record("a @ b") as film:
        functions.sum(a @ b).backward()
    return film


def large_film() -> Film:
    x = tn.Variable(numpy.linspace(-1, 1, 64 * 64, dtype=numpy.float32).reshape(64, 64), name="x")
    net = nn.Linear(64, 100)
    with record("large") as film:
        functions.sum(functions.relu(net(x))).backward()
    return film


def exp_film() -> Film:
    """Exp retains the output, and Log the input; a function without a formula."""
    x = variable([0, 1], "x")
    with record("exp") as film:
        y = functions.maximum(functions.exp(x), 2.0)
        functions.sum(functions.relu(y)).backward()
    return film


def test_a_film_has_the_formulas_of_its_classes() -> None:
    chain = multiply_film().data()["classes"]["Multiply"]["chain"]
    assert chain["inputs"] == ["x", "y"]
    assert set(chain["formulas"]) == {"z", "dL/dx", "dL/dy"}


def test_a_copied_gradient_is_no_addition() -> None:
    """The gradient of Sum is a view of one number, so the pass writes a copy to ``x.grad``."""
    x = variable([[1, 2], [3, 4]], "x")
    with record("sum") as film:
        functions.sum(x).backward()
        functions.sum(x).backward()
    ends = [step for step in film.data()["pictures"][0]["steps"] if step["kind"] == "end"]
    assert [step["grad_inputs"][0][2] for step in ends] == ["first", "added"]


# --- in the browser ------------------------------------------------------------------------------


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a film at a step; no page may complain."""
    problems: list[str] = []
    contexts: list[Any] = []

    def open_film(film: Film, kind: str, name: str | None, **options: Any) -> Any:
        path = tmp_path / f"film{len(contexts)}.html"
        film.save(path)
        steps = film.data()["pictures"][0]["steps"]
        number = next(
            i for i, step in enumerate(steps, 1) if (step["kind"], step["class"]) == (kind, name)
        )
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}} | options)
        contexts.append(context)
        context.set_default_timeout(5000)
        opened = context.new_page()
        opened.on("console", lambda message: problems.append(message.text))
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto(f"{path.as_uri()}#step={number}")
        return opened

    yield open_film
    for context in contexts:
        context.close()
    assert not problems


def equations(opened: Any) -> list[str]:
    found = "[...document.querySelectorAll('.equation')].map(e => e.getAttribute('aria-label'))"
    return opened.evaluate(found)  # type: ignore[no-any-return]


def texts(opened: Any, selector: str) -> list[str]:
    found = "s => [...document.querySelectorAll(s)].map(e => e.textContent)"
    return opened.evaluate(found, selector)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_backward_step_has_numbers_in_the_places_of_its_letters(
    show: Callable[..., Any],
) -> None:
    opened = show(multiply_film(), "backward", "Multiply")
    assert equations(opened) == [
        "dL/dx += dL/d(x * y) · y: [1, 1, 1] · [4, 5, 6] = [4, 5, 6]",
        "gradient of x: [1, 1, 1] from Add + [4, 5, 6] from Multiply = [5, 6, 7]",
        "dL/dy = dL/d(x * y) · x: [1, 1, 1] · [1, 2, 3] = [1, 2, 3]",
    ]
    first = texts(opened, ".equation .array")
    assert first[:3] == ["4 5 6", "1 1 1", "4 5 6"]
    bottom = opened.evaluate(
        "document.querySelectorAll('.equation')[1].getBoundingClientRect().bottom"
    )
    assert bottom < 600  # above the fold
    assert "(z)" not in texts(opened, ".docletter")
    assert "z" in texts(opened, ".docletter")
    opened.click(".contributions .name >> text=from Add")
    assert opened.evaluate("document.getElementById('focus-title').textContent") == "Add, backward"


@pytest.mark.slow
def test_a_gradient_from_before_the_pass_is_a_part_of_the_sum(show: Callable[..., Any]) -> None:
    opened = show(repeated_film(), "end", None)
    assert equations(opened) == [
        "gradient of x: x.grad from before this pass + [3, 3] from this pass = [4, 4]"
    ]
    opened.keyboard.press("End")
    assert equations(opened) == [
        "gradient of x: [4, 4] from before this pass + [3, 3] from this pass = [7, 7]"
    ]


@pytest.mark.slow
def test_forward_steps_and_broadcasting(show: Callable[..., Any]) -> None:
    film = broadcast_film()
    (forward,) = equations(show(film, "forward", "Multiply"))
    assert forward == (
        "x * b = x · b: [[0, 1, 2], [3, 4, 5]] · [1, 2, 3] = [[0, 2, 6], [3, 8, 15]]"
    )
    opened = show(film, "backward", "Multiply")
    assert texts(opened, ".summed") == ["∑the sum over axis 0 (2 rows): (2, 3) → (3,)"]
    assert equations(opened)[1] == (
        "dL/db = dL/d(x * b) · x: [[1, 1, 1], [1, 1, 1]] · [[0, 1, 2], [3, 4, 5]], "
        "the sum over axis 0 (2 rows): (2, 3) → (3,), = [3, 5, 7]"
    )


@pytest.mark.slow
def test_an_element_of_a_product_marks_its_row_and_column(show: Callable[..., Any]) -> None:
    film = matrix_film()
    opened = show(film, "forward", "MatMul")
    opened.hover(".points .cell >> nth=1")
    assert texts(opened, ".readout.product") == ["[0, 1] = 1*6 + 2*8 = 22"]
    assert texts(opened, ".cell.row") == ["1", "2"]
    assert texts(opened, ".cell.column") == ["6", "8"]
    assert texts(opened, ".cell.pointed") == ["22"]
    opened.mouse.move(1, 1)
    assert texts(opened, ".cell.row") == []
    opened.focus(".points")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        opened.keyboard.press(key)
    assert texts(opened, ".readout.product") == ["[1, 1] = 3*6 + 4*8 = 50"]
    opened = show(film, "backward", "MatMul")
    opened.hover(".points .cell >> nth=1")  # dL/da = dL/dc @ b^T
    assert texts(opened, ".readout.product")[0] == "[0, 1] = 1*7 + 1*8 = 15"
    assert texts(opened, ".cell.column") == ["7", "8"]  # a row of b: a column of b^T


@pytest.mark.slow
def test_heat_maps_of_a_product_get_bands(show: Callable[..., Any]) -> None:
    opened = show(large_film(), "forward", "Linear")
    opened.hover(".points")
    assert texts(opened, ".band.row") == ["", ""]  # of x, and of the bias
    assert len(texts(opened, ".band.column")) == len(texts(opened, ".band.pointed")) == 1
    assert "+" not in texts(opened, ".readout.product")[0]  # a sample of the numbers: no sum


@pytest.mark.slow
def test_a_factor_that_was_not_kept_remains_a_letter(show: Callable[..., Any]) -> None:
    film = exp_film()
    (exp,) = equations(show(film, "backward", "Exp"))
    assert exp.endswith("[1, 1] · [1, 2.718] = [1, 2.718]") or "2.718" in exp
    (relu,) = equations(show(film, "backward", "ReLU"))
    assert "where x > 0 else 0" in relu.split(": ")[1]
    (maximum,) = equations(show(film, "forward", "Maximum"))
    assert maximum.split(": ")[1].startswith("Maximum( [1, 2.718] , 2 ) = [2, 2.718]")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_docstring_is_set_as_mathematics(show: Callable[..., Any], scheme: str) -> None:
    opened = show(
        multiply_film(),
        "backward",
        "Multiply",
        color_scheme=scheme,
        viewport={"width": 390, "height": 800},
    )
    assert len(texts(opened, ".formula math")) == 4
    assert opened.evaluate("document.querySelector('.formula mfrac').namespaceURI").endswith(
        "MathML"
    )
    assert "elementwise, with broadcasting." in texts(opened, ".formula")[0]
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_names_of_gradients_have_room_beside_a_heat_map(show: Callable[..., Any]) -> None:
    x = variable(numpy.linspace(-0.0012345, 0.0012345, 64), "Linear output")
    with record("names") as film:
        functions.sum(x * x).backward()
    opened = show(film, "end", None)
    name = opened.locator("#gradients li:not([hidden]) .name").first
    assert name.bounding_box()["height"] < 60


@pytest.mark.slow
def test_an_address_opens_a_long_graph_at_its_step(show: Callable[..., Any]) -> None:
    x = variable([1.0], "x")
    with record("long") as film:
        y = x
        for _ in range(20):
            y = functions.tanh(y)
        functions.exp(y).backward()
    opened = show(film, "end", None, reduced_motion="reduce")
    opened.goto(opened.url.split("#")[0] + "?#step=21")
    view, node = opened.locator("#view"), opened.locator("#graph .node", has_text="Exp").first
    frame, box = view.bounding_box(), node.bounding_box()
    assert frame["y"] < box["y"] < frame["y"] + frame["height"]

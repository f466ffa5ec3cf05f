"""Pictures cut long texts: a name of 200,000 letters costs neither time nor room."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.nn.summary import summary
from tinynode.show.films.text import text

F = tn.functions
LONG = "a long <name>, " * 13_000
"""About 200,000 letters."""
MOST_LETTERS = 400_000
SECONDS = 5


def variable(name: str = LONG) -> tn.Variable:
    return tn.Variable(np.array([[1.0, 2.0], [3.0, 4.0]]), name=name)


class Named(nn.Module):
    """A module whose children have long names."""

    def __init__(self) -> None:
        super().__init__()
        setattr(self, "layer" * 40_000, nn.Linear(2, 2))

    def forward(self, x: Any) -> Any:
        """The layer's output."""
        return getattr(self, "layer" * 40_000)(x)


def film() -> tn.show.Film:
    with tn.show.record(LONG) as film:
        x = variable()
        tn.show.watch(lambda rows: rows @ x, x.array, np.array([0, 1]), name=LONG)
        y = F.sum(x * x)
        y.backward()
    return film


def film_with_late_names() -> tn.show.Film:
    """The names come after the first use, or from a model."""
    model = Named()
    with tn.show.record() as film:
        x = tn.Variable(np.ones((1, 2), "float32"))
        y = F.sum(model(x))
        x.name, y.name = LONG, LONG
        y.backward()
        nn.SGD(model, lr=0.1).update()
    return film


def film_with_error() -> tn.show.Film:
    with pytest.raises(ValueError), tn.show.record() as ended:
        F.sum(variable() * 2)
        raise ValueError(LONG)
    return ended


def graph(**options: Any) -> Any:
    x = variable()
    y = F.sum(x * x)
    y.name = LONG
    return tn.show.graph(y, title=LONG, **options)


def c_code() -> Any:
    function = tn.compile(lambda x: F.exp(x) + 1)
    return tn.show.c(function, variable())


VALUES = [1.0, 2.0, 3.0]
PICTURES: dict[str, Callable[[], Any]] = {
    "film": film,
    "film with an error": film_with_error,
    "film with late names": film_with_late_names,
    "graph": graph,
    "graph to the right": lambda: graph(direction="right"),
    "graph of a scope": lambda: graph(scope={LONG: variable()}),
    "graph of a model": lambda: tn.show.graph(F.sum(Named()(variable())), model=Named()),
    "text": lambda: tn.show.text(F.sum(variable() * variable())),
    "explain": lambda: variable().explain_grad(),
    "bars": lambda: tn.show.bars({LONG: 1.0, "b": 2.0}, title=LONG, x_label=LONG),
    "histogram": lambda: tn.show.histogram(VALUES, title=LONG, x_label=LONG, y_label=LONG),
    "lines": lambda: tn.show.lines(VALUES, {LONG: VALUES}, title=LONG, x_label=LONG, y_label=LONG),
    "matrix": lambda: tn.show.matrix(
        [VALUES], rows=[LONG], columns=[LONG, LONG, "c"], title=LONG, x_label=LONG, y_label=LONG
    ),
    "points": lambda: tn.show.points(
        [[1.0, 2.0], [2.0, 3.0]], [LONG, "b"], title=LONG, x_label=LONG, y_label=LONG
    ),
    "training_curves": lambda: tn.show.training_curves(
        {LONG: VALUES}, title=LONG, x_label=LONG, y_label=LONG
    ),
    "fallbacks": tn.show.fallbacks,
    "summary": lambda: summary(Named(), variable()),
}
METHODS = ("_repr_html_", "_repr_svg_", "to_svg", "to_dot", "to_mermaid", "__str__", "__repr__")


@pytest.mark.parametrize("name", PICTURES)
def test_a_long_text_is_cut(name: str) -> None:
    start = time.perf_counter()
    picture = PICTURES[name]()
    sizes = {
        method: len(getattr(picture, method)())
        for method in METHODS
        if callable(getattr(picture, method, None))
    }
    assert {method: size for method, size in sizes.items() if size > MOST_LETTERS} == {}
    assert time.perf_counter() - start < SECONDS


@pytest.mark.parametrize("suffix", [".html", ".json", ".svg", ".gif"])
def test_a_film_cuts_a_long_text(suffix: str, tmp_path: Path) -> None:
    if suffix == ".gif":
        pytest.importorskip("PIL", reason="a GIF needs Pillow")
    path = tmp_path / f"film{suffix}"
    start = time.perf_counter()
    film().save(path)
    assert time.perf_counter() - start < SECONDS
    assert path.stat().st_size < MOST_LETTERS


def test_a_film_in_words_cuts_a_long_text() -> None:
    assert len(text(film().data())) < 20_000


@pytest.mark.slow
def test_a_browser_opens_the_film_at_once(browser: Any, tmp_path: Path) -> None:
    film().save(tmp_path / "film.html")
    page = browser.new_page()
    start = time.perf_counter()
    page.goto((tmp_path / "film.html").as_uri())
    page.wait_for_selector("#graph [data-id=v0]", state="attached")
    assert time.perf_counter() - start < 3 * SECONDS
    page.close()


def test_the_names_stay_whole_outside_of_pictures() -> None:
    x = variable()
    assert x.name == LONG
    assert json.loads(json.dumps(film().data()))["title"].startswith("a long <name>")

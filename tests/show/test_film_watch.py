"""Watched pictures in films: what is predicted, what is kept, and what the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.show import palette
from tinynode.show.films import watched as film_watched
from tinynode.show.films.text import steps_of
from tinynode.show.films.watched import GRID, MOST_IMAGES, MOST_POINTS, cells_of

F = tn.functions
Data = dict[str, Any]


def points(count: int = 20) -> tuple[Any, Any]:
    """Points on both sides of x = 0, and their classes."""
    x = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def by_first(x: Any) -> Any:
    """Scores of two classes, with the border at x = 0."""
    return np.stack([-x[:, 0], x[:, 0]], axis=1)


def only_picture(predict: Any, x: Any, labels: Any = None) -> tuple[Data, list[Any]]:
    """The subject and the picture of one call."""
    with tn.show.record() as film:
        tn.show.watch(predict, x, labels)
    watched = film.data()["watched"]
    return watched["subjects"][0], watched["pictures"][0]


def trained(x: Any, t: Any, iterations: int, watches: bool) -> tuple[Any, list[float], Any]:
    """A film of a training loop, its losses, and the random numbers drawn afterwards."""
    tn.seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    optimizer = nn.SGD(model, lr=0.1)
    losses = []
    with tn.show.record(model=model) as film:
        for _ in range(iterations):
            loss = F.softmax_cross_entropy(model(x), t)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
            if watches:
                tn.show.watch(model, x, t)
    return film, losses, tn.random.get_generator().normal(size=2).tolist()


def test_the_border_is_where_the_classes_change() -> None:
    x, t = points()
    subject, (text, right) = only_picture(by_first, x, t)
    cells = np.array(list(cells_of(text))).reshape(GRID, GRID)
    left, high = subject["range"][0], subject["range"][1]
    middles = left + (np.arange(GRID) + 0.5) / GRID * (high - left)
    assert (cells == (middles > 0)).all()
    assert right == len(x) == len(subject["points"])
    assert subject["labels"] == t.tolist() and not subject["is_score"]
    flipped, (text, _) = only_picture(lambda x: np.stack([-x[:, 1], x[:, 1]], axis=1), x)
    rows = np.array(list(cells_of(text))).reshape(GRID, GRID)
    assert rows[0].all() and not rows[-1].any()  # the first row is above
    assert flipped["labels"] is None


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_score_has_shades_and_a_border_at_0(shape: tuple[int, ...]) -> None:
    x, t = points()
    subject, (text, right) = only_picture(lambda x: x[:, 0].reshape(shape), x, 2 * t - 1)
    cells = set(cells_of(text))
    assert cells <= {0, 1, 2, 3, 5, 6, 7, 8} and {0, 8} & cells
    assert subject["is_score"] and right == len(x)


def test_nan_has_no_class() -> None:
    x, t = points()
    _, (text, right) = only_picture(lambda x: by_first(x) * np.nan, x, t)
    assert text == f".{GRID * GRID}" and right == 0
    _, picture = only_picture(lambda x: np.full((len(x), 3), np.nan), np.ones((2, 25)), t[:2])
    assert picture == [[None, None], [None, None], 0]


@pytest.mark.parametrize("shape", [(25,), (5, 5), (1, 5, 5), (3, 6, 40)])
def test_images_are_kept_once_with_their_classes(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).uniform(size=(30, *shape)).astype(np.float32)
    labels = np.arange(30) % 3
    seen = []

    def predict(x: Any) -> Any:
        seen.append(x)
        return np.eye(3, dtype=np.float32)[np.arange(len(x)) % 3]

    with tn.show.record() as film:
        for _ in range(3):
            tn.show.watch(predict, images, labels)
    data = film.data()
    (subject,) = data["watched"]["subjects"]
    assert len(data["watched"]["pictures"]) == 3
    classes, scores, right = data["watched"]["pictures"][2]
    assert len(subject["images"]) == len(seen[0]) == MOST_IMAGES
    assert seen[0].shape[1:] == shape and seen[0].dtype == np.float32
    assert classes == [i % 3 for i in range(MOST_IMAGES)] and scores == [1.0] * MOST_IMAGES
    assert right == sum(a == b for a, b in zip(classes, subject["labels"], strict=True))
    size = subject["rows"] * subject["columns"] * subject["channels"]
    assert {len(text) for text in subject["images"]} == {size}
    assert max(subject["rows"], subject["columns"]) <= 32


def test_the_first_call_fixes_the_examples_and_predict_gets_what_the_program_gives() -> None:
    seen: list[Any] = []

    def predict(x: tn.Variable) -> Any:
        seen.append(x)
        return F.concat([-x[:, :1], x[:, :1]], axis=1)

    with tn.show.record() as film:
        for batch in range(3):
            x = np.random.default_rng(batch).normal(size=(7, 2)).astype(np.float32)
            tn.show.watch(predict, tn.Variable(x))
    assert all(isinstance(x, tn.Variable) and not x.requires_grad for x in seen)
    assert seen[0].shape == (GRID * GRID + 7, 2)
    assert all((x.array == seen[0].array).all() for x in seen)
    assert [step["kind"] for step in film.steps] == ["watch"] * 3


def test_many_points_are_a_fixed_choice() -> None:
    x, t = points(1000)
    one, _ = only_picture(by_first, x, t)
    two, _ = only_picture(by_first, x, t)
    assert len(one["points"]) == MOST_POINTS and one == two


def test_watching_changes_no_result_and_no_function_of_it_is_a_step() -> None:
    x, t = points()
    film, losses, drawn = trained(x, t, 4, watches=True)
    bare, bare_losses, bare_drawn = trained(x, t, 4, watches=False)
    assert losses == bare_losses and drawn == bare_drawn
    kinds = [step["kind"] for step in film.steps]
    assert kinds.count("watch") == 4
    assert [kind for kind in kinds if kind != "watch"] == [s["kind"] for s in bare.steps]
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    assert len({str(only_picture(model, x)[1]) for _ in range(3)}) == 1  # evaluation mode
    before = tn.random.get_state()
    only_picture(lambda x: tn.random.get_generator().normal(size=(len(x), 2)), x)
    assert (tn.random.get_state() == before).all()


def test_other_hooks_hear_nothing_and_stay_after_an_error() -> None:
    class Count(tn.FunctionHook):
        name = "Count"
        heard = 0

        def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
            self.heard += 1

    def fails(x: Any) -> Any:
        F.exp(x)
        raise RuntimeError("no model")

    x, _ = points()
    with Count() as count, tn.show.record() as film:
        tn.show.watch(F.exp, x)
        with pytest.raises(RuntimeError, match="no model"):
            tn.show.watch(fails, x)
        F.exp(x)
    assert count.heard == 1
    assert [step["kind"] for step in film.steps] == ["watch", "forward"]


def test_outside_of_a_recording_nothing_runs() -> None:
    x, t = points()
    seen: list[Any] = []
    tn.show.watch(seen.append, x, t)
    assert not seen


def test_iterations_share_a_picture_of_the_graph_and_every_skips() -> None:
    x, t = points()
    film, _, _ = trained(x, t, 6, watches=True)
    data = film.data()
    assert len(data["pictures"]) == 1 and len(data["iterations"]) == 6
    assert [one["watched"] for one in data["iterations"]] == [[i] for i in range(6)]
    shown = [step["watched"]["picture"] for _, step in steps_of(data) if step["watched"]]
    assert shown == list(range(6))
    with tn.show.record() as film:
        for _ in range(5):
            F.sum(tn.Variable(x))
            tn.show.watch(by_first, x, every=2)
    data = film.data()
    assert [one["watched"] for one in data["iterations"]] == [[0], [0], [1], [1], [2]]


def test_a_long_film_keeps_pictures_at_equal_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(str([f"a{GRID * GRID}", None]))
    monkeypatch.setattr(film_watched, "MOST_TEXT", 6 * size)
    x, _ = points()
    with tn.show.record() as film:
        for _ in range(10):
            tn.show.watch(np.zeros_like, x)
            tn.show.watch(np.zeros_like, x, name="other", every=100)
    data = film.data()
    used = [number for one in data["iterations"] for number in one["watched"]]
    assert data["watched"]["distance"] == 3 and len(data["watched"]["pictures"]) == 5
    assert used[::2] == [0, 0, 0, 2, 2, 2, 3, 3, 3, 4]  # the last one is kept
    assert used[1::2] == [1] * 10


def test_the_text_says_what_the_picture_says() -> None:
    x, t = points()
    with tn.show.record() as film:
        tn.show.watch(by_first, x, t, name="test set")
        tn.show.watch(lambda x: np.eye(2)[[0, 1, 1]], np.ones((3, 25)), np.array([0, 0, 1]))
    text = film.to_text()
    assert "The program watches test set: the decision border and 20 points." in text
    assert re.search(r"20 of 20 points right; class 0 fills \d+%, class 1 fills \d+%", text)
    assert "The program watches predictions: the classes of 3 images." in text
    assert "2 of 3 images right; 0 (score 1.0, right), 1 (score 1.0, wrong: 0)" in text
    json.dumps(film.data(), allow_nan=False)


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (np.ones((4, 3)), None, r"points or images, got shape \(4, 3\)"),
        (np.ones((4, 16)), None, "points or images"),
        (np.ones((0, 2)), None, "points or images"),
        (np.ones((4, 2, 9, 9)), None, "points or images"),
        (np.full((4, 2), np.nan), None, "no finite point"),
        (np.ones((4, 2)), np.zeros(3), r"labels has shape \(3,\), expected \(4,\)"),
        (np.ones((4, 2)), np.full(4, 0.5), "whole numbers"),
        (np.ones((4, 2)), np.array([-2, 0, 1, 1]), "a label is -2"),
    ],
)
def test_errors_of_inputs(inputs: Any, labels: Any, message: str) -> None:
    with tn.show.record(), pytest.raises(ValueError, match=message):
        tn.show.watch(by_first, inputs, labels)


def test_errors_of_calls() -> None:
    x, _ = points()
    with tn.show.record():
        with pytest.raises(TypeError, match="inputs must be a Variable or an array, got list"):
            tn.show.watch(by_first, [[1.0, 2.0]])
        with pytest.raises(ValueError, match="every must be a positive integer"):
            tn.show.watch(by_first, x, every=0)
        with pytest.raises(ValueError, match="predict must give scores of shape"):
            tn.show.watch(lambda x: x[:3], x)
        with pytest.raises(TypeError, match="what predict gives must be"):
            tn.show.watch(lambda x: None, x)
        with pytest.raises(ValueError, match="at most 52 classes"):
            tn.show.watch(lambda x: np.zeros((len(x), 53)), x)
        with pytest.raises(ValueError, match="give another name"):
            tn.show.watch(by_first, np.ones((4, 25)))


def test_the_style_sheet_has_the_colours_of_the_palette() -> None:
    folder = Path(palette.__file__).parent / "page" / "files"
    css = (folder / "watch.css").read_text(encoding="utf-8")
    found = re.findall(r"--class-\d: (#\w+);", css)
    assert tuple(found) == palette.SERIES_LIGHT + palette.SERIES_DARK


# --- the page, in a browser ----------------------------------------------------------------------


def opened(browser: Any, film: Any, file: Path) -> tuple[Any, list[str]]:
    """The film's page, and the list of its errors."""
    film.save(file)
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    return page, errors


@pytest.mark.slow
def test_the_page_shows_the_latest_border_at_every_step(browser: Any, tmp_path: Path) -> None:
    x, t = points()
    film, _, _ = trained(x, t, 5, watches=True)
    page, errors = opened(browser, film, tmp_path / "film.html")
    data = film.data()
    small = page.locator("#watched button")
    assert not small.is_visible()  # nothing was watched yet
    last = len(data["pictures"][0]["steps"])
    for iteration, picture in enumerate(data["watched"]["pictures"]):
        page.evaluate(f"location.hash = '#iteration={iteration + 1}&step={last}'")
        right = f"{picture[1]} of 20 right"
        label = f"predictions, iteration {iteration + 1}: {right}"
        page.locator(f"#watched button[aria-label^='{label}']").wait_for()
        assert right in page.locator("#focus-body").inner_text()
        areas = page.locator("#focus-body .area").count()
        assert areas == len(set(cells_of(picture[0])))
        assert page.locator("#focus-body .points path").count() >= 20
    page.evaluate("location.hash = '#iteration=3&step=1'")  # before the watch step
    page.locator("#watched button[aria-label^='predictions, iteration 2']").wait_for()
    small.click()
    assert page.locator("#iteration-text").inner_text().startswith("Iteration 2 of 5")
    assert page.locator("#chip").inner_text() == "watch"
    assert errors == []
    page.close()


@pytest.mark.slow
def test_the_curve_says_its_numbers_and_a_click_goes_there(browser: Any, tmp_path: Path) -> None:
    x, t = points()
    film, losses, _ = trained(x, t, 5, watches=True)
    page, errors = opened(browser, film, tmp_path / "film.html")
    curve = page.locator("#curve-lines")
    assert f"to {float(f'{losses[-1]:.4g}')}, least" in curve.get_attribute("aria-label")
    box = curve.bounding_box()
    page.mouse.move(box["x"] + 0.74 * box["width"], box["y"] + 20)
    told = page.locator("#curve-here").inner_text()
    assert told == f"iteration 4, loss {float(f'{losses[3]:.4g}')}"
    page.mouse.click(box["x"] + 0.74 * box["width"], box["y"] + 20)
    assert page.locator("#iteration-text").inner_text().startswith("Iteration 4 of 5")
    assert page.locator("#curve-name").inner_text() == "loss"
    assert errors == []
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1300])
def test_the_page_shows_images_with_signs(browser: Any, tmp_path: Path, width: int) -> None:
    images = np.random.default_rng(0).uniform(size=(6, 8, 8))
    labels = np.array([0, 1, 2, 2, 1, 0])
    with tn.show.record() as film:
        for _ in range(3):
            F.sum(tn.Variable(images))
            tn.show.watch(lambda x: np.eye(3)[np.arange(len(x)) % 3], images, labels)
    page, errors = opened(browser, film, tmp_path / "film.html")
    page.set_viewport_size({"width": width, "height": 844})
    page.keyboard.press("End")
    items = page.locator("#focus-body .watched-images li").all_inner_texts()
    assert [("✓" in text, "✗ is" in text) for text in items] == [(True, False)] * 3 + [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert page.locator("#watched li.wrong").count() == 2
    assert "4 of 6 right" in page.locator("#watched").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert errors == []
    page.close()

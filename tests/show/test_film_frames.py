"""Pictures of a film: an SVG for each step, an animated SVG, and a GIF."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show.films.film import Film
from tinynode.show.films.frame_drawing import shades_of
from tinynode.show.films.frames import MOST_ITERATIONS, FrameOptions, chosen_steps, frames_of
from tinynode.show.films.recorder import record
from tinynode.show.films.state import moments
from tinynode.show.films.text import cell_text, short_number
from tinynode.show.page.document import page
from tinynode.show.palette import COLOURS
from tinynode.show.texts import wrapped

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(1)</script>&amp;\"'\x00"


def small_film(name: str = "x") -> Film:
    """z = sum(x * y + x): x gets two contributions."""
    x = tn.Variable(numpy.array([1.0, 2.0, 3.0], numpy.float32), name=name)
    y = tn.Variable(numpy.array([4.0, 5.0, 6.0], numpy.float32), name="y")
    with record(name if name != "x" else "x * y + x") as film:
        z = functions.sum(x * y + x)
        z.backward()
    return film


def loop_film(count: int = 4) -> Film:
    """A few training steps of a small perceptron."""
    random = numpy.random.default_rng(0)
    net = nn.Sequential(nn.Linear(5, 4), functions.relu, nn.Linear(4, 3))
    data = tn.Variable(random.normal(size=(6, 5)).astype(numpy.float32), requires_grad=False)
    labels = random.integers(0, 3, 6)
    optimizer = nn.SGD(net, lr=0.5)
    with record("a loop", model=net) as film:
        for _ in range(count):
            loss = functions.softmax_cross_entropy(net(data), labels)
            net.cleargrads()
            loss.backward()
            optimizer.update()
    return film


def double_film() -> Film:
    """A gradient of a gradient, with freed arrays and two backward passes."""
    x = tn.Variable(numpy.array([0.5, -0.25, 2.0]), name="x")
    with record("double backprop") as film:
        (gx,) = tn.grad([functions.sum(functions.exp(x) * x)], [x], enable_double_backprop=True)
        assert gx is not None
        functions.sum(gx * gx).backward()
        functions.sum(x).backward()
    return film


def texts(element: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text")]


# --- state and choice ------------------------------------------------------------------------


def test_the_state_at_the_end_has_all_values_and_gradients() -> None:
    data = small_film().data()
    *_, last = moments(data)
    ids = {node["label"]: node["id"] for node in data["pictures"][0]["nodes"]}
    x, y = ids["x"], ids["y"]
    gradients = {name: last.state.gradient_of(ids[name]) for name in ("x", "y", "z")}
    assert gradients["z"] is None
    cells = {k: data["values"][v]["cells"] for k, v in gradients.items() if v is not None}
    assert cells == {"x": [5, 6, 7], "y": [1, 2, 3]}
    assert data["values"][last.state.array_of(x)]["cells"] == [1, 2, 3]
    assert last.state.facts["gradient"] == {} and set(last.state.facts["grad"]) == {x, y}


def test_parameters_bring_their_values_into_the_next_iteration() -> None:
    data = loop_film(2).data()
    seen = [m for m in moments(data) if m.step["kind"] == "update"]
    ((node, *_),) = [entry for entry in seen[0].step["updates"] if entry[0]][:1]
    updated = seen[0].step["updates"][0][3]
    first = next(m for m in moments(data) if m.iteration == 1)
    assert first.state.array_of(node) == updated and first.state.has("grad", node)


def fake(structures: list[int], steps: int = 3, arrays: int = 1) -> dict[str, Any]:
    pictures = [{"steps": [None] * steps} for _ in range(max(structures) + 1)]
    iterations = [
        {"picture": picture, "arrays": number % arrays == 0}
        for number, picture in enumerate(structures)
    ]
    return {"pictures": pictures, "iterations": iterations}


def places(data: dict[str, Any], **options: Any) -> list[tuple[int, int]]:
    return [(one.iteration, one.index) for one in chosen_steps(data, FrameOptions(**options))]


def test_a_loop_shows_one_iteration_then_the_ends_of_the_others() -> None:
    assert places(fake([0, 0, 0])) == [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)]
    assert places(fake([0, 1, 1])) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 2)]
    many = places(fake([0] * 1000))
    assert len(many) == 3 + MOST_ITERATIONS and many[-1] == (999, 2)
    some = places(fake([0] * 1000, arrays=20))
    assert len(some) == 3 + 49 and all(number % 20 == 0 for number, _ in some)


def test_steps_and_iterations_are_chosen_by_index() -> None:
    data = fake([0, 0, 0])
    assert places(data, steps=slice(1, None), iterations=[-1]) == [(2, 1), (2, 2)]
    assert places(data, steps=[-1, 0], iterations=[0, 1]) == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert len(places(data, iterations="all")) == 9


def test_other_iterations_and_the_last_picture_have_their_own_time() -> None:
    chosen = chosen_steps(fake([0, 0, 0], steps=1), FrameOptions(seconds=1.0))
    assert [one.seconds for one in chosen] == [1.0, 0.2, 3.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": [3]}, "steps must be from -3 to 2, got 3"),
        ({"iterations": [1]}, "iterations must be from -1 to 0, got 1"),
        ({"iterations": "last"}, 'must be "all" or indexes'),
        ({"steps": slice(9, 9)}, "the options choose none"),
        ({"steps": slice(None, None, -1), "iterations": [0] * 9, "seconds": 999}, "to 600"),
        ({"seconds": 0}, "seconds of a step"),
        ({"width": 20}, "width must be from 100"),
        ({"theme": "blue"}, 'theme must be "auto"'),
    ],
)
def test_an_option_that_is_not_allowed_is_an_error(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        chosen_steps(fake([0]), options)


def test_too_many_pictures_are_an_error() -> None:
    with pytest.raises(ValueError, match="choose 1200 pictures, and the limit is 1000"):
        chosen_steps(fake([0] * 400), FrameOptions(iterations="all"))


# --- texts -----------------------------------------------------------------------------------


def test_numbers_are_written_as_on_the_page() -> None:
    cells = [None, "-inf", 0.0, -0.0, 3.0, 123456, 0.1234, 0.0012, 0.00012, 123456.5, 12.5, -2e9]
    expected = ["nan", "-inf", "0", "0", "3", "123456", "0.1234", "0.0012", "1.20e-4"]
    assert [cell_text(cell) for cell in cells] == [*expected, "1.23e+5", "12.5", "-2.00e+9"]
    short = [short_number(cell) for cell in (0.125, 12.5, 1234, 0.000012, 1.25e-9, 0, -0.5)]
    assert short == ["0.13", "13", "1200", "0.000012", "1.3e-9", "0", "-0.5"]


def test_long_captions_are_wrapped() -> None:
    lines = wrapped("one two three " + "x" * 60, 10, 110)
    assert lines[:2] == ["one two three", "x" * 20] and max(map(len, lines)) <= 20


def test_shades_show_sign_and_size() -> None:
    value = {"min": -2, "max": 4, "cells": [4, -2, 0, 0.001, None, "-inf"]}
    assert shades_of(value) == (8, -4, 0, 1, None, -8)


# --- SVG -------------------------------------------------------------------------------------


def test_a_watched_step_is_a_picture(tmp_path: Path) -> None:
    net, points = nn.Linear(2, 2), numpy.eye(2, dtype=numpy.float32)
    with record() as film:
        functions.sum(net(points)).backward()
        tn.show.watch(net, points)
    film.save(tmp_path / "film.svg")
    last = film.frames(tmp_path, steps=[-1])[0].read_text("utf-8")
    assert ">watch</text>" in last


def test_each_step_is_a_picture_with_the_numbers_of_the_film(tmp_path: Path) -> None:
    film = small_film()
    paths = film.frames(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [f"{i:04}.svg" for i in range(1, len(film) + 1)]
    data = film.data()
    for number, path in enumerate(paths):
        shown = texts(ElementTree.parse(path).getroot())
        assert f"step {number + 1} of 8" in shown
        caption = data["pictures"][0]["steps"][number]["title"]
        assert caption.startswith(next(t for t in shown if caption.startswith(t) and " " in t))
    first, last = (texts(ElementTree.parse(paths[i]).getroot()) for i in (0, -1))
    assert {"[1, 2, 3]", "[4, 5, 6]", "[4, 10, 18]"} <= set(first)
    assert "38" not in first and not [text for text in first if "∇" in text]
    assert {"[5, 12, 21]", "38", "∇ [5, 6, 7]", "∇ [1, 2, 3]"} <= set(last)


def test_lit_edges_go_with_the_step() -> None:
    film = small_film().data()
    seen = {moment.step["title"]: set(moment.step["lit"]) for moment in moments(film)}
    edges = set(range(len(film["pictures"][0]["edges"])))
    forward = [lit for title, lit in seen.items() if "computes" in title]
    backward = [lit for title, lit in seen.items() if "takes the gradient" in title]
    assert set().union(*forward) == set().union(*backward) == edges


def shown_at(root: ElementTree.Element, part: float | None) -> list[str]:
    """The texts that an animated SVG shows at a part of its time; None is without animation."""
    style = root.findtext(f"{SVG}style") or ""
    found = []
    for child in root:
        name = child.get("class", "")
        rule = re.search(rf"@keyframes {name}{{(.*?}})}}", style) if name[:1] == "k" else None
        visible = True
        if rule is not None and part is not None:
            frames = re.findall(r"([\d.e+]+)%{visibility:(\w+)}", rule[1])
            visible = [v for at, v in frames if float(at) <= 100 * part][-1] == "visible"
        elif rule is not None:
            hidden = re.search(r"^([.k\d,]+){visibility:hidden}", style, re.MULTILINE)
            visible = hidden is None or f".{name}" not in hidden[1].split(",")
        if visible:
            found += [child.text or ""] if child.tag == f"{SVG}text" else texts(child)
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_film, loop_film])
def test_an_animated_svg_shows_each_frame_at_its_time(make: Any, tmp_path: Path) -> None:
    film = make()
    film.frames(tmp_path)
    film.save(tmp_path / "film.svg")
    root = ElementTree.parse(tmp_path / "film.svg").getroot()
    frames = frames_of(film.data(), {})
    whole = sum(frame.seconds for frame in frames)
    start = 0.0
    for number, frame in enumerate(frames, 1):
        single = texts(ElementTree.parse(tmp_path / f"{number:04}.svg").getroot())
        assert shown_at(root, (start + frame.seconds / 2) / whole) == sorted(single)
        start += frame.seconds
    assert shown_at(root, None) == sorted(single)


def test_an_animated_svg_needs_no_script_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "film.svg"
    small_film().save(path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<script|<image|href|url\(|@import", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-reduced-motion: no-preference" in text
    assert "prefers-color-scheme: dark" in text
    assert path.stat().st_size < 40_000
    small_film().save(path, theme="dark", width=300)
    text = path.read_text(encoding="utf-8")
    assert 'width="300"' in text and "prefers-color-scheme" not in text
    assert COLOURS["dark"]["panel"] in text and COLOURS["light"]["panel"] not in text


def test_names_are_only_text(tmp_path: Path) -> None:
    film = small_film(NASTY)
    film.save(tmp_path / "film.svg")
    for path in (tmp_path / "film.svg", *film.frames(tmp_path)):
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text and "\x00" not in text
        assert any("<script>alert(1)" in one for one in texts(ElementTree.fromstring(text)))


def test_a_loop_shows_the_iteration_and_the_loss() -> None:
    film = loop_film()
    data = film.data()
    frames = frames_of(data, {})
    count = len(data["pictures"][0]["steps"])
    assert len(frames) == count + 3
    for number, frame in enumerate(frames[count - 1 :]):
        words = [shape.text for shape in frame.layers["iteration"] if hasattr(shape, "text")]
        (loss,) = data["values"][data["iterations"][number]["loss"]]["cells"]
        assert words == [f"iteration {number + 1} of 4", f"loss {cell_text(loss)}"]


def test_a_wide_graph_has_no_numbers_that_cannot_be_read() -> None:
    data = small_film().data()
    data["pictures"][0]["width"] = 3000
    frame = frames_of(data, {"steps": [-1]})[0]
    shown = [shape for name, shapes in frame.layers.items() if "node" in name for shape in shapes]
    assert {shape.text for shape in shown if hasattr(shape, "text")} >= {"x", "Multiply"}
    assert not [shape for shape in shown if "[" in getattr(shape, "text", "")]


# --- formats and errors ----------------------------------------------------------------------


def test_other_suffixes_and_options_of_pages_are_errors(tmp_path: Path) -> None:
    film = small_film()
    with pytest.raises(ValueError, match=r"\.html, \.json, \.svg or \.gif"):
        film.save(tmp_path / "film.png")
    with pytest.raises(ValueError, match="has no options, got width"):
        film.save(tmp_path / "film.html", width=300)
    with record() as empty:
        pass
    with pytest.raises(ValueError, match="the film has no steps"):
        empty.save(tmp_path / "film.svg")


def test_without_pillow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        small_film().gif(tmp_path / "film.gif")
    assert not (tmp_path / "film.gif").exists()


def test_a_gif_has_a_picture_for_each_step(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    path = tmp_path / "film.gif"
    small_film("é \N{EN DASH} ∇ 中").save(
        path, steps=[0, 5, 7], seconds=0.5, width=160, theme="dark"
    )
    with image.open(path) as gif:
        assert gif.n_frames == 3 and gif.size[0] == 160 and gif.info["loop"] == 0
        durations, corners = [], []
        for number in range(3):
            gif.seek(number)
            durations.append(gif.info["duration"])
            corners.append(gif.convert("RGB").getpixel((1, 1)))
    assert durations == [500, 500, 2500]
    panel = tuple(int(COLOURS["dark"]["panel"][i : i + 2], 16) for i in (1, 3, 5))
    assert all(max(abs(a - b) for a, b in zip(c, panel, strict=True)) < 6 for c in corners)


@pytest.mark.slow
def test_a_gif_of_eight_steps_is_small(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    path = tmp_path / "film.gif"
    small_film().gif(path)
    assert path.stat().st_size < 200_000


# --- in the browser --------------------------------------------------------------------------


STATES = """() => iterations.map((_, number) => steps_at(number));
function steps_at(number) {
  const found = [];
  for (let i = 0; i < film.pictures[iterations[number].picture].steps.length; i++) {
    go(i, number);
    const ids = [...nodes.keys()];
    const numbers = (map) => ids.filter((id) => (map.get(id) ?? null) !== null)
      .map((id) => [id, map.get(id)]);
    const names = (map) => ids.filter((id) => map.get(id));
    const edges = [...litEdges];
    const texts = ids.flatMap((id) =>
      [...nodeElements.get(id).querySelectorAll(".numbers-here text")].map((t) => t.textContent));
    found.push({
      born: names(now.born), kept: names(now.kept), freed: names(now.freed),
      value: numbers(now.value), gradient: numbers(now.gradient), grad: numbers(now.grad),
      edges, texts: ids.length && currentStep() ? texts : [],
      unborn: ids.filter((id) => !now.born.get(id)),
    });
  }
  return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_film, loop_film, double_film])
def test_the_state_is_that_of_the_page(make: Any, browser: Any, tmp_path: Path) -> None:
    film = make()
    data = film.data()
    text = page(data).replace('<script type="module">', "<script>")
    text = re.sub(r"<meta http-equiv[^>]*>", "", text)
    end = text.rindex("</script>")
    function = STATES.partition(";\n")[2]
    (tmp_path / "film.html").write_text(text[:end] + function + text[end:], encoding="utf-8")
    shown = browser.new_page()
    shown.goto((tmp_path / "film.html").as_uri())
    states = shown.evaluate(STATES.partition(";\n")[0])
    shown.close()
    frames = frames_of(data, {"iterations": "all"})
    in_order = iter(frames)
    for moment in moments(data):
        told = states[moment.iteration][moment.index]
        number = data["iterations"][moment.iteration]["picture"]
        picture = data["pictures"][number]
        ids = [node["id"] for node in picture["nodes"]]
        facts = moment.state.facts
        for name in ("born", "kept", "freed"):
            assert set(told[name]) == set(facts[name]) & set(ids), (name, moment.step)
        for name in ("value", "gradient", "grad"):
            numbers = {k: v for k, v in facts[name].items() if k in ids}
            assert dict(told[name]) == numbers, (name, moment.step)
        assert told["edges"] == moment.step["lit"]
        layers = next(in_order).layers
        drawn = [
            shape.text
            for node in ids
            for shape in layers.get(f"{number} node {node} numbers", ())
            if hasattr(shape, "text")
        ]
        if not told["unborn"]:  # the page hides the numbers of unborn nodes by style
            assert sorted(told["texts"]) == sorted(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_animation_plays_and_respects_reduced_motion(
    motion: str, browser: Any, tmp_path: Path
) -> None:
    path = tmp_path / "film.svg"
    small_film().save(path, seconds=0.3)
    shown = browser.new_page(reduced_motion=motion)
    problems: list[str] = []
    shown.on("console", lambda message: problems.append(message.text))
    shown.goto(path.as_uri())
    script = """() => [...document.querySelectorAll("text")].filter(
        (e) => getComputedStyle(e).visibility === "visible").map((e) => e.textContent)"""
    counters = set()
    for _ in range(40):
        visible = shown.evaluate(script)
        counters.add(next(text for text in visible if text.startswith("step ")))
        time.sleep(0.05)
    shown.close()
    assert problems == []
    if motion == "reduce":
        assert counters == {"step 8 of 8"} and "∇ [5, 6, 7]" in visible
    else:
        assert len(counters) > 3, json.dumps(sorted(counters))

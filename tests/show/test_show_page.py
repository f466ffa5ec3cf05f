"""The page of a film, in a real browser: what it shows is what the film says.

The tests read the page's elements and compare them with a second, plain reading of the film's
data. Where there is no browser (Chromium or Chrome) or no ``playwright``, they are skipped; the
tests of the document's text run everywhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show.films.recorder import record
from tinynode.show.films.text import steps_of
from tinynode.show.page.document import packed, page

pytestmark = pytest.mark.slow

Film = dict[str, Any]
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"


def picture(film: Film) -> Any:
    """The only picture of a film without a loop."""
    (only,) = film["pictures"]
    return only


def steps(film: Film) -> list[Any]:
    """The steps of a film, with their values."""
    return [step for _, step in steps_of(film)]


# --- films -----------------------------------------------------------------------------------


def small_film() -> Film:
    """z = x * y + x: x gets two contributions."""
    x = tn.Variable(numpy.array([1.0, 2.0, 3.0], numpy.float32), name="x")
    y = tn.Variable(numpy.array([4.0, 5.0, 6.0], numpy.float32), name="y")
    with record("z = x * y + x") as film:
        z = x * y + x
        z.name = "z"
        functions.sum(z).backward()
    return film.data()


def square_film() -> Film:
    """x * x: both contributions come in one step; and a second backward adds to x.grad."""
    x = tn.Variable(numpy.array([[1.0, -2.0], [0.5, 4.0]]), name="x")
    with record("x * x") as film:
        y = functions.sum(x * x)
        y.backward()
        y.backward()
    return film.data()


def digits_film() -> Film:
    """One step of a perceptron of the digits' sizes."""
    random = numpy.random.default_rng(0)
    net = nn.Sequential(nn.Linear(64, 100), functions.relu, nn.Linear(100, 10))
    images = random.normal(size=(64, 64)).astype(numpy.float32)
    labels = random.integers(0, 10, 64)
    optimizer = nn.SGD(net, lr=0.1)
    with record("One training step") as film:
        loss = functions.softmax_cross_entropy(
            net(tn.Variable(images, requires_grad=False)), labels
        )
        net.cleargrads()
        loss.backward()
        optimizer.update()
    return film.data()


def double_film() -> Film:
    """A gradient of a gradient: functions that a sweep connects are drawn as backward."""
    x = tn.Variable(numpy.array([0.5, -0.25, 2.0]), name="x")
    with record("double backprop") as film:
        (gx,) = tn.grad([functions.sum(functions.exp(x) * x)], [x], enable_double_backprop=True)
        assert gx is not None
        functions.sum(gx * gx).backward()
    return film.data()


def loop_film(iterations: int = 4) -> Film:
    """A training loop; the last batch is smaller, so the last iteration has another picture."""
    random = numpy.random.default_rng(0)
    net = nn.Sequential(nn.Linear(2, 3), functions.tanh, nn.Linear(3, 2))
    data = random.normal(size=(2 * iterations - 1, 2)).astype(numpy.float32)
    optimizer = nn.Adam(net, lr=0.1)
    with record("loop", model=net) as film:
        for i in range(iterations):
            batch = data[2 * i : 2 * i + 2]
            loss = functions.softmax_cross_entropy(net(batch), numpy.arange(len(batch)))
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    return film.data()


def named_film(name: str) -> Film:
    x = tn.Variable(numpy.array([1.0, 2.0]), name=name)
    with record(name) as film:
        functions.sum(x * x).backward()
    return film.data()


def big_film(links: int = 400) -> Film:
    """A chain with more than 1,000 nodes, leaves counted, and a gradient for each leaf."""
    leaves = [tn.Variable(numpy.array([1.0, 0.5]), name=f"w{i}") for i in range(links)]
    x = tn.Variable(numpy.array([1.0, 2.0]), name="x")
    with record("chain") as film:
        y = x
        for leaf in leaves:
            y = y * leaf
        functions.sum(y).backward()
    return film.data()


class First(tn.FunctionNode):
    """z = x, of x and y.  dL/dx = dL/dz; y gets no gradient."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] + 0,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return grad_outputs[0], None


def none_film() -> Film:
    """A backward that has no gradient for one of its inputs."""
    x = tn.Variable(numpy.array([1.0, -2.0]), name="x")
    y = tn.Variable(numpy.array([3.0, 4.0]), name="y")
    with record("none") as film:
        functions.sum(First().apply((x, y))[0]).backward()
    return film.data()


def dropped_film() -> Film:
    """A graph that is let go of: arrays that it had kept for backward are freed."""
    x = tn.Variable(numpy.array([1.0, -2.0]), name="x")
    with record("dropped") as film:
        y = functions.exp(functions.exp(x))
        del y
        functions.sum(x).backward()
    data = film.data()
    assert {n for s in steps(data) for n in s["freed"]} & set(steps(data)[0]["retained"])
    return data


def replacing_film() -> Film:
    """As small_film, but x's gradient leaves the table in the step that puts in its sum."""
    film = small_film()
    step = next(s for s in steps(film) for entry in s["grad_inputs"] if entry[2] == "added")
    step["table"]["removed"] += [entry[0] for entry in step["grad_inputs"] if entry[2] == "added"]
    return film


FILMS: dict[str, Callable[[], Film]] = {
    "small": small_film,
    "square": square_film,
    "digits": digits_film,
    "double": double_film,
    "replacing": replacing_film,
    "dropped": dropped_film,
    "none": none_film,
}


# --- a second reading of the film ------------------------------------------------------------


class State:
    """What is true after some steps: the film's changes, one after the other."""

    def __init__(self, film: Film, position: int, iteration: int = 1) -> None:
        self.table: dict[str, int] = {}
        self.grads: dict[str, int] = {}
        self.kept: set[str] = set()
        self.freed: set[str] = set()
        self.value: dict[str, int] = {}
        for number in range(1, iteration + 1):
            self._begin(film["pictures"][film["iterations"][number - 1]["picture"]])
            done = [step for n, step in steps_of(film) if n == number]
            for step in done if number < iteration else done[: position + 1]:
                self._apply(step)
        nodes = film["pictures"][film["iterations"][iteration - 1]["picture"]]["nodes"]
        self.unborn = {node["id"] for node in nodes if node["born"] > position}
        ids = {node["id"] for node in nodes}
        self.value = {node: value for node, value in self.value.items() if node in ids}
        self.grads = {node: value for node, value in self.grads.items() if node in ids}

    def _begin(self, shown: Any) -> None:
        """An iteration begins: only what iterations share goes on."""
        self.table, self.kept, self.freed = {}, set(), set()
        own = {node["id"] for node in shown["nodes"]} - set(shown["shared"])
        self.value = {node: value for node, value in self.value.items() if node not in own}
        self.grads = {node: value for node, value in self.grads.items() if node not in own}

    def _apply(self, step: Any) -> None:
        for node in step["cleared"]:
            self.grads.pop(node, None)
        for node, _, _, value, _ in step["updates"]:
            self.value[node] = value
        if step["kind"] == "forward":
            for node, value in step["inputs"] + step["outputs"]:
                if value is not None:
                    self.value[node] = value
                self.freed.discard(node)
        self.kept |= set(step["retained"])
        gone = set(step["freed"]) - set(step["table"]["removed"])
        self.kept -= gone
        self.freed |= gone
        for node in step["table"]["removed"]:
            del self.table[node]
        self.table.update(dict(step["table"]["set"]))
        if step["kind"] == "end":
            for node, _, how, total in step["grad_inputs"]:
                if how != "none":
                    self.grads[node] = total


# --- the browser -----------------------------------------------------------------------------


class Shown:
    """A film's page in the browser, with all that it asked for and complained about."""

    def __init__(self, browser: Any, film: Film, file: Path, fragment: str, options: Any) -> None:
        self.film = film
        self.text = page(film)
        file.write_text(self.text, encoding="utf-8")
        self.url = file.as_uri()
        self.problems: list[str] = []
        self.context = browser.new_context(
            **{"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce"} | options
        )
        self.context.set_default_timeout(5000)
        self.context.on("request", self._request)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.goto(self.url + fragment)

    def _request(self, request: Any) -> None:
        if request.url.partition("#")[0] != self.url:
            self.problems.append(f"request: {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def close(self) -> None:
        self.context.close()
        assert not self.problems

    @property
    def step(self) -> int:
        return int(self.page.evaluate("document.documentElement.dataset.step"))

    def wait_for_step(self, step: int) -> None:
        wait_until(lambda: self.step == step)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def all(self, selector: str, what: str) -> list[Any]:
        """A JavaScript expression of each element ``e`` that a selector finds."""
        return self.page.evaluate(  # type: ignore[no-any-return]
            f"s => [...document.querySelectorAll(s)].map(e => {what})", selector
        )

    def ids(self, selector: str) -> set[str]:
        return set(self.all(f"#graph {selector}", "e.dataset.id"))

    def text_of(self, selector: str) -> str:
        return str(self.page.evaluate("s => document.querySelector(s).textContent", selector))

    def active(self, what: str) -> Any:
        return self.page.evaluate(f"(e => {what})(document.activeElement)")


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait from outside: in the page, its policy forbids the code that playwright would run."""
    for _ in range(500):
        if is_true():
            return
        time.sleep(0.01)
    pytest.fail("what was waited for did not happen")


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """Open films; at the end, no page may have asked for anything, or complained."""
    opened: list[Shown] = []

    def open_film(film: Film, fragment: str = "", **options: Any) -> Shown:
        file = tmp_path / f"film{len(opened)}.html"
        opened.append(Shown(browser, film, file, fragment, options))
        return opened[-1]

    yield open_film
    for shown in opened:
        shown.close()


# --- the document's text ---------------------------------------------------------------------


def test_the_document_holds_all_it_needs_and_allows_nothing_else() -> None:
    text = page(small_film())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    parts = dict(part.strip().split(" ", 1) for part in policy[1].split(";"))
    assert parts["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ('script type="module"', "script-src")):
        content = text.split(f"<{tag}>")[1].split(f"</{tag.split()[0]}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert parts[rule] == f"'sha256-{digest}'"
    assert text.count("<script") == 2
    text = text.split('<script type="application/json"')[0] + text.split("</script>", 1)[1]
    assert not re.search(r"<(link|img|iframe|object)\b|\bsrc=|url\((?!#)|@import", text)
    assert set(re.findall(r"https?://[^\"'\s]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert "\r" not in text


def test_the_film_is_read_back_as_it_was() -> None:
    film = named_film(NASTY)
    content = page(film).split('<script type="application/json" id="film">')[1]
    content = content.split("</script>")[0]
    assert "<" not in content
    assert json.loads(content) == packed(film)


def test_names_of_parts_of_the_template_are_only_text() -> None:
    film = named_film("$script $data ${style} $$ \\1")
    assert f"<title>{film['title']}</title>" in page(film)


def test_a_number_that_json_does_not_know_is_refused() -> None:
    film = small_film()
    film["values"][0]["cells"][0] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        page(film)


def test_a_film_of_the_digits_is_below_a_megabyte() -> None:
    assert len(page(digits_film()).encode()) < 1_000_000


# --- every step ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILMS)
def test_every_step_shows_what_the_film_says_in_both_directions(
    show: Callable[..., Shown], name: str
) -> None:
    film = FILMS[name]()
    shown = show(film)
    last = len(steps(film)) - 1
    for position in range(last + 1):
        check_step(shown, position)
        shown.press("ArrowRight")
    assert shown.step == last  # there is no step behind the last one
    for position in range(last, -1, -1):
        check_step(shown, position)
        shown.press("ArrowLeft")
    assert shown.step == 0


def test_every_step_of_every_iteration_shows_its_own_numbers(show: Callable[..., Shown]) -> None:
    film = loop_film()
    assert [one["picture"] for one in film["iterations"]] == [0, 0, 0, 1]
    shown = show(film)
    numbers = [
        (iteration, position)
        for iteration, one in enumerate(film["iterations"], 1)
        for position in range(len(film["pictures"][one["picture"]]["steps"]))
    ]
    for iteration, position in numbers:
        check_step(shown, position, iteration)
        shown.press("ArrowRight")
    for iteration, position in reversed(numbers):
        check_step(shown, position, iteration)
        shown.press("ArrowLeft")
    for key, iteration in [("End", 4), ("PageUp", 3), ("[", 2), ("]", 3), ("PageDown", 4)]:
        shown.press(key)
        check_step(shown, shown.step, iteration)


def test_iterations_have_a_slider_a_curve_and_an_address(show: Callable[..., Shown]) -> None:
    film = loop_film()
    shown = show(film, "#iteration=2&step=3")
    check_step(shown, 2, 2)
    losses = [film["values"][one["loss"]]["cells"][0] for one in film["iterations"]]
    assert shown.text_of("#iteration-text") == f"Iteration 2 of 4, loss {losses[1]}"
    shown.page.locator("#iteration").fill("3")
    check_step(shown, 2, 3)
    wait_until(lambda: shown.page.evaluate("location.hash") == "#iteration=3&step=3")
    points = re.findall(r"[ML]([\d.]+) ([\d.]+)", shown.page.get_attribute(".curve", "d"))
    assert [float(x) for x, _ in points] == pytest.approx([0, 33.33, 66.67, 100])
    heights = numpy.array([float(y) for _, y in points])
    assert list(numpy.argsort(heights)) == list(numpy.argsort([-loss for loss in losses]))
    shown.page.click("#whole")
    shown.page.select_option("#speed", "80")
    shown.page.click("#play")
    wait_until(lambda: shown.page.get_attribute("#play", "aria-label") == "Play")
    assert shown.page.input_value("#iteration") == "4"


def check_step(shown: Shown, position: int, iteration: int = 1) -> None:
    film = shown.film
    drawn = film["pictures"][film["iterations"][iteration - 1]["picture"]]
    own = [step for number, step in steps_of(film) if number == iteration]
    step = own[position]
    state = State(film, position, iteration)
    assert shown.step == position
    assert shown.text_of("#sentence") == step["title"]
    assert shown.text_of("#counter") == f"{position + 1} of {len(own)}"
    check_graph(shown, step, state, drawn)
    unborn = sum(edge["born"] > position for edge in drawn["edges"])
    assert len(shown.all("#graph .edge.unborn", "1")) == unborn
    check_values(shown, step)
    assert shown.all("#queue li[data-node]", "e.dataset.node") == [f for _, f in step["queue"]]
    ranks = [f"rank {rank}" for rank, _ in step["queue"]]
    assert shown.all("#queue .rank", "e.textContent") == ranks
    row = "[e.dataset.node, Number(e.querySelector('[data-value]').dataset.value)]"
    table = shown.all("#gradients li:not([hidden])", row)
    assert len(table) == len(state.grads | state.table)
    assert dict(table) == state.grads | state.table
    check_source(shown, step)


def check_graph(shown: Shown, step: Any, state: State, drawn: Any) -> None:
    way = direction_of(step)
    assert shown.ids(f".lit.{way}") == ({step["function"]} if step["function"] else set())
    assert not shown.ids(".lit:not(.function)")
    roles = {
        "output": {entry[0] for entry in step["outputs"] + step["grad_outputs"] + step["updates"]},
        "input": {entry[0] for entry in step["inputs"] + step["grad_inputs"]},
    }
    roles["output"] -= roles["input"]
    for role, nodes in roles.items():
        assert shown.ids(f".{role}") == nodes
        assert shown.ids(f".{role}.{way}") == nodes, way
    assert shown.ids(".node.unborn") == state.unborn
    assert shown.ids(".has-kept") == state.kept
    assert shown.ids(".freed") == state.freed
    assert shown.ids(".has-gradient") == set(state.table) | set(state.grads)
    lit = len(shown.all("#graph .edge.lit-forward, #graph .edge.lit-backward", "1"))
    edges = {(edge["from"], edge["to"]) for edge in drawn["edges"]}
    assert lit == len(moving(step) & edges)
    assert lit == len(shown.all(f"#graph .edge.lit-{way}", "1"))
    check_boxes(shown, state)


def check_boxes(shown: Shown, state: State) -> None:
    """Each box shows its value and its gradient, small arrays as numbers."""
    what = "[e.closest('[data-id]').dataset.id, Number(e.dataset.value), e.textContent]"
    gradients = state.grads | state.table
    for kind, wanted in (("value", state.value), ("gradient", gradients)):
        found = shown.all(f"#graph .numbers-here > .{kind}", what)
        assert {node: value for node, value, _ in found} == wanted
        for _, value, text in found:
            array = shown.film["values"][value]
            if all(isinstance(cell, int | float) for cell in array["cells"]) and "[" in text:
                numbers = [float(word) for word in text.strip("∇ []").split(",") if word.strip()]
                assert numbers == pytest.approx(array["cells"], rel=6e-3)


def direction_of(step: Any) -> str:
    return {"forward": "forward", "update": "update"}.get(step["kind"], "backward")


def moving(step: Any) -> set[tuple[str, str]]:
    """The edges along which an array or a gradient goes in a step."""
    f = step["function"]
    if f is None:
        return set()
    if step["kind"] == "forward":
        return {(x, f) for x, _ in step["inputs"]} | {(f, y) for y, _ in step["outputs"]}
    flown = {(entry[0], f) for entry in step["grad_inputs"] if entry[2] != "none"}
    return flown | {(f, y) for y, value in step["grad_outputs"] if value is not None}


def check_values(shown: Shown, step: Any) -> None:
    """The arrays in focus: all of the step's, and sums as old + new = total."""
    wanted = [v for _, v in step["grad_outputs"] + step["inputs"] + step["outputs"]]
    for _, value, how, total in step["grad_inputs"]:
        wanted += [value, total] if how == "added" else [value]
    for _, *three, moments in step["updates"]:
        wanted += [*three, *(after for _, _, after in moments)]
    found = set(shown.all("#focus-body .value", "Number(e.dataset.value)"))
    assert {value for value in wanted if value is not None} <= found
    for table in shown.page.query_selector_all("#focus-body .value:has(table)"):
        value = shown.film["values"][int(table.get_attribute("data-value"))]
        texts = table.eval_on_selector_all("td", "all => all.map(e => e.textContent)")
        for text, cell in zip(texts, value["cells"], strict=True):
            assert float(text) == pytest.approx(float(cell), rel=6e-3)


def check_source(shown: Shown, step: Any) -> None:
    film = shown.film
    if step["at"] is not None:
        file = film["files"][step["at"][0]]
        marked = shown.all("#user-code [aria-current]", "[e.dataset.line, e.textContent]")
        assert marked == [[str(step["at"][1]), file["lines"][step["at"][1] - file["first"]]]]
        box = "e.parentElement.parentElement.getBoundingClientRect()"
        inside = f"e.getBoundingClientRect().top >= {box}.top - 1"
        below = f"e.getBoundingClientRect().bottom <= {box}.bottom + 1"
        assert shown.all("#user-code [aria-current]", f"{inside} && {below}") == [True]
    if step["class"] is not None:
        direction = direction_of(step)
        known = film["classes"][step["class"]]
        lines = shown.all("#class-code li", "e.textContent")
        assert "\n".join(lines) == (known["lessons"][direction] or known[direction])
        assert shown.text_of("#method") == f"{step['class']}.{direction}"
        check_formula(shown, known["chain"])


def check_formula(shown: Shown, chain: dict[str, Any]) -> None:
    """The words around the set formulas are those of the docstring; letters may be others."""
    nodes = "[...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data)"
    (found,) = shown.all("#focus-body .formula", nodes)
    texts = [text for kind, text in chain["parts"] if kind == "text"]
    assert len(found) == len(texts)
    for text, own in zip(found, texts, strict=True):
        assert set(re.findall(r"[a-z]{5,}", own)) <= set(re.findall(r"[a-z]+", text))
    assert len(shown.all("#focus-body .formula math", "1")) == len(chain["parts"]) - len(texts)


def test_the_queue_tells_how_many_it_does_not_show(show: Callable[..., Shown]) -> None:
    film = small_film()
    number, step = next((n, s) for n, s in enumerate(picture(film)["steps"], 1) if s["queue"])
    step["queued"] = 25
    shown = show(film, f"#step={number}")
    assert shown.text_of("#queued") == "25 by falling rank"
    lines = shown.all("#queue li", "e.textContent")
    assert len(lines) == 2
    assert "runs next" in lines[0]
    assert lines[1] == "and 24 more"


def test_an_array_that_went_and_a_gradient_that_was_used_are_not_the_same(
    show: Callable[..., Shown],
) -> None:
    film = dropped_film()
    shown = show(film)
    said = []
    for position, step in enumerate(steps(film)):
        shown.page.goto(f"{shown.url}#step={position + 1}")
        lines = shown.all("#focus-body .line strong", "e.textContent")
        gone, used = "Array freed:" in lines, "Gradient used up:" in lines
        assert used == bool(set(step["freed"]) & set(step["table"]["removed"]))
        assert gone == bool(set(step["freed"]) - set(step["table"]["removed"]))
        said += ["gone"] * gone + ["used"] * used
    assert said == ["gone", "used"]


def test_contributions_are_added_up_in_sight(show: Callable[..., Shown]) -> None:
    film = square_film()
    shown = show(film)
    sums = []
    numbers = "[...e.querySelectorAll('td')].map(td => Number(td.textContent))"
    for position, step in enumerate(steps(film)):
        shown.page.goto(f"{shown.url}#step={position + 1}")
        for found in shown.all(".sum", numbers):
            a, b, total = (found[i : i + 4] for i in (0, 4, 8))
            assert numpy.allclose(numpy.add(a, b), total)
            assert any(found)
            sums.append(step["kind"])
        if step["kind"] == "backward" and step["class"] == "Multiply":
            tags = shown.all("#focus-body .tag", "e.textContent")
            assert tags == ["first", "added"]
    assert sums == ["backward", "backward", "end"]  # the last: to the x.grad that was there


# --- ways to move ----------------------------------------------------------------------------


def test_keys(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    last = len(steps(shown.film)) - 1
    for key, step in [
        ("ArrowRight", 1),
        ("n", 2),
        ("Space", 3),
        ("j", 4),
        ("ArrowLeft", 3),
        ("p", 2),
        ("k", 1),
        ("End", last),
        ("ArrowRight", last),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("Control+ArrowRight", 0),
        ("x", 0),
    ]:
        shown.press(key)
        assert shown.step == step, key


def test_keys_do_not_scroll_the_page(show: Callable[..., Shown]) -> None:
    shown = show(small_film(), viewport={"width": 600, "height": 500})
    assert shown.page.evaluate("document.documentElement.scrollHeight") > 1000
    for key in ("Space", "End", "ArrowRight", "Home"):
        shown.press(key)
        shown.page.evaluate("new Promise(requestAnimationFrame)")
        assert shown.page.evaluate("scrollY") == 0, key


def test_buttons_and_slider(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    last = len(steps(shown.film)) - 1
    for button, step in [("next", 1), ("next", 2), ("back", 1), ("last", last), ("first", 0)]:
        shown.page.click(f"#{button}")
        assert shown.step == step
    shown.page.focus("#next")
    shown.press("Space")  # the button's own key: one step, not two
    assert shown.step == 1
    shown.page.focus("#back")
    shown.press("Space")
    assert shown.step == 0
    shown.page.focus("#speed")
    shown.press("f", "n")  # the first letter of a speed
    assert shown.step == 0
    shown.press("Tab", "n")
    assert shown.step == 1
    shown.page.focus("#slider")
    shown.press("ArrowRight", "ArrowRight")
    assert shown.step == 3
    assert shown.page.get_attribute("#slider", "aria-valuetext") == f"Step 4 of {last + 1}"
    shown.press("End")
    assert shown.step == last
    shown.page.locator("#slider").fill("2")
    assert shown.step == 1
    shown.press("n")
    assert shown.step == 2


def test_a_button_that_has_no_more_to_do_keeps_the_keyboard(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    shown.page.focus("#last")
    shown.press("Enter")
    assert shown.active("e.id") == "last"
    assert shown.page.get_attribute("#last", "aria-disabled") == "true"
    assert shown.page.get_attribute("#first", "aria-disabled") == "false"


def test_the_film_plays_to_its_end_and_stops(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    last = len(steps(shown.film)) - 1
    shown.page.select_option("#speed", "2000")
    shown.page.click("#play")
    assert shown.page.get_attribute("#play", "aria-label") == "Pause"
    assert shown.page.get_attribute("#sentence", "aria-live") == "off"
    shown.page.select_option("#speed", "80")
    shown.wait_for_step(last)
    assert shown.page.get_attribute("#play", "aria-label") == "Play"
    assert shown.page.get_attribute("#sentence", "aria-live") == "polite"
    shown.press("a")  # again, from the start
    assert shown.step < last
    shown.press("ArrowLeft")  # a step by hand stops it
    assert shown.page.get_attribute("#play", "aria-label") == "Play"


def test_the_address_opens_a_step_and_follows(show: Callable[..., Shown]) -> None:
    shown = show(small_film(), "#step=3")
    assert shown.step == 2
    shown.page.evaluate("location.hash = 'step=5'")
    shown.wait_for_step(4)
    shown.press("n")
    wait_until(lambda: shown.page.evaluate("location.hash") == "#step=6")
    for fragment in ("step=1000", "step=0", "nothing"):
        shown.page.evaluate(f"location.hash = '{fragment}'")
    shown.wait_for_step(0)


# --- nodes in focus --------------------------------------------------------------------------


def test_a_node_in_focus_shows_its_array_and_gradient_at_each_step(
    show: Callable[..., Shown],
) -> None:
    film = small_film()
    shown = show(film)
    x = next(node["id"] for node in picture(film)["nodes"] if node["label"] == "x")
    shown.page.click(f"#graph [data-id={x}] .box")
    assert shown.text_of("#focus-title") == "x"
    for position in range(len(steps(film))):
        state = State(film, position)
        found = shown.all("#focus-body .value", "Number(e.dataset.value)")
        gradient = state.table.get(x, state.grads.get(x))
        assert found == [state.value[x], *([] if gradient is None else [gradient])]
        shown.press("ArrowRight")
    shown.press("Escape")
    assert shown.text_of("#focus-title") == "Backward has ended"


def test_a_name_leads_to_its_node_and_back(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    shown.page.click("#focus-body .card .name >> text=/^y$/")
    assert shown.text_of("#focus-title") == "y"
    assert shown.ids(".pinned") == {
        node["id"] for node in picture(shown.film)["nodes"] if node["label"] == "y"
    }
    shown.page.click("#unpin")
    assert shown.active("e.id") == "focus"
    assert not shown.ids(".pinned")
    assert shown.page.is_hidden("#unpin")


def test_a_function_in_focus_leads_to_its_steps(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    shown.page.click("#graph .function .box >> nth=0")
    texts = shown.all("#focus-body .steps button", "e.textContent")
    assert texts == ["1 Multiply, forward", "7 Multiply, backward"]
    check_formula(shown, shown.film["classes"]["Multiply"]["chain"])
    step = steps(shown.film)[0]
    arrays = [value for _, value in step["inputs"] + step["outputs"]]
    assert shown.all("#focus-body .value", "Number(e.dataset.value)") == arrays
    shown.page.click("#focus-body .steps button >> nth=1")
    assert shown.step == 6
    assert shown.active("e.textContent") == "7 Multiply, backward"  # still there
    assert shown.page.get_attribute("#focus-body .steps button >> nth=1", "aria-current") == "step"


def test_keyboard_alone_reaches_everything_and_is_never_trapped(
    show: Callable[..., Shown],
) -> None:
    shown = show(digits_film(), "#step=8")
    seen = tab_to_the_end(shown)
    for wanted in ("first", "next", "slider", "speed", "zoom-in", "fit", "user-code", "row v3"):
        assert wanted in seen, wanted
    assert steps(shown.film)[7]["function"] in seen  # the node of the step
    assert "step 7" in seen  # what the panel shows of that node
    shown.press("Tab", "Enter")  # the first link leads to the values of the step
    seen = tab_to_the_end(shown)
    assert seen[0] == "term" and seen[1].startswith("letter")  # the rank, then the formula
    cards = [one for one in seen if one.startswith("gradient in")]
    assert cards == ["gradient in 0", "gradient in 0 cells"]
    assert "gradient out 0 cells" in seen


def tab_to_the_end(shown: Shown) -> list[str]:
    """What the Tab key comes to, in its order, until it leaves the page."""
    seen = []
    name = "e.id || e.dataset.id || e.dataset.key || e.className"
    for _ in range(80):
        shown.press("Tab")
        seen.append(shown.active(f"e === document.body ? 'end' : {name}"))
        if seen[-1] == "end":
            return seen
    pytest.fail(f"Tab does not come to an end: {seen}")


def test_keyboard_in_the_graph(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    nodes = sorted(picture(shown.film)["nodes"], key=lambda n: (n["rank"], n["y"], n["x"]))
    order = [node["id"] for node in nodes]
    shown.page.focus("#graph [tabindex='0']")
    start = shown.active("e.dataset.id")
    assert start == steps(shown.film)[0]["function"]
    shown.press(*["ArrowUp"] * len(order))
    for wanted in order:
        assert shown.active("e.dataset.id") == wanted
        assert shown.page.get_attribute("#focus-body", "data-focus") == wanted
        assert shown.all("#graph .node[tabindex='0']", "e.dataset.id") == [wanted]
        shown.press("ArrowDown")
    shown.press("Enter", "Tab")  # kept, although the keyboard leaves the graph
    assert shown.page.get_attribute("#focus-body", "data-focus") == order[-1]
    shown.press("Escape")
    assert shown.page.get_attribute("#focus-body", "data-focus") == "step"
    shown.page.focus("#graph [tabindex='0']")
    shown.press("Tab", "Tab")  # behind the legend, to what the panel shows of the node
    assert shown.page.get_attribute("#focus-body", "data-focus") == order[-1]
    assert shown.active("e.closest('#focus') !== null")
    shown.press("Shift+Tab", "Shift+Tab", "Shift+Tab")  # it was only looked at: the step is back
    assert shown.active("e.id") == "fit"
    assert shown.page.get_attribute("#focus-body", "data-focus") == "step"
    shown.page.focus("#graph [tabindex='0']")
    shown.press("ArrowRight")
    assert shown.step == 1


def test_the_focus_of_the_keyboard_can_be_seen(show: Callable[..., Shown]) -> None:
    shown = show(small_film())
    for selector in ("#next", "#slider", "#user-code"):
        shown.page.focus(selector)
        shown.press("Shift")  # from now on, it is the keyboard that moves
        assert shown.active("getComputedStyle(e).outlineStyle") == "solid", selector
    shown.page.focus("#graph [tabindex='0']")
    assert shown.active("getComputedStyle(e.querySelector('.box')).strokeWidth") == "5px"


# --- arrays ----------------------------------------------------------------------------------


def test_a_heat_map_tells_the_number_of_each_cell(show: Callable[..., Shown]) -> None:
    array = numpy.arange(48.0).reshape(2, 3, 8) - 20
    x = tn.Variable(array, name="x")
    with record() as film:
        functions.exp(x)
        functions.exp(x)
    shown = show(film.data())
    frame = "#focus-body .heat-frame"
    assert shown.page.get_attribute(frame, "aria-label") == (
        "x: heat map of 6 by 8 cells, min -20, max 27. Arrow keys read cells."
    )
    shown.page.focus(frame)
    readout = "#focus-body .readout"
    assert shown.text_of(readout) == "[0, 0, 0] = -20"
    shown.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp")
    assert shown.text_of(readout) == f"[0, 2, 2] = {array[0, 2, 2]:g}"
    shown.press(*["ArrowDown"] * 9, *["ArrowRight"] * 9)
    assert shown.text_of(readout) == "[1, 2, 7] = 27"
    assert shown.step == 0
    box = shown.page.locator(f"{frame} svg").first.bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + 1)
    assert shown.text_of(readout) == "[0, 0, 7] = -13"
    shown.page.mouse.move(1, 1)
    assert shown.text_of(readout) == "min -20, max 27"


def test_cells_have_the_colour_of_their_sign_and_size(show: Callable[..., Shown]) -> None:
    array = numpy.zeros((5, 8))
    array[1, 2], array[3, 4], array[4, 7] = 8.0, -8.0, numpy.nan
    x = tn.Variable(array, name="x")
    with record() as film:
        functions.relu(x)
    shown = show(film.data())
    what = "[e.getAttribute('class'), e.getAttribute('d'), Number(e.getAttribute('fill-opacity'))]"
    assert sorted(shown.all(".card[data-node=v0] .heat:not(.bar) path", what)) == [
        ["bad", "M7 4h1v1h-1z", 0],
        ["minus", "M4 3h1v1h-1z", 1],
        ["plus", "M2 1h1v1h-1z", 1],
    ]
    assert "1 nan or inf" in shown.text_of(".card[data-node=v0] .has-bad")


def test_numbers_that_are_none(show: Callable[..., Shown]) -> None:
    x = tn.Variable(numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, 1e-7, 2.5e9]), name="x")
    with record() as film:
        functions.relu(x)
    shown = show(film.data())
    texts = shown.all(".card[data-node=v0] td", "e.textContent")
    assert texts == ["nan", "inf", "-inf", "0", "1.00e-7", "2.50e+9"]
    assert shown.all(".card[data-node=v0] td", "e.className") == ["bad"] * 3 + ["plus"] * 3


# --- everywhere ------------------------------------------------------------------------------


def test_a_name_that_looks_like_html_is_text(show: Callable[..., Shown]) -> None:
    film = named_film(NASTY)
    film["note"] = NASTY
    picture(film)["nodes"][0]["facts"] = [NASTY[:30]]
    shown = show(film)
    shown.press("End")
    shown.page.click("#graph .variable .box >> nth=0")
    assert shown.page.title() == NASTY
    assert shown.text_of("#title") == NASTY
    assert shown.text_of("#notice") == NASTY
    assert shown.text_of("#focus-title") == NASTY
    assert NASTY in shown.all("#gradients .name", "e.textContent")
    assert shown.page.evaluate("document.scripts.length") == 2
    assert shown.page.evaluate("document.images.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["small", "digits"])
def test_light_dark_and_narrow(show: Callable[..., Shown], name: str, scheme: str) -> None:
    shown = show(FILMS[name](), color_scheme=scheme)
    for width in (1400, 900, 360):
        shown.page.set_viewport_size({"width": width, "height": 800})
        for key in ("Home", "End", "p", "p"):
            shown.press(key)
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    assert (sum(colours(shown, "body")[0][1]) > 600) == (scheme == "light")
    for selector in ("#sentence", ".quiet", ".facts", ".code span", ".tag", ".chip", ".formula"):
        for text, background in colours(shown, selector):
            assert contrast(text, background) >= 4.5, selector


def colours(shown: Shown, selector: str) -> list[tuple[list[float], list[float]]]:
    """The colour of each element's text, and of what is behind it."""
    what = """(() => {
        const style = (element) => getComputedStyle(element);
        let behind = e;
        while (!style(behind).backgroundColor.startsWith("rgb(")) behind = behind.parentElement;
        const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
        return [numbers(style(e).color), numbers(style(behind).backgroundColor)];
    })()"""
    return [(text, background) for text, background in shown.all(selector, what)]


def contrast(a: list[float], b: list[float]) -> float:
    """The ratio of two colours' luminances, as WCAG 2 defines it."""
    lights = []
    for colour in (a, b):
        linear = [
            v / 12.92 if (v := c / 255) <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for c in colour[:3]
        ]
        lights.append(float(numpy.dot(linear, [0.2126, 0.7152, 0.0722])))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_screen_readers_get_a_name_for_every_control(show: Callable[..., Shown]) -> None:
    shown = show(digits_film(), "#step=8")
    nameless = "(e.ariaLabel || e.labels?.[0]?.textContent || e.textContent).trim() === ''"
    for selector in ("button", "input", "select", "[tabindex]", "[role=button]"):
        found = shown.all(f"{selector}:not(#focus)", f"{nameless} ? e.outerHTML : ''")
        assert found
        assert not any(found)
    assert shown.page.get_attribute("#sentence", "aria-live") == "polite"
    label = shown.page.get_attribute("#graph .lit", "aria-label")
    assert label is not None
    assert label.startswith("ReLU, function, ")
    assert "runs backward" in label


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_little_motion_is_respected(show: Callable[..., Shown], motion: str) -> None:
    shown = show(digits_film(), reduced_motion=motion)
    assert set(shown.all("*", "getComputedStyle(e).transitionDuration")) == {"0s"}
    assert set(shown.all("*", "getComputedStyle(e).animationName")) == {"none"}
    shown.page.evaluate(
        """() => {
          window.scrolled = [];
          Element.prototype.scrollTo = (options) => scrolled.push(options.behavior);
        }"""
    )
    shown.press(*"++++++++", "End", "p", "p", "p", "p", "p", "p")  # the view follows the steps
    expected = {"auto"} if motion == "reduce" else {"smooth"}
    assert set(shown.page.evaluate("scrolled")) == expected


def test_zoom_and_fit(show: Callable[..., Shown]) -> None:
    shown = show(digits_film())
    width = picture(shown.film)["width"]
    size = "Number(e.getAttribute('width'))"
    (fitted,) = shown.all("#graph", size)
    shown.page.click("#zoom-in")
    assert shown.all("#graph", size) == [pytest.approx(fitted * 1.25)]
    shown.press("-", "-")
    assert shown.all("#graph", size) == [pytest.approx(fitted * 1.25 * 0.64)]
    shown.press("+", "0")
    assert shown.all("#graph", size) == [pytest.approx(fitted)]
    assert fitted <= width * 1.25 + 1e-6
    for side in ("Width", "Height"):
        assert shown.all("#view", f"e.scroll{side} <= e.client{side}") == [True]


def test_an_update_is_an_equation_of_arrays(show: Callable[..., Shown]) -> None:
    """The numbers come first, the docstring last and without its example."""
    p = nn.Parameter(numpy.asarray([1.0, 2.0]), name="p")
    optimizer = nn.SGD([p], lr=0.5)
    with record("one update") as film:
        functions.sum(p * p).backward()
        optimizer.update()
    page = show(film.data(), fragment="#step=99").page
    shown = page.inner_text("#focus-body").split("\n")
    words = [word for word in shown if word in ("after", "=", "before", "gradient", "0.5")]
    assert words[:5] == ["after", "=", "before", "0.5", "gradient"]
    text = "\n".join(shown)
    assert text.index("after") < text.index("Stochastic gradient descent") and ">>>" not in text


def test_the_film_runs_in_the_frame_of_a_notebook(browser: Any) -> None:
    problems: list[str] = []
    context = browser.new_context()
    outer = context.new_page()
    outer.on("console", lambda message: problems.append(message.text))
    outer.on("pageerror", lambda error: problems.append(str(error)))
    frame = html.escape(page(small_film()), quote=True)
    outer.set_content(f'<iframe srcdoc="{frame}" width="900" height="700"></iframe>')
    inner = outer.frames[1]
    inner.wait_for_selector("#graph .lit")
    inner.click("#next")
    inner.focus(".skip")
    outer.keyboard.press("Enter")
    outer.wait_for_timeout(400)  # the address would change by now
    assert inner.evaluate("document.documentElement.dataset.step") == "1"
    assert inner.evaluate("document.activeElement.id") == "focus"
    context.close()
    assert not problems


def test_a_film_without_steps_and_one_with_a_note(show: Callable[..., Shown]) -> None:
    with record("nothing") as film:
        pass
    shown = show(film.data())
    assert "no steps" in shown.text_of("#notice")
    assert shown.page.is_hidden("#controls")
    noted = small_film()
    noted["note"] = "It ended early."
    shown = show(noted)
    assert shown.text_of("#notice") == "It ended early."
    shown.press("n")
    assert shown.step == 1


def test_a_long_film_changes_a_few_elements_with_each_step(show: Callable[..., Shown]) -> None:
    """Independent of the film's length: what a browser does in a step is what it must draw."""
    changed = {}
    for links in (100, 400):
        film = big_film(links)
        shown = show(film)
        shown.press("End")
        shown.page.evaluate(
            """() => {
              window.changed = new Set();
              const note = (records) => records.forEach((record) => {
                changed.add(record.target);
                record.addedNodes.forEach((node) => node.querySelectorAll &&
                  [node, ...node.querySelectorAll("*")].forEach((child) => changed.add(child)));
              });
              window.observer = new MutationObserver(note);
              observer.observe(document, {attributes: true, childList: true, subtree: true});
            }"""
        )
        counts = []
        for _ in range(10):
            shown.press("ArrowLeft")
            count = "() => { const size = changed.size; changed.clear(); return size; }"
            counts.append(shown.page.evaluate(count))
        assert shown.step == len(steps(film)) - 11
        changed[links] = max(counts[2:])  # the first steps back undo the end of the sweep
    assert len(picture(film)["nodes"]) > 1000
    assert 10 < changed[400] <= changed[100] + 5
    assert changed[400] < 300

"""The memory of a film: its numbers, the holders, the growth, the words and the page."""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.__main__ import main
from tinynode.core.hooks import FunctionHook
from tinynode.hooks import MemoryHook
from tinynode.show import Film
from tinynode.show.films.memory_growth import bytes_text
from tinynode.show.films.memory_timeline import MemoryTimeline
from tinynode.show.films.recorder import record
from tinynode.show.films.scripts import film_of_script
from tinynode.show.page.document import page

F = tn.functions
DEVICES = ["numpy", "fast", "strict"]


class RetainedNow(FunctionHook):
    """The bytes that functions retain at the end of each step of a film, by ``MemoryHook``."""

    name = "retained now"

    def __init__(self, film: Film, memory: MemoryHook) -> None:
        self.film = film
        self.memory = memory
        self.found: dict[int, int] = {}

    def note(self, *given: Any) -> None:
        self.found.setdefault(len(self.film) - 1, self.memory.current_bytes())

    applied = sweep_began = after_accumulate = sweep_ended = updated = note


def perceptron() -> nn.Sequential:
    tn.seed(0)
    return nn.Sequential(nn.Linear(8, 16), F.tanh, nn.Linear(16, 3))


def train(iterations: int = 4, keep: Callable[[tn.Variable], Any] | None = None) -> list[Any]:
    """Train a perceptron with Adam; ``keep`` gives what the program keeps of each loss."""
    net = perceptron()
    optimizer = nn.Adam(net)
    x, t = np.ones((5, 8), np.float32), np.arange(5) % 3
    kept: list[Any] = []
    for _ in range(iterations):
        loss = F.softmax_cross_entropy(net(x), t)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        if keep is not None:
            kept.append(keep(loss))
    return kept


def trains() -> None:
    train()


def keeps_losses() -> None:
    train(keep=lambda loss: loss)


def checkpoints() -> None:
    net = perceptron()
    y = tn.checkpoint(net, tn.Variable(np.ones((5, 8), np.float32)))
    F.sum(y * y).backward()


def unrolls() -> None:
    """A recurrence with a cut in the middle."""
    w, h = tn.asarray(np.eye(4) / 2), tn.asarray(np.ones((3, 4)))
    for step in range(6):
        h = F.tanh(h @ w)
        if step == 2:
            h.unchain_backward()
    F.sum(h * h).backward()


def computes_without_a_graph() -> None:
    with tn.no_backprop_mode():
        F.sum(perceptron()(np.ones((5, 8), np.float32)))


def differentiates_twice() -> None:
    x = tn.asarray([0.5, 1.0, 2.0])
    (gx,) = tn.grad(
        [F.tanh(x) * x], [x], [tn.asarray([1.0, 1.0, 1.0])], enable_double_backprop=True
    )
    assert gx is not None
    F.sum(gx * gx)


PROGRAMS = [
    *(trains, keeps_losses, checkpoints, unrolls, computes_without_a_graph, differentiates_twice)
]


# --- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_functions_retain_is_the_number_of_the_memory_hook(
    program: Callable[[], None], device: str
) -> None:
    with tn.using_device(device), record() as film, MemoryHook() as memory:
        probe = RetainedNow(film, memory)
        with probe:
            program()
    timeline = film.memory()
    assert {step: timeline.retained_at(step) for step in probe.found} == probe.found
    assert len(probe.found) == len(film) == len(timeline)
    is_retaining = program is not computes_without_a_graph
    assert (max(probe.found.values()) > 0) == is_retaining


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_bytes_of_a_step_are_those_of_its_arrays(program: Callable[[], None]) -> None:
    with record() as film:
        program()
    timeline = film.memory()
    for step in range(len(film) + 1):
        by_kind = dict.fromkeys(timeline.kinds, 0)
        for one in timeline.held_at(step):
            by_kind[one.kind] += one.bytes
            assert one.made <= step and (one.freed is None or one.freed > step)
        assert by_kind == timeline.bytes_at(step)
    totals = [timeline.total_at(step) for step in range(len(film))]
    assert totals[timeline.peak_step] == max(totals)


def test_kinds_and_bytes_of_a_training_step() -> None:
    with record() as film:
        train(2)
    timeline = film.memory()
    weights = 4 * (8 * 16 + 16 + 16 * 3 + 3)
    start, middle, end = (timeline.bytes_at(step) for step in (0, 9, 20))
    assert start["parameters"] == 4 * (8 * 16 + 16) and start["data"] == 4 * 5 * 8
    assert start["results"] == 4 * 5 * 16 and start["optimizer"] == start["gradients"] == 0
    assert middle["parameters"] == middle["gradients"] - 4 == weights  # and the seed of the loss
    assert end["optimizer"] == 2 * weights  # the moments
    cleared = timeline.bytes_at(15)  # the second backward pass has begun
    assert cleared["gradients"] == 4


def test_views_count_once() -> None:
    base = np.ones((100, 4))
    x = tn.Variable(base[:10])
    with record() as film:
        y = F.reshape(x, (4, 10))
        z = y * y
    timeline = film.memory()
    assert timeline.bytes_at(1)["data"] == base.nbytes
    assert timeline.bytes_at(1)["results"] == z.array.nbytes
    (data,) = [one for one in timeline.held_at(1) if one.kind == "data"]
    assert data.bytes == base.nbytes and "Variable x" in data.holders


def test_an_array_counts_for_the_first_holder_and_names_the_others() -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    with record() as film:
        y = F.exp(x)
        z = F.sum(y)
        del y
        F.exp(z)
    timeline = film.memory()

    def of_exp(step: int) -> list[Any]:
        found = [one for one in timeline.held_at(step) if one.made_by == "Exp" and one.made == 0]
        return [(one.kind, re.sub(r"\(.*\)", "()", " ".join(one.holders))) for one in found]

    assert of_exp(0) == of_exp(1) == [("results", "Variable y Exp ()")]
    assert of_exp(2) == [("retained", "Exp ()")]


def test_a_gradient_counts_for_the_node_that_it_reached() -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    with record() as film:
        y = x + 1.0
        y.grad = np.ones(3, np.float32)
        y.backward()
    timeline = film.memory()
    names = [
        [holder for one in timeline.held_at(step) for holder in one.holders if "grad" in holder]
        for step in range(1, 3)
    ]
    assert names == [["gradient of y"], ["gradient of x"]]  # one array, since Add hands it on


def test_the_gradients_of_a_recorded_backward_pass_are_gradients() -> None:
    x = tn.asarray([0.5, 1.0, 2.0])
    with record() as film:
        tn.grad([F.tanh(x)], [x], [tn.asarray([1.0, 1.0, 1.0])], enable_double_backprop=True)
    timeline = film.memory()
    ends = [i for i, step in enumerate(film.steps) if step["kind"] == "end"]
    (gx,) = [one for one in timeline.held_at(ends[0]) if "gradient of x" in one.holders]
    assert gx.kind == "gradients" and film.steps[gx.made]["kind"] == "forward"


def test_a_plain_array_without_a_variable_counts() -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    with record() as film:
        kept = (x + x).array
        F.sum(x)
        del kept
        F.sum(x)
    timeline = film.memory()
    assert [timeline.bytes_at(step)["plain arrays"] for step in range(3)] == [0, 12, 0]


def test_other_arrays_of_a_variable() -> None:
    x = tn.Variable(np.ones(3), requires_grad=False)
    with record() as film:
        F.sum(x)
        x.array = np.ones(3)
        F.sum(x)
        y = (x + x).detach()
        F.sum(x)
        del y
        F.sum(x)
    timeline = film.memory()
    assert [timeline.bytes_at(step)["data"] for step in range(5)] == [24] * 5
    assert [timeline.bytes_at(step)["plain arrays"] for step in range(5)] == [0] * 5
    assert [timeline.bytes_at(step)["results"] for step in range(2, 5)] == [24, 24 + 8, 8]


def test_checkpoint_retains_less_and_computes_again_in_backward() -> None:
    net = perceptron()
    x = tn.Variable(np.ones((64, 8), np.float32))
    with record() as film:
        F.sum(net(x)).backward()
        y = tn.checkpoint(net, x)
        F.sum(y).backward()
        del y
        F.sum(x)
    timeline = film.memory()
    sweeps = [i for i, step in enumerate(film.steps) if step["kind"] == "sweep"]
    first, second = (i for i in sweeps if film.steps[i]["depth"] == 1)
    hidden = 4 * 64 * 16
    whole, less = timeline.retained_at(first), timeline.retained_at(second)
    assert whole - less == 2 * hidden - 4 * (16 + 3)  # the checkpoint retains the biases, too
    again = max(timeline.retained_at(step) for step in range(second, len(film)))
    assert again - less == 2 * hidden
    assert timeline.retained_at(len(film) - 1) == 0


def test_a_cut_frees_what_functions_retained() -> None:
    with record() as film:
        h = tn.asarray(np.ones(4))
        for _ in range(3):
            h = F.tanh(h)
        before = len(film) - 1
        h.unchain_backward()
        F.sum(h)
    timeline = film.memory()
    assert timeline.retained_at(before) == 3 * 32
    assert timeline.retained_at(before + 1) == 0
    assert timeline.bytes_at(before + 1)["retained"] == 0


def test_a_film_keeps_no_array_alive() -> None:
    x = tn.asarray(np.ones(300))
    gc.collect()
    gc.disable()
    try:
        with record() as film:
            y = F.exp(x)
            reference = weakref.ref(y.array)
            del y
            F.sum(x)
            assert reference() is None
            loss = F.sum(F.exp(x))
            loss.backward()
            watched = [weakref.ref(loss), weakref.ref(x.grad)]
            del loss
            x.cleargrad()
            assert [one() for one in watched] == [None, None]
        timeline = film.memory()
    finally:
        gc.enable()
    freed = {one.freed for one in timeline.held_at(0) if one.made_by == "Exp"}
    assert freed == {1}


def test_an_empty_film() -> None:
    with record() as film:
        pass
    timeline = film.memory()
    assert len(timeline) == 0 and timeline.growth is None
    assert str(timeline) == "No arrays: no step of tinynode was recorded."
    assert repr(timeline) == "<MemoryTimeline: no steps>"


def test_steps_behind_the_end_of_a_cut_film_do_not_count() -> None:
    x = tn.asarray(np.ones(4))
    with pytest.warns(UserWarning, match="Cut"), record(most=2) as film:
        for _ in range(4):
            y = F.exp(x)
    del y
    timeline = film.memory()
    assert len(timeline) == 2 and timeline.total_at(1) == 3 * 32
    assert json.loads(json.dumps(film.data()["memory"])) == film.data()["memory"]


# --- growth --------------------------------------------------------------------------------------


def film_of(text: str, tmp_path: Path) -> MemoryTimeline:
    """The memory of a script with imports in two lines."""
    start = "import numpy as np, tinynode as tn\nfrom tinynode import functions as F, nn\n"
    path = tmp_path / "script.py"
    path.write_text(start + text, encoding="utf-8")
    film, status = film_of_script(str(path), [])
    assert status == 0
    return film.memory()


LOOP = """\
w = tn.Variable(np.full((10, 10), 0.1), name="w")
sgd = nn.SGD([w], lr=0.01)
x = np.ones((4, 10))
kept = []
for _ in range({count}):
    h = F.tanh(x @ w)
    loss = F.sum(h * h)
    w.cleargrad()
    loss.backward()
    sgd.update()
    {keep}
"""

RECURRENCE = """\
w = tn.Variable(np.full((10, 10), 0.1), name="w")
sgd = nn.SGD([w], lr=0.01)
h = tn.Variable(np.ones((4, 10)), requires_grad=False)
for _ in range(6):
    h = F.tanh(h @ w)
    loss = F.sum(h * h)
    w.cleargrad()
    loss.backward()
    sgd.update()
    {cut}
"""


def test_a_list_of_losses_is_growth(tmp_path: Path) -> None:
    timeline = film_of(LOOP.format(count=6, keep="kept.append(loss)"), tmp_path)
    growth = timeline.growth
    assert growth is not None and growth["rounds"] == 4
    # x @ w, h and the old w, retained by functions; and the loss
    assert growth["bytes"] == 8 * (2 * 4 * 10 + 10 * 10 + 1)
    assert growth["sentence"] == (
        "Memory grows by 1.41 KiB per iteration, and is never freed: 1.41 KiB retained by the "
        "graphs of results that the program keeps: loss, made at script.py:9; 8 B in results that "
        "the program keeps: loss, made at script.py:9."
    )
    kept_by = [group["kept_by"][:2] for group in growth["groups"]]
    assert {tuple(one) for one in kept_by} == {(4, "loss")}
    assert growth["sentence"] in str(timeline)


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ("pass", None),
        ("kept.append(float(loss))", None),
        ("loss.unchain_backward()", None),
        ("kept.append(loss.array)", "8 B in plain arrays that the program keeps: loss, made at"),
        ("kept.append(h.array)", "320 B in plain arrays that the program keeps: h, made at"),
        ("kept.append(w.grad_var)", "800 B in gradients that the program keeps: gradient of w"),
        ("kept.append(x.copy())", None),  # the film does not meet such an array
    ],
)
def test_what_grows_and_what_does_not(keep: str, words: str | None, tmp_path: Path) -> None:
    growth = film_of(LOOP.format(count=6, keep=keep), tmp_path).growth
    assert (growth is None) == (words is None)
    if growth is not None and words is not None:
        assert words in growth["sentence"]


def test_growth_needs_four_backward_passes(tmp_path: Path) -> None:
    found = [
        film_of(LOOP.format(count=count, keep="kept.append(loss)"), tmp_path).growth is not None
        for count in (1, 3, 4)
    ]
    assert found == [False, False, True]


@pytest.mark.parametrize("cut", ["h.unchain_backward()", "pass"])
def test_a_missing_cut_is_growth(cut: str, tmp_path: Path) -> None:
    timeline = film_of(RECURRENCE.format(cut=cut), tmp_path)
    if cut != "pass":
        assert timeline.growth is None
        return
    assert timeline.growth is not None
    assert timeline.growth["sentence"].endswith(
        "retained by the graph of h, made at script.py:7, which goes back through the iterations "
        "(unchain_backward() cuts it)."
    )


def test_growth_of_a_loop_without_backward(tmp_path: Path) -> None:
    text = "x = tn.asarray(np.ones(5))\nkept = []\nfor i in range(6):\n    kept.append({})\n"
    growth = film_of(text.format("F.exp(x)"), tmp_path).growth
    assert growth is not None and growth["bytes"] == 40
    assert film_of(text.format("float(F.sum(x))"), tmp_path).growth is None


@pytest.mark.parametrize("count", [4, 6, 8, 20])
def test_growth_without_backward_is_one_array_per_iteration(count: int) -> None:
    w = tn.Variable(np.ones(100), name="w")
    kept = []
    with record() as film:
        for _ in range(count):
            y = F.tanh(w)  # the name keeps the Variable into the next iteration
            kept.append(y.array)
    growth = film.memory().growth
    assert growth is not None and (growth["bytes"], growth["rounds"]) == (800, count - 2)


# --- the size of the film, the words, the command ------------------------------------------------


@pytest.mark.parametrize("keep", [None, lambda loss: loss])
def test_the_memory_of_a_long_film_is_small(keep: Any) -> None:
    with record() as film:
        kept = train(300, keep)
    assert len(kept) == (0 if keep is None else 300)
    data = film.data()
    assert len(json.dumps(data["memory"], separators=(",", ":"))) < 12_000
    assert len(data["memory"]["rows"]) == 300 and len(data["memory"]["starts"]) < 8
    timeline = film.memory()
    assert (timeline.growth is None) == (keep is None)
    assert len(str(timeline).splitlines()) < 120


def test_bytes_in_words() -> None:
    assert [bytes_text(n) for n in (0, 1023, 1024, 12 << 20)] == [
        "0 B",
        "1023 B",
        "1.00 KiB",
        "12.00 MiB",
    ]


def test_the_command_prints_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    film_of(LOOP.format(count=5, keep="kept.append(loss)"), tmp_path)
    assert main(["step", "--memory", "script.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("At most ") and "in iteration 5 of 5, at step" in out
    assert re.search(r"KiB +\d  retained +w +SGD script.py:12 +MatMul \(script.py:8\)", out)
    assert "Growth: Memory grows by 1.41 KiB per iteration" in out
    assert not (tmp_path / "script.html").exists()
    assert main(["step", "script.py", "--memory", "--output", "film.json"]) == 0
    assert (tmp_path / "film.json").exists()
    capsys.readouterr()
    for other in ("--quiz", "--serve", "--text", "--against=script.py"):
        assert main(["step", "--memory", other, "script.py"]) == 2
        assert "leave out" in capsys.readouterr().err


# --- the page, in a browser ----------------------------------------------------------------------


class Shown:
    """The page of a film, and its errors."""

    def __init__(self, browser: Any, film: Film, path: Path, **options: Any) -> None:
        path.write_text(page(film.data()), encoding="utf-8")
        self.page = browser.new_page(viewport={"width": 1300, "height": 900}, **options)
        self.errors: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(path.as_uri())

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).text_content())

    def rows(self, selector: str) -> list[list[str]]:
        """The cells of the visible rows of a table."""
        rows = self.page.locator(f"{selector} tr:visible")
        return [
            [cell.strip() for cell in rows.nth(i).locator("th, td").all_text_contents()]
            for i in range(rows.count())
        ]


@pytest.mark.slow
@pytest.mark.parametrize("program", [keeps_losses, checkpoints])
def test_the_page_shows_the_numbers_of_the_timeline(
    program: Callable[[], None], browser: Any, tmp_path: Path
) -> None:
    with record() as film:
        program()
    timeline = film.memory()
    shown = Shown(browser, film, tmp_path / "film.html")
    shown.page.evaluate("document.getElementById('memory').open = true")
    peak = bytes_text(timeline.total_at(timeline.peak_step))
    for step in range(len(film)):
        summary = shown.text("#memory-summary")
        assert summary.startswith(
            f"{bytes_text(timeline.total_at(step))} at this step, at most {peak}"
        )
        kinds = {name: now for name, now, _ in shown.rows("#memory-kinds")}
        for kind, size in timeline.bytes_at(step).items():
            assert kinds.get(kind, "0 B") == bytes_text(size)
        largest = timeline.held_at(step)[0]
        assert any(largest.name in row[1] for row in shown.rows("#memory-holders"))
        shown.page.keyboard.press("ArrowRight")
    assert not shown.errors


@pytest.mark.slow
def test_growth_stands_on_top_of_the_page_and_small_films_below(
    browser: Any, tmp_path: Path
) -> None:
    films = []
    for keep in (None, lambda loss: loss):
        with record() as film:
            net = nn.Sequential(nn.Linear(4, 64), F.tanh, nn.Linear(64, 1))
            kept = []
            for _ in range(5 if keep else 1):
                loss = F.mean(net(np.ones((8, 4), np.float32)) ** 2)
                loss.backward()
                kept.append(loss)
        films.append(film)
    small = Shown(browser, films[0], tmp_path / "small.html")
    grows = Shown(browser, films[1], tmp_path / "grows.html")
    is_before = "document.querySelector('main').previousElementSibling.id === 'memory'"
    assert [one.page.evaluate(is_before) for one in (small, grows)] == [False, True]
    is_open = "document.getElementById('memory').open"
    assert [one.page.evaluate(is_open) for one in (small, grows)] == [False, True]
    assert not small.page.locator("#memory-strip").is_visible()
    assert grows.page.locator("#memory-strip").is_visible()
    growth = films[1].memory().growth
    assert growth is not None and grows.text("#memory-growth") == growth["sentence"]
    assert not small.errors and not grows.errors


@pytest.mark.slow
def test_a_click_on_a_bar_goes_to_the_step(browser: Any, tmp_path: Path) -> None:
    with record() as film:
        train(4, keep=lambda loss: loss)
    timeline = film.memory()
    shown = Shown(browser, film, tmp_path / "film.html")
    shown.page.evaluate("document.getElementById('memory').open = true")

    def place() -> tuple[int, int]:
        found = shown.page.evaluate("() => ({...document.documentElement.dataset})")
        return int(found["iteration"]), int(found["step"])

    strip = shown.page.locator("#memory-strip")
    box = strip.bounding_box()
    strip.click(position={"x": 8 + (box["width"] - 16) * 6.5 / 11, "y": 20})
    assert place() == (0, 6)
    bars = shown.page.locator("#memory-iterations")
    bars.click(position={"x": bars.bounding_box()["width"] * 0.6, "y": 20})
    assert place()[0] == 2
    shown.page.locator("#memory-peak").focus()
    shown.page.keyboard.press("Enter")
    assert place() == timeline.place(timeline.peak_step)
    shown.page.locator("#memory summary").focus()
    shown.page.keyboard.press("Space")  # closes the section, and goes to no step
    assert not shown.page.evaluate("document.getElementById('memory').open")
    assert place() == timeline.place(timeline.peak_step)
    assert not shown.errors


@pytest.mark.slow
def test_names_are_text_and_a_phone_has_no_horizontal_scroll(browser: Any, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>&amp;" * 3
    x = tn.Variable(np.ones((64, 64)), name=name)
    with record(name) as film:
        F.sum(x * x).backward()
    shown = Shown(browser, film, tmp_path / "film.html")
    shown.page.set_viewport_size({"width": 390, "height": 800})
    shown.page.evaluate("document.getElementById('memory').open = true")
    assert name in shown.text("#memory-holders")
    assert shown.page.locator("#memory img").count() == 0
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not shown.page.evaluate(wide)
    assert not shown.errors


@pytest.mark.parametrize("keeps_graphs", [False, True])
def test_growth_has_the_data_that_leaked_graphs_hold(keeps_graphs: bool) -> None:
    w = tn.Variable(np.ones(3), name="w")
    batches, losses = [], []
    with tn.show.record() as film:
        for _ in range(6):
            batch = np.ones((1000, 3))
            batches.append(batch)  # the program's own list is no growth of graphs
            loss = F.sum(F.tanh(tn.asarray(batch) @ w))
            w.cleargrad()
            loss.backward()
            losses.append(loss if keeps_graphs else float(loss))
    growth = film.memory().growth
    if not keeps_graphs:
        assert growth is None
        return
    sizes = {group["kind"]: group["bytes"] for group in growth["groups"]}
    assert sizes["data"] == 1000 * 3 * 8
    assert growth["bytes"] == sum(sizes.values())
    assert "23.44 KiB of data that graphs keep: " in growth["sentence"]

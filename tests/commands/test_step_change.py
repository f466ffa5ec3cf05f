"""``step --serve``: the reader presses a number, and the program goes on with another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_server import FakeRunner, request, serving, wait_until

import tinynode as tn
from tinynode import nn, show
from tinynode.commands.step_server import Runner
from tinynode.show.films.changes import Change
from tinynode.show.page.document import page as page_of

F = tn.functions
ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """\
import numpy as np
import tinynode as tn

w = tn.Variable(np.array([[3.0, -2.0]]), name="w")
x = tn.Variable(np.arange(300.0).reshape(2, 150), name="x")
optimizer = tn.nn.SGD([w], lr=1e-8)
for _ in range(3):
    loss = tn.functions.mean((w @ x) ** 2)
    w.cleargrad()
    loss.backward()
    optimizer.update()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "backends"))))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def expected_losses(changed: dict[int, tuple[int, float]], rates: dict[int, float]) -> list[float]:
    """The losses of the program, by NumPy; an element of w, and the rate, by iteration."""
    w, x, rate = np.array([3.0, -2.0]), np.arange(300.0).reshape(2, 150), 1e-8
    losses = []
    for iteration in range(3):
        if iteration in changed:
            index, to = changed[iteration]
            w[index] = to
        rate = rates.get(iteration, rate)
        y = w @ x
        losses.append(float(np.mean(y**2)))
        w = w - rate * 2.0 / 150.0 * (x @ y)
    return losses


# --- the command ---------------------------------------------------------------------------------

SILENT = {
    "closed": "sys.stdout.close()",
    "without a file": "os.close(1)",
    "none": "sys.stdout = None",
    "raising": "sys.stdout = Raising()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("mode", ["--change", "--against", "--replay", "--memory"])
def test_a_script_without_standard_output(script: Path, name: str, mode: str) -> None:
    stream = "class Raising:\n    def write(self, text): raise OSError('full')\n"
    text = f"{PROGRAM}import io, os, sys\n{stream}{SILENT[name]}\n"
    script.write_text(text, encoding="utf-8")
    Path("second.py").write_text(PROGRAM, encoding="utf-8")
    value = {"--change": ["1: w[0, 0] = 0"], "--against": ["second.py"]}.get(mode, [])
    command = [sys.executable, "-m", "tinynode", "step", "--no-open", mode, *value, "script.py"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    words = {"--change": "w[0, 0] = 0, was 3", "--against": "written to", "--replay": "all agree"}
    assert words.get(mode, "P parameters") in told.stderr
    if mode != "--change":  # the second run closes the file again, and fails
        assert told.returncode == 0 and "Traceback" not in told.stderr
    assert "tinynode/commands" not in told.stderr


# --- the server ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_runner_makes_changes(script: Path) -> None:
    runner = Runner("script.py", [], quiz=False, limit=60)
    outcome = runner.run(PROGRAM, [Change(1, "w", (0, 1), 0.0, iteration=2)])
    assert outcome is not None and outcome.error == "" and outcome.page is not None
    film = json.loads(
        outcome.page.decode().split('<script type="application/json" id="film">')[1].split("</")[0]
    )
    assert film["program"] == PROGRAM
    after = film["compared"]["losses"][2]
    assert after == pytest.approx(expected_losses({1: (1, 0.0)}, {}), rel=1e-3)
    outcome = runner.run(PROGRAM, [Change(1, "v", (0, 1), 0.0)])
    assert outcome is not None and outcome.page is None
    assert outcome.error == "The change is not possible."
    assert "forward of MatMul does not have v. It has the arrays w, x, w @ x." in outcome.output
    outcome = runner.run("import sys; sys.exit(77)")
    assert outcome is not None and outcome.error == "The program has no step to show."


@pytest.mark.slow
def test_each_run_of_a_page_draws_the_same_random_numbers(script: Path) -> None:
    text = "import tinynode as tn\nlinear = tn.nn.Linear(2, 1)\nlinear(tn.asarray([[1.0, 2.0]]))\n"
    runner = Runner("script.py", [], quiz=False, limit=60)
    cells = []
    for _ in range(2):
        outcome = runner.run(text)
        assert outcome is not None and outcome.page is not None
        data = outcome.page.decode().split('<script type="application/json" id="film">')[1]
        cells.append(json.loads(data.split("</")[0])["values"])
    assert cells[0] == cells[1], "the program sets no seed"


def test_the_request_has_the_changes() -> None:
    with serving(FakeRunner()) as server:
        content = {"program": "text", "changes": [{"step": 2, "name": "w", "to": "-inf"}]}
        assert request(server, content=json.dumps(content).encode())[0] == 200
        assert isinstance(server.runner, FakeRunner)
        assert server.runner.changes == [[Change(2, "w", (), float("-inf"))]]
        wrong = {"program": "text", "changes": [{"step": 2, "name": "w", "to": "<b>"}]}
        status, text, headers = request(server, content=json.dumps(wrong).encode())
        assert status == 400 and headers["Content-Type"].startswith("text/plain")
        assert text == "Change: to must be a number, nan, inf or -inf, got '<b>'."
        assert len(server.runner.texts) == 1


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture
def tab(script: Path, browser: Any) -> Iterator[Any]:
    """The page of the program's film, from a server of this process."""
    runner = Runner("script.py", [], quiz=False, limit=60)
    outcome = runner.run(PROGRAM)
    assert outcome is not None and outcome.page is not None
    problems: list[str] = []
    with serving(runner) as server:
        server.page = outcome.page
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(30_000)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{server.address}#iteration=2&step=1")
        yield page
        page.close()
    assert [one for one in problems if "400" not in one] == []


def shown_losses(page: Any) -> list[list[str]]:
    """The rows of the table of losses."""
    rows = "[...document.querySelectorAll('#losses tbody tr')]"
    cells = "[...row.children].map((cell) => cell.textContent)"
    found: list[list[str]] = page.evaluate(f"() => {rows}.map((row) => {cells})")
    return found


@pytest.mark.slow
def test_a_weight_is_pressed_and_the_losses_are_shown(tab: Any) -> None:
    tab.click("#focus .card[data-node] table.changeable td >> nth=1")
    assert tab.evaluate("document.activeElement.id") == "change-to"
    assert tab.input_value("#change-index") == "0, 1"
    tab.keyboard.type("0")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#losses")
    before, after = expected_losses({}, {}), expected_losses({1: (1, 0.0)}, {})
    rows = shown_losses(tab)
    assert [row[0] for row in rows] == ["loss, iteration 2", "loss, last iteration"]
    for row, number in zip(rows, (1, 2), strict=True):
        assert [float(cell) for cell in row[1:]] == pytest.approx(
            [before[number], after[number]], rel=1e-3
        )
    assert "iteration 2, step 1: w[0, 1] = 0, was " in tab.inner_text("#changes")
    assert tab.inner_text("#counter").startswith("1 of "), "the page opens at the changed step"
    assert tab.locator(".node.differs").count() >= 1
    assert tab.locator("td.changed").first.text_content() == "0"
    assert tab.locator("#curve-lines .curve").count() == 2, "the losses before, and after"

    # a second change, of the rate; both are kept
    tab.goto(f"{tab.url.split('#')[0]}#iteration=1&step=9")
    tab.wait_for_selector(".settings button")
    tab.click(".settings button:has-text('lr')")
    tab.fill("#change-to", "0")
    tab.click(".change button.main")
    tab.wait_for_selector("#changes li >> nth=1")
    after = expected_losses({1: (1, 0.0)}, {0: 0.0})
    tab.goto(f"{tab.url.split('#')[0]}#iteration=3&step=1")
    wait_until(lambda: "iteration 3" in shown_losses(tab)[0][0])
    assert float(shown_losses(tab)[1][2]) == pytest.approx(after[2], rel=1e-3)

    # the second one alone, then none
    tab.click("#changes li >> nth=0 >> button.to-change")
    wait_until(lambda: tab.locator("#changes li").count() == 1)
    assert "lr = 0" in tab.inner_text("#changes li")
    tab.click("#without-changes")
    wait_until(lambda: tab.locator("#compared").is_hidden())
    assert tab.inner_text("#title") == "script.py"


@pytest.mark.slow
def test_the_keyboard_and_a_large_array(tab: Any) -> None:
    tab.focus("#focus table.changeable td >> nth=0")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.textContent").startswith("-1.999")
    tab.keyboard.press("Enter")
    assert tab.input_value("#change-index") == "0, 1"
    tab.keyboard.press("Escape")
    assert tab.locator(".change").count() == 0
    assert tab.evaluate("document.activeElement.textContent").startswith("-1.999")
    assert tab.inner_text("#counter").startswith("1 of "), "arrows did not step"
    tab.click("#change-number")
    tab.select_option("#change-what", label="x")
    for index, to, told in (
        ("0", "1", "Write 2 whole numbers, for the shape (2, 150)."),
        ("0, 150", "1", "Write 2 whole numbers, for the shape (2, 150)."),
        ("1, 149", "1,5", "Write a number such as 0.5 or 1e-3, or nan, inf, -inf."),
        ("1, 149", "1e999", "Write a number such as 0.5 or 1e-3, or nan, inf, -inf."),
    ):
        tab.fill("#change-index", index)
        tab.fill("#change-to", to)
        tab.keyboard.press("Enter")
        assert tab.inner_text(".change [role=alert]") == told
    tab.fill("#change-to", "NaN")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#losses")
    assert [row[2] for row in shown_losses(tab)] == ["nan", "nan"]
    assert "x[1, 149] = nan, was 299" in tab.inner_text("#changes")


@pytest.mark.slow
def test_a_gradient_of_a_variable_in_focus_and_a_refusal(tab: Any) -> None:
    address = tab.url.split("#")[0]
    tab.goto(f"{address}#iteration=1&step=8")
    wait_until(lambda: "Backward has ended" in tab.inner_text("#sentence"))
    tab.click("#graph [data-id=v0] .box")
    tab.click("#focus .part.backward table.changeable td >> nth=1")
    tab.keyboard.type("0")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#losses")
    told = tab.inner_text("#changes")
    assert "gradient of w[0, 1] = 0, was " in told
    # a hostile request from the console, through the page's own function: refused with the reason
    reply = tab.evaluate(
        "fetch('run', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({program: '', changes: [{step: 1, name: 'w', to: [1]}]})})"
        ".then((reply) => reply.text())"
    )
    assert reply == "Change: to must be a number, got list [1]."


def hostile_film() -> show.Film:
    name = '<img src=x onerror="window.hacked=1">"]\n\\'
    x = tn.Variable(np.ones(2), name=name)
    with show.record() as film:
        F.sum(x * x).backward()
    return film


def open_data(browser: Any, folder: Path, data: dict[str, Any]) -> Any:
    path = folder / "film.html"
    path.write_bytes(page_of(data).encode())
    page = browser.new_page()
    page.goto(path.as_uri())
    return page


@pytest.mark.slow
def test_a_saved_page_has_no_offer(browser: Any, tmp_path: Path) -> None:
    def training() -> None:
        w = tn.Variable(np.array([3.0, -2.0]), name="w")
        optimizer = nn.SGD([w], lr=0.25)
        F.sum(w * w).backward()
        optimizer.update()

    with show.record() as film:
        training()
    changed = show.what_if(training, "1: w[0] = 0")
    for data in (film.data(), changed.data()):
        page = open_data(browser, tmp_path, data)
        offers = "#change-number:visible, .changeable, .to-change, .settings, #without-changes"
        for _ in range(8):
            assert page.locator(offers).count() == 0
            page.keyboard.press("n")
        page.close()


@pytest.mark.slow
def test_a_notebook_gives_a_line_of_python(browser: Any, tmp_path: Path) -> None:
    page = open_data(browser, tmp_path, {**hostile_film().data(), "host": "notebook"})
    page.click("#focus table.changeable td >> nth=1")
    page.keyboard.type("-inf")
    page.keyboard.press("Enter")
    line = page.input_value(".change textarea")
    assert page.evaluate("window.hacked") is None

    def program() -> None:
        hostile = tn.Variable(np.ones(2), name='<img src=x onerror="window.hacked=1">"]\n\\')
        F.sum(hostile * hostile).backward()

    found = eval(line, {"tn": tn, "program": program})  # the line of this test's own page
    assert found.changes[0].change.to == float("-inf") and found.changes[0].change.index == (1,)
    page.close()
    page = open_data(browser, tmp_path, {**found.data(), "host": "notebook"})
    page.click("#focus table.changeable td >> nth=0")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    assert page.input_value(".change textarea").count("tn.show.Change(") == 2
    assert page.evaluate("window.hacked") is None
    page.close()


@pytest.mark.slow
def test_the_page_around_a_frame_runs_the_change(browser: Any, tmp_path: Path) -> None:
    """As in the course: the film stands in a sandboxed frame, and asks by a message."""
    page = browser.new_page()
    page.goto("about:blank")
    page.evaluate(
        """(film) => {
          const frame = document.createElement("iframe");
          frame.setAttribute("sandbox", "allow-scripts");
          frame.srcdoc = film;
          document.body.append(frame);
          addEventListener("message", ({ source, data }) => {
            window.heard = [source === frame.contentWindow, data];
            source.postMessage({ tinynodeError: "not today" }, "*");
          });
        }""",
        page_of({**hostile_film().data(), "host": "course"}),
    )
    frame = page.frame_locator("iframe")
    frame.locator("#focus table.changeable td").first.click()
    frame.locator("#change-to").fill("4")
    frame.locator(".change button.main").click()
    frame.locator(".change [role=alert]:has-text('not today')").wait_for()
    is_frame, data = page.evaluate("window.heard")
    assert is_frame and data["tinynodeChanges"][0] | {"name": ""} == {
        "step": 1, "name": "", "index": [0], "to": 4, "part": "value", "iteration": None,
    }  # fmt: skip
    page.close()


def test_only_a_kernel_gets_the_offer_of_a_notebook() -> None:
    assert "&quot;host&quot;:" not in hostile_film()._repr_html_()
    text = (
        "import sys, types\n"
        "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: object())\n"
        "import tinynode as tn\n"
        "with tn.show.record() as film: tn.asarray([1.0]) * 2.0\n"
        "print('&quot;host&quot;:&quot;notebook&quot;' in film._repr_html_())\n"
    )
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert told.stdout == "True\n"

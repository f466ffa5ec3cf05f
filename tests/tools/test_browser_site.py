"""The course in the reader's browser: a static server, headless Chromium, no other host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contrast import contrast
from course_site import Tab, wait_for

from tinynode_course import cells, mynode, page_session, progress, sources
from tinynode_course.sources import Step
from tools.browser_site import __main__ as browser_site
from tools.browser_site.backtrace import side_module

STEPS = sources.steps()
FIRST = sources.find("01")
FILMED = "step22_gradients_are_variables"
PROGRAM = """\
import numpy as np
import tinynode as tn
x = tn.Variable(np.array([3.0, 4.0]), name="x")
y = (x * x).sum()
y.backward()
print("edited", y.array)
"""


@pytest.fixture(scope="module")
def python(browser: Any, site_address: str) -> Iterator[Any]:
    """One worker with Python for all steps: a function that asks, and returns the events."""
    context = browser.new_context()
    tab = Tab(context, site_address)
    tab.page.goto(f"{site_address}browser/licences.html")
    tab.page.evaluate(
        """async (key) => {
          const { Python } = await import("./python.js");
          const python = new Python(new URL(".", location.href), key, () => {});
          window.ask = async (request) => {
            const events = [];
            await python.ask(request, (event) => events.push(event));
            return events;
          };
          await python.start();
        }""",
        STEPS[0].key,
    )
    yield lambda **request: tab.page.evaluate("(request) => ask(request)", request)
    context.close()
    assert tab.local()


def files_of(step: Step) -> tuple[dict[str, str], dict[str, str]]:
    """The files of an exercise at its start, and solved."""
    if not step.builds:
        stub = page_session.first_files(step)
        return stub, {**stub, step.work: step.solution.read_text(encoding="utf-8")}
    package = mynode.before(step.key)
    for path, text in mynode.read_files(step.stub).items():
        there = package.get(path)
        package[path] = text if there is None else mynode.add_stubs(there, text)[0]
    solved = mynode.reference(step.key)
    return (
        {f"mynode/{path}": text for path, text in package.items()},
        {f"mynode/{path}": text for path, text in solved.items()},
    )


def by_step() -> list[Any]:
    """The steps of the course; .ci/run takes a third."""
    return [
        pytest.param(step, id=step.name, marks=[pytest.mark.long] if number % 3 else [])
        for number, step in enumerate(STEPS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("step", by_step())
def test_a_step_runs_its_stub_fails_and_its_solution_passes(python: Any, step: Step) -> None:
    python(do="open", step=step.key)
    texts = [cell.source for cell in cells.read(step.path) if cell.kind == "code"]
    for number in range(len(texts)):
        last = python(do="run", sources=texts, cell=number)[-1]
        assert last["event"] == "output", last
    if step.stub.exists():
        stub, solved = files_of(step)
        assert python(do="check", files=stub)[-1] == {"event": "checked", "passed": False}
        events = python(do="check", files=solved)
        assert events[-1] == {"event": "checked", "passed": True}, events


@pytest.mark.slow
def test_cells_are_edited_run_filmed_stopped_and_kept(tab: Tab) -> None:
    tab.open(FILMED)
    assert not [url for url in tab.requests if "/python/" in url], "Python comes with a run only"
    field = tab.page.locator("textarea[aria-label='Code of cell 1']")
    first = field.input_value()
    field.fill(PROGRAM)
    field.press("Shift+Enter")
    tab.page.wait_for_selector(".tn-bar[data-state=ready]")
    tab.wait()
    assert "edited 25.0" in tab.output(1)

    tab.press("text=Film of my program")
    frame = tab.page.frame_locator(".tn-film iframe")
    frame.locator("text=1 of").first.wait_for()
    frame.locator("#focus table.changeable td").first.click()
    frame.locator("#change-to").fill("0")
    frame.locator("#change-to").press("Enter")
    frame.locator("#losses td:text-is('16')").wait_for()
    assert "x[0] = 0, was 3" in frame.locator("#changes").inner_text()
    frame.locator("#without-changes").click()
    frame.locator("#changes").wait_for(state="hidden")

    field.fill("while True:\n    pass")
    tab.page.click("[aria-label='Run cell 1']")
    tab.page.wait_for_selector(".tn-bar[data-state=running]")
    tab.press(".tn-stop")
    assert "stopped" in tab.output(1)
    field.fill(first + "\n1 / 0")
    tab.press("[aria-label='Run cell 1']")
    assert "ZeroDivisionError: division by zero" in tab.output(1)

    tab.page.reload()
    tab.page.wait_for_selector("html[data-tinynode=ready]", state="attached")
    assert field.input_value() == first + "\n1 / 0"
    tab.page.click("[aria-label='Reset cell 1 to the original']")
    assert field.input_value() == first


@pytest.mark.slow
def test_the_exercise_of_a_package_is_started_checked_and_kept(tab: Tab, tmp_path: Path) -> None:
    tab.page.on("dialog", lambda dialog: dialog.accept())
    one, two = [step for step in mynode.builders() if step.builds][:2]
    tab.open(two.path.stem)
    assert "builds on your work in step" in tab.text(".tn-exercise")
    tab.press(".tn-exercise >> text=Take the reference of open steps, and start")
    tab.press(".tn-exercise >> text=Check")
    assert tab.page.locator(".tn-no").count() and "your code" in tab.text(".tn-results")
    tab.page.click(".tn-exercise >> text=Hint")
    assert "Hint 1 of" in tab.text(".tn-hints") and "?" in tab.text(".tn-hints")
    tab.page.click(".tn-exercise >> text=Hint")
    assert "Look at mynode/" in tab.text(".tn-hints")
    tab.press(".tn-exercise >> text=Take the reference")
    tab.press(".tn-exercise >> text=Check")
    assert tab.page.locator(".tn-no").count() == 0 and "checks pass" in tab.text(".tn-results")

    tab.page.click("text=Your progress, and what runs here")
    with tab.page.expect_download() as waiting:
        tab.page.click("text=Save as a file")
    saved = tmp_path / "progress.json"
    waiting.value.save_as(saved)
    tab.page.click("text=Forget all")
    tab.page.wait_for_selector(".tn-exercise >> text=Take the reference of open steps, and start")
    tab.page.set_input_files("input[type=file]", saved)
    tab.page.wait_for_selector(".tn-exercise .tn-passed:visible")
    chosen = tab.page.locator(".tn-exercise select")
    assert "mynode/__init__.py" in chosen.locator("option").all_inner_texts()

    tab.page.goto(f"{tab.address}tutorials/")
    tab.page.wait_for_selector("text=✓ done")
    assert tab.page.locator("text=✓ done").count() == 1
    assert one.name != two.name


@pytest.mark.slow
def test_a_page_asks_for_a_prediction_and_says_which_cell_has_not_run(tab: Tab) -> None:
    tab.open(FIRST.path.stem)
    covers = tab.page.locator(".tn-cover:visible")
    output = tab.page.locator(".tn-cell + .tn-cover + .language-text")
    assert covers.count() > 3 and not output.first.is_visible()
    assert tab.text(".tn-lines >> nth=0").split()[:3] == ["1", "2", "3"]
    tab.page.fill("#tn-prediction", "z.creator_node")
    tab.page.click("text=Keep my prediction")

    tab.press("[aria-label='Run cell 2']")
    assert "Cell 1 defines z, and has not run." in tab.output(2)
    assert tab.text(".tn-bad-line") == "1"
    tab.press("text=Run all above, then this cell")
    assert tab.page.locator(".tn-bad-line").count() == 0
    assert "You predicted: z.creator_node" in tab.output(1)
    assert "You predicted" not in tab.output(2) and "z was made by Negative" in tab.output(2)
    assert tab.text(".tn-cell-bar >> nth=1").startswith("Cell 2 ✓")

    tab.page.reload()
    tab.page.wait_for_selector("html[data-tinynode=ready]", state="attached")
    assert tab.page.input_value("#tn-prediction") == "z.creator_node"
    assert output.first.is_visible() and not output.nth(2).is_visible()
    tab.page.click("text=Show all outputs")
    assert output.nth(2).is_visible() and covers.count() == 0
    link = tab.page.locator(".tn-next a")
    assert link.inner_text() == f"Next: {STEPS[2].title}"
    link.click()
    tab.page.wait_for_url(f"**/{STEPS[2].path.stem}/")


@pytest.mark.slow
def test_work_of_the_earlier_order_moves_to_the_steps_of_today(tab: Tab) -> None:
    old = {"step12": {"passed": True, "hints": 2}, "step16": {"passed": True}, "step04": {}}
    (first, *_), dropped = progress.SECOND_EDITION["12"], progress.SECOND_EDITION["16"]
    assert dropped == ()
    tab.page.goto(tab.address)
    put = "(all) => { for (const [k, v] of Object.entries(all))"
    put += " localStorage.setItem(`tinynode-course:${k}`, JSON.stringify(v)) }"
    tab.page.evaluate(put, old)
    tab.page.goto(f"{tab.address}tutorials/")
    tab.page.wait_for_selector("text=✓ done")
    kept = tab.page.evaluate("({...localStorage})")
    names = {key.removeprefix("tinynode-course:") for key in kept if ":" in key}
    assert names == {"step08", "step09", "old_step16", "step04"}
    assert json.loads(kept[f"tinynode-course:step{first}"]) == old["step12"]
    tab.page.reload()  # a second visit moves nothing
    tab.page.wait_for_selector("text=✓ done")
    assert tab.page.evaluate("({...localStorage})") == kept
    assert tab.page.locator("article >> text=✓ done").count() == 2

    done = "document.querySelectorAll('.md-nav--primary .tn-passed').length"
    tab.open(FIRST.path.stem)
    assert tab.page.evaluate(done) == 2
    saved = {"format": 1, "course": "tinynode", "steps": {"step09": {"passed": True}}}
    tab.page.click("text=Your progress, and what runs here")
    file = {"name": "p.json", "mimeType": "application/json", "buffer": json.dumps(saved).encode()}
    tab.page.set_input_files("input[type=file]", file)
    wait_for(tab.page, "localStorage.getItem('tinynode-course:step13') !== null")


@pytest.mark.slow
def test_a_switch_chooses_light_or_dark(browser: Any, site_address: str) -> None:
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(f"{site_address}tutorials/")
    scheme = "document.body.dataset.mdColorScheme"
    seen = []
    for _ in range(3):
        page.locator("form[data-md-component=palette] label:visible").click()
        seen.append(page.evaluate(scheme))
    assert seen == ["default", "slate", "default"]
    page.locator("form[data-md-component=palette] label:visible").click()
    page.locator("form[data-md-component=palette] label:visible").click()
    page.goto(f"{site_address}glossary/")
    assert page.evaluate(scheme) == "slate", "the choice stays"

    page.goto(site_address)  # with a film in a frame: it follows the choice, not the system
    colour = "getComputedStyle(document.body).backgroundColor"
    film = next(frame for frame in page.frames if "film.html" in frame.url)
    dark = film.evaluate(colour)
    page.locator("form[data-md-component=palette] label:visible").click()
    page.wait_for_timeout(100)
    assert page.evaluate(scheme) == "default" and film.evaluate(colour) != dark
    assert film.evaluate(colour) == LIGHT_FILM and dark == DARK_FILM
    context.close()


LIGHT_FILM, DARK_FILM = "rgb(243, 245, 248)", "rgb(15, 19, 24)"
"""The colours of the paper of a film: --page in tinynode/show/page/files/style.css."""

COLOURS = """() => [...document.querySelectorAll(".tn-button:enabled")].map((button) => {
  const hex = (colour) => "#" + colour.match(/\\d+/g).slice(0, 3)
    .map((part) => Number(part).toString(16).padStart(2, "0")).join("");
  const { color, backgroundColor, borderTopColor } = getComputedStyle(button);
  const page = getComputedStyle(document.body).backgroundColor;
  return [button.textContent, ...[color, backgroundColor, borderTopColor, page].map(hex)];
})"""
"""The text of each button, and the colours of its text, area, border and page."""


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_button_of_a_page_is_seen_and_read(
    browser: Any, site_address: str, theme: str
) -> None:
    context = browser.new_context(color_scheme=theme)
    tab = Tab(context, site_address)
    tab.open(FILMED)
    buttons = tab.page.evaluate(COLOURS)
    assert {"Run", "Run all", "Save as a file"} <= {name for name, *_ in buttons}
    for name, text, area, border, page in buttons:
        assert contrast(text, area) >= 4.5, name
        assert max(contrast(area, page), contrast(border, page)) >= 3, name
    context.close()


@pytest.mark.slow
def test_a_page_fits_a_phone_and_reads_without_scripts(browser: Any, site_address: str) -> None:
    small = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    tab = Tab(small, site_address)
    tab.open(FILMED)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    small.close()
    plain = browser.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(f"{site_address}tutorials/{FILMED}/")
    assert page.locator("div.language-python").count() and not page.locator(".tn-bar").count()
    plain.close()


def test_the_side_module_is_a_module_of_webassembly() -> None:
    module = side_module()
    assert module.startswith(b"\0asm\1\0\0\0") and len(module) == 61
    assert b"dylink.0" in module and b"backtrace" in module


def test_the_facts_of_a_page_are_those_of_the_step() -> None:
    for step in STEPS:
        told = browser_site.facts(step)
        code = [cell.source for cell in cells.read(step.path) if cell.kind == "code"]
        assert told["cells"] == code and told["builds"] == step.builds
        assert told["next"] is None or told["next"]["stem"] != step.path.stem
        assert bool(told["files"]) == (step.stub.exists() and not step.builds)
    ends = [step.name for step in STEPS if browser_site.following(step) is None]
    assert ends == [STEPS[-1].name]


def test_moved_steps_are_those_of_the_terminal() -> None:
    lines = browser_site.moved_steps().splitlines()
    moved = json.loads(lines[1].removeprefix("export const MOVED = ").rstrip(";"))
    assert moved["step12"] == ["step08", "step09"] and moved["step20"] == []
    assert len(moved) == len(progress.SECOND_EDITION)

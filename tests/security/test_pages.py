"""Pages of the course: no text of a program or of a progress file becomes a script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from course_site import Tab, built_site, wait_for
from hostile_texts import ATTACK, hacked, other_host

from tools.page_policy import POLICY, inline_scripts, source, with_policy

ROOT = Path(__file__).resolve().parents[2]
STEP = "step22_gradients_are_variables"
ONE_FILE = "elective_forward_mode"  # its exercise is a file of its own
SINKS = re.compile(
    r"\.(inner|outer)HTML\s*\+?=|insertAdjacentHTML|document\.write|createContextualFragment"
    r"|\beval\(|new Function|setAttribute\(\"on|javascript:"
)
"""The ways by which a text becomes elements or a script."""

# --- the policy ----------------------------------------------------------------------------------


def policy_of(page: str) -> dict[str, str]:
    (tag,) = POLICY.findall(page)
    content = tag.split('content="')[1].removesuffix('">')
    return dict(part.split(" ", 1) for part in content.split("; "))


@pytest.mark.parametrize("runs_python", [False, True])
def test_a_policy_names_the_scripts_of_the_build_alone(runs_python: bool) -> None:
    framed = "&lt;script&gt;second&lt;/script&gt;"
    page = (
        '<head><meta charset="utf-8"></head><script>first</script><script src="a.js"></script>'
        f'<script type="application/json">data</script><iframe srcdoc="{framed}"></iframe>'
    )
    assert list(inline_scripts(page)) == ["first", "second"]
    done = with_policy(page, runs_python=runs_python)
    assert done.startswith("<head><meta http-equiv") and with_policy(done) == with_policy(page)
    policy = policy_of(done)
    words = policy["script-src"].split()
    assert {source("first"), source("second")} <= set(words) and source("data") not in words
    assert policy["default-src"] == policy["base-uri"] == "'none'"
    told = " ".join(policy.values())
    assert "http" not in told and "*" not in told and "'unsafe-eval'" not in told
    assert "'unsafe-inline'" not in policy["script-src"]
    assert ("'wasm-unsafe-eval'" in words) == runs_python


def test_no_script_makes_elements_of_a_text() -> None:
    folders = ("tools/browser_site/page_files", "tinynode/show/page/files")
    paths = [path for folder in folders for path in (ROOT / folder).glob("*.js")]
    assert len(paths) > 20
    found = [(path.name, SINKS.findall(path.read_text(encoding="utf-8"))) for path in paths]
    assert [(name, sinks) for name, sinks in found if sinks] == []


# --- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory.getbasetemp())


@pytest.fixture
def tab(browser: Any, site_address: str) -> Iterator[Tab]:
    """A tab that may ask for another host: what came there is looked at by the tests."""
    context = browser.new_context()
    yield Tab(context, site_address)
    context.close()


@pytest.fixture
def other() -> Iterator[tuple[str, list[str]]]:
    """The address of another host, and the requests that came to it."""
    with other_host() as found:
        yield found


def run(tab: Tab, program: str) -> str:
    field = tab.page.locator("textarea[aria-label='Code of cell 1']")
    field.fill(program)
    tab.press("[aria-label='Run cell 1']")
    tab.page.wait_for_timeout(500)  # frames load
    return tab.output(1)


@pytest.mark.slow
def test_each_page_of_the_site_has_a_policy(site: Path) -> None:
    texts = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    pages = [path for path in texts if "md-header" in texts[path] and path.name != "404.html"]
    assert len(pages) > 100
    assert [path for path in pages if "Content-Security-Policy" not in texts[path]] == []


@pytest.mark.slow
def test_a_hostile_output_is_text_or_a_quiet_frame(
    tab: Tab, other: tuple[str, list[str]], tmp_path: Path
) -> None:
    attack = ATTACK.replace("OTHER", other[0])
    tab.open(STEP)
    shown = run(tab, f"print({attack!r}); raise ValueError({attack!r})")
    assert shown.count("onerror=") >= 2 and hacked(tab) == []
    value = (
        "class Value:\n    def __init__(self, kind, text):\n"
        "        setattr(self, f'_repr_{kind}_', lambda: text)\n"
    )
    run(tab, f"{value}Value('html', {attack!r})")
    frame = tab.page.frame_locator(".tn-output iframe")
    assert frame.locator("b").inner_text() == "bold"
    tab.page.screenshot(path=tmp_path / "hostile.png")
    assert hacked(tab) == []
    film = "<iframe srcdoc='<p>film</p><script>self.hacked = 6; top.hacked = 6</script>'></iframe>"
    run(tab, f"{value}Value('html', {film!r})")
    assert frame.locator("p").inner_text() == "film" and hacked(tab) == []
    run(tab, f"{value}Value('svg', '<svg xmlns=\"http://www.w3.org/2000/svg\">' + {attack!r})")
    assert tab.page.locator(".tn-output img").count() == 1 and hacked(tab) == []
    assert tab.page.url == f"{tab.address}tutorials/{STEP}/" and other[1] == []


@pytest.mark.slow
def test_a_value_keeps_its_card_and_a_film_plays(tab: Tab) -> None:
    tab.open(STEP)
    run(tab, "import tinynode as tn\ntn.Variable(tn.asarray([1.0, 2.0]).array, name='weights')")
    frame = tab.page.locator(".tn-output iframe")
    card = tab.page.frame_locator(".tn-output iframe")
    assert "weights" in card.locator(".tn-variable").inner_text()
    height = card.locator("body").evaluate("e => e.scrollHeight")
    assert 50 < height <= frame.evaluate("e => e.clientHeight") < height + 5
    lines = ("import tinynode as tn", "with tn.show.record() as film:", "    tn.asarray(1.0) + 1")
    run(tab, "\n".join([*lines, "film"]))
    card.locator("text=1 of 1").first.wait_for(timeout=20_000)
    assert frame.evaluate("e => e.clientHeight") > 700


@pytest.mark.slow
def test_a_program_asks_no_other_host(tab: Tab, other: tuple[str, list[str]]) -> None:
    tab.open(STEP)
    shown = run(
        tab,
        f"""import js
request = js.XMLHttpRequest.new()
request.open("GET", {other[0]!r}, False)
try:
    request.send()
except Exception as error:
    print("refused")
try:
    js.importScripts({other[0]!r})
except Exception as error:
    print("refused")
""",
    )
    assert shown.split() == ["refused", "refused"] and other[1] == []


# --- progress ------------------------------------------------------------------------------------


def load(tab: Tab, steps: Any, folder: Path) -> str:
    """Load a progress file; returns the words of the panel."""
    path = folder / "progress.json"
    content = {"course": "tinynode", "format": 1, "steps": steps}
    path.write_text(json.dumps(content), encoding="utf-8")
    tab.page.evaluate("document.querySelector('.tn-panel p[role=status]').textContent = ''")
    tab.page.set_input_files("input[type=file]", path)
    words = "document.querySelector('.tn-panel p[role=status]').textContent"
    wait_for(tab.page, words)
    return str(tab.page.evaluate(words))


@pytest.mark.slow
def test_a_hostile_progress_file_is_text(tab: Tab, tmp_path: Path) -> None:
    tab.open(ONE_FILE)
    original = tab.page.evaluate("tinynodePage.cells[0].original")
    edit = {"original": original, "text": ATTACK}
    steps = {
        "forward_mode": {"cells": {0: edit}, "files": {ATTACK: ATTACK}},
        "mynode": {"files": {ATTACK: ATTACK, "mynode/__init__.py": ATTACK}},
    }
    assert load(tab, steps, tmp_path).startswith("Read 2 entries")
    tab.page.wait_for_timeout(1000)  # the page loads again
    tab.page.wait_for_selector("html[data-tinynode=ready]", state="attached")
    field = tab.page.locator("textarea[aria-label='Code of cell 1']")
    assert field.input_value() == ATTACK
    assert ATTACK in tab.page.locator(".tn-editor code").first.text_content()
    options = tab.page.locator(".tn-exercise option").all_text_contents()
    assert ATTACK in options and hacked(tab) == [] and tab.errors == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps",
    [
        None,
        [],
        {"step22": None},
        {"step22": []},
        {"a b": {}},
        {"x" * 41: {}},
        {"step22": {"cells": []}},
        {"step22": {"cells": {"0": {"original": 1, "text": "x"}}}},
        {"step22": {"files": {"a": 1}}},
        {"step22": {"files": {str(number): "" for number in range(2000)}}},
        {"step22": {"hints": -1}},
        {"step22": {"hints": "<b>"}},
        {"step22": {"passed": 1}},
        {"step22": {"__proto__": {}}},
        {"step22": {ATTACK: True}},
    ],
)
def test_damaged_progress_is_refused(tab: Tab, steps: Any, tmp_path: Path) -> None:
    tab.open(STEP)
    told = load(tab, steps, tmp_path)
    assert told.startswith(("The file is damaged: ", "The file is no progress of this course."))
    keys = tab.page.evaluate("Object.keys(localStorage)")
    assert not [key for key in keys if key.startswith("tinynode-course:")] and hacked(tab) == []

"""Programs of strangers in links: they are text until Run, and then have no way out."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from course_site import Tab, wait_for
from hostile_texts import hacked, hostile_texts, other_host
from program_links import raw_link

import tinynode as tn

pytestmark = pytest.mark.slow


@pytest.fixture
def tab(browser: Any, site_address: str) -> Iterator[Tab]:
    context = browser.new_context()
    made = Tab(context, site_address)
    made.page.goto(f"{site_address}play/")
    made.page.wait_for_selector("html[data-tinynode=ready]", state="attached")
    yield made
    context.close()
    assert made.errors == []


@pytest.fixture
def other() -> Iterator[tuple[str, list[str]]]:
    with other_host() as found:
        yield found


def follow(tab: Tab, part: str) -> None:
    """Let the open page get another link, as a stranger's window could do."""
    tab.page.evaluate("tinynodePage.runsBefore = tinynodePage.runs")
    tab.page.evaluate("(part) => { location.hash = part; }", part)
    wait_for(tab.page, "tinynodePage.runs > tinynodePage.runsBefore")
    wait_for(tab.page, "tinynodePage.isRead")


def run(tab: Tab) -> str:
    tab.press(".tn-run")
    tab.page.wait_for_timeout(500)  # frames load
    return tab.text("#tinynode-play")


def elements(tab: Tab) -> list[str]:
    """The kinds of the page's elements, without the spans of colours."""
    names: list[str] = tab.page.evaluate(
        "[...document.querySelectorAll('*')].map((e) => e.localName)"
    )
    return [name for name in names if name != "span"]


EACH = [7, pytest.param(1, marks=pytest.mark.long)]  # a page takes about 0.7 s a text


@pytest.mark.parametrize("each", EACH)
def test_a_hostile_program_and_title_are_text(
    tab: Tab, other: tuple[str, list[str]], each: int
) -> None:
    texts = [text.replace("OTHER", other[0]) for text in hostile_texts()[::each]]
    assert len(texts) >= 140 // each
    follow(tab, raw_link(b"T\nx = 1"))
    plain = elements(tab)
    for text in texts:
        title = "".join(letter for letter in text if letter.isprintable())[:100]
        follow(tab, raw_link(f"{title}\n{text}".encode()))
        shown = text.replace("\r", "\n")
        assert tab.page.locator("[aria-label='The program']").input_value() == shown
        assert tab.page.text_content(".tn-editor code") == f"{shown}\n"
        assert tab.page.text_content(".tn-play-title") == title
        cautions = tab.page.locator(".tn-note p").count() - 1
        made = elements(tab)
        assert len(made) == len(plain) + cautions and set(made) == set(plain)
    assert hacked(tab) == [] and other[1] == [] and tab.local()
    assert not [url for url in tab.requests if "/python/" in url], "nothing ran"


@pytest.mark.parametrize("each", EACH)
def test_a_hostile_address_is_refused(tab: Tab, other: tuple[str, list[str]], each: int) -> None:
    texts = [text.replace("OTHER", other[0]) for text in hostile_texts()[::each]]
    for text in texts:
        follow(tab, text)
        assert tab.page.locator(".tn-note-bad").count() == 1
        assert tab.page.input_value("[aria-label='The program']") == ""
    for text in texts[:: len(texts) // 10]:
        tab.page.goto("about:blank")
        tab.page.goto(f"{tab.address}play/#{text}")
        tab.page.wait_for_selector("html[data-tinynode=ready]", state="attached")
        assert tab.page.locator(".tn-note-bad").count() == 1
    assert hacked(tab) == [] and other[1] == [] and tab.local()


def test_texts_that_a_program_prints_and_films_are_text(
    tab: Tab, other: tuple[str, list[str]]
) -> None:
    texts = [text.replace("OTHER", other[0]) for text in hostile_texts()]
    program = f"""import tinynode as tn
for text in {texts!r}:
    print(text)
    x = tn.Variable(tn.asarray([1.0]).array, name=text)
    y = x * x
raise ValueError({texts[0]!r})
"""
    title = texts[1][:100]
    follow(tab, tn.show.link(program, title=title).partition("#")[2])
    shown = run(tab)
    assert shown.count("onerror=") > 20 and "ValueError" in shown
    frame = tab.page.frame_locator(".tn-film iframe")
    frame.locator("text=1 of").first.wait_for()
    assert frame.locator("#title").inner_text() == title
    frame.locator("body").press("End")
    tab.page.wait_for_timeout(300)
    assert hacked(tab) == [] and other[1] == [] and tab.local()


PAGE = """<!DOCTYPE html><p>film</p><script>self.hacked = 1; top.hacked = 1</script>
<img src=OTHER onerror="top.hacked = 2; self.hacked = 2"><meta http-equiv=refresh
content="1; url=OTHER"><a id=out target=_top href=OTHER>out</a>
<form target=_blank action=OTHER><button id=send>send</button></form>"""


def test_a_program_that_speaks_to_the_page_gives_text_and_a_quiet_frame(
    tab: Tab, other: tuple[str, list[str]]
) -> None:
    page = PAGE.replace("OTHER", other[0])
    program = f"""import json
from page import send
for event in ("output", "checked", "files", "__proto__", "crashed"):
    send(json.dumps({{"event": event, "text": {page!r}, "html": {page!r}, "svg": {page!r}}}))
send(json.dumps({{"event": "printed", "text": {page!r}}}))
send(json.dumps({{"event": "film", "page": {page!r}}}))
send(json.dumps({{"event": "done"}}))
"""
    follow(tab, tn.show.link(program).partition("#")[2])
    assert "<p>film</p>" in run(tab)
    frame = tab.page.frame_locator(".tn-film iframe")
    assert frame.locator("p").inner_text() == "film"
    for name in ("#out", "#send"):
        frame.locator(name).click(no_wait_after=True)
    tab.page.wait_for_timeout(1500)
    assert hacked(tab) == [] and other[1] == []  # the policy blocks requests of the frame
    assert tab.page.url.startswith(f"{tab.address}play/#tn1.")
    assert len(tab.page.context.pages) == 1


FLOODS = {
    "printed": "{'event': 'printed', 'text': 'x' * 100_000}",
    "nothing": "{'event': 'nothing'}",
    "film": "{'event': 'film', 'page': 'x' * 60_000_000}",
}


@pytest.mark.parametrize(
    "kind",
    ["printed", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("nothing", "film"))],
)
def test_a_flood_ends(tab: Tab, kind: str) -> None:
    program = f"""import json
from page import send
message = json.dumps({FLOODS[kind]})
while True:
    send(message)
"""
    follow(tab, tn.show.link(program).partition("#")[2])
    assert "gives more than a page can show. Python was stopped." in run(tab)
    follow(tab, tn.show.link("print('well')").partition("#")[2])
    assert "well" in run(tab)


def test_a_program_has_no_other_host_and_no_work_of_the_reader(
    tab: Tab, other: tuple[str, list[str]]
) -> None:
    tab.page.evaluate("localStorage.setItem('tinynode-course:mynode', 'my work')")
    program = f"""import js
for attempt in (
    lambda: js.localStorage,
    lambda: js.document,
    lambda: js.parent,
    lambda: js.importScripts({other[0]!r}),
):
    try:
        print("got", attempt())
    except Exception as error:
        print("refused")
js.WebSocket.new({other[0].replace("http", "ws")!r})
request = js.XMLHttpRequest.new()
request.open("GET", {other[0]!r}, False)
try:
    request.send()
    print("sent")
except Exception as error:
    print("refused")
print("tn1." in js.location.href)
"""
    follow(tab, tn.show.link(program).partition("#")[2])
    run(tab)
    assert tab.text(".tn-output").split() == ["refused"] * 5 + ["False"] and other[1] == []


def test_a_link_that_changes_while_it_is_read_does_not_run(tab: Tab) -> None:
    follow(tab, tn.show.link("print('good')", title="Good").partition("#")[2])
    evil = tn.show.link("print('evil')", title="Evil").partition("#")[2]
    tab.page.evaluate(
        """(part) => {
          location.hash = part;
          const press = () => document.querySelector(".tn-run").click();
          press();
          const wait = setInterval(press, 10); // 500 ms of presses
          setTimeout(() => clearInterval(wait), 500);
        }""",
        evil,
    )
    tab.page.wait_for_timeout(600)
    # a press before the change ran the program that was read; the change has stopped it
    assert tab.text(".tn-play-title") == "Evil"
    tab.wait()
    wait_for(tab.page, "tinynodePage.isRead")
    assert tab.page.locator(".tn-output:visible").count() == 0
    assert tab.page.get_attribute(".tn-bar", "data-state") == "stopped"


def test_another_site_cannot_run_a_program_in_a_frame(browser: Any, site_address: str) -> None:
    link = tn.show.link("print('evil')", site=site_address)
    page = f"<!DOCTYPE html><iframe width=900 height=700 src='{link}'></iframe>".encode()

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            """No words."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tab = Tab(browser.new_context(), site_address)
        tab.page.goto(f"http://127.0.0.1:{server.server_port}/")
        frame = tab.page.frame_locator("iframe")
        frame.locator("text=in a frame, no program runs").wait_for()
        assert frame.locator(".tn-run").count() == 0
        tab.page.context.close()
        server.shutdown()


def test_hidden_places_of_a_program_are_named(tab: Tab) -> None:
    gap = "\n" * 30
    program = f"x = 'a\u202eb'\ny = 1{' ' * 300}; evil()\n{gap}z = 'ㅤ'\n"
    follow(tab, tn.show.link(program).partition("#")[2])
    assert tab.page.locator(".tn-note p").all_inner_texts()[1:] == [
        "Lines 1, 33: hidden characters, U+202E, U+3164. Python may read another text than the "
        "one you see.",
        "Line 2: more than 200 characters. Scroll to the right end.",
        "Line 33: code below a long gap.",
    ]

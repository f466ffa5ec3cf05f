"""The built site in a real browser: search, links, widths, and no request to another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from course_site import built_site, served, wait_for

from tools import docs_pages

SEARCHES = {
    "cross entropy": "#tinynode.functions.cross_entropies.softmax_cross_entropy",
    "softmax cross entropy": "#tinynode.functions.cross_entropies.softmax_cross_entropy",
    "DataLoader": "/reference/nn/#tinynode.nn.DataLoader",
    "LSTM": "/sequences/#train-an-lstm",
    "scheduler": "/optimizers/#schedules",
    "jvp": "/reference/derivatives/#tinynode.transforms.linear.jvp",
}
"""The first entry below a page that the search gives."""

ANSWERS = {
    "no_grad": "sharp-bits/",
    "save model": "getting-started/",
    "chain rule": "tutorials/step02_backward_by_hand/",
    "weight decay": "overfitting/",
    "weight_decay": "overfitting/",
    "install": "getting-started/",
    "early stopping": "overfitting/",
    "validation set": "overfitting/",
    "cuda": "gpu/",
    "chainer": "from-chainer/",
    "read the core": "read-the-core/",
}
"""The first page for the words of a newcomer."""

ASK = """async ([queries, worker]) => {
  const index = await (await fetch("/search/search_index.json")).json();
  const search = new Worker(worker);
  const ask = (message, type) => new Promise((resolve) => {
    search.onmessage = ({ data }) => data.type === type && resolve(data.data);
    search.postMessage(message);
  });
  await ask({ type: 0, data: { ...index, options: {} } }, 1);
  const found = {};
  for (const query of queries) {
    const { items } = await ask({ type: 2, data: query }, 3);
    found[query] = (items[0] ?? []).map(({ location, title }) => [location, title]);
  }
  return found;
}"""
"""Asks the worker of the site's search; gives the entries of the first page by query."""

PLACES = (
    "",
    "tutorials/",
    "tutorials/step13_no_grad_and_unchain/",
    "read-the-core/",
    "reference/functions/",
    "reference/functions/losses/",
    "from-chainer/",
    "source/tinynode/core/variable/",
)


def build(folder: Path) -> None:
    """Build the site as ``mkdocs build --strict`` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=docs_pages.ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def first_result(page: Any, words: str) -> str:
    """The address of the first entry of the first page that the search finds."""
    box = page.locator("[data-md-component=search-query]")
    box.fill("")
    wait_for(page, "!document.querySelector('.md-search-result__item')")
    box.press_sequentially(words)
    meta = ".md-search-result__meta"
    wait_for(page, f"/[1-9]/.test(document.querySelector('{meta}').textContent)")
    page.wait_for_timeout(500)  # the results of the last letter
    link = page.locator(".md-search-result__item").first.locator("a").nth(1)
    return str(link.evaluate("a => new URL(a.href).pathname + new URL(a.href).hash"))


def answers(page: Any, queries: list[str]) -> dict[str, list[tuple[str, str]]]:
    """Address and title of the entries of the first page, for each query."""
    config = "JSON.parse(document.getElementById('__config').textContent)"
    worker = page.evaluate(f"new URL({config}.search, location).href")
    found = page.evaluate(ASK, [queries, worker])
    tag = re.compile(r"</?\w+>")
    return {q: [(place, tag.sub("", title)) for place, title in all_] for q, all_ in found.items()}


def check_search(page: Any, index: dict[str, Any]) -> None:
    """Words of newcomers find their page first, and whole names with ``_`` their own entry."""
    titles = {entry["title"] for entry in index["docs"]}
    names = sorted(title for title in titles if re.fullmatch(r"[a-z]\w*_\w+", title))
    assert len(names) > 300
    found = answers(page, [*ANSWERS, *names])
    first = {query: found[query][0][0].partition("#")[0] for query in ANSWERS}
    assert first == ANSWERS
    lost = [name for name in names if name not in [title for _, title in found[name]]]
    assert lost == []


def check_width(page: Any, place: str, width: int) -> None:
    """A page is not wider than the window; at 1280 pixels, no code is cut."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{place}: {wide} pixels in a window of {width}"
    if width >= 1280:
        cut = page.evaluate(
            "[...document.querySelectorAll('.md-content pre > code')]"
            ".filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.innerText.slice(0, 60))"
        )
        assert cut == [], place


@pytest.mark.slow
def test_the_site_in_a_browser(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    made = os.environ.get("TINYNODE_BROWSER_SITE")  # by python -m tools.browser_site
    if not made:
        build(tmp_path)
    with served(Path(made) if made else tmp_path) as home:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        requests: list[str] = []
        failed: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("response", lambda got: failed.append(got.url) if got.status >= 400 else None)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            for place in PLACES:
                page.goto(home + place)
                check_width(page, place, width)
        page.goto(home)
        start = page.get_by_role("link", name="Start in the browser")
        assert start.bounding_box()["y"] < 700
        film = page.frame_locator("iframe.film[src^='film.html']")
        film.get_by_text("Multiply").first.wait_for()
        heights = film.locator("svg").evaluate_all("all => all.map(e => e.clientHeight)")
        assert max(heights) > 100, "the film is drawn"
        found = {words: first_result(page, words) for words in SEARCHES}
        assert {w: r[-len(SEARCHES[w]) :] for w, r in found.items()} == SEARCHES
        page.goto(home)
        check_search(page, page.request.get(f"{home}search/search_index.json").json())
        page.get_by_role("link", name="Start in the browser").click()
        assert "/tutorials/" in page.url
        for place in ("tutorials/step13_no_grad_and_unchain/", "reference/functions/losses/"):
            page.goto(home + place)
            assert page.locator(".md-footer__link--next").count() == 1, place
            assert page.locator(".md-footer__link--prev").count() == 1, place
        page.goto(f"{home}chainer-names/")
        page.wait_for_url("**/from-chainer/**")
        page.goto(f"{home}glossary/")
        assert page.locator("math mfrac").first.bounding_box()["height"] > 8  # typeset
        outside = [url for url in requests if not url.startswith((home, "data:", "blob:"))]
        assert (outside, failed) == ([], [])
        page.close()


def pages_of(site: Path) -> list[str]:
    """All pages, and every twentieth page of the source, which one template makes."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    source = [page for page in found if page.startswith("source/")]
    return [page for page in found if not page.startswith("source/")] + source[::20]


@pytest.mark.slow
@pytest.mark.long
def test_each_page_runs_without_a_word_in_the_console(browser: Any, tmp_path: Path) -> None:
    """All pages of the site, about 220: three to four minutes on two busy cores."""
    site = built_site(tmp_path)
    pages = pages_of(site)
    assert {"index.html", "play/index.html", "review/index.html", "film.html"} <= set(pages)
    assert len([page for page in pages if page.startswith("tutorials/step")]) >= 27
    said: list[str] = []
    heard: dict[str, list[str]] = {}
    with served(site) as home:
        page = browser.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda m: said.append(m.text) if m.type in LOUD else None)
        for name in pages:
            said.clear()
            page.goto(home + name.removesuffix("index.html"), wait_until="load")
            if said:
                heard[name] = [*said]
        page.close()
    assert heard == {}


LOUD = ("error", "warning")
"""The kinds of lines in the console that tell of a fault."""

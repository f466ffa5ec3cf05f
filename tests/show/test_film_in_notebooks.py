"""A film in the output of a cell: its colours, strict policies, and frames that are removed.

Requirement: a notebook has a theme and a policy of its own, and may be without trust. The film has
the colours of the notebook, runs under the policy, and says what to do where it is removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode_course.pictures import BackwardFilm

LIGHT, DARK = "rgb(243, 245, 248)", "rgb(15, 19, 24)"
"""The paper of a film: ``--page`` in ``tinynode/show/page/files/style.css``."""

EDITOR = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
"""The least that an editor's view of outputs allows: inline scripts and styles, no requests."""


def film() -> Any:
    x = tn.Variable(np.array([1.0, 2.0], np.float32), requires_grad=True)
    with tn.show.record() as recorded:
        tn.functions.sum(x * x).backward()
    return recorded


def visits() -> BackwardFilm:
    pictures = BackwardFilm("visits")
    y = tn.Variable(np.array([1.0]), requires_grad=True) * 2
    pictures.frames.append(("one visit", tn.show.graph(y)))
    return pictures


@pytest.fixture
def notebook(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page with an output, in colours; gives the page and the film's frame."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(text: str, ink: str, system: str, head: str = "") -> tuple[Any, Any]:
        path = tmp_path / "notebook.html"
        look = f"<style>.plain {{ color: {ink} }} .other {{ color: oklch(0.95 0 0) }}</style>"
        path.write_text(
            f'<!doctype html><meta charset="utf-8">{head}{look}<body class="plain">{text}',
            encoding="utf-8",
        )
        context = browser.new_context(color_scheme=system)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        return page, page.frames[-1]

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def paper(frame: Any) -> str:
    found: str = frame.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


@pytest.mark.slow
def test_a_film_has_the_colours_of_the_notebook_not_of_the_system(notebook: Any) -> None:
    text = film()._repr_html_()
    _, frame = notebook(text, "#ddd", "light")
    assert paper(frame) == DARK
    page, frame = notebook(text, "#333", "dark")
    assert paper(frame) == LIGHT
    page.evaluate("document.body.className = 'other'")  # the reader chooses another theme
    frame.wait_for_function(f"getComputedStyle(document.body).backgroundColor === '{DARK}'")
    page.evaluate("document.querySelector('iframe').remove()")
    page.evaluate("document.body.className = 'plain'")  # no error in the removed frame


@pytest.mark.slow
def test_the_pictures_of_a_step_have_the_colours_of_the_notebook(notebook: Any) -> None:
    pictures = visits()
    for ink, system, scheme in (("#ddd", "light", "dark"), ("#333", "dark", "light")):
        _, frame = notebook(pictures._repr_html_(), ink, system)
        assert frame.evaluate("document.documentElement.style.colorScheme") == scheme


@pytest.mark.slow
@pytest.mark.parametrize("rights", ["allow-scripts allow-same-origin", "allow-scripts"])
def test_a_film_runs_in_a_sandbox_with_a_strict_policy(notebook: Any, rights: str) -> None:
    head = f'<meta http-equiv="Content-Security-Policy" content="{EDITOR}">'
    text = film()._repr_html_().replace("<iframe", f'<iframe sandbox="{rights}"')
    _, frame = notebook(text, "#333", "light", head)
    frame.click("#next")
    assert frame.inner_text("#counter").startswith("2 of")


def test_words_stand_in_for_a_frame_that_a_notebook_removes() -> None:
    for shown in (film(), tn.show.compare(film(), film()), visits()):
        words = re.sub("<[^>]*>", "", shown._repr_html_())
        assert words == "A film is here. To see the film, run the cell, or trust the notebook."

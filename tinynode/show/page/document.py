"""The film of a computation, as a page with a step at a time.

Requirement: a learner opens a single file, anywhere, and sees the computation. So the document
contains style, script and film. Without scripts, the page has the steps in words. The page makes
no request, and the Content-Security-Policy forbids requests. The policy also forbids other scripts
and styles, by hashes. Texts of the film (names of variables, source code) are data: the script
reads a JSON element, and inserts plain text.

The parts are files in ``files``: ``template.html``, the style sheets of ``STYLE``, and the
script in the order of ``SCRIPT``.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

from tinynode.show.films.text import short_text

STYLE = (
    *("style.css", "chain.css", "watch.css", "quiz.css", "failure.css", "rerun.css"),
    *("compare.css", "memory.css", "folds.css", "change.css"),
)
"""The style sheets, later ones in front."""

SCRIPT = (
    "film.js",
    "elements.js",
    "words.js",
    "arrays.js",
    "graph.js",
    "letters.js",
    "chain.js",
    "focus.js",
    "folds.js",
    "iterations.js",
    "memory.js",
    "watch.js",
    "panels.js",
    "quiz.js",
    "compare.js",
    "failure.js",
    "rerun.js",
    "change.js",
    "scheme.js",
    "stepper.js",
)
"""The files of the script, each after the files with the names in use."""


FORM = ("shape", "dtype", "rows", "columns", "sampled", "thinned")
"""The properties that arrays of a variable share in all iterations."""


def page(data: dict[str, Any]) -> str:
    """A film as a self-contained HTML document.

    Args:
        data: the film, from ``Film.data()``. With a text "program", the page offers an edit, and
            may send the program to the page's own server. With "host", the page offers changes of
            numbers: "notebook" gives a line of Python, "course" asks the page around the frame.

    Raises:
        ValueError: the film has a number without a form in JSON (nan, infinity).
    """
    style = "\n".join(_part(name) for name in STYLE)
    code = script()
    return Template(_part("template.html")).substitute(
        title=html.escape(str(data["title"])),
        policy=_policy(style, code, is_served="program" in data),
        style=style,
        script=code,
        words=html.escape(short_text(data)),
        data=_json_for_html(packed(data)),
    )


def script() -> str:
    """The script of every film's page."""
    return "\n".join(_part(name) for name in SCRIPT)


def frame(document: str, title: str, height: float) -> str:
    """A document in a frame, for the output of a cell.

    Notebooks remove frames from outputs that the reader has not run. The words inside of the
    frame stay, and say what to do. A browser with the frame shows the document.
    """
    escaped, name = (html.escape(text, quote=True) for text in (document, title))
    return (
        f'<iframe srcdoc="{escaped}" title="{name}" '
        f'style="width: 100%; height: {height:.0f}px; border: 0">'
        "A film is here. To see the film, run the cell, or trust the notebook.</iframe>"
    )


def scheme_script() -> str:
    """The part of the script that chooses light or dark colours, for other pages in frames."""
    return _part("scheme.js")


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """A film in few letters: what many arrays share is written once.

    ``values["forms"]`` has shape, dtype, rows, columns, "sampled" and "thinned".
    ``values["arrays"]`` has the number of the form, min, max, mean, "bad" and the cells. An
    iteration's values are the middle index, then the distance of each from the middle.
    """
    forms: dict[str, int] = {}
    arrays = []
    for value in data["values"]:
        form = json.dumps([value[key] for key in FORM], separators=(",", ":"))
        number = forms.setdefault(form, len(forms))
        numbers = [value[key] for key in ("min", "max", "mean", "bad", "cells")]
        arrays.append([number, *numbers])
    iterations = []
    for one in data["iterations"]:
        known = sorted(value for value in one["values"] if value is not None)
        base = known[len(known) // 2] if known else 0
        distances = [None if value is None else value - base for value in one["values"]]
        iterations.append({**one, "values": [base, *distances]})
    values = {"forms": [json.loads(form) for form in forms], "arrays": arrays}
    return {**data, "iterations": iterations, "values": values}


def _part(name: str) -> str:
    """A file of the page, with line ends ``\\n``, as the browser's parser hashes them."""
    path = files("tinynode.show.page") / "files" / name
    return path.read_text(encoding="utf-8")


def _policy(style: str, script: str, *, is_served: bool) -> str:
    """A Content-Security-Policy: no requests, and only the given style and script.

    A served page may send requests to its own origin.
    """
    return ("connect-src 'self'; " if is_served else "") + (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _json_for_html(data: dict[str, Any]) -> str:
    """JSON without ``<``, which could end the script element: strings have ``\\u003c``."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")

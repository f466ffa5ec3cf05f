"""The film of a computation, as one page to step through.

Requirement: a learner opens one file, anywhere, and sees what happened. So the page holds all it
needs: its style, its script and the film, inlined into one document. It makes no request, and its
Content-Security-Policy forbids any; it also forbids every script and style but these two, by their
hashes. What the film says (names of variables, source code) is data: it is read from a JSON
element, and the script inserts it as text.

The parts are files of their own in ``page_files``, to be read: ``template.html``, ``style.css``,
and the script in the order of ``SCRIPT``.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

SCRIPT = (
    "film.js",
    "elements.js",
    "arrays.js",
    "graph.js",
    "focus.js",
    "panels.js",
    "stepper.js",
)
"""The files of the script: data first, what uses everything last."""


def page(data: dict[str, Any]) -> str:
    """One self-contained HTML document that shows a film.

    Args:
        data: the film, as ``Film.data()`` makes it.

    Raises:
        ValueError: the film has a number that JSON cannot say (nan, infinity).
    """
    style = _part("style.css")
    script = "\n".join(_part(name) for name in SCRIPT)
    return Template(_part("template.html")).substitute(
        title=html.escape(str(data["title"])),
        policy=_policy(style, script),
        style=style,
        script=script,
        data=_json_for_html(data),
    )


def _part(name: str) -> str:
    """A file of the page; line ends become those that the browser's parser hashes."""
    path = files("tinynode.show") / "page_files" / name
    return path.read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A Content-Security-Policy: nothing is loaded, and nothing runs but these two texts."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _json_for_html(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element: ``<`` only occurs in strings, as ``\\u003c``."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")

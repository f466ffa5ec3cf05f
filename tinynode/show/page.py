"""The film of a computation, as a page with a step at a time.

Requirement: a learner opens a single file, anywhere, and sees the computation. So the document
contains style, script and film. The page makes no request, and the Content-Security-Policy forbids
requests. The policy also forbids other scripts and styles, by hashes. Texts of the film (names of
variables, source code) are data: the script reads a JSON element, and inserts plain text.

The parts are files in ``page_files``: ``template.html``, ``style.css``, and the script in the
order of ``SCRIPT``.
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
"""The files of the script, each after the files with the names in use."""


def page(data: dict[str, Any]) -> str:
    """A film as a self-contained HTML document.

    Args:
        data: the film, from ``Film.data()``.

    Raises:
        ValueError: the film has a number without a form in JSON (nan, infinity).
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
    """A file of the page, with line ends ``\\n``, as the browser's parser hashes them."""
    path = files("tinynode.show") / "page_files" / name
    return path.read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A Content-Security-Policy: no requests, and only the given style and script."""
    return (
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

"""The Content-Security-Policy of the site's pages.

Requirement: no page asks another host, and no text becomes a script. The scripts of a page are
files of the site, and the inline scripts that the build has put there, known by their hashes. A
frame with a document of its own has the policy of its page, so its scripts count too.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator

from tinynode.show.page import document
from tinynode_course import pictures

SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)
FRAME = re.compile(r'<iframe srcdoc="([^"]*)"')
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

PLAIN = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # formulas and tables have styles of their own
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "frame-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
"""The policy of a page that is read: the search runs in a worker."""

RUNNING = {
    **PLAIN,
    "script-src": "'self' 'wasm-unsafe-eval' blob:",
    "worker-src": "'self' blob:",
}
"""The policy of a page that runs Python. A worker made of a Blob has the policy of the page."""


def with_policy(page: str, *, runs_python: bool = False) -> str:
    """A page with its policy, in place of an earlier one."""
    page = POLICY.sub("", page)
    scripts = list(inline_scripts(page))
    if runs_python:
        scripts += [document.script(), pictures.FILM_SCRIPT]
    policy = dict(RUNNING if runs_python else PLAIN)
    policy["script-src"] = " ".join([policy["script-src"], *sorted(set(map(source, scripts)))])
    content = "; ".join(f"{name} {value}" for name, value in policy.items())
    tag = f'<meta http-equiv="Content-Security-Policy" content="{content}">'
    return re.sub(r"<head>|(?=<meta charset)", lambda found: found[0] + tag, page, count=1)


def inline_scripts(page: str) -> Iterator[str]:
    """The scripts in a page and in its frames, without files and data."""
    documents = [page, *(html.unescape(text) for text in FRAME.findall(page))]
    for text in documents:
        for attributes, script in SCRIPT.findall(text):
            if "src=" not in attributes and "json" not in attributes:
                yield script


def source(script: str) -> str:
    """The word for a script in a policy."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

"""The course in the reader's browser: the built site, a static server, and a tab.

``TINYNODE_BROWSER_SITE`` names a site made by ``python -m tools.browser_site``; else one is built.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tools.browser_site import __main__ as browser_site

SECONDS = 120


class Handler(http.server.SimpleHTTPRequestHandler):
    """A server of plain files that says nothing."""

    heard: ClassVar[list[str]] = []
    """The request line and the headers of each request, of all servers."""

    def parse_request(self) -> bool:
        """Keep what the browser has sent."""
        is_read = super().parse_request()
        self.heard.append(f"{self.requestline}\n{self.headers}" if is_read else "")
        return is_read

    def log_message(self, format: str, *args: Any) -> None:
        """No words."""


def built_site(base: Path) -> Path:
    """The built site; one process of the tests builds, and the others wait.

    Args:
        base: the base of the temporary folders of the process.
    """
    if os.environ.get("TINYNODE_BROWSER_SITE"):
        return Path(os.environ["TINYNODE_BROWSER_SITE"])
    if shutil.which("npm") is None:
        pytest.skip("npm, which fetches Python for WebAssembly, is not installed")
    pytest.importorskip("mkdocs", reason="the site is built by mkdocs, which is not installed")
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "browser-site"
    try:
        (shared / "browser-site-lock").mkdir()
    except FileExistsError:
        while not (shared / "browser-site-done").exists():
            time.sleep(1)
    else:
        try:
            browser_site.main(["--site-dir", str(folder)])
        finally:
            (shared / "browser-site-done").touch()
    if not (folder / "browser" / "python" / "files.json").exists():
        pytest.fail("the site could not be built")
    return folder


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a static server for a folder."""
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def wait_for(page: Any, expression: str) -> None:
    """Wait until an expression is true; pages forbid the ``eval`` of ``wait_for_function``."""
    end = time.monotonic() + SECONDS
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"{expression} did not become true"
        page.wait_for_timeout(20)


class Tab:
    """A tab of the browser, with all requests and errors."""

    def __init__(self, context: Any, address: str) -> None:
        self.address = address
        self.page = context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, stem: str) -> None:
        """Go to a page of the course."""
        self.page.goto(f"{self.address}tutorials/{stem}/")
        self.page.wait_for_selector("html[data-tinynode=ready]", state="attached")

    def press(self, selector: str) -> None:
        """Press a button, and wait for the end of Python's work."""
        self.page.click(selector)
        self.wait()

    def wait(self) -> None:
        """Wait for the end of Python's work."""
        wait_for(self.page, "!tinynodePage.busy")

    def text(self, selector: str) -> str:
        """The text of an element."""
        said: str = self.page.inner_text(selector)
        return said

    def output(self, number: int) -> str:
        """The text below a cell, counted from 1."""
        return self.text(f".tn-cell:has([aria-label='Run cell {number}']) .tn-output")

    def local(self) -> bool:
        """True if all requests went to the server of the site."""
        inside = (self.address, "data:", "blob:", "about:")
        return all(url.startswith(inside) for url in self.requests)

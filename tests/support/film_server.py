"""A film's server in a thread of the test, with a runner that runs nothing."""

from __future__ import annotations

import contextlib
import http.client
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tinynode.commands.step_server import FilmServer, Outcome, Runner
from tinynode.show.films.changes import Change

SCRIPT = """\
import numpy as np
import tinynode as tn

x = tn.Variable(np.array([1.0, 2.0]), name="x")
y = tn.functions.sum(x * x)
y.backward()
print("y is", y.array)
"""


class FakeRunner(Runner):
    """Notes the texts, and runs nothing."""

    def __init__(self) -> None:
        super().__init__("script.py", [], quiz=False, limit=1.0)
        self.texts: list[str] = []
        self.changes: list[list[Change]] = []
        self.stopped = 0

    def run(self, text: str, changes: Sequence[Change] = ()) -> Outcome | None:
        self.texts.append(text)
        self.changes.append(list(changes))
        if text == "busy":
            return None
        page = None if "no page" in text else b"new page"
        return Outcome(page, "printed", "It failed." if "bad" in text else "")

    def stop(self) -> None:
        self.stopped += 1


@contextlib.contextmanager
def serving(runner: Runner) -> Iterator[FilmServer]:
    server = FilmServer(runner, b"old page")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.close()


def request(
    server: FilmServer,
    method: str = "POST",
    name: str = "run",
    content: bytes = b'{"program": "text"}',
    token: str | None = None,
    **headers: str | None,
) -> tuple[int, str, Any]:
    """A request as the page sends it, with changes; None leaves a header out."""
    sent = {
        "Host": server.host,
        "Origin": f"http://{server.host}" if method == "POST" else None,
        "Content-Type": "application/json" if method == "POST" else None,
        "Content-Length": str(len(content)) if method == "POST" else None,
    } | {key.replace("_", "-"): value for key, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    path = f"/{server.token if token is None else token}/{name}"
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for key, value in sent.items():
        if value is not None:
            connection.putheader(key, value)
    connection.endheaders(content if method == "POST" else None)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text, reply.headers


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one may wait for its parent."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_until(is_true: Any) -> None:
    for _ in range(2000):
        if is_true():
            return
        time.sleep(0.01)
    pytest.fail("what was waited for did not happen")

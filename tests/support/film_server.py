"""A film's server in a thread of the test, with a runner that runs nothing."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinynode.commands.step_server import FilmServer, Outcome, Runner

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
        self.stopped = 0

    def run(self, text: str) -> Outcome | None:
        self.texts.append(text)
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

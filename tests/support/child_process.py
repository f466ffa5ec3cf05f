"""Child processes of tests: they obey Ctrl-C, and end with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A child process with a process group of its own; at the end the group is killed.

    A shell starts commands in the background with SIGINT ignored, and children inherit that.
    The child gets the default handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, start_new_session=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[Any]) -> None:
    """End a process and its group, and close the pipes to it.

    A command may have children outside of the group. So Ctrl-C comes first, if it still runs.
    """
    if os.name == "posix":
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()

"""Child processes of tests: Ctrl-C and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from child_process import running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


@pytest.fixture
def sigint_is_ignored() -> Iterator[None]:
    """As in a command that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_reaches_a_child_though_the_tests_ignore_it(sigint_is_ignored: None) -> None:
    code = "print('begun', flush=True)\nwhile True: pass"
    with running(
        [sys.executable, "-ISc", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_child_ends_with_the_test_and_its_own_children_too() -> None:
    ours, theirs = os.pipe()
    command = "sleep 60 & echo begun; exec sleep 60"
    with (
        pytest.raises(ZeroDivisionError),
        running(["sh", "-c", command], stdout=subprocess.PIPE, pass_fds=[theirs]) as process,
    ):
        os.close(theirs)
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        raise ZeroDivisionError
    assert process.returncode is not None and process.stdout.closed
    assert os.read(ours, 1) == b""  # the last process that could write has ended
    os.close(ours)

"""Saves that are killed, or that meet a full disk, at random moments.

After each, the old file or the new file loads whole, and the next save removes what is left.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from tinynode import atomic_file, nn
from tinynode.net import NetOp, Operator, load_net, save_net

if sys.platform == "win32":
    pytest.skip("needs fork, SIGKILL and resource limits", allow_module_level=True)
import resource

Save = Callable[[], None]


class Arrays:
    """Files of ``nn.save``; a version has an array with the version's number in each element."""

    @staticmethod
    def save(path: Path, version: int, size: int) -> None:
        nn.save(path, {"a": numpy.full(size, version), "b": numpy.asarray(version)})

    @staticmethod
    def load(path: Path) -> int:
        state = nn.load(path)
        (version,) = {*state["a"].tolist(), int(state["b"])}
        return version


class Nets:
    """Files of ``save_net``; a version has the version's number in each operator."""

    @staticmethod
    def save(path: Path, version: int, size: int) -> None:
        name = str(version)
        operators = [Operator("exp", [name], [f"{name}.{i}"]) for i in range(size // 80)]
        save_net(path, NetOp(operators, name))

    @staticmethod
    def load(path: Path) -> int:
        net = load_net(path)
        names = {name for operator in net.operators for name in operator.inputs["x0"]}
        assert names <= {net.type}
        return int(net.type)


def in_child(work: Callable[[], None]) -> int:
    """Run a function in a child process; returns the signal that killed the child, or 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
        except OSError:
            os._exit(1)
        except BaseException:
            os._exit(2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) < 2
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed_at_line(save: Save, count: int) -> int:
    """Kill the save before the line of that number in the file that writes; 0 if it ended."""

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != atomic_file.__file__:
            return None
        if event == "line":
            count -= 1
            if count < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def work() -> None:
        sys.settrace(trace)
        save()

    return in_child(work)


def killed_at_byte(save: Save, count: int) -> int:
    """Kill the save when the file has that size; 0 if the file stays smaller."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (count, count))
        save()

    return in_child(work)


def disk_full_at_byte(save: Save, count: int) -> int:
    """Let the disk be full when the file has that size; 1 if the save raised an OSError."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        save()
    except OSError:
        return 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return 0


@pytest.fixture(autouse=True)
def no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that the system has; only a power cut would need ``fsync``."""

    def fsync(file: int) -> None:
        pass

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("kind", [Arrays, Nets])
def test_a_save_that_does_not_end_leaves_a_whole_file(
    kind: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = max(8, request.config.getoption("--programs", 200) // 5)
    draw = random.Random(1)
    path = tmp_path / "file"
    version, broken, left = 0, 0, 0
    kind.save(path, version, 1)
    for number in range(count):
        size = draw.choice([0, 10, 1000, 8000])
        end, most = draw.choice(
            [(killed_at_line, 60), (killed_at_byte, 12 * size), (disk_full_at_byte, 12 * size)]
        )

        def save(size: int = size, number: int = number) -> None:
            kind.save(path, number + 1, size)

        status = end(save, draw.randint(0, most))
        found = kind.load(path)
        assert found in (version, number + 1)
        version = found
        broken += status != 0
        left += len(os.listdir(tmp_path)) > 1
        if draw.random() < 0.7:  # else the next save is the next to be killed
            version = number + 1
            kind.save(path, version, size)
            assert kind.load(path) == version
            assert os.listdir(tmp_path) == ["file"]
    assert broken > count / 4 and left > count / 10


def test_saves_side_by_side_spoil_no_other(tmp_path: Path) -> None:
    """Three processes write one file; a fourth is killed again and again."""
    path = tmp_path / "file"
    Arrays.save(path, 0, 10)

    def work() -> None:
        for version in range(30):
            Arrays.save(path, version, 1000)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        children = []
        for _ in range(3):
            child = os.fork()
            if not child:
                try:
                    work()
                finally:
                    os._exit(0 if sys.exception() is None else 1)
            children.append(child)
    for count in range(0, 40, 4):
        killed_at_line(lambda: Arrays.save(path, 99, 1000), count)
        Arrays.load(path)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    Arrays.save(path, 1, 10)
    assert os.listdir(tmp_path) == ["file"]

"""The quick runner: a plugin of pytest that tries each mutant in a fork of the collected suite.

Requirement: collecting the tests takes longer than most tests. So one process imports and collects
everything once. For each mutant a child process takes over the mutated code of the function, runs
the chosen tests until one fails, and ends. The files of the checkout are never changed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import resource
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import pytest

from tools.mutation.live import Changes, LiveCode

SURVIVED, KILLED, TIME = "survived", "killed", "time"
MEMORY = 6 << 30  # bytes of address space of a child: some mutants allocate without end
CPU, CPU_FACTOR = 5.0, 10.0  # seconds of the processor for a test, and per second without mutant
WALL, WALL_FACTOR = 60.0, 20.0  # seconds on the wall for all tests of a mutant; likewise


@dataclass(frozen=True)
class Verdict:
    """What the tests say: ``survived``, ``killed`` or ``time``, and the test that failed."""

    outcome: str
    test: str = ""


class WarmRunner:
    """Runs tests on mutants in forks of this process.

    Args:
        items: the collected tests.
        root: the folder of the imported checkout.
    """

    def __init__(self, items: list[pytest.Item], root: pathlib.Path) -> None:
        self.items = {item.nodeid: item for item in items}
        self.live = LiveCode(root)
        gc.collect()
        gc.freeze()  # the collector of a child leaves the memory shared with the parent

    def run(self, changes: Changes, tests: list[str], seconds: dict[str, float]) -> Verdict:
        """Run tests with changed code in a child process, up to the first failure."""
        sys.stdout.flush()
        sys.stderr.flush()
        chosen = [(self.items[one], seconds[one]) for one in tests if one in self.items]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _in_child(changes, chosen, writer)
        os.close(writer)
        limit = WALL + WALL_FACTOR * sum(one for _, one in chosen)
        ready = select.select([reader], [], [], limit)[0]
        told = os.read(reader, 1 << 16).decode() if ready else TIME
        os.close(reader)
        for end in (os.killpg, os.kill):  # the tests may have started processes
            with contextlib.suppress(ProcessLookupError):
                end(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if told == TIME or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF):
            return Verdict(TIME)
        if told == SURVIVED:
            return Verdict(SURVIVED)
        return Verdict(KILLED, told or "the process crashed")


def _in_child(changes: Changes, chosen: list[tuple[pytest.Item, float]], writer: int) -> NoReturn:
    told = "the tests did not start"
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for owner, name, value in changes:
            setattr(owner, name, value)
        told = first_failure(chosen) or SURVIVED
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a mutant too
        told = f"{type(error).__name__} outside of a test"
    finally:
        os.write(writer, told.encode())
        os._exit(0)


class FirstFailure:
    """A plugin of pytest that remembers the name of the first failed test."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid


def first_failure(chosen: list[tuple[pytest.Item, float]]) -> str:
    """Run tests up to the first failure, and give its name; empty if all pass."""
    listener = FirstFailure()
    following = [item for item, _ in chosen[1:]]
    for (item, seconds), after in zip(chosen, [*following, None], strict=True):
        if item is chosen[0][0]:
            item.config.pluginmanager.register(listener)
        # seconds of the processor: a busy machine does not end a test
        signal.setitimer(signal.ITIMER_PROF, CPU + CPU_FACTOR * seconds)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if listener.name:
            break
    return listener.name


Task = Callable[[WarmRunner], None]


class WarmPlugin:
    """Replaces the loop of pytest: the task gets a runner with all collected tests."""

    def __init__(self, root: pathlib.Path, task: Task) -> None:
        self.root, self.task = root, task

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.task(WarmRunner(session.items, self.root))
        return True


def with_warm_suite(root: pathlib.Path, files: list[str], task: Task) -> int:
    """Collect test files and run a task on the collected suite."""
    plugin = WarmPlugin(root, task)
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(root), *files]
    return pytest.main(arguments, plugins=[plugin])

"""A plugin of pytest that writes the seconds of each passed test, as JSON.

Requirement: the choice of tests needs times, and only tests that pass without a mutant. The option
``--record-seconds FILE`` names the file. With pytest-xdist, the controller writes the file.
"""

from __future__ import annotations

import json
import pathlib

import pytest


class SecondsRecorder:
    """Adds up the seconds of setup, call and teardown of each test."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = {}
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.when == "call" and report.outcome == "passed":
            self.passed.add(report.nodeid)
        if report.outcome == "failed":
            self.passed.discard(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        kept = {name: round(s, 4) for name, s in self.seconds.items() if name in self.passed}
        self.path.write_text(json.dumps(kept, indent=0), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-seconds", type=pathlib.Path, help="a JSON file to write")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record-seconds")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondsRecorder(path))

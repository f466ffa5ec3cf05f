"""The quick checks: which tests a change runs, and what a failure does."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tools import quick_checks

ALWAYS = list(quick_checks.ALWAYS)


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ([], []),
        (["tinynode/functions/loss.py"], ["tests/functions"]),
        (["tinynode/random.py"], ["tests/core"]),
        (["tinynode/learn/__init__.py"], ["tests/course"]),
        (["backends/tinynode_fast/plan.py"], ["tests/backends"]),
        (["docs/films.md", "README.md"], ["tests/tools"]),
        (["tutorials/step01_box_and_op.py"], ["tests/course"]),
        (["tests/nn/test_gone.py"], ["tests/core"]),
        (["tests/core/test_variable.py"], ["tests/core/test_variable.py"]),
        (["tests/core/test_variable.py", "tinynode/core/variable.py"], ["tests/core"]),
    ],
)
def test_a_change_runs_the_tests_of_its_room(changed: list[str], tests: list[str]) -> None:
    assert quick_checks.tests_of(changed) == sorted([*ALWAYS, *tests])


def test_all_checks_run_and_a_failure_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command[2])
        return subprocess.CompletedProcess(command, int("mypy" in command))

    monkeypatch.setattr(quick_checks, "changed_files", lambda base: ["tinynode/nn/data.py"])
    monkeypatch.setattr(quick_checks.subprocess, "run", run)
    assert quick_checks.main([]) == 1
    assert ran == ["ruff", "ruff", "tools.prose", "mypy", "pytest"]
    out = capfd.readouterr().out
    assert "--- types: failed" in out and out.endswith("failed: types\n")


def test_an_unknown_base_is_named() -> None:
    with pytest.raises(SystemExit, match="no-such-revision"):
        quick_checks.changed_files("no-such-revision")

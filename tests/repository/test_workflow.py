"""The checks of a pull request: pinned actions, no rights but to read, and stages that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.versions import PYTHONS

yaml = pytest.importorskip("yaml", reason="PyYAML, which mkdocs and jupytext need, is missing")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
CHECKS = ROOT / ".github" / "workflows" / "checks.yml"
MORE_RIGHTS = {
    ("release.yml", "publish"): {"id-token": "write"},
    ("site.yml", "publish"): {"contents": "write"},
}
"""Jobs with more rights than to read, and why: the package index, and the branch of the site."""

PINNED = re.compile(r"- uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")


def read(path: Path) -> dict[Any, Any]:
    """A workflow; PyYAML reads the key ``on`` as True."""
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    """The steps of all jobs of a workflow."""
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def stages_of(job: dict[str, Any]) -> set[str]:
    """The stages of .ci/run that a job runs."""
    found: set[str] = set()
    for step in job["steps"]:
        for command in step.get("run", "").splitlines():
            shell, script, *names = command.split()
            assert shell == "bash" and script in (".ci/run", ".ci/publish-site"), command
            if script == ".ci/run":
                found.update(names)
    if '"$STAGE"' in found:
        found.remove('"$STAGE"')
        found.update(job["strategy"]["matrix"]["stage"])
    return found


def run_stage(name: str) -> subprocess.CompletedProcess[str]:
    """Run a stage of .ci/run."""
    command = ["bash", str(ROOT / ".ci" / "run"), name]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_action_is_pinned_to_a_commit(path: Path) -> None:
    used = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert used and [line for line in used if not PINNED.fullmatch(line.strip())] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read(path: Path) -> None:
    """A workflow on ``pull_request`` gets no secrets and no right to write from a fork."""
    workflow = read(path)
    assert workflow["permissions"] == {}
    events = set(workflow[True])
    for name, job in workflow["jobs"].items():
        more = MORE_RIGHTS.get((path.name, name))
        assert job["permissions"] == (more or {"contents": "read"})
        assert job["timeout-minutes"] <= 360
        if more is not None:  # a person presses the button
            assert events == {"workflow_dispatch"} and job["environment"] == "release"
        if "pull_request" in events:
            assert job["timeout-minutes"] <= 60
    assert events <= {"pull_request", "push", "schedule", "workflow_dispatch"}
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_command_contains_text_of_a_pull_request(path: Path) -> None:
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_the_jobs_run_stages_that_exist() -> None:
    unknown = run_stage("nothing")
    assert unknown.returncode == 2 and unknown.stdout == ""
    there = set(unknown.stderr.partition("The stages are: ")[2].split())
    used = set().union(*(stages_of(job) for job in read(CHECKS)["jobs"].values()))
    assert {"style", "types", "tests", "docs", "sizes"} <= used <= there
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            assert stages_of(job) <= there, path.name


def test_the_tests_run_on_each_supported_python() -> None:
    jobs = read(CHECKS)["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == list(PYTHONS)
    assert stages_of(jobs["tests"]) == {"tests"}

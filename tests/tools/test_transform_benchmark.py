"""The jobs of ``tools.benchmarks.transforms`` run, with tiny sizes; no time is asserted."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TITLES = [
    "gradients 64-64-10",
    "gradients 784-100-10",
    "jacrev",
    "jacfwd",
    "hessian",
    "hvp",
    "jvp perceptron",
    "jvp convolution",
    "jvp transformer",
]


@pytest.fixture
def transforms() -> Iterator[Any]:
    """The module, without leaving behind what it sets in the environment."""
    before = os.environ.copy()
    try:
        yield importlib.import_module("tools.benchmarks.transforms")
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def test_the_report(tmp_path: Path) -> None:
    """Run as users run it: a table of all jobs, the ratios, and all numbers as JSON."""
    path = tmp_path / "results.json"
    command = [sys.executable, "-W", "error", "-m", "tools.benchmarks.transforms", "--tiny"]
    command += ["--rounds=2", "--libraries=", f"--json={path}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "gradients 64-64-10: numpy, loop" in result.stdout
    assert "jvp perceptron: fast compiled / fast compiled, forward" in result.stdout
    measured = json.loads(path.read_text())["threads"]["1"]["jobs"]
    assert list(measured) == TITLES
    for times in measured.values():
        for name in ("numpy", "fast", "numpy compiled", "fast compiled"):
            assert len(times[name]) == 2 and min(times[name]) > 0


@pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated"
)  # the class differs by version
@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("peer", ["torch.func", "jax.jit"])
def test_peers_agree(transforms: Any, title: str, peer: str) -> None:
    pytest.importorskip(peer.partition(".")[0])
    job = transforms.transform_jobs.jobs(True)[title]()
    transforms.check(transforms.contestants(job, ["numpy", peer]))


@pytest.mark.parametrize("title", ["gradients 64-64-10", "hessian", "hvp", "jvp convolution"])
def test_a_wrong_result_is_found(transforms: Any, title: str) -> None:
    job = transforms.transform_jobs.jobs(True)[title]()
    runs = transforms.contestants(job, ["numpy", "fast"])
    right = runs["fast"]

    def wrong() -> Any:
        results = transforms.leaves(right())
        results[-1] = results[-1] * 1.01 + 0.01
        return results

    with pytest.raises(AssertionError, match="fast, result"):
        transforms.check(runs | {"fast": wrong})


def test_jobs_and_libraries_are_chosen_by_name(
    transforms: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert transforms.chosen(["gradients", "hvp"]) == [*TITLES[:2], "hvp"]
    assert transforms.chosen([]) == TITLES
    with pytest.raises(SystemExit, match="unknown: svd; choose from gradients 64-64-10"):
        transforms.chosen(["svd"])
    with pytest.raises(SystemExit, match=r"unknown: torch; choose from torch\.func"):
        transforms.available("torch")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert transforms.available("jax.jit") == list(transforms.TINYNODE)
    assert "skipped: jax.jit, for jax is not installed" in capsys.readouterr().out

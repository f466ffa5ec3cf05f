"""The workloads run, with tiny sizes, and a wrong result is found; no time is asserted."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workloads() -> Iterator[Any]:
    """The module, without leaving behind what it sets in the environment."""
    before = os.environ.copy()
    try:
        yield importlib.import_module("tools.benchmarks.workloads")
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def titles() -> list[str]:
    return ["W1", "W2 batch 64", "W2 batch 1024", "W3", "W4", "W5", "W6", "W7"]


def test_the_report(tmp_path: Path) -> None:
    """Run as users run it: a table for each workload, the ratios, and all numbers as JSON."""
    path = tmp_path / "results.json"
    command = [sys.executable, "-W", "error", "-m", "tools.benchmarks.workloads"]
    command += ["--tiny", "--rounds=2", "--libraries=", "--only", "W1", "W5", f"--json={path}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "W1, us per operation" in result.stdout and "in blocks by hand" in result.stdout
    found = json.loads(path.read_text())
    measured = found["threads"]["1"]["workloads"]
    assert list(measured) == ["W1", "W5"]
    for times in measured.values():
        for name in ("numpy device", "fast", "compiled", "by hand"):
            assert len(times[name]["wall"]) == len(times[name]["cpu"]) == 2
            assert min(times[name]["wall"]) > 0
    assert found["peak bytes"]["W5"].keys() == {"numpy device", "fast", "compiled"}


@pytest.mark.parametrize("title", titles())
def test_tinynode_and_by_hand_agree_with_the_reference(workloads: Any, title: str) -> None:
    for full, make in workloads.workloads(True).items():
        if full.startswith(title):
            names = [n for n in workloads.available("") if n not in workloads.left_out(full)]
            workload = make()
            workloads.check(workload, {n: workloads.make_run(workload, n) for n in names})


@pytest.mark.parametrize("title", ["W1", "W2 batch 64", "W3", "W4", "W5", "W7"])
@pytest.mark.parametrize("peer", ["torch", "jax", "autograd", "mygrad"])
def test_peers_agree_with_the_reference(workloads: Any, title: str, peer: str) -> None:
    pytest.importorskip(peer)
    for full, make in workloads.workloads(True).items():
        if full.startswith(title) and peer not in workloads.left_out(full):
            workload = make()
            workloads.check(workload, {peer: workloads.make_run(workload, peer)})


@pytest.mark.parametrize("title", ["W1", "W2 batch 64", "W3", "W4", "W5"])
def test_a_wrong_result_is_found(workloads: Any, title: str) -> None:
    workload = workloads.workloads(True)[title]()
    run = workloads.make_run(workload, "by hand")

    def wrong() -> Any:
        results = [np.array(workloads.host(result)) for result in run()]
        results[-1].flat[0] += 0.01 * max(1.0, float(np.abs(results[-1]).max()))
        return results

    with pytest.raises(AssertionError, match="a liar, result"):
        workloads.check(workload, {"a liar": wrong})


def test_titles_and_libraries_are_chosen_by_name(workloads: Any) -> None:
    assert workloads.chosen(["W2", "W5"]) == ["W2 batch 64", "W2 batch 1024", "W5"]
    assert len(workloads.chosen([])) == 9
    with pytest.raises(SystemExit, match="unknown: W9; choose from W1, W2 batch 64"):
        workloads.chosen(["W9"])
    with pytest.raises(SystemExit, match="unknown: pytorch; choose from torch"):
        workloads.available("pytorch")


def test_a_ratio_is_taken_round_by_round(workloads: Any) -> None:
    times = {"compiled": {"wall": [1.0, 20.0, 3.0]}, "torch": {"wall": [2.0, 40.0, 1.0]}}
    assert workloads.ratio(times, "compiled", "torch", "wall") == 0.5
    assert workloads.ratio(times, "compiled", "jax", "wall") is None

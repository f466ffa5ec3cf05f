"""The benchmarks run, with tiny sizes; no time is asserted."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(benchmark: str, *arguments: str) -> str:
    """What a benchmark prints, run as users run it."""
    command = [sys.executable, "-W", "error", "-m", f"tools.benchmarks.{benchmark}", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def table(text: str) -> dict[str, list[str]]:
    """The rows of a printed table, by their first cell."""
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows[2:]}


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, without leaving the number of threads that the benchmarks set behind."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    return importlib.import_module("tools.benchmarks.measure")


def test_overhead() -> None:
    """With every peer that is installed: their gradients are compared before anything is timed."""
    options = ["--rounds=2", "--depths", "10", "20", "--compiled", "10", "20"]
    text = run("overhead", "--operations=6", *options)
    text, deep = text.split("forward and backward of deep chains")
    deep, compiling = deep.split("time to compile a chain")
    assert {"tinynode", "growth"} <= set(deep.replace("|", " ").split())
    for row in table(compiling).values():
        assert all(float(time) > 0 for time in row)
    assert set(table(compiling)) == {
        "numpy",
        "numpy, with gradients",
        "fast",
        "fast, with gradients",
    }
    rows = table(text)
    assert {"numpy", "tinynode"} <= set(rows)
    for peer in ("torch", "autograd", "mygrad"):
        assert (peer in rows) != (f"skipped: {peer} is not installed" in text)
    assert rows["tinynode"][1] == rows["tinynode"][3] == "1.00"
    assert "numpy " + np.__version__ in text and "6 operations" in text


def test_memory() -> None:
    text = run("memory", "--libraries=tinynode", "--functions=1000")
    assert list(table(text)) == ["tinynode"]
    numbers = re.search(r"tracemalloc: (\S+) bytes per function, (\S+) kB in all after", text)
    assert numbers
    per_function, left = float(numbers[1]), float(numbers[2])
    assert 100 < per_function < 2000 and left < per_function  # bytes x 1000, against kB


def test_import_time() -> None:
    rows = table(run("import_time", "--libraries=tinynode", "--runs=1"))
    assert float(rows["tinynode"][0]) > 0


def test_growth() -> None:
    rows = table(run("growth", "--rows", "forward", "Adam update", "--most=100", "--rounds=1"))
    assert list(rows) == ["forward", "Adam update"]
    for unit, shown, ratio, verdict in rows.values():
        assert unit in ("function", "parameter") and shown.startswith("100: ")
        assert (ratio, verdict) == ("1.00", "yes")


def test_growth_refuses_an_unknown_row(measure: Any) -> None:
    growth = importlib.import_module("tools.benchmarks.growth")
    with pytest.raises(SystemExit, match="unknown: sideways; choose from forward, backward"):
        growth.main(["--rows", "sideways"])


def test_digits_step() -> None:
    rows = table(run("digits_step", "--libraries=numpy,tinynode", "--batch=4", "--rounds=2"))
    assert list(rows) == ["numpy", "tinynode"]


def test_backends() -> None:
    """Losses and weights of the backends are compared before anything is timed."""
    rows = table(run("backends", "--shrink=32", "--rounds=2"))
    assert list(rows) == ["perceptron 64", "perceptron 1024", "convolutional", "transformer"]
    assert all(float(cell) > 0 for row in rows.values() for cell in row)


def test_backends_refuses_an_unknown_workload(measure: Any) -> None:
    backends = importlib.import_module("tools.benchmarks.backends")
    with pytest.raises(SystemExit, match="unknown workload 'lstm'; choose from perceptron 64"):
        backends.main(["--workloads=lstm", "--libraries=tinynode"])


@pytest.mark.parametrize(("position", "what"), [(0, "fast: losses"), (-1, "fast: weights 5")])
def test_backends_compares_before_it_times(measure: Any, position: int, what: str) -> None:
    backends = importlib.import_module("tools.benchmarks.backends")
    workload = backends.workloads(32)["perceptron 64"]
    runs = {name: backends.make_run(name, workload) for name in ("numpy", "fast")}
    backends.check_results(workload, runs)
    right = runs["fast"]

    def wrong() -> Any:
        results = right()
        results[position] = results[position].detach() + 0.01
        return results

    with pytest.raises(AssertionError, match=what):
        backends.check_results(workload, runs | {"fast": wrong})


def test_backends_notices_another_optimizer(measure: Any) -> None:
    backends = importlib.import_module("tools.benchmarks.backends")
    workload = backends.workloads(32)["perceptron 64"]
    other = backends.Training(workload.model, "SGD")
    runs = {
        "numpy": backends.make_run("numpy", workload),
        "fast": backends.make_run("fast", other),
    }
    with pytest.raises(AssertionError, match="fast"):
        backends.check_results(workload, runs)


def test_a_peer_that_is_absent_is_named(
    measure: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_spec(name: str) -> Any:
        return None if name == "torch" else object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    known = ["numpy", "tinynode", "torch"]
    assert measure.available(known, "numpy,torch") == ["numpy", "tinynode"]
    assert "skipped: torch is not installed" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="unknown: pytorch; choose from numpy, tinynode, torch"):
        measure.available(known, "pytorch")


def test_ratios_are_taken_round_by_round(measure: Any) -> None:
    assert measure.median_ratio([1.0, 20.0, 3.0], [2.0, 40.0, 1.0]) == 0.5


def test_chosen_kernels_stand_above_the_figures(
    measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert "cores, NumPy's products for Haswell; one thread" in measure.describe_setting(["numpy"])
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert "cores; one thread" in measure.describe_setting(["numpy"])


@pytest.mark.parametrize("job", [pytest.param("tiny-gpt", marks=pytest.mark.long), "pinn"])
def test_a_job_stays_below_its_limit(job: str) -> None:
    measure = {"tiny-gpt": "held-out loss", "pinn": "largest error"}[job]
    assert f"{job}: {measure}" in run("jobs", "--jobs", job)


def test_implicit() -> None:
    printed = run("implicit", "--size=4", "--unknowns=6", "--runs=1")
    assert len(table(printed)["implicit, gmres"]) == 3
    assert len(table(printed)["ridge, cg"]) == 6
    assert "3 colours" in printed


def test_layers() -> None:
    pytest.importorskip("torch")
    printed = run("layers", "--only", "Linear", "GRU, batch 8", "--rounds=1")
    rows = table(printed)
    assert sorted(rows) == ["GRU, batch 8", "Linear, batch 1"]
    assert all(float(cell) > 0 for cells in rows.values() for cell in cells)

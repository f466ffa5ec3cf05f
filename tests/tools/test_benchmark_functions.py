"""The benchmark of functions runs, and knows every function; no time is asserted."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinynode import functions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SIZES = ("small", "large")
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def table() -> Any:
    """The table, without leaving the number of threads that the benchmarks set behind."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(variable, "1")
        yield importlib.import_module("tools.benchmarks.function_table")


@pytest.fixture(scope="module")
def measuring(table: Any) -> Any:
    return importlib.import_module("tools.benchmarks.functions")


def run(*arguments: str) -> str:
    """What the benchmark prints, run as users run it."""
    command = [sys.executable, "-W", "error", "-m", "tools.benchmarks.functions", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def rows_of(text: str) -> list[list[str]]:
    lines = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def test_every_function_is_measured_or_said_not_to_be(table: Any) -> None:
    names = {name for name in functions.__all__ if not isinstance(getattr(functions, name), type)}
    names |= {f"linalg.{name}" for name in functions.linalg.__all__}
    measured = {one.name for one in table.TABLE}
    assert measured | set(table.NOT_MEASURED) == names
    assert not measured & set(table.NOT_MEASURED)


OUTPUTS_ARE = {"broadcast_arrays", "broadcast_to", "embedding", "linalg.outer", "meshgrid"}


def test_small_inputs_have_about_a_thousand_elements_and_large_ones_a_million(table: Any) -> None:
    for one in table.TABLE:
        if one.name in OUTPUTS_ARE:
            continue
        largest = {size: max(np.prod(getattr(d, size)) for d in one.data) for size in SIZES}
        assert 200 <= largest["small"] <= 2100, one.name
        assert 1e5 <= largest["large"] <= 2.1e6, one.name


def test_all_libraries_compute_the_same(table: Any, measuring: Any) -> None:
    """Small inputs of every entry: values with NumPy's, and gradients with PyTorch's."""
    modules = measuring.load(["torch"] if HAS_TORCH else [])
    for one in table.TABLE:
        arrays = [data.make("small", seed) for seed, data in enumerate(one.data)]
        names = ["numpy", "tinynode"] + ["torch"] * (HAS_TORCH and one.torch is not None)
        runs = {name: measuring.RUNS[name](one, arrays, modules) for name in names}
        measuring.check_values(one, runs)


def test_values_that_differ_are_found(table: Any, measuring: Any) -> None:
    modules = measuring.load([])
    wrong = table.Entry("relu", lambda F, x: F.relu(x) + 0.1, lambda x: x, None, (table.X,))
    array = table.X.make("small", 0)
    runs = {name: measuring.RUNS[name](wrong, [array], modules) for name in ("numpy", "tinynode")}
    with pytest.raises(AssertionError, match="relu: numpy"):
        measuring.check_values(wrong, runs)


def test_a_table_sorted_by_ratio() -> None:
    text = run("--functions", "relu", "floor", "hinge", "--sizes=small", "--rounds=1")
    rows = rows_of(text)
    assert {row[0] for row in rows} == {"relu, small", "floor, small", "hinge, small"}
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in rows)
    assert ("skipped: torch is not installed" in text) != HAS_TORCH
    if HAS_TORCH:
        assert rows[-1][0] == "hinge, small" and rows[-1][-1] == "-"
        assert float(rows[0][-1]) >= float(rows[1][-1])


def test_without_pytorch_the_ratio_is_to_numpy() -> None:
    text = run(
        "--functions", "relu", "tanh", "--sizes=small", "--rounds=1", "--libraries=tinynode"
    )
    rows = rows_of(text)
    assert [row[3] for row in rows] == [row[6] for row in rows] == ["-", "-"]
    assert float(rows[0][5]) >= float(rows[1][5])


def test_unknown_functions_are_named(measuring: Any) -> None:
    with pytest.raises(SystemExit, match=r"unknown: reluu; choose from .*relu"):
        measuring.chosen(["relu", "reluu"])

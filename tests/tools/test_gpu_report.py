"""The GPU report: its code, tried on NumPy's device with little work; no time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> Any:
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}:{ROOT / 'backends'}")
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tools.benchmarks.gpu_report", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_all_parts_on_numpy(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    small = ("--every=200", "--epochs=1", "--rounds=2")
    result = run("--device=numpy", f"--out={path}", *small)
    assert result.returncode == 0, result.stderr
    report = json.loads(path.read_text())
    assert report["device"] == "numpy" and report["every"] == 200
    assert {"python", "numpy", "tinynode", "machine"} == set(report["versions"])
    table = report["op_table"]
    assert table["check_forward"]["passed"] > 10
    assert table["check_gradients"]["passed"] == table["check_dtypes"]["passed"] > 5
    assert not any(row["failed"] or row["failures"] for row in table.values())
    for job in ("digits", "digits-cnn"):
        assert len(report["training"][job]["losses"]) == 1
        assert report["training"][job]["held_out_accuracy"] > 0.5
    for step in report["steps"].values():
        assert {"by hand", "tinynode"} <= set(step["milliseconds"])
        assert ("torch" in step["milliseconds"]) != ("torch" in step["absent"])


def test_failing_rows_are_told(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import op_drivers

    from tools.benchmarks import gpu_report

    def check_hooks(case: Any, device: str) -> None:
        raise AssertionError(f"{case.id} is wrong")

    monkeypatch.setattr(op_drivers, "check_hooks", check_hooks)
    assert gpu_report.main(["--device=numpy", "--every=900", "--parts", "op_table"]) == 1
    report = json.loads(capsys.readouterr().out)
    told = report["op_table"]["check_hooks"]
    assert told["failed"] == len(told["failures"]) > 1
    for row, text in told["failures"].items():
        assert text == f"AssertionError: {row} is wrong"
    assert "training" not in report


def test_without_a_gpu_the_status_is_2_with_one_clear_line() -> None:
    import tinynode as tn
    from tinynode.errors import DeviceError

    try:
        tn.get_device("cupy")
    except DeviceError:
        result = run()
        assert result.returncode == 2 and result.stdout == ""
        assert result.stderr.startswith("gpu_report: no report, since cupy is not usable: ")
        assert len(result.stderr.splitlines()) == 1
    else:
        pytest.skip("there is a usable GPU")

"""The programs to start from, in tutorials/examples: each runs, and reaches its result."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tutorials" / "examples"
RESULTS = {
    "start_tabular": (r"mean error of a held-out price: (\d+\.\d)", 7.0, 11.0),
    "start_images": (r"held-out accuracy: (\d+\.\d) %", 95.0, 100.0),
    "start_sequence": (r"error of the next number: (\d\.\d+)", 0.03, 0.12),
    "start_physics": (r"after 2000 steps: k = (\d\.\d+)", 2.4, 2.6),
    "start_custom_function": (r"held-out accuracy: (\d+\.\d) %", 95.0, 100.0),
    "deep_equilibrium": (r"after 80 steps: .*accuracy: (\d+\.\d) %", 90.0, 100.0),
}
"""The line with the result of a program, and the range of its number."""


def test_every_program_to_start_from_is_short_and_has_a_result() -> None:
    paths = sorted([*EXAMPLES.glob("start_*.py"), *EXAMPLES.glob("deep_*.py")])
    assert {path.stem for path in paths} == set(RESULTS)
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for path in paths:
        assert 30 <= len(path.read_text(encoding="utf-8").splitlines()) <= 62, path.name
        assert f"tutorials/examples/{path.name}" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_a_program_to_start_from_reaches_its_result(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'backends'}", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    pattern, least, most = RESULTS[name]
    found = re.search(pattern, done.stdout)
    assert found and least <= float(found[1]) <= most, done.stdout

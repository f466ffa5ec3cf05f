"""mypy --strict accepts programs of users, and decorated functions keep their types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "typed").glob("*.py"))
ARGUMENTS = "weight: Variable, x: Variable, scale: float ="
REVEALED = [
    f"CompiledFunction[[{ARGUMENTS}], Variable]",
    f"def ({ARGUMENTS}) -> Variable",
    f"def ({ARGUMENTS}) -> Any",
    f"def ({ARGUMENTS}) -> tuple[Variable, Any]",
    f"def ({ARGUMENTS}) -> Any",
    f"def ({ARGUMENTS}) -> Any",
    f"CompiledFunction[[{ARGUMENTS}], Any]",
    f"def ({ARGUMENTS}) -> Variable",
]
"""The types in ``signatures.py``, in its order."""


@pytest.mark.slow
def test_mypy_accepts_the_programs_and_reveals_the_signatures() -> None:
    """The settings of the project are strict."""
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, PROGRAMS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    found = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert [re.sub(r"(\w+\.)+", "", text) for text in found] == REVEALED


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_programs_run(program: Path) -> None:
    """A program that only a type checker accepts would prove little."""
    path = [str(ROOT), str(ROOT / "backends")]
    code = f"import sys, runpy; sys.path[:0] = {path}; runpy.run_path({str(program)!r})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr

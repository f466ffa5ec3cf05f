"""The cost of a gradient on the learner's engine: operations are exact, times are plausible."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tinynode_course import command, cost, mynode


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cost, "SIZES", (10, 1000))
    monkeypatch.setattr(cost, "SECONDS", 0.0)
    yield tmp_path
    mynode.source.folder = None


def test_an_engine_of_step_7_and_the_last_one_have_the_same_operations(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mynode.write_files(mynode.reference("07"), folder / "mynode")
    assert command.main(["cost"]) == 0
    own = capsys.readouterr().out
    assert "engine: your mynode" in own
    for path in sorted((folder / "mynode").rglob("*.py")):
        path.unlink()
    assert command.main(["cost"]) == 0
    reference = capsys.readouterr().out
    assert "engine: the reference" in reference
    for said in (own, reference):
        assert "operations for each element: 7 of y, 12 more for the gradient" in said
        assert "factor: 2.7." in said
        assert len([line for line in said.splitlines() if line.endswith((" us", " ms"))]) == 2


def test_operations_are_those_of_the_formulas() -> None:
    """By hand: sin, *, exp, sin, *, +, sum; backward 2 + 2 + 1 + 2 + 2 and three additions."""
    mynode.use_mynode("07")
    engine = __import__("mynode")
    assert cost.operations(engine) == (7, 9 + 3)
    x = engine.Variable(np.array([0.5]))
    y = cost.value(engine, np.array([0.5]))
    assert float(y.array) == pytest.approx(np.sin(0.5) * 0.5 + np.exp(0.5) * np.sin(0.5))
    other = types.SimpleNamespace(
        **{**vars(engine), "sin": lambda x: engine.square(x)}  # an operation without an entry
    )
    with pytest.raises(cost.CommandError, match="operations of Square are not known"):
        cost.operations(other)
    assert x.grad is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ValueError(3)", "ValueError: 3"),
        ("", "no attribute 'Variable'"),
        ("x = (", "Syntax"),
    ],
)
def test_an_engine_that_is_not_that_far(
    folder: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mynode").mkdir()
    (folder / "mynode" / "__init__.py").write_text(text)
    assert command.main(["cost"]) == 1
    said = capsys.readouterr().err
    assert words in said and "needs step 7" in said and "check 07" in said


def test_durations_have_units() -> None:
    seconds = (3.5e-5, 0.0042, 3.0, 7200.0)
    assert [cost.duration(one) for one in seconds] == ["35 us", "4.2 ms", "3 s", "2 h"]


def test_the_fastest_of_two_runs_counts() -> None:
    runs: list[int] = []
    cost_before = cost.SECONDS
    try:
        cost.SECONDS = 0.0
        assert cost.fastest(lambda: runs.append(1)) >= 0.0
    finally:
        cost.SECONDS = cost_before
    assert len(runs) == 2

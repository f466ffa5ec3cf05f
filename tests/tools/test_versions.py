"""The tool for versions: which pairs are tested, the table, and the interpreters; no network."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import versions

INDEX = """numpy (2.10.1)
Available versions: 2.10.1, 2.10.0, 2.2.6, 2.2.0, 2.1.3, 2.0.2, 1.26.4
  INSTALLED: 2.0.2
"""
AVAILABLE = {"3.11": ["2.1", "2.2"], "3.12": ["2.1", "2.2", "2.10"], "3.13": ["2.10"], "3.14": []}


def test_the_index_is_read_by_minor_versions_from_the_oldest_supported() -> None:
    assert versions.parse_index(INDEX) == ["2.1", "2.2", "2.10"]
    assert versions.parse_index("ERROR: no matching distribution\n") == []


def test_the_pairs() -> None:
    pairs = versions.choose(AVAILABLE, quick=False)
    assert len(pairs) == 6 and pairs[:3] == [("3.11", "2.1"), ("3.11", "2.2"), ("3.12", "2.1")]
    quick = versions.choose(AVAILABLE, quick=True)
    assert set(pairs) - set(quick) == {("3.12", "2.2")} and len(quick) == 5


def test_the_table_says_what_is_missing() -> None:
    results = {("3.11", "2.1"): versions.PASSED, ("3.12", "2.10"): versions.FAILED}
    assert versions.table({**AVAILABLE, "3.15": None}, results) == [
        "Python  NumPy 2.1  NumPy 2.2  NumPy 2.10",
        "3.11    passed     -          no wheel",
        "3.12    -          -          FAILED",
        "3.13    no wheel   no wheel   -",
        "3.14    no wheel   no wheel   no wheel",
        "3.15    no Python  no Python  no Python",
    ]
    assert versions.exit_status(results) == 1 == versions.exit_status({})
    assert versions.exit_status({("3.11", "2.1"): versions.PASSED}) == 0


def test_the_supported_versions_are_those_of_the_package() -> None:
    text = (Path(versions.ROOT) / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={versions.PYTHONS[0]}"' in text
    assert f'"numpy>={versions.OLDEST_NUMPY}"' in text


@pytest.mark.skipif(os.name != "posix", reason="the interpreters are shell scripts here")
def test_interpreters_are_found_on_the_path_and_among_those_of_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(path: Path, says: str) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {says}\necho $0\n")
        path.chmod(0o755)
        return str(path)

    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    here = make(tmp_path / "bin" / "python4.2", "4.2")
    make(tmp_path / "bin" / "python4.3", "4.1")  # another version behind the name
    make(tmp_path / "pyenv" / "versions" / "4.3.9" / "bin" / "python", "4.3")
    newest = make(tmp_path / "pyenv" / "versions" / "4.3.10" / "bin" / "python", "4.3")
    make(tmp_path / "pyenv" / "versions" / "4.3.11-debug" / "bin" / "python", "4.3")
    assert versions.find_python("4.2") == here
    assert versions.find_python("4.3") == newest
    assert versions.find_python("4.4") is None
    own = versions.minor(platform.python_version())
    assert versions.find_python(own) == sys.executable


def test_a_run_goes_on_after_a_failure_and_stops_at_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[Sequence[str]] = []

    def run_step(command: Sequence[str], log: Path, place: Path) -> tuple[int, str]:
        assert place == versions.ROOT or "venv" in command
        commands.append(command)
        if "pytest" in command and "venv" not in command and len(commands) > 6:
            raise KeyboardInterrupt
        return int("numpy==2.1.*" in command), "first line\nlast line"

    monkeypatch.setattr(versions, "find_python", lambda python: f"python{python}")
    monkeypatch.setattr(versions, "numpys_for", lambda interpreter: ["2.1", "2.2", "2.3"])
    monkeypatch.setattr(versions, "run_step", run_step)
    status = versions.main(["--python", "3.11", "--", "-k", "x"])
    out = capsys.readouterr().out
    assert status == 130 and "interrupted" in out and "passed in 0 s: last line" in out
    assert out.endswith("3.11    FAILED     passed     -\n")
    assert [c[-2:] for c in commands if "pytest" in c] == [["-k", "x"]] * 2
    assert "Python 3.11 with NumPy 2.3: testing" in out
    monkeypatch.setattr(versions, "find_python", lambda python: None)
    assert versions.main(["--python", "3.11"]) == 1
    assert "3.11: not found" in capsys.readouterr().out


def ending_with(word: str, commands: Sequence[str]) -> int:
    """The index of the first command that ends with a word."""
    return [command.endswith(word) for command in commands].index(True)


def test_wheels_are_tried_outside_of_the_tree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    commands: list[str] = []

    def run_step(command: Sequence[str], log: Path, place: Path) -> tuple[int, str]:
        if "pytest" in command:
            assert not (place / "tinynode").exists() and not (place / "backends").exists()
            assert (place / "tests/core").is_dir() and not (place / "tests/tools").exists()
        else:
            assert list(place.iterdir()) == []
        commands.append(" ".join(command))
        return 0, "last line"

    monkeypatch.setattr(versions, "find_python", lambda python: f"python{python}")
    monkeypatch.setattr(versions, "numpys_for", lambda interpreter: ["2.1"])
    monkeypatch.setattr(versions, "run_step", run_step)
    arguments = ["--python", "3.11", "--wheels", str(tmp_path)]
    with pytest.raises(SystemExit, match="has 0 wheels of tinynode, not one"):
        versions.main(arguments)
    for name in ("tinynode", "tinynode_course", "tinynode_course_solutions"):
        (tmp_path / f"{name}-0.2.0-py3-none-any.whl").touch()
    assert versions.main(arguments) == 0
    texts = ("tinynode-0.2.0", "first_picture", "train digits", "check 01", "--hidden", "pytest")
    for text in texts:
        assert any(text in command for command in commands), text
    with_hidden_checks = ["solutions-0.2.0" in command for command in commands]
    assert with_hidden_checks.index(True) > ending_with("check 04", commands)
    assert "the first film" in capsys.readouterr().out

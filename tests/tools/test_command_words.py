"""``--help`` of a tool prints help, and writes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import command_words, site_tree

TOOLS = Path(command_words.__file__).parent
WRITES = re.compile(r"write_text|write_bytes|write_atomically|unlink\(|rmtree|PAGE\.write")
READS = re.compile(r"command_words\.read\(|argparse|CommandError")
OWN = {"site_tree.py", "site_versions.py"}
"""Tools that check the words themselves."""


def test_each_tool_that_writes_reads_its_words_first() -> None:
    careless = []
    for path in TOOLS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        runs = 'if __name__ == "__main__"' in text
        if runs and WRITES.search(text) and not READS.search(text) and path.name not in OWN:
            careless.append(path.name)
    assert careless == []


def test_help_is_the_text_of_the_tool(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tool", "--help"])
    with pytest.raises(SystemExit, match="0"):
        command_words.read("Makes a page.\n\n    python -m tools.page FOLDER", "FOLDER")
    said = capsys.readouterr().out
    assert "usage: tool [-h] FOLDER" in said and "\n    python -m tools.page FOLDER" in said


@pytest.mark.parametrize("words", [[], ["a", "b"], ["--none"]])
def test_other_words_are_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tool", *words])
    with pytest.raises(SystemExit, match="2"):
        command_words.read("Makes a page.", "FOLDER")


def test_the_words_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tool", "site"])
    assert command_words.read("Makes a page.", "FOLDER") == ["site"]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["course_commands", "make_notebooks", "make_digits"])
def test_help_changes_no_file(tool: str) -> None:
    before = subprocess.run(["git", "status", "--short"], cwd=TOOLS.parent, capture_output=True)
    command = [sys.executable, "-m", f"tools.{tool}", "--help"]
    done = subprocess.run(command, cwd=TOOLS.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("usage: ")
    after = subprocess.run(["git", "status", "--short"], cwd=TOOLS.parent, capture_output=True)
    assert before.stdout == after.stdout


def test_an_option_is_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert site_tree.main(["--help"]) == 2
    assert "name a folder" in capsys.readouterr().err and not list(tmp_path.iterdir())

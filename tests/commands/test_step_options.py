"""Options of ``python -m tinynode step``, in front of the script and behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tinynode.commands import main, step

SCRIPT = """\
import sys
import tinynode as tn

tn.functions.exp(tn.asarray(1.0))
print("got", sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that would have been opened in a browser."""
    addresses: list[str] = []

    def open_page(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(step.webbrowser, "open", open_page)
    return addresses


@pytest.mark.parametrize(
    "words",
    [
        ["--no-open", "--output", "f.html", "script.py"],
        ["script.py", "--no-open", "--output", "f.html"],
        ["--no-open", "script.py", "--output=f.html"],
        ["--output", "other.html", "script.py", "--output", "f.html", "--no-open"],
    ],
)
def test_our_options_on_both_sides(words: list[str], folder: Path, opened: list[str]) -> None:
    assert main(["step", *words]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["f.html", "script.py"]
    assert opened == []


@pytest.mark.parametrize(
    ("words", "got"),
    [
        (["a", "-1", "b"], ["a", "-1", "b"]),
        (["-a", "--no-open", "b", "--lr=1", "--lr", "1"], ["-a", "b", "--lr=1", "--lr", "1"]),
        (["--out", "x", "--no", "--help", "-h"], ["--out", "x", "--no", "--help", "-h"]),
        (["a", "--", "--no-open", "--output", "x"], ["a", "--no-open", "--output", "x"]),
        (["--", "--", "--text"], ["--", "--text"]),
        (["--no-open", "--", "--quiz"], ["--quiz"]),
        (["", "a b"], ["", "a b"]),
    ],
)  # fmt: skip
def test_the_script_gets_the_others(
    words: list[str], got: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["step", "script.py", *words]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"got {got}"
    assert Path("script.html").exists()


def test_behind_two_dashes_no_option_is_ours(opened: list[str]) -> None:
    assert main(["step", "script.py", "--", "--no-open"]) == 0
    assert main(["step", "--", "script.py", "--no-open"]) == 0
    assert len(opened) == 2


def test_json_behind_the_script() -> None:
    assert main(["step", "script.py", "--output", "film.json"]) == 0
    assert len(json.loads(Path("film.json").read_text(encoding="utf-8"))["iterations"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["script.py", "--output"], "argument --output: expected one argument"),
        (["script.py", "--limit", "x"], "argument --limit: expected a number above 0, got 'x'"),
        (["--no-open"], "the following arguments are required: SCRIPT"),
        ([], "the following arguments are required: SCRIPT"),
    ],
)
def test_a_wrong_option_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["step", *words])
    assert left.value.code == 2
    assert capsys.readouterr().err == f"python -m tinynode step: error: {message} (see --help)\n"


@pytest.mark.parametrize("suffix", [".svg", ".json", ".htm"])
def test_the_suffix_gives_the_format(suffix: str, folder: Path, opened: list[str]) -> None:
    assert main(["step", "script.py", "--output", f"film{suffix}"]) == 0
    text = (folder / f"film{suffix}").read_text(encoding="utf-8")
    assert (
        text.lstrip().lower().startswith({".svg": "<svg", ".json": "{", ".htm": "<!doc"}[suffix])
    )
    assert len(opened) == (suffix == ".htm")

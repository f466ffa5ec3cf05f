"""Films in a terminal, and the command ``python -m tinynode step``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_process import running
from film_views import all_steps

import tinynode as tn
from tinynode.commands import main, step
from tinynode.show.films.recorder import record
from tinynode.show.films.walk import HELP, Walker, walk

ROOT = Path(__file__).resolve().parents[2]
F = tn.functions
SCRIPT = """\
import numpy as np
import tinynode as tn

x = tn.Variable(np.array([1.0, 2.0]), name="x")
y = tn.functions.sum(x * x)
y.backward()
"""


def make_data(name: str = "x") -> dict[str, Any]:
    x = tn.Variable(np.array([1.0, 2.0]), name=name)
    with record("a film") as film:
        h = F.exp(x) * x
        y = F.sum(h)
        y.backward()
    return film.data()


# --- the walker: without a terminal --------------------------------------------------------------


def test_keys_lead_through_the_film_and_back() -> None:
    walker = Walker(make_data())
    last = len(all_steps(walker.data)) - 1
    expected = [
        *[("right", 1), (" ", 2), ("n", 3), ("left", 2), ("p", 1), ("?", 1), ("G", last)],
        *[("n", last), ("p", last - 1), ("g", 0), ("p", 0)],
    ]
    for key, position in expected:
        assert walker.press(key) and walker.position == position, key
    assert not walker.press("q")


def test_the_table_follows_the_position_in_both_directions() -> None:
    walker = Walker(make_data())
    tables = []
    for _ in all_steps(walker.data):
        tables.append(walker.table())
        walker.press("n")
    assert [len(table) for table in tables] == [0, 0, 0, 1, 1, 2, 1, 0]
    for table in reversed(tables):
        assert walker.table() == table
        walker.press("p")


def test_the_screen_shows_a_step() -> None:
    walker = Walker(make_data())
    for _ in range(5):
        walker.press("n")
    text = "\n".join(walker.screen(100, 60))
    for line in (
        "a film  [step 6 of 8]",
        "Multiply takes the gradient of h and gives the gradient of exp(x) and x.",
        "> +[0-9]+ +h = F.exp\\(x\\) \\* x",
        "> exp(x), x <- Multiply <- h",
        "  x <- Exp <- exp(x)",
        "  h <- Sum <- y",
        "in x: \\(2,\\) float64 \\[1.0, 2.0\\]",
        "gradient from h: \\(2,\\) float64 \\[1.0, 1.0\\]",
        "gradient to x: \\(2,\\) float64 \\[2.718, 7.389\\]",
        "gradient used up: h",
        "ran inside: Multiply, Multiply",
        "waiting: Exp \\(rank 0\\)",
        "gradient table\n +exp\\(x\\): .*\n +x: ",
        HELP,
    ):
        pattern = line if "\\" in line else re.escape(line)
        assert re.search(pattern, text), (line, text)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (20, 5), (8, 2), (300, 100)])
def test_the_screen_fits(columns: int, rows: int) -> None:
    walker = Walker(make_data("a long name " * 10))
    for _ in all_steps(walker.data):
        lines = walker.screen(columns, rows)
        assert len(lines) <= rows and all(len(line) <= columns for line in lines)
        walker.press("n")


def make_loop(count: int = 3) -> dict[str, Any]:
    """A film of iterations; the second iteration has two steps more."""
    w = tn.Variable(np.array([1.0, 2.0]), name="w")
    with record("a loop") as film:
        for i in range(count):
            loss = F.sum(w * w)
            if i == 1:
                loss = loss * 1.0
            loss.backward()
            w.cleargrad()
            w.array = w.array + 1.0
    return film.data()


def test_keys_lead_from_iteration_to_iteration() -> None:
    data = make_loop()
    walker = Walker(data)
    sizes = [len(one["seconds"]) for one in data["iterations"]]
    assert sizes == [6, 8, 6] and len(walker) == 20
    expected = [
        *[("n", 1, 0), ("down", 7, 1), ("j", 15, 2), ("down", 15, 2), ("G", 19, 2)],
        *[("up", 11, 1), ("k", 5, 0), ("up", 5, 0), ("n", 6, 1), ("p", 5, 0)],
        *[("n", 6, 1), *(("n", i, 1) for i in range(7, 14)), ("up", 5, 0), ("p", 4, 0)],
    ]
    for key, position, iteration in expected:
        assert walker.press(key), key
        assert (walker.position, walker.iteration) == (position, iteration), key


def test_each_iteration_has_its_own_values_and_table() -> None:
    walker = Walker(make_loop())
    tables = []
    for expected in ("[1.0, 2.0]", "[2.0, 3.0]", "[3.0, 4.0]"):
        text = "\n".join(walker.screen(100, 60))
        assert f"iteration {walker.iteration + 1} of 3, step {walker.position + 1} of 20" in text
        assert f"in w: (2,) float64 {expected}" in text and "up, down: iteration" in text
        for _ in range(3):
            walker.press("n")
        tables.append(len(walker.table()))
        walker.press("p"), walker.press("p"), walker.press("p"), walker.press("down")
    assert tables == [1, 1, 1]


def test_a_name_cannot_steer_the_terminal() -> None:
    data = make_data("\x1b[2Jx\x07")
    walker = Walker(data)
    text = "\n".join(walker.screen()) + "".join(film_text(data))
    assert "\x1b" not in text and "\x07" not in text and r"\x1b[2Jx\x07" in text


def film_text(data: dict[str, Any]) -> str:
    out = io.StringIO()
    walk(data, out=out)
    return out.getvalue()


def test_a_list_of_keys() -> None:
    out = io.StringIO()
    walk(make_data(), ["n", "right", "q", "n"], out)
    shown = re.findall(r"\[step (\d) of 8\]", out.getvalue())
    assert shown == ["1", "2", "3"]  # q leaves: the last key is not pressed


def test_without_a_terminal_the_whole_film_is_printed() -> None:
    data = make_data()
    text = film_text(data)
    for number, recorded in enumerate(all_steps(data), 1):
        assert f"\n{number}. {recorded['title']}\n" in text
    assert text.startswith("a film\n") and "\x1b" not in text
    assert "gradient to x: (2,) float64 [2.718, 14.78], in all (2,) float64 [5.437, 22.17]" in text


def test_a_film_without_steps() -> None:
    with record() as film:
        pass
    out = io.StringIO()
    walk(film.data(), ["n"], out)
    assert out.getvalue() == "The film has no steps.\n"


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that would have been opened in a browser."""
    addresses: list[str] = []

    def open_page(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(step.webbrowser, "open", open_page)
    return addresses


def test_the_page_is_written_and_opened(
    folder: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["step", "script.py"]) == 0
    page = (folder / "script.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert opened == [(folder / "script.html").resolve().as_uri()]
    assert capsys.readouterr().out == "6 steps, written to script.html\n"


def test_where_there_is_no_browser_the_address_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_none(address: str) -> bool:
        return False

    monkeypatch.setattr(step.webbrowser, "open", find_none)
    assert main(["step", "script.py"]) == 0
    address = (folder / "script.html").resolve().as_uri()
    assert f"no browser was found here: open {address} in one" in capsys.readouterr().out


def test_output_and_no_open(folder: Path, opened: list[str]) -> None:
    assert main(["step", "--no-open", "--output", "other.html", "script.py"]) == 0
    assert (folder / "other.html").exists() and not (folder / "script.html").exists()
    assert main(["step", "--output", "film.json", "script.py"]) == 0
    data = json.loads((folder / "film.json").read_text(encoding="utf-8"))
    assert [s["kind"] for s in all_steps(data)] == [
        *["forward"] * 2, "sweep", *["backward"] * 2, "end",
    ]  # fmt: skip
    assert data["title"] == "script.py" and data["files"]["0"]["name"] == "script.py"
    assert opened == []


def test_text_without_a_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["step", "--text", "script.py"]) == 0
    text = capsys.readouterr().out
    assert "script.py:5: y = tn.functions.sum(x * x)" in text and "6. Backward has ended" in text
    assert list(folder.iterdir()) == [folder / "script.py"]


@pytest.mark.slow
def test_the_script_runs_as_python_runs_it(folder: Path) -> None:
    """Its arguments, its name, its folder's modules; in a process of its own, from elsewhere."""
    (folder / "inner").mkdir()
    (folder / "inner" / "helper.py").write_text("FACTOR = 3.0\n", encoding="utf-8")
    (folder / "inner" / "script.py").write_text(
        "import sys, helper\n" + SCRIPT + "print(sys.argv, __name__, __file__, sys.path[0])\n"
        "assert y.array == 5.0 and helper.FACTOR == 3.0\n",
        encoding="utf-8",
    )
    script = os.path.join("inner", "script.py")
    plain = python(folder, script, "-a", "--text", "b")
    filmed = python(
        folder, "-m", "tinynode", "step", "--no-open", script, "--", "-a", "--text", "b"
    )
    first, last = filmed.stdout.splitlines()
    assert plain.stdout.strip() == first and last == "6 steps, written to script.html"
    assert plain.returncode == filmed.returncode == 0 and filmed.stderr == ""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "backends")))
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_argv_and_path_are_as_before(folder: Path, opened: list[str]) -> None:
    argv, path, module = sys.argv, list(sys.path), sys.modules["__main__"]
    assert main(["step", "script.py", "x"]) == 0
    assert sys.argv is argv and sys.path == path and sys.modules["__main__"] is module


@pytest.mark.slow  # a process, which makes another one
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
def test_a_fork_of_the_script_writes_no_film(folder: Path) -> None:
    fork = "print('text')\nimport os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
    (folder / "fork.py").write_text(SCRIPT + fork)
    words = [sys.executable, "-m", "tinynode", "step", "--no-open", "fork.py"]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "backends")))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count("written to fork.html") == 1


def test_a_script_may_change_the_folder(folder: Path, opened: list[str]) -> None:
    (folder / "moves.py").write_text(f"import os\nos.chdir('/')\n{SCRIPT}", encoding="utf-8")
    assert main(["step", "--output", "film.json", "moves.py"]) == 0
    data = json.loads((folder / "film.json").read_text(encoding="utf-8"))
    assert [s["at"] for s in all_steps(data)] == [["0", line] for line in (7, 7, 8, 7, 7, 8)]


def test_a_script_has_no_future_of_ours(folder: Path, opened: list[str]) -> None:
    text = "def f(a: int) -> None: ...\nassert f.__annotations__ == {'a': int, 'return': None}\n"
    (folder / "annotated.py").write_text(text + SCRIPT, encoding="utf-8")
    assert main(["step", "annotated.py"]) == 0


def test_an_error_of_the_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.py").write_text(SCRIPT + "raise KeyError('planted')\n", encoding="utf-8")
    assert main(["step", "--no-open", "bad.py"]) == 1
    out, error = capsys.readouterr()
    assert out == "7 steps, written to bad.html\n" and (folder / "bad.html").exists()
    plain = python(folder, "bad.py")
    assert error == plain.stderr and error.count("File ") == 1
    assert main(["step", "--output", "bad.json", "bad.py"]) == 1
    data = json.loads((folder / "bad.json").read_text(encoding="utf-8"))
    assert data["note"] == "The recorded code ended with KeyError: 'planted'"


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("raise KeyboardInterrupt", 130, "interrupted\n"),
    ],
)
def test_a_script_that_leaves(
    end: str, status: int, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "leaves.py").write_text(f"import sys\n{SCRIPT}{end}\n", encoding="utf-8")
    assert main(["step", "--no-open", "leaves.py"]) == status
    count = 7 if status else 6  # an error is a step
    assert capsys.readouterr() == (f"{count} steps, written to leaves.html\n", message)


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["missing.py"], "missing.py does not exist: give the path of a Python file.", 2),
        ([".",], ". is a folder: give the path of a Python file.", 2),
        (["--output", "x.png", "script.py"], "--output x.png: the path must end in .html", 2),
        (["--output", "no/x.html", "script.py"], "--output no/x.html: No such file or", 2),
        (["empty.py"], "empty.py did nothing with tinynode in its main thread", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_one_line(
    arguments: list[str],
    message: str,
    status: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "empty.py").write_text("print()\n", encoding="utf-8")
    assert main(["step", "--no-open", *arguments]) == status
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "Traceback" not in error


def test_a_script_that_is_no_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text("x = = 1\n", encoding="utf-8")
    assert main(["step", "--no-open", "broken.py"]) == 1
    error = capsys.readouterr().err
    assert "SyntaxError" in error and "ended before it did anything" in error


def test_it_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "step " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["step", "--help"])
    assert "--text" in capsys.readouterr().out


# --- a real terminal -----------------------------------------------------------------------------


class Terminal:
    """A command in a pseudo-terminal, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes], file: int) -> None:
        self.process = process
        self.file = file
        self.text = ""

    def wait_for(self, text: str, seconds: float = 30.0) -> None:
        """Read until the text has come; it is then used up."""
        end = time.monotonic() + seconds
        while text not in self.text:
            if not select.select([self.file], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not come, but:\n{self.text}")
            self.text += os.read(self.file, 4096).decode("utf-8", "replace")
        self.text = self.text.partition(text)[2]

    def send(self, keys: str) -> None:
        os.write(self.file, keys.encode())


@contextlib.contextmanager
def terminal_with(folder: Path, *arguments: str, term: str = "xterm") -> Iterator[Terminal]:
    """A terminal with a command of Python, for a ``with`` block; the command must end well."""
    import pty  # not everywhere

    ours, other = pty.openpty()
    path = os.pathsep.join(map(str, (ROOT, ROOT / "backends")))
    environment = {"PYTHONPATH": path, "TERM": term, "COLUMNS": "80", "LINES": "40"}
    try:
        with running(
            [sys.executable, *arguments],
            cwd=folder,
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, **environment},
        ) as process:
            os.close(other)
            yield Terminal(process, ours)
            assert process.wait(10) == 0
    finally:
        os.close(ours)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals like these")
def test_keys_in_a_terminal(folder: Path) -> None:
    with terminal_with(folder, "-m", "tinynode", "step", "--text", "script.py") as terminal:
        terminal.wait_for("\x1b[?1049h")
        for keys, shown in (
            ("", "step 1 of 6"),
            ("\x1b[C", "step 2 of 6"),
            ("\x1bOC", "step 3 of 6"),
            (" ", "step 4 of 6"),
            ("\x1b[D", "step 3 of 6"),
            ("G", "step 6 of 6"),
            ("\x1b[H", "step 1 of 6"),
            ("\x1b[1;5C", "step 2 of 6"),
            ("\x1b", "step 2 of 6"),
            ("nn", "step 4 of 6"),
            ("\x1b[A", "step 4 of 6"),
            ("\x1b[B", "step 4 of 6"),
        ):
            terminal.send(keys)
            terminal.wait_for(f"[{shown}]")
        terminal.send("q")
        terminal.wait_for("\x1b[?1049l")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals like these")
def test_ctrl_c_in_a_terminal_restores_it(folder: Path) -> None:
    code = (
        "import sys, termios; before = termios.tcgetattr(0)\n"
        "from tinynode.commands import main; status = main(['step', '--text', 'script.py'])\n"
        "print('status', status, 'same', termios.tcgetattr(0) == before)"
    )
    with terminal_with(folder, "-c", code) as terminal:
        terminal.wait_for("[step 1 of 6]")
        terminal.process.send_signal(2)
        terminal.wait_for("\x1b[?1049l")
        terminal.wait_for("status 130 same True")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals like these")
def test_a_terminal_that_has_no_single_keys(folder: Path) -> None:
    with terminal_with(
        folder, "-m", "tinynode", "step", "--text", "script.py", term="dumb"
    ) as terminal:
        terminal.wait_for("[step 1 of 6]")
        for keys, shown in (("\n", 2), ("n\n", 3), ("p\n", 2), ("G\n", 6)):
            terminal.send(keys)
            terminal.wait_for(f"[step {shown} of 6]")
        terminal.send("q\n")
        assert "\x1b" not in terminal.text


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sys.stdout.close()", "sys.stdout = None"])
def test_a_script_that_closes_its_output(folder: Path, how: str) -> None:
    script = folder / "script.py"
    script.write_text(f"import sys\n{SCRIPT}{how}\n", encoding="utf-8")
    filmed = python(folder, "-m", "tinynode", "step", "--no-open", "script.py")
    assert filmed.returncode == 0 and filmed.stderr == "6 steps, written to script.html\n"

"""The programs to start from, in tutorials/examples: each runs, and reaches its result."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tinynode_course import command, mynode

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tutorials" / "examples"
RESULTS = {
    "start_tabular": (r"mean error of price: (\d+\.\d)", 7.0, 11.0),
    "start_images": (r"held-out accuracy: (\d+\.\d) %", 95.0, 100.0),
    "start_sequence": (r"error of the next number: (\d\.\d+)", 0.03, 0.12),
    "start_physics": (r"after 2000 steps: k = (\d\.\d+)", 2.4, 2.6),
    "start_vae": (r"held-out images: (\d+\.\d+) nats", 24.2, 25.4),
    "start_translation": (r"words translated without a mistake: (\d+\.\d) %", 95.0, 100.0),
    "start_text": (r"loss of a character: (\d\.\d+)", 1.95, 2.2),
    "start_custom_function": (r"held-out accuracy: (\d+\.\d) %", 95.0, 100.0),
    "start_finetune": (r"accuracy of the new digits: (\d+\.\d) %", 85.0, 100.0),
    "start_many_models": (r"within two deviations: (\d+\.\d) %", 90.0, 99.5),
    "deep_equilibrium": (r"after 80 steps: .*accuracy: (\d+\.\d) %", 90.0, 100.0),
}
"""The line with the result of a program, and the range of its number."""


def test_every_program_to_start_from_is_short_and_has_a_result() -> None:
    paths = sorted([*EXAMPLES.glob("start_*.py"), *EXAMPLES.glob("deep_*.py")])
    assert {path.stem for path in paths} == set(RESULTS)
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for path in paths:
        assert 30 <= len(path.read_text(encoding="utf-8").splitlines()) <= 80, path.name
        assert f"tutorials/examples/{path.name}" in page


WATCHED = """
import os, runpy, sys

def watch(event, arguments):
    changes = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink")
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    if event in changes or (event == "open" and arguments[2] & writing):
        print("changes a file:", arguments[0], file=sys.stderr)

sys.addaudithook(watch)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""A program that runs another program, and prints each file that the other one changes."""


def run(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; errors, warnings and changes of files stand in ``stderr``."""
    return subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", WATCHED, program],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'backends'}", "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_a_program_to_start_from_reaches_its_result(name: str, tmp_path: Path) -> None:
    done = run(EXAMPLES / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr
    pattern, least, most = RESULTS[name]
    found = re.search(pattern, done.stdout)
    assert found and least <= float(found[1]) <= most, done.stdout
    assert "changes a file:" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def run_on_table(folder: Path, table: str | None) -> subprocess.CompletedProcess[str]:
    """Run start_tabular.py with ``FILE`` set as its docstring says; the file has this text."""
    program = (EXAMPLES / "start_tabular.py").read_text(encoding="utf-8")
    own, count = re.subn(r"^FILE = .*$", 'FILE = Path("mydata.csv")', program, flags=re.MULTILINE)
    assert count == 1, "one line names the file"
    (folder / "program.py").write_text(own, encoding="utf-8")
    if table is not None:
        (folder / "mydata.csv").write_bytes(table.encode())
    done = run(folder / "program.py", folder)
    assert "changes a file:" not in done.stderr
    if table is not None:
        assert (folder / "mydata.csv").read_bytes() == table.encode(), "the file of the user"
    return done


def test_the_watch_sees_a_file_that_a_program_writes(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("open('mydata.csv', 'w').close()", encoding="utf-8")
    done = run(tmp_path / "program.py", tmp_path)
    assert done.stderr.splitlines() == ["changes a file: mydata.csv"]


def test_a_table_of_the_user_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    """The columns have names, numbers and line ends of their own; one column is constant."""
    rng = np.random.default_rng(0)
    lines = ["height,price,width,depth,year\r\n"]
    for width, depth, height in rng.uniform(1, 9, (80, 3)).round(3):
        lines.append(f"{height},{1e6 * width * depth:.0f},{width},{depth},2020\r\n")
    done = run_on_table(tmp_path, "".join(lines))
    assert done.returncode == 0, done.stderr
    errors = [float(number) for number in re.findall(r"price: (\d+\.\d)", done.stdout)]
    held_out, guess = errors
    assert held_out < 0.5 * guess, "the network learned from the table of the user"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "No such file or directory: 'mydata.csv'"),
        ("", "mydata.csv needs a header"),
        ("area;cost\n1;2\n", "mydata.csv, line 1: a single column has the name 'area;cost'"),
        ("area,cost\n1,2\n", "mydata.csv has no column 'price'; it has area, cost"),
        ("area,price\n1,2\n3,cheap\n", "mydata.csv, line 3, column 'price': 'cheap'"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error_and_stays(
    table: str | None, message: str, tmp_path: Path
) -> None:
    done = run_on_table(tmp_path, table)
    assert done.returncode != 0 and message in done.stderr, done.stderr
    assert (tmp_path / "mydata.csv").exists() == (table is not None)


def test_a_learner_gets_a_program_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["example"]) == 0
    listed = capsys.readouterr().out
    assert all(path.stem in listed for path in EXAMPLES.glob("*.py"))
    assert command.main(["example", "write_sonnets"]) == 0
    assert "wrote write_sonnets.py" in capsys.readouterr().out
    work = tmp_path / "write_sonnets.py"
    assert work.read_bytes() == (EXAMPLES / "write_sonnets.py").read_bytes()
    assert command.main(["example", "write_sonnets.py"]) == 0  # the same text: nothing is lost
    work.write_text("mine")
    assert command.main(["example", "write_sonnets"]) == 1 and work.read_text() == "mine"
    assert "differs" in capsys.readouterr().err
    assert command.main(["example", "sonnet"]) == 2
    assert "write_sonnets" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_while_the_sonnets_are_written_ends_in_a_line(tmp_path: Path) -> None:
    with write_sonnets(tmp_path, 1) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if line.startswith("temperature 1.0"):
                program.send_signal(signal.SIGINT)
                break
        _, errors = program.communicate(timeout=100)
    assert program.returncode == 1 and "Traceback" not in errors
    assert errors.strip().startswith("stopped. Start the program again")


def write_sonnets(folder: Path, updates: int) -> subprocess.Popen[str]:
    """The long run of step 20, with the ``mynode`` of the folder."""
    program = EXAMPLES / "write_sonnets.py"
    return subprocess.Popen(
        [sys.executable, "-B", "-u", "-W", "error", program, f"--updates={updates}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'backends'}", "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_the_sonnets_are_written_after_an_interrupt_too_and_the_training_goes_on(
    tmp_path: Path,
) -> None:
    mynode.write_files(mynode.reference("20"), tmp_path / mynode.NAME)
    with write_sonnets(tmp_path, 1000) as stopped:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "the engine: mynode of this folder\n"
        assert "174508 parameters" in stopped.stdout.readline()
        time.sleep(1)  # the training has begun
        stopped.send_signal(signal.SIGINT)
        printed, errors = stopped.communicate(timeout=100)
    assert (stopped.returncode, errors) == (0, "")
    assert "stopped; write_sonnets.npz has the training so far" in printed
    found = re.search(r"update (\d+)/1000", printed)
    assert found is not None
    count = int(found[1])
    assert count < 100
    with write_sonnets(tmp_path, count + 5) as resumed:
        printed, errors = resumed.communicate(timeout=100)
    assert (resumed.returncode, errors) == (0, "")
    assert f"goes on after update {count}\nupdate {count + 5}/{count + 5}" in printed
    losses = re.search(r"of the test: (\d\.\d+); table of letter pairs: (\d\.\d+)", printed)
    assert losses is not None and float(losses[1]) < 4.5 and losses[2] == "2.495"
    assert len(re.findall(r"\d+% of \d+ words stand in the sonnets", printed)) == 2
    assert {path.name for path in tmp_path.iterdir()} == {mynode.NAME, "write_sonnets.npz"}

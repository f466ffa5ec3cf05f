"""The command on several ranks, and the end of all ranks when a rank ends."""

from __future__ import annotations

import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.distributed.test_distributed import LAUNCHER, ROOT, _ranks_start, needs_mpi
from tinynode import nn
from tinynode.commands import main, ranks
from tinynode.distributed.communicator import SIZE_VARIABLES

LIMIT_SECONDS = 10.0
"""All ranks end within this time after the end of a rank."""
LONG = pytest.mark.long
TRAIN = [sys.executable, "-m", "tinynode", "train"]
_ = _ranks_start  # a fixture

pytestmark = [needs_mpi, pytest.mark.slow, pytest.mark.usefixtures("_ranks_start")]


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "backends")])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def train(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*TRAIN, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=100
    )


def rows(output: str) -> list[str]:
    """The lines of the table."""
    return re.findall(r"^ +\d+ +\d.*$", output, re.MULTILINE)


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command in the background; all of it is killed at the end."""
    with subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
                process.kill()


def processes_of(folder: Path) -> list[int]:
    """The processes of the ranks, by rank, as the files of the ranks tell."""
    found = []
    for path in sorted(folder.glob("*.ranks/rank*.log")):
        told = re.findall(r"process (\d+)$", path.read_text(), re.MULTILINE)
        found += [int(told[-1])] if told else []
    return found


def wait_for_ranks(folder: Path, number: int) -> list[int]:
    """The processes of the ranks, when all have begun."""
    end = time.monotonic() + 30
    while len(found := processes_of(folder)) < number:
        assert time.monotonic() < end, "the ranks do not start"
        time.sleep(0.01)
    return found


def test_ranks_print_the_table_of_a_single_rank(tmp_path: Path) -> None:
    alone = train(tmp_path, "digits", "--epochs", "2", "--save", "a.npz")
    together = train(tmp_path, "digits", "--epochs", "2", "--save", "b.npz", "--ranks", "2")
    assert together.returncode == 0, together.stderr
    assert rows(together.stdout) == rows(alone.stdout) != []
    assert together.stdout.count("held-out accuracy") == 1
    a, b = (nn.load(tmp_path / name, part="model") for name in ("a.npz", "b.npz"))
    for name, array in a.items():
        np.testing.assert_allclose(b[name], array, rtol=0, atol=2e-4, err_msg=name)
    logs = sorted(tmp_path.glob("b.ranks/*"))
    assert [path.name for path in logs] == ["rank0.log", "rank1.log"]
    for path, examples in zip(logs, (719, 718), strict=True):
        assert path.read_text().count(f": {examples} examples, loss") == 2


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    whole = train(tmp_path, "digits", "--epochs", "3", "--save", "whole.npz")
    for number, (epochs, count) in enumerate(((1, 2), (1, 1), (1, 3))):
        resume = ["--resume", "run.npz"] if number else []
        save = ["--save", "run.npz", "--ranks", str(count)]
        last = train(tmp_path, "digits", "--epochs", str(epochs), *save, *resume)
        assert last.returncode == 0, last.stderr
    assert rows(last.stdout)[-1] == rows(whole.stdout)[-1]


@pytest.mark.parametrize(
    "job", ["digits-cnn", "gradient-penalty", pytest.param("tiny-gpt", marks=LONG), "pinn"]
)
def test_every_job_runs_on_two_ranks(job: str, tmp_path: Path) -> None:
    alone = train(tmp_path, job, "--epochs", "1", "--save", "a.npz")
    together = train(tmp_path, job, "--epochs", "1", "--save", "b.npz", "--ranks", "2")
    assert together.returncode == 0, together.stderr
    if job == "tiny-gpt":  # each rank draws its own numbers for dropout
        assert len(rows(together.stdout)) == 1
    else:
        assert rows(together.stdout) == rows(alone.stdout) != []


def test_an_exception_of_a_rank_ends_all(tmp_path: Path) -> None:
    program = (
        "from tinynode import distributed\n"
        "import numpy as np\n"
        "comm = distributed.world()\n"
        "if comm.rank == 1:\n"
        "    raise ValueError('no such file on this rank')\n"
        "comm.allreduce(np.ones(3))\n"
    )
    (tmp_path / "script.py").write_text(program)
    start = time.monotonic()
    with running(tmp_path, str(LAUNCHER), "-n", "2", sys.executable, "script.py") as process:
        errors = process.communicate(timeout=60)[1]
    assert time.monotonic() - start < LIMIT_SECONDS
    assert process.returncode != 0
    assert "rank 1 of 2 raised an exception" in errors
    assert "ValueError: no such file on this rank" in errors
    assert 'script.py", line 5' in errors


def test_an_exception_of_all_ranks_is_told_once(tmp_path: Path) -> None:
    program = "from tinynode import distributed\ndistributed.world()\n1 / 0\n"
    (tmp_path / "script.py").write_text(program)
    with running(tmp_path, str(LAUNCHER), "-n", "3", sys.executable, "script.py") as process:
        errors = process.communicate(timeout=60)[1]
    assert process.returncode != 0
    assert errors.count("ZeroDivisionError: division by zero") == 1, errors


def test_a_rank_that_ends_early_is_named(tmp_path: Path) -> None:
    program = (
        "from tinynode import distributed\n"
        "import numpy as np, sys\n"
        "comm = distributed.world()\n"
        "if comm.rank == 1:\n"
        "    sys.exit()\n"
        "comm.allreduce(np.ones(3))\n"
    )
    (tmp_path / "script.py").write_text(program)
    start = time.monotonic()
    with running(tmp_path, str(LAUNCHER), "-n", "2", sys.executable, "script.py") as process:
        errors = process.communicate(timeout=60)[1]
    assert time.monotonic() - start < LIMIT_SECONDS
    assert process.returncode != 0
    assert "RankError: Communicator.allreduce: rank 1 has ended, and rank 0 waits" in errors


def test_a_rank_that_stops_answering_ends_all(tmp_path: Path) -> None:
    with running(tmp_path, *TRAIN, "digits", "--epochs", "900", "--ranks", "2") as process:
        stopped = wait_for_ranks(tmp_path, 2)[1]
        time.sleep(1.0)
        os.kill(stopped, signal.SIGSTOP)
        start = time.monotonic()
        errors = process.communicate(timeout=60)[1]
    assert time.monotonic() - start < LIMIT_SECONDS
    assert process.returncode != 0
    assert "rank 1 of 2 has not answered" in errors


def test_ctrl_c_stops_all_ranks_after_the_same_step(tmp_path: Path) -> None:
    with running(tmp_path, *TRAIN, "digits", "--epochs", "900", "--ranks", "2") as process:
        wait_for_ranks(tmp_path, 2)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        output, errors = process.communicate(timeout=60)
    assert time.monotonic() - start < LIMIT_SECONDS
    assert process.returncode == 130, errors
    assert "interrupted" in output and "saved to digits.npz" in output
    (command,) = re.findall(r"go on with: python -m tinynode (.*)", output)
    assert "--ranks 2" in command
    again = re.sub(r"--epochs \d+", "--epochs 1", command).split()
    assert main_in(tmp_path, again) == 0


def main_in(folder: Path, arguments: list[str]) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "tinynode", *arguments], cwd=folder, env=environment(), timeout=100
    )
    return done.returncode


def kill_a_rank(folder: Path, seed: int) -> float:
    """Kill a random rank at a random moment; the seconds until all have ended."""
    chance = random.Random(seed)
    with running(folder, *TRAIN, "digits", "--epochs", "900", "--ranks", "2") as process:
        victims = wait_for_ranks(folder, 2)
        if not (folder / "digits.npz").exists():  # the first of several runs in a folder
            end = time.monotonic() + 30
            while not (folder / "digits.npz").exists():
                assert time.monotonic() < end
                time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 1.5))
        rank = chance.randrange(2)
        os.kill(victims[rank], signal.SIGKILL)
        start = time.monotonic()
        errors = process.communicate(timeout=60)[1]
        seconds = time.monotonic() - start
    assert process.returncode != 0
    assert f"rank {rank} of 2 (process {victims[rank]}) has died" in errors
    for path in folder.glob("*.ranks/*"):
        path.unlink()
    for process_id in victims:
        assert not Path(f"/proc/{process_id}/stat").exists() or is_zombie(process_id)
    resumed = train(folder, "digits", "--epochs", "1", "--resume", "digits.npz")
    assert resumed.returncode == 0, resumed.stderr
    return seconds


def is_zombie(process_id: int) -> bool:
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("seed", [*range(2), *[pytest.param(n, marks=LONG) for n in range(2, 20)]])
def test_a_killed_rank_ends_all_and_the_checkpoint_is_whole(seed: int, tmp_path: Path) -> None:
    assert kill_a_rank(tmp_path, seed) < LIMIT_SECONDS


def test_one_progress_bar_in_a_terminal(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    command = [*TRAIN, "digits", "--epochs", "2", "--ranks", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**environment(), "TERM": "xterm"}, stdout=terminal
    ) as process:
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            text += part
    os.close(controller)
    assert process.returncode == 0
    assert "━" in text.decode() and text.count(b"held-out accuracy") == 1


def test_ranks_without_mpi_says_how_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in SIZE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ranks.importlib.util, "find_spec", lambda name: None)
    assert main(["train", "digits", "--ranks", "2"]) == 2
    assert "needs mpi4py, which is not installed: pip install 'tinynode[mpi]'" in (
        capsys.readouterr().err
    )


def test_a_wrong_argument_is_told_once(tmp_path: Path) -> None:
    done = train(tmp_path, "digits", "--ranks", "2", "--resume", "nowhere.npz")
    assert done.returncode == 2
    assert done.stderr.count("--resume nowhere.npz") == 1, done.stderr

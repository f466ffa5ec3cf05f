"""``--ranks N``: a command starts itself on several ranks, by ``mpiexec`` of MPI.

    python -m tinynode train digits --ranks 2

is the same as

    mpiexec -n 2 python -m mpi4py -m tinynode train digits

Requirement: the command behaves as on a single rank. Ctrl-C stops all ranks after the same step,
and a second Ctrl-C stops at once. A killed rank is named.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tinynode.commands import blas
from tinynode.commands.command_line import CommandError
from tinynode.distributed import is_launched
from tinynode.nn.display import TERMINAL_VARIABLE, is_capable_terminal

INSTALL = "pip install 'tinynode[mpi]'"


def start_ranks(number: int, arguments: Sequence[str], logs: Path) -> int:
    """Run ``python -m tinynode`` on several ranks; returns the exit status.

    Args:
        number: the number of ranks.
        arguments: the arguments of ``python -m tinynode``.
        logs: the folder with the files of the ranks, which name each process.

    Raises:
        CommandError: mpi4py or mpiexec is not installed, or MPI started this process.
    """
    if is_launched():
        raise CommandError("--ranks: mpiexec has started this process. Leave --ranks out.")
    command = [_launcher(), "-n", str(number), sys.executable, "-m", "mpi4py", "-m", "tinynode"]
    environment = dict(os.environ)
    share = max(1, (os.cpu_count() or 1) // number)
    for variable in blas.VARIABLES:  # else each rank would use all processors
        environment.setdefault(variable, str(share))
    if is_capable_terminal():
        environment[TERMINAL_VARIABLE] = str(shutil.get_terminal_size().columns)
    return RunningRanks([*command, *arguments], environment, logs).run()


def _launcher() -> str:
    """The path of mpiexec: beside Python, or in the PATH."""
    if importlib.util.find_spec("mpi4py") is None:
        raise CommandError(f"--ranks needs mpi4py, which is not installed: {INSTALL}")
    found = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which(
        "mpiexec"
    )
    if found is None:
        raise CommandError(f"--ranks needs mpiexec of MPI, which is not installed: {INSTALL}")
    return found


class RunningRanks:
    """The running ranks.

    Args:
        command: starts the ranks.
        environment: the variables of the ranks.
        logs: the folder with the files of the ranks.
    """

    def __init__(self, command: list[str], environment: dict[str, str], logs: Path) -> None:
        self.command = command
        self.environment = environment
        self.logs = logs
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Start the ranks, and wait for the end; returns the exit status."""
        before = {number: signal.signal(number, self._pass_on) for number in _PASSED}
        try:
            with subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C comes through _pass_on, once
            ) as process:
                self.process = process
                errors = threading.Thread(target=self._show_errors, args=[process.stderr])
                errors.start()
                self._show_output(process.stdout)
                errors.join()
            return process.returncode if process.returncode >= 0 else 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """mpiexec gives the signal to the ranks."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _show_output(self, pipe: Any) -> None:
        """Show the output at once, up to the report of mpiexec about a dead process."""
        kept = b""
        while part := pipe.read1(65536):
            kept += part
            start = kept.find(_REPORT)
            end = start if start >= 0 else len(kept) - _beginning(kept)
            _write(sys.stdout, kept[:end])
            kept = kept[end:]
        for process in re.findall(rb"=\s+PID (\d+) RUNNING AT", kept):
            rank, number = self._rank_of(process.decode()), process.decode()
            _write(sys.stderr, f"{rank} (process {number}) has died, so all ranks end.\n".encode())
        if not kept.startswith(_REPORT):
            _write(sys.stdout, kept)

    def _show_errors(self, pipe: Any) -> None:
        """Show the errors of the ranks."""
        for line in pipe:
            if not _NOISE.match(line):
                _write(sys.stderr, line)

    def _rank_of(self, process: str) -> str:
        """The rank of a process, by the first lines of the files."""
        for path in sorted(self.logs.glob("rank*.log")):
            told = re.findall(
                r"^(rank \d+ of \d+), process (\d+)$", path.read_text(), re.MULTILINE
            )
            if told and told[-1][1] == process:
                return str(told[-1][0])
        return "a rank"


_PASSED = (signal.SIGINT, signal.SIGTERM)
_REPORT = b"\n" + b"=" * 40
"""The beginning of mpiexec's report about a dead process."""
_NOISE = re.compile(rb"\[mpiexec@|Abort\(\d+\) on node")
"""Lines of mpiexec with no more news than the lines of the ranks."""


def _beginning(text: bytes) -> int:
    """The length of a text's end that may begin a report."""
    for length in range(min(len(text), len(_REPORT)), 0, -1):
        if _REPORT.startswith(text[-length:]):
            return length
    return 0


def _write(stream: Any, text: bytes) -> None:
    stream.write(text.decode(errors="replace"))
    stream.flush()

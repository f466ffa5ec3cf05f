"""The slow runner: a new process for mutants of classes, tables and default values.

Requirement: such code runs at import, so only a new process sees the mutant. The mutated file lies
in a copy of the checkout; an interrupt cannot leave a mutant in the checkout.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections import Counter

from tools.mutation.plan import Mutant
from tools.mutation.warm import KILLED, SURVIVED, TIME, Verdict

FILES, TESTS, SECONDS = 3, 150, 150.0  # files, first tests that choose them, time limit


def copy_of_tree(root: pathlib.Path, to: pathlib.Path) -> None:
    """A copy of the files that git knows, new files included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def run_fresh(mutant: Mutant, source: str, tests: list[str], tree: pathlib.Path) -> Verdict:
    """Run tests on a mutant in a copy of the tree; the copy is as before afterwards."""
    path = tree / mutant.path
    times = path.stat()
    path.write_text(mutant.mutated(source) or source, encoding="utf-8")
    # Python compares bytecode by seconds and size of the source, so the mutant gets another second
    os.utime(path, (times.st_atime, times.st_mtime + 2))
    try:
        return _run(few_files(tests), tree)
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime))


def few_files(tests: list[str]) -> list[str]:
    """The tests of the files with most of the first tests: every file costs an import."""
    files = Counter(test.partition("::")[0] for test in tests[:TESTS])
    kept = {file for file, _ in files.most_common(FILES)}
    return [test for test in tests if test.partition("::")[0] in kept]


def _run(tests: list[str], tree: pathlib.Path) -> Verdict:
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'backends'}"}
    process = subprocess.Popen(
        [*command, "--rootdir", str(tree), *tests],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed = process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Verdict(TIME)
    if process.returncode == 0:
        return Verdict(SURVIVED)
    last = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    return Verdict(KILLED, last[-1] if last else f"exit status {process.returncode}")

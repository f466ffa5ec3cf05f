"""The command ``notebooks``: Jupyter notebooks of the steps, with output and pictures.

Requirement: a learner's changed notebook is not overwritten, and an interrupt leaves no incomplete
notebook. The course has its notebooks without outputs; the command copies them. The optional
packages nbclient and ipykernel run the copies.

JupyterLab shows no SVG and no film of a notebook that the user does not trust. So the command
signs the executed notebooks, as ``jupyter trust`` does: for this user of this machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import sources
from tinynode_course.checking import environment
from tinynode_course.progress import write_file
from tinynode_course.sources import Step

SUMMARY = "make Jupyter notebooks of the steps, run, with their pictures"
FOLDER = "tinynode-notebooks"


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("steps", metavar="STEP", nargs="*", help="such as 07; default: all")
    parser.add_argument("--folder", default=FOLDER, help="where to; default: %(default)s")
    parser.add_argument(
        "--again", action="store_true", help="anew; what is there is kept as ....ipynb.old-1"
    )
    parser.add_argument(
        "--no-run", action="store_true", help="without running them: quick, and no pictures"
    )


def run(options: argparse.Namespace) -> int:
    """Make notebooks, with a line for each."""
    chosen = [sources.find(text) for text in options.steps] or sources.steps()
    if not options.no_run:
        _require("nbclient", "ipykernel")
    folder = Path(options.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--folder {folder}: {error.strerror}") from None
    width = len(str(len(chosen)))
    for number, step in enumerate(chosen, 1):
        print(f"{number:>{width}} of {len(chosen)}  {step.title} ... ", end="", flush=True)
        print(_make(step, folder, options.again, not options.no_run), flush=True)
    print(f"\nOpen them with: jupyter lab {folder}")
    if not options.no_run:
        print("They are signed for this user of this machine: JupyterLab shows their pictures.")
        print("Elsewhere, run the cells, or type: jupyter trust FILE")
    return 0


def _make(step: Step, folder: Path, again: bool, execute: bool) -> str:
    """Write a notebook; returns a report of a line."""
    path = folder / f"{step.path.stem}.ipynb"
    if path.exists() and not again:
        return f"{path.name} is here already, and stays as it is (--again makes it anew)"
    text = step.notebook.read_text(encoding="utf-8")
    if execute:
        text = _execute(text, step)
    kept = write_file(path, text, keep=True)
    if execute:
        sign(path)
    return path.name + (f" (kept yours as {kept.name})" if kept is not None else "")


def sign(path: Path) -> None:
    """Sign a notebook that this command has made: Jupyter then trusts the outputs.

    A signature is a digest of the content with a secret of the user; a copy elsewhere has none.
    """
    import nbformat  # nbclient needs this package, so it is there
    from nbformat.sign import NotebookNotary  # as above

    try:
        NotebookNotary().sign(nbformat.read(path, as_version=4))
    except (OSError, sqlite3.Error) as error:
        print(f"not signed ({error}): run  jupyter trust {path}", file=sys.stderr)


def _require(*names: str) -> None:
    """Check for optional packages.

    Raises:
        CommandError: A package is missing; the message has the command for the installation.
    """
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(
            f"notebooks need {' and '.join(missing)}: run  pip install {' '.join(missing)}"
        )


def _execute(text: str, step: Step) -> str:
    """The text of a notebook with outputs, from a new process."""
    with tempfile.TemporaryDirectory(prefix="tinynode-notebook-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "tinynode_course.notebook_runner"],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C comes to us alone: we end the process
        )
        try:
            out, err = process.communicate(text)
        finally:
            _end(process)
    if process.returncode != 0:
        reason = (out.strip() or err.strip() or "no message").splitlines()[-1]
        raise CommandError(f"{step.path.name} stopped with an error: {reason}", status=1)
    return out


def _end(process: subprocess.Popen[str]) -> None:
    """End the process, and so the kernel too."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

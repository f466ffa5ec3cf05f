"""Runs a step from beginning to end in a new process.

Requirement: the output on a page is the output of the step alone. So a step runs in a new process
without earlier imports or seeds, without settings from the environment, and in an empty folder.

    python -m tinynode_course.execution tutorials/step11_weak_references.py

writes a JSON object: an output for each cell, the seconds of processor time, and the remains. The
remains of a step are files in the folder, and changed settings.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import tinynode as tn
from tinynode.config_sources import KINDS
from tinynode.core.hooks import thread_state
from tinynode_course import cells
from tinynode_course.checking import environment

SECONDS = 300.0
"""The time limit of a step."""


class StepError(RuntimeError):
    """A step stopped with an error; the message is the traceback."""


def execute(
    path: Path, extra: dict[str, str] | None = None
) -> tuple[list[cells.Output], dict[str, Any]]:
    """Run a step in another process: an output for each cell, and facts about the run.

    Args:
        path: The file of the step.
        extra: Environment variables, such as ``{"TINYNODE_DEVICE": "fast"}``.

    Raises:
        StepError: The step stopped with an error.
    """
    code = "from tinynode_course import execution\nexecution.main()"
    with tempfile.TemporaryDirectory(prefix="tinynode-step-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, str(path.resolve())],
            cwd=folder,
            env={**without_settings(), "PYTHONHASHSEED": "0", **(extra or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=SECONDS,
        )
    if done.returncode != 0:
        raise StepError(f"{path.name} stopped with an error:\n{done.stderr.strip()}")
    result = json.loads(done.stdout)
    outputs = [cells.Output(**output) for output in result.pop("outputs")]
    return outputs, {**result, "stderr": done.stderr}


def without_settings() -> dict[str, str]:
    """The environment for a child process, without settings of tinynode."""
    return {name: text for name, text in environment().items() if name[:9] != "TINYNODE_"}


def main() -> None:
    """Run the step of the command line, and write the result."""
    path = Path(sys.argv[1])
    before = state()
    stray = io.StringIO()
    with redirect_stdout(stray):
        outputs = cells.run(cells.read(path), path)
    result = {
        "outputs": [dataclasses.asdict(output) for output in outputs],
        "seconds": sum(output.seconds for output in outputs),
        "left": sorted(os.listdir()) + changes(before, state()),
    }
    print(json.dumps(result))


def state() -> dict[str, Any]:
    """The state that a step must restore: settings, hooks, and the working folder."""
    settings = {name: getattr(tn.config, name) for name in KINDS}
    hooks = list(thread_state.hooks)
    return {**settings, "hooks": hooks, "folder": os.getcwd()}


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The differences, in words."""
    differing = [name for name in before if before[name] != after[name]]
    return [f"{name}: was {before[name]}, is {after[name]}" for name in differing]

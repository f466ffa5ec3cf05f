"""Runs a notebook with nbclient in a new process: from stdin to stdout.

Requirement: Ctrl-C ends a command at once and without noise. nbclient handles signals, and
Jupyter's kernels write to the terminal; in a separate process neither disturbs the command. To end
the process, terminate it: nbclient then ends the kernel.
"""

from __future__ import annotations

import os
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS = 600
"""The time limit of a cell."""


def main() -> int:
    """Run the notebook; 1 if a cell stops, with the error on stdout."""
    notebook = nbformat.reads(sys.stdin.read(), as_version=4)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # else the kernel warns
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    try:
        client.execute()
    except CellExecutionError as error:
        print(f"{error.ename}: {error.evalue}")
        return 1
    print(nbformat.writes(notebook))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs a notebook with nbclient, in a process of its own: from stdin to stdout.

Requirement: Ctrl-C ends a command at once and without noise. nbclient answers signals itself, and
Jupyter's kernels write to the terminal; here both happen where nobody sees them. To end this
process, terminate it: nbclient then ends the kernel.
"""

from __future__ import annotations

import os
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS = 600
"""A cell that takes longer hangs."""


def main() -> int:
    """Run the notebook; 1 if one of its cells stops, and stdout says with which error."""
    notebook = nbformat.reads(sys.stdin.read(), as_version=4)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # the kernel would warn of it
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

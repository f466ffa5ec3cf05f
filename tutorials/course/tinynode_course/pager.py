"""Shows long text a screen at a time, with the learner's pager.

Requirement: a learner who leaves the pager early, or presses Ctrl-C in it, is back in the course,
with a usable terminal. A text that fits on the screen is printed. The learner sees at each moment
which key leaves the pager: less says so in its last line, and a line before another pager.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys

KEYS = "Space next page, b back, q leaves"
"""The last line of less, which gives a meaning to "?", ":", "." and "%"."""


def pager() -> list[str]:
    """The command of the pager: ``PAGER``, or less; [] if there is none.

    Windows has ``more`` only; ``more`` shows colours as letters.
    """
    if os.name == "nt":
        return []
    wanted = shlex.split(os.environ.get("PAGER", ""))
    if wanted and shutil.which(wanted[0]):
        return wanted
    return ["less"] if shutil.which("less") else []


def show(text: str) -> None:
    """Show text with the pager, or print it."""
    command = pager()
    if not command:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    # of less: F ends at the end of a short text, R shows colours, X leaves the text on the screen
    options = {"LESS": os.environ.get("LESS", "FRX"), "LESSCHARSET": "utf-8"}
    if os.path.basename(command[0]) == "less":
        command = [*command, "-R", f"-Ps{KEYS}"]
    elif len(text.splitlines()) >= shutil.get_terminal_size().lines:
        print(f"This text opens in {command[0]}, your PAGER; q leaves most pagers.")
    sys.stdout.flush()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        env={**os.environ, **options},
        encoding="utf-8",
        errors="replace",
    )
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the learner has left early
        process.communicate(text)
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # less has the terminal until its own end
            process.wait()

"""Writes the outputs of the commands on docs/course-commands.md.

    python -m tools.course_commands

Requirement: the page shows what the commands print today. A block of the page begins with
a fence and the word console. The commands of all blocks run in turn, in an empty folder, and
their outputs replace the lines below them. ``| head -8`` keeps eight lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tinynode_course.execution import without_settings
from tinynode_course.progress import write_atomically
from tools import command_words

PAGE = Path(__file__).resolve().parent.parent / "docs" / "course-commands.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\$ python (-m tinynode\.learn [^|]*?)(?: \| head -(\d+))?")


def with_outputs(page: str) -> str:
    """The page with the outputs of today."""
    with tempfile.TemporaryDirectory(prefix="tinynode-commands-") as folder:

        def block(found: re.Match[str]) -> str:
            commands = [line for line in found[1].splitlines() if line.startswith("$ ")]
            parts = [f"{line}\n{output(line, folder)}" for line in commands]
            return "```console\n" + "\n".join(parts) + "```"

        return BLOCK.sub(block, page)


def output(line: str, folder: str) -> str:
    """The output of a command in a folder, or of its first lines."""
    found = COMMAND.fullmatch(line)
    if found is None:
        raise ValueError(f"{line!r} is no command of the course")
    here = Path(sys.executable).parent  # so that the commands print "python"
    path = os.pathsep.join([str(here), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, *found[1].split()],
        cwd=folder,
        env={**without_settings(), "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    lines = done.stdout.splitlines()
    lines = lines[: int(found[2])] if found[2] else lines
    return "".join(f"{one}\n" for one in lines)


def main() -> None:
    command_words.read(__doc__)
    write_atomically(PAGE, with_outputs(PAGE.read_text(encoding="utf-8")))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()

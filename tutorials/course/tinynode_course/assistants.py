"""Rules for assistants in a learner's folder: teach, and do not solve.

Requirement: an assistant helps a learner to think. ``learn start`` writes the file once, at the
first start. A file of the learner's is never replaced, and a removed file stays away.

Source: Bastani and others, Generative AI without guardrails can harm learning, PNAS 122, 2025.
With an open assistant, pupils solved more exercises and did worse in the exam. Hints only did no
harm.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tinynode.commands.command_line import CommandError
from tinynode_course import sources
from tinynode_course.progress import Progress, write_file
from tinynode_course.shell import WRITTEN

NAME = "AGENTS.md"
"""The file that assistants read in a folder."""

RULES = f"""\
# Rules for an assistant in this folder

In this folder a learner takes the tinynode course: the learner writes `mynode`, a package for
automatic differentiation, step by step. The purpose is learning. Teach, and do not solve.

- Write no code into `mynode/`, `step*.py`, `hunt*.py` or the other exercise files. Do not run
  `{WRITTEN} take` or `show`, and do not print a reference.
- Ask first: what did you expect, and what came? Let the learner run `{WRITTEN} check STEP`.
  Read the expected and the actual value together.
- Give one hint at a time, in this order: a question, the place, the formula. Stop there.
  `{WRITTEN} hint STEP` gives such hints.
- Explain with other numbers and another function than those of the exercise. A small graph on
  paper, or a film by `python -m tinynode step FILE.py`, shows more than a finished line.
- Let the learner predict before a program runs.
- If the learner asks for the solution, name the command `{WRITTEN} take STEP`. The learner can
  run the command, and the course counts the definitions as taken.
- Help directly with the terminal, an editor or an installation: these are no exercise.

The learner may change or delete this file.
"""


def lay_rules(progress: Progress) -> None:
    """Write the rules at the first start, if there is no such file."""
    is_first = not any(progress.of(step.key).get("started") for step in sources.steps())
    if not is_first or Path(NAME).exists():
        return
    with suppress(CommandError):  # in a read-only folder the command itself says so
        write_file(Path(NAME), RULES)
        print(f"wrote {NAME}: rules for AI assistants. They teach, and do not solve.")

"""Writes the notebooks of the course, tutorials/notebooks, from the steps.

    python -m tools.make_notebooks

Requirement: step and notebook have the same content, and readers open notebooks where they find
them. So the notebooks are in the repository, without outputs, and a test compares them with the
steps. The package jupytext reads the cells of a step.

A notebook begins with a cell that installs tinynode where it is missing. It ends with the exercise
and with links to the previous and the next notebook.
"""

from __future__ import annotations

import re
from typing import Any

from tinynode_course import mynode, sources
from tinynode_course.mynode import Excerpt
from tinynode_course.progress import write_atomically
from tinynode_course.sources import Step
from tools import command_words

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

INSTALL = """\
# This notebook lies in a checkout of tinynode.
# If the course is missing, tinynode and the course are installed from the checkout.
import importlib.util

if importlib.util.find_spec("tinynode_course") is None:
    %pip install --quiet ../.. ..
    importlib.invalidate_caches()

%load_ext tinynode.learn"""

YOUR_TURN = """\
## The exercise, in this notebook
Write your code in the next cell{plural}. Running the cell saves {what}, in the folder of
your progress file `tinynode-course.json`, or else of this notebook. `check()` checks your work.
`hint()` gives a hint, the next one each time. In a terminal, in the same folder:
`python -m tinynode.learn check {key}`."""

NOT_EXECUTED = ["exercise", "skip-execution"]
"""Tags of the cells of an exercise: nbclient executes no cell with the second one."""

HINT = "# hint()   # without the first #: a hint, the next one each time"
"""A comment, for "Run all cells" would use up the hints."""

STEP_LINK = re.compile(r"\]\(((?:step\d\d|elective|capstone)_\w+)\.(?:py|md)\b")
GUIDE_LINK = re.compile(r"\]\(\.\./([\w-]+\.md)")


def notebook(step: Step) -> str:
    """The content of a notebook's file; the same every time."""
    import jupytext  # here, since the import takes half a second, and tests import this file
    import nbformat

    made = jupytext.reads(step.path.read_text(encoding="utf-8"), fmt="py:percent")
    made.metadata.clear()  # among others jupytext's version
    made.metadata["kernelspec"] = KERNEL
    made.metadata["language_info"] = {"name": "python"}
    for cell in made.cells:
        cell.metadata.pop("lines_to_next_cell", None)
        if cell.cell_type == "markdown":
            cell.source = "\n\n".join(
                in_a_notebook(p) for p in mynode.parts(cell.source, step.key)
            )
    new = nbformat.v4
    made.cells.insert(0, new.new_code_cell(INSTALL))
    if step.stub.exists():
        made.cells += exercise(step, new)
    made.cells.append(new.new_markdown_cell(neighbours(step)))
    for number, cell in enumerate(made.cells, 1):
        cell["id"] = f"cell-{number:02}"  # jupytext's ids are random
    text: str = nbformat.writes(made)
    return text.rstrip("\n") + "\n"


def in_a_notebook(part: str | Excerpt) -> str:
    """A part of a cell of text: text, or code of ``mynode`` with the path above."""
    if isinstance(part, str):
        linked = STEP_LINK.sub(r"](\1.ipynb", part)
        return GUIDE_LINK.sub(r"](../../docs/\1", linked)
    return f"`{mynode.NAME}/{part.path}`\n\n```python\n{part.code}\n```"


def exercise(step: Step, new: Any) -> list[Any]:
    """The cells of an exercise: a stub for each file, the check, and the hint."""
    if step.builds:
        stubs = mynode.read_files(step.stub)
        codes = [f"%%exercise {step.key} {path}\n{stub}" for path, stub in stubs.items()]
        what = f"its definitions into your package `{mynode.NAME}`"
    else:
        codes = [f"%%exercise {step.key}\n{step.stub.read_text(encoding='utf-8')}"]
        what = f"it as `{step.work}`"
    plural = "s" if len(codes) > 1 else ""
    cells = [new.new_markdown_cell(YOUR_TURN.format(plural=plural, what=what, key=step.key))]
    for code in [*codes, "check()", HINT]:
        cells.append(new.new_code_cell(code.strip("\n"), metadata={"tags": NOT_EXECUTED}))
    return cells


def neighbours(step: Step) -> str:
    """Links to the notebooks before and after a step."""
    steps = sources.steps()
    place = [one.key for one in steps].index(step.key)
    links = []
    if place > 0:
        links.append(f"Previous: {_link(steps[place - 1])}")
    if place + 1 < len(steps):
        links.append(f"Next: {_link(steps[place + 1])}")
    return " · ".join(links)


def _link(step: Step) -> str:
    return f"[{step.title}]({step.notebook.name})"


def main() -> None:
    command_words.read(__doc__)
    steps = sources.steps()
    folder = steps[0].notebook.parent
    folder.mkdir(exist_ok=True)
    for path in set(folder.glob("*.ipynb")) - {step.notebook for step in steps}:
        path.unlink()
    for step in steps:
        write_atomically(step.notebook, notebook(step))
    print(f"wrote {len(steps)} notebooks into {folder}")


if __name__ == "__main__":
    main()

"""Writes the notebooks of the course, tutorials/notebooks, from the steps.

    python -m tools.make_notebooks

Requirement: step and notebook have the same content, and readers open notebooks where they find
them. So the notebooks are in the repository, without outputs, and a test compares them with the
steps. The package jupytext reads the cells of a step.
"""

from __future__ import annotations

from tinynode.learn import mynode, sources
from tinynode.learn.mynode import Excerpt
from tinynode.learn.progress import write_atomically
from tinynode.learn.sources import Step

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(step: Step) -> str:
    """The content of a notebook's file; the same every time."""
    import jupytext  # here, since the import takes half a second, and tests import this file
    import nbformat

    made = jupytext.reads(step.path.read_text(encoding="utf-8"), fmt="py:percent")
    made.metadata.clear()  # among others jupytext's version
    made.metadata["kernelspec"] = KERNEL
    made.metadata["language_info"] = {"name": "python"}
    for number, cell in enumerate(made.cells, 1):
        cell["id"] = f"cell-{number:02}"  # jupytext's ids are random
        cell.metadata.pop("lines_to_next_cell", None)
        if cell.cell_type == "markdown":
            cell.source = "\n\n".join(
                in_a_notebook(p) for p in mynode.parts(cell.source, step.key)
            )
    text: str = nbformat.writes(made)
    return text.rstrip("\n") + "\n"


def in_a_notebook(part: str | Excerpt) -> str:
    """A part of a cell of text: text, or code of ``mynode`` with the path above."""
    if isinstance(part, str):
        return part
    return f"`{mynode.NAME}/{part.path}`\n\n```python\n{part.code}\n```"


def main() -> None:
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

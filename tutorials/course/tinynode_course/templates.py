"""The command ``template``: the files of a teacher for GitHub Classroom or nbgrader.

Requirement: a teacher starts a class with a single command, and no file is overwritten. The
templates are written from the steps, with the exercises and checks of the day.

    python -m tinynode.learn template github-classroom FOLDER 01 02 03 --install WHEEL
    python -m tinynode.learn template nbgrader FOLDER 13 16
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import grading, hidden, mynode, pages, sources
from tinynode_course.cells import read
from tinynode_course.examiner import functions_of
from tinynode_course.mynode import Files
from tinynode_course.progress import write_file
from tinynode_course.shell import WRITTEN
from tinynode_course.sources import Step

SUMMARY = "write the files for GitHub Classroom or nbgrader"
PLACEHOLDER = "tinynode @ git+https://example.org/YOUR-COPY-OF/tinynode.git"


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("kind", choices=("github-classroom", "nbgrader"))
    parser.add_argument("folder", metavar="FOLDER", help="where to")
    parser.add_argument("steps", metavar="STEP", nargs="*", help="such as 07; default: all")
    parser.add_argument(
        "--install",
        metavar="WHAT",
        default=PLACEHOLDER,
        help="what pip installs for the learners: a wheel, or a git URL",
    )


def run(options: argparse.Namespace) -> int:
    """Write the files of a template.

    Raises:
        CommandError: A file is there already, or cannot be written.
    """
    chosen = [sources.find(text) for text in options.steps] or grading.with_exercise()
    if options.kind == "nbgrader":
        files = nbgrader(chosen, options.install)
    else:
        files = github_classroom(chosen, options.install)
    folder = Path(options.folder)
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise CommandError(f"{folder / there[0]} is there already; give an empty folder", 1)
    for name, text in files.items():
        write_file(folder / name, text)
        print(f"wrote {folder / name}")
    if options.install == PLACEHOLDER:
        print(f"\nReplace {PLACEHOLDER!r} in them, or call again with --install.")
    return 0


# GitHub Classroom

WORKFLOW = """\
# Made by: {program} template github-classroom
name: Autograding Tests
on: [push, workflow_dispatch]
permissions:
  checks: write
  actions: read
  contents: read
jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    steps:
      - name: Check out the code
        uses: actions/checkout@v4
      - name: Set up Python
        uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install the course
        run: python -m pip install {install}
{steps}      - name: Results of all steps
        if: always()
        run: {program} check all --json > results.json || true
      - name: Keep the results
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: results
          path: results.json
      - name: Autograding Reporter
        if: always()
        uses: classroom-resources/autograding-grading-reporter@v1
        env:
{results}        with:
          runners: {runners}
"""

WORKFLOW_STEP = """\
      - name: {title}
        id: {name}
        if: always()
        uses: classroom-resources/autograding-command-grader@v1
        with:
          test-name: {title}
          setup-command: ""
          command: {program} check {key}
          timeout: 2
          max-score: {points}
"""

README = """\
# The tinynode course

Install the course, then begin with a step. Your files belong into this folder.

```sh
python -m pip install {install}
{program} run {first}
{program} start {first}
{program} check {first}
```

Commit and push your files and `tinynode-course.json`. Each push runs the checks.
The exercises of this class: {keys}.
"""


def github_classroom(steps: Sequence[Step], install: str) -> Files:
    """The files of a template repository for GitHub Classroom."""
    quoted = f'"{install}"'
    parts = [
        WORKFLOW_STEP.format(
            title=json.dumps(step.title),
            name=step.name,
            key=step.key,
            program=WRITTEN,
            points=len(grading.titles_of(step.check)),
        )
        for step in steps
    ]
    names = [step.name for step in steps]
    results = "".join(
        f'          {name.upper()}_RESULTS: "${{{{steps.{name}.outputs.result}}}}"\n'
        for name in names
    )
    workflow = WORKFLOW.format(
        program=WRITTEN,
        install=quoted,
        steps="".join(parts),
        results=results,
        runners=",".join(names),
    )
    keys = ", ".join(step.key for step in steps)
    readme = README.format(install=quoted, program=WRITTEN, first=steps[0].key, keys=keys)
    return {
        ".github/workflows/classroom.yml": workflow,
        "README.md": readme,
        ".gitignore": "__pycache__/\n*.old-*\nresults.json\n",
    }


# nbgrader

CONFIGURATION = '''\
"""Settings of nbgrader for the tinynode course."""

c = get_config()  # noqa: F821 - nbgrader runs this file

c.CourseDirectory.course_id = "tinynode"
c.ClearSolutions.code_stub = {"python": "# Change the definitions above, then run the tests."}
c.ExecutePreprocessor.timeout = 120
'''

NBGRADER_README = """\
# The tinynode course in nbgrader

`source/` has an assignment for each exercise that is a single file. The exercises that build the
package `mynode` need files, so they have none: grade them by `{program} check all --json`.
Install the course for the learners and for the grader: `python -m pip install {install}`

    nbgrader generate_assignment {first}
    nbgrader autograde {first}

The visible tests are the checks of the course. The hidden tests are those of
tinynode-course-solutions{hidden}.
"""


def nbgrader(steps: Sequence[Step], install: str) -> Files:
    """The source notebooks of exercises in single files, and the settings.

    Raises:
        CommandError: None of the steps has such an exercise.
    """
    single = [step for step in steps if not step.builds]
    if not single:
        raise CommandError(f"these exercises are parts of {mynode.NAME}: use check all --json")
    files = {f"source/{step.name}/{step.name}.ipynb": source_notebook(step) for step in single}
    files["nbgrader_config.py"] = CONFIGURATION
    there = "" if hidden.folders() else ", which was not installed: there are none"
    files["README.md"] = NBGRADER_README.format(
        program=WRITTEN, install=f'"{install}"', first=single[0].name, hidden=there
    )
    return files


def source_notebook(step: Step) -> str:
    """An exercise as a source notebook of nbgrader: text, stub with solution, and tests."""
    lead = f"# {step.title}\n\n{pages.goal(read(step.path))}\n\n{_exercise_text(step)}"
    stub = step.stub.read_text(encoding="utf-8").strip("\n")
    solution = _without_docstring(step.solution.read_text(encoding="utf-8"))
    answer = f"{stub}\n\n\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION"
    cells = [
        _cell("markdown", lead, "text", locked=True),
        _cell("code", answer, "answer", solution=True),
    ]
    for check in functions_of(step.check_module()):
        test = "from tinynode_course.grading import check_names\n\n"
        test += f'check_names("{step.key}", "{check.__name__}", globals())'
        cells.append(_cell("code", test, check.__name__, points=1))
    for number, path in enumerate(hidden.checks_of(step), 1):
        cells.append(_cell("code", _hidden_cell(path), f"hidden_{number}", points=2))
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cell(
    kind: str,
    text: str,
    name: str,
    *,
    points: int | None = None,
    solution: bool = False,
    locked: bool = False,
) -> dict[str, Any]:
    """A cell with the metadata of nbgrader, version 3 of its schema."""
    grade = points is not None
    marks: dict[str, Any] = {"schema_version": 3, "grade_id": name, "task": False}
    marks |= {"grade": grade, "solution": solution, "locked": locked or grade}
    if points is not None:
        marks["points"] = points
    cell: dict[str, Any] = {"cell_type": kind, "id": name.replace("_", "-")}
    cell |= {"metadata": {"nbgrader": marks}, "source": text}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _exercise_text(step: Step) -> str:
    """The text of the section Exercise, without its commands."""
    text = "\n".join(cell.source for cell in read(step.path) if cell.kind == "markdown")
    found = re.search(r"^## Exercise\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    lines = found[1].splitlines() if found else []
    return "\n".join(line for line in lines if WRITTEN not in line).strip()


def _without_docstring(code: str) -> str:
    """The text of a module after its docstring."""
    first = ast.parse(code).body[0]
    lines = code.splitlines()
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines = lines[first.end_lineno or 0 :]
    return "\n".join(lines).strip("\n")


def _hidden_cell(path: Path) -> str:
    module = sources.load(path, f"tinynode_hidden_{path.stem}")
    calls = [f"{check.__name__}(answer)" for check in functions_of(module)]
    code = _without_docstring(path.read_text(encoding="utf-8"))
    lead = "from tinynode_course.grading import as_module\n\nanswer = as_module(globals())"
    inner = "\n".join([code, "", "", *calls])
    return f"{lead}\n### BEGIN HIDDEN TESTS\n{inner}\n### END HIDDEN TESTS"

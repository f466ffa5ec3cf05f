"""The command ``template``: a teacher's files for GitHub Classroom, Gradescope or nbgrader.

Requirement: a teacher starts a class with a single command, and no file is overwritten. The
templates are written from the steps, with the exercises and checks of the day.

    python -m tinynode.learn template github-classroom FOLDER 01 02 03 --install WHEEL ...
    python -m tinynode.learn template gradescope FOLDER 05 06 --class TEACHER --install WHEEL ...
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
from tinynode_course.judge import keys, plans
from tinynode_course.mynode import Files
from tinynode_course.progress import write_file
from tinynode_course.shell import WRITTEN
from tinynode_course.sources import Step

SUMMARY = "write the files for GitHub Classroom, Gradescope or nbgrader"
WHEEL = re.compile(r"[^-]+-[^-]+(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl")
"""The names that pip installs: name, version, build, and three tags (PEP 427)."""
SAFELY = WRITTEN.replace("python", "python -P", 1)
"""The command in a learner's folder: no file of the folder takes the place of a library."""
PLACEHOLDER = "tinynode @ git+https://example.org/YOUR-COPY-OF/tinynode.git"


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("kind", choices=("github-classroom", "gradescope", "nbgrader"))
    parser.add_argument("folder", metavar="FOLDER", help="where to")
    parser.add_argument("steps", metavar="STEP", nargs="*", help="such as 07; default: all")
    parser.add_argument(
        "--install",
        metavar="WHAT",
        nargs="+",
        default=[PLACEHOLDER],
        help="what pip installs for the learners: the wheels, which are copied, or a git URL",
    )
    parser.add_argument(
        "--class", dest="teacher", metavar="TEACHER", help="gradescope: the folder of class new"
    )


def run(options: argparse.Namespace) -> int:
    """Write the files of a template.

    Raises:
        CommandError: A file is there already, or cannot be written.
    """
    chosen = [sources.find(text) for text in options.steps] or grading.with_exercise()
    wheels, installed = [], []
    for what in options.install:
        wheel = wheel_of(what)
        installed.append(f'"{what}"' if wheel is None else f'"./{wheel.name}"')
        if wheel is not None:
            wheels.append(wheel)
    install = " ".join(installed)
    if options.kind == "nbgrader":
        files = nbgrader(chosen, install)
    elif options.kind == "gradescope":
        files = gradescope(chosen, install, options.teacher)
    else:
        files = github_classroom(chosen, install)
    folder = Path(options.folder)
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise CommandError(f"{folder / there[0]} is there already; give an empty folder", 1)
    for name, text in files.items():
        write_file(folder / name, text)
        print(f"wrote {folder / name}")
    for wheel in wheels:
        (folder / wheel.name).write_bytes(wheel.read_bytes())
        print(f"copied {wheel.name}")
    if PLACEHOLDER in options.install:
        print(f"\nReplace {PLACEHOLDER!r} in them, or call again with --install.")
    return 0


def wheel_of(install: str) -> Path | None:
    """The wheel that learners install; None for another thing, such as a git URL.

    Raises:
        CommandError: There is no such wheel, or pip refuses its name.
    """
    if not install.endswith(".whl") or "://" in install:
        return None
    path = Path(install)
    if WHEEL.fullmatch(path.name) is None:
        raise CommandError(
            f"--install: pip refuses the name {path.name}; keep the name of the wheel, such as "
            "tinynode_course-0.2.0-py3-none-any.whl",
            1,
        )
    if not path.is_file():
        raise CommandError(
            f"--install: there is no file {path}; in a checkout, make the wheels by  "
            "pip wheel --no-deps --wheel-dir wheels . ./tutorials",
            1,
        )
    return path


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
      - name: Results of all steps
        run: {program} check all --json > results.json || true
{steps}      - name: Keep the results
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
          command: {program} report results.json --passes {key}:{number}
          timeout: 2
          max-score: 1
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
    parts, names = [], []
    for step in steps:
        for number, title in enumerate(grading.titles_of(step.check, step), 1):
            names.append(f"{step.name}_{number}")
            parts.append(
                WORKFLOW_STEP.format(
                    title=json.dumps(f"{step.title}: {title}", ensure_ascii=False),
                    name=names[-1],
                    key=step.key,
                    number=number,
                    program=SAFELY,
                )
            )
    results = "".join(
        f'          {name.upper()}_RESULTS: "${{{{steps.{name}.outputs.result}}}}"\n'
        for name in names
    )
    workflow = WORKFLOW.format(
        program=SAFELY,
        install=install,
        steps="".join(parts),
        results=results,
        runners=",".join(names),
    )
    chosen = ", ".join(step.key for step in steps)
    readme = README.format(install=install, program=WRITTEN, first=steps[0].key, keys=chosen)
    return {
        ".github/workflows/classroom.yml": workflow,
        "README.md": readme,
        ".gitignore": "__pycache__/\n*.old-*\nresults.json\n",
    }


# Gradescope

SETUP = """\
#!/usr/bin/env bash
# Made by: {program} template gradescope
set -e
apt-get install -y python3 python3-pip python3-venv
python3 -m venv /autograder/python
cd /autograder/source
/autograder/python/bin/python -m pip install {install}
"""

AUTOGRADER = """\
#!/usr/bin/env bash
# Made by: {program} template gradescope
cd /autograder
/autograder/python/bin/python -P -m tinynode.learn class judge /autograder/source/teacher \\
    /autograder/submission --steps {keys} --gradescope /autograder/results/results.json
"""

GRADESCOPE_README = """\
# An autograder for Gradescope

Zip the files of this folder, not the folder itself:

    zip -r autograder.zip setup.sh run_autograder teacher *.whl

Upload the archive as the autograder of a programming assignment. Choose an image with Python 3.11
or later, such as Ubuntu 24.04. The archive holds the key of the class: keep it from students.

Each check is a point, and a bug hunt has five. Students see the names of failed checks.
Instructors see the expected values too, in the results.
"""


def gradescope(steps: Sequence[Step], install: str, teacher: str | None) -> Files:
    """The files of an autograder for Gradescope, with the key of the class.

    Raises:
        CommandError: There is no folder of a class.
    """
    if teacher is None:
        raise CommandError("gradescope needs the folder of a class: --class TEACHER")
    keys.open_key(Path(teacher))
    known = ",".join(step.key for step in steps if plans.drills_of(step).exists())
    return {
        "setup.sh": SETUP.format(program=WRITTEN, install=install),
        "run_autograder": AUTOGRADER.format(program=WRITTEN, keys=known),
        "README.md": GRADESCOPE_README,
        f"teacher/{keys.NAME}": (Path(teacher) / keys.NAME).read_text(encoding="utf-8"),
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
        program=WRITTEN, install=install, first=single[0].name, hidden=there
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

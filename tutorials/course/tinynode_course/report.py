"""The command ``report``: the results of a class as a table.

Requirement: a teacher sees in a table where each learner is, and where help is needed. Each
learner has a file, made by ``learn check all --json > ada.json``. The file names the learner.

    python -m tinynode.learn report *.json --csv class.csv --html class.html
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import string
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError, Parser
from tinynode.errors import describe, printable
from tinynode.safe_files import MOST_TEXT, entry, parse_json, read_file
from tinynode_course import grading, sources
from tinynode_course.judge import gradescope
from tinynode_course.progress import write_file

SUMMARY = "make a table of a class from files of check all --json, or of class judge --json"

CLASS_FORMAT = "tinynode-class-results"
"""The format of ``class judge --json``: ``results`` is a list of documents."""
CLASS_VERSION = 1

SIGNS = {"passed": "x", "passed earlier": "x", "failed": "o", "not started": ".", "absent": "."}
"""The signs of a state in the table of text."""

FORMULA = ("=", "+", "-", "@")
"""A text with such a beginning is a formula for a spreadsheet; an apostrophe makes it a text."""

STYLE = """\
body{font:15px/1.4 system-ui,sans-serif;margin:2em;color:#1b1f24;background:#fff}
table{border-collapse:collapse}
th,td{padding:.25em .55em;text-align:center;border:1px solid #d5dae0}
th{background:#f2f4f7}th:first-child,td:first-child{text-align:left}
.passed{background:#d9efdf}.failed{background:#f8dcd6}.read{background:#f3c64d}
.dim{color:#768390}caption{caption-side:bottom;text-align:left;padding-top:1em}
"""


@dataclass(frozen=True)
class Student:
    """The results of a learner, by the key of a step."""

    name: str
    steps: dict[str, dict[str, Any]]

    def state(self, key: str) -> str:
        """The state of a step; "absent" for a step that the file does not have."""
        return str(self.steps.get(key, {}).get("state", "absent"))

    def sums(self) -> dict[str, str]:
        """The columns after the steps."""
        begun = [one for one in self.steps.values() if one["attempts"] or self.begun(one)]
        hidden = [one["hidden"] for one in begun if one["hidden"]]
        checks = [check for one in hidden for check in one["checks"]]
        hunts = [one["hunt"] for one in self.steps.values() if one["hunt"]]
        owners = [one["definitions"] for one in begun if one["definitions"]]
        own, same, taken = (  # a file of results without counts: nothing is known of the owners
            str(sum(one[name] for one in owners)) if owners else "-"
            for name in ("own", "same as reference", "taken")
        )
        reads = [one["step"] for one in begun if one["read_solution"]]
        return {
            "passed": str(sum(one["passed"] for one in self.steps.values())),
            "hidden": _of(sum(check["passed"] for check in checks), len(checks)),
            "attempts": str(sum(one["attempts"] for one in self.steps.values())),
            "bugs": _of(sum(one["caught"] for one in hunts), sum(one["of"] for one in hunts)),
            "own": own,
            "same": same,
            "taken": taken,
            "reads": " ".join(reads),
        }

    def begun(self, one: dict[str, Any]) -> bool:
        """True if there is work for a step."""
        return bool(one["state"] != "not started")


def _of(number: int, most: int) -> str:
    return f"{number}/{most}" if most else "-"


COLUMNS = {
    "passed": "exercises that pass",
    "hidden": "hidden checks that pass",
    "attempts": "checks that were started",
    "bugs": "planted bugs that were caught",
    "own": "definitions of their own",
    "same": "definitions like the reference",
    "taken": "definitions taken from the reference",
    "reads": "steps whose work reads a solution",
}
"""The columns after the steps, in words."""


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="such as ada.json")
    parser.add_argument("--csv", metavar="FILE", help="write a table for spreadsheets too")
    parser.add_argument("--html", metavar="FILE", help="write a page too")
    parser.add_argument(
        "--passes",
        metavar="STEP:NUMBER",
        help="no table: exit status 0 if this check passes in the file, else 1; checks begin at 1",
    )
    parser.add_argument("--gradescope", metavar="FILE", help="results.json of Gradescope")


def run(options: argparse.Namespace) -> int:
    """Print the table, and write the files that were asked for.

    A file without results is named, and the others make the table; the status is then 2.
    """
    if options.passes is not None or options.gradescope is not None:
        return _run_on_one(options)
    students: list[Student] = []
    status = 0
    for name in options.files:
        try:
            students += read(Path(name))
        except CommandError as error:
            print(f"left out: {error}", file=sys.stderr)
            status = 2
    keys = keys_of(students)
    for line in as_text(students, keys):
        print(line)
    for name, text in ((options.csv, as_csv), (options.html, as_html)):
        if name is not None:
            write_file(Path(name), text(students, keys))
            print(f"wrote {Path(name)}")
    return status


def _run_on_one(options: argparse.Namespace) -> int:
    """Write ``results.json``, or say by the exit status if a check passes."""
    if len(options.files) != 1:
        raise CommandError("--passes and --gradescope need one FILE")
    documents = read_documents(Path(options.files[0]))
    if len(documents) != 1:
        raise CommandError(
            f"--passes and --gradescope need the results of one learner; {options.files[0]} has "
            f"{len(documents)}: take a file of the folder results of the class"
        )
    (content,) = documents
    if options.gradescope is not None:
        write_file(Path(options.gradescope), gradescope.results(content))
        print(f"wrote {Path(options.gradescope)}")
        return 0
    key, _, number = options.passes.partition(":")
    if not number.isdecimal() or number == "0":
        raise CommandError(f"--passes needs STEP:NUMBER such as 05:1, got {options.passes}")
    checks = student("", content).steps.get(key, {}).get("checks", [])
    chosen = checks[int(number) - 1 : int(number)]
    for check in chosen:
        print("\n".join(check.get("text", [])) or "passes")
    if not chosen:
        print(f"{options.files[0]} has no check {number} of step {key}: the step is not started")
    return 0 if any(check["passed"] for check in chosen) else 1


def read(path: Path) -> list[Student]:
    """The learners of a file: of ``check all --json`` one, of ``class judge --json`` the class.

    Raises:
        CommandError: The file is missing, or has no results.
    """
    documents = read_documents(path)
    if len(documents) == 1:
        return [student(path.stem, documents[0])]
    return [student(one["folder"], one) for one in documents]


def read_documents(path: Path) -> list[dict[str, Any]]:
    """The results of a file: a document, or those of a class.

    Raises:
        CommandError: The file is missing, or has no results.
    """
    documents: list[dict[str, Any]]
    try:
        content = parse_json(read_file(path, MOST_TEXT))
        if isinstance(content, dict) and content.get("format") == CLASS_FORMAT:
            if content.get("version") != CLASS_VERSION:
                raise ValueError(f"expected version {CLASS_VERSION} of {CLASS_FORMAT}")
            documents = entry(content, "results", list, where="class")
            for number, one in enumerate(documents):
                _check_document(one, f"results: {number}")
                entry(one, "folder", str, where=f"results: {number}")
        else:
            documents = [content]
            _check_document(content, "results")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(
            f"{path} has no results of this version: make it by  check all --json > {path.name}  "
            f"or by  class judge ... --json > {path.name}  The reason: {printable(str(error))}."
        ) from None
    return documents


def _check_document(content: Any, where: str) -> None:
    """Refuse results of another format or version, or with wrong entries."""
    version = entry(content, "version", int, where=where)
    if content.get("format") != grading.FORMAT or version != grading.VERSION:
        raise ValueError(f"expected version {grading.VERSION} of {grading.FORMAT}")
    for number, one in enumerate(entry(content, "steps", list, where=where)):
        _check_results(one, f"steps: {number}")


def student(name: str, content: dict[str, Any]) -> Student:
    """The results of a document of ``check --json`` or of ``class judge``."""
    return Student(printable(name), {one["step"]: one for one in content["steps"]})


def _check_results(one: Any, where: str) -> None:
    """Refuse the results of a step that lack a key, or have a value of another type."""
    empty = type(None)
    entry(one, "step", str, where=where)
    entry(one, "state", str, where=where)
    entry(one, "passed", bool, where=where)
    entry(one, "attempts", int, where=where)
    entry(one, "hints", int, where=where)
    entry(one, "read_solution", list, where=where)
    for number, check in enumerate(entry(one, "checks", list, where=where)):
        _check_outcome(check, f"{where}: checks: {number}")
    if entry(one, "stopped", dict, empty, where=where) is not None:
        _check_texts(
            entry(one["stopped"], "text", list, where=f"{where}: stopped"), f"{where}: stopped"
        )
    if entry(one, "hidden", dict, empty, where=where) is not None:
        checks = entry(one["hidden"], "checks", list, where=f"{where}: hidden")
        for number, check in enumerate(checks):
            _check_outcome(check, f"{where}: hidden: checks: {number}")
    for name, keys in _COUNTS.items():
        counts = entry(one, name, dict, empty, where=where)
        for key in keys if counts is not None else ():
            entry(counts, key, int, where=f"{where}: {name}")


_COUNTS = {"definitions": ("own", "same as reference", "taken"), "hunt": ("caught", "of")}
"""The counts in the results of a step, of the steps that have them."""


def _check_outcome(check: Any, where: str) -> None:
    """Refuse the outcome of a check without ``passed`` and the lines of ``text``."""
    entry(check, "passed", bool, where=where)
    if "text" in check:
        _check_texts(entry(check, "text", list, where=where), where)


def _check_texts(texts: list[Any], where: str) -> None:
    if not all(type(text) is str for text in texts):
        raise ValueError(f"{where}: expected a list of texts, got {describe(texts)}")


def keys_of(students: Sequence[Student]) -> list[str]:
    """The keys of all steps in the files, in the order of the course."""
    found = {key for student in students for key in student.steps}
    known = [step.key for step in sources.steps() if step.key in found]
    return known + sorted(found - set(known))


def as_text(students: Sequence[Student], keys: Sequence[str]) -> Iterator[str]:
    """The table as lines of text, with letters for the steps with long keys."""
    letters = iter(string.ascii_uppercase)
    short = {key: key if len(key) <= 2 else next(letters, "?") for key in keys}
    heads = ["student", *(short[key] for key in keys), *COLUMNS]
    rows = [
        [one.name, *(SIGNS.get(one.state(key), "?") for key in keys), *one.sums().values()]
        for one in students
    ]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    for row in [heads, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield " ".join(cells).rstrip()
    yield ""
    yield "x passes   o fails   . not started"
    for words in (f"{short[key]} {key}" for key in keys if len(key) > 2):
        yield words
    for name, words in COLUMNS.items():
        yield f"{name}: {words}"


def as_csv(students: Sequence[Student], keys: Sequence[str]) -> str:
    """A row for each learner; for each step the state, attempts, hints, hidden checks, bugs."""
    parts = ("state", "attempts", "hints", "hidden", "bugs")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["student", *COLUMNS, *(f"{key} {part}" for key in keys for part in parts)])
    for student in students:
        name = f"'{student.name}" if student.name.startswith(FORMULA) else student.name
        row = [name, *student.sums().values()]
        for key in keys:
            row += _cells(student.steps.get(key))
        writer.writerow(row)
    return file.getvalue()


def _cells(one: dict[str, Any] | None) -> list[str]:
    if one is None:
        return ["absent", "", "", "", ""]
    checks = one["hidden"]["checks"] if one["hidden"] else []
    hidden = _of(sum(check["passed"] for check in checks), len(checks))
    hunt = _of(one["hunt"]["caught"], one["hunt"]["of"]) if one["hunt"] else "-"
    return [one["state"], str(one["attempts"]), str(one["hints"]), hidden, hunt]


def as_html(students: Sequence[Student], keys: Sequence[str]) -> str:
    """A page without other files; the title of a cell is the reason of a failure."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("student", *keys))
    head += "".join(f'<th title="{words}">{name}</th>' for name, words in COLUMNS.items())
    rows = []
    for student in students:
        cells = [f"<td>{html.escape(student.name)}</td>"]
        cells += [_cell(student.steps.get(key)) for key in keys]
        cells += [f"<td>{html.escape(text)}</td>" for text in student.sums().values()]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    words = "<br>".join(f"{name}: {text}" for name, text in COLUMNS.items())
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>The class</title>\n'
        f"<style>{STYLE}</style>\n<h1>The class</h1>\n<table><caption>{words}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table></html>\n"
    )


def _cell(one: dict[str, Any] | None) -> str:
    if one is None or one["state"] == "not started":
        return '<td class="dim">·</td>'
    stopped = [one["stopped"]] if one["stopped"] else []
    failed = [check for check in one["checks"] if not check["passed"]]
    why = next((" ".join(fact["text"]) for fact in (*stopped, *failed) if fact["text"]), "")
    kind = "read" if one["read_solution"] else "passed" if one["passed"] else "failed"
    text = f"{len(one['checks']) - len(failed)}/{len(one['checks'])}" if one["checks"] else "yes"
    return f'<td class="{kind}" title="{html.escape(why, quote=True)}">{text}</td>'

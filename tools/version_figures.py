"""The figures of each version, side by side: sizes, archives, accuracy, checks and workloads.

    python -m tools.benchmarks.workloads --json workloads.json      # on a quiet machine
    python -m tools.version_figures measure --workloads workloads.json
    python -m tools.version_figures page

``measure`` writes ``tools/figures/VERSION.json`` for the version of this tree. ``page`` writes
``docs/figures.md`` from the files of all versions. A figure that a version lacks is ``-``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tinynode
from tools import release, sizes

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "figures"
PAGE = ROOT / "docs" / "figures.md"

Figures = dict[str, dict[str, str]]
"""The groups of a version: for each the figures, as text for a cell."""

BASE = "torch"
"""The library that workloads are compared with."""

VALUES_WITHIN = {"float16": 2.0, "float32": 4.0, "float64": 4.0}
SPECIAL_WITHIN = 8.0
"""The limits of values in ulp, as the accuracy page states them."""


# --- measuring -----------------------------------------------------------------------------------


def of_sizes() -> dict[str, str]:
    """Lines and files of Python in the rooms of the tree."""
    found = {}
    for measure in ("lines", "files"):
        for row in sizes.compare(measure):
            if row.room in ("tinynode", "tinynode/core", "backends", "tutorials/course"):
                found[f"{measure} of Python in {row.room}"] = f"{row.today:,}"
    return found


def of_archives() -> dict[str, str]:
    """The bytes of the archives of a release."""
    with tempfile.TemporaryDirectory() as scratch:
        names = {one.path.name: one.size for one in release.build_all(Path(scratch))}
    return {f"bytes of {without_version(name)}": f"{size:,}" for name, size in names.items()}


def without_version(name: str) -> str:
    return re.sub(r"-\d+(\.\d+)*", "", name, count=1)


def of_accuracy(text: str) -> dict[str, str]:
    """How many functions of the accuracy page have values within the limit, by library."""
    found = {}
    for part in text.split("\n## ")[1:]:
        dtype, _, table = part.partition("\n")
        if dtype not in VALUES_WITHIN:
            continue
        rows = [cells(line) for line in table.splitlines() if line.startswith("| ")]
        libraries = rows[0][1:]
        for column, library in enumerate(libraries, start=1):
            listed = [row for row in rows[1:] if row[column] != "-"]
            good = sum(is_within(dtype, row[0], row[column]) for row in listed)
            title = f"{dtype}: functions of {library} with values within the limit"
            found[title] = f"{good} of {len(listed)}"
    return found


def is_within(dtype: str, function: str, errors: str) -> bool:
    """True if the error of the value, the first of the errors, is within the limit."""
    is_special = function.startswith("special") and dtype != "float16"
    limit = SPECIAL_WITHIN if is_special else VALUES_WITHIN[dtype]
    return float(errors.split(" / ")[0]) <= limit


def cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def of_checks(text: str) -> dict[str, str]:
    """The planted bugs of the course that its checks refuse, and the right answers accepted."""
    rows = [cells(line) for line in text.splitlines() if line.startswith("| ")]
    counted = [row for row in rows if row[0].startswith(("Step ", "Elective "))]
    bugs, refused = (sum(int(row[place]) for row in counted) for place in (1, 3))
    found = {"planted bugs that the course's checks refuse": f"{refused} of {bugs}"}
    right = re.search(r"\*\*Right answers[^:]*: (\d+) in .*?accept (\d+)", text)
    if right is not None:
        found["right answers of unusual forms that pass"] = f"{right[2]} of {right[1]}"
    return found


def of_workloads(measured: Mapping[str, Any]) -> dict[str, str]:
    """Times of a workload over those of PyTorch eager: the least processor times."""
    found = {}
    for threads, results in measured["threads"].items():
        for title, times in results["workloads"].items():
            if BASE not in times:
                continue
            least = {name: min(one["cpu"]) for name, one in times.items()}
            base = least.pop(BASE)
            ratios = [f"{name} {time / base:.2f}" for name, time in least.items()]
            plural = "s"[: int(threads) != 1]
            found[f"{title}, {threads} thread{plural}, over PyTorch"] = ", ".join(ratios)
    return found


def measured_now(workloads: Path | None) -> Figures:
    """All figures of this tree."""
    docs = ROOT / "docs"
    found = {
        "Sizes": of_sizes(),
        "Archives": of_archives(),
        "Accuracy": of_accuracy((docs / "accuracy.md").read_text(encoding="utf-8")),
        "Checks of the course": of_checks((docs / "course-checks.md").read_text(encoding="utf-8")),
    }
    if workloads is not None:
        measured = json.loads(workloads.read_text(encoding="utf-8"))
        found["Workloads"] = {"measured with": measured["setting"], **of_workloads(measured)}
    return found


# --- the page ------------------------------------------------------------------------------------

HEAD = """\
# Figures of each version

The figures of a version were measured in the tree of the version. `python -m tools.sizes` has the
sizes, and `python -m tools.release` the archives. The pages [Accuracy](accuracy.md), [What the
checks refuse](course-checks.md) and [Performance](performance.md) explain the other figures.
Functions of SciPy may have 8 ulp. Workloads are least processor times over those of PyTorch eager
in the same run.

The page is made by `python -m tools.version_figures page`.
"""


def page(versions: Mapping[str, Figures]) -> str:
    """The page: a table for each group, with a column for each version, the newest first."""
    names = sorted(versions, key=lambda name: tuple(map(int, name.split("."))), reverse=True)
    groups: list[str] = []
    for name in names:
        groups += [group for group in versions[name] if group not in groups]
    text = HEAD
    for group in groups:
        titles: list[str] = []
        for name in names:
            titles += [one for one in versions[name].get(group, {}) if one not in titles]
        text += f"\n## {group}\n\n| | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n"
        for title in titles:
            row = [versions[name].get(group, {}).get(title, "-") for name in names]
            text += f"| {title} | {' | '.join(row)} |\n"
    return text


def all_versions() -> dict[str, Figures]:
    """The figures of all versions that were measured."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("--workloads", type=Path, help="the JSON of tools.benchmarks.workloads")
    options = parser.parse_args(arguments)
    if options.what == "measure":
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{tinynode.__version__}.json"
        path.write_text(json.dumps(measured_now(options.workloads), indent=1) + "\n", "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    PAGE.write_text(page(all_versions()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

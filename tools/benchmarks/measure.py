"""Tools of all benchmarks: versions, medians, tables, and runs in a separate process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def available(known: Iterable[str], asked_for: str) -> list[str]:
    """The known libraries, if requested and installed; tinynode always.

    Prints the libraries skipped because not installed. Raises SystemExit for an unknown name.
    """
    names = asked_for.split(",")
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
    found = []
    for name in known:
        if name != "tinynode" and name not in names:
            continue
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {name} is not installed (pip install -e '.[peers]')")
        else:
            found.append(name)
    return found


def describe_setting(libraries: Iterable[str]) -> str:
    """Versions and machine in a few words, to stand above a table."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in libraries]
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return f"{', '.join(versions)}; {machine}{chosen_kernels()}; one thread"


def chosen_kernels() -> str:
    """The kernels of OpenBLAS, if a variable chooses them: NumPy has them, PyTorch has its own."""
    kernels = os.environ.get("OPENBLAS_CORETYPE")
    return f", NumPy's products for {kernels}" if kernels else ""


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios round by round: the slowness of a whole round cancels out."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def print_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table in Markdown, the first column left, the others right."""
    text = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in text) for i in range(len(head))]
    lines = []
    for row in text:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    print("\n".join(lines))


def run_python(*arguments: str) -> Any:
    """Run Python in a fresh process; returns the JSON value of the last printed line."""
    result = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(result.stdout.splitlines()[-1])

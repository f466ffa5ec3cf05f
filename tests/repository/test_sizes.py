"""The sizes that show health: short functions, and no file that grew without anyone looking."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "tinynode").rglob("*.py"), *(ROOT / "backends").rglob("*.py")])
LONGEST_FUNCTION = 40
LONGEST_FILE = 700
LONGEST_BACKEND = 90


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file, and the lines of each without its docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node, clean=False) is not None
            doc = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - doc


def number_of_lines(path: Path) -> int:
    """The lines of a file without its list of public names, ``__all__``."""
    text = path.read_text(encoding="utf-8")
    names = [
        (node.end_lineno or 0) - node.lineno + 1
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return len(text.splitlines()) - sum(names)


def test_functions_and_files_stay_short() -> None:
    long = [
        f"{path.name}: {name}: {lines}"
        for path in FILES
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    ]
    assert long == [], f"functions of more than {LONGEST_FUNCTION} lines"
    assert [path for path in FILES if number_of_lines(path) > LONGEST_FILE] == []


def test_the_usual_function_is_a_few_lines() -> None:
    lines = [lines for path in FILES for _, lines in functions(path)]
    assert statistics.median(lines) < 8


def test_a_backend_is_one_small_file() -> None:
    for package in (ROOT / "backends" / "tinynode_numpy",):
        assert sum(number_of_lines(path) for path in package.rglob("*.py")) <= LONGEST_BACKEND

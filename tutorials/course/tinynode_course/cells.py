"""The steps of the course, read and run: Python files of cells, in the percent format.

Requirement: a single file is the program, the page and the notebook. A line ``# %%`` begins a cell
of code, and ``# %% [markdown]`` a cell of text. ``tags=["..."]`` on such a line gives tags:

    portable   on the first cell: the step prints the same on every backend
    varies     the output differs from run to run: a measured time, or memory
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import io
import json
import re
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = re.compile(r"# %%(?:\s+\[(?P<kind>\w+)\])?\s*(?P<rest>.*)")
TAGS = re.compile(r"tags\s*=\s*(\[[^\]]*\])")
TAG_NAMES = frozenset({"portable", "varies"})


class CellError(ValueError):
    """The cells of a step are malformed; the message names the file and the line."""


@dataclass
class Cell:
    """A cell; the source starts in line ``line`` of the file."""

    kind: str
    source: str
    tags: frozenset[str]
    line: int


@dataclass
class Output:
    """The printed text of a cell, and the value of the last expression.

    ``svg`` or ``html`` is the picture of the value, and ``shown`` is the text of the value. A film
    has ``words`` too, for a terminal. All are "" if the last statement is no expression.
    """

    printed: str = ""
    shown: str = ""
    svg: str = ""
    html: str = ""
    words: str = ""
    seconds: float = 0.0


@dataclass
class _OpenCell:
    """A cell during parsing."""

    kind: str
    tags: frozenset[str]
    line: int
    lines: list[str] = field(default_factory=list)


def parse(text: str, name: str = "the step") -> list[Cell]:
    """The cells of a file, without empty cells.

    Raises:
        CellError: A cell has an unknown kind or tag, or text outside of comments.
    """
    current = _OpenCell("code", frozenset(), 1)
    found = [current]
    for number, line in enumerate(text.splitlines(), 1):
        mark = MARK.fullmatch(line.rstrip())
        if mark is None:
            current.lines.append(line)
            continue
        current = _OpenCell(*_read_mark(mark, f"{name}, line {number}"), number + 1)
        found.append(current)
    cells = [_close(cell, name) for cell in found]
    return [cell for cell in cells if cell.source]


def _read_mark(mark: re.Match[str], location: str) -> tuple[str, frozenset[str]]:
    kind = mark["kind"] or "code"
    if kind not in ("code", "markdown"):
        raise CellError(f"{location}: a cell of kind [{kind}]; expected # %% or # %% [markdown]")
    tags = TAGS.search(mark["rest"])
    try:
        names = frozenset(json.loads(tags[1])) if tags else frozenset()
    except ValueError:
        raise CellError(f"{location}: the tags are no list of strings in double quotes") from None
    if names - TAG_NAMES:
        known = ", ".join(sorted(TAG_NAMES))
        raise CellError(f"{location}: unknown tags {sorted(names - TAG_NAMES)}; known: {known}")
    return kind, names


def _close(cell: _OpenCell, name: str) -> Cell:
    """The finished cell: no empty lines around the source, and no comment signs in text."""
    lines, line = cell.lines, cell.line
    while lines and not lines[0].strip():
        lines, line = lines[1:], line + 1
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if cell.kind == "markdown":
        lines = [_text(row, f"{name}, line {line + k}") for k, row in enumerate(lines)]
    return Cell(cell.kind, "\n".join(lines), cell.tags, line)


def _text(line: str, location: str) -> str:
    if line.startswith("# "):
        return line[2:]
    if line.strip() in ("#", ""):
        return ""
    raise CellError(f"{location}: a line of text must start with '# ', got {line!r}")


def read(path: Path) -> list[Cell]:
    """The cells of a file."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def title(cells: list[Cell]) -> str:
    """The first heading: ``# Step 4: automatic backward``, without the ``#``."""
    for cell in cells:
        for line in cell.source.splitlines() if cell.kind == "markdown" else ():
            if line.startswith("# "):
                return line[2:].strip()
    return ""


def run(
    cells: list[Cell], path: Path, after: Callable[[Cell, Output], None] | None = None
) -> list[Output]:
    """Run the cells in one namespace, as a notebook would; returns an output for each cell.

    A traceback shows the lines of the file. ``after`` is called at the end of each cell.
    """
    outputs = []
    flags = future_flags(cells)
    with _main_module(path) as names:
        for cell in cells:
            is_code = cell.kind == "code"
            outputs.append(run_cell(cell, path, names, flags) if is_code else Output())
            if after is not None:
                after(cell, outputs[-1])
    return outputs


@contextlib.contextmanager
def _main_module(path: Path) -> Iterator[dict[str, Any]]:
    """A module in place of ``__main__``; ``inspect`` then finds the source of a step's classes."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield vars(module)
    finally:
        sys.modules["__main__"] = before


def run_cell(
    cell: Cell,
    path: Path,
    names: dict[str, Any],
    flags: int = 0,
    printed: io.StringIO | None = None,
) -> Output:
    """Run a cell of code. Printed text goes into the result, and into ``printed``."""
    body = _compiled(cell, path, flags)
    printed = io.StringIO() if printed is None else printed
    start = time.process_time()
    with contextlib.redirect_stdout(printed):
        value = None
        for code in body:
            value = eval(code, names)  # None for statements
        output = picture(value)
    output.printed = printed.getvalue()
    output.seconds = time.process_time() - start
    return output


def future_flags(cells: list[Cell]) -> int:
    """The compiler flags of all cells: those of ``from __future__ import annotations``."""
    said = any("from __future__ import annotations" in cell.source for cell in cells)
    return __future__.annotations.compiler_flag if said else 0


def _compiled(cell: Cell, path: Path, flags: int) -> list[types.CodeType]:
    """The statements, then the last expression, with the line numbers of the file."""
    lifted = "\n" * (cell.line - 1) + cell.source
    tree = ast.parse(lifted, str(path))
    codes = []
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        del tree.body[-1]
    if tree.body:
        codes.append(compile(tree, str(path), "exec", flags, dont_inherit=True))
    if isinstance(last, ast.Expr):
        value = ast.Expression(last.value)
        codes.append(compile(value, str(path), "eval", flags, dont_inherit=True))
    return codes


def picture(value: Any) -> Output:
    """A notebook's output for a value: SVG, HTML, or text."""
    if value is None:
        return Output()
    svg, html = (_drawn(value, f"_repr_{kind}_") for kind in ("svg", "html"))
    # print() of a value with a picture gives the text
    shown = str(value) if svg or html else repr(value)
    words = _drawn(value, "to_short_text")
    return Output(shown=shown, svg=svg, html="" if svg else html, words=words)


def _drawn(value: Any, method: str) -> str:
    draw = getattr(value, method, None)
    drawn = draw() if draw is not None and not isinstance(value, type) else None
    return drawn if isinstance(drawn, str) else ""

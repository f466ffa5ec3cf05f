"""Measures the rooms of the repository, and compares each with its budget.

    python -m tools.sizes                   # a table for each measure
    python -m tools.sizes --base main       # the same, with the change since a revision

The budgets stand in ``tools/sizes.toml``. A goal is the size to reach; a budget is today's limit.
The exit status is 1 if a size is above its budget. The tables are text, and valid Markdown.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = ROOT / "tools" / "sizes.toml"
CLOSE = 5.0
"""Less room than this, in percent of the budget, is marked."""

Sources = Mapping[str, "Facts"]
"""Files of Python, by their paths from the root of the repository."""


class Limit(NamedTuple):
    """The size to reach, and the size that is allowed today."""

    goal: int
    budget: int


class Row(NamedTuple):
    """The size of a room, its limit, and the size in another revision, if there is one."""

    room: str
    today: int
    limit: Limit
    before: int | None

    @property
    def left(self) -> float:
        """The free part of the budget, in percent; negative above the budget."""
        return 100 * (self.limit.budget - self.today) / self.limit.budget

    @property
    def exceeds(self) -> bool:
        """True if the size is above the budget."""
        return self.today > self.limit.budget


# --- the measures --------------------------------------------------------------------------------


class Facts(NamedTuple):
    """The sizes of a file of Python.

    Attributes:
        lines: all lines: code, docstrings, comments and empty lines.
        names: the functions and classes of the module whose names do not begin with ``_``.
        own_lines: the lines without the list of public names, ``__all__``.
        private: the names with one leading ``_`` that the file defines: of the module, of its
            classes, and attributes that are written.
        private_uses: the other names with one leading ``_`` that the file reads or imports, each
            as often as it is used.
    """

    lines: int
    names: int
    own_lines: int
    private: frozenset[str] = frozenset()
    private_uses: tuple[str, ...] = ()


@functools.cache
def facts(text: str) -> Facts:
    """The sizes of a file with this text."""
    lines = len(text.splitlines())
    names, listed = set(), 0  # overloads of a function have one name
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names |= {node.name} if not node.name.startswith("_") else set()
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed += (node.end_lineno or node.lineno) - node.lineno + 1
    private = frozenset(name for node in ast.walk(tree) for name in defined(node) if hidden(name))
    used = [name for node in ast.walk(tree) for name in taken(node) if hidden(name)]
    uses = tuple([name for name in used if name not in private])
    return Facts(lines, len(names), lines - listed, private, uses)


def hidden(name: str) -> bool:
    """True for a private name: with one leading ``_``."""
    is_method_of_tuples = name in ("_make", "_replace")  # of typing.NamedTuple, and public
    return name.startswith("_") and not name.startswith("__") and not is_method_of_tuples


def defined(node: ast.AST) -> list[str]:
    """The names that a node of the syntax tree defines: also those in ``__slots__``."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
        return [node.attr] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
        constants = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
        return [value for value in constants if isinstance(value, str)]
    return []


def taken(node: ast.AST) -> list[str]:
    """The names that a node imports, and the attribute of an object other than ``self``."""
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value)
        return [] if owner in ("self", "cls", "super()") else [node.attr]
    return []


def number_of_lines(files: Sequence[Facts]) -> int:
    """All lines of the files."""
    return sum(file.lines for file in files)


def number_of_names(files: Sequence[Facts]) -> int:
    """The public functions and classes of the files."""
    return sum(file.names for file in files)


def longest_file(files: Sequence[Facts]) -> int:
    """The lines of the longest file, without ``__all__``."""
    return max((file.own_lines for file in files), default=0)


def number_of_private_uses(files: Sequence[Facts]) -> int:
    """The uses of private names of other modules; names of other libraries do not count."""
    known = frozenset[str]().union(*(file.private for file in files))
    return sum(name in known for file in files for name in file.private_uses)


MEASURES: dict[str, tuple[str, Callable[[Sequence[Facts]], int]]] = {
    "lines": ("lines of Python", number_of_lines),
    "files": ("files of Python", len),
    "names": ("public functions and classes", number_of_names),
    "longest": ("lines of the longest file", longest_file),
    "private": ("uses of private names of other modules", number_of_private_uses),
}
"""The title and the function of each measure."""


# --- the rooms -----------------------------------------------------------------------------------


def read_budgets() -> dict[str, dict[str, Limit]]:
    """The limits of each room, by room and measure."""
    data = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    return {
        room: {measure: Limit(**numbers) for measure, numbers in limits.items()}
        for room, limits in data.items()
    }


def files_of(room: str, sources: Sources) -> list[Facts]:
    """The files in a folder and below; ``folder/*.py`` stands for the folder alone."""
    folder = room.removesuffix("/*.py")
    if folder != room:
        return [file for path, file in sources.items() if path.rpartition("/")[0] == folder]
    return [file for path, file in sources.items() if path.startswith(f"{folder}/")]


def folders() -> set[str]:
    """The folders of all rooms."""
    return {room.removesuffix("/*.py") for room in read_budgets()}


def working_tree() -> Sources:
    """The files of Python in the rooms, as they are now."""
    paths = {path for folder in folders() for path in (ROOT / folder).rglob("*.py")}
    return {path.relative_to(ROOT).as_posix(): facts(path.read_text("utf-8")) for path in paths}


def revision(name: str) -> Sources:
    """The files of Python in the rooms, as they are in a revision of git.

    Raises:
        ValueError: git does not know the revision.
    """
    command = ["git", "archive", "--format=tar", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        raise ValueError(
            f"sizes: --base must be a revision that this clone has, got {name!r}. git says: "
            f"{done.stderr.decode(errors='replace').strip()}"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        inside = tuple(f"{folder}/" for folder in folders())
        paths = [m.name for m in archive if m.name.startswith(inside) and m.name.endswith(".py")]
        found = {path: archive.extractfile(path) for path in paths}
        texts = {name: file.read().decode("utf-8") for name, file in found.items() if file}
    return {name: facts(text) for name, text in texts.items()}


def compare(measure: str, base: Sources | None = None) -> list[Row]:
    """A row for each room that has a budget of the measure."""
    budgets = {room: limits for room, limits in read_budgets().items() if measure in limits}
    now = working_tree()
    _, size = MEASURES[measure]
    rows = []
    for room, limits in budgets.items():
        before = None if base is None else size(files_of(room, base))
        rows.append(Row(room, size(files_of(room, now)), limits[measure], before))
    return rows


# --- the tables ----------------------------------------------------------------------------------


def table(title: str, rows: Sequence[Row]) -> list[str]:
    """The lines of a table, in Markdown."""
    cells = [[title, "today", "goal", "above goal", "budget", "left"]]
    cells += [[_cell(row, name) for name in cells[0]] for row in rows]
    if rows and rows[0].before is not None:
        cells[0].append("change")
        for line, row in zip(cells[1:], rows, strict=True):
            line.append(_change(row))
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    dashes = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [_line(line, widths) for line in (cells[0], dashes, *cells[1:])]


def _cell(row: Row, column: str) -> str:
    above = row.today - row.limit.goal
    mark = " !" if row.left < CLOSE else ""
    words = {
        "today": f"{row.today:,}",
        "goal": f"{row.limit.goal:,}",
        "above goal": f"{above:+,}" if above > 0 else "",
        "budget": f"{row.limit.budget:,}",
        "left": f"{row.left:.1f} %{mark}",
    }
    return words.get(column, row.room)


def _change(row: Row) -> str:
    change = row.today - (row.before or 0)
    return f"{change:+,}" if change else "0"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(aligned)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a size is above its budget, 2 if the revision is unknown."""
    parser = argparse.ArgumentParser(prog="python -m tools.sizes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--base", metavar="REV", help="a revision of git to compare with")
    options = parser.parse_args(arguments)
    try:
        base = None if options.base is None else revision(options.base)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    over: list[str] = []
    for measure, (title, _) in MEASURES.items():
        rows = compare(measure, base)
        print("\n".join([*table(title, rows), ""]))
        over += [f"{row.room}: {row.today:,} {title}" for row in rows if row.exceeds]
    print(f"A mark ! stands where less than {CLOSE:.0f} % of the budget is left.")
    for line in over:
        print(f"above the budget of tools/sizes.toml: {line}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

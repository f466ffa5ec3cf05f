"""The sizes that show health: rooms within their budgets, and short functions."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import sizes

ROOT = sizes.ROOT
FOLDERS = ("tinynode", "backends", "tutorials/course")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LONGEST_FUNCTION = 40
MODULE = '''"""A module."""

__all__ = [
    "Shown",
]


class Shown:
    def method(self): ...


@overload
def shown(x: int): ...
@overload
def shown(x: str): ...
def shown(x): ...


def _hidden(): ...
'''


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file, and the lines of each without its docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node, clean=False) is not None
            doc = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - doc


# --- the rooms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", sizes.MEASURES)
def test_each_room_is_within_its_budget(measure: str) -> None:
    """tools/sizes.toml has the budgets. A budget rises with a reason in the commit's body."""
    rows = sizes.compare(measure)
    table = "\n".join(sizes.table(measure, rows))
    assert rows and [row.room for row in rows if row.exceeds] == [], f"\n{table}"


def test_each_folder_is_a_room_with_a_goal_and_a_budget() -> None:
    budgets = sizes.read_budgets()
    folders = [ROOT / "tinynode", ROOT / "backends"]
    packages = [path for folder in folders for path in folder.glob("*/__init__.py")]
    rooms = {path.parent.relative_to(ROOT).as_posix() for path in packages}
    assert rooms | {"tinynode", "tinynode/*.py", "backends"} <= budgets.keys()
    for room, limits in budgets.items():
        assert {"lines", "files", "names"} <= limits.keys() <= sizes.MEASURES.keys(), room
        assert all(0 < limit.goal <= limit.budget for limit in limits.values()), room


def test_the_rooms_of_a_package_add_up_to_the_package() -> None:
    rows = {row.room: row.today for row in sizes.compare("files")}
    parts = [size for room, size in rows.items() if room.startswith("tinynode/")]
    assert sum(parts) == rows["tinynode"]


def test_the_measures() -> None:
    module, empty = sizes.facts(MODULE), sizes.facts("")
    found = {name: measure([module, empty]) for name, (_, measure) in sizes.MEASURES.items()}
    assert found == {"lines": 19, "files": 2, "names": 2, "longest": 16, "private": 0}
    other = sizes.facts("from room import _a\n_b = x._c, x._d, self._c, x._b, x._replace()\n")
    home = sizes.facts("_a = 1\nclass A:\n    __slots__ = ('_c',)\n")
    assert sizes.number_of_private_uses([home, other]) == 2  # _a and x._c
    sources = {"room/one.py": module, "room/below/two.py": empty, "rooms.py": empty}
    assert sizes.files_of("room", sources) == [module, empty]
    assert sizes.files_of("room/*.py", sources) == [module]


def test_a_size_above_its_budget_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets = tmp_path / "sizes.toml"
    monkeypatch.setattr(sizes, "BUDGETS", budgets)
    budgets.write_text('["tools"]\nfiles = { goal = 1, budget = 2 }\n', encoding="utf-8")
    assert sizes.main([]) == 1
    captured = capsys.readouterr()
    assert "| tools " in captured.out and "files of Python" in captured.err
    budgets.write_text('["tools"]\nfiles = { goal = 1, budget = 900 }\n', encoding="utf-8")
    assert sizes.main([]) == 0


def test_the_tables_have_the_change_since_a_revision(capsys: pytest.CaptureFixture[str]) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the repository of git is not here")
    assert sizes.main(["--base", "HEAD"]) == 0
    header, dashes, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert header.split("|")[-2].strip() == "change" and set(dashes) <= set("|-: ")
    assert len(rows) == len(sizes.read_budgets())
    assert sizes.main(["--base", "no-such-revision"]) == 2
    assert "got 'no-such-revision'" in capsys.readouterr().err


def test_a_row_tells_the_room_that_is_left() -> None:
    rows = [
        sizes.Row("far", 50, sizes.Limit(60, 100), 40),
        sizes.Row("close", 98, sizes.Limit(90, 100), 98),
    ]
    assert sizes.table("lines", rows) == [
        "| lines | today | goal | above goal | budget |    left | change |",
        "| ----- | ----: | ---: | ---------: | -----: | ------: | -----: |",
        "| far   |    50 |   60 |            |    100 |  50.0 % |    +10 |",
        "| close |    98 |   90 |         +8 |    100 | 2.0 % ! |      0 |",
    ]


# --- the functions -------------------------------------------------------------------------------


def test_functions_stay_short() -> None:
    long = [
        f"{path.name}: {name}: {lines}"
        for path in FILES
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    ]
    assert long == [], f"functions of more than {LONGEST_FUNCTION} lines"


def test_the_usual_function_is_a_few_lines() -> None:
    lines = [lines for path in FILES for _, lines in functions(path)]
    assert statistics.median(lines) < 8

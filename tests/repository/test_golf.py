"""The core has a step a line: no statement of ``tinynode/core`` packs several steps into a line.

A reader walks through these files in a debugger. A named value and a line more cost less than a
line that must be taken apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "tinynode" / "core"

PARALLEL = "three values or more are assigned in parallel"
CHAINED = "a chained assignment"
STATEMENT = "a conditional expression, or `and` or `or`, is a statement"
WALRUS = "an assignment expression stands in a condition"
NESTED = "a conditional expression contains another one"
LOOP = "a loop runs over a conditional expression"


def kinds_of(node: ast.AST) -> Iterator[str]:
    """The kinds of golf that begin at a node."""
    if isinstance(node, ast.Assign):
        if len(node.targets) > 1:
            yield CHAINED
        if any(is_parallel(target, node.value) for target in node.targets):
            yield PARALLEL
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.IfExp | ast.BoolOp):
        yield STATEMENT
    if any(contains(condition, ast.NamedExpr) for condition in conditions_of(node)):
        yield WALRUS
    if isinstance(node, ast.IfExp) and any(contains(n, ast.IfExp) for n in parts_of(node)):
        yield NESTED
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.IfExp):
        yield LOOP


def is_parallel(target: ast.expr, value: ast.expr) -> bool:
    """``a, b, c = x, y, z``; to take a result apart is no golf."""
    return isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) > 2


def conditions_of(node: ast.AST) -> list[ast.expr]:
    """The conditions that a statement or an expression decides by."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def parts_of(node: ast.IfExp) -> list[ast.expr]:
    """The three parts of a conditional expression."""
    return [node.test, node.body, node.orelse]


def contains(node: ast.AST, kind: type[ast.AST]) -> bool:
    """True if the node is of the kind, or has one inside."""
    return any(isinstance(inner, kind) for inner in ast.walk(node))


def golf(text: str) -> list[tuple[str, int]]:
    """The kinds of golf in a source text, with the number of the line."""
    tree = ast.parse(text)
    line_of: dict[ast.AST, int] = {}
    for node in ast.walk(tree):  # a comprehension has no line of its own
        for child in ast.iter_child_nodes(node):
            line_of[child] = getattr(child, "lineno", line_of.get(node, 1))
    found = [(kind, line_of[n]) for n in ast.walk(tree) if n in line_of for kind in kinds_of(n)]
    return sorted(set(found), key=lambda place: (place[1], place[0]))


def places() -> dict[tuple[str, str], str]:
    """The golf of the core: the kind, by file and text of the line."""
    found = {}
    for path in sorted(CORE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for kind, number in golf(text):
            found[path.relative_to(CORE).as_posix(), lines[number - 1].strip()] = kind
    return found


def test_no_line_of_the_core_packs_several_steps() -> None:
    assert places() == {}, "write a step a line, and a name for a condition"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a, b, c = x, y, z", [PARALLEL]),
        ("a = b = f()", [CHAINED]),
        ("f() if x else g()", [STATEMENT]),
        ("x and f()", [STATEMENT]),
        ("if (n := f()) > 1: pass", [WALRUS]),
        ("while n := f(): pass", [WALRUS]),
        ("a = x if (n := f()) else n", [WALRUS]),
        ("a = [n for x in y if (n := f(x))]", [WALRUS]),
        ("a = x if p else y if q else z", [NESTED]),
        ("a = f(x if p else y) if q else z", [NESTED]),
        ("for x in (y if p else ()): pass", [LOOP]),
        ("a = [x for x in (y if p else ())]", [LOOP]),
        ("a = b, c = (x if (n := f()) else y if q else z), 2", [CHAINED, WALRUS, NESTED]),
    ],
)
def test_golf_is_seen(text: str, kinds: list[str]) -> None:
    assert sorted(kind for kind, _ in golf(text)) == sorted(kinds)
    inside = f"class C:\n    def f(self):\n        {text}"
    assert {line for _, line in golf(inside)} == {3}


@pytest.mark.parametrize(
    "text",
    [
        "a, b, c = f()",
        "a, b = b, a",
        "a = x if p else y",
        "n = f()\nif n > 1: pass",
        "f(x and y)",
        "for x in y: pass",
        "a: int = 1",
    ],
)
def test_plain_lines_are_not_golf(text: str) -> None:
    assert golf(text) == []

"""The lines of a method that compute: a ``backward`` without its guards.

Requirement: the source beside a step shows the gradient. A backward also asks which gradients are
wanted: ``gx = gz * y if 0 in target_input_indexes else None``. The lesson has the line without the
question, and the page shows the whole method on demand. Comments and layout stay.
"""

from __future__ import annotations

import ast
import textwrap

Edit = tuple[int, int, bytes]
"""The first and the last byte of a part of a text, and the new part."""


def lesson(source: str) -> str:
    """The source of a method without guards, docstring and annotations; "" without a guard."""
    try:
        text = source
        while (edit := _first_guard(text)) is not None:
            text = _edited(text, edit)
        if text == source:
            return ""
        while (edit := _first_rest(text)) is not None:
            text = _edited(text, edit)
        return text
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return ""


def _edited(text: str, edit: Edit) -> str:
    begin, end, new = edit
    content = text.encode()
    return (content[:begin] + new + content[end:]).decode()


class _Parsed:
    """A method as a tree, with the places of its parts in bytes."""

    def __init__(self, text: str) -> None:
        (function,) = ast.parse(text).body
        if not isinstance(function, ast.FunctionDef):
            raise ValueError("a lesson is made of a function")
        self.function = function
        self.content = text.encode()
        self.lines = self.content.splitlines(keepends=True)
        self.starts = [sum(map(len, self.lines[:i])) for i in range(len(self.lines))]

    def span(self, node: ast.expr) -> tuple[int, int]:
        """The first and the last byte of an expression."""
        last = (node.end_lineno or node.lineno) - 1
        begin = self.starts[node.lineno - 1] + node.col_offset
        return begin, self.starts[last] + (node.end_col_offset or 0)

    def lines_of(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of whole lines, from 1."""
        return self.starts[first - 1], self.starts[last - 1] + len(self.lines[last - 1])


def _first_guard(text: str) -> Edit | None:
    """The first expression or statement under a question for the wanted gradients."""
    parsed = _Parsed(text)
    targets = [one.arg for one in parsed.function.args.args][1:2]
    for node in ast.walk(parsed.function):
        is_choice = isinstance(node, ast.IfExp | ast.If) and _is_guard(node.test, targets)
        if is_choice and isinstance(node, ast.IfExp) and _is_none(node.orelse):
            return (*parsed.span(node), parsed.content[slice(*parsed.span(node.body))])
        if is_choice and isinstance(node, ast.If) and not node.orelse:
            last = node.body[-1].end_lineno or node.lineno
            body = parsed.content[slice(*parsed.lines_of(node.body[0].lineno, last))].decode()
            inner = textwrap.indent(textwrap.dedent(body), " " * node.col_offset)
            return (*parsed.lines_of(node.lineno, last), inner.encode())
    return None


def _first_rest(text: str) -> Edit | None:
    """A docstring, ``gx = gy = None`` before the gradients, or a signature with annotations."""
    parsed = _Parsed(text)
    body = parsed.function.body
    for statement in body[:-1]:
        last = statement.end_lineno or statement.lineno
        is_docstring = statement is body[0] and ast.get_docstring(parsed.function) is not None
        if is_docstring or (isinstance(statement, ast.Assign) and _is_none(statement.value)):
            return (*parsed.lines_of(statement.lineno, last), b"")
    return _signature(parsed)


def _signature(parsed: _Parsed) -> Edit | None:
    """The signature without annotations, on one line."""
    function, arguments = parsed.function, _arguments(parsed.function)
    if function.returns is None and not any(one.annotation for one in arguments):
        return None
    for one in arguments:
        one.annotation = None
    bare = ast.FunctionDef(function.name, function.args, [ast.Pass()], [], None)
    text = ast.unparse(ast.fix_missing_locations(bare)).splitlines()[0]
    ends = [i for i, line in enumerate(parsed.lines) if line.split(b"#")[0].rstrip()[-1:] == b":"]
    return (*parsed.lines_of(function.lineno, ends[0] + 1), f"{text}\n".encode())


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    found = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [*found, *(one for one in (function.args.vararg, function.args.kwarg) if one)]


def _is_guard(test: ast.expr, targets: list[str]) -> bool:
    """True for ``0 in target_input_indexes``."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.In)
        and isinstance(test.comparators[0], ast.Name)
        and test.comparators[0].id in targets
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

"""Names of values, from the program's text: ``h`` for the result in ``h = relu(x)``.

Requirement: a film shows the names of the user's program. A recorded function knows the running
expressions of the program. So the name of a result is the target of the assignment, also where the
assignment is in a caller: ``return relu(x)``, and ``h = layer(x)``. A result without a name is
called by its expression: ``x * y``.
"""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass, field

from tinynode.show.film_sources import Place

LONGEST = 24
"""A longer expression is no name."""

Span = tuple[int, int, int, int]


@dataclass(eq=False)
class _Text:
    """The expressions of a file.

    Attributes:
        nodes: the expressions and statements by their places.
        parents: for each expression the statement or expression around.
    """

    nodes: dict[Span, ast.AST] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)


class SourceNames:
    """Reads names from the files of a program, each file once."""

    def __init__(self) -> None:
        self._texts: dict[str, _Text] = {}

    def of_output(self, places: tuple[Place, ...], index: int) -> str:
        """The name of a function's output; empty if the text has no name."""
        expression = ""
        for place in places:
            node = self._node(place)
            if node is None:
                break
            if not expression and index == 0:
                expression = _short(node)
            parent = self._texts[place[0]].parents.get(node)
            target = _target(node, parent, index)
            if target:
                return target
            if not isinstance(parent, ast.Return | ast.Lambda):
                break
        return expression

    def of_input(self, places: tuple[Place, ...], index: int, count: int) -> str:
        """The name of a function's input; empty if the text has no name."""
        node = self._node(places[0]) if places else None
        operands = [] if node is None else _operands(node, count)
        return _short(operands[index]) if index < len(operands) else ""

    def _node(self, place: Place) -> ast.AST | None:
        file, *span = place
        if file not in self._texts:
            self._texts[file] = _read(file)
        return self._texts[file].nodes.get((span[0], span[1], span[2], span[3]))


def _read(file: str) -> _Text:
    """The expressions of a file; none for a text that is missing or cannot be read."""
    text = _Text()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.AugAssign) and node.end_lineno is not None:
            span = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset or 0)
            text.nodes[span] = node
        for child in ast.iter_child_nodes(node):
            text.parents[child] = node
    return text


def _target(node: ast.AST, parent: ast.AST | None, index: int) -> str:
    """The name that a statement gives to an expression's value."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(parent, ast.Assign):
        targets = parent.targets
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        targets = [parent.target]
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            return _short(target.elts[index]) if index < len(target.elts) else ""
        if index == 0 and isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
            return _short(target)
    return ""


def _operands(node: ast.AST, count: int) -> list[ast.expr]:
    """The expressions of a function's inputs."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if not isinstance(node, ast.Call):
        return []
    arguments = list(node.args)
    if isinstance(node.func, ast.Attribute) and len(arguments) < count:
        arguments.insert(0, node.func.value)  # a method: x.sum()
    return arguments


def _short(node: ast.AST) -> str:
    """The text of an expression, if the text is short."""
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else ""

"""Names of values, from the program's text: ``h`` for the result in ``h = relu(x)``.

Requirement: a film shows the names of the user's program. A recorded function knows the running
expressions of the program. So the name of a result is the target of the assignment, also where the
assignment is in a caller: ``return relu(x)``, and ``h = layer(x)``. A result without a name is
called by its expression: ``x * y``, and ``relu(h)`` for ``F.relu(h)``.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import warnings
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from tinynode.core.variable import Variable
from tinynode.show.films.sources import Place
from tinynode.show.texts import cut

LONGEST = 24
"""The most letters of a name; parts of a longer expression are left out: ``relu(…)``."""

MOST_PARTS = 200
"""An expression of more parts is cut at once: writing a deep expression takes long."""

Span = tuple[int, int, int, int]


@dataclass(eq=False)
class _Text:
    """The expressions of a file.

    Attributes:
        nodes: the expressions and statements by their places.
        parents: for each expression the statement or expression around.
        modules: the imported names.
    """

    nodes: dict[Span, ast.expr | ast.AugAssign] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)


class SourceNames:
    """Reads names from the files of a program, each file once.

    Args:
        modules: names of Python modules in the program: in ``F.exp(x)``, ``F`` is no operand.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._modules = frozenset(modules)
        self._texts: dict[str, _Text] = {}

    def of_output(self, places: tuple[Place, ...], index: int) -> str:
        """The name of a function's output; empty if the text has no name.

        The second and further outputs have names in a tuple only: ``a, b = f(x)``.
        """
        expression = ""
        for place in places:
            node = self._node(place)
            if node is None:
                break
            modules = self._modules_of(place)
            if not expression and index == 0 and isinstance(node, ast.expr):
                expression = _short(node, modules)
            parent = self._texts[place[0]].parents.get(node)
            target = _target(node, parent, index, modules)
            if target:
                return target
            if not isinstance(parent, ast.Return | ast.Lambda):
                break
        return expression

    def of_input(self, places: tuple[Place, ...], index: int) -> str:
        """The name of a function's input; empty if the text has no name."""
        node = self._node(places[0]) if places else None
        if node is None:
            return ""
        modules = self._modules_of(places[0])
        operands = _operands(node, modules)
        if operands and isinstance(operands[-1], ast.Starred) and index >= len(operands) - 1:
            of_list = _short(operands[-1].value, modules)
            return cut(f"{of_list}[{index - len(operands) + 1}]", LONGEST) if of_list else ""
        return _short(operands[index], modules) if index < len(operands) else ""

    def _modules_of(self, place: Place) -> Set[str]:
        return self._modules | self._texts[place[0]].modules

    def of_call(self, place: Place) -> str:
        """The name of the called function; empty for an expression without a call."""
        node = self._node(place)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr
        return ""

    def names_in(self, place: Place) -> list[str]:
        """The names in an expression of the program."""
        node = self._node(place)
        parts = [] if node is None else ast.walk(node)
        return [part.id for part in parts if isinstance(part, ast.Name)]

    def _node(self, place: Place) -> ast.expr | ast.AugAssign | None:
        file, *span = place
        if file not in self._texts:
            self._texts[file] = _read(file)
        return self._texts[file].nodes.get((span[0], span[1], span[2], span[3]))


def _read(file: str) -> _Text:
    """The expressions of a file; none for a text that is missing or cannot be read."""
    text = _Text()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the text's warnings were shown at its import
            tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.AugAssign) and node.end_lineno is not None:
            span = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset or 0)
            text.nodes[span] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = (alias.asname or alias.name for alias in node.names)
            text.modules.update(name.partition(".")[0] for name in names)
        for child in ast.iter_child_nodes(node):
            text.parents[child] = node
    return text


def _target(node: ast.AST, parent: ast.AST | None, index: int, modules: Set[str]) -> str:
    """The name that a statement gives to an expression's value."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        targets = [node.value]  # x[0] = v gives a new value to x
    elif isinstance(parent, ast.Assign):
        targets = parent.targets
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        targets = [parent.target]
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            return _element(target.elts, index, modules)
        if index == 0 and isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
            return _short(target, modules)
    return ""


def _element(expressions: list[ast.expr], index: int, modules: Set[str]) -> str:
    """The text of an expression in a sequence; empty behind an expression with a star."""
    if any(isinstance(one, ast.Starred) for one in expressions[: index + 1]):
        return ""
    return _short(expressions[index], modules) if index < len(expressions) else ""


def _operands(node: ast.AST, modules: Set[str]) -> list[ast.expr]:
    """The expressions of a function's inputs."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Attribute):
        return [node.value]  # x.T
    if isinstance(node, ast.Subscript):
        return [node.value] if isinstance(node.ctx, ast.Load) else []
    return _arguments(node, modules) if isinstance(node, ast.Call) else []


def _arguments(call: ast.Call, modules: Set[str]) -> list[ast.expr]:
    """The arguments of a call up to a star; the object of a method is the first.

    A sequence as the first argument stands for the elements: ``concat([x, y])``.
    """
    found: list[ast.expr] = []
    for argument in call.args:
        if not found and isinstance(argument, ast.List | ast.Tuple):
            found += argument.elts
        else:
            found.append(argument)
        if found and isinstance(found[-1], ast.Starred):
            break
    function = call.func
    is_method = isinstance(function, ast.Attribute) and hasattr(Variable, function.attr)
    if isinstance(function, ast.Attribute) and is_method and not _is_module(function, modules):
        return [function.value, *found]
    return found


# --- the text of an expression -------------------------------------------------------------------


def _short(node: ast.expr, modules: Set[str]) -> str:
    """The text of an expression, without modules before a call; the parts of a long one cut."""
    return _whole(node, modules) or _outline(node, modules)


def _whole(node: ast.expr, modules: Set[str]) -> str:
    """The text of a short expression; "" for another."""
    parts = itertools.islice(ast.walk(node), MOST_PARTS + 1)
    text = _written(node, modules) if sum(1 for _ in parts) <= MOST_PARTS else ""
    return text if len(text) <= LONGEST else ""


def _written(node: ast.expr, modules: Set[str]) -> str:
    """The text of an expression: ``relu(h)`` for ``F.relu(h)``."""
    names = "|".join(map(re.escape, sorted(modules)))
    text = ast.unparse(node)
    return re.sub(rf"(?<![\w.'\"])(?:{names})\.(?:\w+\.)*(?=\w+\()", "", text) if names else text


def _outline(node: ast.expr, modules: Set[str]) -> str:
    """A long expression with ``…`` in the places of its parts: ``relu(…)``, ``x * …``."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        first = (
            _whole(node.args[0], modules)
            if node.args and len(node.args) + len(node.keywords) > 1
            else ""
        )
        with_first = f"{name}({first}, …)"
        if name and first and len(with_first) <= LONGEST:
            return with_first
        return f"{cut(name, LONGEST - 3)}(…)" if name else ""
    if isinstance(node, ast.BinOp):
        sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[1:-1]
        left, right = (_whole(part, modules) for part in (node.left, node.right))
        if left and len(left) + len(sign) < LONGEST:
            return f"{left}{sign}…"
        is_short = right and len(right) + len(sign) < LONGEST
        return f"…{sign}{right}" if is_short else f"…{sign}…"
    if isinstance(node, ast.Attribute):
        return cut(f"….{node.attr}", LONGEST)
    if isinstance(node, ast.Subscript):
        of_part = cut(_whole(node.value, modules), LONGEST - 3)
        return f"{of_part or '…'}[…]"
    return cut(node.id, LONGEST) if isinstance(node, ast.Name) else ""


def _is_module(expression: ast.expr, modules: Set[str]) -> bool:
    """True for an attribute of a module."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name) and expression.id in modules

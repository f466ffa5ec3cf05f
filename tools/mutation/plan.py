"""The mutants of a file: where each operator may change the source, and where never.

Requirement: texts for people and types for tools are no behaviour. So no mutant changes a
docstring, an error, an annotation, ``__all__``, ``__repr__`` or code under ``TYPE_CHECKING``. The
number of a mutant does not depend on line numbers, so a session can be resumed after an edit.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, WorkItem
from parso.python.tree import search_ancestor

from tools.mutation.marks import Mark, MarkedLines, all_marks
from tools.mutation.operators import Node, call_name, register, text_of

ROOMS = {
    "core": "tinynode/core",
    "functions": "tinynode/functions",
    "net": "tinynode/net",
    "fast": "backends/tinynode_fast",
}
PER_OPERATOR = 30
"""The mutants of an operator in a room; more are sampled by their numbers."""
TEXT_OR_ERROR = ("str", "Error", "Exception", "InvalidType", "NoReturn")
SKIPPED_CALLS = {"TypeVar", "NewType", "TypeAlias", "ParamSpec", "cast", "warn", "namedtuple"}


class Once(MutationVisitor):  # type: ignore[misc]
    """A visitor that leaves the tree alone after the mutation."""

    def visit(self, node: Node) -> Node:
        return node if self.mutation_applied else super().visit(node)


@dataclass(frozen=True)
class Mutant:
    """A place that an operator can change.

    Attributes:
        path: the file, relative to the root of the checkout.
        occurrence: the number of the place among the operator's places in the file.
        definition: the qualified name of the function or class around the place; "" for none.
        text: the source text that the operator changes.
        number: the number in the session, which does not depend on the line.
    """

    path: str
    operator: str
    occurrence: int
    start: tuple[int, int]
    end: tuple[int, int]
    definition: str
    text: str
    number: str

    @property
    def item(self) -> WorkItem:
        """The mutant in the form of cosmic-ray."""
        spec = MutationSpec(
            module_path=pathlib.Path(self.path),
            operator_name=self.operator,
            occurrence=self.occurrence,
            start_pos=self.start,
            end_pos=self.end,
            definition_name=self.definition,
        )
        return WorkItem.single(self.number, spec)

    def mutated(self, source: str) -> str | None:
        """The file's source with this mutant."""
        return mutated(self, source)


@functools.lru_cache(maxsize=8)
def mutated(mutant: Mutant, source: str) -> str | None:
    """The source with a mutant; the runner and the session ask one after the other."""
    return Once.mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)


def mutants_of(path: str, source: str, marks: list[Mark] | None = None) -> Iterator[Mutant]:
    """Every mutant of a file without those that a mark excludes; by default of ``marks.toml``."""
    tree = get_ast(source)
    nodes = list(ast_nodes(tree))
    skipped = {(leaf.start_pos, leaf.end_pos) for node in nodes if is_skipped(node)
               for leaf in ast_nodes(node)}  # fmt: skip
    marked = MarkedLines(source, all_marks().get(path, []) if marks is None else marks)
    seen: Counter[str] = Counter()
    for operator in register():
        changer = get_operator(operator)()
        places = [
            (node, start, end) for node in nodes for start, end in changer.mutation_positions(node)
        ]
        for occurrence, (node, start, end) in enumerate(places):
            lines = {start[0], _statement_line(node)}
            if (node.start_pos, node.end_pos) in skipped:
                continue
            text = text_of(node)
            if any(marked.exclude(line, operator, text) for line in lines):
                continue
            definition = definition_of(node)
            line = source.splitlines()[start[0] - 1].strip()
            key = f"{path} {definition} {operator} {line} {text}"
            seen[key] += 1
            number = hashlib.sha1(f"{key} {seen[key]}".encode()).hexdigest()[:16]
            yield Mutant(path, operator, occurrence, start, end, definition, text, number)


def _statement_line(node: Node) -> int:
    statement = search_ancestor(node, "simple_stmt", "if_stmt", "for_stmt", "while_stmt")
    return int((statement or node).start_pos[0])


def definition_of(node: Node) -> str:
    """``Class.method`` around a node."""
    names: list[str] = []
    around = search_ancestor(node, "funcdef", "classdef")
    while around is not None:
        names.append(around.name.value)
        around = search_ancestor(around, "funcdef", "classdef")
    return ".".join(reversed(names))


def is_skipped(node: Node) -> bool:
    """True for a node that no operator changes, with all nodes inside."""
    if node.type in {"annassign", "param"} and len(node.children) > 1:
        return False
    if node.type in {"raise_stmt", "assert_stmt", "import_from", "import_name", "decorator"}:
        return True
    if node.type in {"fstring", "global_stmt", "nonlocal_stmt"}:
        return True
    parent = node.parent
    if parent is None:
        return False
    if node.type == "operator" and parent.type == "parameters":  # a bare star or slash
        return True
    if node.type == "string" or is_annotation(node) or call_name(node) in SKIPPED_CALLS:
        return True
    if node.type == "funcdef":
        result = text_of(node.annotation) if node.annotation else ""
        return node.name.value == "__repr__" or result.endswith(TEXT_OR_ERROR)
    if node.type == "if_stmt":
        return text_of(node.children[1]) == "TYPE_CHECKING"
    if node.type == "expr_stmt":
        return text_of(node.children[0]).startswith(("__all__", "__slots__"))
    return node.type == "argument" and text_of(node).startswith(("strict=", "stacklevel="))


def is_annotation(node: Node) -> bool:
    """True for the type of a parameter, a result or a variable."""
    parent = node.parent
    if parent.type == "annassign":
        return bool(parent.children[1] is node)
    if parent.type == "tfpdef":
        return bool(parent.children[-1] is node)
    if parent.type == "funcdef":
        return bool(parent.annotation is node)
    return False


def planned(root: pathlib.Path, room: str, per_operator: int = PER_OPERATOR) -> list[Mutant]:
    """The mutants of a room; of a frequent operator, the sample with the smallest numbers."""
    found: dict[str, list[Mutant]] = {}
    for path in sorted((root / ROOMS[room]).rglob("*.py")):
        name = str(path.relative_to(root))
        for mutant in mutants_of(name, path.read_text(encoding="utf-8")):
            found.setdefault(mutant.operator, []).append(mutant)
    chosen: list[Mutant] = []
    for mutants in found.values():
        chosen += sorted(mutants, key=lambda one: one.number)[:per_operator]
    return sorted(chosen, key=lambda one: (one.path, one.start, one.operator, one.occurrence))

"""The graph behind a Variable, and a Diagram, as text.

Requirement: the text looks as the graph is connected: ``x.node <- f <- y.node``. There is a line
for each function, from the leaves down to the given Variables; then a line for each node.

    w = x * y + x

    x.node <- Multiply <- #1
    y.node <-'
    #1     <- Add <- w.node
    x.node <-'

    w.node: rank 2, (3,), float32
    #1:     rank 1, (3,), float32
    ...

Graphs are deep and wide. So the walk is a loop, and the text has only the functions nearest to the
given Variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.errors import describe, short_name
from tinynode.show.graphs.diagram_data import DiagramData, DiagramNode
from tinynode.show.texts import one_line


def text(*variables: Variable, limit: int | None = 100) -> str:
    """A picture of the graph behind Variables, to ``print``.

    A node has the variable's name, or a number. The same name or number on another line is the
    same node. ``<-'`` marks a further input of the function above. ``(gone)`` is a freed output.
    Each node is described once: rank, shape and dtype; then "leaf", "no gradient" or "array
    retained" if true.

    Args:
        variables: at least one; shared nodes are drawn once. Gradients under double backprop
            (``x.grad_var``) have a graph too.
        limit: the number of functions to draw, from the highest rank on; None means all.

    Raises:
        TypeError: an argument is not a Variable.
        ValueError: ``limit`` is below 1.
    """
    for position, variable in enumerate(variables):
        if not isinstance(variable, Variable):
            raise TypeError(
                f"text: argument {position} must be a Variable, got {describe(variable)}."
            )
    if limit is not None and limit < 1:
        raise ValueError(f"text: limit must be at least 1 or None, got {limit}.")
    roots = [variable.node for variable in variables]
    functions = functions_behind(roots)
    shown = functions if limit is None else functions[-limit:]
    names = _Names()
    lines = _function_lines([_relation(function, names) for function in shown])
    if len(shown) < len(functions):
        lines.insert(0, f"... and {len(functions) - len(shown)} more functions before these")
    for node in roots:
        names.of(node)
    nodes = sorted(names.by_node, key=attrgetter("rank"), reverse=True)
    facts = _variable_lines([(names.of(node), _facts(node)) for node in nodes])
    return "\n".join([*lines, *([""] if lines else []), *facts])


def functions_behind(
    roots: Iterable[VariableNode], *, differentiable: bool = False
) -> list[FunctionNode]:
    """Every function behind the nodes, each after the functions behind it.

    With ``differentiable``, the walk goes only through nodes that require a gradient: the result
    has the functions of a backward.
    """
    found: dict[FunctionNode, None] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        function = node.creator_node if node.requires_grad or not differentiable else None
        if function is not None and function not in found:
            found[function] = None
            waiting.extend(function.inputs or ())
    functions = list(found)
    functions.reverse()  # of one rank, functions applied early are mostly found late
    return sorted(functions, key=attrgetter("rank"))


class _Names:
    """A name for each node, in the order of the requests."""

    def __init__(self) -> None:
        self.by_node: dict[VariableNode, str] = {}
        self._taken: set[str] = set()
        self._number = 0

    def of(self, node: VariableNode) -> str:
        if node not in self.by_node:
            name = f"{short_name(node.name)}.node" if node.name else ""
            if not name or name in self._taken:
                self._number += 1
                name = f"{name}#{self._number}"
            self._taken.add(name)
            self.by_node[node] = name
        return self.by_node[node]


def _relation(function: FunctionNode, names: _Names) -> tuple[list[str], str, list[str]]:
    """The names of the inputs, the label, and the names of the outputs."""
    inputs = [names.of(node) for node in function.inputs or ()]
    outputs = []
    for reference in function.outputs or ():
        node = reference()
        outputs.append("(gone)" if node is None else names.of(node))
    return inputs, short_name(function.label), outputs


def _facts(node: VariableNode) -> list[str]:
    facts = [f"rank {node.rank}", node.label]
    if node.creator_node is None:
        facts.append("leaf" if node.rank == 0 else "unchained")
    if not node.requires_grad:
        facts.append("no gradient")
    if node.data is not None:
        facts.append("array retained")
    return facts


# --- diagrams ------------------------------------------------------------------------------------


def to_text(diagram: DiagramData) -> str:
    """A Diagram as lines: the functions in order, then the facts of each Variable."""
    inputs: dict[str, list[str]] = {node.id: [] for node in diagram.nodes}
    outputs: dict[str, list[str]] = {node.id: [] for node in diagram.nodes}
    labels = {node.id: one_line(node.label) for node in diagram.nodes}
    for edge in diagram.edges:
        inputs[edge.target].append(labels[edge.source] + _times(edge.label))
        outputs[edge.source].append(labels[edge.target] + _times(edge.label))
    functions = [
        node for node in sorted(diagram.nodes, key=attrgetter("rank")) if node.kind != "variable"
    ]
    blocks = [
        [one_line(diagram.title)] if diagram.title else [],
        _function_lines((inputs[node.id], _title(node), outputs[node.id]) for node in functions),
        _variables(diagram),
        [one_line(note) for note in diagram.notes],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _function_lines(functions: Iterable[tuple[list[str], str, list[str]]]) -> list[str]:
    """``x <- f <- y`` for the inputs, the title and the outputs of each function.

    A further input has a line below: ``z <-'``.
    """
    rows = []
    for inputs, title, outputs in functions:
        first, *others = inputs or [""]
        rows.append((first, f" {title} <- {', '.join(outputs)}"))
        rows += [(name, "'") for name in others]
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}} <-{rest}".rstrip() for name, rest in rows]


def _variable_lines(variables: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """``x: facts`` for the name and the facts of each Variable."""
    width = max((len(name) for name, _ in variables), default=0) + 1
    return [f"{name + ':':<{width}} {', '.join(facts)}" for name, facts in variables]


def _times(label: str) -> str:
    return f" ({one_line(label)})" if label else ""


def _title(node: DiagramNode) -> str:
    """A function's label and facts, and the word "backward" for that phase."""
    words = [*node.facts, *(["backward"] if node.phase == "backward" else [])]
    facts = f" ({', '.join(one_line(word) for word in words)})" if words else ""
    return one_line(node.label) + facts


def _variables(diagram: DiagramData) -> list[str]:
    """A line for each Variable, the highest rank first."""
    variables = [node for node in diagram.nodes if node.kind == "variable"]
    rows = []
    for node in sorted(variables, key=attrgetter("rank"), reverse=True):
        words = [f"rank {node.rank}", *node.facts]
        if "leaf" in node.marks and "leaf" not in ", ".join(node.facts).split(", "):
            words.append("leaf")
        if node.phase == "backward":
            words.append("backward")
        rows.append((one_line(node.label), [one_line(word) for word in words]))
    return _variable_lines(rows)

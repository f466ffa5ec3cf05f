"""The boxes and arrows of nets.

Requirement: a net is a graph of operators and names, and the picture shows the graph. Inputs,
outputs and operators of gradients have looks of their own; inner nets are groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tinynode.core.variable import Variable
from tinynode.net import CompiledFunction, NetOp, Operator, Scope, Trace
from tinynode.net.operator import EMPTY, GRAD
from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode


class NetPicture:
    """The drawn parts of nets.

    Args:
        roots: nets, operators, traces and compiled functions.
        scope: Variables by name, for the shapes in the picture.

    Attributes:
        nodes: the boxes, inputs before the nodes computed from them.
        edges: from inputs to operators, and from operators to outputs.
        notes: lines below the picture.
    """

    def __init__(self, roots: Sequence[Any], scope: Scope) -> None:
        self.nodes: list[DiagramNode] = []
        self.edges: list[DiagramEdge] = []
        self.notes: list[str] = []
        self._drawn: dict[str, DiagramNode] = {}
        self._scope = Scope(parent=scope)
        self._outputs: set[str] = set()
        operators: list[tuple[Operator, str | None, bool]] = []
        titles = []
        for root in roots:
            for net in self._nets(root):
                titles.append(net.type)
                operators += _operators_of(net)
        phases = _phases(operators)
        read = {name for operator, _, _ in operators for name in operator.input_names}
        for operator, _, _ in operators:
            self._outputs.update(n for n in operator.output_names if n not in read)
        for (operator, group, _), phase in zip(operators, phases, strict=True):
            self._add(operator, group, phase)
        self._titles = list(dict.fromkeys(titles))

    def _nets(
        self, root: NetOp | Operator | Trace | CompiledFunction[..., Any]
    ) -> list[NetOp | Operator]:
        """The nets of a root; the Variables of a trace go into the scope."""
        if isinstance(root, NetOp | Operator):
            return [root]
        if isinstance(root, Trace):
            self._add_variables(root)
            return [root.net]
        recorded = root.recordings
        if not recorded:
            raise ValueError(
                f"graph: {root.title} has recorded no net yet: it does when it is called. Call "
                "it once, or draw tinynode.trace(function, *examples)."
            )
        entry = recorded[-1]
        self._add_variables(entry.trace)
        if len(recorded) > 1:
            self.notes.append(f"the last of {len(recorded)} nets that were recorded")
        nets: list[NetOp | Operator] = [entry.trace.net]
        for gradient in list(entry.program.gradients.values())[-1:]:
            nets.append(NetOp(gradient.operators, f"{entry.trace.net.type}_grad"))
        return nets

    def _add_variables(self, trace: Trace) -> None:
        self._outputs.update(trace.outputs)
        for name, variable in trace.captured.items():
            self._scope.put(name, variable)

    def _add(self, operator: Operator, group: str | None, phase: str) -> None:
        inputs = [self._variable(n, phase, 0) for n in operator.input_names if n != EMPTY]
        rank = max((node.rank for node in inputs), default=0)
        box = DiagramNode(f"f{len(self.nodes)}", "function", operator.type, (), rank, phase)
        box.group = group
        self.nodes.append(box)
        self.edges += [DiagramEdge(node.id, box.id, phase) for node in inputs]
        for name in operator.output_names:
            output = self._variable(name, phase, rank + 1)
            output.group = group
            self.edges.append(DiagramEdge(box.id, output.id, phase))

    def _variable(self, name: str, phase: str, rank: int) -> DiagramNode:
        """The box of a name; each output without a name gets a new box."""
        if name in self._drawn:
            return self._drawn[name]
        box = DiagramNode(f"v{len(self.nodes)}", "variable", name, (), rank, phase)
        self.nodes.append(box)
        if name == EMPTY:
            box.label, box.marks = "(not asked for)", frozenset(("gone",))
            return box
        self._drawn[name] = box
        box.facts, box.marks = self._facts(name, rank)
        return box

    def _facts(self, name: str, rank: int) -> tuple[tuple[str, ...], frozenset[str]]:
        facts, marks = [], []
        if name in self._scope:
            found: Variable = self._scope.find(name)
            facts.append(found.label)
        if rank == 0:
            facts.append("input")
            marks.append("leaf")
        if name in self._outputs:
            marks.append("root")
        return tuple(facts), frozenset(marks)

    def name(self, nodes: Sequence[DiagramNode]) -> None:
        """Do nothing: the names in a net are unique."""

    def title(self, nodes: Sequence[DiagramNode]) -> str:
        """The types of the nets."""
        return f"net {', '.join(self._titles)}"


def _operators_of(net: NetOp | Operator) -> Iterator[tuple[Operator, str | None, bool]]:
    """The operators in run order: each with a group, and True inside of a gradient net."""
    count: dict[str, int] = {}
    is_gradient = net.type.endswith("_grad") and isinstance(net, NetOp)
    waiting: list[tuple[NetOp | Operator, str | None, bool]] = [(net, None, is_gradient)]
    while waiting:
        current, group, inside = waiting.pop()
        if isinstance(current, Operator):
            yield current, group, inside
            continue
        inner: list[tuple[NetOp | Operator, str | None, bool]] = []
        for part in current.operators:
            if isinstance(part, Operator):
                inner.append((part, group, inside))
                continue
            title = part.type.replace(".", "_")
            count[title] = count.get(title, 0) + 1
            title = title if count[title] == 1 else f"{title}#{count[title]}"
            path = f"{group}.{title}" if group else title
            inner.append((part, path, inside or part.type.endswith("_grad")))
        waiting += reversed(inner)


def _phases(operators: Sequence[tuple[Operator, str | None, bool]]) -> list[str]:
    """The phase of each operator.

    An operator is backward if it lies in a gradient net, reads or writes a gradient, or reads an
    output of a backward operator.
    """
    gradients: set[str] = set()
    phases = []
    for operator, _, inside in operators:
        names = [*operator.input_names, *operator.output_names]
        is_backward = inside or any(GRAD in name or name in gradients for name in names)
        if is_backward:
            gradients.update(name for name in operator.output_names if name != EMPTY)
        phases.append("backward" if is_backward else "forward")
    return phases

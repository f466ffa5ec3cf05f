"""The boxes and arrows of a define-by-run graph.

Requirement: the picture shows the content of the graph: names, shapes, ranks, the arrays that
functions retain, gradients, and outputs that were freed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.errors import short_name
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.show.films.names import SourceNames
from tinynode.show.films.sources import script_names, user_frame, user_places
from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode, group_name
from tinynode.show.graphs.text import functions_behind


class EagerPicture:
    """The drawn parts of a graph of Variables.

    Args:
        roots: the Variables to start from.
        gradients: results of a backward; nodes that only gradients depend on are backward.
        names: names of parameters, by the id of the Variable.
        findings: words for the boxes of some FunctionNodes and VariableNodes.

    Attributes:
        nodes: the boxes, inputs before the nodes computed from them.
        edges: from inputs to functions, and from functions to outputs.
        notes: lines below the picture.
    """

    def __init__(
        self,
        roots: Sequence[Variable],
        gradients: Sequence[Variable],
        names: dict[int, str],
        findings: Mapping[Any, str],
    ) -> None:
        self.nodes: list[DiagramNode] = []
        self.edges: list[DiagramEdge] = []
        self._names = names
        self._findings = findings
        self._labels: dict[tuple[object, int], str] = {}
        self._drawn: dict[VariableNode, DiagramNode] = {}
        self._unnamed_roots: dict[str, tuple[int, int, str]] = {}
        self._roots = {root.node for root in (*roots, *gradients)}
        functions = functions_behind(root.node for root in (*roots, *gradients))
        self._gradient_labels = _gradients_in(functions, self._roots, names)
        backward_ids = {id(gradient) for gradient in gradients} | set(self._gradient_labels)
        forward_roots = [x for x in roots if id(x) not in backward_ids] or roots
        forward = set(functions_behind(root.node for root in forward_roots))
        self._forward = {node for function in forward for node in function.inputs or ()}
        self._forward |= {root.node for root in forward_roots}
        devices = {node.device for f in functions for node in f.inputs or ()}
        devices |= {node.device for node in self._roots}
        self._one_device = len(devices) == 1
        for function in functions:
            self._add_function(function, "forward" if function in forward else "backward")
        for position, root in enumerate((*roots, *gradients)):
            box = self._variable(root.node, self._phase_of(root.node))
            if not box.label and root.creator_node is not None:
                self._unnamed_roots[box.id] = (id(root), position, root.creator_node.label)
        self.notes = [f"all on {devices.pop()}"] if self._one_device else []

    def _add_function(self, function: FunctionNode, phase: str) -> None:
        inputs = [self._variable(n, self._phase_of(n)) for n in function.inputs or ()]
        box = DiagramNode(f"f{len(self.nodes)}", "function", short_name(function.label))
        box.rank, box.phase = function.rank, phase
        self._mark(box, function)
        self.nodes.append(box)
        self.edges += [DiagramEdge(x.id, box.id, phase) for x in inputs]
        for reference in function.outputs or ():
            node = reference()
            made = self._gone(function, phase) if node is None else self._variable(node, phase)
            self.edges.append(DiagramEdge(box.id, made.id, phase))

    def _phase_of(self, node: VariableNode) -> str:
        """The phase of a leaf: the phase of the functions with the leaf as input."""
        return "forward" if node in self._forward else "backward"

    def _gone(self, function: FunctionNode, phase: str) -> DiagramNode:
        """The box of an output that was freed."""
        box = DiagramNode(
            f"v{len(self.nodes)}", "variable", "(gone)", (), function.rank + 1, phase
        )
        box.marks = frozenset(("gone",))
        self.nodes.append(box)
        return box

    def _variable(self, node: VariableNode, phase: str) -> DiagramNode:
        """The box of a Variable's node."""
        if node in self._drawn:
            return self._drawn[node]
        variable = node.get_variable_or_none()
        name = short_name(self._names.get(id(variable), "") or node.name)
        label = f"{name}.node" if name else self._gradient_labels.get(id(variable), "")
        box = DiagramNode(f"v{len(self.nodes)}", "variable", label, (), node.rank, phase)
        box.facts, box.marks = self._facts(node, variable)
        is_state = isinstance(variable, Parameter | Buffer)
        if is_state and "." in name and node.creator_node is None:
            box.group = group_name(name.rpartition(".")[0])
            box.label = f"{box.group}.{name.rpartition('.')[2]}.node"
        self._mark(box, node)
        self._drawn[node] = box
        self.nodes.append(box)
        return box

    def _mark(self, box: DiagramNode, node: Any) -> None:
        """Add the words of a finding to a box."""
        if node in self._findings:
            box.facts = (*box.facts, f"! {self._findings[node]}")
            box.marks |= {"finding"}

    def _facts(
        self, node: VariableNode, variable: Variable | None
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        """The lines and the marks of a node."""
        marks, words = [], []
        if node.creator_node is None:
            words.append("leaf" if node.rank == 0 else "unchained")
            marks.append("leaf")
        if not node.requires_grad:
            words.append("no gradient")
            marks.append("no gradient")
        if node.data is not None:
            words.append("array retained")
            marks.append("retained")
        gradient = None if variable is None else variable.grad_var
        if gradient is not None:
            has_graph = gradient.creator_node is not None
            words.append("grad, with a graph" if has_graph else "grad")
            marks.append("gradient")
        if node in self._roots:
            marks.append("root")
        key = (node.shape, id(node.dtype))  # few differ, and formatting a dtype is slow
        if key not in self._labels:
            self._labels[key] = node.label
        device = () if self._one_device else (str(node.device),)
        state = (", ".join(words),) if words else ()
        return (self._labels[key], *device, *state), frozenset(marks)

    def name(self, nodes: Sequence[DiagramNode]) -> None:
        """Give Variables without a name a number, and Variables of one name different labels."""
        taken: set[str] = set()
        number = 0
        for node in nodes:
            if node.kind != "variable" or "gone" in node.marks:
                continue
            if not node.label or node.label in taken:
                number += 1
                node.label = f"{node.label}#{number}"
            taken.add(node.label)

    def title(self, nodes: Sequence[DiagramNode]) -> str:
        """The names of the roots.

        A root without a name has the name in the user's script, or in the call of ``graph``. Other
        roots are named after their functions.
        """
        frame = user_frame()
        script = [] if frame is None else script_names(frame)
        names = {id(value): name for name, value in reversed(script)}
        text, places = SourceNames(), user_places()
        words = []
        for node in nodes:
            if node.id in self._unnamed_roots:
                number, position, function = self._unnamed_roots[node.id]
                operand = names.get(number) or text.of_input(places, position)
                words.append(operand if operand.isidentifier() else f"{function}'s output")
            elif "root" in node.marks:
                words.append(node.label)
        return f"graph of {', '.join(words)}"


def _gradients_in(
    functions: Sequence[FunctionNode], roots: set[VariableNode], names: dict[int, str]
) -> dict[int, str]:
    """The labels of the gradients of Variables in the graph, by the gradient's id."""
    found: dict[int, str] = {}
    nodes = dict.fromkeys(node for function in functions for node in function.inputs or ())
    nodes.update(dict.fromkeys(roots))
    for node in nodes:
        variable = node.get_variable_or_none()
        if variable is not None and variable.grad_var is not None:
            name = names.get(id(variable), node.name)
            found[id(variable.grad_var)] = f"{short_name(name)}.grad" if name else ""
    return found

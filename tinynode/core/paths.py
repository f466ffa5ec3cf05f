"""Walks over a graph that run no function: the part between inputs and outputs, and unchain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable_node import VariableNode


def nodes_between(
    inputs: Sequence[VariableNode], outputs: Collection[VariableNode]
) -> set[VariableNode]:
    """The nodes on a way from an input to an output: found backward first, then forward."""
    reached = set(outputs)
    seen: set[FunctionNode] = set()
    waiting = [node._creator_node for node in reached if node.requires_grad]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        for node in function.inputs or ():
            if node.requires_grad and node not in reached:
                reached.add(node)
                waiting.append(node._creator_node)
    between = reached.intersection(inputs)
    for function in sorted(seen, key=attrgetter("rank")):
        if between.isdisjoint(function.inputs or ()):
            continue
        for reference in function.outputs or ():
            output = reference()  # None if dead; the creator is another function once unchained
            if output in reached and output._creator_node is function:
                between.add(output)
    return between


def unchain_backward(y: Any) -> None:
    """The work of ``Variable.unchain_backward``: a loop, since graphs are deep."""
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None:
            continue
        for node in function.inputs or ():
            waiting.append(node.creator_node)
        function.unchain()

"""Walks over a graph that run no function: the leaves, the part between two ends, and unchain."""

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
    reached, made = set(outputs), []
    seen: set[FunctionNode] = set()
    waiting = [node for node in reached if node.requires_grad]
    while waiting:
        node = waiting.pop()
        function = node._creator_node
        if function is None:
            continue
        made.append(node)
        if function in seen:
            continue
        seen.add(function)
        for node in function.inputs or ():
            if node.requires_grad and node not in reached:
                reached.add(node)
                waiting.append(node)
    between = reached.intersection(inputs)
    made.sort(key=attrgetter("rank"))
    for node in made:
        if not between.isdisjoint(node._creator_node.inputs or ()):
            between.add(node)
    return between


def depends_on_others(ys: Sequence[Any], xs: Sequence[Any]) -> bool:
    """True if a Variable of ys depends on a leaf that requires a gradient and is none of xs."""
    seen: set[Any] = {x.node for x in xs if x.creator_node is None}
    waiting = [y.node for y in ys]
    while waiting:
        node = waiting.pop()
        if node in seen or not node.requires_grad:
            continue
        seen.add(node)
        function = node.creator_node
        if function is None:
            return True
        if function not in seen:
            seen.add(function)
            waiting += function.inputs or ()
    return False


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

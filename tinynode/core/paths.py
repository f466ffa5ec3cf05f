"""Walks over a graph that run no function: the part between inputs and outputs, and unchain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable_node import VariableNode


def nodes_between(
    inputs: Sequence[VariableNode], outputs: Collection[VariableNode]
) -> set[VariableNode]:
    """The nodes on a way from an input to an output: found backward first, then forward."""
    users: dict[VariableNode, list[FunctionNode]] = {}
    seen: set[FunctionNode] = set()
    waiting = [node for node in outputs if node.requires_grad]
    while waiting:
        function = waiting.pop()._creator_node
        if function is None or function in seen:
            continue
        seen.add(function)
        for node in function.inputs or ():
            if node.requires_grad:
                users.setdefault(node, []).append(function)
                waiting.append(node)
    between: set[VariableNode] = set()
    waiting = [node for node in inputs if node in users or node in outputs]
    while waiting:
        node = waiting.pop()
        if node in between:
            continue
        between.add(node)
        for function in users.get(node, ()):
            for reference in function.outputs or ():
                output = reference()
                if output is None or output._creator_node is not function:
                    continue  # dead, or unchained since
                if output in users or output in outputs:
                    waiting.append(output)
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

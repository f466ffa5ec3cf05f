"""Names of functions, variables and places in the doctor's sentences.

Requirement: a reader finds the function in the own program. So a function has the class, a number,
the names of the inputs, the line of the call, and the line of the class's ``backward``.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Arrays
from tinynode.errors import printable
from tinynode.hooks.debug import capture_stack
from tinynode.nn.module import Module


class Names:
    """The names in a graph.

    Args:
        functions: the functions of the graph, in the order of forward.
        model: gives names to parameters and buffers.
    """

    def __init__(self, functions: Sequence[FunctionNode], model: Module | None) -> None:
        named: list[tuple[str, Any]] = []
        if model is not None:
            named = [*model.named_parameters(), *model.named_buffers()]
        self._by_id = {id(value): name for name, value in named}
        self._numbers: dict[FunctionNode, int] = {}
        self._totals: Counter[str] = Counter()
        for function in functions:
            self._totals[function.label] += 1
            self._numbers[function] = self._totals[function.label]

    def of(self, node: VariableNode) -> str:
        """The name of a node's Variable; "" without a name."""
        variable = node.get_variable_or_none()
        return printable(self._by_id.get(id(variable), "") or node.name or "")

    def input(self, node: VariableNode) -> str:
        """An input in words: the name, or the origin."""
        if name := self.of(node):
            return name
        creator = node.creator_node
        if creator is not None:
            return f"output of {creator.label}"
        return f"a leaf of shape {tuple(node.shape)}"

    def function(self, function: FunctionNode) -> str:
        """A function in words: ``Tanh 2 of 5 (output of Linear)``."""
        inputs = ", ".join(self.input(node) for node in function.inputs or ())
        return f"{self.numbered(function)} ({inputs})"

    def numbered(self, function: FunctionNode) -> str:
        """The label of a function, with a number if the graph has several: ``Tanh 2 of 5``."""
        total = self._totals[function.label]
        number = f" {self._numbers[function]} of {total}" if total > 1 else ""
        return f"{function.label}{number}"


class LineHook(FunctionHook):
    """Keeps the line of user code that calls each function, as debug mode does."""

    name = "doctor of lines"

    def forward_preprocess(self, function: Any, in_data: Arrays) -> None:
        function.stack = capture_stack()


def line_of_call(function: FunctionNode) -> str:
    """The line of user code that called a function, as ``file:line``; "" if unknown."""
    if not function.stack:
        return ""
    frame = function.stack[-1]
    return f"{frame.filename}:{frame.lineno}"


def place_of_backward(function: FunctionNode) -> str:
    """The file and line of a class's ``backward``; "" if the source is unknown."""
    own = type(function.user_function)
    try:
        line = inspect.getsourcelines(own.backward)[1]
        return f"{inspect.getsourcefile(own.backward)}:{line}"
    except (OSError, TypeError):
        return ""

"""ResultHook: a hook that sees what a function returned.

Requirement: the events around a forward or a backward have its inputs, and come before the
function is connected to the graph. A hook for results needs the events that come after that.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable


class ResultHook(FunctionHook):
    """Base class of hooks that override ``after_forward`` or ``after_backward``."""

    def after_forward(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Called after a function was applied, and connected if a graph is recorded."""

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        """Called after a function's backward; the results belong to the target indexes."""

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        self.after_forward(function, inputs, outputs)

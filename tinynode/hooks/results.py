"""ResultHook of version 0.1: ``FunctionHook`` has the events for results now."""

from __future__ import annotations

import warnings
from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable


class ResultHook(FunctionHook):
    """Of version 0.1: a FunctionHook whose event ``applied`` is called ``after_forward``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        warnings.warn(
            f"{cls.__name__}: derive from tinynode.FunctionHook in place of ResultHook, and "
            "rename after_forward to applied.",
            DeprecationWarning,
            stacklevel=2,
        )

    def after_forward(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """A function was applied to Variables, and connected if a graph is recorded."""

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        self.after_forward(function, inputs, outputs)

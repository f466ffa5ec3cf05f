"""ResultHook: a hook that sees what a function returned.

Requirement: hooks are given a function's inputs, never its results, and they are called before the
function is connected to the graph. An observer comes after that and sees the results, but it
watches a whole thread. This class joins the two, for the thread and for one function alike: after
a function's callback it stands as an observer of the thread for a moment, until the observers
of that very function have been called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinynode.backend import Array, Arrays
from tinynode.function_hook import FunctionHook, Observer, thread_state

if TYPE_CHECKING:
    from tinynode.function_node import FunctionNode
    from tinynode.variable import Variable


class ResultHook(FunctionHook, Observer):
    """Base class of hooks that override ``after_forward`` or ``after_backward``."""

    _awaited: FunctionNode | None = None
    """The function whose results come next."""

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

    def deleted(self, function: FunctionNode | None) -> None:
        self._stop_observing()

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._observe(function)

    def backward_postprocess(
        self,
        function: FunctionNode,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        self._observe(function)

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        if self._stop_observing(function):
            self.after_forward(function, inputs, outputs)

    def stepped_back(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        if self._stop_observing(function):
            self.after_backward(function, target_input_indexes, grad_outputs, grad_inputs)

    def _observe(self, function: FunctionNode) -> None:
        self._awaited = function
        if self not in thread_state.observers:
            thread_state.observers.append(self)
            thread_state.update()

    def _stop_observing(self, function: FunctionNode | None = None) -> bool:
        """Leave the list of observers; tells whether the function is the awaited one.

        It is another one where an error came between the callback and the observers.
        """
        # a new list: the old one may be in the middle of a loop over it
        thread_state.observers = [o for o in thread_state.observers if o is not self]
        thread_state.update()
        awaited, self._awaited = self._awaited, None
        return function is awaited

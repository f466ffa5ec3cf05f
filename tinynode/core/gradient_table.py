"""GradientTable: all gradients of a backward pass, by node.

Requirement: the gradients that reach a variable by several ways are added. No Variable changes
before the pass has ended. So the gradients stand in a table, and not in the Variables.

There are three ways to add. In a *recorded* pass a sum is a function of the graph. Otherwise a sum
is a plain addition of arrays. With ``lazy_grad_sum`` contributions wait in a list, and a function
adds all contributions when the sum is needed. During a pass on arrays (``array_pass.py``) the
table has arrays in place of Variables.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tinynode
from tinynode.configuration import config
from tinynode.core.array_pass import finish_pass
from tinynode.core.dispatch import add_arrays
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.messages import check_backward_gradient
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Device


class GradientTable:
    """The gradients of a backward pass.

    Args:
        keep: the nodes with a gradient to copy to ``kept`` when the creator runs; None for all.

    Attributes:
        gradients: the gradients of leaves, and of nodes before the creator has run.
        waiting: further contributions to ``gradients``, under ``lazy_grad_sum``.
        kept: the gradients of the nodes in ``keep``, after the creators have run.
        recorded: True if sums are functions: for double backprop, and while a net is recorded.
            So make the table inside of ``backprop_mode``.
        device: the device of a pass on arrays, else None.
        seeds: in a pass on arrays, Variables to give back if the gradient is the same array.
    """

    def __init__(self, keep: Collection[VariableNode] | None = ()) -> None:
        self.keep = keep
        self.recorded = config.enable_backprop or (bool(thread_state.hooks) and is_recording_net())
        self.device: Device | None = None
        self.seeds: dict[VariableNode, Variable] = {}
        self.gradients: dict[VariableNode, Any] = {}
        self.waiting: dict[VariableNode, list[Any]] = {}
        self.kept: dict[VariableNode, Variable] = {}

    def add_seed(self, y: Variable, gy: Variable) -> None:
        """Add a gradient at the start of the pass."""
        gradient = self.gradients.get(y.node)
        self.gradients[y.node] = gy if gradient is None else self.sum_of(gradient, gy)

    def add(
        self, function: FunctionNode, targets: Indexes, grad_inputs: Gradients
    ) -> list[FunctionNode]:
        """Add the results of a function's backward to the gradients of the inputs.

        Returns:
            The creators of the inputs with a first gradient.

        Raises:
            GradientError: a result does not fit the input.
        """
        creators, inputs = [], function.inputs or ()
        for position, i in enumerate(targets):
            node, gx = inputs[i], grad_inputs[position]
            if gx is None:
                continue
            array = gx.raw if type(gx) is Variable and gx._device is node.device else None
            if array is None or array.shape != node.shape or array.dtype is not node.dtype:
                check_backward_gradient(gx, function, i)
            if node not in self.gradients:
                self.gradients[node] = gx
                if node._creator_node is not None:
                    creators.append(node._creator_node)
            elif function.lazy_grad_sum:
                self.waiting.setdefault(node, []).append(gx)
            else:
                self.gradients[node] = self.sum_of(self.gradients[node], gx)
        return creators

    def sum_of(self, a: Any, b: Any) -> Any:
        """a + b: a function if recorded, or inside vmap; else a plain addition of arrays."""
        if self.recorded or a._device is not b._device:
            return a + b
        return wrap_array(add_arrays(a.raw, b.raw, a.device), a.device, a.requires_grad)

    def take(self, node: VariableNode) -> Any:
        """Remove the gradient of a node from the table, all contributions added."""
        gradient = self.gradients.pop(node, None)
        if node in self.waiting and gradient is not None:
            gradient = tinynode.functions.add_all(gradient, *self.waiting.pop(node))
        return gradient

    def take_grad_outputs(self, function: FunctionNode) -> Gradients:
        """Remove the gradients of a function's outputs; None for an output without gradient."""
        grad_outputs: list[Any] = []
        for reference in function.outputs or ():
            node, gradient = reference(), None
            if node is not None and node._creator_node is function:  # neither freed nor unchained
                gradient = self.take(node) if self.waiting else self.gradients.pop(node, None)
                if gradient is not None and (self.keep is None or node in self.keep):
                    self.kept[node] = gradient
            grad_outputs.append(gradient)
        return tuple(grad_outputs)

    def finish(self) -> dict[VariableNode, Variable]:
        """The remaining gradients, all contributions added."""
        for node in list(self.waiting):
            if (total := self.take(node)) is not None:
                self.gradients[node] = total
        if self.device is not None:
            finish_pass(self)
        return self.gradients

"""A backward pass for inspection: the gradients of leaves, and the events on the way.

Requirement: no ``grad`` of the user changes, also after an error or Ctrl-C. So the pass runs by
``tinynode.grad``, which writes no gradient. A ``checkpoint`` writes gradients of parameters: the
pass notes the leaves that functions meet, and puts the gradients back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from tinynode.configuration import config, using_config
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array
from tinynode.hooks.not_finite import is_finite
from tinynode.net.recorder import without_hooks


class BackwardPass(FunctionHook):
    """The gradients of a Variable with respect to leaves.

    Args:
        y: the Variable to start from, with ``y.grad_var`` or ones.
        leaves: the nodes of the leaves.
        functions: the functions of the graph.

    Attributes:
        gradients: the gradient arrays of the leaves, inside checkpoints too; a leaf without a
            gradient is missing.
        error: the exception of a backward; None if the pass came to the end.
        without: for each node, the functions that gave no gradient.
        not_finite: the first function with finite gradients of outputs, and NaN or inf in a
            gradient of an input, with the position of the input; None if there is none.
    """

    name = "doctor"

    def __init__(
        self, y: Variable, leaves: Sequence[VariableNode], functions: Sequence[FunctionNode]
    ) -> None:
        self.gradients: dict[VariableNode, Array] = {}
        self.error: Exception | None = None
        self.without: dict[VariableNode, list[FunctionNode]] = {}
        self.not_finite: tuple[FunctionNode, int] | None = None
        self._functions = set(functions)
        self._grads: dict[int, tuple[Variable, Variable | None]] = {}
        outputs = [(function, function.outputs) for function in functions]
        variables = [node.get_variable() for node in leaves]
        try:
            with self:
                found = grad([y], variables, [y.grad_var])
            for node, gx in zip(leaves, found, strict=True):
                if gx is not None:
                    self.gradients[node] = gx.raw
            for variable, _ in self._grads.values():
                if variable.grad is not None:
                    self.gradients.setdefault(variable.node, variable.grad)
        except Exception as error:
            self.error = error
        finally:
            for variable, grad_var in self._grads.values():
                variable.grad_var = grad_var
            for function, references in outputs:
                function.outputs = references

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        if not config.enable_backprop:  # a graph is recorded only inside a checkpoint
            return
        for x in inputs:
            if x.requires_grad and x.is_leaf and id(x) not in self._grads:
                self._grads[id(x)] = (x, x.grad_var)
                x.grad_var = None

    def after_backward(
        self,
        function: Any,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> None:
        if function not in self._functions:
            return
        for i, gx in zip(target_input_indexes, grad_inputs, strict=True):
            if gx is None:
                self.without.setdefault(function.inputs[i], []).append(function)
            elif self.not_finite is None and _is_origin(grad_outputs, gx):
                self.not_finite = (function, i)


def _is_origin(grad_outputs: tuple[Any, ...], gx: Variable) -> bool:
    """True if a gradient is not finite, and the gradients of the outputs are."""
    known = [gy.raw for gy in grad_outputs if gy is not None]
    return not is_finite(gx.raw) and all(is_finite(array) for array in known)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A block in which no hook of the user hears an event, and debug mode is off."""
    settings = using_config(debug=False, enable_backprop=True)
    with without_hooks(), settings, numpy.errstate(all="ignore"):
        yield

"""Accumulation: the backward of functions that add up gradients in ``backward_accumulate``."""

from __future__ import annotations

from tinynode.core import messages
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.gradient_table import GradientTable


def fused_backward(
    table: GradientTable, function: FunctionNode, targets: Indexes, grad_outputs: Gradients
) -> Gradients:
    """Run an overridden ``backward_accumulate`` on the gradients so far."""
    nodes = function.inputs or ()
    so_far = tuple([table.take(nodes[i]) for i in targets])
    results = function.backward_accumulate(targets, grad_outputs, so_far)
    if not isinstance(results, tuple | list) or len(results) != len(targets):
        raise messages.gradients_bug(function, results, (len(targets),))
    return tuple([old if gx is None else gx for gx, old in zip(results, so_far, strict=True)])

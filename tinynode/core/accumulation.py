"""Accumulation: functions that add up gradients themselves, and gradients that share memory."""

from __future__ import annotations

from tinynode.configuration import using_config
from tinynode.core import messages
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.gradient_table import GradientTable
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, is_separate


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


def unshared(gradient: Variable, taken: set[int], held: Array) -> Variable:
    """The gradient; a copy if others hold the array: a node, ``held``, or an id in ``taken``."""
    if id(gradient.raw) not in taken and gradient._node is None and gradient.raw is not held:
        taken.add(id(gradient.raw))
        if getattr(gradient.raw, "base", None) is None or is_separate(gradient.raw, taken, held):
            return gradient
    copied = gradient._device.xp.asarray(gradient.raw, copy=True)
    return wrap_array(copied, gradient._device, gradient._requires_grad)


def add_gradient(x: Variable, other: Variable) -> None:
    """The work of ``Variable.addgrad``."""
    own, extra = x._grad_var, other._grad_var
    if own is not None and extra is not None:
        with using_config("enable_backprop", bool(own.creator_node or extra.creator_node)):
            x.grad_var = own + extra
    elif extra is not None:
        x.grad_var = extra if extra.creator_node else unshared(extra, {id(extra.raw)}, None)

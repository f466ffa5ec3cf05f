"""The backward pass: ``backward`` and ``grad``.

Requirement: the backward of a function runs once, after the backward of all users of the outputs,
in a graph of any depth. So the pass is a loop over a heap ordered by rank, called a *sweep*. The
users of an output have higher ranks than the creator. So the highest rank is always ready.

Gradients are written to the Variables only at the end. On an error, every ``grad`` is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, Self

from tinynode.configuration import backprop_mode, config
from tinynode.core import array_pass, messages
from tinynode.core.accumulation import fused_backward, unshared
from tinynode.core.array_pass import run_on_arrays
from tinynode.core.function_node import FunctionNode
from tinynode.core.gradient_table import GradientTable
from tinynode.core.hooks import active_hooks, retained_and_gradients, tell_failed, thread_state
from tinynode.core.paths import nodes_between
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import current_device, is_floating


class Sweep:
    """One backward pass over a graph: a loop over a heap of functions.

    Args:
        table: the gradients; at first the gradients of the outputs.
        wanted: the nodes that need a gradient; None means every node that requires a gradient.

    Attributes:
        heap: the waiting functions, as (-rank, number, function). Ties: first in, first out. In a
            pass on arrays, a function that waits alone is not on the heap.
        results: the results of the pass; set at the end.
    """

    def __init__(self, table: GradientTable, wanted: set[VariableNode] | None = None) -> None:
        self.table, self.wanted = table, wanted
        self.hooks, self.debug = thread_state.hooks, config.debug
        creators = dict.fromkeys([node._creator_node for node in table.gradients])
        creators.pop(None, None)  # that of a leaf
        self.seen: set[FunctionNode] = set(creators)
        self.heap = sorted([(-f.rank, number, f) for number, f in enumerate(creators, 1)])
        self.results: dict[VariableNode, Variable] = {}

    def __enter__(self) -> Self:
        for hook in list(self.hooks.values()):
            hook.sweep_began(self)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        for hook in list(self.hooks.values()):
            hook.sweep_ended(self, error)

    def run(self) -> dict[VariableNode, Variable]:
        """Run the backward of each function in reach; gives the remaining gradients."""
        table, outer = self.table, thread_state.array_device
        device = thread_state.array_device = table.device = array_pass.device_of_pass(table)
        try:
            if device is not None:
                run_on_arrays(self)  # until no function waits
            while self.heap:
                self._step(heappop(self.heap)[2])
            return table.finish()
        finally:
            thread_state.array_device = outer  # Ctrl-C may come before an ``__exit__``

    def push(self, function: FunctionNode) -> None:
        """Put a function on the heap, once."""
        if function not in self.seen:
            self.seen.add(function)
            heappush(self.heap, (-function.rank, len(self.seen), function))

    def _step(self, function: FunctionNode) -> None:
        """A function's step: take the gradients of outputs, run backward, add up the results."""
        indexes = []
        for i, node in enumerate(function.inputs or ()):
            if node.requires_grad and (self.wanted is None or node in self.wanted):
                indexes.append(i)
        if not indexes:
            return
        targets = tuple(indexes)
        is_watched = self.hooks or function._local_hooks or self.debug
        hooks = active_hooks(function) if is_watched else ()
        for hook in hooks:
            hook.before_backward(self, function)
        grad_outputs = self.table.take_grad_outputs(function)
        try:
            for hook in hooks:
                hook.backward_preprocess(function, *retained_and_gradients(function, grad_outputs))
            try:
                if type(function).backward_accumulate is FunctionNode.backward_accumulate:
                    grad_inputs = function.backward(targets, grad_outputs)
                else:
                    grad_inputs = fused_backward(self.table, function, targets, grad_outputs)
                if type(grad_inputs) is not tuple or len(grad_inputs) != len(targets):
                    grad_inputs = messages.gradients_of_targets(function, targets, grad_inputs)
            except Exception as error:
                messages.explain_backward_error(error, function)
                raise
            for hook in hooks:
                hook.backward_postprocess(
                    function, *retained_and_gradients(function, grad_outputs)
                )
            for hook in hooks:
                hook.after_backward(function, targets, grad_outputs, grad_inputs)
        except BaseException as error:
            tell_failed(hooks, function, "backward", error)
            raise
        for creator in self.table.add(function, targets, grad_inputs):
            self.push(creator)
        for hook in hooks:
            hook.after_accumulate(self, function)


def backward_one(
    y: Variable, retain_grad: bool, enable_double_backprop: bool, loss_scale: float | None
) -> None:
    """The work of ``Variable.backward``."""
    if not (y._requires_grad and type(retain_grad) is type(enable_double_backprop) is bool):
        raise messages.refused_backward(y, retain_grad, enable_double_backprop)
    seed, node = y._grad_var, y._node
    if seed is None:
        messages.check_seedless(y)
    if node is None or node._creator_node is None:
        return  # the gradient of a leaf stays
    with backprop_mode(enable_double_backprop), y._device.active():
        table = GradientTable(keep=None if retain_grad else ())
        table.gradients[node] = _ones_like(y, loss_scale) if seed is None else seed
        _run_and_write(table)
    if not retain_grad:
        y._grad_var = None


def _ones_like(y: Variable, loss_scale: float | None) -> Variable:
    array = y.xp.full_like(y.raw, 1.0 if loss_scale is None else loss_scale)
    return wrap_array(array, y.device, y.requires_grad)


def _run_and_write(table: GradientTable) -> None:
    """Run a sweep, then write all gradients to the Variables; on an error, none."""
    taken: set[int] = set()  # the ids of the arrays that others hold
    for seed in table.gradients.values():
        taken.update((id(seed.raw), id(getattr(seed.raw, "base", None))))
    with Sweep(table) as sweep:
        remaining = sweep.run()
        written: list[tuple[Variable, Variable]] = []
        for node, gx in (*table.kept.items(), *remaining.items()):
            variable = node._variable() if node._variable else None
            is_leaf = node._creator_node is None
            if variable is None or (node in remaining and not is_leaf):
                continue  # dropped by the user, or the creator needed no gradient
            if is_leaf and variable._grad_var is not None:
                messages.check_gradient(variable._grad_var, gx, "x.grad")
                gx = table.sum_of(variable._grad_var, gx)
            sweep.results[node] = gx = gx if table.recorded else unshared(gx, taken, variable.raw)
            written.append((variable, gx))
        for variable, gx in written:
            variable._grad_var = gx


def backward(
    outputs: Sequence[Variable],
    grad_outputs: Sequence[Variable | None] | None = None,
    *,
    enable_double_backprop: bool = False,
) -> None:
    """Run one backward pass from several outputs at once.

    Gradients are added to the leaves' ``grad``, as by ``Variable.backward``.

    Args:
        outputs: the Variables to start from.
        grad_outputs: the gradients of the outputs; by default the ``grad`` of each is used up.
        enable_double_backprop: record a graph of the backward pass.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
        BackwardSeedError: an output has no gradient to start from.
    """
    messages.check_sequences("backward", "outputs", outputs, "grad_outputs", grad_outputs)
    own = grad_outputs is None
    given = [y.grad_var for y in outputs] if grad_outputs is None else grad_outputs
    device = outputs[0].device if outputs else current_device()
    with backprop_mode(enable_double_backprop), device.active():
        table = GradientTable()
        for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
            seed = messages.checked_seed(y, gy, position)
            # explicit gradients of an output add up; its own counts once, and a leaf keeps it
            if not own or (y.creator_node is not None and y.node not in table.gradients):
                table.add_seed(y, seed)
        _run_and_write(table)
    for y in outputs:
        if own and y.creator_node is not None:
            y._grad_var = None


def grad(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Sequence[Variable | None] | None = None,
    grad_inputs: Sequence[Variable | None] | None = None,
    set_grad: bool = False,
    retain_grad: bool = False,
    enable_double_backprop: bool = False,
    loss_scale: float | None = None,
) -> list[Variable | None]:
    """The gradients of ``outputs`` with respect to ``inputs``, without touching any ``grad``.

    Only functions between the two are visited. The result is None for an input without a recorded
    connection to the outputs. If all functions were recorded, the gradient is exactly zero.

    Args:
        outputs: the Variables to differentiate.
        inputs: the Variables to differentiate with respect to; intermediate ones too.
        grad_outputs: gradients to start from; by default arrays of 1, for real outputs only.
        grad_inputs: gradients to add to the results.
        set_grad: also write the results to the inputs' ``grad_var``.
        retain_grad: also write the gradients of all function outputs on the way.
        enable_double_backprop: record a graph, so that the results can be differentiated.
        loss_scale: replaces the 1 in the default ``grad_outputs``.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
    """
    messages.check_sequences("grad", "outputs", outputs, "grad_outputs", grad_outputs)
    messages.check_inputs_of_grad(outputs, inputs, grad_inputs)
    given = grad_outputs if grad_outputs is not None else [None] * len(outputs)
    device = outputs[0].device if outputs else current_device()
    with backprop_mode(enable_double_backprop), device.active():
        nodes = [x.node for x in inputs]
        wanted = nodes_between(nodes, [y.node for y in outputs])
        table = GradientTable(keep=None if retain_grad else set(nodes))
        for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
            messages.check_start_of_grad(y, gy, position)
            if (gy is not None or is_floating(y.filled_array())) and y.node in wanted:
                table.add_seed(y, _ones_like(y, loss_scale) if gy is None else gy)
        with Sweep(table, wanted) as sweep:
            remaining = sweep.run()
            found = [remaining.get(node, table.kept.get(node)) for node in nodes]
            for i, extra in enumerate(grad_inputs or ()):
                if extra is not None:
                    messages.check_gradient(extra, inputs[i], f"grad: grad_inputs[{i}]")
                    gx = found[i]
                    found[i] = extra if gx is None else table.sum_of(gx, extra)
            sweep.results = {n: gx for n, gx in zip(nodes, found, strict=True) if gx is not None}
            for node in table.kept if retain_grad else ():
                if (variable := node.get_variable_or_none()) is not None:
                    variable.grad_var = table.kept[node]
            for x, gx in zip(inputs, found, strict=True) if set_grad else ():
                x.grad_var = gx
    return found

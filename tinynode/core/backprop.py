"""The backward pass: ``backward`` and ``grad``.

Requirement: the backward of a function runs once, after the backward of all users of the outputs,
in a graph of any depth. So the pass is a loop over a heap ordered by rank, called a *sweep*. The
users of an output have higher ranks than the creator. So the highest rank is always ready.

There is one loop, for passes on Variables and for passes on arrays: the table of gradients knows
the difference. A breakpoint in ``Sweep.step`` stops in every backward pass.

Gradients are written to the Variables only at the end. On an error, every ``grad`` is unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import repeat
from typing import Any, Self

from tinynode.configuration import backprop_mode, config, using_config
from tinynode.core import messages, seeds
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode
from tinynode.core.gradient_table import GradientTable, quickest_table, unshared
from tinynode.core.hooks import active_hooks, thread_state
from tinynode.core.paths import nodes_between
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import current_device, is_floating


class Sweep:
    """One backward pass over a graph: a loop over a heap of functions.

    Args:
        table: the gradients of the outputs.
        wanted: the nodes that need a gradient; None means every node that requires a gradient.

    Attributes:
        table: all gradients: the given table, or an ``ArrayTable`` made of the given table.
        heap: the waiting functions, as (-rank, number, function). Ties: first in, first out.
        seen: the functions that are or were on the heap.
        results: the results of the pass; set at the end.
    """

    def __init__(self, table: GradientTable, wanted: set[VariableNode] | None = None) -> None:
        self.table = quickest_table(table)
        self.wanted = wanted
        self.hooks = thread_state.hooks
        self.debug = config.debug
        self.heap: list[tuple[int, int, FunctionNode]] = []
        self.seen: set[FunctionNode] = set()
        for node in table.gradients:
            creator = node._creator_node
            if creator is not None and creator not in self.seen:
                self.seen.add(creator)
                heappush(self.heap, (-creator.rank, len(self.seen), creator))
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
        outer = thread_state.array_device
        thread_state.array_device = self.table.device
        heap = self.heap
        try:
            while True:  # Python 3.12 and later put the jump of ``while heap`` outside of the try
                if not heap:
                    return self.table.finish()
                self.step(heappop(heap)[2])
        finally:
            thread_state.array_device = outer  # Ctrl-C may come before an ``__exit__``

    def step(self, function: FunctionNode) -> None:
        """A function's step: take the gradients of outputs, run backward, add up the results."""
        wanted = self.wanted
        indexes = []
        for i, node in enumerate(function.inputs or ()):
            if node.requires_grad and (wanted is None or node in wanted):
                indexes.append(i)
        if not indexes:
            return
        table = self.table
        targets = tuple(indexes)
        hooks: Sequence[Any] = ()
        if self.hooks or self.debug or function.local_hooks_or_none:
            hooks = active_hooks(function)
            thread_state.array_device = None  # the functions that hooks call get Variables
        for hook in hooks:
            hook.before_backward(self, function)
        grad_outputs = table.take_grad_outputs(function)
        grad_inputs = table.run_backward(function, targets, grad_outputs, hooks)
        for creator in table.add(function, targets, grad_inputs):
            if creator not in self.seen:
                self.seen.add(creator)
                heappush(self.heap, (-creator.rank, len(self.seen), creator))
        for hook in hooks:
            hook.after_accumulate(self, function)
        if hooks:
            thread_state.array_device = table.device


def backward_one(
    y: Variable, retain_grad: bool, enable_double_backprop: bool, loss_scale: float | None
) -> None:
    """The work of ``Variable.backward``."""
    if not y._requires_grad:
        raise messages.cannot_start("y.backward()", "y", y)
    if not isinstance(retain_grad, bool):
        raise messages.option_no_bool("retain_grad", retain_grad)
    if not isinstance(enable_double_backprop, bool):
        raise messages.option_no_bool("enable_double_backprop", enable_double_backprop)
    seed = y._grad_var
    if seed is None:
        seeds.check_start_without_gradient(y)
    node = y._node
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
    """Run a sweep, then write all gradients to the Variables; on an error, none.

    ``table`` has Variables. The sweep may use an ``ArrayTable`` instead, in ``sweep.table``. The
    results are Variables again, so sums with an old ``grad`` are sums of ``table``.
    """
    taken: set[int] = set()  # the ids of the arrays that others hold
    for seed in table.gradients.values():
        taken.add(id(seed.raw))
        taken.add(id(getattr(seed.raw, "base", None)))
    with Sweep(table) as sweep:
        remaining = sweep.run()
        found = dict(sweep.table.kept)
        for node, gx in remaining.items():
            if node._creator_node is None:  # else the creator needed no gradient
                found[node] = gx
        variables: list[Variable] = []
        gradients: list[Variable] = []
        for node, gx in found.items():
            variable = node.variable_reference() if node.variable_reference else None
            if variable is None:
                continue  # dropped by the user
            if node._creator_node is None and variable._grad_var is not None:
                seeds.check_gradient(variable._grad_var, gx, "x.grad")
                gx = table.sum_of(variable._grad_var, gx)
            if not table.recorded:
                gx = unshared(gx, taken, variable.raw)
            sweep.results[node] = gx
            variables.append(variable)
            gradients.append(gx)
        _write(variables, gradients)


def _write(variables: list[Variable], gradients: Sequence[Variable | None]) -> None:
    """Write checked gradients. It is a single call, so Ctrl-C comes before or after all."""
    deque(map(setattr, variables, repeat("_grad_var"), gradients), 0)


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
    seeds.check_sequences("backward", "outputs", outputs, "grad_outputs", grad_outputs)
    own = grad_outputs is None
    enable_double_backprop = as_flag("backward", "enable_double_backprop", enable_double_backprop)
    given = [y.grad_var for y in outputs] if grad_outputs is None else grad_outputs
    device = outputs[0].device if outputs else current_device()
    with backprop_mode(enable_double_backprop), device.active():
        table = GradientTable()
        for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
            seed = seeds.checked_seed(y, gy, position)
            # explicit gradients of an output add up; its own counts once, and a leaf keeps it
            if not own or (y.creator_node is not None and y.node not in table.gradients):
                table.add_seed(y, seed)
        _run_and_write(table)
    for y in outputs:
        if own and y.creator_node is not None:
            y._grad_var = None


def grad(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable] | None = None,
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

        >>> x = tn.asarray([1.0, 2.0])
        >>> y = F.sum(x**3)
        >>> (gx,) = tn.grad([y], [x], enable_double_backprop=True)
        >>> gx.tolist()
        [3.0, 12.0]
        >>> tn.grad([F.sum(gx)], [x])[0].tolist()
        [6.0, 12.0]

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
    seeds.check_sequences("grad", "outputs", outputs, "grad_outputs", grad_outputs)
    inputs = seeds.inputs_of_grad(outputs, inputs, grad_inputs)
    set_grad = as_flag("grad", "set_grad", set_grad)
    retain_grad = as_flag("grad", "retain_grad", retain_grad)
    enable_double_backprop = as_flag("grad", "enable_double_backprop", enable_double_backprop)
    given = grad_outputs if grad_outputs is not None else [None] * len(outputs)
    device = outputs[0].device if outputs else current_device()
    with backprop_mode(enable_double_backprop), device.active():
        nodes = [x.node for x in inputs]
        wanted = nodes_between(nodes, [y.node for y in outputs])
        table = GradientTable(keep=None if retain_grad else set(nodes))
        for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
            gy = seeds.start_of_grad(y, gy, position)
            if (gy is not None or is_floating(y.filled_array())) and y.node in wanted:
                table.add_seed(y, _ones_like(y, loss_scale) if gy is None else gy)
        with Sweep(table, wanted) as sweep:
            remaining = sweep.run()
            kept = sweep.table.kept
            found = [remaining.get(node, kept.get(node)) for node in nodes]
            for i, extra in enumerate(grad_inputs or ()):
                if extra is not None:
                    seeds.check_gradient(extra, inputs[i], f"grad: grad_inputs[{i}]")
                    gx = found[i]
                    found[i] = extra if gx is None else table.sum_of(gx, extra)
            sweep.results = {n: gx for n, gx in zip(nodes, found, strict=True) if gx is not None}
            if retain_grad:
                _write_kept(kept)
            if set_grad:
                _write(list(inputs), found)
    return found


def _write_kept(kept: dict[VariableNode, Variable]) -> None:
    """Write gradients to the Variables of nodes that are alive."""
    variables: list[Variable] = []
    gradients: list[Variable] = []
    for node, gradient in kept.items():
        variable = node.get_variable_or_none()
        if variable is not None:
            variables.append(variable)
            gradients.append(gradient)
    _write(variables, gradients)


def add_gradient(x: Variable, other: Variable) -> None:
    """The work of ``Variable.addgrad``."""
    own = x._grad_var
    extra = other._grad_var
    if extra is None:
        return
    if own is not None:
        is_recorded = own.creator_node is not None or extra.creator_node is not None
        with using_config("enable_backprop", is_recorded):
            x.grad_var = own + extra
    else:
        is_recorded = extra.creator_node is not None
        x.grad_var = extra if is_recorded else unshared(extra, {id(extra.raw)}, None)

"""The reverse sweep: backward, and grad.

Requirement: every function runs its backward once, after all functions that used its outputs, in a
graph of any depth. So the sweep is a loop over a heap ordered by rank: a function's rank is above
that of everything it depends on, hence the highest rank is always ready.

The sweep keeps its gradients in a table of its own, by node. Nothing that a user can see changes
until it has come to its end: an error in a user's backward leaves every ``grad`` as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from types import TracebackType
from typing import Any, Self

import tinynode
from tinynode import debug
from tinynode.backend import Array, current_device, is_floating
from tinynode.configuration import config, using_config
from tinynode.errors import (
    BackwardSeedError,
    GradientShapeError,
    GradientTypeError,
    OperandError,
    describe,
    dtype_name,
)
from tinynode.function_hook import hooks_for, thread_state
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.variable import Variable, wrap_array
from tinynode.variable_node import VariableNode


class Sweep:
    """One reverse pass over a graph: ``with Sweep(...) as sweep:``, then ``sweep.run()``.

    The ``with`` block is what observers see: when a sweep begins, and when it has ended.

    Attributes:
        gradients: the gradient of each node reached so far whose creator has not run, and of
            leaves. Under ``lazy_grad_sum`` further contributions wait in ``pending``.
        sums: those gradients that the sweep itself has added up: it may give them a new array.
        wanted: the nodes that need a gradient; None means every one that requires one.
        kept: the gradients of function outputs that the sweep has passed: of all of them with
            ``keep_all``, else of those in ``keep``.
        heap: the functions that wait, as (-rank, number, function).
        results: the gradients that the sweep came to; set at its end.
    """

    def __init__(
        self,
        seeds: dict[VariableNode, Variable],
        wanted: set[VariableNode] | None = None,
        keep: set[VariableNode] | None = None,
        keep_all: bool = False,
    ) -> None:
        self.gradients = dict(seeds)
        self.sums: dict[VariableNode, Variable] = {}
        self.pending: dict[VariableNode, list[Variable]] = {}
        self.wanted = wanted
        self.keep = keep or set()
        self.keep_all = keep_all
        self.kept: dict[VariableNode, Variable] = {}
        self.results: dict[VariableNode, Variable] = {}
        self.heap: list[tuple[int, int, FunctionNode]] = []
        self.seen: set[FunctionNode] = set()
        self.debugging = config.debug
        self.recording = config.enable_backprop or config.tracing is not None
        self.watched = thread_state.watched
        for node in seeds:
            if node._creator_node is not None:
                self._push(node._creator_node)

    def __enter__(self) -> Self:
        if self.watched:
            for observer in thread_state.observers:
                observer.sweep_began(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.watched:
            for observer in thread_state.observers:
                observer.sweep_ended(self, error)

    def run(self) -> None:
        """Run the backward of every function that can be reached, by falling rank."""
        step = self._step_watched if self.watched else self._step
        while self.heap:
            function = heappop(self.heap)[2]
            targets = self._targets(function)
            if targets:
                step(function, targets)

    def _push(self, function: FunctionNode) -> None:
        if function not in self.seen:
            self.seen.add(function)
            # ties come out first in, first out; functions themselves are never compared
            heappush(self.heap, (-function.rank, len(self.seen), function))

    def _targets(self, function: FunctionNode) -> Indexes:
        """The indexes of the inputs that need a gradient."""
        wanted = self.wanted
        targets = []
        for i, node in enumerate(function.inputs or ()):
            if node.requires_grad and (wanted is None or node in wanted):
                targets.append(i)
        return tuple(targets)

    def _step_watched(self, function: FunctionNode, targets: Indexes) -> None:
        """As ``_step``, between two callbacks of the observers."""
        for observer in thread_state.observers:
            observer.stepping_back(self, function)
        self._step(function, targets)
        for observer in thread_state.observers:
            observer.handed_on(self, function)

    def _step(self, function: FunctionNode, targets: Indexes) -> None:
        """Run one function's backward, and hand its gradients on."""
        grad_outputs = self._take_grad_outputs(function)
        if self.debugging:
            debug.check_unchanged(function)
        accumulated = None
        if type(function).backward_accumulate is not FunctionNode.backward_accumulate:
            accumulated = tuple(self._pop(function.inputs[i]) for i in targets)  # type: ignore[index]
        if self.watched or function._local_hooks is not None:
            results = _call_watched(function, targets, grad_outputs, accumulated)
        else:
            results = _call(function, targets, grad_outputs, accumulated)
        if accumulated is not None:  # what was there stays where no gradient came back
            results = [
                old if gx is None else gx for gx, old in zip(results, accumulated, strict=True)
            ]
        for i, gx in zip(targets, results):  # noqa: B905 - _call has compared the lengths
            if gx is not None:
                self._add(function, i, gx)

    def _take_grad_outputs(self, function: FunctionNode) -> Gradients:
        """The gradients of a function's outputs, which leave the table; None where none came."""
        grad_outputs: list[Variable | None] = []
        for reference in function.outputs or ():
            node = reference()
            if node is None or node._creator_node is not function:  # dead, or unchained since
                grad_outputs.append(None)
                continue
            gradient = self.gradients.pop(node, None)
            if gradient is not None:
                if self.pending:
                    gradient = self._complete(node, gradient)
                if self.keep_all or (self.keep and node in self.keep):
                    self.kept[node] = gradient
            grad_outputs.append(gradient)
        return tuple(grad_outputs)

    def _pop(self, node: VariableNode) -> Variable | None:
        """Take a node's gradient, all contributions added, out of the table."""
        gradient = self.gradients.pop(node, None)
        self.sums.pop(node, None)
        return None if gradient is None else self._complete(node, gradient)

    def _complete(self, node: VariableNode, gradient: Variable) -> Variable:
        """A gradient plus the contributions that wait under ``lazy_grad_sum``."""
        if node not in self.pending:
            return gradient
        total: Variable = tinynode.functions.add_all(gradient, *self.pending.pop(node))
        return total

    def _add(self, function: FunctionNode, i: int, gx: Variable) -> None:
        """Add a contribution to the gradient of input i, and line up that input's creator."""
        node = function.inputs[i]  # type: ignore[index]
        if (
            not isinstance(gx, Variable)
            or gx._device is not node.device
            or gx._array.shape != node.shape
            or gx._array.dtype != node.dtype
        ):
            _raise_wrong_gradient(function, i, node, gx)
        if self.debugging:
            debug.check_nan(function, (gx._array,), "backward", i)
        current = self.gradients.get(node)
        if current is None:
            self.gradients[node] = gx
            if node._creator_node is not None:
                self._push(node._creator_node)
        elif function.lazy_grad_sum:
            self.pending.setdefault(node, []).append(gx)
        elif self.recording:
            self.gradients[node] = current + gx
        elif self.sums.get(node) is current:  # made here, and nobody else has it
            current._array = _add_arrays(current, gx)
        else:
            total = wrap_array(_add_arrays(current, gx), current._device, current._requires_grad)
            self.sums[node] = self.gradients[node] = total

    def finish(self) -> dict[VariableNode, Variable]:
        """The gradients that are left: those of leaves, and of nodes that ``grad`` asks for."""
        for node in list(self.pending):
            total = self._pop(node)
            assert total is not None
            self.gradients[node] = total
        return self.gradients


def _sum(a: Variable, b: Variable) -> Variable:
    """a + b; without a FunctionNode where nobody will differentiate it or record it."""
    if config.enable_backprop or config.tracing is not None:
        return a + b
    return wrap_array(_add_arrays(a, b), a._device, a._requires_grad)


def _add_arrays(a: Variable, b: Variable) -> Array:
    """The array of a + b, without a FunctionNode."""
    device = a._device
    total = device.xp.add(a._array, b._array)
    return total if type(total) in device.array_types else device.lift(total)


def _call(
    function: FunctionNode,
    targets: Indexes,
    grad_outputs: Gradients,
    accumulated: Gradients | None,
) -> Sequence[Variable | None]:
    """Call backward, or backward_accumulate; bring the result to one entry per target."""
    try:
        if accumulated is None:
            results = function.backward(targets, grad_outputs)
        else:
            results = function.backward_accumulate(targets, grad_outputs, accumulated)
        if type(results) is tuple and len(results) == len(targets):
            return results
        return _for_targets(function, targets, results, accumulated is not None)
    except Exception as error:
        _explain(error, function)
        raise


def call_backward(
    function: FunctionNode, targets: Indexes, grad_outputs: Gradients
) -> Sequence[Variable | None]:
    """One function's backward, without a sweep: one entry per target."""
    if type(function).backward_accumulate is not FunctionNode.backward_accumulate:
        return _call(function, targets, grad_outputs, (None,) * len(targets))
    return _call(function, targets, grad_outputs, None)


def _for_targets(
    function: FunctionNode, targets: Indexes, results: Any, accumulates: bool
) -> Sequence[Variable | None]:
    """The gradients of the target inputs, out of what a backward returned."""
    if not isinstance(results, tuple | list):
        raise GradientTypeError(
            f"Function `{function.label}` has a bug: its backward must return a tuple, got "
            f"{describe(results)}. Return (gx,) with a comma, for one gradient too."
        )
    number = len(function.inputs or ())
    if len(results) == len(targets):
        return results
    if accumulates or len(results) != number:
        allowed = f"{len(targets)}" if accumulates else f"{len(targets)} or {number}"
        raise GradientShapeError(
            f"Function `{function.label}` has a bug: number of gradients returned from backward "
            f"is incorrect: {len(results)} != expected {allowed}."
        )
    return [results[i] for i in targets]


def _call_watched(
    function: FunctionNode,
    targets: Indexes,
    grad_outputs: Gradients,
    accumulated: Gradients | None,
) -> Sequence[Variable | None]:
    """As ``_call``, between the hooks' callbacks and before the observers'."""
    hooks = hooks_for(function._local_hooks)
    in_data = function.retained_in_data()
    out_grad = tuple(None if g is None else g._array for g in grad_outputs)
    for hook in hooks:
        hook.backward_preprocess(function, in_data, out_grad)
    results = _call(function, targets, grad_outputs, accumulated)
    for hook in hooks:
        hook.backward_postprocess(function, in_data, out_grad)
    for observer in thread_state.observers:
        observer.stepped_back(function, targets, grad_outputs, tuple(results))
    return results


def _explain(error: Exception, function: FunctionNode) -> None:
    """Add what helps to an error that a backward raised."""
    if str(error).startswith(("not enough values to unpack", "tuple index out of range")):
        for what, indexes in (
            ("inputs", function._retained_input_indexes),
            ("outputs", function._retained_output_indexes),
        ):
            if not indexes:
                error.add_note(
                    f"retain_{what}(...) was not called in forward of {function.label}: if its "
                    f"backward uses get_retained_{what}(), forward has to name them, e.g. "
                    f"self.retain_{what}((0,))."
                )
    if not function.stack:
        error.add_note(
            f"It was raised in the backward of {function.label}. Debug mode (tn.set_debug(True) "
            "before forward) shows where the function was called."
        )
    debug.add_forward_stack(error, function)


def _raise_wrong_gradient(function: FunctionNode, i: int, node: VariableNode, gx: Any) -> None:
    error: Exception
    if not isinstance(gx, Variable):
        error = GradientTypeError(
            f"Function `{function.label}` has a bug: type of gradients returned from backward is "
            f"incorrect: gradient of input {i} is {describe(gx)}, expected a Variable. Compute "
            "it from Variables, so that it can be differentiated again."
        )
    elif gx._device is not node.device:
        error = GradientTypeError(
            f"Function `{function.label}` has a bug: the gradient of input {i} is on "
            f"{gx._device}, the input is on {node.device}. Move it with to_device."
        )
    elif gx._array.shape != node.shape:
        error = GradientShapeError(
            f"Function `{function.label}` has a bug: shape of the gradient of input {i} is "
            f"{gx.shape}, the input has {node.shape}. If the input was broadcast, "
            "bring the gradient back with sum_to(gx, x.shape)."
        )
    else:
        error = GradientTypeError(
            f"Function `{function.label}` has a bug: dtype of the gradient of input {i} is "
            f"{dtype_name(gx.dtype)}, the input has {dtype_name(node.dtype)}. Cast it with "
            "astype(gx, x.dtype)."
        )
    debug.add_forward_stack(error, function)
    try:
        raise error
    finally:
        del error  # its traceback holds this frame: without this, a reference cycle


def _ones_like(y: Variable, loss_scale: float | None) -> Variable:
    ones = y.xp.ones_like(y._array)
    if loss_scale is not None:
        ones = y._device.lift(ones * loss_scale)
    return wrap_array(ones, y._device, y._requires_grad)


def backward_one(
    y: Variable, retain_grad: bool, enable_double_backprop: bool, loss_scale: float | None
) -> None:
    """What ``Variable.backward`` does."""
    _check_requires_grad("y.backward()", "y", y)
    _check_options(retain_grad, enable_double_backprop)
    seed = y._grad_var
    if y.creator_node is None:
        if seed is None:
            raise BackwardSeedError(
                f"y.backward(): y ({y.label}) was computed by no recorded function: it is a leaf; "
                "or it was computed under no_backprop_mode(); or it is a gradient, and "
                "enable_double_backprop=True was left out."
            )
        return  # the gradient of a leaf stays
    if seed is None:
        _check_size_one(y)
        seed = _ones_like(y, loss_scale)
    _backward({y.node: seed}, retain_grad, enable_double_backprop)
    if not retain_grad:
        y._grad_var = None


def _check_requires_grad(function: str, argument: str, y: Variable) -> None:
    if y._requires_grad:
        return
    if y._array is not None and not is_floating(y._array):
        raise BackwardSeedError(
            f"{function}: {argument} is {dtype_name(y.dtype)}, and only floating dtypes have "
            "derivatives. Start from floats: 1.0 in place of 1, or x.astype('float32')."
        )
    raise BackwardSeedError(
        f"{function}: {argument} ({y.label}) requires no gradient: no input of its functions "
        "does. Make the inputs with requires_grad=True."
    )


def _check_options(retain_grad: Any, enable_double_backprop: Any) -> None:
    for name, value in (
        ("retain_grad", retain_grad),
        ("enable_double_backprop", enable_double_backprop),
    ):
        if not isinstance(value, bool):
            raise TypeError(
                f"y.backward(): {name} must be a bool, got {describe(value)}. A gradient to start "
                "from goes into y.grad first."
            )


def _check_size_one(y: Variable) -> None:
    if y.size != 1:
        raise BackwardSeedError(
            f"y.backward(): y has shape {y.shape}, so there is no single gradient to start from; "
            "set y.grad to an array of that shape first, or call sum(y).backward()."
        )


def _backward(
    seeds: dict[VariableNode, Variable], retain_grad: bool, enable_double_backprop: bool
) -> None:
    """Sweep, then hand the gradients to the Variables: all of them, or after an error none."""
    device = next(iter(seeds)).device if seeds else current_device()
    with (
        using_config("enable_backprop", enable_double_backprop),
        device.active(),
        Sweep(seeds, keep_all=retain_grad) as sweep,
    ):
        sweep.run()
        left = sweep.finish()
        results = sweep.results = sweep.kept
        for node, gradient in left.items():
            if node._creator_node is None:
                old = node.grad_var
                if old is not None:
                    node.get_variable()._check_grad(old)
                results[node] = gradient if old is None else _sum(old, gradient)
        _assign(results)


def _assign(results: dict[VariableNode, Variable]) -> None:
    """Write gradients to the Variables that are alive; check all of them first."""
    alive = []
    for node, gradient in results.items():
        variable = node.get_variable_or_none()
        if variable is not None:
            variable._check_grad(gradient)
            alive.append((variable, gradient))
    for variable, gradient in alive:
        variable._grad_var = gradient


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
        grad_outputs: their gradients. If left out, each output's own ``grad`` is used up.
        enable_double_backprop: record a graph of the backward pass.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
        BackwardSeedError: an output has no gradient to start from.
    """
    _check_sequences("backward", "outputs", outputs, "grad_outputs", grad_outputs)
    own = grad_outputs is None
    given = [y._grad_var for y in outputs] if grad_outputs is None else list(grad_outputs)
    seeds: dict[VariableNode, Variable] = {}
    for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
        _check_requires_grad("backward", f"outputs[{position}]", y)
        if gy is None:
            raise BackwardSeedError(
                f"backward: output {position} (shape {y.shape}) has no gradient: set its grad, or "
                "give grad_outputs."
            )
        _check_gradient(f"backward: grad_outputs[{position}]", y, gy)
        if y.node not in seeds:
            seeds[y.node] = gy
        elif not own:  # an output given twice: explicit gradients add up, its own counts once
            with using_config("enable_backprop", enable_double_backprop):
                seeds[y.node] = _sum(seeds[y.node], gy)
    if own:  # a leaf among the outputs already has its gradient
        seeds = {node: gy for node, gy in seeds.items() if node._creator_node is not None}
    _backward(seeds, False, enable_double_backprop)
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

    Only functions between the two are visited. None stands for an input that no recorded function
    connects with the outputs: where all were recorded, its gradient is exactly zero.

    Args:
        outputs: the Variables to differentiate.
        inputs: the Variables to differentiate with respect to; intermediate ones too.
        grad_outputs: gradients to start from; ones where left out, of any shape.
        grad_inputs: gradients to add to the results.
        set_grad: also write the results to the inputs' ``grad_var``.
        retain_grad: also write the gradients of the function outputs that were passed.
        enable_double_backprop: record a graph, so that the results can be differentiated.
        loss_scale: multiplies the ones that stand for gradients left out.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
    """
    _check_sequences("grad", "outputs", outputs, "grad_outputs", grad_outputs)
    _check_sequences("grad", "inputs", inputs, "grad_inputs", grad_inputs)
    given = list(grad_outputs) if grad_outputs is not None else [None] * len(outputs)
    device = outputs[0]._device if outputs else current_device()
    with using_config("enable_backprop", enable_double_backprop), device.active():
        seeds = _seeds_for_grad(outputs, given, loss_scale)
        nodes = [x.node for x in inputs]
        wanted = _nodes_between(nodes, seeds)
        reachable = {node: gy for node, gy in seeds.items() if node in wanted}
        with Sweep(reachable, wanted, keep=set(nodes), keep_all=retain_grad) as sweep:
            sweep.run()
            left = sweep.finish()
            results = [left.get(node, sweep.kept.get(node)) for node in nodes]
            for position, extra in enumerate(grad_inputs or ()):
                current = results[position]
                if extra is not None:
                    _check_gradient(f"grad: grad_inputs[{position}]", inputs[position], extra)
                    results[position] = extra if current is None else _sum(current, extra)
            sweep.results = {n: gx for n, gx in zip(nodes, results, strict=True) if gx is not None}
            if retain_grad:
                _assign(sweep.kept)
            if set_grad:
                for x, gx in zip(inputs, results, strict=True):
                    x.grad_var = gx
    return results


def _check_sequences(
    function: str, name: str, variables: Any, gradients_name: str, gradients: Any
) -> None:
    """Refuse what is no sequence of Variables, or gradients of another number."""
    for title, sequence in ((name, variables), (gradients_name, gradients)):
        if sequence is gradients and gradients is None:
            continue
        if not isinstance(sequence, tuple | list):
            raise TypeError(
                f"{function}: {title} must be a tuple or a list, got {describe(sequence)}. "
                "Write (x,) for one."
            )
    for position, x in enumerate(variables):
        if not isinstance(x, Variable):
            raise OperandError(
                f"{function}: {name}[{position}] must be a Variable, got {describe(x)}."
            )
    if gradients is not None and len(gradients) != len(variables):
        raise ValueError(
            f"{function}: {gradients_name} has {len(gradients)} entries, expected "
            f"{len(variables)}."
        )


def _check_gradient(argument: str, x: Variable, gx: Variable) -> None:
    """Refuse a gradient that a user gave for x if it does not fit x."""
    if not isinstance(gx, Variable):
        raise GradientTypeError(f"{argument} must be a Variable, got {describe(gx)}.")
    if gx.device is not x.device:
        raise GradientTypeError(f"{argument} is on {gx.device}, the variable is on {x.device}.")
    if gx.shape != x.shape:
        raise GradientShapeError(f"{argument} has shape {gx.shape}, the variable has {x.shape}.")
    if gx.dtype != x.dtype:
        raise GradientTypeError(
            f"{argument} is {dtype_name(gx.dtype)}, the variable is {dtype_name(x.dtype)}."
        )


def _seeds_for_grad(
    outputs: Sequence[Variable], given: Sequence[Variable | None], loss_scale: float | None
) -> dict[VariableNode, Variable]:
    seeds: dict[VariableNode, Variable] = {}
    for position, (y, gy) in enumerate(zip(outputs, given, strict=True)):
        if gy is not None:
            _check_gradient(f"grad: grad_outputs[{position}]", y, gy)
        elif not is_floating(y._filled()):
            continue
        else:
            gy = _ones_like(y, loss_scale)
        seeds[y.node] = _sum(seeds[y.node], gy) if y.node in seeds else gy
    return seeds


def _nodes_between(
    inputs: Sequence[VariableNode], seeds: dict[VariableNode, Variable]
) -> set[VariableNode]:
    """The nodes on a way from an input to an output: found backward first, then forward."""
    users: dict[VariableNode, list[FunctionNode]] = {}
    seen: set[FunctionNode] = set()
    waiting = [node for node in seeds if node.requires_grad]
    while waiting:
        function = waiting.pop()._creator_node
        if function is None or function in seen:
            continue
        seen.add(function)
        for node in function.inputs or ():
            if node.requires_grad:
                users.setdefault(node, []).append(function)
                waiting.append(node)
    between: set[VariableNode] = set()
    waiting = [node for node in inputs if node in users or node in seeds]
    while waiting:
        node = waiting.pop()
        if node in between:
            continue
        between.add(node)
        for function in users.get(node, ()):
            for reference in function.outputs or ():
                output = reference()
                if output is None or output._creator_node is not function:
                    continue  # dead, or unchained since
                if output in users or output in seeds:
                    waiting.append(output)
    return between


def unchain_backward(y: Variable) -> None:
    """What ``Variable.unchain_backward`` does: a loop, since graphs are deep."""
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None:
            continue
        for node in function.inputs or ():
            waiting.append(node._creator_node)
        function.unchain()

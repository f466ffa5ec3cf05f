"""The pass on arrays: a backward pass that gives arrays to ``backward`` in place of Variables.

Requirement: the gradients that nobody differentiates again need no Variables and no nodes. And no
``backward`` is written twice. So in such a pass ``x * y`` in a ``backward`` is a product of the
array library. And a function of tinynode, given arrays, gives arrays.

A pass is a pass on arrays if no graph is recorded, no hook watches, debug mode is off, and no
``vmap`` runs. A function takes part if the text of ``backward`` is valid for arrays, too: see
``_takes_arrays``. In the same pass, any other ``backward`` receives Variables.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from tinynode.configuration import config
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.dispatch import run_forward
from tinynode.core.hooks import thread_state
from tinynode.core.messages import (
    check_backward_gradient,
    explain_backward_error,
    gradients_of_targets,
)
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, Device, complex_dtypes, hidden_axes

_backwards: dict[type, Any] = {}  # the classes with a backward for arrays, and this backward


def device_of_pass(table: Any) -> Device | None:
    """The device of a pass on arrays; None for a pass on Variables.

    The gradients in the table become arrays.
    """
    if table.recorded or thread_state.hooks or config.debug or hidden_axes.stack:
        return None
    devices = {seed.device for seed in table.gradients.values()}
    device: Device | None = devices.pop() if len(devices) == 1 else None
    if device is None or "batched" in device.backend.capabilities:
        return None
    table.seeds = table.gradients
    table.gradients = {node: seed.raw for node, seed in table.gradients.items()}
    return device


def run_on_arrays(sweep: Any) -> None:
    """The loop of a pass on arrays. No hook watches a pass on arrays."""
    alone: Any  # in a chain, the next function: it needs no heap
    table, heap, wanted, alone = sweep.table, sweep.heap, sweep.wanted, None
    gradients, device = table.gradients, table.device
    while heap or alone is not None:
        function, alone, targets = heappop(heap)[2] if heap else alone, None, []
        for i, node in enumerate(function.inputs or ()):
            if node.requires_grad and (wanted is None or node in wanted):
                targets.append(i)
        if not targets:
            continue
        cls, method = type(function), getattr(function.backward, "__func__", None)
        if (
            not (method is _backwards.get(cls, 0) or _takes_arrays(cls, method))  # 0: none so far
            or function._local_hooks
            or function.output_device
            or function.inputs[0].device is not device
            or (complex_dtypes and function.is_complex)
        ):
            grad_outputs = None  # no longer needed in memory
            step_on_variables(sweep, function)
            continue
        # take the gradients of the outputs; a few lines for the usual case
        output: Any = function.outputs[0]() if len(function.outputs) == 1 else None
        if output in gradients and output._creator_node is function and not table.waiting:
            grad_outputs = (gradients.pop(output),)
            if table.keep is None or output in table.keep:
                table.kept[output] = grad_outputs[0]
        else:
            grad_outputs = table.take_grad_outputs(function)
        alone = step_on_arrays(sweep, function, tuple(targets), grad_outputs)


def step_on_arrays(
    sweep: Any, function: Any, targets: tuple[int, ...], grad_outputs: tuple[Array | None, ...]
) -> Any:
    """Run the backward of a function, and add the results to the gradients of the inputs.

    Returns:
        The function that waits alone, without the heap; else None.
    """
    gradients, array_types, alone = sweep.table.gradients, sweep.table.device.array_types, None
    try:
        grad_inputs = function.backward(targets, grad_outputs)
        if type(grad_inputs) is not tuple or len(grad_inputs) != len(targets):
            grad_inputs = gradients_of_targets(function, targets, grad_inputs)
    except Exception as error:
        explain_backward_error(error, function)
        raise
    for position, i in enumerate(targets):
        node, gx = function.inputs[i], grad_inputs[position]
        if gx is None:
            continue
        if type(gx) not in array_types or gx.shape != node.shape or gx.dtype is not node.dtype:
            gx = checked_gradient(gx, function, i, sweep.table.device)
        if (so_far := gradients.get(node)) is None:
            gradients[node] = gx
            creator = node._creator_node
            if creator is not None and creator not in sweep.seen:
                sweep.seen.add(creator)
                if alone is None and not sweep.heap:
                    alone = creator
                else:
                    heappush(sweep.heap, (-creator.rank, len(sweep.seen), creator))
        elif function.lazy_grad_sum:
            sweep.table.waiting.setdefault(node, []).append(gx)
        else:
            total = so_far + gx
            is_array = type(total) in array_types
            gradients[node] = total if is_array else sweep.table.device.lift(total)
    if sweep.heap and alone is not None:  # it came before the others, so the number is 0
        heappush(sweep.heap, (-alone.rank, 0, alone))
    return None if sweep.heap else alone


def _takes_arrays(cls: type[Any], method: Any) -> bool:
    """Whether ``method``, the ``backward`` of a function of the class, takes arrays.

    If so, ``_backwards`` keeps the method. A class says so with ``backward_takes_arrays = True``;
    a subclass has to repeat the line. The classes in ``tinynode.functions`` need no such line.
    """
    if method is None or method is not cls.backward:
        return False  # put into the instance
    if cls.backward_accumulate.__module__ != "tinynode.core.function_node":
        return False  # overridden: the gradients so far are Variables
    homes = cls.__module__, cls.backward.__module__
    is_ours = homes[0].startswith("tinynode.functions.") and homes[1].startswith("tinynode.")
    takes = bool(vars(cls).get("backward_takes_arrays", is_ours))
    if takes:
        _backwards[cls] = method
    return takes


def step_on_variables(sweep: Any, function: Any) -> None:
    """In a pass on arrays, the step of a function whose ``backward`` needs Variables."""
    table, device = sweep.table, sweep.table.device
    nodes = {*function.inputs, *(reference() for reference in function.outputs)}
    for node in nodes & table.gradients.keys():
        table.gradients[node] = _as_variable(table.gradients[node], node)
    thread_state.array_device = table.device = None
    try:
        sweep._step(function)
    finally:
        thread_state.array_device = table.device = device
    for node in nodes & table.gradients.keys():
        gx = table.gradients[node]
        if gx.device is device:
            table.gradients[node] = gx.raw
            if node.creator_node is None:
                table.seeds[node] = gx


def finish_pass(table: Any) -> None:
    """The gradients in the table become Variables again."""
    table.device = None
    for gradients in (table.gradients, table.kept):
        for node, gx in gradients.items():
            seed = table.seeds.get(node)
            is_seed = seed is not None and seed.raw is gx
            gradients[node] = seed if is_seed else _as_variable(gx, node)


def _as_variable(gx: Any, node: Any) -> Variable:
    """The gradient of a node as a Variable; of a finished ``vmap`` the gradient is one already."""
    return gx if type(gx) is Variable else wrap_array(gx, node.device, True)


def checked_gradient(gx: Any, function: Any, position: int, device: Device) -> Array:
    """The gradient of an input, as an array of the device.

    A Variable gives the array, and a scalar a 0-d array.

    Raises:
        GradientError: the gradient does not fit the input.
    """
    array = device.lift(raw_of(gx))
    if array is not None and not isinstance(gx, Variable):
        gx = wrap_array(array, device, True)
    check_backward_gradient(gx, function, position)
    return gx.raw


class Operand(ArrayMethods):
    """An array among the arguments of a function, in a pass on arrays.

    An Operand has the facts and the methods of a Variable, and no node.

    Attributes:
        raw: the array.
    """

    __slots__ = ("_device", "raw")
    requires_grad = is_leaf = False
    name = None

    def __init__(self, array: Array, device: Device) -> None:
        self.raw, self._device = array, device

    @property
    def device(self) -> Device:
        """The device of the pass."""
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self.raw.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.raw.shape)


def raw_of(x: Any) -> Array:
    """The array of a Variable or an ``Operand``; an array unchanged."""
    return x.raw if isinstance(x, ArrayMethods) else x


def constant_beside(x: Any, array: Array) -> Variable:
    """A constant of a ``backward``: a Variable beside a Variable, the array beside an array."""
    constant: Variable = wrap_array(array, x.device, False) if isinstance(x, Variable) else array
    return constant


def array_operand(value: Any) -> Variable | None:
    """A value as an ``Operand`` in a pass on arrays, else None; None for numbers, too."""
    device = thread_state.array_device
    if device is None:
        return None
    operand: Any = value
    if not isinstance(value, ArrayMethods):
        array = device.lift(value)
        operand = None if array is None else Operand(array, device)
    checked: Variable | None = operand
    return checked


def apply_to_arrays(function: Any, inputs: tuple[Any, ...]) -> Arrays:
    """``FunctionNode.apply`` in a pass on arrays: arrays in, arrays out, and no graph."""
    device, arrays = thread_state.array_device, []
    for x in inputs:
        array = x.raw if type(x) is Operand else x
        if type(array) not in device.array_types:
            array = device.lift(raw_of(x))
            if array is None:  # a number takes the dtype of the array beside
                return apply_to_arrays(function, _with_numbers_wrapped(function, inputs, device))
        arrays.append(array)
    return run_forward(function, tuple(arrays), device, function.output_device or device)


def _with_numbers_wrapped(
    function: Any, inputs: tuple[Any, ...], device: Device
) -> tuple[Variable, ...]:
    arrays = [(x, device.lift(raw_of(x))) for x in inputs]
    wrapped = [x if array is None else wrap_array(array, device, False) for x, array in arrays]
    variables: tuple[Variable, ...] = function.as_variables(tuple(wrapped))
    return variables

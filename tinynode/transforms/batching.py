"""Batching: how Variables cross to the batched device of vmap and back.

``IntoBatch`` and ``OutOfBatch`` cross the border between a device and its batched device. The
libraries tell the backend ``tinynode_batched`` how to work on the wrapped arrays.

A device may be batched over another batched device. That is so in nested vmaps, and where a
backward pass through a finished vmap runs inside of a second vmap. ``lifted_device`` finds the
device.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinynode.array_api import namespace_of_device
from tinynode.configuration import config, force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.conversion import as_variable, restore
from tinynode.core.dispatch import run_forward
from tinynode.core.function_node import FunctionNode, Indexes
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Array,
    Arrays,
    Device,
    HiddenAxis,
    add_at,
    below,
    get_device,
    hidden_axes,
    hides_variables,
    import_vmap,
    is_over,
    namespace_of,
    own_backend,
    put,
    register_device,
    sum_array,
    to_host,
)
from tinynode.errors import DeviceMixError, VmapError
from tinynode.functions.checked import checked
from tinynode.functions.indexing import AddAt, set_item
from tinynode.functions.masking import marks_handed_on
from tinynode.functions.searching import Where
from tinynode.net.helpers import OtherGradient
from tinynode.net.operator import constants_of
from tinynode.net.recorder import NetRecorder
from tinynode.net.registry import get_op_info, is_of_tinynode, register_op, type_name
from tinynode.net.schema import check_attributes
from tinynode.transforms.labelled import run_on_rows

pool: dict[tuple[Device, bool], dict[Device, weakref.ref[HiddenAxis]]] = {}
"""The batched devices over each device, each with the axis of the latest call. The second key is
True for Variables in a net. A device is free again if no graph holds the axis."""
_pool_lock = threading.RLock()  # re-entrant as in tinynode/generator.py


def new_axis(below: Device, size: int, is_recorded: bool | None = None) -> HiddenAxis:
    """A hidden axis over a device, with a batched device that no other living axis has.

    ``is_recorded`` says whether a net records the functions on the wrapped Variables; None asks
    whether a net is recorded now.
    """
    key = below, is_recording_net() if is_recorded is None else is_recorded
    with _pool_lock:
        taken = pool.setdefault(key, {})
        free = [device for device, reference in taken.items() if reference() is None]
        device = free[0] if free else _new_device(below, key[1], len(taken))
        axis = HiddenAxis(device, below, size)
        taken[device] = weakref.ref(axis)
    return axis


def _new_device(below: Device, is_recorded: bool, number: int) -> Device:
    library = LibraryOfVariables(below) if is_recorded else LibraryOfArrays(below)
    title = f"vmap({'recorded ' if is_recorded else ''}{below})"
    name = f"{title} {number + 1}" if number else title
    return register_device(import_vmap().Batched(name, library))


# --- the border ------------------------------------------------------------------------------


class _AtBorder(FunctionNode):
    """Base of the two functions at the border of a batch.

    Args:
        axis: the hidden axis.
        device: the device of y.
        place: the axis of the examples, or None.
        depth: the number of batched devices over the hidden axis in the device of y.
    """

    complex_rule = "conjugate"
    crosses_vmap = True
    output_device: Device

    def __init__(
        self, axis: HiddenAxis, device: Device, place: int | None, depth: int = 0
    ) -> None:
        self.axis = axis
        self.output_device = device
        self.place = place
        self.depth = depth

    def _device_back(self, gy: Variable) -> Device:
        """The device of the gradient of x."""
        (x,) = self.inputs or ()
        return _moved_likewise(x.device, self.output_device, gy.device)


class IntoBatch(_AtBorder):
    """y = x with the examples of a place in the hidden axis; with place None, x for all examples.

    x: (s with the examples at place) -> y: (s without the examples), on the batched device.
    dL/dx = OutOfBatch(dL/dy)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        if self.place is None:
            return (_shared_array(inputs[0], self.output_device, self.depth),)
        return (hidden(inputs[0], self.place, self.output_device),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        (gy,) = grad_outputs
        if gy.device is not self.output_device and is_over(gy.device, self.output_device):
            raise several_directions()
        device = self._device_back(gy)
        return OutOfBatch(self.axis, device, self.place, self.depth).apply(grad_outputs)


def several_directions() -> VmapError:
    """The error for gradients with a second hidden axis; ``along_basis`` goes on one by one."""
    return VmapError(
        "vmap: gradients of several directions at once come to a function of all examples. Call "
        "the pullback in a loop over the directions."
    )


class OutOfBatch(_AtBorder):
    """y = x with the hidden axis as an ordinary axis; with place None, the sum over all examples.

    x: (s), on the batched device -> y: (s with the examples at place), or (s).
    dL/dx = IntoBatch(dL/dy)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        if self.place is None:
            return (_summed_array(inputs[0], self.output_device, self.depth, self.axis.size),)
        return (shown(inputs[0].raw, self.place, self.axis.size),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        device = self._device_back(grad_outputs[0])
        return IntoBatch(self.axis, device, self.place, self.depth).apply(grad_outputs)


def hidden(array: Any, place: int, device: Device) -> Any:
    """An array with the axis of the examples hidden."""
    backend: Any = device.backend
    xp = backend.library.xp
    return backend.wrap(array if place == 0 else xp.moveaxis(array, place, 0))


def shown(raw: Any, place: int, size: int) -> Any:
    """The array of all examples, with the hidden axis at a place."""
    is_variable = isinstance(raw, Variable)
    xp = namespace_of_device(raw.device) if is_variable else namespace_of(raw)
    if raw.shape[0] != size:
        raw = xp.broadcast_to(raw, (size, *raw.shape[1:]))
        raw = raw if is_variable else xp.asarray(raw, copy=True)
    return raw if place == 0 else xp.moveaxis(raw, 0, place)


def _shared_array(array: Any, device: Device, depth: int) -> Any:
    """An array for all examples of the axis below ``depth`` batched devices."""
    backend: Any = device.backend
    if depth == 0:
        return backend.shared(array)
    return backend.wrap(_shared_array(array.raw, backend.library.device, depth - 1))


def _summed_array(array: Any, device: Device, depth: int, size: int) -> Any:
    """The sum over the examples of the axis below ``depth`` batched devices."""
    if depth == 0:
        raw = array.raw
        if raw.shape[0] == size:
            return sum_array(raw, 0, dtype=raw.dtype)
        return raw[0, ...] * size
    backend: Any = device.backend
    return backend.wrap(_summed_array(array.raw, backend.library.device, depth - 1, size))


def lifted(x: Variable, place: int | None, axis: HiddenAxis) -> Variable:
    """A Variable on the batched device of an axis; place None shares x with all examples."""
    device, depth = axis.device, 0
    if place is None:
        device = lifted_device(x.device, axis)
        inner = device
        while inner is not axis.device:
            inner, depth = below(inner), depth + 1
    if not hides_variables(device):
        inside: Variable = IntoBatch(axis, device, place, depth).apply((x,))[0]
        if x.requires_grad and not inside.requires_grad:  # no graph is recorded, but the Variable
            return wrap_array(inside.raw, device, True)  # is the same on both sides of the border
        return inside
    if place is not None:
        array = hidden(x, place, device)
    else:
        array = _shared_array(x.raw if depth else x, device, depth)
    y: Variable = wrap_array(array, device, x.requires_grad)
    if place is None and x.requires_grad:
        axis.shared.append(y)
    return y


def lowered(x: Variable, place: int | None, axis: HiddenAxis) -> Variable:
    """A Variable on the wrapped device, with the examples at a place; None adds them up."""
    if not hides_variables(axis.device):
        return OutOfBatch(axis, axis.below, place).apply((x,))[0]
    raw: Variable = x.raw.raw
    if place is not None:
        every: Variable = shown(raw, place, axis.size)
        return every
    return raw.sum(axis=0) if raw.shape[0] == axis.size else raw[0] * axis.size


# --- devices over devices --------------------------------------------------------------------


def lifted_device(device: Device, axis: HiddenAxis) -> Device:
    """The device inside of a hidden axis; the same device if the axis has no part in it.

    The device below the axis becomes the batched device. A device of a finished vmap over the
    device below becomes a device over the batched device.
    """
    inside: Device = axis.device
    if device is axis.below:
        return inside
    under: Device | None = below(device)
    if under is None or is_over(device, inside):
        return device
    over = lifted_device(under, axis)
    if over is under:
        return device
    if device not in axis.counterparts:
        axis.counterparts[device] = new_axis(over, 0, hides_variables(device))
    found: Device = axis.counterparts[device].device
    return found


def is_lifted(device: Device, other: Device) -> bool:
    """True if the running vmaps lift the other device to the device."""
    for axis in hidden_axes.stack:
        other = lifted_device(other, axis)
        if other is device:
            return True
    return False


def _moved_likewise(device: Device, like: Device, now: Device) -> Device:
    """The device, lifted by the running vmaps that lift ``like`` to ``now``."""
    for axis in hidden_axes.stack:
        if like is now:
            break
        device, like = lifted_device(device, axis), lifted_device(like, axis)
    return device


def batched(variables: Sequence[Variable]) -> list[Variable]:
    """Variables on one device: beside a Variable of an example, others are shared by all."""
    for axis in hidden_axes.stack:
        if any(is_over(x.device, axis.device) for x in variables):
            variables = [shared(x, axis) for x in variables]
    return list(variables)


def shared_with_examples(x: Variable) -> Variable:
    """A Variable on the innermost batched device, so that a gradient keeps the hidden axis."""
    for axis in hidden_axes.stack:
        x = shared(x, axis)
    return x


def shared(x: Variable, axis: HiddenAxis) -> Variable:
    """A Variable from below a hidden axis, shared by all examples; others unchanged."""
    return x if lifted_device(x.device, axis) is x.device else lifted(x, None, axis)


# --- writes ------------------------------------------------------------------------------------


def note_write(x: Any, result: Variable) -> None:
    """Remember the state of a Variable that a write moves to the batched device.

    Raises:
        DeviceMixError: no vmapped function runs, so the written value is on another device.
    """
    if result.device is x.device:
        return
    if not hidden_axes.stack:
        raise DeviceMixError(
            f"x[i] = v: x is on {x.device}, and the result is on another device. Move the value "
            f"with value.to_device({str(x.device)!r})."
        )
    note_move(as_variable(x))


def note_move(x: Variable) -> None:
    """Remember the state of a Variable that moves to the batched device."""
    state = x.node_or_none, x.raw, x.device, x.requires_grad, x.grad_var
    hidden_axes.stack[-1].moved.append((weakref.ref(x), *state))


def put_back_moved(axis: HiddenAxis) -> list[Variable]:
    """Give the Variables that outlive a vmapped function the old values; these Variables."""
    found = []
    for reference, node, raw, device, requires_grad, grad_var in reversed(axis.moved):
        x = reference()
        if x is None or x.device is device:  # freed, or back already
            continue
        found.append(x)
        restore(x, node, raw, grad_var)
        x._device, x._requires_grad = device, requires_grad
    return found


# --- the wrapped libraries -------------------------------------------------------------------


class LibraryOfArrays:
    """The array library of a device, for the batched backend."""

    is_recorded = False

    def __init__(self, device: Device) -> None:
        self.device = device
        self.xp: Any = device.xp

    def is_array(self, value: object) -> bool:
        """True for an array of the device."""
        return not isinstance(value, type) and self.device.owns(value)

    def from_host(self, array: Array) -> Any:
        """A NumPy array, on the device."""
        return self.device.from_host(array)

    def to_host(self, array: Any) -> Array:
        """An array of the device as a NumPy array."""
        return to_host(array)

    def put(self, array: Any, key: Any, value: Any) -> Any:
        """The array with a value at a key."""
        return put(array, key, value)

    def add_at(self, indices: Any, values: Any, length: int) -> Any:
        """Rows of values added up by index."""
        return add_at(indices, values, length)

    def run(self, node: FunctionNode, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode."""
        return run_forward(node, arrays, self.device, node.output_device or self.device)

    def run_on_rows(self, node: FunctionNode, arrays: Arrays) -> tuple[Any, ...] | None:
        """The outputs of cross entropy, from the rows of all examples; None for other nodes."""
        return run_on_rows(self, node, arrays)

    def synchronize(self) -> None:
        """Wait until the device has finished the work."""
        self.device.synchronize()


class LibraryOfVariables(LibraryOfArrays):
    """tinynode's namespace of a device: all work is on Variables, so a net records the work."""

    is_recorded = True

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.xp = namespace_of_device(device)

    def is_array(self, value: object) -> bool:
        """True for a Variable of the device, and for an array of the device."""
        if isinstance(value, Variable):
            return value.device is self.device
        return super().is_array(value)

    def from_host(self, array: Array) -> Any:
        """A NumPy array as a constant of the net."""
        return wrap_array(self.device.from_host(array), self.device, False)

    def to_host(self, array: Any) -> Array:
        """The values of a Variable: for checks of arguments, which read values in a net too."""
        return to_host(array.raw)

    def put(self, array: Any, key: Any, value: Any) -> Any:
        """A copy of the Variable with a value at a key."""
        return set_item(array, key, value)

    def add_at(self, indices: Any, values: Any, length: int) -> Any:
        """Rows of values added up by index."""
        return AddAt(length).apply((values, indices))[0]

    def run(self, node: FunctionNode, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode, as Variables of the net."""
        return node.apply(arrays)

    def is_elementwise(self, node: FunctionNode) -> bool:
        """True for a function of tinynode with one operand of each input for an element."""
        return is_of_tinynode(type(node)) and node.is_elementwise

    def run_elementwise(self, node: FunctionNode, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of an elementwise function of whole batches, as Variables of the net."""
        if not (node.is_broadcasting or isinstance(node, Where)):
            arrays = of_each_example(arrays, arrays)  # backward expects equal shapes
        whole = copy.copy(node)
        outputs = whole.apply(arrays)
        node.retain_inputs(whole.retained_input_indexes)
        node.retain_outputs(whole.retained_output_indexes)
        return outputs

    def with_gradient_of(
        self, node: FunctionNode, arrays: tuple[Any, ...], results: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The results of a FunctionNode's forward, with the node's own backward."""
        if is_exact(node, arrays, results):
            return results
        results = of_each_example(results, arrays)
        return gradient_of(node, len(arrays)).apply((*arrays, *results))

    def run_on_all(self, node: FunctionNode, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode for all examples, as Variables of the net."""
        prototype = copy.copy(node)
        outputs = AllExamples(prototype, self.device).apply(arrays)
        node.retain_inputs(prototype.retained_input_indexes)
        node.retain_outputs(prototype.retained_output_indexes)
        return outputs


# --- FunctionNodes as operators of a net -------------------------------------------------------


class AllExamples(FunctionNode):
    """The outputs of a FunctionNode in every example, as an operator of a net.

    x: (n, s), or (1, s) for all examples -> y: (n, t), or (1, t) if all inputs are shared.
    dL/dx = the node's backward in every example, added up for a shared x

    Args:
        prototype: a FunctionNode that was not applied; each run applies a copy.
        device: the device of the arrays.
    """

    complex_rule = "own"
    needs_values = True  # the prototype may look at values

    def __init__(self, prototype: FunctionNode, device: Device) -> None:
        self.prototype = prototype
        self.device = device

    @property
    def label(self) -> str:
        return f"vmap({self.prototype.label})"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(len(inputs)))
        outer = own_backend(inputs[0])  # of a vmap around, where operators nest
        device = self.device if outer is None else get_device(outer.name)
        axis = new_axis(device, 0, is_recorded=False)
        batch = axis.device
        backend: Any = batch.backend
        arrays = tuple([backend.wrap(x) for x in inputs])
        node = copy.copy(self.prototype)
        outputs = run_forward(node, arrays, batch, batch)
        self.prototype.retain_inputs(node.retained_input_indexes)
        self.prototype.retain_outputs(node.retained_output_indexes)
        return of_each_example(tuple([y.raw for y in outputs]), inputs)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        def apply(xs: tuple[Variable, ...], ys: tuple[Variable, ...]) -> tuple[Variable, ...]:
            return copy.copy(self.prototype).apply(xs)

        values = Values(self.get_retained_inputs(), (), grad_outputs)
        return gradients_of_examples(values, self, target_input_indexes, apply)


@register_op()
class GradientOf(OtherGradient):
    """ys with the backward of a FunctionNode; the functions of its forward have computed the ys.

    xs: (n, s), or (1, s) for all examples, ys: (n, t), or (1, t) -> ys.
    dL/dxs = the node's backward in every example, added up for a shared x   dL/dys = 0

    So a net has the simple functions of a forward, and a plan may fuse these functions. Their
    derivatives may differ: at 0 the derivative of sqrt(sum(x^2)) is NaN, of vector_norm 0.

    Args:
        kind: the registered type of the FunctionNode.
        constants: the constants of the FunctionNode, as pairs of name and value.
        retained: the indexes of the inputs and of the outputs that the FunctionNode retains.
        count: the number of xs.
    """

    complex_rule = "own"

    def __init__(
        self, kind: str, constants: tuple[Any, ...], retained: tuple[Indexes, Indexes], count: int
    ) -> None:
        super().__init__(count)
        self.kind: str = checked(self, "kind", kind)
        self.constants: tuple[Any, ...] = checked(self, "constants", constants)
        self.retained: tuple[Indexes, Indexes] = checked(self, "retained", retained)

    @property
    def label(self) -> str:
        return f"vmap({self.kind})"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(self.count))
        self.retain_outputs(range(len(inputs) - self.count))
        return super().forward(inputs)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        def connect(xs: tuple[Variable, ...], ys: tuple[Variable, ...]) -> tuple[Variable, ...]:
            arrays, results = tuple([x.raw for x in xs]), tuple([y.raw for y in ys])
            return self._node()._connect(xs, arrays, results, xs[0].device)

        values = Values(self.get_retained_inputs(), self.get_retained_outputs(), grad_outputs)
        targets = tuple([i for i in target_input_indexes if i < self.count])
        found = gradients_of_examples(values, self, targets, connect)
        return found + (None,) * (len(target_input_indexes) - len(targets))

    def _node(self) -> FunctionNode:
        """The FunctionNode, as after its forward."""
        node_class = get_op_info(self.kind).node_class
        node: FunctionNode = node_class.__new__(node_class)
        vars(node).update(check_attributes(self.kind, node_class, dict(self.constants)))
        inputs, outputs = self.retained
        node.retain_inputs(inputs)
        node.retain_outputs(outputs)
        return node


def gradient_of(node: FunctionNode, count: int) -> GradientOf:
    """The operator with the backward of a FunctionNode with ``count`` inputs, after forward."""
    retained = node.retained_input_indexes, node.retained_output_indexes
    constants = tuple(constants_of(node).items())
    return GradientOf(type_name(type(node)), constants, retained, count)


def is_exact(node: FunctionNode, inputs: Sequence[Variable], results: Sequence[Variable]) -> bool:
    """True if the functions of a FunctionNode's forward have the derivative of the node.

    That is so for functions of the node's own class, and for polynomials: all ways to compute a
    polynomial have the same derivatives.
    """
    ends = {x.node for x in inputs}
    waiting = [y.node for y in results]
    if not node.is_polynomial and any(end in ends for end in waiting):
        return False
    while waiting:
        end = waiting.pop()
        function = end.creator_node
        if end in ends or function is None:
            continue
        ends.add(end)
        if not (function.is_polynomial or type(function) is type(node)):
            return False
        waiting.extend(function.inputs or ())
    return True


def of_each_example(results: tuple[Any, ...], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results (n, t), if an input is (n, s): so each example has a gradient of its own.

    A result is (1, t) where forward only takes the shape of the input.
    """
    size = _number_of_examples(inputs)
    return tuple([y if y.shape[0] == size else shown(y, 0, size) for y in results])


def _number_of_examples(arrays: Sequence[Any]) -> int:
    """The length of the first axes; 1 is the length of an array that all examples share."""
    return max({x.shape[0] for x in arrays} - {1}, default=1)


class Values(NamedTuple):
    """The Variables of a backward on whole batches: (n, s), or (1, s) for all examples."""

    xs: Sequence[Variable]
    ys: Sequence[Variable]
    grad_outputs: Sequence[Variable | None]

    def on_one_device(self) -> Values:
        """The Variables, shared by the examples of a vmap that gives one of the gradients."""
        given = [gy for gy in self.grad_outputs if gy is not None]
        each = iter(batched([*self.xs, *self.ys, *given]))
        xs, ys = [next(each) for _ in self.xs], [next(each) for _ in self.ys]
        return Values(xs, ys, [None if gy is None else next(each) for gy in self.grad_outputs])


def gradients_of_examples(
    values: Values,
    function: FunctionNode,
    targets: Indexes,
    apply: Callable[[tuple[Variable, ...], tuple[Variable, ...]], tuple[Variable, ...]],
) -> tuple[Variable | None, ...]:
    """The gradients of the targets: (n, s); or (1, s), added up, for a shared x.

    Args:
        values: the inputs, the known outputs, and the gradients of the outputs.
        function: the operator on whole batches.
        targets: the indexes of the inputs that need a gradient.
        apply: from the inputs and the known outputs of each example to the outputs, connected to
            the inputs.
    """
    xs, ys, grad_outputs = values.on_one_device()
    size = _number_of_examples([x for x in (*xs, *grad_outputs) if x is not None])
    axis = new_axis(xs[0].device, size, is_recording())
    stack = hidden_axes.stack
    depth = len(stack)
    try:
        stack.append(axis)
        inner = tuple([_row(x, axis) for x in xs])
        gys = [None if gy is None else _row(gy, axis) for gy in grad_outputs]
        with force_backprop_mode():  # a graph for ``grad``, in any backward
            outputs = apply(inner, tuple([_row(y, axis) for y in ys]))
        pairs = [(y, gy) for y, gy in zip(outputs, gys, strict=True) if gy is not None]
        with marks_handed_on(function, outputs, is_recording()):
            gxs = grad(
                [y for y, _ in pairs],
                [inner[i] for i in targets],
                [gy for _, gy in pairs],
                enable_double_backprop=config.enable_backprop or is_recording_net(),
            )
        shared = [xs[i].shape[0] == 1 and size != 1 for i in targets]
        pairs_of = zip(gxs, shared, strict=True)
        return tuple([None if gx is None else _whole(gx, axis, one) for gx, one in pairs_of])
    finally:
        del stack[depth:]


def is_recording() -> bool:
    """True while functions are recorded: for a net, or for the gradient of an operator."""
    return any(isinstance(hook, NetRecorder) for hook in thread_state.hooks.values())


def _row(x: Variable, axis: HiddenAxis) -> Variable:
    """A Variable (n, s) as (s) in each example, and (1, s) as (s) for all examples."""
    if x.shape[0] == 1 and axis.size != 1:
        return lifted(x[0], None, axis)
    return lifted(x, 0, axis)


def _whole(gx: Variable, axis: HiddenAxis, is_shared: bool) -> Variable:
    """A gradient of each example as (n, s), or the sum over all examples as (1, s)."""
    if is_shared:
        return lowered(gx, None, axis)[None]
    return lowered(gx, 0, axis)

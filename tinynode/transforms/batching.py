"""Batching: how Variables cross to the batched device of vmap and back.

``IntoBatch`` and ``OutOfBatch`` cross the border between a device and its batched device. The
libraries tell the backend ``tinynode_batched`` how to work on the wrapped arrays.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from typing import Any

from tinynode.array_api import namespace_of_device
from tinynode.configuration import config
from tinynode.core.backprop import grad
from tinynode.core.conversion import as_variable
from tinynode.core.dispatch import run_forward
from tinynode.core.function_node import FunctionNode, Gradient, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable, restore, wrap_array
from tinynode.devices import (
    Array,
    Arrays,
    Device,
    HiddenAxis,
    add_at,
    hidden_axes,
    import_vmap,
    namespace_of,
    put,
    register_device,
    sum_array,
    to_host,
)
from tinynode.errors import DeviceMixError
from tinynode.functions.indexing import AddAt, set_item

batched_devices: dict[tuple[Device, bool], Device] = {}
"""The batched device over each device; the second key is True for Variables in a net."""


class IntoBatch(FunctionNode):
    """y = x with the examples of an axis in the hidden axis; with axis None, x for all examples.

    x: (s with the examples at axis) -> y: (s without the axis), on the batched device.
    dL/dx = OutOfBatch(dL/dy)
    """

    complex_rule = "conjugate"
    crosses_vmap = True
    output_device: Device

    def __init__(self, device: Device, axis: int | None, size: int) -> None:
        self.output_device = device
        self.axis = axis
        self.size = size

    def forward(self, inputs: Arrays) -> Arrays:
        return (hidden(inputs[0], self.axis, self.output_device),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Gradient:
        (x,) = self.inputs or ()
        return OutOfBatch(x.device, self.axis, self.size).apply(grad_outputs)  # type: ignore[return-value]


class OutOfBatch(FunctionNode):
    """y = x with the hidden axis as an ordinary axis; with axis None, the sum over all examples.

    x: (s), on the batched device -> y: (s with the examples at axis), or (s).
    dL/dx = IntoBatch(dL/dy)
    """

    complex_rule = "conjugate"
    crosses_vmap = True
    output_device: Device

    def __init__(self, device: Device, axis: int | None, size: int) -> None:
        self.output_device = device
        self.axis = axis
        self.size = size

    def forward(self, inputs: Arrays) -> Arrays:
        raw = inputs[0].raw
        if self.axis is not None:
            return (shown(raw, self.axis, self.size),)
        if raw.shape[0] == self.size:
            return (sum_array(raw, 0, dtype=raw.dtype),)
        return (raw[0, ...] * self.size,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Gradient:
        (x,) = self.inputs or ()
        return IntoBatch(x.device, self.axis, self.size).apply(grad_outputs)  # type: ignore[return-value]


def hidden(array: Any, axis: int | None, device: Device) -> Any:
    """An array with the axis of the examples hidden; with axis None, shared by all examples."""
    backend: Any = device.backend
    xp = backend.library.xp
    if axis is None:
        return backend.shared(array)
    return backend.wrap(array if axis == 0 else xp.moveaxis(array, axis, 0))


def shown(raw: Any, axis: int, size: int) -> Any:
    """The array of all examples, with the hidden axis at ``axis``."""
    xp = raw.xp if isinstance(raw, Variable) else namespace_of(raw)
    if isinstance(raw, Variable):
        xp = namespace_of_device(raw.device)
    if raw.shape[0] != size:
        raw = xp.broadcast_to(raw, (size, *raw.shape[1:]))
        raw = raw if isinstance(raw, Variable) else xp.asarray(raw, copy=True)
    return raw if axis == 0 else xp.moveaxis(raw, 0, axis)


def lowered(x: Variable, axis: int | None, hidden_axis: HiddenAxis) -> Variable:
    """A Variable on the wrapped device, with the examples at an axis; None adds them up."""
    backend: Any = hidden_axis.device.backend
    if not backend.library.is_recorded:
        return OutOfBatch(hidden_axis.below, axis, hidden_axis.size).apply((x,))[0]
    raw: Variable = x.raw.raw
    if axis is not None:
        every: Variable = shown(raw, axis, hidden_axis.size)
        return every
    return raw.sum(axis=0) if raw.shape[0] == hidden_axis.size else raw[0] * hidden_axis.size


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
    x = as_variable(x)
    state = x.node_or_none, x.raw, x.device, x.requires_grad, x.grad_var
    hidden_axes.stack[-1].moved.append((weakref.ref(x), *state))


def put_back_moved(axis: HiddenAxis) -> bool:
    """Give the Variables that outlive a vmapped function the old values; True if there are any."""
    found = False
    for reference, node, raw, device, requires_grad, grad_var in reversed(axis.moved):
        x = reference()
        if x is None:
            continue
        found = True
        restore(x, node, raw, grad_var)
        x._device, x._requires_grad = device, requires_grad
    return found


def batched(variables: Sequence[Variable]) -> list[Variable]:
    """Variables on one device: beside a Variable of one example, others are shared by all."""
    present = {x.device for x in variables}
    for axis in hidden_axes.stack:
        if axis.device in present or _is_above(axis, present):
            variables = [shared(x, axis) for x in variables]
    return list(variables)


def _is_above(axis: HiddenAxis, present: set[Device]) -> bool:
    """True if a device of a vmap inside of the axis is present."""
    place = hidden_axes.stack.index(axis)
    return any(inner.device in present for inner in hidden_axes.stack[place:])


def shared_with_examples(x: Variable) -> Variable:
    """A Variable on the innermost batched device, so that a gradient keeps the hidden axis."""
    for axis in hidden_axes.stack:
        x = shared(x, axis)
    return x


def shared(x: Variable, axis: HiddenAxis) -> Variable:
    """A Variable from below a hidden axis, shared by all examples; others unchanged."""
    return lifted(x, None, axis) if x.device is axis.below else x


def lifted(x: Variable, axis: int | None, hidden_axis: HiddenAxis) -> Variable:
    """A Variable on the batched device."""
    device = hidden_axis.device
    library: Any = device.backend
    if library.library.is_recorded:
        return wrap_array(hidden(x, axis, device), device, x.requires_grad)
    return IntoBatch(device, axis, hidden_axis.size).apply((x,))[0]


def batched_device(below: Device, is_recorded: bool | None = None) -> Device:
    """The batched device over a device: the same object at each call.

    ``is_recorded`` says whether a net records the functions on the wrapped Variables; None asks
    whether a net is recorded now.
    """
    key = below, is_recording_net() if is_recorded is None else is_recorded
    found = batched_devices.get(key)
    if found is None:
        library = LibraryOfVariables(below) if key[1] else LibraryOfArrays(below)
        word = "recorded " if key[1] else ""
        made = register_device(import_vmap().Batched(f"vmap({word}{below})", library))
        found = batched_devices.setdefault(key, made)
    return found


class LibraryOfArrays:
    """The array library of a device, for the batched backend."""

    is_recorded = False

    def __init__(self, device: Device) -> None:
        self.device = device
        self.name = str(device)
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

    def run_on_all(self, node: FunctionNode, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode for all examples, as Variables of the net."""
        prototype = copy.copy(node)
        outputs = AllExamples(prototype, self.device).apply(arrays)
        node.retain_inputs(prototype._retained_input_indexes)
        node.retain_outputs(prototype._retained_output_indexes)
        return outputs


class AllExamples(FunctionNode):
    """The outputs of a FunctionNode in every example, as an operator of a net.

    x: (n, s), or (1, s) for all examples -> y: (n, t), or (1, t) if all inputs are shared.
    dL/dx = the node's backward in every example, added up for a shared x

    Args:
        prototype: a FunctionNode that was not applied; each run applies a copy.
        device: the device of the arrays.
    """

    def __init__(self, prototype: FunctionNode, device: Device) -> None:
        self.prototype = prototype
        self.device = device

    @property
    def label(self) -> str:
        return f"vmap({self.prototype.label})"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(len(inputs)))
        batch = batched_device(self.device, is_recorded=False)
        backend: Any = batch.backend
        arrays = tuple([backend.wrap(x) for x in inputs])
        node = copy.copy(self.prototype)
        outputs = run_forward(node, arrays, batch, batch)
        self.prototype.retain_inputs(node._retained_input_indexes)
        self.prototype.retain_outputs(node._retained_output_indexes)
        return tuple([y.raw for y in outputs])

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        xs = self.get_retained_inputs()
        size = max(x.shape[0] for x in (*xs, *(gy for gy in grad_outputs if gy is not None)))
        below = xs[0].device
        axis = HiddenAxis(batched_device(below), below, size, [])
        hidden_axes.stack.append(axis)
        try:
            inner = [_row(x, axis) for x in xs]
            gys = [None if gy is None else _row(gy, axis) for gy in grad_outputs]
            ys = copy.copy(self.prototype).apply(inner)
            pairs = [(y, gy) for y, gy in zip(ys, gys, strict=True) if gy is not None]
            gxs = grad(
                [y for y, _ in pairs],
                [inner[i] for i in target_input_indexes],
                [gy for _, gy in pairs],
                enable_double_backprop=config.enable_backprop or is_recording_net(),
            )
            shared = [xs[i].shape[0] == 1 and size > 1 for i in target_input_indexes]
            pairs_of = zip(gxs, shared, strict=True)
            return tuple([None if gx is None else _whole(gx, axis, one) for gx, one in pairs_of])
        finally:
            hidden_axes.stack.pop()


def _row(x: Variable, axis: HiddenAxis) -> Variable:
    """A Variable (n, s) as (s) in each example, and (1, s) as (s) for all examples."""
    if x.shape[0] == 1 and axis.size > 1:
        return lifted(x[0], None, axis)
    return lifted(x, 0, axis)


def _whole(gx: Variable, axis: HiddenAxis, is_shared: bool) -> Variable:
    """A gradient of each example as (n, s), or the sum over all examples as (1, s)."""
    if is_shared:
        return lowered(gx, None, axis)[None]
    return lowered(gx, 0, axis)

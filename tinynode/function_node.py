"""FunctionNode: one application of a function, and an edge bundle of the graph.

Requirement: a new function is one class with ``forward`` and ``backward``, and ``apply`` can be
stepped through phase by phase:

    unwrap    the arrays, the device, and whether a gradient is required
    check     check_type_forward
    hooks     forward_preprocess
    run       forward, by the device's backend
    hooks     forward_postprocess
    wrap      the outputs
    connect   x.node <- f <- y.node, and what the function retains

A FunctionNode holds its input nodes strongly and its output nodes weakly, so a graph has no
reference cycles: it is freed as soon as the last variable that needs it goes.
"""

from __future__ import annotations

import time
import traceback
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tinynode import debug
from tinynode.backend import (
    Array,
    Arrays,
    Device,
    Fallback,
    backend_of,
    count_use,
    current_device,
    device_of,
    fallback_uses,
    is_floating,
)
from tinynode.configuration import config
from tinynode.errors import (
    DeviceMixError,
    GraphError,
    HookError,
    OperandError,
    OutputError,
    describe,
)
from tinynode.function_hook import FunctionHook, hooks_for, thread_state
from tinynode.type_check import run_check
from tinynode.variable import Variable, wrap_array
from tinynode.variable_node import VariableNode

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple

Indexes: TypeAlias = tuple[int, ...]
Gradients: TypeAlias = tuple[Variable | None, ...]


class FunctionNode:
    """Base class of differentiable functions; an instance is one application.

    Write ``forward`` on arrays and ``backward`` on Variables. Since ``backward`` is made of
    differentiable functions, its result can be differentiated again. A function is a pure step:
    every array that it uses is an input of ``apply`` or an output, and the attributes that its
    constructor sets are hashable constants.

    Attributes:
        inputs: the input VariableNodes; None until ``apply`` has recorded a graph.
        outputs: weak references to the output VariableNodes; None likewise.
        rank: the largest rank of the inputs.
        stack: where it was applied, in debug mode; else None.
        lazy_grad_sum: ``config.lazy_grad_sum`` at the time of ``apply``.
        is_elementwise: promises that every output has one and the same shape.
        output_device: the device of the outputs, where it is not that of the inputs.
    """

    inputs: tuple[VariableNode, ...] | None = None
    outputs: tuple[weakref.ref[VariableNode], ...] | None = None
    rank: int = 0
    stack: traceback.StackSummary | None = None
    lazy_grad_sum: bool = False
    is_elementwise: bool = False
    output_device: Device | None = None
    retained_checksums: tuple[tuple[str, Array, int], ...] = ()

    _applied: bool = False
    _local_hooks: dict[str, FunctionHook] | None = None
    _retained_input_indexes: Indexes = ()
    _retained_output_indexes: Indexes = ()
    _input_data: tuple[Array | None, ...] = ()
    _output_data: tuple[Array | None, ...] = ()

    # --- apply, phase by phase ---------------------------------------------------------------

    def apply(self, inputs: Sequence[Variable | Array]) -> tuple[Variable, ...]:
        """Compute the outputs and grow the graph.

        Args:
            inputs: Variables or arrays. Arrays are wrapped, and receive no gradient.

        Returns:
            A tuple of output Variables, also where there is only one.

        Raises:
            InvalidType: ``check_type_forward`` refused the inputs.
            DeviceMixError: the inputs do not stand on one device.
            OutputError: ``forward`` did not return a tuple of arrays.
            GraphError: this instance was applied before.
        """
        if self._applied or type(inputs) is not tuple:
            inputs = self._as_tuple(inputs)
        variables, arrays, device, requires_grad = self._unwrap(inputs)
        self._check_types(arrays)
        watched = thread_state.watched or self._local_hooks is not None or config.debug
        run = self._run_watched if watched else self._run
        output_device = self.output_device or device
        output_arrays = run(device, output_device, arrays)
        outputs = self._wrap(output_arrays, output_device, requires_grad)
        self._applied = True
        if requires_grad and config.enable_backprop:
            self._connect(variables, arrays, outputs, output_arrays)
        if watched:
            self._report(variables, outputs)
        return outputs

    def _as_tuple(self, inputs: Any) -> tuple[Variable | Array, ...]:
        """The inputs as a tuple; refuses a Variable in place of one, and a second application."""
        if self._applied:
            raise GraphError(
                f"{self.label}: this instance was applied before. A FunctionNode is one "
                "application: make a new instance for each call."
            )
        if isinstance(inputs, Variable) or hasattr(inputs, "dtype"):
            raise OperandError(
                f"{self.label}.apply: inputs must be a tuple, got {describe(inputs)}. Write "
                "apply((x,)) for one."
            )
        return tuple(inputs)

    def _unwrap(
        self, inputs: Sequence[Variable | Array]
    ) -> tuple[Sequence[Variable], Arrays, Device, bool]:
        """The inputs as Variables and as arrays, their device, whether one requires a gradient."""
        arrays, device, requires_grad = [], None, False
        for x in inputs:
            if not isinstance(x, Variable) or x._array is None:
                return self._unwrap(self._wrap_inputs(inputs))
            if x._device is not device:
                if device is not None:
                    self._raise_mixed(inputs)
                device = x._device
            requires_grad = requires_grad or x._requires_grad
            arrays.append(x._array)
        return inputs, tuple(arrays), device or current_device(), requires_grad

    def _wrap_inputs(self, inputs: Sequence[Variable | Array]) -> tuple[Variable, ...]:
        """Wrap the arrays among the inputs: on the Variables' device if its memory is theirs."""
        devices = [x._device for x in inputs if isinstance(x, Variable)]
        wrapped = []
        for position, x in enumerate(inputs):
            if isinstance(x, Variable):
                if x._array is None:
                    raise GraphError(f"{self.label}: variable {x.name or ''} is empty (no array).")
                wrapped.append(x)
                continue
            shared = devices and devices[0].holds(x)
            device = devices[0] if shared else device_of(x, self.label, f"input {position}")
            wrapped.append(wrap_array(x, device, False))
        return tuple(wrapped)

    def _raise_mixed(self, inputs: Sequence[Any]) -> None:
        parts = [f"input {i} on {x.device}" for i, x in enumerate(self._wrap_inputs(inputs))]
        raise DeviceMixError(
            f"{self.label}: incompatible array types are mixed in the forward input: "
            f"{', '.join(parts)}. Move them to one device with x.to_device(...)."
        )

    def _check_types(self, arrays: Arrays) -> None:
        """Call check_type_forward where the class, or the instance, brings one."""
        check = getattr(self.check_type_forward, "__func__", None)
        if check is not FunctionNode.check_type_forward and config.type_check:
            run_check(self, arrays)

    def _run_watched(self, device: Device, output_device: Device, arrays: Arrays) -> Arrays:
        """As ``_run``, between the hooks' callbacks, and with what debug mode asks for."""
        if config.debug:
            self.stack = debug.capture_stack()
        hooks = hooks_for(self._local_hooks)
        for hook in hooks:
            hook.forward_preprocess(self, arrays)
        outputs = self._run(device, output_device, arrays)
        for hook in hooks:
            hook.forward_postprocess(self, arrays)
        if config.debug:
            debug.check_nan(self, outputs, "forward")
        return outputs

    def _report(self, inputs: Sequence[Variable], outputs: tuple[Variable, ...]) -> None:
        """Tell the observers, and in debug mode remember what the retained arrays look like."""
        if config.debug and self.inputs is not None:
            self._remember_checksums()
        for observer in thread_state.observers:
            observer.applied(self, tuple(inputs), outputs)

    def _run(self, device: Device, output_device: Device, arrays: Arrays) -> Arrays:
        """The output arrays: by the backend's own kernel, or else by the portable forward."""
        outputs = device.backend.forward(self, arrays)
        if type(outputs) is not tuple:
            outputs = self._run_portable(outputs, device, arrays)
        for output in outputs:
            if type(output) not in output_device.array_types:
                return self._lift(outputs, output_device)
        return outputs

    def _run_portable(self, result: Any, device: Device, arrays: Arrays) -> Arrays:
        """What to do with a forward result that is no tuple: run forward after a Fallback."""
        if result is Fallback or isinstance(result, Fallback):
            reason = result.reason if isinstance(result, Fallback) else "no reason given"
            self._retained_input_indexes = self._retained_output_indexes = ()
            start = time.perf_counter()
            result = self.forward(arrays)
            seconds = time.perf_counter() - start
            count_use(fallback_uses, (device.backend.name, self.label, reason), seconds)
        if isinstance(result, tuple):
            return tuple(result)
        raise OutputError(
            f"forward output must be a tuple ({self.label})\nActual: {describe(result)}\n"
            "Try: return (y,) with a comma, for one output too."
        )

    def _lift(self, outputs: Arrays, device: Device) -> Arrays:
        """Check each output; scalars of the array library become 0-d arrays."""
        lifted = []
        for position, output in enumerate(outputs):
            array = None if output is None else device.lift(output)
            if array is None and output is not None:
                raise OutputError(
                    f"forward output must be a tuple of arrays of device {device} "
                    f"({self.label})\nActual: output {position} is {describe(output)}"
                )
            lifted.append(array)
        return tuple(lifted)

    def _wrap(
        self, output_arrays: Arrays, device: Device, requires_grad: bool
    ) -> tuple[Variable, ...]:
        """The outputs as Variables; a floating one requires a gradient if an input does."""
        if len(output_arrays) == 1:  # the usual case
            (array,) = output_arrays
            if requires_grad and (array is None or array.dtype not in device.floating_dtypes):
                requires_grad = device.is_floating(array)
            return (wrap_array(array, device, requires_grad),)
        if self.is_elementwise:
            self._check_elementwise(output_arrays)
        outputs = []
        for array in output_arrays:
            outputs.append(wrap_array(array, device, requires_grad and device.is_floating(array)))
        return tuple(outputs)

    def _check_elementwise(self, outputs: Arrays) -> None:
        shapes = [tuple(y.shape) for y in outputs if y is not None]
        if len(set(shapes)) > 1:
            raise GraphError(
                f"{self.label} has is_elementwise = True, which promises outputs of one shape; "
                f"its forward returned the shapes {', '.join(map(str, shapes))}."
            )

    def _connect(
        self,
        variables: Sequence[Variable],
        arrays: Arrays,
        outputs: tuple[Variable, ...],
        output_arrays: Arrays,
    ) -> None:
        """Put this function between the nodes of its inputs and outputs, and retain arrays."""
        inputs, references, rank = [], [], 0
        for x in variables:
            node = x._node or x.node
            if node.rank > rank:
                rank = node.rank
            inputs.append(node)
        for y in outputs:
            y._node = node = VariableNode(y, self, rank + 1)
            references.append(weakref.ref(node))
        self.rank = rank
        self.inputs = tuple(inputs)
        self.outputs = tuple(references)
        if config.lazy_grad_sum:
            self.lazy_grad_sum = True
        try:
            if self._retained_input_indexes:
                self._input_data = _retain(self._retained_input_indexes, inputs, arrays)
            if self._retained_output_indexes:
                nodes = [y.node for y in outputs]
                self._output_data = _retain(self._retained_output_indexes, nodes, output_arrays)
        except (IndexError, TypeError):
            raise IndexError(
                f"{self.label}: forward called retain_inputs({self._retained_input_indexes}) with "
                f"{len(inputs)} inputs and retain_outputs({self._retained_output_indexes}) with "
                f"{len(outputs)} outputs: one of these indexes does not exist."
            ) from None

    def _remember_checksums(self) -> None:
        retained = [(f"input {i}", self._input_data[i]) for i in self._retained_input_indexes]
        for i in self._retained_output_indexes:
            retained.append((f"output {i}", self._output_data[i]))
        self.retained_checksums = tuple(
            (what, x, debug.checksum(x)) for what, x in retained if x is not None
        )

    # --- what a function defines -------------------------------------------------------------

    @property
    def label(self) -> str:
        """A short text for messages and pictures: the class name, unless overridden."""
        return type(self).__name__

    @property
    def _impl_name(self) -> str:
        """The name that profilers show."""
        return type(self).__name__

    @property
    def user_function(self) -> Any:
        """What ``VariableNode.creator`` gives: this node, or an old-style Function behind it."""
        return self

    @property
    def node(self) -> FunctionNode:
        """The FunctionNode itself; an old-style Function has its adapter here."""
        return self

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        """Check the inputs with ``type_check.expect``; by default, nothing."""

    def forward(self, inputs: Arrays) -> Arrays:
        """The outputs, a tuple of arrays, from a tuple of arrays.

        Written once against the Array API standard. Or override ``forward_cpu`` and
        ``forward_gpu``: by default this calls one of them, as the arrays' backend says.
        """
        if not inputs:
            raise GraphError(f"{self.label}: override forward() in a function without inputs.")
        if "gpu" in backend_of(inputs[0]).capabilities:
            return self.forward_gpu(inputs)
        return self.forward_cpu(inputs)

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        """The outputs, from arrays in the CPU's memory."""
        raise NotImplementedError(f"{self.label} has neither forward() nor forward_cpu().")

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        """The outputs, from arrays in a GPU's memory."""
        raise NotImplementedError(f"{self.label} has neither forward() nor forward_gpu().")

    def forward_fast(self, inputs: Arrays) -> Any:
        """The outputs on a fast path, or ``Fallback`` to ask for the portable forward."""
        return Fallback

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Any:
        """The gradients of the inputs, from those of the outputs.

        Args:
            target_input_indexes: sorted indexes of the inputs whose gradients are asked for; at
                least one.
            grad_outputs: a Variable for each output, None where there is no gradient.

        Returns:
            A tuple as long as the inputs, or as ``target_input_indexes``; None for an input that
            gets no gradient. By default None for each: the function is not differentiable.
        """
        return (None,) * len(target_input_indexes)

    def backward_accumulate(
        self, target_input_indexes: Indexes, grad_outputs: Gradients, grad_inputs: Gradients
    ) -> Any:
        """As ``backward``, fused with adding the gradients that the inputs already have.

        Override it where adding in place of returning is cheaper.

        Args:
            target_input_indexes: as for ``backward``.
            grad_outputs: as for ``backward``.
            grad_inputs: what other functions contributed to the target inputs so far, None where
                nothing. A variable at several positions has its gradient at the first only.

        Returns:
            A tuple as long as ``target_input_indexes``, with ``grad_inputs`` added in.
        """
        gradients = self.backward(target_input_indexes, grad_outputs)
        if len(gradients) != len(target_input_indexes):
            gradients = tuple(gradients[i] for i in target_input_indexes)
        accumulated = []
        for gx, other in zip(gradients, grad_inputs, strict=True):
            accumulated.append(other if gx is None else gx if other is None else gx + other)
        return tuple(accumulated)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(
            f"{self.label} is a FunctionNode, which is not callable: "
            f"use {self.label}().apply((x,))."
        )

    # --- retaining -----------------------------------------------------------------------------

    def retain_inputs(self, indexes: Iterable[int]) -> None:
        """Keep these inputs' arrays for backward. Call it from forward; the last call counts."""
        self._retained_input_indexes = _positions(self, "retain_inputs", indexes)

    def retain_outputs(self, indexes: Iterable[int]) -> None:
        """Keep these outputs' arrays for backward. Call it from forward; the last call counts."""
        self._retained_output_indexes = _positions(self, "retain_outputs", indexes)

    def get_retained_inputs(self) -> tuple[Variable, ...]:
        """The retained inputs as Variables, in the order of the indexes; ``()`` if there are none.

        It is the user's Variable where that still has the array that forward saw, else a fresh one
        on the same node.
        """
        if self.inputs is None:
            return ()
        retained = []
        for i in self._retained_input_indexes:
            retained.append(self.inputs[i].variable_with(self._input_data[i]))
        return tuple(retained)

    def get_retained_outputs(self) -> tuple[Variable, ...]:
        """The retained outputs as Variables, in the order of the indexes; ``()`` if none.

        An output that forward gave as None comes back as None.

        Where an output's node is gone because nobody used the output, a fresh node takes its place
        as an output of this function, so that double backprop goes through it.
        """
        if self.outputs is None:
            return ()
        retained: list[Any] = []
        for i in self._retained_output_indexes:
            node = self.outputs[i]()
            array = self._output_data[i]
            if array is None:
                retained.append(None)
            elif node is None:
                retained.append(self._revive_output(i, array))
            else:
                retained.append(node.variable_with(array))
        return tuple(retained)

    def _revive_output(self, index: int, array: Array) -> Variable:
        assert self.outputs is not None and self.inputs is not None
        device = self.output_device or self.inputs[0].device
        variable = wrap_array(array, device, is_floating(array))
        variable.node.creator_node = self
        variable.node.data = array
        outputs = list(self.outputs)
        outputs[index] = weakref.ref(variable.node)
        self.outputs = tuple(outputs)
        return variable

    @property
    def output_data(self) -> tuple[Array | None, ...]:
        """The retained output arrays, None for each output that is not retained."""
        if self.outputs is None or not self._retained_output_indexes:
            raise GraphError(
                f"{self.label}: retain_outputs() was not called, or no graph recorded."
            )
        return self._output_data

    def retained_in_data(self) -> tuple[Array | None, ...]:
        """The input arrays, None for each that is not retained: the hooks' ``in_data``."""
        return self._input_data or (None,) * len(self.inputs or ())

    def unchain(self) -> None:
        """Take this function out of the graph: its outputs become leaves of their rank."""
        for reference in self.outputs or ():
            node = reference()
            if node is not None:
                node.unchain()
        self.inputs = None
        self.outputs = None
        self._input_data = ()
        self._output_data = ()
        self.retained_checksums = ()

    # --- hooks of this one function --------------------------------------------------------------

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks of this function, by name, in the order of registration."""
        if self._local_hooks is None:
            self._local_hooks = {}
        return self._local_hooks

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Register a hook for this function only; ``name`` defaults to the hook's.

        Raises:
            TypeError: the object is no FunctionHook.
            HookError: the function has a hook of that name.
        """
        if not isinstance(hook, FunctionHook):
            raise TypeError(f"add_hook: expected a FunctionHook, got {describe(hook)}.")
        key = hook.name if name is None else name
        if key in self.local_function_hooks:
            raise HookError(f"Hook {key} already exists in {self.label}: give it another name.")
        self.local_function_hooks[key] = hook
        try:
            hook.added(self)
        except BaseException:
            del self.local_function_hooks[key]
            raise

    def delete_hook(self, name: str) -> None:
        """Unregister a hook of this function.

        Raises:
            HookError: the function has no hook of that name.
        """
        if name not in self.local_function_hooks:
            raise HookError(
                f"Hook {name} does not exist in {self.label}: it has "
                f"{sorted(self.local_function_hooks)}."
            )
        try:
            self.local_function_hooks[name].deleted(self)
        finally:
            del self.local_function_hooks[name]


def _positions(function: FunctionNode, method: str, indexes: Any) -> Indexes:
    """The positions that forward wants to retain, as a tuple."""
    if type(indexes) is tuple:  # the usual case; what stands in it shows when it is used
        return indexes
    if not isinstance(indexes, Iterable):
        raise TypeError(
            f"{function.label}: {method} takes the positions as a tuple, such as (0,), got "
            f"{describe(indexes)}."
        )
    return tuple(indexes)


def _retain(
    indexes: Indexes, nodes: Sequence[VariableNode], arrays: Arrays
) -> tuple[Array | None, ...]:
    """The arrays, None for those not retained; the nodes show what is retained as ``data``."""
    for i in indexes:
        nodes[i].data = arrays[i]
    if len(indexes) == len(arrays):
        return arrays
    kept: list[Array | None] = [None] * len(arrays)
    for i in indexes:
        kept[i] = arrays[i]
    return tuple(kept)

"""FunctionNode: the application of a function, which connects variable nodes in the graph.

Requirement: a new function is a class with ``forward`` and ``backward``. A debugger steps through
``apply`` phase by phase:

    unwrap    the arrays, their device, and whether a gradient is required
    check     check_type_forward
    run       forward, by the device's backend, between the events of hooks
    wrap      the outputs as Variables
    connect   x.node <- f <- y.node, and the arrays that the function retains

With a graph, ``_connect`` does the last two phases; without a graph, ``_wrap`` wraps alone.

A FunctionNode holds the input nodes strongly and the output nodes weakly. So a graph has no
reference cycles. Python frees a graph together with the last variable computed by the graph.
"""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import tinynode
from tinynode.configuration import Configuration, config
from tinynode.core import messages
from tinynode.core.array_arguments import apply_to_arrays
from tinynode.core.conversion import variable_holding, wrap_inputs
from tinynode.core.dispatch import run_forward, run_watched, watched_inputs
from tinynode.core.hooks import (
    HookOwner,
    active_hooks,
    retained_arrays,
    tell_failed,
    thread_state,
)
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    COMPLEX,
    Array,
    Arrays,
    Device,
    Fallback,
    backend_of,
    current_device,
    kind_of,
    seen_complex_dtypes,
)
from tinynode.errors import GraphError
from tinynode.type_check import TypeInfoTuple, run_check

Indexes: TypeAlias = tuple[int, ...]
"""Positions of inputs or outputs."""
Gradients: TypeAlias = tuple[Variable | None, ...]
"""A gradient for each input or output, or None. In a pass on arrays the gradients are arrays."""
Gradient: TypeAlias = tuple[Variable]
"""The gradient of the only output of a function."""


class FunctionNode(HookOwner):
    """Base class of differentiable functions; an instance is one application.

    Write ``forward`` on arrays and ``backward`` on Variables. ``backward`` consists of
    differentiable functions, so the gradients can be differentiated again. A function is a pure
    step: all arrays are inputs of ``apply`` or outputs. The constructor sets hashable constants.

    Attributes:
        inputs: the input VariableNodes; None until ``apply`` has recorded a graph.
        outputs: weak references to the output VariableNodes; None before.
        rank: the largest rank of the inputs.
        stack: the lines of user code that called the function, in debug mode; else None.
        retained_input_indexes, retained_output_indexes: the positions of the retained arrays.
        retained_input_data, retained_output_data: the arrays there, in the same order.
        lazy_grad_sum: ``config.lazy_grad_sum`` at the time of ``apply``.
        is_elementwise: True if each element of an output is computed, by one formula, from one
            element of each input after broadcasting. So all outputs have one shape.
        is_broadcasting: True for two inputs, if the only check is that the shapes broadcast.
        is_polynomial: True if the outputs are polynomials of the floating inputs.
        finite_slope: True if elementwise, with finite derivatives at finite retained values.
        infinite_slope: True if a derivative may be infinite or NaN at finite retained values, and
            backward leaves it to a mask to keep zeros; see ``functions/masking.py``.
        is_masked: True after the backward of a mask behind; see ``functions/masking.py``.
        complex_rule: "" refuses complex arrays; "conjugate" retains their conjugates; "own" not.
        is_complex: True if an input or output is complex.
        output_device: the device of the outputs, if different from the device of the inputs.
        backward_takes_arrays: True in a class with a ``backward`` for Variables and for arrays:
            operators, ``shape``, ``dtype`` and ``tn.functions`` alone. A subclass repeats it.
        is_reduction: True if ``self.axes`` are reduced, and kept if ``self.keepdims``.
        guard: sentences: why the function makes NaN or inf, and how a program avoids that.
        input_names: the names of the inputs in messages; a class may leave out the last inputs.
        input_counts: the possible numbers of inputs; ``(1, ...)`` is one or more, () is unknown.
        output_counts: the possible numbers of outputs, in the same form.
        type_hint: a sentence for an error of ``check_type_forward``: what to try.
        is_random: True if each run draws other outputs. Such a function has no inputs, and has
            the attributes ``shape`` and ``generator``: see ``functions/draws.py``.
        is_collective: True if all processes of a communicator must run the function.
        crosses_vmap: True if the function takes an array with examples of vmap as a whole.
        runs_backward: True if ``backward`` runs a backward pass of its own.
        needs_values: True if forward or backward decides by values, so a recording needs them.
        wide: True if dispatch runs forward in float32 for inputs of float16.
    """

    inputs: tuple[VariableNode, ...] | None = None
    outputs: tuple[weakref.ref[VariableNode], ...] | None = None
    rank: int = 0
    stack: traceback.StackSummary | None = None
    lazy_grad_sum: bool = False
    is_elementwise: bool = False
    is_broadcasting: bool = False
    is_polynomial: bool = False
    finite_slope: bool = False
    infinite_slope: bool = False
    is_masked: bool = False
    complex_rule: str = ""
    is_complex: bool = False
    backward_takes_arrays: bool = False
    is_reduction: bool = False
    guard: str = ""
    input_names: tuple[str, ...] = ()
    input_counts: tuple[Any, ...] = ()
    output_counts: tuple[Any, ...] = ()
    type_hint: str = ""
    is_random: bool = False
    is_collective: bool = False
    crosses_vmap: bool = False
    runs_backward: bool = False
    needs_values: bool = False
    wide: bool = False
    output_device: Device | None = None
    retained_checksums: tuple[tuple[str, Array, int], ...] = ()

    _applied: bool = False
    retained_input_indexes: Indexes = ()
    retained_output_indexes: Indexes = ()
    retained_input_data: Arrays = ()
    retained_output_data: Arrays = ()

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Reserve a place for each attribute that ``apply`` sets.

        The instances of a class share a table of attribute names, which Python closes after some
        thirty instances. A function without a graph has few attributes. So after an evaluation,
        each recorded function would get a dictionary of its own: slower, and 144 bytes more.
        """
        super().__init_subclass__(**arguments)
        if cls.__setattr__ is not object.__setattr__ or hasattr(cls, "__del__"):
            return  # such a method expects an object after __init__
        try:
            example = object.__new__(cls)
        except TypeError:  # another base is a class in C, such as Exception
            return
        example.retained_input_indexes = ()
        example.lazy_grad_sum = False
        example.rank = 0
        example.inputs = None
        example._applied = False
        example.outputs = None
        example.retained_input_data = ()

    # --- apply, phase by phase ---------------------------------------------------------------

    def apply(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        """Compute the outputs and grow the graph.

        Args:
            inputs: Variables or arrays. Arrays are wrapped, and receive no gradient.

        Returns:
            A tuple of output Variables, also for a single output.

        Raises:
            InvalidType: ``check_type_forward`` refused the inputs.
            DeviceMixError: the inputs are on several devices.
            OutputError: ``forward`` did not return a tuple of arrays.
            GraphError: this instance was applied before.
        """
        if self._applied or type(inputs) is not tuple:
            inputs = self._checked_inputs(inputs)
        # unwrap Variables on one device; other inputs are wrapped or refused first
        raws = []
        device = None
        requires_grad = False
        for x in inputs:
            array = x.raw if isinstance(x, Variable) else None
            if array is None or (device is not None and device is not x._device):
                return self._apply_to_others(inputs)
            raws.append(array)
            device = x._device
            requires_grad = requires_grad or x._requires_grad
        arrays = tuple(raws)
        if device is None:
            device = self.output_device or current_device()
        # check the types; shapes that need only broadcast are checked if forward fails
        if not self.is_broadcasting:
            self.check_types(arrays)
        # run forward, with hooks between their events
        settings = config if config.__dict__ else Configuration  # global values are read quicker
        is_watched = thread_state.hooks or self.local_hooks_or_none or settings.debug
        hooks = active_hooks(self) if is_watched else ()
        output_device = self.output_device or device
        if hooks:
            arrays = watched_inputs(self, hooks, inputs)
            results = run_watched(self, hooks, arrays, device, output_device)
        else:
            results = run_forward(self, arrays, device, output_device)
        # wrap the outputs as Variables, and connect the nodes of inputs and outputs
        if requires_grad and settings.enable_backprop:
            self.lazy_grad_sum = settings.lazy_grad_sum
            outputs = self._connect(inputs, arrays, results, output_device)
        else:
            outputs = self._wrap(results, output_device, False, None)
        for hook in hooks:
            hook.applied(self, inputs, outputs)
        return outputs

    def _checked_inputs(self, inputs: Any) -> tuple[Any, ...]:
        """The inputs of ``apply`` as a tuple, for the first application."""
        if self._applied:
            raise messages.applied_before(self)
        if isinstance(inputs, Variable) or hasattr(inputs, "dtype"):
            raise messages.inputs_no_tuple(self, inputs)
        return tuple(inputs)

    def _apply_to_others(self, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        """``apply`` to arrays and numbers: wrapped, or as they are in a pass on arrays."""
        if thread_state.array_device is not None:
            outputs: tuple[Variable, ...] = apply_to_arrays(self, inputs)
            return outputs
        return self.apply(self.as_variables(inputs))

    def as_variables(self, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        """The inputs as Variables: arrays are wrapped, on the device of the first Variable."""
        return wrap_inputs(self, inputs)

    def check_types(self, arrays: Arrays) -> None:
        """Run ``check_type_forward``, if the class or the instance brings one.

        Hooks hear an error as ``failed``, without a ``forward_preprocess`` before.
        """
        check = getattr(self.check_type_forward, "__func__", None)
        if check is FunctionNode.check_type_forward or not config.type_check:
            return
        try:
            run_check(self, arrays)
        except BaseException as error:
            tell_failed(active_hooks(self), self, "forward", error)
            raise

    def _wrap(
        self, results: Arrays, device: Device, requires_grad: bool, creator: FunctionNode | None
    ) -> tuple[Variable, ...]:
        """The outputs as Variables; a floating one requires a gradient if an input does."""
        self._applied = True
        if len(results) == 1:  # without a list, since most functions have one output
            return (wrap_array(results[0], device, requires_grad, creator),)
        if self.is_elementwise and len({y.shape for y in results if y is not None}) > 1:
            raise messages.several_shapes(self, results)
        return tuple([wrap_array(y, device, requires_grad, creator) for y in results])

    def _connect(
        self, variables: tuple[Variable, ...], arrays: Arrays, results: Arrays, device: Device
    ) -> tuple[Variable, ...]:
        """The outputs, with the function between the nodes of the inputs and of the outputs."""
        inputs = []
        rank = 0
        for x in variables:
            node = x._node or x.node
            if node.rank > rank:
                rank = node.rank
            inputs.append(node)
        self.rank = rank
        self.inputs = tuple(inputs)
        if len(results) == 1:  # without a list, since most functions have one output
            y: Any = wrap_array(results[0], device, True, self)
            outputs: tuple[Variable, ...] = (y,)
            self._applied = True
            self.outputs = (weakref.ref(y._node),)
        else:
            outputs = self._wrap(results, device, True, self)
            self.outputs = tuple([weakref.ref(y.node) for y in outputs])
        indexes = self.retained_input_indexes
        if indexes:
            retained = []
            try:
                for i in indexes:
                    inputs[i].data = arrays[i]
                    retained.append(arrays[i])
            except (IndexError, TypeError):
                raise messages.no_such_position(self, indexes, len(arrays)) from None
            self.retained_input_data = tuple(retained)
        if self.retained_output_indexes:
            self.retained_output_data = self._retain(outputs, results)
        if seen_complex_dtypes:
            self._look_for_complex(variables, outputs)
        return outputs

    def _retain(self, outputs: tuple[Variable, ...], arrays: Arrays) -> Arrays:
        """The arrays of the outputs to retain, which their nodes show as ``data``."""
        retained = []
        indexes = self.retained_output_indexes
        try:
            for i in indexes:
                outputs[i].node.data = arrays[i]
                retained.append(arrays[i])
        except (IndexError, TypeError):
            raise messages.no_such_position(self, indexes, len(arrays)) from None
        return tuple(retained)

    def _look_for_complex(
        self, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Set ``is_complex``; without ``complex_rule``, complex numbers have no gradient."""
        for x in (*inputs, *outputs):
            if x.raw is None or kind_of(x.raw) != COMPLEX:
                continue
            if not self.complex_rule and any(y._requires_grad for y in outputs):
                raise messages.complex_without_rule(self, x.dtype)
            self.is_complex = True
            return

    # --- what a function defines -------------------------------------------------------------

    @property
    def user_function(self) -> Any:
        """The value of ``VariableNode.creator``: this node, or an old-style Function behind."""
        return self

    @property
    def node(self) -> FunctionNode:
        """The FunctionNode; for an old-style Function, the adapter."""
        return self

    def row_axes(self) -> tuple[int, ...] | None:
        """The axes along which elements of the first input meet, in a function of rows, or None.

        Before a mask, the zeros of a row are kept as a whole: see ``functions/masking.py``.
        """
        return None

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        """Check the inputs with ``type_check.expect``; by default, nothing."""

    def forward(self, inputs: Arrays) -> Arrays:
        """The outputs, a tuple of arrays, from a tuple of arrays; in the Array API standard.

        Override ``forward``, or ``forward_cpu`` and ``forward_gpu``. The default calls
        ``forward_gpu`` for arrays on a GPU, and otherwise ``forward_cpu``.
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

    def backward(self, target_input_indexes: Indexes, grad_outputs: Any) -> Any:
        """The gradients of the inputs, from those of the outputs.

        Args:
            target_input_indexes: sorted indexes of the inputs that need a gradient, never empty.
            grad_outputs: a Variable for each output, None for an output without a gradient. For
                a class with ``backward_takes_arrays``, arrays where no graph is recorded.

        Returns:
            A tuple as long as the inputs or as ``target_input_indexes``, with None for an input
            without a gradient. By default all are None: the function is not differentiable.
        """
        return (None,) * len(target_input_indexes)

    def backward_accumulate(
        self, target_input_indexes: Indexes, grad_outputs: Gradients, grad_inputs: Gradients
    ) -> Any:
        """``backward``, fused with the addition of the gradients from other functions.

        Override the method where the sum is cheaper inside; a backward pass calls overrides only.
        ``grad_inputs`` has the sum of the gradients from other functions for each target, or None.
        For a variable at several positions, the sum is at the first position. Returns a gradient,
        with ``grad_inputs`` added, for each target.
        """
        gradients = self.backward(target_input_indexes, grad_outputs)
        if len(gradients) != len(target_input_indexes):
            gradients = tuple(gradients[i] for i in target_input_indexes)
        totals = []
        for gx, so_far in zip(gradients, grad_inputs, strict=True):
            if gx is None or so_far is None:
                totals.append(so_far if gx is None else gx)
            else:
                totals.append(gx + so_far)
        return tuple(totals)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise messages.call_of_function_node(self)

    # --- retaining -----------------------------------------------------------------------------

    def retain_inputs(self, indexes: Iterable[int]) -> None:
        """Keep the arrays of inputs for backward. Called from forward; the last call counts."""
        if type(indexes) is not tuple:
            indexes = self._checked_indexes("retain_inputs", indexes)
        self.retained_input_indexes = indexes

    def retain_outputs(self, indexes: Iterable[int]) -> None:
        """Keep the arrays of outputs for backward. Called from forward; the last call counts."""
        if type(indexes) is not tuple:
            indexes = self._checked_indexes("retain_outputs", indexes)
        self.retained_output_indexes = indexes

    def _checked_indexes(self, method: str, indexes: Any) -> Indexes:
        """The indexes to retain as a tuple."""
        if not isinstance(indexes, Iterable):
            raise messages.positions_no_sequence(self, method, indexes)
        return tuple(indexes)

    def get_retained_inputs(self) -> tuple[Variable, ...]:
        """The retained inputs as Variables, in the order of the indexes; ``()`` if there are none.

        The user's Variable if it still has the array from forward, else a new one on the node.
        """
        if self.inputs is None:
            return ()
        if thread_state.array_device is not None:
            return self.retained_input_data
        data = self.retained_input_data
        positions = enumerate(self.retained_input_indexes)
        return self.for_backward([variable_holding(self.inputs[i], data[k]) for k, i in positions])

    def get_retained_outputs(self) -> tuple[Variable, ...]:
        """The retained outputs as Variables, in the order of the indexes; ``()`` if none.

        None is an output that forward gave as None. A new node replaces that of a freed output.
        """
        if self.outputs is None or self.inputs is None:
            return ()
        if thread_state.array_device is not None:
            return self.retained_output_data
        retained: list[Any] = []
        for k, i in enumerate(self.retained_output_indexes):
            array = self.retained_output_data[k]
            node = self.outputs[i]()
            if array is None:
                retained.append(None)
            elif node is not None:
                retained.append(variable_holding(node, array))
            else:
                device = self.output_device or self.inputs[0].device
                retained.append(self._revived(i, array, device))
        return self.for_backward(retained)

    def for_backward(self, retained: list[Any]) -> tuple[Variable, ...]:
        """The retained Variables; conjugated if complex, where ``complex_rule`` says so."""
        if self.is_complex and self.complex_rule == "conjugate":
            conj = tinynode.functions.conj
            retained = [
                conj(x) if x is not None and kind_of(x.raw) == COMPLEX else x for x in retained
            ]
        return tuple(retained)

    def _revived(self, index: int, array: Array, device: Device) -> Variable:
        """A Variable on a new node, which replaces the freed node of an output."""
        variable = wrap_array(array, device, True)
        variable.node.creator_node, variable.node.data = self, array
        outputs = list(self.outputs or ())
        outputs[index] = weakref.ref(variable.node)
        self.outputs = tuple(outputs)
        return variable

    @property
    def output_data(self) -> tuple[Array | None, ...]:
        """The retained output arrays, None for each output that is not retained."""
        if self.outputs is None or not self.retained_output_indexes:
            raise messages.outputs_not_retained(self)
        return retained_arrays(self)[1]

    def unchain(self) -> None:
        """Take this function out of the graph: the outputs become leaves, and keep the rank."""
        for reference in self.outputs or ():
            node = reference()
            if node is not None:
                node.unchain()
        self.inputs = None
        self.outputs = None
        self.retained_input_data = ()
        self.retained_output_data = ()
        self.retained_checksums = ()

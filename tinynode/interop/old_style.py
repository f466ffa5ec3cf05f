"""Function: the old style, in which backward works on arrays.

Requirement: functions from before double backprop keep working. An adapter, a FunctionNode, stands
for the Function in the graph. Differentiating twice is an error with a clear message.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tinynode.core.conversion import variable_holding
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import FunctionHook, retained_arrays
from tinynode.devices import Array, Arrays
from tinynode.errors import GradientShapeError, GraphError, describe

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple

Flags: TypeAlias = tuple[bool, ...]


class Function:
    """Base class of old-style functions: ``forward`` and ``backward`` both work on arrays.

    All inputs are retained, unless forward calls ``retain_inputs``. ``f(x)`` returns a Variable,
    or a tuple of several outputs. The adapter ``f.node`` stands in the graph. The Function owns
    the adapter until the call; afterwards the graph owns the adapter.
    """

    _owned_adapter: FunctionAdapter | None = None
    _adapter: weakref.ref[FunctionAdapter] | None = None
    _input_indexes: Indexes | None = None
    _output_indexes: Indexes = ()

    def __call__(self, *inputs: Any) -> Any:
        adapter = self.node
        outputs = adapter.apply(inputs)
        adapter.own(self)
        self._owned_adapter = None
        return outputs[0] if len(outputs) == 1 else outputs

    def __copy__(self) -> Function:
        """A function with the same attributes that was not called yet."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new._owned_adapter = new._adapter = None
        return new

    @property
    def node(self) -> FunctionAdapter:
        """The adapter for this function in the graph."""
        adapter = None if self._adapter is None else self._adapter()
        if adapter is None:
            adapter = FunctionAdapter(self)
            self._owned_adapter = adapter
            self._adapter = weakref.ref(adapter)
        return adapter

    @property
    def label(self) -> str:
        """A short text for messages and pictures: the class name, unless overridden."""
        return type(self).__name__

    @property
    def inputs(self) -> Any:
        """The input nodes."""
        return self.node.inputs

    @property
    def outputs(self) -> Any:
        """Weak references to the output nodes."""
        return self.node.outputs

    @property
    def rank(self) -> int:
        """The rank of the adapter."""
        return self.node.rank

    @property
    def stack(self) -> Any:
        """Where it was called, in debug mode."""
        return self.node.stack

    @property
    def output_data(self) -> tuple[Array | None, ...]:
        """The retained output arrays, None for the others."""
        return self.node.output_data

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks of this one function."""
        return self.node.local_function_hooks

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Register a hook for this function only."""
        self.node.add_hook(hook, name)

    def delete_hook(self, name: str) -> None:
        """Unregister a hook of this function."""
        self.node.delete_hook(name)

    def unchain(self) -> None:
        """Take this function out of the graph."""
        self.node.unchain()

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        """Check the inputs with ``type_check.expect``; by default, nothing."""

    def forward(self, inputs: Arrays) -> Arrays:
        """The outputs, a tuple of arrays; by default from forward_cpu or forward_gpu."""
        return FunctionNode.forward(self.node, inputs)

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        """The outputs, from arrays in the CPU's memory."""
        raise NotImplementedError(f"{self.label} has neither forward() nor forward_cpu().")

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        """The outputs, from arrays in a GPU's memory."""
        raise NotImplementedError(f"{self.label} has neither forward() nor forward_gpu().")

    def backward(
        self, inputs: tuple[Array | None, ...], grad_outputs: tuple[Array | None, ...]
    ) -> tuple[Array | None, ...]:
        """The gradients of all inputs, from arrays; None for an input without a gradient."""
        return (None,) * len(inputs)

    def retain_inputs(self, indexes: Iterable[int]) -> None:
        """Keep only some inputs for backward; other inputs are None. Called from forward."""
        self._input_indexes = tuple(indexes)

    def retain_outputs(self, indexes: Iterable[int]) -> None:
        """Keep outputs in ``output_data``. Called from forward."""
        self._output_indexes = tuple(indexes)


class FunctionAdapter(FunctionNode):
    """The FunctionNode for an old-style Function in the graph.

    Before the call the Function owns the adapter; afterwards the adapter owns the Function. Both
    at once would be a reference cycle.
    """

    def __init__(self, function: Function) -> None:
        self._weak_function = weakref.ref(function)
        self._function: Function | None = None

    def own(self, function: Function) -> None:
        """Keep the Function alive for backward."""
        self._function = function

    @property
    def function(self) -> Function:
        """The Function behind this adapter."""
        function = self._weak_function()
        if function is None:
            raise GraphError("the Function of this adapter was freed before it was called.")
        return function

    @property
    def label(self) -> str:
        return self.function.label

    @property
    def _impl_name(self) -> str:
        return type(self.function).__name__

    @property
    def user_function(self) -> Function:
        return self.function

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        self.function.check_type_forward(in_types)

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        return self.function.forward_cpu(inputs)

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        return self.function.forward_gpu(inputs)

    def forward(self, inputs: Arrays) -> Arrays:
        function = self.function
        function._input_indexes = None
        function._output_indexes = ()
        outputs = function.forward(inputs)
        kept = function._input_indexes
        self.retain_inputs(range(len(inputs)) if kept is None else kept)
        self.retain_outputs(function._output_indexes)
        return outputs

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        """Run the Function's backward on arrays, as the application of an OldStyleGradient.

        The gradients may depend on retained inputs, retained outputs and ``grad_outputs``. All are
        inputs of the OldStyleGradient. So a second derivative is an error, and not silently zero.
        """
        in_data = retained_arrays(self)[0]
        gradient = OldStyleGradient(
            self.function,
            target_input_indexes,
            tuple(x is not None for x in in_data),
            tuple(gy is not None for gy in grad_outputs),
        )
        inputs = zip(self.inputs or (), in_data, strict=True)
        sources = [variable_holding(node, x) for node, x in inputs if x is not None]
        sources += [gy for gy in grad_outputs if gy is not None]
        gradients = gradient.apply((*sources, *self.get_retained_outputs()))
        return tuple(None if gx.raw is None else gx for gx in gradients)


class OldStyleGradient(FunctionNode):
    """The gradients from an old-style function, computed on arrays; not differentiable.

    (retained inputs, gradients of the outputs, retained outputs) -> gradients of the inputs
    """

    def __init__(
        self, function: Function, targets: Indexes, has_input: Flags, has_grad: Flags
    ) -> None:
        self.function = function
        self.targets = targets
        self.has_input = has_input
        self.has_grad = has_grad

    @property
    def label(self) -> str:
        return f"gradient of {self.function.label}"

    def forward(self, inputs: Arrays) -> Arrays:
        waiting = iter(inputs)
        in_data = tuple(next(waiting) if present else None for present in self.has_input)
        out_grad = tuple(next(waiting) if present else None for present in self.has_grad)
        gradients = self.function.backward(in_data, out_grad)
        if not isinstance(gradients, tuple | list) or len(gradients) != len(in_data):
            raise GradientShapeError(
                f"Function `{self.function.label}` has a bug: number of gradients returned from "
                "backward is incorrect: an old-style function returns one for each of its "
                f"{len(in_data)} inputs, got {describe(gradients)}."
            )
        return tuple(gradients[i] for i in self.targets)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        raise GraphError(
            f'cannot twice-differentiate an old style Function "{self.function.label}". Rewrite '
            "it as a FunctionNode, whose backward is made of differentiable functions."
        )

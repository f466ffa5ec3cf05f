"""GradientTable: all gradients of a backward pass, by node; and ArrayTable, for a pass on arrays.

Requirement: a variable may get gradients by several ways, and the gradients are added. No Variable
changes before the pass has ended. So the gradients stand in a table, and not in the Variables.

There are three ways to add. In a *recorded* pass a sum is a function of the graph. Otherwise a sum
is a plain addition of arrays. With ``lazy_grad_sum`` contributions wait in a list, and a function
adds all contributions when the sum is needed.

Without a second derivative, gradients need no Variables and no nodes. An ``ArrayTable`` gives
arrays to ``backward`` in place of Variables. No ``backward`` is written twice: ``x * y`` is then a
product of the array library. A function of tinynode, given arrays, gives arrays. A pass uses an
``ArrayTable`` if all gradients of the start are on one device and no graph is recorded. An active
hook of the thread, debug mode or ``vmap`` prevents it. See ``quickest_table``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import tinynode
from tinynode.configuration import config
from tinynode.core import messages
from tinynode.core.array_arguments import raw_of
from tinynode.core.dispatch import add_arrays
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import (
    FunctionHook,
    is_recording_net,
    retained_and_gradients,
    tell_failed,
    thread_state,
)
from tinynode.core.seeds import check_gradient, is_lifted
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array, Device, hidden_axes, is_separate
from tinynode.errors import GradientError


class GradientTable:
    """The gradients of a backward pass, as Variables.

    Args:
        keep: the nodes with a gradient to copy to ``kept`` when the creator runs; None for all.

    Attributes:
        gradients: the gradients of leaves, and of nodes before the creator has run.
        waiting: further contributions to ``gradients``, under ``lazy_grad_sum``.
        kept: the gradients of the nodes in ``keep``, after the creators have run.
        recorded: True if sums are functions: for double backprop, and while a net is recorded.
            So make the table inside of ``backprop_mode``.
        device: the device of a pass on arrays, else None.
        array_types: the types of gradients that need no conversion in ``add``.
        scalar_types: the types of scalars of the array library, as of a product of 0-d arrays. A
            scalar stays in the table, and becomes an array at the end, or for a backward.
        lift_scalar: makes a 0-d array of such a scalar.
    """

    device: Device | None = None
    array_types: Collection[type] = ()
    scalar_types: Collection[type] = ()
    lift_scalar: Any = None

    def __init__(self, keep: Collection[VariableNode] | None = ()) -> None:
        self.keep = keep
        self.recorded = config.enable_backprop or (bool(thread_state.hooks) and is_recording_net())
        self.gradients: dict[VariableNode, Any] = {}
        self.waiting: dict[VariableNode, list[Any]] = {}
        self.kept: dict[VariableNode, Any] = {}

    def add_seed(self, y: Variable, gy: Variable) -> None:
        """Add a gradient at the start of the pass."""
        gradient = self.gradients.get(y.node)
        self.gradients[y.node] = gy if gradient is None else self.sum_of(gradient, gy)

    # --- the parts of a step -------------------------------------------------------------------

    def take_grad_outputs(self, function: FunctionNode) -> Gradients:
        """Remove the gradients of a function's outputs; None for an output without gradient."""
        grad_outputs: list[Any] = []
        for reference in function.outputs or ():
            node = reference()
            gradient = None
            if node is not None and node._creator_node is function:  # neither freed nor unchained
                if self.waiting:
                    gradient = self.take_total(node)
                else:
                    gradient = self.gradients.pop(node, None)
                if type(gradient) in self.scalar_types:
                    gradient = self.lift_scalar(gradient)
                if gradient is not None and (self.keep is None or node in self.keep):
                    self.kept[node] = gradient
            grad_outputs.append(gradient)
        return tuple(grad_outputs)

    def run_backward(
        self,
        function: FunctionNode,
        targets: Indexes,
        grad_outputs: Gradients,
        hooks: Sequence[FunctionHook],
    ) -> Gradients:
        """The gradients of the targets, by the function's own backward, between the events."""
        if not hooks:
            return self.backward_of(function, targets, grad_outputs)
        try:
            for hook in hooks:
                hook.backward_preprocess(function, *retained_and_gradients(function, grad_outputs))
            grad_inputs = self.backward_of(function, targets, grad_outputs)
            for hook in hooks:
                hook.backward_postprocess(
                    function, *retained_and_gradients(function, grad_outputs)
                )
            for hook in hooks:
                hook.after_backward(function, targets, grad_outputs, grad_inputs)
        except BaseException as error:
            tell_failed(hooks, function, "backward", error)
            raise
        return grad_inputs

    def backward_of(
        self, function: FunctionNode, targets: Indexes, grad_outputs: Gradients
    ) -> Gradients:
        """The result of ``backward``, or of an overridden ``backward_accumulate``."""
        backward = function.backward
        if type(function).backward_accumulate is not FunctionNode.backward_accumulate:
            backward = functools.partial(self._accumulated, function)
        return call_backward(function, backward, targets, grad_outputs)

    def _accumulated(
        self, function: FunctionNode, targets: Indexes, grad_outputs: Gradients
    ) -> Gradients:
        """Run an overridden ``backward_accumulate`` on the gradients so far."""
        nodes = function.inputs or ()
        so_far = tuple([self.take_total_as_variable(nodes[i]) for i in targets])
        results = function.backward_accumulate(targets, grad_outputs, so_far)
        if not isinstance(results, tuple | list) or len(results) != len(targets):
            raise messages.gradients_bug(function, results, (len(targets),))
        return tuple([old if gx is None else gx for gx, old in zip(results, so_far, strict=True)])

    def add(
        self, function: FunctionNode, targets: Indexes, grad_inputs: Gradients
    ) -> list[FunctionNode]:
        """Add the results of a function's backward to the gradients of the inputs.

        Returns:
            The creators of the inputs with a first gradient.

        Raises:
            GradientError: a result does not fit the input.
        """
        creators = []
        inputs = function.inputs or ()
        for position, i in enumerate(targets):
            gx: Any = grad_inputs[position]
            if gx is None:
                continue
            node = inputs[i]
            if type(gx) in self.array_types or type(gx) in self.scalar_types:
                array = gx
            else:
                array = self.array_of(gx, node)
            if array is None or array.shape != node.shape or array.dtype is not node.dtype:
                gx = self.checked(gx, function, i)
            so_far = self.gradients.get(node)
            if so_far is None:
                self.gradients[node] = gx
                if node._creator_node is not None:
                    creators.append(node._creator_node)
            elif function.lazy_grad_sum:
                self.waiting.setdefault(node, []).append(gx)
            else:
                self.gradients[node] = self.sum_of(so_far, gx)
        return creators

    # --- how Variables fit and add up ------------------------------------------------------------

    def array_of(self, gx: Any, node: VariableNode) -> Array | None:
        """The array of a Variable on the device of a node; None for other objects."""
        if type(gx) is Variable and gx._device is node.device:
            return gx.raw
        return None

    def checked(self, gx: Any, function: FunctionNode, position: int) -> Any:
        """The gradient of an input, if it fits.

        Raises:
            GradientError: the gradient does not fit the input.
        """
        title = f"Function `{function.label}` has a bug: the gradient of input {position}"
        try:
            node = (function.inputs or ())[position]
            check_gradient(gx, node, title, any_device=is_lifted(gx, node))
        except GradientError as error:
            if function.stack:
                error.add_note(messages.forward_stack(function))
            raise
        return gx

    def sum_of(self, a: Any, b: Any) -> Any:
        """a + b: a function if recorded, or inside vmap; else a plain addition of arrays."""
        if self.recorded or a._device is not b._device:
            return a + b
        return wrap_array(add_arrays(a.raw, b.raw, a.device), a.device, a.requires_grad)

    def take_total(self, node: VariableNode) -> Any:
        """Remove the gradient of a node from the table, all contributions added."""
        gradient = self.gradients.pop(node, None)
        if node in self.waiting and gradient is not None:
            gradient = tinynode.functions.add_all(gradient, *self.waiting.pop(node))
        return gradient

    def take_total_as_variable(self, node: VariableNode) -> Variable | None:
        """``take_total``, as a Variable."""
        gradient: Variable | None = self.take_total(node)
        return gradient

    def finish(self) -> dict[VariableNode, Variable]:
        """The remaining gradients, all contributions added."""
        for node in list(self.waiting):
            total = self.take_total(node)
            if total is not None:
                self.gradients[node] = total
        return self.gradients


class ArrayTable(GradientTable):
    """The gradients of a backward pass, as arrays of one device.

    A gradient on another device stays a Variable. If the ``backward`` of a function takes
    Variables, the table wraps the gradients, and takes the arrays of the results.

    Args:
        table: a table with the gradients at the start of the pass.
        device: the device of all these gradients.

    Attributes:
        variables: by node, the Variable behind an array of the table: a gradient of the start, or
            the result of a ``backward`` on Variables. ``finish`` gives the Variable.
    """

    def __init__(self, table: GradientTable, device: Device) -> None:
        super().__init__(table.keep)
        self.device: Device = device
        self.array_types = device.array_types
        self.scalar_types = device.scalar_types
        self.lift_scalar = device.xp.asarray
        self.variables = dict(table.gradients)
        for node, seed in self.variables.items():
            self.gradients[node] = seed.raw

    def run_backward(
        self,
        function: FunctionNode,
        targets: Indexes,
        grad_outputs: Gradients,
        hooks: Sequence[FunctionHook],
    ) -> Gradients:
        """``backward`` on arrays, if the function takes them; else on Variables."""
        backward = function.backward
        method = getattr(backward, "__func__", None)  # None: put into the instance
        cls = type(function)
        takes_arrays = method is _array_backwards.get(cls) or _class_takes_arrays(cls, method)
        if hooks or function.is_complex or not takes_arrays or method is None:
            return self.run_on_variables(function, targets, grad_outputs, hooks)
        inputs: Any = function.inputs
        if function.output_device or inputs[0].device is not self.device:
            return self.run_on_variables(function, targets, grad_outputs, hooks)
        return call_backward(function, backward, targets, grad_outputs)

    def run_on_variables(
        self,
        function: FunctionNode,
        targets: Indexes,
        grad_outputs: Gradients,
        hooks: Sequence[FunctionHook],
    ) -> Gradients:
        """``run_backward`` of a function whose ``backward`` takes Variables."""
        variables = tuple(
            [None if gy is None else gradient_as_variable(gy, self.device) for gy in grad_outputs]
        )
        outer, thread_state.array_device = thread_state.array_device, None
        try:
            results = super().run_backward(function, targets, variables, hooks)
        finally:
            thread_state.array_device = outer
        pairs = zip(results, targets, strict=True)
        return tuple([None if gx is None else self._unwrapped(gx, function, i) for gx, i in pairs])

    def _unwrapped(self, gx: Any, function: FunctionNode, position: int) -> Any:
        """The array of a Variable from a backward; of another device, the Variable."""
        gradient: Variable = super().checked(gx, function, position)
        node = (function.inputs or ())[position]
        if node._creator_node is None and node not in self.gradients:
            self.variables[node] = gradient  # the gradient of a leaf may be this Variable
        return gradient.raw if gradient.device is self.device else gradient

    # --- how arrays fit and add up ---------------------------------------------------------------

    def array_of(self, gx: Any, node: VariableNode) -> Array | None:
        """As in GradientTable; None for a Variable of the pass, whose array ``checked`` takes."""
        if type(gx) is Variable and gx._device is self.device:
            return None
        return super().array_of(gx, node)

    def checked(self, gx: Any, function: FunctionNode, position: int) -> Any:
        """The gradient of an input as an array; a scalar of the library gives a 0-d array."""
        array = self.device.lift(raw_of(gx))
        if array is not None and not isinstance(gx, Variable):
            gx = wrap_array(array, self.device, True)
        gradient: Variable = super().checked(gx, function, position)
        return gradient.raw if gradient.device is self.device else gradient

    def sum_of(self, a: Any, b: Any) -> Any:
        """a + b of two arrays or scalars, as one; of Variables on another device, a Variable."""
        total = a + b
        if type(total) in self.array_types or type(total) in self.scalar_types:
            return total
        return total if isinstance(total, Variable) else self.device.lift(total)

    def take_total_as_variable(self, node: VariableNode) -> Variable | None:
        gradient = self.take_total(node)
        return None if gradient is None else gradient_as_variable(gradient, self.device)

    def take_total(self, node: VariableNode) -> Any:
        gradient = self.gradients.pop(node, None)
        if gradient is not None:
            for contribution in self.waiting.pop(node, ()):
                gradient = self.sum_of(gradient, contribution)
        return gradient

    def finish(self) -> dict[VariableNode, Variable]:
        """The remaining gradients and those in ``kept``, as Variables.

        For the array of a Variable in ``variables``, the result is the Variable.
        """
        super().finish()
        for gradients in (self.gradients, self.kept):
            for node, gx in gradients.items():
                variable = self.variables.get(node)
                if variable is not None and variable.raw is gx:
                    gradients[node] = variable
                elif type(gx) is not Variable:
                    array = self.lift_scalar(gx) if type(gx) in self.scalar_types else gx
                    gradients[node] = wrap_array(array, self.device, False)
        return self.gradients


_array_backwards: dict[type, Any] = {}
"""The classes with a ``backward`` for arrays, and this ``backward``."""


def _class_takes_arrays(cls: type[FunctionNode], method: Any) -> bool:
    """Whether ``method``, the ``backward`` of a function of the class, takes arrays.

    A class says so with ``backward_takes_arrays = True``; a subclass has to repeat the line. The
    classes in ``tinynode.functions`` need no such line. ``_array_backwards`` keeps the method.
    """
    if method is None or method is not cls.backward:
        return False  # put into the instance
    if cls.backward_accumulate is not FunctionNode.backward_accumulate:
        return False  # overridden: the gradients so far are Variables
    homes = cls.__module__, cls.backward.__module__
    is_ours = homes[0].startswith("tinynode.functions.") and homes[1].startswith("tinynode.")
    takes = bool(vars(cls).get("backward_takes_arrays", is_ours))
    if takes:
        _array_backwards[cls] = method
    return takes


def quickest_table(table: GradientTable) -> GradientTable:
    """An ``ArrayTable`` with the gradients of a table, if a pass on arrays will do."""
    if table.recorded or thread_state.hooks or config.debug or hidden_axes.stack:
        return table
    device = None
    for seed in table.gradients.values():
        if device is not None and device is not seed._device:
            return table
        device = seed._device
    if device is None or "batched" in device.backend.capabilities:
        return table
    return ArrayTable(table, device)


def call_backward(
    function: FunctionNode,
    backward: Callable[[Indexes, Gradients], Any],
    targets: Indexes,
    grad_outputs: Gradients,
) -> Gradients:
    """The result of a function's ``backward``; an error gets notes about the function.

    Raises:
        GradientError: the result is no tuple, or a tuple of another length.
    """
    try:
        grad_inputs = backward(targets, grad_outputs)
        if type(grad_inputs) is tuple and len(grad_inputs) == len(targets):
            return grad_inputs
        return gradients_of_targets(function, targets, grad_inputs)
    except Exception as error:
        for note in messages.notes_of_backward(error, function):
            error.add_note(note)
        raise


def gradients_of_targets(function: FunctionNode, targets: Indexes, results: Any) -> Gradients:
    """The gradients of the target inputs, out of a backward's results for all inputs.

    Raises:
        GradientError: a backward gave no tuple, or a tuple of another length.
    """
    number = len(function.inputs or ())
    if not isinstance(results, tuple | list) or len(results) not in (len(targets), number):
        raise messages.gradients_bug(function, results, (len(targets), number))
    if len(results) == len(targets):
        return tuple(results)
    return tuple([results[i] for i in targets])


def gradient_as_variable(gx: Any, device: Device) -> Variable:
    """A gradient as a Variable; a Variable unchanged."""
    array = device.xp.asarray(gx) if type(gx) in device.scalar_types else gx
    return gx if type(gx) is Variable else wrap_array(array, device, False)


def unshared(gradient: Variable, taken: set[int], held: Array) -> Variable:
    """The gradient; a copy if others hold the array: a node, ``held``, or an id in ``taken``."""
    if id(gradient.raw) not in taken and gradient._node is None and gradient.raw is not held:
        taken.add(id(gradient.raw))
        if getattr(gradient.raw, "base", None) is None or is_separate(gradient.raw, taken, held):
            return gradient
    copied = gradient._device.xp.asarray(gradient.raw, copy=True)
    return wrap_array(copied, gradient._device, gradient._requires_grad)

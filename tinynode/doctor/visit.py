"""diagnose: the doctor's visit, from the graph of a loss to a Diagnosis.

Requirement: ``tn.diagnose(loss)`` works after forward, without preparation, and changes nothing:
graph, gradients, parameters and settings are as before, also after an error or Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tinynode.configuration import force_backprop_mode
from tinynode.core.hooks import tell_value_read, thread_hooks
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.doctor.activations import activation_findings
from tinynode.doctor.backward_pass import BackwardPass, undisturbed
from tinynode.doctor.culprits import BackwardChecks
from tinynode.doctor.diagnosis import Diagnosis
from tinynode.doctor.dtypes import dtype_findings
from tinynode.doctor.findings import Finding
from tinynode.doctor.layers import (
    gradient_findings,
    layers_of,
    next_updates,
    parameters_of,
    update_findings,
)
from tinynode.doctor.naming import LineHook, Names
from tinynode.doctor.not_finite import backward_origin, forward_origin
from tinynode.doctor.parameters import (
    NamedParameters,
    missing_gradients,
    never_changed,
    outside_optimizer,
)
from tinynode.doctor.replay import NodeArrays
from tinynode.errors import GraphError, OperandError, describe, printable
from tinynode.nn.module import Module
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.parameter import Parameter
from tinynode.show.graphs.text import functions_behind


def diagnose(
    loss: Variable | Callable[[], Variable],
    *,
    model: Module | None = None,
    optimizer: Optimizer | None = None,
    since: Diagnosis | None = None,
    trusted: Collection[type] = (),
    limit: int | None = 1000,
) -> Diagnosis:
    """Look for faults in the graph behind a loss, and name the first function at fault.

    Checks each function's ``backward`` against central differences on the values that the function
    saw. Looks for NaN and inf, dead ReLUs, saturated sigmoids and tanhs, vanishing and exploding
    gradients, parameters without a gradient, and float64 among float32 values. The graph, every
    ``grad``, the parameters and the optimizer stay unchanged.

    Args:
        loss: a Variable with a graph, before or after ``backward``; or a function without
            arguments that returns the loss. With a function, findings name the lines of user code.
        model: gives names to parameters and layers, and finds parameters that the loss does not
            reach.
        optimizer: finds parameters of the model, or without a model of the graph, that no update
            changes; and a learning rate that is too large or too small.
        since: an earlier Diagnosis: finds parameters without a change since.
        trusted: classes of functions with a gradient that differs from the derivative on purpose,
            such as a straight-through estimator.
        limit: the number of functions to check by differences, from the leaves on; None means
            all.

    Returns:
        A Diagnosis. ``print`` shows a text, a notebook a table; ``tn.show.graph(loss,
        marks=diagnosis)`` marks the functions in the picture.

    Raises:
        OperandError: the loss is no Variable, or the model no Module.
        GraphError: the loss has no graph.
    """
    _check_arguments(model, optimizer, since)
    tell_value_read("tinynode.diagnose")
    if not isinstance(loss, Variable) and callable(loss):
        loss = _called(loss)
    _check_loss(loss)
    with undisturbed():
        visit = _Visit(loss, model, optimizer)
        visit.look(trusted, limit)
        visit.look_at_parameters(since)
    for hook in thread_hooks():
        hook.diagnosed(visit.result)
    return visit.result


def _called(function: Callable[[], Variable]) -> Variable:
    """The loss of a function, with the lines of user code in the graph."""
    with LineHook(), force_backprop_mode():
        return function()


def _check_arguments(model: Any, optimizer: Any, since: Any) -> None:
    for name, value, kind in (
        ("model", model, Module),
        ("optimizer", optimizer, Optimizer),
        ("since", since, Diagnosis),
    ):
        if value is not None and not isinstance(value, kind):
            raise OperandError(
                f"diagnose: {name} must be a {kind.__name__} or None, got {describe(value)}."
            )


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Variable):
        raise OperandError(
            f"diagnose: loss must be a Variable, or a function that returns one, got "
            f"{describe(loss)}."
        )
    if not loss.requires_grad or loss.creator_node is None:
        raise GraphError(
            "diagnose: the loss has no graph: it is a leaf, or was computed without gradients "
            "(no_backprop_mode, or inputs without requires_grad). Compute it with a graph first."
        )


class _Visit:
    """One look at a graph.

    Attributes:
        functions: the functions that gradients reach, in the order of forward.
        leaves: the leaves of the whole graph.
        parameters: the parameters with names.
        result: the Diagnosis.
    """

    def __init__(self, loss: Variable, model: Module | None, optimizer: Optimizer | None) -> None:
        self.loss, self.model, self.optimizer = loss, model, optimizer
        every = functions_behind([loss.node])
        self.functions = functions_behind([loss.node], differentiable=True)
        self.names = Names(self.functions, model)
        self.values = NodeArrays(every)
        nodes = dict.fromkeys(node for function in every for node in function.inputs or ())
        self.leaves = [node for node in nodes if node.creator_node is None]
        self.trained = [] if optimizer is None else parameters_of(optimizer)
        self.parameters = self._parameters(model)
        self.result = Diagnosis(printable(loss.name or f"loss, the output of {_label(loss)}"))
        self.passed = BackwardPass(
            loss, [node for node in self.leaves if node.requires_grad], self.functions
        )
        self._every = every

    def look(self, trusted: Collection[type], limit: int | None) -> None:
        """The findings of functions."""
        result = self.result
        checks = BackwardChecks(self.functions, self.values, trusted, limit)
        result.checked, result.unchecked = checks.checked, checks.unchecked
        result.add(checks.findings(self.names))
        origin = forward_origin(self._every, self.leaves, self.values, self.names)
        result.add(origin or backward_origin(self.passed, self.names))
        result.add(activation_findings(self.functions, self.values, self.names))
        result.add(dtype_findings(self._every, self.names))
        error = self.passed.error
        if error is not None and not checks.wrong:
            result.add([_failed(error, result.title)])

    def look_at_parameters(self, since: Diagnosis | None) -> None:
        """The findings of parameters and layers."""
        result, passed = self.result, self.passed
        parameters = self.parameters
        result.remember([parameter for _, parameter in parameters])
        if passed.error is not None:
            return
        updates: dict[int, float] = {}
        if self.optimizer is not None:
            updates = next_updates(self.optimizer, passed.gradients)
        result.layers = layers_of(
            parameters, self.functions, passed.gradients, updates, self.names
        )
        result.add(missing_gradients(self.loss, parameters, passed))
        result.add(gradient_findings(result.layers))
        if self.optimizer is not None:
            own = parameters if self.model is None else self.model.named_parameters()
            reached = [item for item in own if item[1].node in passed.gradients]
            result.add(outside_optimizer(reached, [parameter for _, parameter in self.trained]))
            result.add(update_findings(result.layers, self.optimizer))
        if since is not None:
            result.add(never_changed(parameters, since, passed))

    def _parameters(self, model: Module | None) -> NamedParameters:
        """The parameters of the model, of the optimizer, and of the graph; each once."""
        found: dict[int, tuple[str, Variable]] = {}
        named: Sequence[tuple[str, Variable]] = [] if model is None else model.named_parameters()
        for name, parameter in (*named, *self.trained):
            found.setdefault(id(parameter), (printable(name), parameter))
        variables = [node.get_variable_or_none() for node in self.leaves]
        living = [x for x in variables if x is not None and x.requires_grad]
        state = [x for x in living if isinstance(x, Parameter)]
        for x in state or ([] if found else living):
            found.setdefault(id(x), (self._name_by_user(x.node), x))
        return list(found.values())

    def _name_by_user(self, node: VariableNode) -> str:
        """The name of a leaf, with the first function that uses the leaf."""
        for function in self.functions:
            if node in (function.inputs or ()):
                return f"{self.names.input(node)} of {self.names.numbered(function)}"
        return self.names.input(node)


def _label(loss: Variable) -> str:
    return str(loss.creator_node.label)


def _failed(error: Exception, title: str) -> Finding:
    """The finding for a backward pass that raises."""
    return Finding(
        kind="backward fails",
        severity="error",
        where=title,
        message=f"The backward pass raises {type(error).__name__}: {error}",
        remedy="Correct the function that the message names.",
    )

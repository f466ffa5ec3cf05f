"""forget: compute a part of the graph again in backward, in place of keeping it.

Requirement: memory for time. The arrays that the inner functions would retain are dropped after
forward; backward runs the function once more, with a graph, and differentiates that.

Source: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinynode.backend import Arrays
from tinynode.backprop import backward
from tinynode.configuration import config, force_backprop_mode, no_backprop_mode, using_config
from tinynode.errors import GraphError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.operands import as_operand
from tinynode.variable import Variable


class Forget(FunctionNode):
    """The outputs of ``func``, without the graph in between; backward runs ``func`` again."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def _call(self, inputs: list[Variable]) -> tuple[Variable, ...]:
        outputs = self.func(*inputs)
        if isinstance(outputs, Variable):
            return (outputs,)
        if not isinstance(outputs, tuple):
            raise GraphError(
                "forget: func must return a Variable or a tuple of Variables, got "
                f"{describe(outputs)}."
            )
        for i, output in enumerate(outputs):
            if not isinstance(output, Variable):
                raise GraphError(
                    f"forget: func must return Variables; the {_ordinal(i + 1)} element of "
                    f"what it returned is {describe(output)}."
                )
        return outputs

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(len(inputs)))
        with no_backprop_mode(), using_config("will_recompute", True):
            outputs = self._call([Variable(x) for x in inputs])
        return tuple(y.array for y in outputs)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        if config.enable_backprop:
            raise GraphError(
                "forget: double backprop is not possible through a forgotten part; call the "
                "function without forget."
            )
        leaves = []
        for x in self.get_retained_inputs():
            leaves.append(Variable(x.array, requires_grad=x.requires_grad, name=x.name))
        with force_backprop_mode(), using_config("in_recomputing", True):
            outputs = self._call(leaves)
        used = [(y, gy) for y, gy in zip(outputs, grad_outputs, strict=True) if gy is not None]
        backward([y for y, _ in used], [gy for _, gy in used])
        return tuple(leaves[i].grad_var for i in target_input_indexes)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def forget(func: Callable[..., Any], *xs: Any) -> Any:
    """Call ``func(*xs)``, and forget what happens inside until backward needs it.

    Variables that ``func`` uses without taking them as arguments (parameters) receive their
    gradients in ``grad``, also under ``tinynode.grad``, which knows only the arguments.

    Args:
        func: takes Variables, returns one or a tuple of them; it is called twice, so it must do
            the same both times. ``config.will_recompute`` is True in the first call,
            ``config.in_recomputing`` in the second.
        xs: Variables or arrays; an array's gradient is computed, but goes nowhere.

    Raises:
        TypeError: ``func`` is not callable.
        GraphError: it returns something else than Variables, or double backprop is asked for.
    """
    if not callable(func):
        raise TypeError(f"forget: func must be callable, got {describe(func)}.")
    inputs = [x if isinstance(x, Variable) else Variable(x) for x in xs]
    for i, x in enumerate(inputs):
        as_operand("forget", f"xs[{i}]", x)
    outputs = Forget(func).apply(inputs)
    return outputs[0] if len(outputs) == 1 else outputs

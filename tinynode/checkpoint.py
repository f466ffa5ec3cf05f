"""checkpoint: compute a part of the graph again in backward, in place of keeping it.

Requirement: memory for time. The arrays that the inner functions would retain are dropped after
forward; backward runs the function once more, with a graph, and differentiates that.

Source: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinynode.configuration import config, force_backprop_mode, no_backprop_mode, using_config
from tinynode.core.backprop import backward
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.messages import decide_requires_grad
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, Device, get_device
from tinynode.errors import GraphError, describe
from tinynode.functions.draws import drawing_again, note_generator, noted_generators
from tinynode.functions.operands import as_operand_list
from tinynode.random import get_generator


class Checkpoint(FunctionNode):
    """The outputs of ``func``, without the graph in between; backward runs ``func`` again.

    ``func`` gets Variables on ``device``, one for each entry of ``requires_grad``. A further input
    stands for the parameters that ``func`` brings along, where no argument requires a gradient.
    """

    def __init__(
        self, func: Callable[..., Any], device: Device, requires_grad: tuple[bool, ...]
    ) -> None:
        self.func = func
        self.device = device
        self.requires_grad = requires_grad

    def _call(self, leaves: list[Variable]) -> tuple[Variable, ...]:
        outputs = self.func(*leaves)
        if isinstance(outputs, Variable):
            return (outputs,)
        if not isinstance(outputs, tuple):
            raise GraphError(
                "checkpoint: func must return a Variable or a tuple of Variables, got "
                f"{describe(outputs)}."
            )
        for i, output in enumerate(outputs):
            if not isinstance(output, Variable):
                raise GraphError(
                    f"checkpoint: func must return Variables; the {_ordinal(i + 1)} element of "
                    f"what it returned is {describe(output)}."
                )
        return outputs

    def _leaves(self, arrays: Sequence[Array]) -> list[Variable]:
        flags = zip(arrays, self.requires_grad, strict=True)
        return [wrap_array(array, self.device, flag) for array, flag in flags]

    def forward(self, inputs: Arrays) -> Arrays:
        arguments = range(len(self.requires_grad))
        self.retain_inputs(arguments)
        with (
            no_backprop_mode(),
            using_config("recompute_phase", "first"),
            noted_generators() as self.generators,
        ):
            note_generator(get_generator())
            outputs = self._call(self._leaves([inputs[i] for i in arguments]))
        return tuple(y.raw for y in outputs)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        if config.enable_backprop:
            raise GraphError(
                "checkpoint: double backprop is not possible through a forgotten part; call the "
                "function without forget."
            )
        leaves = self._leaves([x.raw for x in self.get_retained_inputs()])
        with (
            force_backprop_mode(),
            using_config("recompute_phase", "again"),
            drawing_again(self.generators),
        ):
            outputs = self._call(leaves)
        if len(outputs) != len(grad_outputs):
            raise GraphError(
                f"checkpoint: func returned {len(grad_outputs)} outputs in forward and "
                f"{len(outputs)} in backward: it must do the same both times."
            )
        pairs = zip(outputs, grad_outputs, strict=True)
        used = [(y, gy) for y, gy in pairs if gy is not None and y.requires_grad]
        backward([y for y, _ in used], [gy for _, gy in used])
        return (*(leaf.grad_var for leaf in leaves), None)[: len(self.inputs or ())]


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def checkpoint(func: Callable[..., Any], *xs: Any) -> Any:
    """Call ``func(*xs)`` without keeping its graph; backward runs ``func`` again.

    Random draws repeat themselves: the process-wide generator of ``tinynode.random``, and those
    that are given to ``dropout``, start in the second call where they started in the first, and go
    on afterwards as if it had not been. What else is random ``func`` has to repeat by itself.

    Leaf Variables that ``func`` uses without taking them as arguments (parameters) receive their
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
        raise TypeError(f"checkpoint: func must be callable, got {describe(func)}.")
    if is_recording_net():  # a net keeps what its backward reads
        return func(*xs)
    variables = as_operand_list("checkpoint", "xs", xs)
    inputs = [v if v is x else _as_leaf(v) for v, x in zip(variables, xs, strict=True)]
    device = inputs[0].device if inputs else get_device()
    flags = tuple(x.requires_grad for x in inputs)
    if not any(flags):  # what func brings along may require a gradient all the same
        inputs.append(wrap_array(device.xp.zeros(()), device, True))
    outputs = Checkpoint(func, device, flags).apply(inputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _as_leaf(x: Variable) -> Variable:
    """An array that came as an argument, so that its gradient is computed."""
    return wrap_array(x.raw, x.device, decide_requires_grad(x.raw, None))


forget = checkpoint
"""Chainer's name for ``checkpoint``."""

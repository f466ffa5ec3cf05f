"""checkpoint: compute a part of the graph again in backward, to save memory.

Requirement: save memory at the price of time. Forward runs the function without a graph, so no
inner function retains arrays. Backward runs the function again, with a graph, and differentiates
this graph.

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

_SETTINGS = ("device", "dtype", "train")
"""The settings that change the values of functions: both calls of ``func`` have the same."""


class Checkpoint(FunctionNode):
    """The outputs of ``func``, as a single node of the graph; backward runs ``func`` again.

    ``func`` gets Variables on ``device``, one for each entry of ``requires_grad``. If no argument
    requires a gradient, the node has an extra input that does: ``func`` may use parameters.
    """

    runs_backward = True

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
                    f"the returned tuple is {describe(output)}."
                )
        return outputs

    def _leaves(self, arrays: Sequence[Array]) -> list[Variable]:
        flags = zip(arrays, self.requires_grad, strict=True)
        return [wrap_array(array, self.device, flag) for array, flag in flags]

    def forward(self, inputs: Arrays) -> Arrays:
        arguments = range(len(self.requires_grad))
        self.retain_inputs(arguments)
        self.settings = {name: getattr(config, name) for name in _SETTINGS}
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
                "checkpoint: double backprop is not possible through a checkpoint; call the "
                "function without checkpoint."
            )
        leaves = self._leaves([x.raw for x in self.get_retained_inputs()])
        with (
            force_backprop_mode(),
            using_config(recompute_phase="again", **self.settings),
            drawing_again(self.generators),
        ):
            outputs = self._call(leaves)
        if len(outputs) != len(grad_outputs):
            raise GraphError(
                f"checkpoint: func returned {len(grad_outputs)} outputs in forward and "
                f"{len(outputs)} in backward: both calls must do the same."
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
    """Call ``func(*xs)`` without keeping the graph; backward runs ``func`` again.

    The second call draws the same random numbers as the first, then the generators are restored.
    This holds for the process-wide generator of ``tinynode.random`` and for the generators of
    ``dropout``. The second call also has the device, the dtype and ``train`` of the first call.

    ``func`` may use leaf Variables that are not arguments, such as parameters. Their gradients go
    to ``grad``, also under ``tinynode.grad``, which returns only the gradients of arguments.

    Args:
        func: takes Variables, and returns a Variable or a tuple of Variables. Both calls must do
            the same. ``config.recompute_phase`` is ``"first"`` in the first call, ``"again"`` in
            the second.
        xs: Variables or arrays. The gradient of an array is computed and dropped.

    Raises:
        TypeError: ``func`` is not callable.
        GraphError: ``func`` does not return Variables, or double backprop is requested.
    """
    if not callable(func):
        raise TypeError(f"checkpoint: func must be callable, got {describe(func)}.")
    if is_recording_net():  # a net saves the arrays of its backward
        return func(*xs)
    variables = as_operand_list("checkpoint", "xs", xs)
    inputs = [v if v is x else _as_leaf(v) for v, x in zip(variables, xs, strict=True)]
    device = inputs[0].device if inputs else get_device()
    flags = tuple(x.requires_grad for x in inputs)
    if not any(flags):  # func may use parameters with a gradient
        inputs.append(wrap_array(device.xp.zeros(()), device, True))
    outputs = Checkpoint(func, device, flags).apply(inputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _as_leaf(x: Variable) -> Variable:
    """A leaf Variable of an array argument; a floating array requires a gradient."""
    return wrap_array(x.raw, x.device, decide_requires_grad(x.raw, None))


forget = checkpoint
"""The name of ``checkpoint`` in Chainer."""

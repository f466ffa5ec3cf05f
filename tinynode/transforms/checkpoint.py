"""checkpoint: compute a part of the graph again in backward, to save memory.

Requirement: save memory at the price of time. Forward runs the function without a graph, so no
inner function retains arrays. Backward runs the function again, with a graph, and differentiates
this graph.

Source: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never, TypeVar

from tinynode.configuration import config, force_backprop_mode, no_backprop_mode, using_config
from tinynode.core.backprop import grad
from tinynode.core.conversion import decide_requires_grad
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, Device, hidden_axes, is_differentiable, running_inside
from tinynode.errors import DeviceMixError, GraphError, describe, unknown_keywords
from tinynode.functions.data_types import identity
from tinynode.functions.draws import drawing_again, note_generator, noted_generators
from tinynode.functions.masking import marks_handed_on
from tinynode.functions.operands import as_operand_list
from tinynode.random import get_generator
from tinynode.transforms.batching import batched
from tinynode.transforms.captures import Captures, cut_inputs, standing_in

R = TypeVar("R")
_SETTINGS = ("device", "dtype", "train")
"""The settings that change the values of functions: both calls of ``func`` have the same."""


class Checkpoint(FunctionNode):
    """The outputs of ``func``, as a single node of the graph; backward runs ``func`` again.

    The inputs are the arguments of ``func``, then the Variables that ``func`` has captured, such
    as parameters. Forward gives the values of the first call, which has run before.

    Args:
        func: the function.
        first: the first call.
    """

    complex_rule = "own"

    def __init__(self, func: Callable[..., Any], first: FirstCall) -> None:
        self.func = func
        self.first = first
        self.output_device = _single_device(first.outputs)

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(len(inputs)))
        outputs, self.first.outputs = self.first.outputs, ()  # the graph keeps no values
        return tuple([y.raw for y in outputs])

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        record, first = config.enable_backprop, self.first
        values, count = self.get_retained_inputs(), len(self.inputs or ()) - len(first.captured)
        inner = cut_inputs(values, count, record, _cut)
        # a result may be a captured Variable, which stands in until the gradients are there
        with standing_in(first.captured, inner[count:]):
            with (
                force_backprop_mode(),
                using_config(recompute_phase="again", **first.settings),
                drawing_again(first.generators),
                running_inside(first.axes),
                Captures(inner) as captures,
            ):
                outputs = _call(self.func, inner[:count])
            _check_captured(captures)
            if len(outputs) != len(grad_outputs):
                raise GraphError(
                    f"checkpoint: func returned {len(grad_outputs)} outputs in forward and "
                    f"{len(outputs)} in backward: both calls must do the same."
                )
            pairs = zip(outputs, grad_outputs, strict=True)
            used = [(y, gy) for y, gy in pairs if gy is not None and y.requires_grad]
            sources = [inner[i] for i in target_input_indexes]
            if not used:
                return (None,) * len(sources)
            ys, gys = [y for y, _ in used], [gy for _, gy in used]
            with marks_handed_on(self, ys):
                return tuple(grad(ys, sources, gys, enable_double_backprop=record))


def _check_captured(second: Captures) -> None:
    """Refuse a second call that uses a Variable which the first call did not use.

    Raises:
        GraphError: the gradient of that Variable would be lost.
    """
    for x in second.found():
        if x.requires_grad:
            raise GraphError(
                f"checkpoint: func used {x.name or 'a Variable'} of shape {x.shape} in backward "
                "and not in forward: both calls must do the same. Give what changes between the "
                "calls as an argument."
            )


class FirstCall:
    """The first call of ``func``, without a graph.

    Attributes:
        outputs: the results; forward takes them away.
        depends: for each result, True if it needs a gradient.
        captured: the other Variables with a gradient that ``func`` uses.
        settings: the values of ``_SETTINGS``.
        generators: the random generators, with their states.
        axes: the hidden axes of the vmapped functions around.
    """

    def __init__(self, func: Callable[..., Any], leaves: Sequence[Variable]) -> None:
        self.settings = {name: getattr(config, name) for name in _SETTINGS}
        self.axes = tuple(hidden_axes.stack)
        with (
            no_backprop_mode(),
            using_config("recompute_phase", "first"),
            noted_generators() as self.generators,
            Captures(leaves) as captures,
        ):
            note_generator(get_generator())
            self.outputs = _call(func, leaves)
            captures.note_results(self.outputs)
        self.depends = [is_differentiable(y.raw) and captures.depends(y) for y in self.outputs]
        self.captured = [x for x in captures.found() if x.requires_grad]


def _call(func: Callable[..., Any], arguments: Sequence[Variable]) -> tuple[Variable, ...]:
    """The results of ``func``, checked. Beside Variables of an example, all are of an example."""
    outputs = func(*arguments)
    if isinstance(outputs, Variable):
        outputs = (outputs,)
    if not isinstance(outputs, tuple):
        raise GraphError(
            f"checkpoint: func must return a Variable or a tuple of Variables, got "
            f"{describe(outputs)}."
        )
    for i, output in enumerate(outputs):
        if not isinstance(output, Variable):
            raise GraphError(
                f"checkpoint: func must return Variables; the {_ordinal(i + 1)} element of "
                f"the returned tuple is {describe(output)}."
            )
    return tuple(batched([*outputs, *arguments])[: len(outputs)])


def _single_device(outputs: tuple[Variable, ...]) -> Device:
    """The device of the results.

    Raises:
        DeviceMixError: the results are on several devices.
    """
    devices = list(dict.fromkeys([y.device for y in outputs]))
    if len(devices) > 1:
        raise DeviceMixError(
            f"checkpoint: func returned Variables on {devices[0]} and {devices[1]}. Return "
            "Variables on one device, and move them after checkpoint."
        )
    return devices[0]


def _cut(x: Variable, record: bool) -> Variable:
    """A Variable with the values of x where the inner backward pass ends: a copy, or a leaf."""
    return identity(x) if record and x.requires_grad else _leaf(x)


def _leaf(x: Variable) -> Variable:
    return wrap_array(x.raw, x.device, x.requires_grad)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def checkpoint(func: Callable[..., R], *xs: Any, **unknown: Never) -> R:
    """Call ``func(*xs)`` without keeping the graph; backward runs ``func`` again.

    The second call draws the same random numbers as the first, then the generators are restored.
    This holds for the process-wide generator of ``tinynode.random`` and for the generators of
    ``dropout``. The second call also has the device, the dtype and ``train`` of the first call.

    ``func`` may use Variables that are not arguments, such as parameters. They get a gradient, and
    both calls see their values of the first. Gradients of every order exist. A gradient of a
    gradient keeps the graph of ``func``. Such a backward borrows the Variables of the closure for
    a moment. Other threads must not use these Variables then.

        >>> x = tn.asarray([3.0])
        >>> y = tn.checkpoint(lambda x: x * x, x)
        >>> y.backward()
        >>> x.grad.tolist()
        [6.0]

    Args:
        func: takes Variables, and returns a Variable or a tuple of Variables. Both calls must do
            the same. ``config.recompute_phase`` is ``"first"`` in the first call, ``"again"`` in
            the second.
        xs: Variables or arrays. The gradient of an array is computed and dropped.

    Raises:
        TypeError: ``func`` is not callable.
        GraphError: ``func`` does not return Variables. Or the second call returns another number
            of them, or uses a Variable that the first call did not use.
    """
    if unknown:
        raise unknown_keywords("checkpoint", unknown)
    if not callable(func):
        raise TypeError(f"checkpoint: func must be callable, got {describe(func)}.")
    variables = as_operand_list("checkpoint", "xs", xs)
    inputs = [v if v is x else _as_leaf(v) for v, x in zip(variables, xs, strict=True)]
    if is_recording_net():  # a net saves the arrays of its backward
        recorded: R = _single_or_tuple(_call(func, inputs))
        return recorded
    leaves = [_leaf(x) for x in inputs]
    first = FirstCall(func, leaves)
    results = first.outputs
    sources = (*inputs, *first.captured)
    if config.enable_backprop and any(first.depends):
        outputs = Checkpoint(func, first).apply(sources)
        pairs = zip(outputs, first.depends, strict=True)
        outputs = tuple([y if depends else y.detach() for y, depends in pairs])
    else:
        given = {id(leaf): x for leaf, x in zip(leaves, inputs, strict=True)}
        outputs = tuple([given.get(id(y), y) for y in results])
    found: R = _single_or_tuple(outputs)
    return found


def _single_or_tuple(outputs: tuple[Variable, ...]) -> Any:
    return outputs[0] if len(outputs) == 1 else outputs


def _as_leaf(x: Variable) -> Variable:
    """A leaf Variable of an array argument; a floating array requires a gradient."""
    return wrap_array(x.raw, x.device, decide_requires_grad(x.raw, None))


forget = checkpoint
"""The name of ``checkpoint`` in Chainer."""

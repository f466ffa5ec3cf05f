"""Whole batches: a solver inside of vmap works on all examples at once, outside of vmap.

Requirement: a solver needs values, and a Variable of an example has none. So the arguments leave
the hidden axis. The equation of all examples is one equation of whole arrays. The solution enters
the hidden axis again:

    x (3) in each of 64 examples -> x (64, 3) -> F (64, 3) = vmap(F) -> solution (64, 3) -> (3)

The first axis then has independent systems. ``dense`` makes a small matrix for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinynode.configuration import force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import tell_detached
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Arrays,
    HiddenAxis,
    hidden_axes,
    hides_variables,
    is_floating,
    only_axes_of,
    own_backend,
)
from tinynode.errors import DeviceMixError, VmapError
from tinynode.functions import identity, stack
from tinynode.transforms.batching import (
    batched,
    hidden,
    lifted,
    lowered,
    several_directions,
    shown,
)
from tinynode.transforms.vmap import vmap


class OfWholeBatch(FunctionNode):
    """y = f(xs) in each example, where f takes and gives whole batches; for a recorded vmap.

    xs: (s), y: (t) in each example.   f: (n, s) ... -> (n, t).   dL/dxs by the gradient of f

    There, a Variable of an example has a graph of its own, beside the graph of whole batches. So
    backward is a function of whole batches again.

    Args:
        f: takes and gives Variables of whole batches, outside of the hidden axis.
        axis: the hidden axis.
    """

    complex_rule = "own"
    crosses_vmap = True
    runs_backward = True

    def __init__(self, f: Callable[..., Sequence[Variable | None]], axis: HiddenAxis) -> None:
        self.f = f
        self.axis = axis

    def forward(self, inputs: Arrays) -> Arrays:
        if any(own_backend(x) is not self.axis.device.backend for x in inputs):
            raise several_directions()
        self.retain_inputs(range(len(inputs)))
        values = [shown(x.raw, 0, self.axis.size) for x in inputs]
        with only_axes_of(self.axis.below):
            found = self.f(*values)
        device = self.axis.device
        return tuple([None if y is None else hidden(y, 0, device) for y in found])

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        xs = self.get_retained_inputs()
        given = [i for i, gy in enumerate(grad_outputs) if gy is not None]
        gys = [gy for gy in grad_outputs if gy is not None]

        def pullback(*values: Variable) -> Sequence[Variable | None]:
            with force_backprop_mode():  # also for the copies of ``_end``
                inner = [_end(x) for x in values[: len(xs)]]
                ys = self.f(*inner)
            return grad(
                [y for i, y in enumerate(ys) if y is not None and i in given],
                [inner[i] for i in target_input_indexes],
                values[len(xs) :],
                enable_double_backprop=True,
            )

        gxs = OfWholeBatch(pullback, self.axis).apply(batched((*xs, *gys)))
        return tuple([None if gx.raw is None else gx for gx in gxs])


def _end(x: Variable) -> Variable:
    """A Variable with the values of x, where an inner backward pass ends."""
    if x.requires_grad:
        return identity(x)
    leaf = wrap_array(x.raw, x.device, is_floating(x.raw))
    tell_detached(x, leaf)
    return leaf


class WholeBatch(NamedTuple):
    """The arguments of a call inside of vmap, outside of the innermost hidden axis.

    Attributes:
        axis: the hidden axis.
        inner: the arguments in each example.
        values: the arguments with the examples as the first axis.
    """

    axis: HiddenAxis
    inner: list[Variable]
    values: list[Variable]

    def solver(self, solver: Callable[..., Any]) -> Callable[..., Variable]:
        """A solver of all examples: by vmap, or in a loop if the solver reads values."""

        def of_all(*values: Variable) -> Variable:
            try:
                found: Variable = vmap(solver)(*values)
                return found
            except (TypeError, VmapError):  # a value is read, or the result is a number
                return stack([solver(*[x[i] for x in values]) for i in range(self.axis.size)])

        return of_all

    def outside(self, f: Callable[..., Variable], title: str) -> Variable:
        """A function of whole batches, called on the arguments, as a Variable of an example.

        Raises:
            VmapError: f uses a Variable of an example by a closure.
        """
        try:
            with only_axes_of(self.axis.below):
                y = f(*self.values)
        except DeviceMixError as error:
            raise VmapError(
                f"{title}: inside of vmap the equation runs on all examples at once, on the "
                "arguments alone. Give the Variables of an example as arguments, not by a closure."
            ) from error
        return lifted(y, 0, self.axis)

    def recorded(self, f: Callable[..., Variable], *first: Variable) -> Variable:
        """The same for a net; ``first`` are Variables of an example, before the arguments."""

        def outputs(*values: Variable) -> list[Variable | None]:
            return [f(*values)]

        (y,) = OfWholeBatch(outputs, self.axis).apply((*first, *self.inner))
        return y

    @property
    def is_recorded(self) -> bool:
        """True while a net records functions of whole batches."""
        return hides_variables(self.axis.device)


def whole_batch(variables: Sequence[Variable]) -> WholeBatch | None:
    """The arguments outside of the innermost hidden axis; None without Variables of an example."""
    for axis in reversed(hidden_axes.stack):
        if any(x.device is axis.device for x in variables):
            inner = batched(variables)
            return WholeBatch(axis, inner, [lowered(x, 0, axis) for x in inner])
    return None

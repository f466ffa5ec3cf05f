"""Functions for nets: constants, fills, the end of a gradient, other and dummy gradients."""

from __future__ import annotations

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.devices import Arrays, Device, namespace_of
from tinynode.functions.attributes import AnyArray, Length
from tinynode.functions.checked import checked, checked_float, checked_length
from tinynode.net.registry import register_op


@register_op()
class Constant(FunctionNode):
    """y = value, an array found when the function was recorded.

    -> y: (shape of value). No gradient: there is no input.
    """

    input_counts = (0,)

    def __init__(self, value: AnyArray, device: Device) -> None:
        found = device if type(device) is Device else checked(self, "device", device)
        is_there = type(value) in found.array_types
        self.value = value if is_there else checked(self, "value", value)
        self.output_device = found

    def forward(self, inputs: Arrays) -> Arrays:
        return (self.value,)


@register_op()
class FillLike(FunctionNode):
    """y = value everywhere, in the shape, the dtype and the device of x.

    x: (s) -> y: (s). No gradient: y does not depend on the values of x.
    """

    is_elementwise = True
    complex_rule = "own"

    def __init__(self, value: float) -> None:
        self.value = checked_float(self, "value", value)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).full_like(x, self.value),)


@register_op()
class StopGradient(FunctionNode):
    """y = x without a gradient: ``x.detach()`` in a net.

    x: (s) -> y: (s). No gradient.
    """

    is_elementwise = True
    complex_rule = "own"

    def forward(self, inputs: Arrays) -> Arrays:
        return inputs


@register_op()
class DummyGradient(FunctionNode):
    """u = 1 in the form of y: a gradient of y whose values do not matter.

    y: (s) -> u: (s). No gradient. A rule that is linear in u has a derivative without u, so a net
    may leave out the work on u; see ``passes.drop_dummies``.
    """

    is_elementwise = True
    complex_rule = "own"

    def forward(self, inputs: Arrays) -> Arrays:
        (y,) = inputs
        return (namespace_of(y).ones_like(y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return (None,)


class OtherGradient(FunctionNode):
    """ys unchanged: a base of operators that give ys a gradient of another function, of the xs.

    xs, ys -> ys.   A plan needs no step for the operator.

    Args:
        count: the number of xs.
    """

    input_counts = (1, ...)
    output_counts = (1, ...)

    def __init__(self, count: Length) -> None:
        self.count = checked_length(self, "count", count)

    def forward(self, inputs: Arrays) -> Arrays:
        return inputs[self.count :]

"""Functions that only nets need: constants, fills, and the end of a gradient."""

from __future__ import annotations

from typing import Any

from tinynode.backend import Array, Arrays, Device, namespace_of
from tinynode.function_node import FunctionNode
from tinynode.functions.network import check_rows, dropout_mask
from tinynode.net.registry import register_op


@register_op()
class Constant(FunctionNode):
    """y = value, an array that was there when the function was recorded.

    -> y: (shape of value). No gradient: there is no input.
    """

    def __init__(self, value: Array, device: Device) -> None:
        self.value = value
        self.output_device = device

    def forward(self, inputs: Arrays) -> Arrays:
        return (self.value,)


@register_op()
class FillLike(FunctionNode):
    """y = value everywhere, in the shape, the dtype and the device of x.

    x: (s) -> y: (s). No gradient: y does not depend on the values of x.
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).full_like(x, self.value),)


@register_op()
class DropoutMask(FunctionNode):
    """m = what dropout multiplies by, drawn anew at each run: see ``functions.dropout``.

    -> m: (shape). No gradient: there is no input.
    """

    is_random = True

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, device: Device, ratio: float, generator: Any
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.output_device = device
        self.ratio = ratio
        self.generator = generator

    def forward(self, inputs: Arrays) -> Arrays:
        device = self.output_device
        assert device is not None
        return (dropout_mask(self.shape, self.dtype, device, self.ratio, self.generator),)


@register_op()
class CheckedRows(FunctionNode):
    """y = x, indices that are rows of a matrix of some shape, or an IndexError.

    x: (s), integer -> y: (s). No gradient.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        check_rows(inputs[0], self.shape)
        return inputs


@register_op()
class StopGradient(FunctionNode):
    """y = x, and no gradient comes back: what ``x.detach()`` is in a net.

    x: (s) -> y: (s). No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        return inputs

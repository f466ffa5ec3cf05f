"""The mask of sequences of several lengths, for recurrent layers."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, any_true, is_integer, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.functions.attributes import Length
from tinynode.functions.checked import checked, checked_length
from tinynode.functions.indexing import index_list
from tinynode.functions.operands import as_operand


class StepMask(FunctionNode):
    """m[t, j] = (t < lengths[j]): True for the steps inside of sequence j.

    lengths: (n), integers from 0 to ``steps`` -> m: (steps, n), bool. No gradient.

    Raises:
        ValueError: a length is out of range.
    """

    def __init__(self, layer: str, steps: Length) -> None:
        self.layer = checked(self, "layer", layer)
        self.steps = checked_length(self, "steps", steps)

    def forward(self, inputs: Arrays) -> Arrays:
        (lengths,) = inputs
        xp = namespace_of(lengths)
        if lengths.shape[0] and any_true((lengths < 0) | (lengths > self.steps)):
            low, high = int(xp.min(lengths)), int(xp.max(lengths))
            if low < 0 or high > self.steps:
                raise ValueError(
                    f"{self.layer}: lengths run from {low} to {high}; x has {self.steps} steps."
                )
        steps = xp.arange(self.steps, dtype=lengths.dtype, device=lengths.device)
        return (xp.less(steps[:, None], lengths[None, :]),)


def step_mask(layer: str, lengths: Any, x: Variable, steps: int, batch: int) -> Variable:
    """The mask (steps, batch) of the lengths, on the device of x.

    Raises:
        OperandError: the lengths are not integers.
        ValueError: there is not one length for each sequence, or a length is out of range.
    """
    if isinstance(lengths, list | tuple):
        lengths = index_list(layer, "lengths", lengths, x)
    given = as_operand(layer, "lengths", lengths, x)
    if not is_integer(given.raw):
        raise OperandError(f"{layer}: lengths must be integers, got {describe(lengths)}.")
    if given.shape != (batch,):
        raise ValueError(
            f"{layer}: lengths must have shape ({batch},), a length for each sequence of x, got "
            f"{given.shape}."
        )
    return StepMask(layer, steps).apply((given,))[0]

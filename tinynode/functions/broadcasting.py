"""What elementwise functions of several inputs share.

Requirement: inputs broadcast as in NumPy, and each gradient comes back in its input's own shape
and dtype.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.errors import snake_case
from tinynode.functions.casting import astype
from tinynode.functions.operands import as_operands
from tinynode.functions.shaping import sum_to
from tinynode.type_check import TypeInfoTuple, broadcasts, expect


def unbroadcast(gx: Variable, function: FunctionNode, i: int) -> Variable:
    """A gradient brought back to input ``i``: summed over broadcast axes, cast to its dtype."""
    node = function.inputs[i]  # type: ignore[index]
    if gx.raw.shape != node.shape:
        gx = sum_to(gx, node.shape)
    if gx.raw.dtype != node.dtype:
        gx = astype(gx, node.dtype)
    return gx


class BroadcastingNode(FunctionNode):
    """Base of elementwise functions of two inputs: their shapes must broadcast."""

    is_broadcasting = True
    input_names = ("x", "y")
    type_hint = "reshape or index (x[:, None]) so that the axes line up from the right."

    def as_variables(self, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        """The inputs as Variables: a number or an array takes the other's device and dtype."""
        x, y = inputs
        names = (self.input_names[0], self.input_names[1])
        return super().as_variables(as_operands(snake_case(type(self).__name__), x, y, names))

    def unbroadcast(
        self, gx: Variable | None, gy: Variable | None
    ) -> tuple[Variable | None, Variable | None]:
        """Gradients brought back to the inputs: summed over broadcast axes, cast to the dtypes."""
        x, y = self.inputs or ()
        if gx is not None and (gx.raw.shape != x.shape or gx.raw.dtype is not x.dtype):
            gx = unbroadcast(gx, self, 0)
        if gy is not None and (gy.raw.shape != y.shape or gy.raw.dtype is not y.dtype):
            gy = unbroadcast(gy, self, 1)
        return gx, gy

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, y = in_types
        expect(broadcasts(x, y))

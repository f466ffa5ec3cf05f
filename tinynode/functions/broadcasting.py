"""What elementwise functions of several inputs share.

Requirement: inputs broadcast as in NumPy, and each gradient comes back in its input's own shape
and dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinynode.backend import Arrays
from tinynode.function_node import FunctionNode
from tinynode.functions.casting import astype
from tinynode.functions.shaping import sum_to
from tinynode.type_check import broadcasts, expect
from tinynode.variable import Variable

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


def unbroadcast(gx: Variable, function: FunctionNode, i: int) -> Variable:
    """A gradient brought back to input ``i``: summed over broadcast axes, cast to its dtype."""
    node = function.inputs[i]  # type: ignore[index]
    array = gx._array
    if array.shape != node.shape:
        gx = sum_to(gx, node.shape)  # type: ignore[arg-type]
    if array.dtype != node.dtype:
        gx = astype(gx, node.dtype)
    return gx


class BroadcastingNode(FunctionNode):
    """Base of elementwise functions of two inputs: their shapes must broadcast."""

    input_names = ("x", "y")
    type_hint = "reshape or index (x[:, None]) so that the axes line up from the right."

    def _check_types(self, arrays: Arrays) -> None:
        x, y = arrays
        own = type(self).check_type_forward is BroadcastingNode.check_type_forward
        if not own or x.shape != y.shape:  # equal shapes, the usual case, need no further check
            super()._check_types(arrays)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, y = in_types
        expect(broadcasts(x, y))

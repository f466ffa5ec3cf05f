"""Choosing elements by a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinynode.backend import Arrays, namespace_of
from tinynode.errors import OperandError, describe
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.shaping import zeros_beside
from tinynode.type_check import broadcasts, expect
from tinynode.variable import Variable

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


class Where(FunctionNode):
    """z = x where the condition holds, y elsewhere.

    condition: (c), bool, x: (s), y: (t) -> z: (broadcast of c, s and t).
    With g = dL/dz:   dL/dx = sum_to(g where c else 0, s)   dL/dy = sum_to(0 where c else g, t)
    """

    input_names = ("condition", "x", "y")
    type_hint = "reshape or index so that the axes line up from the right."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        condition, x, y = in_types
        expect(broadcasts(condition, x), broadcasts(condition, y), broadcasts(x, y))

    def forward(self, inputs: Arrays) -> Arrays:
        condition, x, y = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).where(condition, x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        (condition,) = self.get_retained_inputs()
        assert gz is not None
        zero = zeros_beside(gz, ())
        gx = gy = None
        if 1 in target_input_indexes:
            gx = unbroadcast(where(condition, gz, zero), self, 1)
        if 2 in target_input_indexes:
            gy = unbroadcast(where(condition, zero, gz), self, 2)
        return None, gx, gy


def where(condition: Any, x: Any, y: Any) -> Variable:
    """x where ``condition`` holds, y elsewhere. Nothing of the branch not taken leaks through.

    Args:
        condition: a bool Variable or array.
        x: a Variable, an array or a number.
        y: likewise; one of the two at least is a Variable or an array.

    Raises:
        InvalidType: the shapes do not broadcast together.
        OperandError: the condition is not bool, or an argument is something else.
    """
    condition = as_operand("where", "condition", condition)
    if condition.dtype != condition.xp.bool:
        raise OperandError(
            f"where: condition must be bool, got {describe(condition)}. Compare first: x > 0."
        )
    x, y = as_operands("where", x, y)
    return Where().apply((condition, x, y))[0]

"""Negation, sums and products."""

from mynode.functions.shapes import unbroadcast
from mynode.type_check import broadcasts, expect


class Divide(BroadcastingNode):
    """z = x / y.   gx = gz / y, gy = -gz * z / y"""

    def forward(self, inputs):
        raise NotImplementedError("step 11: retain what backward needs")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 11: end with self.unbroadcast(gx, gy)")


def divide(x, y):
    """x / y."""
    return Divide().apply(as_operands(x, y))[0]

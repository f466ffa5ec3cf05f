"""Products in which a gradient that is exactly zero stays zero.

Requirement: a branch that was masked out gives gradient 0 to its inputs, although its local
derivative may be infinite or undefined there: 0 * inf would be NaN. Masking wherever the gradient
is zero would be wrong: (log x)^2 / 2 has second derivative 1 at x = 1, where its gradient is 0. So
the product is replaced only where the gradient is zero *and* the derivative is not finite.
"""

from __future__ import annotations

from tinynode.core.function_node import Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.functions.broadcasting import BroadcastingNode, unbroadcast
from tinynode.functions.selection import where


def masked(g: Array, mask: Array) -> Array:
    """g where the mask holds, else 0, also where g is infinite or NaN. For arrays.

    A product with 0 and 1 is several times quicker than a choice, where g is finite.
    """
    xp = namespace_of(g)
    if xp.all(xp.isfinite(g)):
        return g * xp.astype(mask, g.dtype)
    return xp.where(mask, g, xp.zeros_like(g))


class ZeroSafeMultiply(BroadcastingNode):
    """z = g * d, but 0 where g = 0 and d is infinite or NaN.

    g: (s), d: (t) -> z: (broadcast of s and t).
    With h = dL/dz:   dL/dg = sum_to(h * d, s)   dL/dd = sum_to(h * g, t), and 0 where replaced
    """

    def forward(self, inputs: Arrays) -> Arrays:
        g, d = inputs
        xp = namespace_of(g)
        self.retain_inputs((0, 1))
        finite = xp.isfinite(d)
        if not xp.all(finite):
            d = xp.where(finite | (g != 0), d, xp.zeros_like(d))
        return (xp.multiply(g, d),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (h,) = grad_outputs
        g, d = self.get_retained_inputs()
        assert h is not None
        dead = IsDead().apply((g, d))[0]
        gg = gd = None
        if 0 in target_input_indexes:
            gg = unbroadcast(where(dead, 0.0, zero_safe_multiply(h, d)), self, 0)
        if 1 in target_input_indexes:
            gd = unbroadcast(where(dead, 0.0, h * g), self, 1)
        return gg, gd


def zero_safe_multiply(g: Variable, d: Variable) -> Variable:
    """g * d, but 0 where g = 0 and d is infinite or NaN."""
    return ZeroSafeMultiply().apply((g, d))[0]


class IsDead(BroadcastingNode):
    """z = (g == 0) and d is not finite: where ``ZeroSafeMultiply`` replaces the product.

    g: (s), d: (t) -> z: (broadcast of s and t), bool. No gradient.
    """

    def forward(self, inputs: Arrays) -> Arrays:
        g, d = inputs
        return ((g == 0) & ~namespace_of(g).isfinite(d),)

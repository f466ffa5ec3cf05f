"""Capstone exercise, solved: xlogy and its rows."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.rows import normal, positive, row, zeros


class XLogY(tn.FunctionNode):
    """z = x log y, and 0 where x = 0.

    x: (s), y: (s) -> z: (s).   dL/dx = dL/dz log y   dL/dy = dL/dz x / y
    """

    def forward(self, inputs):
        """The arrays (x, y) -> the arrays (z,)."""
        x, y = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0, 1))
        one = xp.ones_like(y)
        return (x * xp.log(xp.where(x == 0, one, y)),)

    def backward(self, target_input_indexes, grad_outputs):
        """The Variables (dL/dz,) -> the Variables (dL/dx, dL/dy)."""
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        return gz * F.log(y), gz * x / y


def xlogy(x, y):
    """x log y, elementwise, with broadcasting; 0 where x is 0."""
    x, y = F.broadcast_arrays(x, y)
    return XLogY().apply((x, y))[0]


def reference(x, y):
    """The same in NumPy."""
    zero = np.broadcast_to(x == 0, np.broadcast_shapes(x.shape, y.shape))
    return np.where(zero, 0.0, x * np.log(np.where(zero, 1.0, y)))


ROWS = [
    row("both signs", reference, normal(2, 3), positive(2, 3), dtypes=("float32", "float64")),
    row("x broadcasts", reference, normal(3), positive(2, 3)),
    row("y broadcasts", reference, normal(2, 3), positive()),
    row("empty", reference, normal(0, 3), positive(3)),
    row("0 at x = 0", reference, zeros(3), zeros(3), order=0),
    row("infinite at y = 0", reference, positive(3), zeros(3), order=0),
]

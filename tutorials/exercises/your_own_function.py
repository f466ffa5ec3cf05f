"""Capstone exercise: xlogy, a function of your own, and its rows.

1. ``XLogY`` and ``xlogy``: z = x log y, elementwise, with broadcasting; 0 where x is 0, for any y.
   dL/dx = dL/dz log y, and dL/dy = dL/dz x / y. Backward consists of functions of tinynode. The
   result has the dtype of the inputs. For a negative y, z and dL/dx are NaN.
2. ``ROWS``: claims about xlogy, as on the page. The check plants nine bugs: a wrong value, a wrong
   sign, a lost second order, a wrong dtype, an error for negative x, no broadcasting, a crash on
   empty arrays, nan at x = 0, and 0 in place of an infinity at y = 0, x != 0. Each bug must be
   caught by a row. Use order=0 for rows at 0, where xlogy has no finite gradient.

row(claim, reference, *inputs, order=2, dtypes=("float64",)); inputs are normal(2, 3),
positive(3), zeros(2), and so on.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F  # noqa: F401 - for you to use
from tinynode_course.rows import normal, positive, row, zeros  # noqa: F401 - for you to use


class XLogY(tn.FunctionNode):
    """z = x log y, and 0 where x = 0.   x: (s), y: (s) -> z: (s)."""

    def forward(self, inputs):
        """The arrays (x, y) -> the arrays (z,)."""
        raise NotImplementedError("write forward")

    def backward(self, target_input_indexes, grad_outputs):
        """The Variables (dL/dz,) -> the Variables (dL/dx, dL/dy)."""
        raise NotImplementedError("write backward")


def xlogy(x, y):
    """x log y, elementwise, with broadcasting; 0 where x is 0."""
    raise NotImplementedError("write xlogy")


def reference(x, y):
    """The same in NumPy."""
    zero = np.broadcast_to(x == 0, np.broadcast_shapes(x.shape, y.shape))
    return np.where(zero, 0.0, x * np.log(np.where(zero, 1.0, y)))


ROWS = [
    row("three numbers", reference, positive(3), positive(3)),
]

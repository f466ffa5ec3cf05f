"""Hidden checks of exercise 23: the order of the arguments, and 32-bit numbers."""

import numpy as np

from tinynode_course.checks import expect_close, expect_equal


def check_order(work):
    """TanhGrad takes y first, then gy."""
    from mynode.functions.trigonometric import TanhGrad

    y, gy = work.Variable(np.array([0.5])), work.Variable(np.array([3.0]))
    (gx,) = TanhGrad().apply((y, gy))
    expect_close("TanhGrad of y = 0.5 and gy = 3", gx.array, [2.25], "gx = gy (1 - y^2).")


def check_float32(work):
    """The dtype stays, in both orders."""
    x = work.Variable(np.array([0.5, -1.0], np.float32))
    g = work.tanh(x)
    for order in (1, 2):
        (g,) = work.grad([g], [x], enable_double_backprop=True)
        look = "A factor 2.0 keeps float32; an array of float64 does not."
        expect_equal(f"the dtype of derivative {order}", str(g.dtype), "float32", look)


def check_composition(work):
    """tanh inside of other functions, in the second order."""
    x = work.Variable(np.array([0.2, 0.7]))
    (g,) = work.grad([work.exp(work.tanh(x))], [x], enable_double_backprop=True)
    (gg,) = work.grad([g], [x])
    t = np.tanh(x.array)
    s = 1 - t * t
    look = "TanhGrad.backward: both gradients, of y and of gy."
    expect_close("derivative 2 of e^tanh(x)", gg.array, np.exp(t) * (s * s - 2 * t * s), look)

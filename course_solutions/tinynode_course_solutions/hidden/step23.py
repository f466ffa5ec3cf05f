"""Hidden checks of exercise 23: the order of the arguments, and 32-bit numbers."""

import numpy as np

import tinynode as tn
from tinynode_course.checks import expect_close, expect_equal

LOOK = "TanhGrad is a function of y and gy, and its own backward uses TanhGrad or operators."


def check_dtype(work):
    """32-bit numbers stay 32-bit numbers, to the second order."""
    x = tn.Variable(np.array([0.2, -1.0], dtype=np.float32))
    y = work.tanh(x)
    (g,) = tn.grad([y], [x], enable_double_backprop=True)
    (h,) = tn.grad([g], [x])
    expect_equal("the dtypes", [str(v.dtype) for v in (y, g, h)], ["float32"] * 3, LOOK)


def check_numbers(work):
    """The second derivative of tanh, by its formula."""
    x = tn.Variable(np.array([[0.3, -0.8, 1.7]]))
    y = work.tanh(x)
    (g,) = tn.grad([y], [x], enable_double_backprop=True)
    (h,) = tn.grad([g], [x])
    t = np.tanh(x.array)
    expect_close("the second derivative", h.array, -2 * t * (1 - t * t), LOOK)


def check_no_input_is_written(work):
    """Arrays of the caller are left alone."""
    y, gy = tn.Variable(np.array([0.5])), tn.Variable(np.array([3.0]))
    work.TanhGrad().apply((y, gy))
    expect_equal("gy after TanhGrad", gy.array, np.array([3.0]), LOOK)

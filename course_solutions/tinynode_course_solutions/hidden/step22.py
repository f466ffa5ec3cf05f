"""Hidden checks of exercise 22: other functions, and x as it was."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import expect_close, expect_equal

LOOK = "Each derivative is the gradient of the one before."


def check_exponential(work):
    """All derivatives of e^(2 x)."""
    x = tn.Variable(np.array([0.1, -0.4]))
    found = work.derivatives(lambda x: F.exp(2.0 * x), x, 4)
    for order, got in enumerate(found):
        expected = 2.0**order * np.exp(2.0 * x.array)
        expect_close(f"derivative {order} of e^(2 x)", got.array, expected, LOOK)


def check_constant(work):
    """A function that ignores x has derivatives of zero."""
    x = tn.Variable(np.array([1.0, 2.0, 3.0]))
    found = work.derivatives(lambda x: x * 0.0 + 4.0, x, 2)
    for got in found[1:]:
        expect_close("a derivative of a constant", got.array, np.zeros(3), LOOK)


def check_newton(work):
    """Newton's method on another valley, for several starts at once."""
    x = tn.Variable(np.array([0.5, 2.0, 5.0]))
    got = work.newton(lambda x: x - F.log(x), x, 0)
    expect_equal("x after no step", got.array, x.array, LOOK)
    x = tn.Variable(np.array([0.5, 1.2]))
    got = work.newton(lambda x: x - F.log(x), x, 7)
    expect_close("the minimum of x - log(x)", got.array, [1.0, 1.0], LOOK)

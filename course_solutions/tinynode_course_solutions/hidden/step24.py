"""Hidden checks of exercise 24: compositions, where a cut cannot hide."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import CheckFailed, expect_close

LOOK = "All of backward is made of functions of F and of operators."


def _second(function, x):
    """The second derivative of sum(function(x)) as the gradient of sum(gradient)."""
    v = tn.Variable(x)
    (g,) = tn.grad([F.sum(function(v))], [v], enable_double_backprop=True)
    (h,) = tn.grad([F.sum(g)], [v])
    if h is None:
        raise CheckFailed("a second derivative", "a Variable", "None", LOOK)
    return h.array


def check_cumulative_sum(work):
    """Squares behind cumulative_sum."""

    def function(x):
        y = work.cumulative_sum(x)
        return y * y

    n = 4
    lower = np.tril(np.ones((n, n)))
    expected = 2.0 * (lower.T @ lower).sum(axis=0)
    got = _second(function, np.arange(1.0, n + 1))
    expect_close("the second derivative of sum(cumulative_sum(x)^2)", got, expected, LOOK)


def check_softplus(work):
    """Softplus behind a square."""
    x = np.array([0.4, -1.1])
    s = 1 / (1 + np.exp(-x * x))
    expected = 4 * x * x * s * (1 - s) + 2 * s
    got = _second(lambda v: work.softplus(v * v), x)
    expect_close("the second derivative of softplus(x^2)", got, expected, LOOK)


def check_dot(work):
    """A vector with itself."""
    got = _second(lambda v: work.dot(v, v) * work.dot(v, v), np.array([1.0, 2.0]))
    expect_close("the second derivative of dot(x, x)^2", got, [44.0, 68.0 - 8.0 + 8.0], LOOK)

"""Checks of forward_mode: J v from two backward passes, to the last digit."""

import numpy as np

from tinynode import functions as F
from tinynode.learn.checks import CheckFailed, expect_close, expect_equal, solution

HINTS = (
    "tn.grad([y], [x], [u], enable_double_backprop=True) gives g with a graph back to u.",
    "tn.grad([g], [u], [tn.asarray(v)]) differentiates g with respect to u, along v.",
    "On the way from start to end, the argument changes by end - start for each unit of t.",
)
M = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def turn(x):
    """A linear function (2,) -> (3,), not symmetric: J v and J^T v differ."""
    return x @ M


def bend(x):
    """(2,) -> (2,)"""
    return F.stack([F.exp(x[0]) * F.sin(x[1]), x[0] * x[0] * x[1]])


def bend_times(x, v):
    """The Jacobian of bend times v, by hand."""
    e, s, c = np.exp(x[0]), np.sin(x[1]), np.cos(x[1])
    return np.array([e * s * v[0] + e * c * v[1], 2 * x[0] * x[1] * v[0] + x[0] ** 2 * v[1]])


class Calls:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f, self.count = f, 0

    def __call__(self, x):
        self.count += 1
        return self.f(x)


def check_shape(work):
    """J v has the shape of the result."""
    v = np.array([1.0, -2.0])
    got = np.asarray(work.jvp(turn, np.array([0.3, 0.4]), v))
    look = "J v has one number for each result; v J has one for each argument."
    expect_equal("the shape of jvp for (2,) -> (3,)", got.shape, (3,), look)
    expect_close("jvp of a matrix product", got, v @ M, look)


def check_jvp(work):
    """J v of a curved function is exact."""
    x, v = np.array([0.7, -0.4]), np.array([2.0, 0.5])
    look = "Differentiate g = u J with respect to u, along v."
    f = Calls(bend)
    got = work.jvp(f, x, v)
    expect_close("jvp", got, bend_times(x, v), look, rtol=1e-12)
    if f.count > 1:
        raise CheckFailed(
            "the calls of f in jvp",
            "1",
            str(f.count),
            "Differences call f twice and round. Use two calls of tn.grad on one y.",
        )


def check_dummy(work):
    """J v is linear in v, and J 0 is 0."""
    x = np.array([0.7, -0.4])
    look = "The second call of tn.grad starts from v, not from the dummy."
    expect_close("jvp along 0", work.jvp(bend, x, np.zeros(2)), np.zeros(2), look)
    once = np.asarray(work.jvp(bend, x, np.array([1.0, 1.0])))
    expect_close("jvp along 3 v", work.jvp(bend, x, np.array([3.0, 3.0])), 3 * once, look)


def check_slope(work):
    """The slope along a line, at three places."""
    start, end = np.array([0.2, -0.1]), np.array([1.0, 0.6])
    look = "The point is start + t (end - start), the direction is end - start."
    for t in (0.0, 0.5, 1.0):
        expected = bend_times(start + t * (end - start), end - start)
        got = work.slope_along(bend, start, end, t)
        expect_close(f"slope_along at t = {t}", got, expected, look, rtol=1e-12)


def energy(x):
    return F.sum(x**4) + x[0] * x[1]


def check_hessian(work):
    """H v of x0^4 + x1^4 + x0 x1."""
    x, v = np.array([0.5, -2.0]), np.array([1.0, 3.0])
    hessian = np.diag(12 * x**2) + np.array([[0.0, 1.0], [1.0, 0.0]])
    look = "jvp of the gradient. The gradient needs enable_double_backprop=True."
    expect_close("hessian_product", work.hessian_product(energy, x, v), hessian @ v, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the graph of the gradient is missing",
        _SOLUTION.replace("[y], [x], [u], enable_double_backprop=True", "[y], [x], [u]"),
    ),
    (
        "the product with the transposed matrix",
        _SOLUTION.replace("    return tangent.array\n", "    return g.array\n"),
    ),
    (
        "the second pass starts from ones",
        _SOLUTION.replace("[tn.asarray(v)])", "[tn.asarray(np.ones(len(v)))])"),
    ),
    (
        "by differences",
        _SOLUTION.replace(
            '-> (m,) array."""\n',
            '-> (m,) array."""\n'
            "    high, low = f(tn.asarray(x + 1e-6 * v)), f(tn.asarray(x - 1e-6 * v))\n"
            "    return (high.array - low.array) / 2e-6\n",
        ),
    ),
    (
        "the direction is the end of the line",
        _SOLUTION.replace("t * (end - start), end - start)", "t * (end - start), end)"),
    ),
    (
        "the slope is always that at the start",
        _SOLUTION.replace("start + t * (end - start), end", "start, end"),
    ),
    (
        "the gradient in place of the Hessian's product",
        _SOLUTION.replace("return jvp(gradient, x, v)", "return gradient(tn.asarray(x)).array"),
    ),
)

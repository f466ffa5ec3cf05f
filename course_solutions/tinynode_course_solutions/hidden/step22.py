"""Hidden checks of exercise 22: other functions, products of matrices, and x as it was."""

import numpy as np

from tinynode_course.checks import expect_close, expect_equal, expect_true

LOOK = "Each derivative is the gradient of the one before."


def check_exponential(work):
    """All derivatives of e^(2 x)."""
    x = work.Variable(np.array([0.1, -0.4]))
    g = work.exp(2.0 * x)
    for order in range(1, 5):
        (g,) = work.grad([g], [x], enable_double_backprop=True)
        expected = 2.0**order * np.exp(2.0 * x.array)
        expect_close(f"derivative {order} of e^(2 x)", g.array, expected, LOOK)
    expect_true("x.grad was not touched", x.grad is None, "grad writes to no grad")


def check_matmul(work):
    """The second order of a product of matrices."""
    rng = np.random.default_rng(3)
    x, y = work.Variable(rng.normal(size=(2, 3))), work.Variable(rng.normal(size=(3, 2)))
    z = x @ y
    (gx,) = work.grad([work.sum(z * z)], [x], enable_double_backprop=True)
    (gy,) = work.grad([work.sum(gx)], [y])
    ones = np.ones((2, 3))
    right = 2.0 * (x.array.T @ (ones @ y.array) + ones.T @ (x.array @ y.array))
    expect_close("the gradient of the sum of dL/dx for y", gy.array, right, LOOK)


def check_updated_leaf(work):
    """A leaf that was updated: the graph has the old array."""
    x = work.Variable(np.array(2.0))
    y = work.square(work.square(x))
    x.array = np.array(100.0)
    (gx,) = work.grad([y], [x], enable_double_backprop=True)
    expect_close("the gradient of the old x^4", gx.array, 32.0, "kept: compare x.array and array")
    (ggx,) = work.grad([gx], [x])
    expect_close("its gradient", ggx.array, 48.0, "kept: x.node = node")


def check_plain_backward(work):
    """After a recorded backward, a plain one gives arrays again."""
    x = work.Variable(np.array(3.0))
    y = work.square(x)
    y.backward(enable_double_backprop=True)
    y.backward()
    kind = type(x.grad).__module__
    expect_equal("the library of x.grad", kind, "numpy", "sweep sets gives_variables each time")
    expect_close("x.grad after two backwards", x.grad, 12.0, LOOK)

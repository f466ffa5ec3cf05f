"""Hidden checks of step 4: long chains, and gradients that are set."""

import numpy as np

from tinynode_course.checks import expect_close

LOOK = "backward follows creator_node from the result to the leaf, and multiplies on its way."


def check_long_chain(work):
    """A chain of 3000 operations, without a recursion."""
    x = work.Variable(np.array(0.5))
    y = x
    for _ in range(1500):
        y = work.negative(work.sin(y))
    y.backward()
    slope, value = 1.0, 0.5
    for _ in range(1500):
        slope, value = -slope * np.cos(value), -np.sin(value)
    expect_close("the gradient behind 3000 operations", x.grad, slope, LOOK)


def check_arrays(work):
    """Arrays with many axes, and a gradient that was set."""
    x = work.Variable(np.array([[0.1, 0.2], [0.3, -0.4]]))
    y = work.exp(work.square(x))
    y.grad = np.array([[1.0, 2.0], [3.0, 4.0]])
    given = y.grad.copy()
    y.backward()
    expected = given * np.exp(x.array**2) * 2 * x.array
    expect_close("the gradient of x", x.grad, expected, LOOK)

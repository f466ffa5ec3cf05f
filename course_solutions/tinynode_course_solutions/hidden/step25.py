"""Hidden checks of exercise 25: many uses, mixed with other functions."""

import numpy as np

from tinynode_course.checks import expect_close, expect_equal

LOOK = "The result takes the place of what was there: the sum or the difference of both."


def check_mixed(work):
    """Uses by - and by other functions."""
    x, y = work.Variable(np.array([2.0, 3.0])), work.Variable(np.array([5.0, 7.0]))
    z = (x * y - (y - x)) + (x - y) * 3.0
    gx, gy = work.grad([z], [x, y], [work.Variable(np.ones(2))])
    expect_close("the gradient of x", gx.array, y.array + 4.0, LOOK)
    expect_close("the gradient of y", gy.array, x.array - 4.0, LOOK)


def check_two_backwards(work):
    """The grad of a leaf adds up over two backwards."""
    x, y = work.Variable(np.array(2.0)), work.Variable(np.array(5.0))
    for _ in range(2):
        (x - y).backward()
    expect_close("x.grad", x.grad, 2.0, LOOK)
    expect_close("y.grad", y.grad, -2.0, LOOK)


def check_types(work):
    """A result for each target."""
    x, y = work.Variable(np.ones(1)), work.Variable(np.ones(1))
    node = (x - y).creator_node
    for targets in ((0,), (1,), (0, 1)):
        found = node.backward_accumulate(targets, (np.array([1.0]),), (None,) * len(targets))
        expect_equal("the number of results", len(found), len(targets), LOOK)


def check_constants(work):
    """Numbers and data among the inputs want no gradient."""
    x, data = work.Variable(np.ones(2)), work.Variable(np.ones(2), requires_grad=False)
    work.sum((5.0 - x) * (data - x) + (x - 1.0)).backward()
    expect_close("the gradient of x", x.grad, [-3.0, -3.0], LOOK)

"""Hidden checks of exercise 25: many uses, mixed with other functions."""

import numpy as np

import tinynode as tn
from tinynode_course.checks import expect_close, expect_equal

LOOK = "The result takes the place of what was there: the sum or the difference of both."


def check_mixed(work):
    """Uses by subtract and by other functions."""
    x, y = tn.Variable(np.array([2.0, 3.0])), tn.Variable(np.array([5.0, 7.0]))
    z = work.subtract(x * y, work.subtract(y, x)) + work.subtract(x, y) * 3.0
    gx, gy = tn.grad([z], [x, y], [tn.Variable(np.ones(2))])
    expect_close("the gradient of x", gx.array, y.array + 4.0, LOOK)
    expect_close("the gradient of y", gy.array, x.array - 4.0, LOOK)


def check_two_backwards(work):
    """The grad of a leaf adds up over two backwards."""
    x, y = tn.Variable(np.array(2.0)), tn.Variable(np.array(5.0))
    for _ in range(2):
        work.subtract(x, y).backward()
    expect_close("x.grad", x.grad, 2.0, LOOK)
    expect_close("y.grad", y.grad, -2.0, LOOK)


def check_types(work):
    """Results are Variables, in a tuple as long as the targets."""
    g = tn.Variable(np.array([1.0]))
    for targets in ((0,), (1,), (0, 1)):
        node = work.Subtract()
        found = node.backward_accumulate(targets, (g,), (None,) * len(targets))
        expect_equal("the number of results", len(found), len(targets), LOOK)

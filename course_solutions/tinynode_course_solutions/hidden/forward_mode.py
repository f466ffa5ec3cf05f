"""Hidden checks of the elective forward_mode: another function, and a Hessian."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import expect_close

LOOK = "J v is the derivative of u J with respect to u, along v."
POINT, DIRECTION = np.array([0.3, -1.1, 0.4]), np.array([1.0, 2.0, -0.5])


def swirl(x):
    """(3,) -> (2,)"""
    return F.stack([F.sin(x[0] * x[1]) + x[2], F.exp(x[2]) / (1.0 + x[0] * x[0])])


def given():
    """The point and the direction as Variables."""
    return tn.asarray(POINT, requires_grad=True), tn.asarray(DIRECTION, requires_grad=False)


def check_another_function(work):
    """J v agrees with tn.jacrev."""
    _, product = work.jvp(swirl, *given())
    expect_close("jvp", product.array, tn.jacrev(swirl)(POINT).array @ DIRECTION, LOOK)


def check_a_hessian(work):
    """H v agrees with tn.hvp."""

    def f(x):
        return F.sum(swirl(x) ** 2)

    got = work.hvp(f, *given())
    expect_close("hvp", got.array, tn.hvp(f, POINT, DIRECTION).array, LOOK)

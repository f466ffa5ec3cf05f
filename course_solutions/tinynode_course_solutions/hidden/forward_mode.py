"""Hidden checks of the elective forward_mode: another function, and a Hessian by differences."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.learn.checks import expect_close

LOOK = "J v is the derivative of u J with respect to u, along v."


def swirl(x):
    """(3,) -> (2,)"""
    return F.stack([F.sin(x[0] * x[1]) + x[2], F.exp(x[2]) / (1.0 + x[0] * x[0])])


def check_another_function(work):
    """J v agrees with tn.jacrev."""
    x, v = np.array([0.3, -1.1, 0.4]), np.array([1.0, 2.0, -0.5])
    expect_close("jvp", work.jvp(swirl, x, v), tn.jacrev(swirl)(x).array @ v, LOOK)


def check_a_hessian(work):
    """H v agrees with tn.hvp."""

    def f(x):
        return F.sum(swirl(x) ** 2)

    x, v = np.array([0.3, -1.1, 0.4]), np.array([1.0, 2.0, -0.5])
    expect_close("hessian_product", work.hessian_product(f, x, v), tn.hvp(f, x, v).array, LOOK)

"""Hidden checks of exercise 14: other shapes, and the second order of what was repaired."""

import numpy as np

import tinynode as tn
from tinynode import gradient_check
from tinynode_course.checks import CheckFailed, expect_equal

LOOK = "Derive the gradient on paper, for inputs of any size."


def check_names(work):
    """FOUND has the three names, in any order and once."""
    expect_equal("FOUND, sorted", sorted(work.FOUND), ["Product", "Share", "Tanh"], LOOK)


def check_second_order(work):
    """The repaired functions can be differentiated twice."""
    rng = np.random.default_rng(11)
    for name, number in (("Tanh", 1), ("Product", 2), ("Share", 1)):
        inputs = tuple(abs(rng.normal(size=(3, 2))) + 0.2 for _ in range(number))
        g = rng.uniform(0.5, 1.5, size=(3, 2))

        def function(*xs, name=name):
            return getattr(work, name)().apply(xs)[0]

        try:
            gradient_check.check_double_backward(function, inputs, g, inputs, eps=1e-5)
        except AssertionError as error:
            what = f"the second order of {name}"
            raise CheckFailed(what, "slopes that agree", str(error)[:150], LOOK) from None


def check_large_inputs(work):
    """Large numbers, and one number alone."""
    for x in (np.array([30.0, -30.0, 0.5]), np.array(0.7), np.zeros((0,))):
        v = tn.Variable(x)
        (y,) = work.Tanh().apply((v,))
        (g,) = tn.grad([y], [v], [tn.Variable(np.ones_like(x))])
        if not np.allclose(g.array, 1 - np.tanh(x) ** 2, atol=1e-12):
            raise CheckFailed(f"the gradient of Tanh at {x}", "1 - y^2", str(g.array), LOOK)

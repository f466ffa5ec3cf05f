"""Hidden checks of the elective interface: other points, and a nest of functions."""

import numpy as np

from tinynode_course.checks import expect_close

LOOK = "The rate of f(v) is f'(v) * rate, for each function of the namespace."


def nested(x):
    xp = x.__array_namespace__()
    return xp.sum(xp.sqrt(xp.exp(xp.sin(x)) + x * x))


def check_a_nest_of_functions(work):
    """The slope agrees with a difference."""
    point, direction, step = np.array([0.3, -1.4]), np.array([2.0, 1.0]), 1e-6
    y = nested(work.Dual(point, direction))
    high, low = nested(point + step * direction), nested(point - step * direction)
    expect_close("the rate", y.rate, (high - low) / (2 * step), LOOK, rtol=1e-6)

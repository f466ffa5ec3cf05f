"""Checks of interface: dual numbers go through code that was written for arrays."""

import numpy as np

import tinynode as tn
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, solution

HINTS = {
    "check_namespace": Hint(
        "Which object tells the code of others where exp stands?",
        "__array_namespace__ returns XP. asarray returns a Dual as it is, and else Dual(x, 0.0).",
    ),
    "check_functions": Hint(
        "A number moves at a rate. At which rate does a function of the number move?",
        "exp: e^v rate. sin: cos(v) rate. sqrt: rate / (2 sqrt(v)). sum: the sum of the rates.",
    ),
    "check_code_of_others": Hint(
        "The long function is made of short ones. Which of them has a wrong rate alone?",
        "The rate of f(g(x)) comes out by itself if each function is right.",
    ),
}
POINT = np.array([0.5, 1.0, 2.0])


def expect_slope(work, function, point, look):
    """The rate of a function of a Dual is the derivative in a direction."""
    direction = np.array([1.0, -2.0, 0.5])
    try:
        y = function(work.Dual(point, direction))
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed(f"{function.__name__} of a Dual", "a Dual", got, look) from error
    if not isinstance(y, work.Dual):
        raise CheckFailed(f"{function.__name__} of a Dual", "a Dual", type(y).__name__, look)
    x = tn.asarray(point, requires_grad=True)
    expected = function(x)
    (gx,) = tn.grad([tn.functions.sum(expected)], [x])
    expect_close(f"the value of {function.__name__}", y.value, expected.array, look)
    rate = np.sum(tn.to_host(gx.array) * direction)
    expect_close(f"the rate of {function.__name__}", np.sum(y.rate), rate, look)


def check_namespace(work):
    """A Dual gives one namespace, and asarray makes Duals."""
    x = work.Dual([1.0, 2.0], [1.0, 0.0])
    look = "Return the object XP: other people's code compares namespaces with `is`."
    xp = x.__array_namespace__()
    expect_equal("one namespace", xp is (x + x).__array_namespace__(), True, look)
    look = "A Dual stays as it is; a number becomes a Dual with the rate 0."
    expect_equal("asarray(dual) is dual", xp.asarray(x) is x, True, look)
    made = xp.asarray([3.0, 4.0])
    expect_close("asarray([3, 4]).value", made.value, [3.0, 4.0], look)
    expect_close("asarray([3, 4]).rate", made.rate, [0.0, 0.0], look)


def exponential(x):
    return x.__array_namespace__().exp(x * 0.5)


def sine(x):
    return x.__array_namespace__().sin(x * 2.0)


def root(x):
    return x.__array_namespace__().sqrt(x + 1.0)


def total(x):
    return x.__array_namespace__().sum(x * x)


def check_functions(work):
    """exp, sin, sqrt and sum give value and rate."""
    for function in exponential, sine, root, total:
        look = "The rate of f(v) is f'(v) * rate."
        expect_slope(work, function, POINT, look)


def distance(x):
    """Other people's code: the distance from 1, written for the standard."""
    xp = x.__array_namespace__()
    return xp.sqrt(xp.sum((x - 1.0) * (x - 1.0)))


def check_code_of_others(work):
    """Longer functions of others have the right slope."""
    look = "Check each function of the namespace alone: exp, sin, sqrt, sum."
    expect_slope(work, work.wave, POINT, look)
    expect_slope(work, distance, POINT, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the rate of exp is left as it was",
        _SOLUTION.replace("Dual(y, y * x.rate)", "Dual(y, x.rate)"),
    ),
    ("the sign of the cosine", _SOLUTION.replace("np.cos(x.value) * x", "-np.cos(x.value) * x")),
    ("the 2 of the root is missing", _SOLUTION.replace("x.rate / (2 * y)", "x.rate / y")),
    ("the sum forgets the rates", _SOLUTION.replace("np.sum(x.rate))", "0.0)")),
    (
        "a new namespace at each call",
        _SOLUTION.replace("        return XP\n", "        return Namespace()\n"),
    ),
    (
        "a number gets the rate 1",
        _SOLUTION.replace("else Dual(x, 0.0)", "else Dual(x, 1.0)"),
    ),
)

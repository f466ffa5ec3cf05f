"""Checks of exercise 24: the first and the second order of three functions."""

import numpy as np

import tinynode as tn
from tinynode import gradient_check
from tinynode_course.checks import CheckFailed, expect_close, expect_true, solution

HINTS = (
    "Look for .array in the three backward methods, and for tn.Variable(...) around an array: "
    "there the graph ends. What F has under the same name as xp works with Variables.",
    "The gradient of a linear function does not depend on x, but it depends on g: so it needs a "
    "graph too. And the gradient of a in Dot depends on b.",
    "F.flip(F.cumulative_sum(F.flip(g))) is the gradient of CumulativeSum; in Softplus, F.exp of "
    "-x; in Dot the two products without .array.",
)


def numbers(seed, n=5):
    return np.random.default_rng(seed).normal(size=n)


def expect_right(check, what, look, function, *arguments):
    """One of the package's gradient checks; what it says of each input goes into the message."""
    try:
        check(function, *arguments, eps=1e-5)
    except AssertionError as error:
        parts = [line.strip() for line in str(error).splitlines() if line.startswith("  ")]
        expected = "gradients that agree with differences"
        raise CheckFailed(what, expected, "; ".join(parts), look) from None


def second_order(function, what, look, inputs):
    """The double check with random numbers."""
    g_shape = function(*(tn.Variable(x) for x in inputs)).shape
    rng = np.random.default_rng(20)
    g = np.asarray(rng.uniform(0.5, 1.5, size=g_shape))  # not near 0, which would hide mistakes
    weights = tuple(rng.normal(size=x.shape) for x in inputs)
    expect_right(
        gradient_check.check_double_backward, what, look, function, tuple(inputs), g, weights
    )


def check_forward(work):
    """The three functions themselves."""
    x, b = numbers(0), numbers(1)
    look = "The forward methods were right: put them back."
    for name, got, expected in (
        ("cumulative_sum", work.cumulative_sum(tn.Variable(x)), np.cumsum(x)),
        ("softplus", work.softplus(tn.Variable(x)), np.log1p(np.exp(x))),
        ("dot", work.dot(tn.Variable(x), tn.Variable(b)), np.asarray(x @ b)),
    ):
        expect_close(f"what {name} computes", got.array, expected, look)
    for name, function, inputs in (
        ("CumulativeSum", work.cumulative_sum, 1),
        ("Softplus", work.softplus, 1),
        ("Dot", work.dot, 2),
    ):
        creator = function(*[tn.Variable(x)] * inputs).creator_node
        what = f"{function.__name__} applies {name}, whose backward you repair"
        look = "The functions at the end of the file were right: put them back."
        expect_true(what, isinstance(creator, getattr(work, name)), look)


def check_first_order(work):
    """The first order of the three."""
    x, b, g = numbers(2), numbers(3), numbers(4)
    check = gradient_check.check_backward
    look = "These numbers were right in the stub. The formula is in the docstring of the class."
    for name, function, inputs, gy in (
        ("cumulative_sum", work.cumulative_sum, (x,), g),
        ("softplus", work.softplus, (x,), g),
        ("dot", work.dot, (x, b), np.asarray(0.7)),
    ):
        expect_right(check, f"the gradient of {name}", look, function, inputs, gy)


def check_cumulative_sum(work):
    """The second order of CumulativeSum, which is linear."""
    look = (
        "y_grad[0] is g. The gradient does not depend on x, so None is right for x; but it "
        "depends on g: use F.flip and F.cumulative_sum on g itself, not on its array."
    )
    for n in 5, 1:
        what = f"the second-order gradient of cumulative_sum, for {n} numbers"
        second_order(work.cumulative_sum, what, look, [numbers(5, n)])


def check_softplus(work):
    """The second order of Softplus."""
    look = "x_data[0] is x. Its array went into the exponential: F.exp takes the Variable."
    second_order(work.softplus, "the second-order gradient of softplus", look, [numbers(6)])


def check_dot(work):
    """The second order of Dot, which has two inputs."""
    look = (
        "x_data[0] is a, x_data[1] is b. The gradient of a is g b: it depends on b, and that of b "
        "depends on a."
    )
    what = "the second-order gradient of dot"
    second_order(work.dot, what, look, [numbers(7), numbers(8)])


def check_third_order(work):
    """The third order of Softplus: nothing is cut further on."""
    x = tn.Variable(numbers(9))
    y = work.softplus(x)
    for order in 1, 2, 3:
        (y,) = tn.grad([y], [x], enable_double_backprop=True)
        look = "All of backward is to be made of functions of F and of operators."
        expect_true(f"derivative {order} depends on x", y is not None, look)
    s = 1 / (1 + np.exp(-x.array))
    look = "Is a .array left in the backward of Softplus?"
    expect_close("the third derivative of softplus", y.array, s * (1 - s) * (1 - 2 * s), look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "CumulativeSum is linear, so it is left as it was",
        _SOLUTION.replace(
            "F.flip(F.cumulative_sum(F.flip(g)))",
            "tn.Variable(g.xp.flip(g.xp.cumulative_sum(g.xp.flip(g.array))))",
        ),
    ),
    (
        "the array of x is put into a new Variable: a leaf that is not x",
        _SOLUTION.replace("F.exp(-x)", "F.exp(-tn.Variable(x.array))"),
    ),
    (
        "one of the two products of Dot is left as it was",
        _SOLUTION.replace("return g * b, g * a", "return g * b, g * a.array"),
    ),
    (
        "the order of the numbers is not reversed back",
        _SOLUTION.replace("F.flip(F.cumulative_sum(F.flip(g)))", "F.cumulative_sum(F.flip(g))"),
    ),
    (
        "the function of the package is called, and the backward is left as it was",
        _SOLUTION.replace("F.exp(-x)", "x.xp.exp(-x.array)").replace(
            "return Softplus().apply((x,))[0]", "return F.softplus(x)"
        ),
    ),
    (
        "the sign of x is lost",
        _SOLUTION.replace("F.exp(-x)", "F.exp(x)"),
    ),
)
